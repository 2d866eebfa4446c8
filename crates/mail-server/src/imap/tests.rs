//! The IMAP server on loopback connections: what it adds to the session of `restante_proto`, whose tests are there. A test
//! starts a [`TestServer`] and plays conversations with a [`Client`].

mod connections;
mod copies;
mod folders;
mod live;
mod login;
mod messages;
mod transcripts;

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use restante_auth::AuthService;
use restante_http_client::insecure_client_config;
use restante_mail::address::{Address, Alphabet};
use restante_mail::envelope::{Envelope, Peer, Recipient};
use restante_mail::message::{Flags, MessageId, Summary};
use restante_mail::naming::{MailboxName, Naming};
use restante_mail::tags::Tags;
use restante_mailroom::hooks::Extensions;
use restante_mailroom::{Import, Mailroom, MessageSelector};
use restante_metrics::{Metrics, Protocol, Registry, Scrape};
use restante_net::{
    AdmissionControl, Certificate, ConnectionLimits, ListenAddr, Listener, Network, ShutdownTrigger, Tls, accept, bind,
};
use restante_settings::MailboxPassword;
use restante_store::memory::MemoryStore;
use restante_store::{Limits, Store};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::*;

/// Longer than any step of a test takes.
const TEST_TIMEOUT: Duration = Duration::from_mins(1);

/// A message.
const MAIL: &str = "Subject: Hello\r\n\r\nHi\r\n";

/// The settings of a server that tests change.
struct Setup {
    store: Arc<dyn Store>,
    limits: Limits,
    auth: restante_auth::Settings,
    credentials: Vec<MailboxPassword>,
    tls: bool,
    implicit_tls: bool,
    idle_timeout: Duration,
    max_bad_commands: usize,
    max_message_bytes: usize,
    max_connections: usize,
    proxies: Vec<Network>,
    netdebug: bool,
    /// The memory for lists of messages, and for messages.
    budget: Arc<Budget>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            store: Arc::new(MemoryStore::new(Limits::default())),
            limits: Limits::default(),
            auth: restante_auth::Settings::default(),
            credentials: Vec::new(),
            tls: false,
            implicit_tls: false,
            idle_timeout: TEST_TIMEOUT,
            max_bad_commands: 20,
            max_message_bytes: 1_000_000,
            max_connections: 100,
            proxies: Vec::new(),
            netdebug: false,
            budget: Budget::new(64 << 20),
        }
    }
}

/// A server on a free port of the loopback interface.
struct TestServer {
    server: Arc<Server>,
    mailroom: Arc<Mailroom>,
    metrics: Arc<Metrics>,
    registry: Registry,
    address: SocketAddr,
    trigger: ShutdownTrigger,
    shutdown: Shutdown,
}

impl Setup {
    fn start(self) -> TestServer {
        let settings = restante_mailroom::Settings { limits: self.limits, ..restante_mailroom::Settings::default() };
        let mailroom = Arc::new(Mailroom::new(settings, self.store, Extensions::default()));
        if mailroom.is_shared() {
            let mailroom = mailroom.clone();
            tokio::spawn(async move { mailroom.follow_feed().await });
        }
        let mut registry = Registry::default();
        let metrics = Arc::new(Metrics::new(None, &mut registry));
        let tls = self.tls.then(|| Arc::new(Tls::new(Certificate::SelfSigned, &[], &[]).unwrap()));
        let auth = AuthService::open(self.auth).unwrap();
        let server = Arc::new(Server {
            context: ListenerContext {
                protocol: Protocol::Imap,
                mailroom: mailroom.clone(),
                tls,
                implicit_tls: self.implicit_tls,
                metrics: metrics.clone(),
                idle_timeout: self.idle_timeout,
                netdebug: self.netdebug,
                session_count: Arc::default(),
                store_errors: Arc::default(),
            },
            settings: Arc::new(Settings {
                domain: "mx.test".to_owned(),
                starttls: self.tls && !self.implicit_tls,
                max_bad_commands: self.max_bad_commands,
                max_message_bytes: self.max_message_bytes,
            }),
            login: Arc::new(MailboxLogin::new("imap.credentials", self.credentials, auth)),
            folders: Arc::default(),
            index_budget: self.budget.clone(),
            message_budget: self.budget,
            lists: Arc::default(),
            session_uid_validity: Arc::new(AtomicU32::new(1)),
        });
        let admission = AdmissionControl {
            limits: ConnectionLimits::new(self.max_connections, None),
            proxies: self.proxies,
            exempt: Vec::new(),
            readiness: Arc::default(),
        };
        let listener = bind(&ListenAddr::Tcp(([127, 0, 0, 1], 0).into())).unwrap().remove(0);
        let Listener::Tcp(socket) = &listener else { panic!("not a TCP listener") };
        let address = socket.local_addr().unwrap();
        let (trigger, shutdown) = ShutdownTrigger::new();
        let counters = metrics.connections(Protocol::Imap).clone();
        let shared = server.clone();
        let serve = move |stream, ip, admission, shutdown| shared.clone().serve(stream, ip, admission, shutdown);
        tokio::spawn(accept(listener, Arc::new(admission), counters, shutdown.clone(), serve));
        TestServer { server, mailroom, metrics, registry, address, trigger, shutdown }
    }
}

