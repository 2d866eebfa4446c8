//! Reads the files of the web interface from `ui/`. Packing them is in `pack`, `page` and `table`, the check of the bundle
//! in `bundle`.

use std::path::{Path, PathBuf};

/// The template of the page.
pub(crate) const TEMPLATE: &str = "index.html";
/// Style sheets directly in this folder become part of the page.
const STYLES: &str = "css/";
/// The folder of the modules. The page loads them as one bundle, so they are not served.
pub(crate) const MODULES: &str = "js/";
/// The folder with the tools that npm installs.
const TOOLS: &str = "node_modules";
/// The icon of the server on pages that do not name another one.
pub(crate) const ICON: &str = "icon.svg";

/// The types of files that are served. Other files in the folder are only for development.
const CONTENT_TYPES: [(&str, &str); 8] = [
    ("css", "text/css; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("map", "application/json"),
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

/// Returns the files and folders at the top level, except for those of other tools. Cargo watches folders recursively.
pub(crate) fn top_level(folder: &Path) -> Result<Vec<PathBuf>, String> {
    if !folder.is_dir() {
        return Err(
            "the folder ui/ of the web interface is missing: build restante from its complete source tree, in which \
                    ui/ is next to crates/"
                .to_owned(),
        );
    }
    let to_error = |error| format!("{}: {error}", folder.display());
    let entries: Result<Vec<_>, _> = std::fs::read_dir(folder).map_err(to_error)?.collect();
    let names = entries.map_err(to_error)?.into_iter().map(|entry| entry.file_name());
    Ok(names.filter(|name| name != TOOLS).map(|name| folder.join(name)).collect())
}

/// Reads the folder.
pub(crate) fn read(folder: &Path) -> Result<WebInterface, String> {
    let files = served_files(folder)?;

    let is_style = |file: &File| {
        let name = file.path.strip_prefix(STYLES).and_then(|name| name.strip_suffix(".css"));
        name.is_some_and(|name| !name.contains('/'))
    };
    let assets: Vec<File> = files.iter().filter(|file| !is_style(file)).cloned().collect();
    let styles = files.into_iter().filter(is_style);
    if !assets.iter().any(|file| file.path == ICON) {
        return Err(format!("ui/{ICON} is missing"));
    }
    let template = content(folder, TEMPLATE)?;
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

/// Returns the files that are served, in the order of their paths.
fn served_files(folder: &Path) -> Result<Vec<File>, String> {
    let mut files = Vec::new();
    for path in paths(folder, "")? {
        let Some(content_type) = content_type(&path) else { continue };
        if path.starts_with(MODULES) || path.starts_with(TOOLS) {
            continue;
        }
        if !path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte)) {
            return Err(format!("ui/{path}: a file name may only contain letters, digits and -_."));
        }
        files.push(File { content: content(folder, &path)?, path, content_type });
    }
    Ok(files)
}

/// Returns the paths of all files whose path starts with `prefix`, a folder or nothing, in their order. Hidden files are
/// skipped.
pub(crate) fn paths(folder: &Path, prefix: &str) -> Result<Vec<String>, String> {
    let mut paths = Vec::new();
    walk(&folder.join(prefix), prefix, &mut paths)?;
    paths.sort_unstable();
    Ok(paths)
}

/// Returns the content of a file.
pub(crate) fn content(folder: &Path, path: &str) -> Result<Vec<u8>, String> {
    std::fs::read(folder.join(path)).map_err(|error| format!("ui/{path}: {error}"))
}

fn walk(folder: &Path, prefix: &str, paths: &mut Vec<String>) -> Result<(), String> {
    let to_error = |error| format!("{}: {error}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(to_error)? {
        let entry = entry.map_err(to_error)?;
        let name = entry.file_name();
        let name = name.to_str().ok_or_else(|| format!("the name of {} is not UTF-8", entry.path().display()))?;
        if name.starts_with('.') {
            continue;
        }
        if entry.path().is_dir() {
            walk(&entry.path(), &format!("{prefix}{name}/"), paths)?;
        } else {
            paths.push(format!("{prefix}{name}"));
        }
    }
    Ok(())
}

fn content_type(name: &str) -> Option<&'static str> {
    let (_, extension) = name.rsplit_once('.')?;
    CONTENT_TYPES.iter().find(|(known, _)| *known == extension).map(|(_, content_type)| *content_type)
}
