//! A database and nodes that can be killed, each connected to the database through its own fault proxy.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use restante_testpg::{FaultProxy, Postgres, ReservedPort};

use crate::support::durability::eventually;
use crate::support::rest::Reader;
use crate::support::{Server, command};

/// The number of attempts to find free ports.
const ATTEMPTS: usize = 5;

pub(crate) struct Cluster {
    postgres: Mutex<Postgres>,
    pub(crate) nodes: Vec<Node>,
}

pub(crate) struct Node {
    /// The same after restarts, so that a balancer finds the node again.
    pub(crate) smtp: SocketAddr,
    pub(crate) http: SocketAddr,
    /// Reserved, so that no other program takes them while the node is down.
    _ports: [ReservedPort; 2],
    /// The proxy to the database.
    proxy: Mutex<FaultProxy>,
    arguments: Vec<String>,
    server: Mutex<Server>,
}

impl Cluster {
    /// Starts nodes at the same moment on an empty database. Returns `None` if PostgreSQL is not installed.
    pub(crate) fn start(count: usize, arguments: &[&str]) -> Option<Self> {
        Some(Self::with_database(Postgres::start()?, count, arguments))
    }

    /// Like `start`, on a database that syncs its commits.
    pub(crate) fn durable(count: usize, arguments: &[&str]) -> Option<Self> {
        Some(Self::with_database(Postgres::start_durable()?, count, arguments))
    }

    fn with_database(postgres: Postgres, count: usize, arguments: &[&str]) -> Self {
        let port = postgres.port();
        let nodes = thread::scope(|scope| {
            let starting: Vec<_> = (0..count).map(|_| scope.spawn(|| Node::start(port, arguments))).collect();
            starting.into_iter().map(|node| node.join().unwrap()).collect()
        });
        Self { postgres: Mutex::new(postgres), nodes }
    }

    /// Kills the database, and restarts it after a pause.
    pub(crate) fn kill_database(&self, pause: Duration) {
        let mut postgres = self.postgres.lock().unwrap();
        postgres.kill();
        thread::sleep(pause);
        postgres.start_again();
    }

    /// Waits until every node is ready.
    pub(crate) fn until_ready(&self) {
        for node in &self.nodes {
            let is_ready = || ureq::get(node.server().url("/readyz")).call().is_ok();
            eventually("a node does not become ready", is_ready);
        }
    }

    /// Returns the SMTP ports and the HTTP ports.
    pub(crate) fn ports(&self) -> (Vec<u16>, Vec<u16>) {
        self.nodes.iter().map(|node| (node.smtp.port(), node.http.port())).unzip()
    }
}

impl Node {
    fn start(database: u16, arguments: &[&str]) -> Self {
        let proxy = FaultProxy::new(database);
        let url = format!("postgres://restante@127.0.0.1:{}/postgres", proxy.port());
        let arguments = [&["--storage-url", &url], arguments].concat();
        let arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
        let mut errors = Vec::new();
        for _ in 0..ATTEMPTS {
            let ports = [ReservedPort::new(), ReservedPort::new()];
            let [smtp, http] = ports.each_ref().map(ReservedPort::address);
            match try_spawn(smtp, http, &arguments) {
                Ok(server) => {
                    let (proxy, server) = (Mutex::new(proxy), Mutex::new(server));
                    return Self { smtp, http, _ports: ports, proxy, arguments, server };
                }
                // Some systems allow other programs to use a reserved port.
                Err(error) => errors.push(error),
            }
        }
        panic!("the node does not start: {errors:?}");
    }

    /// Returns the program. While it is locked, the node cannot be killed.
    pub(crate) fn server(&self) -> MutexGuard<'_, Server> {
        self.server.lock().unwrap()
    }

    pub(crate) fn reader(&self) -> Reader {
        Reader::new(self.http)
    }

    /// Kills the node, runs an action, and restarts the node with the same addresses.
    pub(crate) fn kill_while(&self, action: impl FnOnce()) {
        let mut server = self.server();
        assert!(server.is_running(), "the node has exited: {}", server.full_log());
        server.kill();
        let log = server.full_log();
        assert!(!log.contains("panicked"), "{log}");
        action();
        *server = try_spawn(self.smtp, self.http, &self.arguments).unwrap();
    }

    /// Runs an action while the node is disconnected from the database. Both sides notice the disconnect.
    pub(crate) fn disconnect_while(&self, action: impl FnOnce()) {
        let mut proxy = self.proxy.lock().unwrap();
        proxy.disconnect();
        action();
        proxy.restore();
    }

    /// Runs an action while the connection to the database hangs. Neither side notices it.
    pub(crate) fn hang_while(&self, action: impl FnOnce()) {
        let mut proxy = self.proxy.lock().unwrap();
        proxy.hang();
        action();
        proxy.restore();
    }
}

/// Returns the loopback address with this port.
pub(crate) fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// Starts the program at these addresses. Returns its log if it exits.
fn try_spawn(smtp: SocketAddr, http: SocketAddr, arguments: &[String]) -> Result<Server, String> {
    let (smtp, http) = (smtp.to_string(), http.to_string());
    let mut command = command();
    command.args(["--smtp-addr", &smtp, "--web-addr", &http]).args(arguments);
    Server::try_spawn(&mut command).map_err(|(status, log)| format!("{status}: {log}"))
}
