//! Ports for servers that are gone for a while and then come back to the same one.

use std::hash::{BuildHasher as _, RandomState};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;

/// Below what systems hand out by themselves. There, another program, or even the client that tries again and again to
/// connect, could be given the port as its own end of a connection, and the server could not come back.
const PORTS: Range<u16> = 10_000..32_000;

/// Listens on a port of loopback that nobody else had.
pub(crate) fn listen() -> TcpListener {
    // Chance keeps programs apart that look at the same time.
    let start = RandomState::new().hash_one(()) % u64::from(PORTS.end - PORTS.start);
    let start = PORTS.start + u16::try_from(start).unwrap_or_default();
    (start..PORTS.end)
        .chain(PORTS.start..start)
        .find_map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok())
        .expect("one of many thousand ports is free")
}

/// A port that was free a moment ago. Another program may be faster there: try again with another one.
pub fn free() -> u16 {
    listen().local_addr().expect("it listens").port()
}
