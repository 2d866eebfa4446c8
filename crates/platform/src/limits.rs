//! Limits of the process and priorities of its threads.

use std::io;

/// The highest limit on open files that macOS accepts, even if the maximum is "unlimited" (`OPEN_MAX`, see setrlimit(2)).
#[cfg(unix)]
const MACOS_MAX_FILES: u64 = 10_240;

/// Raises the limit on open files to the maximum. Windows has no such limit.
pub fn raise_file_limit() -> io::Result<()> {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        let current = if cfg!(target_os = "macos") {
            limit.maximum.map_or(Some(MACOS_MAX_FILES), |maximum| Some(maximum.min(MACOS_MAX_FILES)))
        } else {
            limit.maximum
        };
        setrlimit(Resource::Nofile, Rlimit { current, ..limit })?;
    }
    Ok(())
}

/// Gives the current thread the lowest priority. This cannot be undone. Only Linux can do this; elsewhere the priority
/// stays as it is.
pub fn lower_thread_priority() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        const LOWEST: i32 = 19;
        rustix::process::setpriority_process(Some(rustix::thread::gettid()), LOWEST)?;
    }
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn lowers_priority_of_one_thread_only() {
        let own = || rustix::process::getpriority_process(Some(rustix::thread::gettid())).unwrap();
        let before = own();
        let lowered = thread::spawn(move || lower_thread_priority().map(|()| own())).join().unwrap();
        assert_eq!(lowered.unwrap(), 19);
        assert_eq!(own(), before);
    }
}
