//! Checks that each folder of `src` is a layer that imports only the layers before it. The handlers are one layer; they
//! do not import each other.

use std::fs;
use std::path::{Path, PathBuf};

/// The layers from the lowest to the highest, each with its modules.
const LAYERS: &[&[&str]] = &[
    &["paths"],
    &["response"],
    &["state"],
    &["extractors"],
    &["middleware"],
    &["api::v1", "api::v2", "dialects::mailpit", "live", "web", "operations"],
    &["openapi"],
    &["router"],
];

#[test]
fn modules_import_only_lower_layers() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    find_files(&src, &mut files);
    let mut checked = 0;
    let mut wrong = Vec::new();
    for file in files {
        let relative = file.strip_prefix(&src).expect("a path below src").with_extension("");
        let path = relative.to_str().expect("UTF-8").replace('/', "::");
        let Some((layer, module)) = layer_of(&path) else { continue };
        let text = fs::read_to_string(&file).expect("a source file");
        for imported in imports(&text) {
            let (other_layer, other) = layer_of(imported).unwrap_or_else(|| panic!("{path} imports {imported}"));
            checked += 1;
            if other_layer > layer || (other_layer == layer && other != module) {
                wrong.push(format!("{path} imports {imported}"));
            }
        }
    }
    assert!(checked > 100, "only {checked} imports were found");
    assert!(wrong.is_empty(), "imports against the layers:\n{}", wrong.join("\n"));
}

fn find_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            find_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Returns the number of a path's layer and its module in it, or `None` for the crate root and its tests.
fn layer_of(path: &str) -> Option<(usize, &'static str)> {
    let is_below =
        |module: &str| path.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
    LAYERS
        .iter()
        .enumerate()
        .find_map(|(layer, modules)| modules.iter().find(|module| is_below(module)).map(|module| (layer, *module)))
}

/// Returns the paths that a file names after `crate::`, in imports and in code. A list in braces directly after
/// `crate::` is not supported.
fn imports(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("crate::").filter(|(at, _)| !text[..*at].ends_with(['_', '$'])).map(|(at, found)| {
        let rest = &text[at + found.len()..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':').unwrap_or(rest.len());
        rest[..end].trim_end_matches(':')
    })
}
