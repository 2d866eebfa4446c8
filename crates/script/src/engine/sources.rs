//! The files of a script: the script itself and the files next to it that it requires. Every file is read once, so that
//! all states see the same version.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use restante_platform::open_trusted;

/// The maximum size of a file.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// The files of one script.
pub(super) struct Sources {
    /// The script itself.
    pub(super) main: Arc<Source>,
    /// Whether files are loaded only if no other user can have written them.
    pub(super) trusted_files_only: bool,
    folder: PathBuf,
    required: Mutex<HashMap<String, Arc<Source>>>,
}

/// One file.
#[derive(Debug)]
pub(super) struct Source {
    /// The path as shown in errors: the script's as the operator gave it, the others relative to it.
    pub(super) name: String,
    pub(super) text: Vec<u8>,
}

impl Sources {
    /// Reads the script itself.
    pub(super) fn read(path: &Path, trusted_files_only: bool) -> io::Result<Self> {
        let main = Arc::new(Source::read(path, trusted_files_only)?);
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Ok(Self { main, trusted_files_only, folder, required: Mutex::default() })
    }

    /// Reads a file that is not next to the script.
    pub(super) fn read_other(&self, path: &Path) -> io::Result<Vec<u8>> {
        Source::read(path, self.trusted_files_only).map(|source| source.text)
    }

    /// Finds the file that `require` refers to, if it exists next to the script. Only existing files are cached,
    /// because names may come from messages.
    pub(super) fn required(&self, name: &str) -> io::Result<Option<Arc<Source>>> {
        let Some(path_stem) = module_path(name) else {
            return Ok(None);
        };
        let mut required = self.required.lock();
        if let Some(source) = required.get(name) {
            return Ok(Some(Arc::clone(source)));
        }
        for path in [format!("{path_stem}.lua"), format!("{path_stem}/init.lua")] {
            match Source::read(&self.folder.join(path), self.trusted_files_only) {
                Ok(source) => {
                    let source = Arc::new(source);
                    required.insert(name.to_owned(), Arc::clone(&source));
                    return Ok(Some(source));
                }
                Err(error) if is_absent(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Returns the full name of a file that Lua has shortened to `...` and its end. Does not block while another thread
    /// reads a file.
    pub(super) fn full_name(&self, name: String) -> String {
        let Some(suffix) = name.strip_prefix("...") else {
            return name;
        };
        if self.main.name.ends_with(suffix) {
            return self.main.name.clone();
        }
        let Some(required) = self.required.try_lock() else {
            return name;
        };
        let full_name =
            required.values().find(|source| source.name.ends_with(suffix)).map(|source| source.name.clone());
        full_name.unwrap_or(name)
    }
}

impl Source {
    fn read(path: &Path, trusted_files_only: bool) -> io::Result<Self> {
        let file = if trusted_files_only { open_trusted(path)? } else { File::open(path)? };
        let mut text = Vec::new();
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut text)?;
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("{} is too large", path.display())));
        }
        Ok(Self { name: path.display().to_string(), text })
    }
}

/// Converts a dotted name into a path below the folder. Returns `None` if the path would be outside of it.
fn module_path(name: &str) -> Option<String> {
    let is_valid = |part: &str| !part.is_empty() && !part.contains(['/', '\\', ':', '\0']);
    name.split('.').all(is_valid).then(|| name.replace('.', "/"))
}

/// Returns whether the error means that there is no such file.
fn is_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, IsADirectory, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory | IsADirectory | InvalidFilename)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn module_names_stay_below_the_folder() {
        let table = [
            ("util", Some("util")),
            ("lib.util", Some("lib/util")),
            ("a-b c", Some("a-b c")),
            ("", None),
            (".", None),
            ("..", None),
            ("...etc.passwd", None),
            ("a..b", None),
            ("a.", None),
            ("/etc/passwd", None),
            ("lib/util", None),
            ("lib\\util", None),
            ("c:util", None),
            ("a\0b", None),
        ];
        for (name, path) in table {
            assert_eq!(module_path(name).as_deref(), path, "{name:?}");
        }
    }
}
