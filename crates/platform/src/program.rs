//! The name of the program.

use std::ffi::OsString;
use std::path::Path;

/// Returns the name that the program was started by, without its directory. On Windows also without `.exe`, and in lower
/// case.
pub fn program_name(args: &[OsString]) -> OsString {
    let path = args.first().map(Path::new);
    if cfg!(windows) {
        path.and_then(Path::file_stem).unwrap_or_default().to_ascii_lowercase()
    } else {
        path.and_then(Path::file_name).unwrap_or_default().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_is_not_part_of_the_name() {
        let separator = std::path::MAIN_SEPARATOR;
        let path = format!("bin{separator}mailpit{}", std::env::consts::EXE_SUFFIX);
        assert_eq!(program_name(&[path.into(), "sendmail".into()]), "mailpit");
        assert_eq!(program_name(&[]), "");
    }
}
