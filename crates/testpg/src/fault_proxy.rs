//! A line to a server that can be cut, and one that goes dead without a word.

use super::Postgres;
use super::forward::{Forwarder, connect};

/// A port of its own that leads to another one, with the faults that a network has.
pub struct FaultProxy(Forwarder);

impl FaultProxy {
    /// A line to a port on 127.0.0.1. While nobody listens there, its connections are closed as soon as they are made.
    pub fn new(port: u16) -> Self {
        Self(Forwarder::new(move || connect(port)))
    }

    /// Its own port on 127.0.0.1, the same for all its life.
    pub fn port(&self) -> u16 {
        self.0.port()
    }

    /// The URL of a server that it leads to, by way of this line.
    pub fn url(&self, server: &Postgres) -> String {
        let port = |port: u16| format!(":{port}/");
        server.url().replace(&port(server.port()), &port(self.port()))
    }

    /// Ends all connections and refuses new ones, until it is mended: both ends notice at once.
    pub fn disconnect(&mut self) {
        self.0.stop();
    }

    /// Passes nothing on any more, not even the end of a connection, until it is mended: neither end notices. New
    /// connections seem to be made. What was sent before may still arrive. A line that is cut stays cut.
    pub fn hang(&self) {
        self.0.pause();
    }

    /// Passes everything on, also what has waited.
    pub fn restore(&mut self) {
        self.0.resume();
    }
}
