//! Limits of the process and priorities of its threads.

use std::io;

/// The highest limit on open files that the system accepts even if the maximum is higher. macOS has one (`OPEN_MAX`, see
/// setrlimit(2)).
#[cfg(unix)]
const MAX_ACCEPTED_FILES: Option<u64> = if cfg!(target_os = "macos") { Some(10_240) } else { None };

/// Raises the limit on open files to the maximum, or to what the system accepts. Never lowers it. Windows has no such limit.
pub fn raise_file_limit() -> io::Result<()> {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        let current = raised_limit(limit.current, limit.maximum, MAX_ACCEPTED_FILES);
        if current != limit.current {
            setrlimit(Resource::Nofile, Rlimit { current, ..limit })?;
        }
    }
    Ok(())
}

/// Returns the lower one of the maximum and the highest accepted limit, but not less than the current limit. `None` is
/// unlimited.
#[cfg(unix)]
fn raised_limit(current: Option<u64>, maximum: Option<u64>, accepted: Option<u64>) -> Option<u64> {
    let raised = match (maximum, accepted) {
        (Some(maximum), Some(accepted)) => Some(maximum.min(accepted)),
        (one, other) => one.or(other),
    };
    match (current, raised) {
        (Some(current), Some(raised)) => Some(current.max(raised)),
        _ => None,
    }
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

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn limit_is_raised_and_never_lowered() {
        // The limits of Linux: current, maximum, result.
        let table = [
            (Some(1024), Some(524_288), Some(524_288)),
            (Some(1024), Some(1024), Some(1024)),
            (Some(1024), None, None),
            (None, None, None),
        ];
        for (current, maximum, expected) in table {
            assert_eq!(raised_limit(current, maximum, None), expected, "{current:?} of {maximum:?}");
        }
        // Those of macOS.
        let table = [
            (Some(256), None, Some(10_240)),
            (Some(256), Some(4096), Some(4096)),
            (Some(256), Some(65_536), Some(10_240)),
            (Some(65_536), None, Some(65_536)),
            (Some(65_536), Some(100_000), Some(65_536)),
            (None, None, None),
        ];
        for (current, maximum, expected) in table {
            assert_eq!(raised_limit(current, maximum, Some(10_240)), expected, "{current:?} of {maximum:?}");
        }
    }

    #[test]
    fn lowers_priority_of_one_thread_only() {
        let own = || rustix::process::getpriority_process(Some(rustix::thread::gettid())).unwrap();
        let before = own();
        let lowered = thread::spawn(move || lower_thread_priority().map(|()| own())).join().unwrap();
        assert_eq!(lowered.unwrap(), 19);
        assert_eq!(own(), before);
    }
}
