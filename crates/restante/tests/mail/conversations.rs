//! The conversations of `restante-proto`, held with the real program: over TCP, and over TLS from the first byte. The
//! same text files run on the bare state machines there.

#[path = "../../../proto/tests/script/mod.rs"]
mod script;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use script::{Script, Turn};

use crate::support::tls::Wire;
use crate::support::{Server, Talk, connect, pop3};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    Tcp,
    Tls,
}

/// What a folder of conversations is held in, the name of which is that of its settings too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Smtp,
    Pop3,
}

#[test]
fn smtp_goes_as_written_over_tcp() {
    run_all(Protocol::Smtp, Over::Tcp);
}

#[test]
fn smtp_goes_as_written_over_tls() {
    run_all(Protocol::Smtp, Over::Tls);
}

#[test]
fn pop3_goes_as_written_over_tcp() {
    run_all(Protocol::Pop3, Over::Tcp);
}

#[test]
fn pop3_goes_as_written_over_tls() {
    run_all(Protocol::Pop3, Over::Tls);
}

fn run_all(protocol: Protocol, over: Over) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../proto/tests").join(protocol.folder());
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let scripts: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|end| end == "txt")).collect();
    assert!(scripts.len() >= 40, "the conversations are not where they were");
    std::thread::scope(|scope| {
        for share in scripts.chunks(scripts.len().div_ceil(4)) {
            scope.spawn(move || share.iter().for_each(|path| run(protocol, path, over)));
        }
    });
}

fn run(protocol: Protocol, path: &Path, over: Over) {
    let script = Script::parse(&std::fs::read_to_string(path).unwrap());
    let name = path.file_stem().unwrap().to_string_lossy();
    let lmtp = script.sets("lmtp");
    let tls_enabled = format!("{}.tlsenabled", protocol.folder());
    if over == Over::Tls && (lmtp || script.sets(&tls_enabled) || script.says(protocol.start_tls())) {
        // LMTP has no listener with TLS from the first byte, and on such a one to start TLS means something else.
        return;
    }
    let mut arguments: Vec<String> = Vec::new();
    for (name, value) in script.settings.iter().filter(|(name, _)| name != "lmtp") {
        arguments.push(format!("--{}={value}", name.replace('.', "-")));
    }
    if lmtp {
        arguments.push("--lmtp-addr=127.0.0.1:0".to_owned());
    }
    if over == Over::Tls {
        let forced = ["tlsenabled", "tlscert=self-signed", "forcetls"];
        arguments.extend(forced.map(|setting| format!("--{}-{setting}", protocol.folder())));
    }
    let mut server = Server::start(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let address = if lmtp { server.address_of("LMTP listening on tcp4 ") } else { protocol.address(&mut server) };
    let mut talk = Talk::new(Wire::Plain(connect(address)));
    if over == Over::Tls {
        talk.stream.start_tls();
    }
    let about = format!("{protocol:?} {name} over {over:?}");
    Conversation { server, talk, about, greeting: String::new(), delivered: Vec::new() }.hold(&script);
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
    talk: Talk<Wire>,
    about: String,
    /// The first thing the server said.
    greeting: String,
    /// The ids of what was delivered to mailbox `james`.
    delivered: Vec<String>,
}

impl Conversation {
    fn hold(mut self, script: &Script) {
        for turn in &script.turns {
            match turn {
                Turn::Client(input) => self.write(input),
                Turn::Server(line) => assert_eq!(self.line().as_ref(), Some(line), "{}", self.about),
                Turn::ServerPrefix(prefix) => {
                    let line = self.line();
                    let fits = line.as_ref().is_some_and(|line| line.starts_with(prefix));
                    assert!(fits, "{}: {line:?}, not {prefix}", self.about);
                }
                Turn::ServerUntil(line) => while self.line().expect(&self.about) != *line {},
                Turn::Tls => self.talk.stream.start_tls(),
                Turn::Eof => assert_eq!(self.line(), None, "{}", self.about),
                Turn::Event(event, text) => self.happen(event, text),
            }
        }
    }

    /// A server that has had enough closes while we are still writing; what it said is read behind it.
    fn write(&mut self, input: &[u8]) {
        let _ = self.talk.stream.write_all(input).and_then(|()| self.talk.stream.flush());
    }

    fn line(&mut self) -> Option<String> {
        let line = self.talk.line()?;
        if self.greeting.is_empty() {
            self.greeting.clone_from(&line);
        }
        Some(line)
    }

    fn happen(&mut self, event: &str, octets: &[u8]) {
        let text = String::from_utf8_lossy(octets);
        let number = || text.parse::<usize>().expect(&self.about);
        match event {
            "DELIVERED" => assert_delivered(&self.server, octets, &self.about),
            "MAIL" => {
                self.server.deliver("james@x.org", octets);
                self.delivered.extend(self.server.ids("james").pop());
            }
            "REMOVE" => {
                let id = &self.delivered[number() - 1];
                ureq::delete(self.server.url(&format!("/api/v1/mailbox/james/{id}"))).call().unwrap();
            }
            "LEFT" => assert_eq!(self.server.count("james"), number(), "{}", self.about),
            "APOP" => {
                let (user, password) = text.split_once(' ').expect(&self.about);
                let digest = pop3::digest(&self.greeting, password);
                self.write(format!("APOP {user} {digest}\r\n").as_bytes());
            }
            _ => panic!("{}: unknown event {event}", self.about),
        }
    }
}

/// Whether the mailbox of the first recipient holds the mail with just this body.
fn assert_delivered(server: &Server, text: &[u8], about: &str) {
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
    assert!(delivered, "{about}: {} is not in {list}", String::from_utf8_lossy(text));
}
