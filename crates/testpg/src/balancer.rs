//! A load balancer: one port for several equal servers.

use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::forward::{Forwarder, connect};

/// Distributes connections to servers in turn, and skips those that refuse.
pub struct Balancer(Forwarder);

impl Balancer {
    /// Creates a balancer for these ports on 127.0.0.1. If all of them refuse, the connection is closed.
    pub fn new(ports: Vec<u16>) -> Self {
        let turn = AtomicUsize::new(0);
        Self(Forwarder::new(move || connect_to_next(&ports, turn.fetch_add(1, Ordering::Relaxed))))
    }

    /// Returns the balancer's port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.0.port()
    }
}

/// Connects to the first server that accepts, starting with number `turn`.
fn connect_to_next(ports: &[u16], turn: usize) -> Option<TcpStream> {
    let count = ports.len();
    (0..count).find_map(|step| connect(ports[(turn + step) % count]))
}
