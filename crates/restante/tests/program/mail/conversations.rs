//! Runs the conversations of `restante-proto` with the real program: transport TCP and transport implicit TLS. There, the same text files run
//! on the state machines without I/O.

#[path = "../../../../proto/tests/script/mod.rs"]
mod script;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use script::{Script, Turn};

use crate::support::tls::ClientStream;
use crate::support::{LineConnection, Server, connect, pop3};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    Tcp,
    Tls,
}

/// The protocol of a folder of conversations. Its name is also the prefix of its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Smtp,
    Pop3,
}

#[test]
fn smtp_conversations_over_tcp() {
    run_all(Protocol::Smtp, Transport::Tcp);
}

#[test]
fn smtp_conversations_over_tls() {
    run_all(Protocol::Smtp, Transport::Tls);
}

#[test]
fn pop3_conversations_over_tcp() {
    run_all(Protocol::Pop3, Transport::Tcp);
}

#[test]
fn pop3_conversations_over_tls() {
    run_all(Protocol::Pop3, Transport::Tls);
}

fn run_all(protocol: Protocol, transport: Transport) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../proto/tests").join(protocol.folder());
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let scripts: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|end| end == "txt")).collect();
    assert!(scripts.len() >= 40, "the conversations were not found");
    std::thread::scope(|scope| {
        for share in scripts.chunks(scripts.len().div_ceil(4)) {
            scope.spawn(move || share.iter().for_each(|path| run(protocol, path, transport)));
        }
    });
}

fn run(protocol: Protocol, path: &Path, transport: Transport) {
    let script = Script::parse(&std::fs::read_to_string(path).unwrap());
    let name = path.file_stem().unwrap().to_string_lossy();
    let lmtp = script.sets("lmtp");
    let tls_enabled = format!("{}.tlsenabled", protocol.folder());
    if transport == Transport::Tls && (lmtp || script.sets(&tls_enabled) || script.says(protocol.start_tls())) {
        // LMTP has no listener with implicit TLS, and STARTTLS is not possible within TLS.
        return;
    }
    let mut arguments: Vec<String> = Vec::new();
    for (name, value) in script.settings.iter().filter(|(name, _)| name != "lmtp") {
        arguments.push(format!("--{}={value}", name.replace('.', "-")));
    }
    if lmtp {
        arguments.push("--lmtp-addr=127.0.0.1:0".to_owned());
    }
    if transport == Transport::Tls {
        let forced = ["tlsenabled", "tlscert=self-signed", "forcetls"];
        arguments.extend(forced.map(|setting| format!("--{}-{setting}", protocol.folder())));
    }
    let mut server = Server::start(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let address = if lmtp { server.address_of("LMTP listening on tcp4 ") } else { protocol.address(&mut server) };
    let mut connection = LineConnection::new(ClientStream::Plain(connect(address)));
    if transport == Transport::Tls {
        connection.stream.start_tls();
    }
    let label = format!("{protocol:?} {name} over {transport:?}");
    Conversation { server, connection, label, greeting: String::new(), delivered: Vec::new() }.run(&script);
}

impl Protocol {
    fn folder(self) -> &'static str {
        match self {
            Self::Smtp => "smtp",
            Self::Pop3 => "pop3",
        }
    }

    fn start_tls(self) -> &'static str {
        match self {
            Self::Smtp => "STARTTLS",
            Self::Pop3 => "STLS",
        }
    }

    fn address(self, server: &mut Server) -> SocketAddr {
        match self {
            Self::Smtp => server.smtp,
            Self::Pop3 => server.address_of("POP3 listening on tcp4 "),
        }
    }
}

impl Script {
    fn sets(&self, name: &str) -> bool {
        self.settings.iter().any(|(key, _)| key == name)
    }

    fn says(&self, word: &str) -> bool {
        let says = |input: &Vec<u8>| String::from_utf8_lossy(input).to_uppercase().contains(word);
        self.turns.iter().any(|turn| matches!(turn, Turn::Client(input) if says(input)))
    }
}

struct Conversation {
    server: Server,
    connection: LineConnection<ClientStream>,
    label: String,
    /// The first line of the server.
    greeting: String,
    /// The ids of the messages that were delivered to the mailbox `james`.
    delivered: Vec<String>,
}

impl Conversation {
    fn run(mut self, script: &Script) {
        for turn in &script.turns {
            match turn {
                Turn::Client(input) => self.write(input),
                Turn::Server(line) => assert_eq!(self.line().as_ref(), Some(line), "{}", self.label),
                Turn::ServerPrefix(prefix) => {
                    let line = self.line();
                    let matches = line.as_ref().is_some_and(|line| line.starts_with(prefix));
                    assert!(matches, "{}: {line:?} instead of {prefix}", self.label);
                }
                Turn::ServerUntil(line) => while self.line().expect(&self.label) != *line {},
                Turn::Tls => self.connection.stream.start_tls(),
                Turn::Eof => assert_eq!(self.line(), None, "{}", self.label),
                Turn::Event(event, text) => self.handle_event(event, text),
            }
        }
    }

    /// Sends input and ignores errors: the server may close the connection during the write. Its replies are still read.
    fn write(&mut self, input: &[u8]) {
        let _ = self.connection.stream.write_all(input).and_then(|()| self.connection.stream.flush());
    }

    fn line(&mut self) -> Option<String> {
        let line = self.connection.line()?;
        if self.greeting.is_empty() {
            self.greeting.clone_from(&line);
        }
        Some(line)
    }

    fn handle_event(&mut self, event: &str, octets: &[u8]) {
        let text = String::from_utf8_lossy(octets);
        let number = || text.parse::<usize>().expect(&self.label);
        match event {
            "DELIVERED" => assert_delivered(&self.server, octets, &self.label),
            "MAIL" => {
                self.server.deliver("james@x.org", octets);
                self.delivered.extend(self.server.ids("james").pop());
            }
            "REMOVE" => {
                let id = &self.delivered[number() - 1];
                ureq::delete(self.server.url(&format!("/api/v1/mailbox/james/{id}"))).call().unwrap();
            }
            "LEFT" => assert_eq!(self.server.count("james"), number(), "{}", self.label),
            "APOP" => {
                let (user, password) = text.split_once(' ').expect(&self.label);
                let digest = pop3::digest(&self.greeting, password);
                self.write(format!("APOP {user} {digest}\r\n").as_bytes());
            }
            _ => panic!("{}: unknown event {event}", self.label),
        }
    }
}

/// Checks that the mailbox of the first recipient contains a message with exactly this body.
fn assert_delivered(server: &Server, text: &[u8], label: &str) {
    let find = |part: &[u8]| text.windows(part.len()).position(|window| window == part).unwrap() + part.len();
    let body = &text[find(b" body=\"")..text.len() - 1];
    let to = &text[find(b" to=<")..];
    let to = &to[..to.windows(1).position(|byte| byte == b">").unwrap()];
    let name = to.iter().fold(String::new(), |name, byte| format!("{name}%{byte:02X}"));
    let list = server.json(&format!("/api/v1/mailbox/{name}"));
    let delivered = list.as_array().unwrap().iter().any(|message| {
        let id = message["id"].as_str().unwrap();
        let source = server.bytes(&format!("/api/v1/mailbox/{name}/{id}/source"));
        let trace = source.windows(4).position(|window| window == b"  fo").unwrap();
        let trace = trace + source[trace..].windows(2).position(|window| window == b"\r\n").unwrap() + 2;
        source[trace..] == *body
    });
    assert!(delivered, "{label}: {} is not in {list}", String::from_utf8_lossy(text));
}