impl TestServer {
    fn start() -> Self {
        Setup::default().start()
    }

    /// Delivers a message as SMTP does. Returns the copy.
    async fn deliver(&self, to: &str, body: impl Into<Bytes>) -> Summary {
        let address = Address::parse(to, Alphabet::Ascii).unwrap();
        let recipient = Recipient::new(address, Naming::Local).unwrap();
        let mailbox = recipient.mailbox.clone();
        let envelope = Envelope {
            peer: Peer { ip: None, helo: "client.test".into() },
            login: None,
            key: None,
            listener: None,
            from: None,
            recipients: vec![recipient],
        };
        self.mailroom.deliver(&envelope, body.into()).await.unwrap();
        self.latest(mailbox.as_str()).await.unwrap()
    }

    /// Returns the newest message of a mailbox.
    async fn latest(&self, name: &str) -> Option<Summary> {
        self.mailroom.find(&mailbox(name), MessageSelector::Latest).await.unwrap()
    }

    /// Returns the number of messages of a mailbox.
    async fn count(&self, name: &str) -> usize {
        self.mailroom.index(&mailbox(name), MessageId::ZERO, usize::MAX).await.unwrap().entries.len()
    }

    /// Connects, and reads the greeting.
    async fn connect(&self) -> Client {
        let mut client = self.connect_without_greeting().await;
        client.talk("S~ * OK [CAPABILITY IMAP4rev1 ").await;
        client
    }

    async fn connect_without_greeting(&self) -> Client {
        Client::new(Box::new(TcpStream::connect(self.address).await.unwrap()))
    }

    /// Connects by a pair of sockets, and reads the greeting. For tests with a paused clock: data arrives at once, and the
    /// clock advances to the next timer as soon as all tasks wait.
    async fn connect_by_socket_pair(&self) -> (Client, JoinHandle<()>) {
        let (client_end, server_end) = UnixStream::pair().unwrap();
        let admission = ConnectionLimits::new(1, None).admit();
        let session = self.server.clone().serve(Stream::Unix(server_end), None, admission, self.shutdown.clone());
        let session_task = tokio::spawn(session);
        let mut client = Client::new(Box::new(client_end));
        client.talk("S~ * OK [CAPABILITY IMAP4rev1 ").await;
        (client, session_task)
    }

    /// Requests the shutdown and waits until all sessions have ended.
    async fn shut_down(self) {
        drop(self.shutdown);
        assert!(self.trigger.trigger_and_wait(TEST_TIMEOUT).await, "a session has not ended");
    }

    /// Stores a message in a mailbox without a delivery.
    async fn import(&self, name: &str, message: impl Into<Bytes>) -> Summary {
        let import = Import {
            mailbox: mailbox(name),
            received: Timestamp::now(),
            seen: false,
            flags: Flags::default(),
            tags: Tags::default(),
            message: message.into(),
        };
        self.mailroom.import(import).await.unwrap()
    }

    /// Logs in to a mailbox with any password.
    async fn log_in(&self, user: &str) -> Client {
        let mut client = self.connect().await;
        client.talk(&format!("C: login LOGIN {user} x\nS~ login OK [CAPABILITY ")).await;
        client
    }

    /// Logs in with any password, and opens INBOX.
    async fn open_inbox(&self, user: &str) -> Client {
        let mut client = self.log_in(user).await;
        client.talk("C: select SELECT INBOX\nS* select OK [READ-WRITE] SELECT completed").await;
        client
    }

    /// Returns the value of a counter.
    async fn counter(&self, series: &str) -> u64 {
        let page = Scrape::collect(self.metrics.clone(), &self.mailroom).await.into_text(&self.registry).unwrap();
        let value = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("{series} is missing in {page}")).parse().unwrap()
    }
}

fn mailbox(name: &str) -> MailboxName {
    name.to_owned().into()
}

/// A connection of a client, with or without TLS.
trait ClientStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> ClientStream for S {}

/// A client that sends and expects given lines.
struct Client {
    stream: BufReader<Box<dyn ClientStream>>,
}

impl Client {
    fn new(stream: Box<dyn ClientStream>) -> Self {
        Self { stream: BufReader::new(stream) }
    }

