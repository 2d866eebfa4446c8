//! The name of the machine.

/// Returns the name of the machine as the system reports it; empty if unknown.
#[cfg(unix)]
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Returns the name of the machine as the system reports it; empty if unknown.
#[cfg(windows)]
pub fn host_name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}
