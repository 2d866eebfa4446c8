//! Reads the files of the web interface from `ui/`. Packing them is in `pack`, `page` and `table`.

use std::path::Path;

/// The template of the page.
pub(crate) const TEMPLATE: &str = "index.html";
/// Style sheets directly in this folder become part of the page.
const STYLES: &str = "css/";
/// The style sheet that is also served as a file: the login page and the API page use its values.
const TOKENS: &str = "css/10-tokens.css";
/// The icon of the server on pages that do not name another one.
pub(crate) const ICON: &str = "icon.svg";

const MODULE: &str = "text/javascript; charset=utf-8";

/// The types of files that are served. Other files in the folder are only for development.
const CONTENT_TYPES: [(&str, &str); 7] = [
    ("css", "text/css; charset=utf-8"),
    ("js", MODULE),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("webmanifest", "application/manifest+json"),
    ("webp", "image/webp"),
    ("woff2", "font/woff2"),
];

/// The web interface.
pub(crate) struct WebInterface {
    /// The template of the page.
    pub(crate) template: String,
    /// The style of the page: all style sheets in the order of their names.
    pub(crate) style: String,
    /// The files that the page loads, in the order of their paths.
    pub(crate) assets: Vec<File>,
}

/// A file that is served.
#[derive(Clone)]
pub(crate) struct File {
    /// The path below the folder, with slashes.
    pub(crate) path: String,
    pub(crate) content_type: &'static str,
    pub(crate) content: Vec<u8>,
}

impl File {
    /// Returns the text of the file if it is a JavaScript module.
    pub(crate) fn module_text(&self) -> Option<&str> {
        let text = std::str::from_utf8(&self.content).ok()?;
        (self.content_type == MODULE).then_some(text)
    }
}

/// Reads the folder.
pub(crate) fn read(folder: &Path) -> Result<WebInterface, String> {
    if !folder.is_dir() {
        return Err(
            "the folder ui/ of the web interface is missing: build restante from its complete source tree, in which \
                    ui/ is next to crates/"
                .to_owned(),
        );
    }
    let mut files = Vec::new();
    walk(folder, "", &mut files)?;
    files.sort_unstable_by(|a, b| a.path.cmp(&b.path));

    let is_style = |file: &File| {
        let name = file.path.strip_prefix(STYLES).and_then(|name| name.strip_suffix(".css"));
        name.is_some_and(|name| !name.contains('/'))
    };
    let assets: Vec<File> = files.iter().filter(|file| !is_style(file) || file.path == TOKENS).cloned().collect();
    let styles = files.into_iter().filter(is_style);
    if !assets.iter().any(|file| file.path == ICON) {
        return Err(format!("ui/{ICON} is missing"));
    }
    let template = std::fs::read(folder.join(TEMPLATE)).map_err(|error| format!("ui/{TEMPLATE}: {error}"))?;
    let style: Result<Vec<String>, String> = styles.map(|file| checked_text(&file.path, file.content)).collect();
    Ok(WebInterface { template: checked_text(TEMPLATE, template)?, style: style?.concat(), assets })
}

/// Returns the text of a file. Browsers replace carriage returns and NUL characters in HTML, so the hash of the style
/// would not match.
fn checked_text(path: &str, content: Vec<u8>) -> Result<String, String> {
    let text = String::from_utf8(content).map_err(|_| format!("ui/{path} is not UTF-8"))?;
    if text.contains(['\r', '\0']) {
        return Err(format!("ui/{path} contains carriage returns or NUL characters"));
    }
    Ok(text)
}

fn walk(folder: &Path, prefix: &str, files: &mut Vec<File>) -> Result<(), String> {
    let to_error = |error| format!("{}: {error}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(to_error)? {
        let entry = entry.map_err(to_error)?;
        let name = entry.file_name();
        let name = name.to_str().ok_or_else(|| format!("the name of {} is not UTF-8", entry.path().display()))?;
        if name.starts_with('.') {
            continue;
        }
        let path = format!("{prefix}{name}");
        if entry.path().is_dir() {
            walk(&entry.path(), &format!("{path}/"), files)?;
        } else if let Some(content_type) = content_type(name) {
            if !path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte)) {
                return Err(format!("ui/{path}: a file name may only contain letters, digits and -_."));
            }
            let content = std::fs::read(entry.path()).map_err(|error| format!("ui/{path}: {error}"))?;
            files.push(File { path, content_type, content });
        }
    }
    Ok(())
}

fn content_type(name: &str) -> Option<&'static str> {
    let (_, extension) = name.rsplit_once('.')?;
    CONTENT_TYPES.iter().find(|(known, _)| *known == extension).map(|(_, content_type)| *content_type)
}
