//! Writes the table of embedded files: Rust code that includes the packed files. Its types are in
//! `src/response/embedded_assets.rs`.

use std::fmt::Write as _;

use super::files::{File, ICON};
use super::pack::{Form, Packer};
use super::shell::Shells;

/// Packs everything and returns the code of the table.
pub(crate) fn write(packer: &mut Packer, assets: &[File], shells: &Shells, hash: &str) -> Result<String, String> {
    let mut pages = String::new();
    for page in &shells.pages {
        pages.push_str(&row(packer, "text/html; charset=utf-8", page.as_bytes())?);
        pages.push(',');
    }
    let mut files = String::new();
    for File { path, content_type, content } in assets {
        // Writing to a string cannot fail.
        let _ = write!(files, "({path:?}, {}),", row(packer, content_type, content)?);
    }
    let Shells { policy, login_policy, style, .. } = shells;
    let count = shells.pages.len();
    let icon = assets.iter().position(|file| file.path == ICON).unwrap_or_default();
    Ok(format!(
        "pub(crate) const HASH: &str = {hash:?};\n\
         pub(crate) const POLICY: &str = {policy:?};\n\
         pub(crate) const LOGIN_POLICY: &str = {login_policy:?};\n\
         pub(crate) const STYLE: &str = {style:?};\n\
         pub(crate) static PAGES: [Packed; {count}] = [{pages}];\n\
         pub(crate) static ASSETS: &[(&str, Packed)] = &[{files}];\n\
         pub(crate) static ICON: &Packed = &ASSETS[{icon}].1;\n"
    ))
}

fn row(packer: &mut Packer, content_type: &str, content: &[u8]) -> Result<String, String> {
    let (plain, smaller) = packer.pack(content)?;
    let smaller: Vec<String> = smaller.iter().map(form).collect();
    let (plain, smaller) = (form(&plain), smaller.join(","));
    Ok(format!("Packed {{ content_type: {content_type:?}, plain: {plain}, smaller: &[{smaller}] }}"))
}

/// Each form is a separate representation with its own tag (RFC 9110 section 8.8.3).
fn form(Form { coding, name, .. }: &Form) -> String {
    let tag = format!("\"{name}\"");
    let content = format!("include_bytes!(concat!(env!(\"OUT_DIR\"), \"/ui/{name}\"))");
    format!("Form {{ coding: Coding::{coding:?}, tag: {tag:?}, content: {content} }}")
}
