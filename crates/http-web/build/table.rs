//! Writes the table of embedded files: Rust code that includes the packed files. Its types are in
//! `src/response/embedded_assets.rs`.

use std::fmt::Write as _;

use super::files::{File, ICON};
use super::pack::{Coding, EncodedFile, Packer};
use super::page::Pages;

/// The compressed forms of files that every visitor loads.
const CODINGS: [Coding; 2] = [Coding::Brotli, Coding::Gzip];
/// The extension of source maps. Browsers load them only for their developer tools, and Brotli would take longer for a source map
/// than for all other files.
const SOURCE_MAP: &str = ".map";

/// Packs everything and returns the code of the table.
pub(crate) fn write(packer: &mut Packer, assets: &[File], pages: &Pages, hash: &str) -> Result<String, String> {
    let mut page_rows = String::new();
    for page in &pages.by_depth {
        page_rows.push_str(&row(packer, "text/html; charset=utf-8", page.as_bytes(), &CODINGS)?);
        page_rows.push(',');
    }
    let mut asset_rows = String::new();
    for File { path, content_type, content } in assets {
        let codings = if path.ends_with(SOURCE_MAP) { &CODINGS[1..] } else { &CODINGS };
        // Writing to a string cannot fail.
        let _ = write!(asset_rows, "({path:?}, {}),", row(packer, content_type, content, codings)?);
    }
    let Pages { policy, login_policy, style, .. } = pages;
    let (count, assets_count) = (pages.by_depth.len(), assets.len());
    let icon = assets.iter().position(|file| file.path == ICON).unwrap_or_default();
    Ok(format!(
        "/// The hash of all files.\npub const HASH: &str = {hash:?};\n\
         /// The `Content-Security-Policy` of the pages.\npub const POLICY: &str = {policy:?};\n\
         /// That of the login page.\npub const LOGIN_POLICY: &str = {login_policy:?};\n\
         /// The style sheet of plain pages.\npub const STYLE: &str = {style:?};\n\
         /// The pages, by the number of segments of their paths.\npub static PAGES: [EmbeddedFile; {count}] = [{page_rows}];\n\
         /// The other files, by their paths.\npub static ASSETS: [(&str, EmbeddedFile); {assets_count}] = [{asset_rows}];\n\
         /// The icon.\npub static ICON: &EmbeddedFile = &ASSETS[{icon}].1;\n"
    ))
}

fn row(packer: &mut Packer, content_type: &str, content: &[u8], codings: &[Coding]) -> Result<String, String> {
    let (plain, compressed) = packer.pack(content, codings)?;
    let has_gzip = compressed.iter().any(|file| matches!(file.coding, Coding::Gzip));
    let compressed: Vec<String> = compressed.iter().map(|file| encoded_file(file, true)).collect();
    let (plain, compressed) = (encoded_file(&plain, !has_gzip), compressed.join(","));
    Ok(format!(
        "EmbeddedFile {{ content_type: {content_type:?}, plain: {plain}, compressed: &[{compressed}], decompressed: OnceLock::new() }}"
    ))
}

/// Returns the code of one encoded form. Each form is a separate representation with its own tag (RFC 9110 section
/// 8.8.3). The program contains a file with a form in gzip only in its compressed forms.
fn encoded_file(EncodedFile { coding, name, .. }: &EncodedFile, is_included: bool) -> String {
    let tag = format!("\"{name}\"");
    let content = if is_included {
        format!("Some(include_bytes!(concat!(env!(\"OUT_DIR\"), \"/ui/{name}\")))")
    } else {
        "None".to_owned()
    };
    format!("EncodedFile {{ coding: Coding::{coding:?}, tag: {tag:?}, content: {content} }}")
}
