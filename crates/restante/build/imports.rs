//! Whether every module that another one imports is there. A browser would find out late, and show an empty page.

use crate::files::File;

/// Follows the imports of all modules, by their text.
pub(crate) fn check(files: &[File]) -> Result<(), String> {
    for file in files {
        for specifier in file.module().into_iter().flat_map(specifiers) {
            let Some(path) = resolve(&file.path, specifier) else {
                return Err(format!("ui/{} imports '{specifier}', which is no path that starts with a dot", file.path));
            };
            if !files.iter().any(|other| other.path == path) {
                return Err(format!("ui/{} imports '{specifier}', but there is no ui/{path}", file.path));
            }
        }
    }
    Ok(())
}

/// What a module imports: the text in quotes behind `from`, `import` and `import(`. No parser is needed for the way in
/// which such lines are written; words in comments are none.
fn specifiers(module: &str) -> impl Iterator<Item = &str> {
    let lines = module.lines().map(str::trim_start);
    let lines = lines.filter(|line| !["//", "/*", "*"].iter().any(|comment| line.starts_with(comment)));
    lines.flat_map(|line| {
        let is_statement = ["import ", "export ", "}"].iter().any(|start| line.starts_with(start));
        let from = line.rsplit_once("from ").filter(|_| is_statement).map(|(_, rest)| rest);
        let bare = line.strip_prefix("import ");
        let called = line.split("import(").skip(1);
        from.into_iter().chain(bare).chain(called).filter_map(quoted)
    })
}

fn quoted(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|first| "'\"`".contains(*first))?;
    text[1..].split_once(quote).map(|(inside, _)| inside)
}

/// The path that a module means by a relative one.
fn resolve(module: &str, specifier: &str) -> Option<String> {
    if !specifier.starts_with("./") && !specifier.starts_with("../") {
        return None;
    }
    let mut path: Vec<&str> = module.split('/').collect();
    path.pop();
    for step in specifier.split('/') {
        match step {
            "." => {}
            ".." => {
                path.pop()?;
            }
            name => path.push(name),
        }
    }
    Some(path.join("/"))
}
