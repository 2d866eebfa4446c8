//! A proxy for tests of an unreliable network and of several nodes: a port on loopback whose connections are forwarded, in both
//! directions. Forwarding can be paused and stopped.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::{Postgres, ReservedPort};

/// On loopback, a server that does not accept within this time is dead.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The size of the buffer for each direction.
const BUFFER_BYTES: usize = 64 * 1024;

/// A port that forwards to one server or to several equal ones, and can simulate network faults. Dropping it closes the port
/// and all connections.
pub struct FaultProxy {
    port: ReservedPort,
    shared: Arc<Shared>,
    /// The thread that accepts connections. It owns the listener.
    acceptor: Option<JoinHandle<()>>,
}

struct Shared {
    /// The ports of the servers on 127.0.0.1.
    servers: Vec<u16>,
    /// The number of connections so far.
    turn: AtomicUsize,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    flow: Flow,
    /// Connections that have ended are removed when new ones are added.
    connections: Vec<Weak<Connection>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Flow {
    /// Data is forwarded.
    Running,
    /// Everything waits.
    Paused,
    /// All threads end.
    Stopped,
}

struct Connection {
    client: TcpStream,
    server: TcpStream,
}

impl FaultProxy {
    /// Creates a proxy for a port on 127.0.0.1. While no server listens there, connections are closed as soon as they
    /// are accepted.
    pub fn new(port: u16) -> Self {
        Self::balancing(vec![port])
    }

    /// Creates a proxy that distributes connections to these ports on 127.0.0.1 in turn, and skips those that refuse.
    pub fn balancing(servers: Vec<u16>) -> Self {
        let port = ReservedPort::new();
        let state = Mutex::new(State { flow: Flow::Running, connections: Vec::new() });
        let shared = Arc::new(Shared { servers, turn: AtomicUsize::new(0), state, changed: Condvar::new() });
        let acceptor = Some(spawn_acceptor(&port, &shared));
        Self { port, shared, acceptor }
    }

    /// Returns the proxy's port on 127.0.0.1. It never changes.
    pub fn port(&self) -> u16 {
        self.port.get()
    }

    /// Returns the URL of the server through this proxy.
    pub fn url(&self, server: &Postgres) -> String {
        let port = |port: u16| format!(":{port}/");
        server.url().replace(&port(server.port()), &port(self.port()))
    }

    /// Closes all connections and refuses new ones until [`Self::restore`]. Both ends notice at once.
    pub fn disconnect(&mut self) {
        let Some(acceptor) = self.acceptor.take() else { return };
        self.shared.set_flow(Flow::Stopped);
        // A connection wakes the acceptor, which then checks the state. If it fails, other connections are waiting to
        // be accepted.
        let _ = connect(self.port.get());
        let _ = acceptor.join();
        // Without the acceptor, no connections are added any more.
        for connection in self.shared.state.lock().connections.drain(..).filter_map(|connection| connection.upgrade()) {
            connection.shut_down();
        }
    }

    /// Forwards nothing any more, not even the end of a connection, until [`Self::restore`]. Neither end notices. New
    /// connections seem to be accepted. Data that was sent before may still arrive. Has no effect after
    /// [`Self::disconnect`].
    pub fn hang(&self) {
        let mut state = self.shared.state.lock();
        if state.flow == Flow::Running {
            state.flow = Flow::Paused;
        }
    }

    /// Forwards everything again, including data that has waited.
    pub fn restore(&mut self) {
        self.shared.set_flow(Flow::Running);
        if self.acceptor.is_none() {
            self.acceptor = Some(spawn_acceptor(&self.port, &self.shared));
        }
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.disconnect();
    }
}

/// Connects to a port on loopback. Returns `None` if no server listens there.
fn connect(port: u16) -> Option<TcpStream> {
    TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), CONNECT_TIMEOUT).ok()
}

fn spawn_acceptor(port: &ReservedPort, shared: &Arc<Shared>) -> JoinHandle<()> {
    let listener = TcpListener::bind(port.address()).expect("the port is reserved");
    let shared = Arc::clone(shared);
    thread::spawn(move || {
        // While paused, new connections wait in the backlog of the system, as if the network were slow.
        for client in listener.incoming() {
            if !shared.wait_while_paused() {
                break;
            }
            let Ok(client) = client else { continue };
            // A client without a server is dropped, which closes its connection.
            let Some(server) = shared.connect_to_next() else { continue };
            Connection { client, server }.start(&shared);
        }
        shut_down_listener(listener);
    })
}

/// Stops listening. Closing is not sufficient: a process that another test is just starting has a copy of the listener
/// for a moment, and connections would be accepted until that is closed too.
fn shut_down_listener(listener: TcpListener) {
    // Only Linux supports this for a listener. Elsewhere it is only closed.
    let _ = TcpStream::from(OwnedFd::from(listener)).shutdown(Shutdown::Both);
}

impl Shared {
    /// Connects to the first server that accepts, starting with the one whose turn it is.
    fn connect_to_next(&self) -> Option<TcpStream> {
        let (turn, count) = (self.turn.fetch_add(1, Ordering::Relaxed), self.servers.len());
        (0..count).find_map(|step| connect(self.servers[(turn + step) % count]))
    }

    fn set_flow(&self, flow: Flow) {
        self.state.lock().flow = flow;
        self.changed.notify_all();
    }

    /// Waits while forwarding is paused. Returns whether it is running then.
    fn wait_while_paused(&self) -> bool {
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, |state| state.flow == Flow::Paused);
        state.flow == Flow::Running
    }

    fn register(&self, connection: &Arc<Connection>) {
        let connections = &mut self.state.lock().connections;
        connections.retain(|connection| connection.strong_count() > 0);
        connections.push(Arc::downgrade(connection));
    }
}

impl Connection {
    /// Starts one thread for each direction.
    fn start(self, shared: &Arc<Shared>) {
        let connection = Arc::new(self);
        shared.register(&connection);
        let (to_server, to_client) = (Arc::clone(&connection), connection);
        let (first, second) = (Arc::clone(shared), Arc::clone(shared));
        thread::spawn(move || to_server.forward(&to_server.client, &to_server.server, &first));
        thread::spawn(move || to_client.forward(&to_client.server, &to_client.client, &second));
    }

    fn forward(&self, from: &TcpStream, to: &TcpStream, shared: &Shared) {
        if copy(from, to, shared).is_none() {
            self.shut_down();
        }
    }

    fn shut_down(&self) {
        // It may be closed already.
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }
}

/// Forwards one direction of a connection, including its end. Returns `None` if the connection is lost.
fn copy(mut from: &TcpStream, mut to: &TcpStream, shared: &Shared) -> Option<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let length = from.read(&mut buffer).ok()?;
        if !shared.wait_while_paused() {
            return None;
        }
        if length == 0 {
            return to.shutdown(Shutdown::Write).ok();
        }
        to.write_all(&buffer[..length]).ok()?;
    }
}
