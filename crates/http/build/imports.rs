//! Checks that every module that another module imports exists. In a browser a missing module would show up late, as an
//! empty page.

use super::files::File;

/// Checks the imports of all modules, by their text.
pub(crate) fn check(files: &[File]) -> Result<(), String> {
    for file in files {
        for specifier in file.module_text().into_iter().flat_map(specifiers) {
            let Some(path) = resolve(&file.path, specifier) else {
                return Err(format!("ui/{} imports '{specifier}', which does not start with ./ or ../", file.path));
            };
            if !files.iter().any(|other| other.path == path) {
                return Err(format!("ui/{} imports '{specifier}', but there is no ui/{path}", file.path));
            }
        }
    }
    Ok(())
}

/// Returns the imports of a module: the quoted text after `import`, `import(` and the `from` of an `import` or
/// `export`, with any white space between. This needs no parser: the words in comments and in the middle of other code
/// are skipped.
fn specifiers(module: &str) -> impl Iterator<Item = &str> {
    ["import", "export"].into_iter().flat_map(move |word| {
        let found = module.match_indices(word);
        found.filter_map(move |(at, _)| specifier(word, &module[..at], &module[at + word.len()..]))
    })
}

/// Returns the import at an occurrence of `word` between these texts.
fn specifier<'a>(word: &str, before: &str, after: &'a str) -> Option<&'a str> {
    let line = before.rsplit('\n').next().unwrap_or_default().trim();
    if ["//", "/*", "*"].iter().any(|comment| line.starts_with(comment)) {
        return None;
    }
    if word == "import"
        && let Some(argument) = after.trim_start().strip_prefix('(')
    {
        return quoted(argument.trim_start());
    }
    let is_statement = line.is_empty() || line.ends_with([';', '}']);
    let in_clause = |c: char| c.is_alphanumeric() || c.is_whitespace() || "_$*,{}".contains(c);
    let (clause, rest) = after.split_at(after.find(|c| !in_clause(c)).unwrap_or(after.len()));
    let clause = clause.trim_end();
    let is_import = clause.ends_with("from") || (clause.is_empty() && word == "import");
    quoted(rest).filter(|_| is_statement && is_import)
}

fn quoted(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|first| "'\"`".contains(*first))?;
    text[1..].split_once(quote).map(|(inside, _)| inside)
}

/// Resolves a relative path in a module.
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
