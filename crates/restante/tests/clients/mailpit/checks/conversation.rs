//! Conversations in the format of `crates/proto/tests/README.md`. Each check is one line of it: a reply (`S~`, `S*`), the end
//! of the connection (`EOF`), or one of these:
//!
//! | line | checks |
//! |---|---|
//! | `+ text`, `- text` | the last reply has a line, or no line, with this text after the code |
//! | `LINES n` | a reply of several lines follows: n lines, and a dot |
//! | `STORED n` | the server has n messages |
//! | `RECIPIENTS a, b` | the newest message has these recipients |
//! | `HAS text`, `ENDS text` | the source of the newest message contains this text, or ends with it |
//!
//! `MAILS n` sends n messages to the mailbox `ann`. `R answer | reason` after a check means that Restante answers differently. The
//! answer after `+ text` or `- text` is `+` or `-`. A setting (`@`) is a variable of the server.

#[path = "../../../../../proto/tests/script/mod.rs"]
mod script;

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use script::{Script, Turn};
use serde_json::Value;

use super::Checks;
use crate::mailpit::differential::mails::Mail;
use crate::mailpit::differential::side::deliver;
use crate::mailpit::server::Server;
use crate::support::tls::ClientStream;
use crate::support::{LineConnection, TEST_TIMEOUT, connect};

/// Servers by their variables.
pub(super) type Servers = BTreeMap<Vec<(String, String)>, Server>;

/// Runs all conversations of a folder. `address` is the address of the protocol.
pub(super) fn run_folder(checks: &mut Checks, folder: &str, address: fn(&Server) -> SocketAddr) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/mailpit/checks").join(folder);
    let mut paths: Vec<_> = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut servers = Servers::new();
    for path in paths {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        run(checks, &mut servers, &name, &std::fs::read_to_string(&path).unwrap(), address);
    }
}

/// Runs one conversation, with a server that has no messages.
pub(super) fn run(
    checks: &mut Checks,
    servers: &mut Servers,
    name: &str,
    text: &str,
    address: fn(&Server) -> SocketAddr,
) {
    let script = Script::parse(text);
    let server = servers.entry(script.settings).or_insert_with_key(|settings| {
        let variables: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (&**name, &**value)).collect();
        Server::start(&checks.program, &variables)
    });
    ureq::delete(server.url("/api/v1/messages")).call().unwrap();
    let mut turns = script.turns.into_iter().peekable();
    // Messages that are in the mailbox before the connection.
    while let Some(Turn::Event(_, count)) =
        turns.next_if(|turn| matches!(turn, Turn::Event(name, _) if name == "MAILS"))
    {
        send_mails(server, text_of(count).parse().unwrap());
    }
    let mut client = Client {
        server,
        connection: LineConnection::new(ClientStream::Plain(connect_when_ready(address(server)))),
        reply: String::new(),
    };
    let mut command = String::new();
    while let Some(turn) = turns.next() {
        let (kind, expected) = match turn {
            Turn::Client(bytes) => {
                command = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
                client.connection.send(bytes);
                continue;
            }
            Turn::Tls => {
                client.connection.stream.start_tls();
                continue;
            }
            Turn::ServerPrefix(text) => ("S~".to_owned(), text),
            Turn::Eof => ("EOF".to_owned(), String::new()),
            Turn::Event(name, text) => (name, text_of(text)),
            Turn::ServerUntil(text) => ("S*".to_owned(), text),
            Turn::Server(text) => panic!("{name}: write S~ {text}"),
        };
        let other = turns.next_if(|turn| matches!(turn, Turn::Event(name, _) if name == "R")).map(|turn| {
            let Turn::Event(_, text) = turn else { unreachable!() };
            let text = text_of(text);
            let (answer, reason) = text.split_once(" | ").unwrap_or_else(|| panic!("{name}: {text} has no reason"));
            (answer.to_owned(), reason.to_owned())
        });
        let mailpit = if matches!(&*kind, "+" | "-") { kind.clone() } else { expected.clone() };
        let answers = [Some(&mailpit), other.as_ref().map(|(answer, _)| answer)];
        let actual = client.answer(&kind, &expected, &answers);
        let what = format!("{name}, {kind} {expected} after {command:?}");
        let restante = other.as_ref().map(|(answer, reason)| (Value::from(answer.as_str()), reason));
        let restante = restante.as_ref().map(|(answer, reason)| (answer, reason.as_str()));
        let passed = checks.check(&what, &actual.as_str().into(), &mailpit.into(), restante);
        // After a wrong reply of another kind, the client and the server do not agree on what the next line is.
        if !passed && (actual == CLOSED || actual.starts_with('3') || expected.starts_with('3')) {
            return;
        }
    }
}

