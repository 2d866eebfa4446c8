//! A database, and nodes on it that can be killed, and each cut off from the database by a line of its own.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use restante_testpg::{FaultProxy, Postgres, ReservedPort};

use crate::support::durability::eventually;
use crate::support::rest::Reader;
use crate::support::{Server, command};

/// How many ports are tried.
const ATTEMPTS: usize = 5;

pub(crate) struct Cluster {
    postgres: Mutex<Postgres>,
    pub(crate) nodes: Vec<Node>,
}

pub(crate) struct Node {
    /// The same for all its life, so that a balancer finds it again.
    pub(crate) smtp: SocketAddr,
    pub(crate) http: SocketAddr,
    /// Held so that nothing takes them while the node is down.
    _ports: [ReservedPort; 2],
    /// Its way to the database.
    line: Mutex<FaultProxy>,
    arguments: Vec<String>,
    server: Mutex<Server>,
}

impl Cluster {
    /// So many nodes, which start at the same moment on an empty database; none where PostgreSQL is not installed.
    pub(crate) fn start(count: usize, arguments: &[&str]) -> Option<Self> {
        Some(Self::over(Postgres::start()?, count, arguments))
    }

    /// The same, on a database that syncs what it commits.
    pub(crate) fn durable(count: usize, arguments: &[&str]) -> Option<Self> {
        Some(Self::over(Postgres::start_durable()?, count, arguments))
    }

    fn over(postgres: Postgres, count: usize, arguments: &[&str]) -> Self {
        let port = postgres.port();
        let nodes = thread::scope(|scope| {
            let starting: Vec<_> = (0..count).map(|_| scope.spawn(|| Node::start(port, arguments))).collect();
            starting.into_iter().map(|node| node.join().unwrap()).collect()
        });
        Self { postgres: Mutex::new(postgres), nodes }
    }

    /// Kills the database, and starts it again after so long.
    pub(crate) fn kill_database(&self, pause: Duration) {
        let mut postgres = self.postgres.lock().unwrap();
        postgres.kill();
        thread::sleep(pause);
        postgres.start_again();
    }

    /// Waits until every node can do its work.
    pub(crate) fn until_ready(&self) {
        for node in &self.nodes {
            let is_ready = || ureq::get(node.server().url("/readyz")).call().is_ok();
            eventually("a node is never ready", is_ready);
        }
    }

    /// The ports for SMTP, and those for HTTP.
    pub(crate) fn ports(&self) -> (Vec<u16>, Vec<u16>) {
        self.nodes.iter().map(|node| (node.smtp.port(), node.http.port())).unzip()
    }
}

impl Node {
    fn start(database: u16, arguments: &[&str]) -> Self {
        let line = FaultProxy::new(database);
        let url = format!("postgres://restante@127.0.0.1:{}/postgres", line.port());
        let arguments = [&["--storage-url", &url], arguments].concat();
        let arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
        let mut complaints = Vec::new();
        for _ in 0..ATTEMPTS {
            let ports = [ReservedPort::new(), ReservedPort::new()];
            let [smtp, http] = ports.each_ref().map(ReservedPort::address);
            match try_spawn(smtp, http, &arguments) {
                Ok(server) => {
                    let (line, server) = (Mutex::new(line), Mutex::new(server));
                    return Self { smtp, http, _ports: ports, line, arguments, server };
                }
                // Not every system keeps other programs off a reserved port.
                Err(complaint) => complaints.push(complaint),
            }
        }
        panic!("the node does not start: {complaints:?}");
    }

    /// The program; whoever holds it for long keeps it from being killed.
    pub(crate) fn server(&self) -> MutexGuard<'_, Server> {
        self.server.lock().unwrap()
    }

    pub(crate) fn reader(&self) -> Reader {
        Reader::new(self.http)
    }

    /// Kills it, and starts it again, with the same addresses, after something else has happened.
    pub(crate) fn kill_while(&self, meanwhile: impl FnOnce()) {
        let mut server = self.server();
        assert!(server.lives(), "it has ended by itself: {}", server.whole_log());
        server.kill();
        let log = server.whole_log();
        assert!(!log.contains("panicked"), "{log}");
        meanwhile();
        *server = try_spawn(self.smtp, self.http, &self.arguments).unwrap();
    }

    /// Cuts it off from the database, so that both notice, while something else happens.
    pub(crate) fn cut_while(&self, meanwhile: impl FnOnce()) {
        let mut line = self.line.lock().unwrap();
        line.disconnect();
        meanwhile();
        line.restore();
    }

    /// Lets nothing through between it and the database, so that neither notices, while something else happens.
    pub(crate) fn hang_while(&self, meanwhile: impl FnOnce()) {
        let mut line = self.line.lock().unwrap();
        line.hang();
        meanwhile();
        line.restore();
    }
}

/// The port on this machine.
pub(crate) fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// The program at these addresses, or what it has logged before it ended.
fn try_spawn(smtp: SocketAddr, http: SocketAddr, arguments: &[String]) -> Result<Server, String> {
    let (smtp, http) = (smtp.to_string(), http.to_string());
    let mut command = command();
    command.args(["--smtp-addr", &smtp, "--web-addr", &http]).args(arguments);
    Server::try_spawn(&mut command).map_err(|(status, log)| format!("{status}: {log}"))
}
