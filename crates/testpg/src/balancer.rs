//! A load balancer: one port before several equal servers.

use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::forward::{Forwarder, connect};

/// Leads connections to servers in turn, past those that refuse.
pub struct Balancer(Forwarder);

impl Balancer {
    /// One before these ports on 127.0.0.1. When all of them refuse, the connection is closed.
    pub fn new(ports: Vec<u16>) -> Self {
        let turn = AtomicUsize::new(0);
        Self(Forwarder::new(move || connect_to_next(&ports, turn.fetch_add(1, Ordering::Relaxed))))
    }

    /// Its own port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.0.port()
    }
}

/// The first server that accepts, from the one whose turn it is.
fn connect_to_next(ports: &[u16], turn: usize) -> Option<TcpStream> {
    let count = ports.len();
    (0..count).find_map(|step| connect(ports[(turn + step) % count]))
}
