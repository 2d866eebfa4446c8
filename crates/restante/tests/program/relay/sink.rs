//! `smtp-sink` of Postfix: a server that discards messages, or fails in a chosen way.

use std::net::TcpStream;

use restante_testpg::ReservedPort;

use super::process::{Process, find_program};
use crate::support::durability::eventually;

/// A running `smtp-sink`.
pub(crate) struct Sink {
    _process: Process,
    port: ReservedPort,
}

impl Sink {
    /// Starts it with these options, such as `-q DATA`. Returns `None` if it is not installed.
    pub(crate) fn start(options: &[&str]) -> Option<Self> {
        Self::start_on(ReservedPort::new(), options)
    }

    /// Like [`Self::start`], on this port.
    pub(crate) fn start_on(port: ReservedPort, options: &[&str]) -> Option<Self> {
        let program = find_program("smtp-sink")?;
        // It does not run as root.
        let user: &[&str] = if rustix::process::geteuid().is_root() { &["-u", "nobody"] } else { &[] };
        let address = port.address().to_string();
        let mut process = Process::start(&program, &[user, options, &[&address, "100"]].concat());
        eventually("smtp-sink does not listen", || {
            assert!(process.is_running(), "smtp-sink has ended");
            TcpStream::connect(port.address()).is_ok()
        });
        Some(Self { _process: process, port })
    }

    /// Stops it. Then connections are refused.
    pub(crate) fn stop(self) -> ReservedPort {
        self.port
    }

    /// Returns an entry of `relay.targets`: its name is `sink`, and all recipients are allowed.
    pub(crate) fn target(&self) -> String {
        format!("sink smtp://{} starttls=never allow=*", self.port.address())
    }
}
