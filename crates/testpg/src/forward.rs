//! The common part of [`FaultProxy`](super::FaultProxy) and [`Balancer`](super::Balancer): a port on loopback whose
//! connections are forwarded, in both directions. Forwarding can be paused and stopped.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::ReservedPort;

/// On loopback, a server that does not accept within this time is dead.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The size of the buffer for each direction.
const BUFFER_BYTES: usize = 64 * 1024;

/// A port whose connections are forwarded. Dropping it closes the port and all connections.
pub(crate) struct Forwarder {
    port: ReservedPort,
    shared: Arc<Shared>,
    /// The thread that accepts connections. It owns the listener.
    acceptor: Option<JoinHandle<()>>,
}

/// Opens the server's side of a connection. Returns `None` if no server accepts.
type ConnectUpstream = Box<dyn Fn() -> Option<TcpStream> + Send + Sync>;

struct Shared {
    connect_upstream: ConnectUpstream,
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

impl Forwarder {
    pub(crate) fn new(connect_upstream: impl Fn() -> Option<TcpStream> + Send + Sync + 'static) -> Self {
        let port = ReservedPort::new();
        let state = Mutex::new(State { flow: Flow::Running, connections: Vec::new() });
        let shared = Arc::new(Shared { connect_upstream: Box::new(connect_upstream), state, changed: Condvar::new() });
        let acceptor = Some(spawn_acceptor(&port, &shared));
        Self { port, shared, acceptor }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port.get()
    }

    /// Pauses forwarding until it is resumed.
    pub(crate) fn pause(&self) {
        let mut state = self.shared.state.lock();
        if state.flow == Flow::Running {
            state.flow = Flow::Paused;
        }
    }

    /// Resumes forwarding, even after [`Self::stop`].
    pub(crate) fn resume(&mut self) {
        self.shared.set_flow(Flow::Running);
        if self.acceptor.is_none() {
            self.acceptor = Some(spawn_acceptor(&self.port, &self.shared));
        }
    }

    /// Closes all connections, and refuses new ones until it is resumed.
    pub(crate) fn stop(&mut self) {
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
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Connects to a port on loopback. Returns `None` if no server listens there.
pub(crate) fn connect(port: u16) -> Option<TcpStream> {
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
            let Some(server) = (shared.connect_upstream)() else { continue };
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
