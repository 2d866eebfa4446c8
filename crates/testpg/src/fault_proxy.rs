//! A proxy that simulates a lost and a silent connection to a server.

use super::Postgres;
use super::forward::{Forwarder, connect};

/// A port that forwards to another one and can simulate network faults.
pub struct FaultProxy(Forwarder);

impl FaultProxy {
    /// Creates a proxy for a port on 127.0.0.1. While no server listens there, connections are closed as soon as they
    /// are accepted.
    pub fn new(port: u16) -> Self {
        Self(Forwarder::new(move || connect(port)))
    }

    /// Returns the proxy's port on 127.0.0.1. It never changes.
    pub fn port(&self) -> u16 {
        self.0.port()
    }

    /// Returns the URL of the server through this proxy.
    pub fn url(&self, server: &Postgres) -> String {
        let port = |port: u16| format!(":{port}/");
        server.url().replace(&port(server.port()), &port(self.port()))
    }

    /// Closes all connections and refuses new ones until [`Self::restore`]. Both ends notice at once.
    pub fn disconnect(&mut self) {
        self.0.stop();
    }

    /// Forwards nothing any more, not even the end of a connection, until [`Self::restore`]. Neither end notices. New
    /// connections seem to be accepted. Data that was sent before may still arrive. Has no effect after
    /// [`Self::disconnect`].
    pub fn hang(&self) {
        self.0.pause();
    }

    /// Forwards everything again, including data that has waited.
    pub fn restore(&mut self) {
        self.0.resume();
    }
}
