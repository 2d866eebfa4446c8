//! Checks of the script: whether a configured one exists, and whether one is used that no setting names.

use std::io;
use std::path::Path;

use super::Checker;
use crate::problem::{COMPAT_PREFIX, Origin};
use crate::setting::Setting;
use crate::sources::Sources;
use crate::table::row;
use crate::types::Scripting;
use crate::values::split_list;

const LUA_PATH: &Setting = row("lua.path");

/// The script in the configuration of the container image. It is optional, like the greeting file.
const IMAGE_SCRIPT: &str = "/config/inbucket.lua";

impl Checker<'_> {
    /// Checks that one of the configured scripts exists. The default files and the file of the container image are optional,
    /// and so is the file in the variable of Inbucket, which starts without a script if the file does not exist.
    pub(super) fn check_script(&mut self, scripting: &Scripting) {
        let Some(given) = self.sources.effective(LUA_PATH) else { return };
        let is_optional = [LUA_PATH.default, IMAGE_SCRIPT].contains(&given.value.as_str())
            || matches!(&given.origin, Origin::Variable(name) if name.starts_with(COMPAT_PREFIX));
        if is_optional || scripting.paths.is_empty() || scripting.paths.iter().any(|path| exists(path)) {
            return;
        }
        self.add(
            LUA_PATH,
            if scripting.paths.len() == 1 { "there is no such file" } else { "none of these files exists" },
        );
    }
}

/// Scripts that no setting names are loaded only if no other user can have written them: the working directory may be one
/// that all users can write.
pub(super) fn complete(scripting: &mut Scripting, sources: &Sources) {
    scripting.trusted_files_only = sources.effective(LUA_PATH).is_none();
}

/// Warns about a script in the working directory that is not used because the server replaces another program.
pub(super) fn unused_script_warning(sources: &Sources) -> Option<String> {
    let Origin::EmulatedProgram(program) = sources.origin(LUA_PATH) else { return None };
    let file = split_list(LUA_PATH.default).into_iter().find(|file| Path::new(file).is_file())?;
    Some(format!(
        "{file} is not loaded, because the server runs as {program}: to load it, set RESTANTE_LUA_PATH={file}"
    ))
}

/// Returns true if the path is a file, or cannot be accessed: the server reports that error when it loads the script.
fn exists(path: &Path) -> bool {
    match std::fs::metadata(path) {
        Ok(metadata) => !metadata.is_dir(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}
