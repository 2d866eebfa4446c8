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

/// The priority of a thread, below the normal one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadPriority {
    /// For work that a request may wait for. Beside another thread, the thread gets a quarter of the time of a processor.
    Low,
    /// For work that no request waits for. Beside another thread, the thread gets 1.4 % of the time of a processor.
    Lowest,
}

/// Lowers the priority of the current thread, unless it is lower already. This cannot be undone. Only Linux can do this; elsewhere the
/// priority stays as it is.
pub fn lower_thread_priority(priority: ThreadPriority) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        let nice = match priority {
            ThreadPriority::Low => 5,
            ThreadPriority::Lowest => 19,
        };
        let thread = Some(rustix::thread::gettid());
        let nice = nice.max(rustix::process::getpriority_process(thread)?);
        rustix::process::setpriority_process(thread, nice)?;
    }
    #[cfg(not(target_os = "linux"))]
    let _ = priority;
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
        use ThreadPriority::{Low, Lowest};

        let own = || rustix::process::getpriority_process(Some(rustix::thread::gettid())).unwrap();
        let before = own();
        for (priorities, nice) in [(&[Low][..], 5), (&[Lowest], 19), (&[Lowest, Low], 19)] {
            let lower = move || {
                for priority in priorities {
                    lower_thread_priority(*priority).unwrap();
                }
                own()
            };
            assert_eq!(thread::spawn(lower).join().unwrap(), nice.max(before), "{priorities:?}");
        }
        assert_eq!(own(), before);
    }
}
