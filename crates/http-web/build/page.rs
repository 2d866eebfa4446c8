//! Renders the page from its template, once for each depth of a path. Its links are relative, so it can be served under
//! any base path.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use super::files::{TEMPLATE, WebInterface};

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
    let style = inlined(&by_depth[0], "style")?.to_owned();
    let style_hash = source_hash(&style);
    let script = inlined(&by_depth[0], "script")?;
    if by_depth.iter().any(|page| !page.contains(script)) {
        return Err(format!("the inline script of ui/{TEMPLATE} must not contain {{{{root}}}}"));
    }
    let script_hash = source_hash(script);
    Ok(Pages { policy: policy(&style_hash, &script_hash), login_policy: login_policy(&style_hash), style, by_depth })
}

/// Returns the policy of the page: scripts are files of this server or the one in the page, the only style is the one in
/// the page, and nothing is loaded from other hosts. Text becomes HTML only through the Trusted Types policy `greeting`,
/// which is for the greeting of the operator.
fn policy(style_hash: &str, script_hash: &str) -> String {
    [
        "default-src 'none'",
        &format!("script-src 'self' '{script_hash}'"),
        &format!("style-src '{style_hash}'"),
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
        &format!("style-src '{style_hash}'"),
        "img-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ]
    .join("; ")
}

/// Replaces the placeholders of the template. Inserted text is not searched for placeholders.
fn fill_template(ui: &WebInterface, root: &str, hash: &str) -> Result<String, String> {
    let values = [("root", root), ("assets", &format!("assets/{hash}")), ("style", &ui.style)];
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

/// Returns the text of the only inline style or script, which the browser hashes. A script with attributes is a file.
fn inlined<'a>(page: &'a str, tag: &str) -> Result<&'a str, String> {
    let (start, end) = (format!("<{tag}>"), format!("</{tag}"));
    let is_balanced = page.matches(&format!("<{tag}")).count() == page.matches(&end).count();
    let text = page.split_once(&start).and_then(|(_, rest)| rest.split_once(&end)).map(|(text, _)| text);
    text.filter(|_| is_balanced && page.matches(&start).count() == 1).ok_or_else(|| {
        format!("ui/{TEMPLATE} must contain exactly one <{tag}> without attributes, and its text must not contain {tag} tags")
    })
}

/// Returns a hash as it is written in a policy.
fn source_hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}
