//! Replaces the user and token files atomically: one command at a time, and readers see either the old or the new
//! content.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _};

use ring::rand::{SecureRandom as _, SystemRandom};

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::LockedFile;
#[cfg(windows)]
pub(crate) use windows::LockedFile;

/// The maximum size of a file that is read, in bytes. The server has the same limit.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
/// The number of random bytes in the name of a temporary file.
const RANDOM_BYTES: usize = 8;

/// Returns the name of the lock file. It is a separate file, which is not deleted, because the file itself is replaced.
fn lock_name(name: &OsStr) -> OsString {
    with_suffix(name, ".lock")
}

/// Returns a name for a temporary file. It is unpredictable, so that no other file can be placed there beforehand.
fn temporary_name(name: &OsStr) -> io::Result<OsString> {
    let mut random = [0; RANDOM_BYTES];
    SystemRandom::new().fill(&mut random).map_err(|_| io::Error::other("cannot get random bytes"))?;
    Ok(with_suffix(name, &format!(".{:016x}.new", u64::from_ne_bytes(random))))
}

fn with_suffix(name: &OsStr, suffix: &str) -> OsString {
    let mut name = name.to_owned();
    name.push(suffix);
    name
}

/// Reads a whole file, up to the limit.
fn read_limited(file: impl io::Read) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut content)?;
    if content.len() as u64 > MAX_FILE_BYTES {
        return Err(io::Error::other(format!("is larger than {MAX_FILE_BYTES} bytes")));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use restante_testdir::TestDir;

    use super::*;

    #[test]
    fn replaces_files_and_leaves_no_temporary_ones() {
        let dir = TestDir::new();
        let path = dir.path().join("file");
        for (before, after) in [("", "one"), ("one", "two")] {
            let locked = LockedFile::lock(&path).unwrap();
            let current = locked.read().unwrap();
            assert_eq!(current.content, before.as_bytes());
            locked.write(&current, after.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), after);
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "the file and its lock");
        fs::write(&path, vec![b'x'; 4 * 1024 * 1024 + 1]).unwrap();
        let error = LockedFile::lock(&path).unwrap().read().err().unwrap();
        assert_eq!(error.to_string(), "is larger than 4194304 bytes");
    }
}
