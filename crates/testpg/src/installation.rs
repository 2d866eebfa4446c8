//! The installation of PostgreSQL on this machine, and the user that can run it.

use std::cmp::Reverse;
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

/// The environment variable that makes tests fail if PostgreSQL is missing.
const REQUIRE_VARIABLE: &str = "REQUIRE_POSTGRES";
/// The directories of packages that are not in PATH, often with several versions: a directory, and the prefix of the
/// names in it that have a `bin` with the programs.
const INSTALL_DIRS: [(&str, &str); 5] = [
    ("/usr/lib/postgresql", ""),
    ("/usr/local", "pgsql"),
    ("/usr", "pgsql-"),
    ("/opt/homebrew/opt", "postgresql"),
    ("/usr/local/opt", "postgresql"),
];
/// The users that root can run it as. The first one that exists is used.
const SERVER_USERS: [&str; 2] = ["postgres", "nobody"];

/// The programs of one version.
pub(crate) struct Installation {
    bin: PathBuf,
}

impl Installation {
    /// Finds the first installation in PATH, or the newest in the usual directories. If there is none, reports that the
    /// test is skipped, or panics if PostgreSQL is required.
    pub(crate) fn find() -> Option<Self> {
        let path = env::var_os("PATH").unwrap_or_default();
        let bin = env::split_paths(&path)
            .chain(INSTALL_DIRS.iter().flat_map(|(dir, prefix)| version_bins(Path::new(dir), prefix)))
            .find_map(|bin| resolve_bin(&bin));
        if bin.is_none() {
            skip("PostgreSQL is not installed (initdb is neither in PATH nor in the usual directories)");
        }
        bin.map(|bin| Self { bin })
    }

    /// Returns the path of a program, which need not exist.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }
}

/// Reports that the current test is skipped, or fails if PostgreSQL is required.
pub(crate) fn skip(reason: &str) {
    restante_testdir::skip(reason, REQUIRE_VARIABLE);
}

/// Returns the directory of the programs that belong to the `initdb` in `bin`, which may be a link.
fn resolve_bin(bin: &Path) -> Option<PathBuf> {
    let bin = fs::canonicalize(bin.join("initdb")).ok()?.parent()?.to_owned();
    bin.join("postgres").is_file().then_some(bin)
}

/// Returns the `bin` of every entry of a directory whose name starts with `prefix`, highest version first.
fn version_bins(dir: &Path, prefix: &str) -> Vec<PathBuf> {
    let names = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut names: Vec<String> =
        names.filter_map(|name| name.into_string().ok()).filter(|name| name.starts_with(prefix)).collect();
    names.sort_by_key(|name| Reverse(version_numbers(name)));
    names.into_iter().map(|name| dir.join(name).join("bin")).collect()
}

/// Returns all numbers in a name: `pgsql-9.6` is 9, 6.
fn version_numbers(name: &str) -> Vec<u32> {
    name.split(|character: char| !character.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

/// The user that runs PostgreSQL, which refuses to run as root.
pub(crate) enum User {
    /// The user that runs the test.
    Same,
    /// A user with fewer permissions.
    Other { uid: u32, gid: u32 },
}

impl User {
    /// Returns a user that can run a server, and makes it the owner of this directory, which the user of this process
    /// has created.
    pub(crate) fn for_server_in(directory: &Path) -> Self {
        if fs::metadata(directory).expect("the directory exists").uid() != 0 {
            return Self::Same;
        }
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let Some((uid, gid)) = SERVER_USERS.iter().find_map(|name| user_ids(&users, name)) else {
            panic!("PostgreSQL refuses to run as root, and /etc/passwd contains none of {SERVER_USERS:?}");
        };
        chown(directory, Some(uid), Some(gid)).expect("root can change the owner of a directory");
        Self::Other { uid, gid }
    }

    /// Makes this user the owner of a file, which no other user can read then: PostgreSQL refuses a key that others can
    /// read.
    pub(crate) fn take_ownership(&self, file: &Path) {
        fs::set_permissions(file, Permissions::from_mode(0o600)).expect("this process owns the file");
        if let Self::Other { uid, gid } = *self {
            chown(file, Some(uid), Some(gid)).expect("root can change the owner of a file");
        }
    }

    /// Returns a command that runs as this user, in this directory, without output, and in its own process group.
    /// So Ctrl-C does not end it: the test decides when it ends.
    pub(crate) fn command(&self, program: &Path, directory: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(directory).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Self::Other { uid, gid } = *self {
            command.uid(uid).gid(gid);
        }
        command
    }
}

/// Returns the ids of a user and its group, from the text of `/etc/passwd`.
fn user_ids(users: &str, name: &str) -> Option<(u32, u32)> {
    let user = users.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|user| user[0] == name)?;
    Some((user.get(2)?.parse().ok()?, user.get(3)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use restante_testdir::TestDir;

    #[test]
    fn highest_version_comes_first() {
        let dir = TestDir::new();
        for name in ["pgsql-9.6", "pgsql-10", "pgsql-16", "other-17", "pgsql"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let bins = ["pgsql-16/bin", "pgsql-10/bin", "pgsql-9.6/bin", "pgsql/bin"].map(|bin| dir.path().join(bin));
        assert_eq!(version_bins(dir.path(), "pgsql"), bins);
        assert!(version_bins(&dir.path().join("missing"), "").is_empty());
    }

    #[test]
    fn parses_user_and_group_ids() {
        let users =
            "root:x:0:0:root:/root:/bin/sh\n\nbroken:x\npostgres2:x:7:8::/:\npostgres:x:101:104:,,,:/var:/bin/sh\n";
        assert_eq!(user_ids(users, "postgres"), Some((101, 104)));
        assert_eq!(user_ids(users, "broken"), None);
        assert_eq!(user_ids(users, "nobody"), None);
    }
}
