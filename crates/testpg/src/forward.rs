//! The one mechanism behind [`Line`](super::Line) and [`Balancer`](super::Balancer): a port of loopback whose connections
//! are passed on, both ways, to wherever they are led, with a gate before every step.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::ReservedPort;

/// On loopback, who does not accept by then is as good as dead.
const CONNECT: Duration = Duration::from_secs(5);
/// What is read before it is passed on.
const PIECE: usize = 64 * 1024;

/// A port whose connections are passed on. It ends, with all connections, when dropped.
pub(crate) struct Forwarder {
    port: ReservedPort,
    shared: Arc<Shared>,
    /// Accepts connections; it has the listener, which ends with it.
    acceptor: Option<JoinHandle<()>>,
}

/// Where the next connection goes; `None` when nobody takes it.
type Lead = Box<dyn Fn() -> Option<TcpStream> + Send + Sync>;

struct Shared {
    lead: Lead,
    traffic: Mutex<Traffic>,
    changed: Condvar,
}

struct Traffic {
    gate: Gate,
    /// Connections end by themselves too; those are forgotten when new ones come.
    connections: Vec<Weak<Connection>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Gate {
    /// Everything is passed on.
    Open,
    /// Everything waits.
    Closed,
    /// Nothing is waited for any more.
    Gone,
}

struct Connection {
    client: TcpStream,
    server: TcpStream,
}

impl Forwarder {
    pub(crate) fn new(lead: impl Fn() -> Option<TcpStream> + Send + Sync + 'static) -> Self {
        let port = ReservedPort::new();
        let traffic = Mutex::new(Traffic { gate: Gate::Open, connections: Vec::new() });
        let shared = Arc::new(Shared { lead: Box::new(lead), traffic, changed: Condvar::new() });
        let acceptor = Some(accept_from(&port, &shared));
        Self { port, shared, acceptor }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port.get()
    }

    /// Lets everything wait until it is opened.
    pub(crate) fn close(&self) {
        let mut traffic = self.shared.traffic();
        if traffic.gate == Gate::Open {
            traffic.gate = Gate::Closed;
        }
    }

    /// Passes everything on, also after an end.
    pub(crate) fn open(&mut self) {
        self.shared.set(Gate::Open);
        if self.acceptor.is_none() {
            self.acceptor = Some(accept_from(&self.port, &self.shared));
        }
    }

    /// Ends all connections, and refuses new ones until it is opened.
    pub(crate) fn end(&mut self) {
        let Some(acceptor) = self.acceptor.take() else { return };
        self.shared.set(Gate::Gone);
        // The acceptor looks at the gate when it wakes up. If this is not accepted, it has enough to wake up for.
        let _ = connect(self.port.get());
        let _ = acceptor.join();
        // Without the acceptor there are no more than these.
        for connection in self.shared.traffic().connections.drain(..).filter_map(|connection| connection.upgrade()) {
            connection.end();
        }
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.end();
    }
}

/// A connection to a port of loopback, if somebody listens there.
pub(crate) fn connect(port: u16) -> Option<TcpStream> {
    TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), CONNECT).ok()
}

fn accept_from(port: &ReservedPort, shared: &Arc<Shared>) -> JoinHandle<()> {
    let listener = TcpListener::bind(port.address()).expect("the port is reserved");
    let shared = Arc::clone(shared);
    thread::spawn(move || {
        // Who finds the gate closed waits with the system, as if the answer of the network were still on its way.
        for client in listener.incoming() {
            if !shared.may_pass() {
                break;
            }
            let Ok(client) = client else { continue };
            // A client that nobody takes is dropped, and finds its connection closed.
            let Some(server) = (shared.lead)() else { continue };
            Connection { client, server }.start(&shared);
        }
        refuse(listener);
    })
}

/// Ends a listener for good. Closing it would not be enough: a process that another test is just starting has a copy of it
/// for a moment, and connections would be accepted until that is closed too.
fn refuse(listener: TcpListener) {
    // Only Linux can do this to a listener; elsewhere it is closed, at least.
    let _ = TcpStream::from(OwnedFd::from(listener)).shutdown(Shutdown::Both);
}

impl Shared {
    fn traffic(&self) -> MutexGuard<'_, Traffic> {
        self.traffic.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, gate: Gate) {
        self.traffic().gate = gate;
        self.changed.notify_all();
    }

    /// Waits while the gate is closed; whether it is open then.
    fn may_pass(&self) -> bool {
        let closed = |traffic: &mut Traffic| traffic.gate == Gate::Closed;
        let traffic = self.changed.wait_while(self.traffic(), closed).unwrap_or_else(PoisonError::into_inner);
        traffic.gate == Gate::Open
    }

    fn remember(&self, connection: &Arc<Connection>) {
        let connections = &mut self.traffic().connections;
        connections.retain(|connection| connection.strong_count() > 0);
        connections.push(Arc::downgrade(connection));
    }
}

impl Connection {
    /// Passes on what comes, on one thread for each way.
    fn start(self, shared: &Arc<Shared>) {
        let connection = Arc::new(self);
        shared.remember(&connection);
        let (there, back) = (Arc::clone(&connection), connection);
        let (first, second) = (Arc::clone(shared), Arc::clone(shared));
        thread::spawn(move || there.pass_on(&there.client, &there.server, &first));
        thread::spawn(move || back.pass_on(&back.server, &back.client, &second));
    }

    fn pass_on(&self, from: &TcpStream, to: &TcpStream, shared: &Shared) {
        if pump(from, to, shared).is_none() {
            self.end();
        }
    }

    fn end(&self) {
        // It may have ended already.
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }
}

/// Passes on one way of a connection up to its end, which is passed on too; `None` when the connection is lost.
fn pump(mut from: &TcpStream, mut to: &TcpStream, shared: &Shared) -> Option<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let length = from.read(&mut piece).ok()?;
        if !shared.may_pass() {
            return None;
        }
        if length == 0 {
            return to.shutdown(Shutdown::Write).ok();
        }
        to.write_all(&piece[..length]).ok()?;
    }
}
