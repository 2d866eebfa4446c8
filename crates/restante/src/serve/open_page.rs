//! Opens the web interface in the default browser.

use std::process::{Command, Stdio};

use restante_platform::ProcessGroup;

/// The program that opens a URL, and its arguments before the URL.
const PROGRAM: &str = if cfg!(windows) {
    "rundll32"
} else if cfg!(target_os = "macos") {
    "open"
} else {
    "xdg-open"
};
const ARGUMENTS: &[&str] = if cfg!(windows) { &["url.dll,FileProtocolHandler"] } else { &[] };

/// Opens the page. An error is logged: the server works without a browser.
pub(super) fn open(page: Option<&str>) {
    let Some(page) = page else {
        tracing::warn!("--open has no effect: there is no TCP listener for the web interface");
        return;
    };
    let mut command = Command::new(PROGRAM);
    command.args(ARGUMENTS).arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // The browser can be a child of the program. In its own process group, it does not get the Ctrl-C of the terminal.
    let mut child = match ProcessGroup::start(&mut command) {
        Ok((child, _)) => child,
        Err(error) => {
            tracing::warn!("cannot open the page, {PROGRAM} cannot be started: {error}; open {page} in a browser");
            return;
        }
    };
    let page = page.to_owned();
    // Some browsers run until they are closed.
    std::thread::spawn(move || match child.wait() {
        Ok(status) if status.success() => {}
        Ok(status) => tracing::warn!("cannot open the page, {PROGRAM} ended with {status}; open {page} in a browser"),
        Err(error) => tracing::warn!("cannot open the page with {PROGRAM}: {error}; open {page} in a browser"),
    });
}