/// The reply of a closed connection.
const CLOSED: &str = "the connection is closed";

/// The client's end of a conversation.
struct Client<'a> {
    server: &'a Server,
    connection: LineConnection<ClientStream>,
    /// The last reply, with all of its lines.
    reply: String,
}

impl Client<'_> {
    /// Returns what the server answers to a check: one of these answers, or another text.
    fn answer(&mut self, kind: &str, text: &str, answers: &[Option<&String>; 2]) -> String {
        match kind {
            "S~" => {
                self.reply = self.next_reply();
                let prefix = answers.iter().flatten().find(|answer| self.reply.starts_with(**answer));
                prefix.map_or_else(|| self.reply.clone(), |answer| (*answer).clone())
            }
            "S*" => std::iter::from_fn(|| self.connection.line()).find(|line| line == text).unwrap_or_default(),
            "EOF" => self.end(),
            "+" | "-" => {
                let has_line = self.reply.lines().any(|line| line.get(4..).is_some_and(|line| line.starts_with(text)));
                if has_line { "+" } else { "-" }.to_owned()
            }
            "LINES" => std::iter::from_fn(|| self.connection.line()).take_while(|line| line != ".").count().to_string(),
            "STORED" => self.stored(answers),
            "RECIPIENTS" => self.recipients(),
            "HAS" | "ENDS" => {
                let source = self.get("/api/v1/message/latest/raw");
                let is_found = |text: &str| if kind == "HAS" { source.contains(text) } else { source.ends_with(text) };
                let found = answers.iter().flatten().find(|answer| is_found(answer.as_str()));
                found.map_or_else(|| source.clone(), |answer| (*answer).clone())
            }
            _ => panic!("unknown check {kind}"),
        }
    }

    /// Returns the lines of the next reply.
    fn next_reply(&mut self) -> String {
        let mut reply = String::new();
        loop {
            let Some(line) = self.connection.line() else { return CLOSED.to_owned() };
            let is_last = line.as_bytes().get(3) != Some(&b'-') || line.starts_with('-');
            reply += &line;
            if is_last {
                return reply;
            }
            reply.push('\n');
        }
    }

    /// Returns an empty text if the server has closed the connection. Mailpit closes TLS without a notice.
    fn end(&mut self) -> String {
        loop {
            return match self.connection.stream.read(&mut [0]).map_err(|error| error.kind()) {
                Ok(0) | Err(ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => String::new(),
                // A read with a timeout is interrupted if the process was stopped for a while.
                Err(ErrorKind::Interrupted) => continue,
                other => format!("{other:?}"),
            };
        }
    }

    /// Returns the number of messages, as soon as it is one of these: Mailpit deletes after its reply to QUIT.
    fn stored(&self, answers: &[Option<&String>; 2]) -> String {
        let deadline = Instant::now() + TEST_TIMEOUT;
        loop {
            let total = self.json("/api/v1/messages?limit=0")["total"].to_string();
            if answers.contains(&Some(&total)) || Instant::now() > deadline {
                return total;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn recipients(&self) -> String {
        let message = self.json("/api/v1/message/latest");
        let fields = ["To", "Cc", "Bcc"].into_iter().flat_map(|field| message[field].as_array().into_iter().flatten());
        let mut addresses: Vec<&str> = fields.filter_map(|address| address["Address"].as_str()).collect();
        addresses.sort_unstable();
        addresses.join(", ")
    }

    fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.get(path)).unwrap()
    }

    fn get(&self, path: &str) -> String {
        ureq::get(self.server.url(path)).call().unwrap().body_mut().read_to_string().unwrap()
    }
}

/// Connects to a server that is ready or is about to listen: Mailpit starts POP3 last.
fn connect_when_ready(address: SocketAddr) -> TcpStream {
    let deadline = Instant::now() + TEST_TIMEOUT;
    while TcpStream::connect_timeout(&address, TEST_TIMEOUT).is_err() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    connect(address)
}

/// Sends messages to the mailbox `ann`.
fn send_mails(server: &Server, count: usize) {
    let text = |number| format!("From: bob@two.test\nTo: ann@one.test\nSubject: Message {number}\n\nText {number}\n");
    let mail = |number: usize| Mail::new(&format!("mail-{number}"), &text(number)).to(&["ann@one.test"]);
    deliver(server, &(1..=count).map(mail).collect::<Vec<_>>());
}

fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}
