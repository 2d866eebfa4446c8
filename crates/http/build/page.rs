//! Renders the page from its template, once for each depth of a path. Its links are relative, so it can be served under
//! any base path.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use super::files::{File, TEMPLATE, WebInterface};

/// The relative paths to the root of the interface from `/`, from `/m/{mailbox}` and from `/m/{mailbox}/{id}`.
const ROOTS: [&str; 3] = ["./", "../", "../../"];

/// The rendered pages.
pub(crate) struct Pages {
    /// The page for each depth of a path.
    pub(crate) by_depth: Vec<String>,
    /// The `Content-Security-Policy` of the page.
    pub(crate) policy: String,
    /// The `Content-Security-Policy` of the login page, which has the same style.
    pub(crate) login_policy: String,
    /// The style.
    pub(crate) style: String,
}

/// Renders the pages. They load the other files from a path with the hash.
pub(crate) fn render(ui: &WebInterface, hash: &str) -> Result<Pages, String> {
    check_references(ui)?;
    let by_depth: Result<Vec<String>, String> = ROOTS.into_iter().map(|root| fill_template(ui, root, hash)).collect();
    let by_depth = by_depth?;
    let style = inlined_style(&by_depth[0])?.to_owned();
    let style_hash = STANDARD.encode(Sha256::digest(&style));
    Ok(Pages { policy: policy(&style_hash), login_policy: login_policy(&style_hash), style, by_depth })
}

/// Returns the policy of the page: scripts are files of this server, the only style is the one in the page, and nothing
/// is loaded from other hosts. Text becomes HTML only through the Trusted Types policy `greeting`, which is for the
/// greeting of the operator.
fn policy(style_hash: &str) -> String {
    [
        "default-src 'none'",
        "script-src 'self'",
        &format!("style-src 'sha256-{style_hash}'"),
        "img-src 'self' data:",
        "connect-src 'self'",
        "frame-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types greeting",
    ]
    .join("; ")
}

/// Returns the policy of the login page: no scripts, and the form is sent only to this server.
fn login_policy(style_hash: &str) -> String {
    [
        "default-src 'none'",
        &format!("style-src 'sha256-{style_hash}'"),
        "img-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ]
    .join("; ")
}

/// Replaces the placeholders of the template. Inserted text is not searched for placeholders.
fn fill_template(ui: &WebInterface, root: &str, hash: &str) -> Result<String, String> {
    let modules: Vec<String> = ui
        .assets
        .iter()
        .filter(|file| file.path.starts_with("js/") && file.module_text().is_some())
        .map(|File { path, .. }| format!("<link rel=\"modulepreload\" href=\"{root}assets/{hash}/{path}\">"))
        .collect();
    let values =
        [("root", root), ("assets", &format!("assets/{hash}")), ("style", &ui.style), ("modules", &modules.join("\n"))];
    if let Some((name, _)) = values.iter().find(|(name, _)| !ui.template.contains(&format!("{{{{{name}}}}}"))) {
        return Err(format!("ui/{TEMPLATE} does not contain {{{{{name}}}}}"));
    }
    let mut parts = ui.template.split("{{");
    let mut page = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once("}}").ok_or_else(|| format!("ui/{TEMPLATE}: {{{{ without }}}}"))?;
        let Some((_, value)) = values.iter().find(|(known, _)| *known == name) else {
            return Err(format!("ui/{TEMPLATE}: {{{{{name}}}}} is an unknown placeholder"));
        };
        page.push_str(value);
        page.push_str(rest);
    }
    Ok(page)
}

/// Checks that the files that the template refers to exist.
fn check_references(ui: &WebInterface) -> Result<(), String> {
    for reference in ui.template.split("{{assets}}/").skip(1) {
        let path = reference.split(['"', '\'', ' ', '>']).next().unwrap_or_default();
        if !ui.assets.iter().any(|file| file.path == path) {
            return Err(format!("ui/{TEMPLATE} refers to {path}, but there is no ui/{path}"));
        }
    }
    Ok(())
}

/// Returns the text between the style tags, which the browser hashes.
fn inlined_style(page: &str) -> Result<&str, String> {
    let between = || page.split_once("<style>")?.1.split_once("</style>");
    match between() {
        Some((style, rest)) if !rest.contains("<style") && !rest.contains("</style") => Ok(style),
        _ => Err(format!(
            "ui/{TEMPLATE} must contain exactly one <style> element, and style sheets must not contain style tags"
        )),
    }
}
