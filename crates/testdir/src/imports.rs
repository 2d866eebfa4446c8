//! The imports between the modules of a crate, for tests of its structure.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Returns all imports of a crate in this folder, as the path of the importing module and the path that it names after
/// `crate::`, in imports and in code. A list in braces directly after `crate::` is not supported.
pub fn module_imports(src: &Path) -> Vec<(String, String)> {
    let mut files = Vec::new();
    find_files(src, &mut files);
    let mut imports = Vec::new();
    for file in files {
        let relative = file.strip_prefix(src).expect("a path below src").with_extension("");
        let module = relative.to_str().expect("UTF-8").replace('/', "::");
        let text = fs::read_to_string(&file).expect("a source file");
        imports.extend(imported_paths(&text).map(|imported| (module.clone(), imported.to_owned())));
    }
    imports
}

/// Returns the modules of a cycle, each of which imports the next one, and the last one the first. A module is a file or folder
/// of the crate with everything in it.
pub fn find_import_cycle(imports: &[(String, String)]) -> Option<Vec<String>> {
    let top_level = |path: &str| path.split("::").next().unwrap_or_default().to_owned();
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (module, imported) in imports {
        let (module, imported) = (top_level(module), top_level(imported));
        if module != imported {
            graph.entry(module).or_default().insert(imported);
        }
    }
    // Modules that import nothing are in no cycle, and neither are those that import only them.
    while let Some(leaf) = graph.iter().find(|(_, imported)| !imported.iter().any(|name| graph.contains_key(name))) {
        let leaf = leaf.0.clone();
        graph.remove(&leaf);
    }
    // Every remaining module imports another one, so following the imports ends in a cycle.
    let mut path = vec![graph.keys().next()?.clone()];
    loop {
        let next = graph[path.last()?].iter().find(|name| graph.contains_key(*name))?;
        if let Some(start) = path.iter().position(|name| name == next) {
            return Some(path.split_off(start));
        }
        path.push(next.clone());
    }
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

fn imported_paths(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("crate::").filter(|(at, _)| !text[..*at].ends_with(['_', '$'])).map(|(at, found)| {
        let rest = &text[at + found.len()..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':').unwrap_or(rest.len());
        rest[..end].trim_end_matches(':')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_cycles_between_modules() {
        let cycle = |imports: &[(&str, &str)]| {
            let imports: Vec<_> = imports.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
            find_import_cycle(&imports).map(|cycle| cycle.join(" "))
        };
        assert_eq!(cycle(&[]), None);
        assert_eq!(cycle(&[("main", "a"), ("a::x", "a::y"), ("a::y", "a::x"), ("a", "b::z"), ("main", "b")]), None);
        assert_eq!(
            cycle(&[("main", "a"), ("a::x", "b"), ("b", "c::z"), ("c", "a"), ("c", "d")]).as_deref(),
            Some("a b c")
        );
    }

    #[test]
    fn finds_imports_in_code() {
        let text = "use crate::a::{b, c};\nuse restante_crate::no;\nfn f() { crate::d::e(); }";
        assert_eq!(imported_paths(text).collect::<Vec<_>>(), ["a", "d::e"]);
    }
}
