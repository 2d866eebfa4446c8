//! The user of the process, and the owners of files. Windows has no numbers for them.

pub use imp::{current_user, current_user_name, file_owner};

#[cfg(unix)]
mod imp {
    use std::fs::{File, Metadata};
    use std::io::Read as _;
    use std::os::unix::fs::MetadataExt as _;

    /// The list of users.
    const USERS_FILE: &str = "/etc/passwd";
    /// The maximum number of bytes of the list that are read.
    const MAX_USERS_BYTES: u64 = 1024 * 1024;

    /// Returns the number of the user that this process runs as; `None` on Windows.
    pub fn current_user() -> Option<u32> {
        Some(rustix::process::geteuid().as_raw())
    }

    /// Returns the name of the user that this process runs as, from `/etc/passwd`. Returns `None` on Windows, and if the
    /// list does not have the user, such as one of a directory service.
    pub fn current_user_name() -> Option<String> {
        let mut list = Vec::new();
        File::open(USERS_FILE).ok()?.take(MAX_USERS_BYTES).read_to_end(&mut list).ok()?;
        user_name(&String::from_utf8_lossy(&list), current_user()?)
    }

    /// Returns the name of a user in a list with lines of the form `name:password:number:…`.
    pub(super) fn user_name(list: &str, user: u32) -> Option<String> {
        list.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next().filter(|name| !name.is_empty())?;
            (fields.nth(1)?.parse() == Ok(user)).then(|| name.to_owned())
        })
    }

    /// Returns the number of the owner of a file; `None` on Windows.
    pub fn file_owner(metadata: &Metadata) -> Option<u32> {
        Some(metadata.uid())
    }
}

#[cfg(windows)]
mod imp {
    use std::fs::Metadata;

    /// Returns `None`.
    pub fn current_user() -> Option<u32> {
        None
    }

    /// Returns `None`.
    pub fn current_user_name() -> Option<String> {
        None
    }

    /// Returns `None`.
    pub fn file_owner(_: &Metadata) -> Option<u32> {
        None
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::imp::user_name;

    #[test]
    fn user_has_the_name_in_the_list() {
        let list = "root:x:0:0:root:/root:/bin/sh\n\n# comment\n+::::::\nann:x:1000:1000::/home/ann:/bin/sh\nbob:x\n";
        let table = [(0, Some("root")), (1000, Some("ann")), (1, None)];
        for (user, name) in table {
            assert_eq!(user_name(list, user).as_deref(), name, "{user}");
        }
    }
}
