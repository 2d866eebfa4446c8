//! Where PostgreSQL is on this machine, and as whom it can be run.

use std::cmp::Reverse;
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

/// The variable that does not put up with a PostgreSQL that is missing.
const REQUIRE_VARIABLE: &str = "REQUIRE_POSTGRES";
/// Where packages put it outside of PATH, often several versions beside each other: a folder, and how the names in it begin
/// that have the programs in their `bin`.
const INSTALL_DIRS: [(&str, &str); 5] = [
    ("/usr/lib/postgresql", ""),
    ("/usr/local", "pgsql"),
    ("/usr", "pgsql-"),
    ("/opt/homebrew/opt", "postgresql"),
    ("/usr/local/opt", "postgresql"),
];
/// As whom root runs it, the first of them that exists.
const SERVER_USERS: [&str; 2] = ["postgres", "nobody"];

/// The programs of one version.
pub(crate) struct Installation {
    bin: PathBuf,
}

impl Installation {
    /// The first that is in PATH, or the newest in the usual places. Says so when there is none, and panics when there has
    /// to be one.
    pub(crate) fn find() -> Option<Self> {
        let path = env::var_os("PATH").unwrap_or_default();
        let bin = env::split_paths(&path)
            .chain(INSTALL_DIRS.iter().flat_map(|(folder, start)| version_bins(Path::new(folder), start)))
            .find_map(|bin| resolve_bin(&bin));
        if bin.is_none() {
            skip("PostgreSQL is not installed (initdb is neither in PATH nor in the usual places)");
        }
        bin.map(|bin| Self { bin })
    }

    /// One of its programs, which need not be there.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }
}

/// Reports that the current test is skipped, or fails if PostgreSQL is required.
pub(crate) fn skip(reason: &str) {
    restante_testdir::skip(reason, REQUIRE_VARIABLE);
}

/// Where the programs are that belong to the `initdb` in a folder, which may be a link to where they all are.
fn resolve_bin(bin: &Path) -> Option<PathBuf> {
    let bin = fs::canonicalize(bin.join("initdb")).ok()?.parent()?.to_owned();
    bin.join("postgres").is_file().then_some(bin)
}

/// The `bin` of everything in a folder that begins like this, the highest version first.
fn version_bins(folder: &Path, start: &str) -> Vec<PathBuf> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut names: Vec<String> =
        names.filter_map(|name| name.into_string().ok()).filter(|name| name.starts_with(start)).collect();
    names.sort_by_key(|name| Reverse(version_numbers(name)));
    names.into_iter().map(|name| folder.join(name).join("bin")).collect()
}

/// All numbers in a name: `pgsql-9.6` is 9, 6.
fn version_numbers(name: &str) -> Vec<u32> {
    name.split(|character: char| !character.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

/// As whom PostgreSQL runs: it refuses to be root.
pub(crate) enum User {
    /// Who runs the test.
    Same,
    /// Somebody with fewer rights.
    Other { uid: u32, gid: u32 },
}

impl User {
    /// Who can own a server, and from now on owns this directory, which was made by the user of this process.
    pub(crate) fn for_server_in(directory: &Path) -> Self {
        if fs::metadata(directory).expect("the directory is there").uid() != 0 {
            return Self::Same;
        }
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let Some((uid, gid)) = SERVER_USERS.iter().find_map(|name| user_ids(&users, name)) else {
            panic!("PostgreSQL refuses to run as root, and /etc/passwd knows none of {SERVER_USERS:?}");
        };
        chown(directory, Some(uid), Some(gid)).expect("root may give a directory away");
        Self::Other { uid, gid }
    }

    /// Gives a file to this user, and to nobody else: PostgreSQL does not take a key that others can read.
    pub(crate) fn take_ownership(&self, file: &Path) {
        fs::set_permissions(file, Permissions::from_mode(0o600)).expect("it is our file");
        if let Self::Other { uid, gid } = *self {
            chown(file, Some(uid), Some(gid)).expect("root may give a file away");
        }
    }

    /// A command that runs as this user, in this directory, quietly, and in a group of its own, so that Ctrl-C is not for
    /// it: who started it decides when it ends.
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

/// The ids of a user and its group, in the text of `/etc/passwd`.
fn user_ids(users: &str, name: &str) -> Option<(u32, u32)> {
    let user = users.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|user| user[0] == name)?;
    Some((user.get(2)?.parse().ok()?, user.get(3)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use restante_testdir::TestDir;

    #[test]
    fn the_highest_version_comes_first() {
        let folder = TestDir::new();
        for name in ["pgsql-9.6", "pgsql-10", "pgsql-16", "other-17", "pgsql"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let bins = ["pgsql-16/bin", "pgsql-10/bin", "pgsql-9.6/bin", "pgsql/bin"].map(|bin| folder.path().join(bin));
        assert_eq!(version_bins(folder.path(), "pgsql"), bins);
        assert!(version_bins(&folder.path().join("missing"), "").is_empty());
    }

    #[test]
    fn users_have_two_ids() {
        let users =
            "root:x:0:0:root:/root:/bin/sh\n\nbroken:x\npostgres2:x:7:8::/:\npostgres:x:101:104:,,,:/var:/bin/sh\n";
        assert_eq!(user_ids(users, "postgres"), Some((101, 104)));
        assert_eq!(user_ids(users, "broken"), None);
        assert_eq!(user_ids(users, "nobody"), None);
    }
}