    /// Performs the TLS handshake.
    async fn start_tls(self) -> Self {
        let connector = TlsConnector::from(Arc::new(insecure_client_config().unwrap()));
        let name = ServerName::try_from("localhost").unwrap();
        Self::new(Box::new(connector.connect(name, self.stream.into_inner()).await.unwrap()))
    }

    /// Plays a conversation:
    ///
    /// | line      | meaning                                                                         |
    /// |-----------|---------------------------------------------------------------------------------|
    /// | `C: text` | the client sends the text and CRLF                                              |
    /// | `S: text` | the server sends exactly this line                                              |
    /// | `S~ text` | the server sends a line that starts with this text                              |
    /// | `S* text` | the server sends any number of lines, including none, and then exactly this one |
    /// | `EOF`     | the server closes the connection                                                |
    async fn talk(&mut self, conversation: &str) {
        for turn in conversation.lines().map(str::trim).filter(|turn| !turn.is_empty()) {
            match turn.split_at(turn.len().min(3)) {
                ("C: ", text) => self.send(format!("{text}\r\n")).await,
                ("S: ", text) => assert_eq!(self.line().await.as_deref(), Some(text), "{turn}"),
                ("S~ ", text) => {
                    let line = self.line().await;
                    assert!(line.as_ref().is_some_and(|line| line.starts_with(text)), "{line:?} instead of {turn}");
                }
                ("S* ", text) => {
                    let mut lines = Vec::new();
                    while lines.last().is_none_or(|line| line != text) {
                        lines.push(self.line().await.unwrap_or_else(|| panic!("{lines:?} instead of {turn}")));
                    }
                }
                ("C:", "") => self.send("\r\n").await,
                ("EOF", "") => assert_eq!(self.line().await, None),
                _ => panic!("{turn} is not a line of a conversation"),
            }
        }
    }

    async fn send(&mut self, text: impl AsRef<[u8]>) {
        self.stream.write_all(text.as_ref()).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    /// Returns the next line without its line end. `None` if the server has closed the connection.
    async fn line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        let read = timeout(TEST_TIMEOUT, self.stream.read_until(b'\n', &mut line)).await;
        read.expect("the server sends a line").unwrap();
        let mut line = String::from_utf8(line).unwrap();
        if line.is_empty() {
            return None;
        }
        line.truncate(line.strip_suffix("\r\n").expect("a complete line").len());
        Some(line)
    }

    /// Sends a command. Returns the untagged lines and the last one, which has the tag `a`.
    async fn command(&mut self, command: &str) -> (Vec<String>, String) {
        self.send(format!("a {command}\r\n")).await;
        let mut untagged = Vec::new();
        loop {
            let line = self.line().await.unwrap_or_else(|| panic!("{untagged:?} is all for {command}"));
            match line.strip_prefix("a ") {
                Some(completion) => return (untagged, completion.to_owned()),
                None => untagged.push(line),
            }
        }
    }

    /// Sends a command that must succeed. Returns the untagged lines.
    async fn ok(&mut self, command: &str) -> Vec<String> {
        let (untagged, completion) = self.command(command).await;
        assert!(completion.starts_with("OK "), "{command}: {completion}");
        untagged
    }

    /// Sends a command that must be refused. Returns the last line without its tag.
    async fn refused(&mut self, command: &str) -> String {
        let (_, completion) = self.command(command).await;
        assert!(completion.starts_with("NO "), "{command}: {completion}");
        completion
    }

    /// Fetches the source of a message without changing its flags.
    async fn source(&mut self, uid: u32) -> Vec<u8> {
        self.send(format!("fetch UID FETCH {uid} BODY.PEEK[]\r\n")).await;
        let line = self.line().await.unwrap();
        let size = line.rsplit_once(" BODY[] {").unwrap().1.trim_end_matches('}').parse().unwrap();
        let mut source = vec![0; size];
        timeout(TEST_TIMEOUT, self.stream.read_exact(&mut source)).await.expect("the source").unwrap();
        self.talk("S: )\nS: fetch OK FETCH completed").await;
        source
    }

    /// Returns the UIDs of all messages of the selected mailbox.
    async fn uids(&mut self) -> Vec<u32> {
        let lines = self.ok("UID SEARCH RETURN () ALL").await;
        let found = lines[0].split_once(" ALL ").map_or("", |(_, set)| set);
        let bounds = |range: &str| {
            let (first, last) = range.split_once(':').unwrap_or((range, range));
            first.parse::<u32>().unwrap()..=last.parse::<u32>().unwrap()
        };
        found.split(',').filter(|range| !range.is_empty()).flat_map(bounds).collect()
    }
}
