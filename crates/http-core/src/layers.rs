//! Checks that each folder of `src` is a layer that imports only the layers before it.

use std::path::Path;

use restante_testdir::module_imports;

/// The layers from the lowest to the highest, each with its modules.
const LAYERS: &[&[&str]] = &[
    &["paths"],
    &["response"],
    &["messages", "render", "uploads"],
    &["parsed_mail_cache"],
    &["server"],
    &["extractors"],
    &["tag_changes"],
    &["credentials"],
    &["subscriber"],
    &["api"],
];

#[test]
fn modules_import_only_lower_layers() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut checked = 0;
    let mut wrong = Vec::new();
    for (path, imported) in module_imports(&src) {
        let Some((layer, module)) = layer_of(&path) else { continue };
        let (other_layer, other) = layer_of(&imported).unwrap_or_else(|| panic!("{path} imports {imported}"));
        checked += 1;
        if other_layer > layer || (other_layer == layer && other != module) {
            wrong.push(format!("{path} imports {imported}"));
        }
    }
    assert!(checked > 50, "only {checked} imports were found");
    assert!(wrong.is_empty(), "imports against the layers:\n{}", wrong.join("\n"));
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
