//! The page: made from its template once for every depth of a path, so that it can be served as it is under any base path.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use super::files::{File, Interface, TEMPLATE};

/// The ways to the root of the interface, from `/`, from `/m/{mailbox}` and from `/m/{mailbox}/{id}`.
const ROOTS: [&str; 3] = ["./", "../", "../../"];

/// The page in all its forms.
pub(crate) struct Shells {
    /// By the depth of the path.
    pub(crate) pages: Vec<String>,
    /// What the page may load and do: `Content-Security-Policy`.
    pub(crate) policy: String,
    /// The same for the page with the form to log in, which has the style too.
    pub(crate) login_policy: String,
    /// The style.
    pub(crate) style: String,
}

/// Makes the pages, which find the other files under the hash.
pub(crate) fn make(ui: &Interface, hash: &str) -> Result<Shells, String> {
    check_references(ui)?;
    let pages: Result<Vec<String>, String> = ROOTS.into_iter().map(|root| fill(ui, root, hash)).collect();
    let pages = pages?;
    let style = inlined_style(&pages[0])?.to_owned();
    let hash = STANDARD.encode(Sha256::digest(&style));
    Ok(Shells { policy: policy(&hash), login_policy: login_policy(&hash), style, pages })
}

/// Scripts are files of ours, the only style is the one in the page, and nothing comes from elsewhere. What becomes HTML
/// from text passes a policy of its own: the greeting, which is the operator's.
fn policy(style: &str) -> String {
    [
        "default-src 'none'",
        "script-src 'self'",
        &format!("style-src 'sha256-{style}'"),
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

/// It has no scripts, and its form goes nowhere else.
fn login_policy(style: &str) -> String {
    [
        "default-src 'none'",
        &format!("style-src 'sha256-{style}'"),
        "img-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ]
    .join("; ")
}

/// Puts everything into the template. What was put in is not looked at again.
fn fill(ui: &Interface, root: &str, hash: &str) -> Result<String, String> {
    let modules: Vec<String> = ui
        .assets
        .iter()
        .filter(|file| file.path.starts_with("js/") && file.module().is_some())
        .map(|File { path, .. }| format!("<link rel=\"modulepreload\" href=\"{root}assets/{hash}/{path}\">"))
        .collect();
    let values =
        [("root", root), ("assets", &format!("assets/{hash}")), ("style", &ui.style), ("modules", &modules.join("\n"))];
    if let Some((name, _)) = values.iter().find(|(name, _)| !ui.template.contains(&format!("{{{{{name}}}}}"))) {
        return Err(format!("ui/{TEMPLATE} has no place for {{{{{name}}}}}"));
    }
    let mut pieces = ui.template.split("{{");
    let mut page = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (name, rest) = piece.split_once("}}").ok_or_else(|| format!("ui/{TEMPLATE}: {{{{ without }}}}"))?;
        let Some((_, value)) = values.iter().find(|(known, _)| *known == name) else {
            return Err(format!("ui/{TEMPLATE}: {{{{{name}}}}} is unknown"));
        };
        page.push_str(value);
        page.push_str(rest);
    }
    Ok(page)
}

/// The files that the template names are there.
fn check_references(ui: &Interface) -> Result<(), String> {
    for reference in ui.template.split("{{assets}}/").skip(1) {
        let path = reference.split(['"', '\'', ' ', '>']).next().unwrap_or_default();
        if !ui.assets.iter().any(|file| file.path == path) {
            return Err(format!("ui/{TEMPLATE} asks for {path}, but there is no ui/{path}"));
        }
    }
    Ok(())
}

/// What the browser takes the hash of: all that stands between the tags.
fn inlined_style(page: &str) -> Result<&str, String> {
    let between = || page.split_once("<style>")?.1.split_once("</style>");
    match between() {
        Some((style, rest)) if !rest.contains("<style") && !rest.contains("</style") => Ok(style),
        _ => Err(format!("ui/{TEMPLATE} must have exactly one <style>, and style sheets none of its tags")),
    }
}
