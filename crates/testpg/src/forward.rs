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
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// What is read before it is passed on.
const BUFFER_BYTES: usize = 64 * 1024;

/// A port whose connections are passed on. It ends, with all connections, when dropped.
pub(crate) struct Forwarder {
    port: ReservedPort,
    shared: Arc<Shared>,
    /// Accepts connections; it has the listener, which ends with it.
    acceptor: Option<JoinHandle<()>>,
}

/// Where the next connection goes; `None` when nobody takes it.
type ConnectUpstream = Box<dyn Fn() -> Option<TcpStream> + Send + Sync>;

struct Shared {
    connect_upstream: ConnectUpstream,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    flow: Flow,
    /// Connections end by themselves too; those are forgotten when new ones come.
    connections: Vec<Weak<Connection>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Flow {
    /// Everything is passed on.
    Running,
    /// Everything waits.
    Paused,
    /// Nothing is waited for any more.
    Stopped,
}

struct Connection {
    client: TcpStream,
    server: TcpStream,
}

impl Forwarder {
    pub(crate) fn new(lead: impl Fn() -> Option<TcpStream> + Send + Sync + 'static) -> Self {
        let port = ReservedPort::new();
        let traffic = Mutex::new(State { flow: Flow::Running, connections: Vec::new() });
        let shared = Arc::new(Shared { connect_upstream: Box::new(lead), state: traffic, changed: Condvar::new() });
        let acceptor = Some(spawn_acceptor(&port, &shared));
        Self { port, shared, acceptor }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port.get()
    }

    /// Lets everything wait until it is opened.
    pub(crate) fn pause(&self) {
        let mut traffic = self.shared.lock();
        if traffic.flow == Flow::Running {
            traffic.flow = Flow::Paused;
        }
    }

    /// Passes everything on, also after an end.
    pub(crate) fn resume(&mut self) {
        self.shared.set_flow(Flow::Running);
        if self.acceptor.is_none() {
            self.acceptor = Some(spawn_acceptor(&self.port, &self.shared));
        }
    }

    /// Ends all connections, and refuses new ones until it is opened.
    pub(crate) fn stop(&mut self) {
        let Some(acceptor) = self.acceptor.take() else { return };
        self.shared.set_flow(Flow::Stopped);
        // The acceptor looks at the gate when it wakes up. If this is not accepted, it has enough to wake up for.
        let _ = connect(self.port.get());
        let _ = acceptor.join();
        // Without the acceptor there are no more than these.
        for connection in self.shared.lock().connections.drain(..).filter_map(|connection| connection.upgrade()) {
            connection.shut_down();
        }
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A connection to a port of loopback, if somebody listens there.
pub(crate) fn connect(port: u16) -> Option<TcpStream> {
    TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), CONNECT_TIMEOUT).ok()
}

fn spawn_acceptor(port: &ReservedPort, shared: &Arc<Shared>) -> JoinHandle<()> {
    let listener = TcpListener::bind(port.address()).expect("the port is reserved");
    let shared = Arc::clone(shared);
    thread::spawn(move || {
        // Who finds the gate closed waits with the system, as if the answer of the network were still on its way.
        for client in listener.incoming() {
            if !shared.wait_while_paused() {
                break;
            }
            let Ok(client) = client else { continue };
            // A client that nobody takes is dropped, and finds its connection closed.
            let Some(server) = (shared.connect_upstream)() else { continue };
            Connection { client, server }.start(&shared);
        }
        shut_down_listener(listener);
    })
}

/// Ends a listener for good. Closing it would not be enough: a process that another test is just starting has a copy of it
/// for a moment, and connections would be accepted until that is closed too.
fn shut_down_listener(listener: TcpListener) {
    // Only Linux can do this to a listener; elsewhere it is closed, at least.
    let _ = TcpStream::from(OwnedFd::from(listener)).shutdown(Shutdown::Both);
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_flow(&self, gate: Flow) {
        self.lock().flow = gate;
        self.changed.notify_all();
    }

    /// Waits while the gate is closed; whether it is open then.
    fn wait_while_paused(&self) -> bool {
        let closed = |traffic: &mut State| traffic.flow == Flow::Paused;
        let traffic = self.changed.wait_while(self.lock(), closed).unwrap_or_else(PoisonError::into_inner);
        traffic.flow == Flow::Running
    }

    fn register(&self, connection: &Arc<Connection>) {
        let connections = &mut self.lock().connections;
        connections.retain(|connection| connection.strong_count() > 0);
        connections.push(Arc::downgrade(connection));
    }
}

impl Connection {
    /// Passes on what comes, on one thread for each way.
    fn start(self, shared: &Arc<Shared>) {
        let connection = Arc::new(self);
        shared.register(&connection);
        let (there, back) = (Arc::clone(&connection), connection);
        let (first, second) = (Arc::clone(shared), Arc::clone(shared));
        thread::spawn(move || there.forward(&there.client, &there.server, &first));
        thread::spawn(move || back.forward(&back.server, &back.client, &second));
    }

    fn forward(&self, from: &TcpStream, to: &TcpStream, shared: &Shared) {
        if copy(from, to, shared).is_none() {
            self.shut_down();
        }
    }

    fn shut_down(&self) {
        // It may have ended already.
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }
}

/// Passes on one way of a connection up to its end, which is passed on too; `None` when the connection is lost.
fn copy(mut from: &TcpStream, mut to: &TcpStream, shared: &Shared) -> Option<()> {
    let mut piece = vec![0; BUFFER_BYTES];
    loop {
        let length = from.read(&mut piece).ok()?;
        if !shared.wait_while_paused() {
            return None;
        }
        if length == 0 {
            return to.shutdown(Shutdown::Write).ok();
        }
        to.write_all(&piece[..length]).ok()?;
    }
}
