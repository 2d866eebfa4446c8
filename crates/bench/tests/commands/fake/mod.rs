//! A fake mail server: stores messages in memory, lists them as chunked JSON, also in the API of Mailpit, sends events to
//! monitors, serves POP3 and IMAP and can misbehave. It listens on a free port of loopback. Its threads run until the test
//! process ends.

mod imap;
mod mailpit;
mod monitor;
mod pop3;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// The behavior of the server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behavior {
    /// Stores every message that it acknowledges.
    Honest,
    /// Acknowledges every message and stores all but each tenth.
    LosesEachTenth,
    /// Stores each tenth message twice.
    DoublesEachTenth,
    /// Refuses the recipient of each tenth transaction, but still replies 354 to DATA.
    RefusesEachTenth,
    /// Closes the connection instead of acknowledging each tenth message.
    DropsEachTenth,
    /// Empties a mailbox when it is listed for the sixth time.
    EmptiesAtSixthList,
    /// Disconnects each monitor after twenty events because it lagged.
    DisconnectsMonitors,
    /// Sends no event about each tenth message.
    OmitsEachTenthEvent,
    /// Sends the event about each tenth message twice.
    RepeatsEachTenthEvent,
}

/// A running server.
pub(crate) struct FakeServer {
    pub(crate) smtp: SocketAddr,
    pub(crate) http: SocketAddr,
    pub(crate) pop3: SocketAddr,
    pub(crate) imap: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    sessions: usize,
    messages: usize,
    transactions: usize,
    largest_batch: usize,
    mailboxes: HashMap<String, Vec<Stored>>,
    /// How often each mailbox was listed.
    list_counts: HashMap<String, usize>,
    monitors: monitor::EventHub,
}

struct Stored {
    id: usize,
    subject: String,
    source: String,
}

impl FakeServer {
    pub(crate) fn start(behavior: Behavior) -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let smtp = listen(move |stream| smtp_session(stream, behavior, &shared));
        let shared = Arc::clone(&state);
        let http = listen(move |stream| http_session(stream, behavior, &shared));
        let shared = Arc::clone(&state);
        let pop3 = listen(move |stream| pop3::session(stream, &shared));
        let shared = Arc::clone(&state);
        let imap = listen(move |stream| imap::session(stream, behavior, &shared));
        Self { smtp, http, pop3, imap, state }
    }

    /// Returns the number of pings that monitors have answered.
    pub(crate) fn pongs(&self) -> usize {
        self.state.lock().unwrap().monitors.pongs
    }

    /// Returns the number of SMTP sessions.
    pub(crate) fn sessions(&self) -> usize {
        self.state.lock().unwrap().sessions
    }

    /// Returns the number of messages whose data was complete.
    pub(crate) fn messages(&self) -> usize {
        self.state.lock().unwrap().messages
    }

    /// Returns the maximum number of commands that were available at once. It is more than one only if the client
    /// pipelines.
    pub(crate) fn largest_batch(&self) -> usize {
        self.state.lock().unwrap().largest_batch
    }

    /// Returns the number of messages in a mailbox.
    pub(crate) fn stored(&self, mailbox: &str) -> usize {
        self.state.lock().unwrap().mailboxes.get(mailbox).map_or(0, Vec::len)
    }
}

fn listen(serve: impl Fn(TcpStream) -> Option<()> + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            stream.set_nodelay(true).unwrap();
            let serve = Arc::clone(&serve);
            thread::spawn(move || serve(stream));
        }
    });
    address
}

/// Serves one client. Returns `None` when it disconnects.
fn smtp_session(stream: TcpStream, behavior: Behavior, state: &Mutex<State>) -> Option<()> {
    let mut output = stream.try_clone().ok()?;
    let mut input = BufReader::new(stream);
    let mut send = |text: &str| output.write_all(text.as_bytes()).ok();
    state.lock().unwrap().sessions += 1;
    send("220-fake.example\r\n220 ready\r\n")?;
    let mut recipients: Vec<String> = Vec::new();
    loop {
        let line = next_line(&mut input)?;
        let available = 1 + input.buffer().lines().count();
        {
            let mut state = state.lock().unwrap();
            state.largest_batch = state.largest_batch.max(available);
        }
        let verb = line.split([' ', ':']).next()?;
        match verb {
            "EHLO" => send("250-fake.example\r\n250-SIZE\r\n250 PIPELINING\r\n")?,
            "RSET" => {
                recipients.clear();
                send("250 reset\r\n")?;
            }
            "MAIL" => send("250 sender\r\n")?,
            "RCPT" => {
                let transaction = {
                    let mut state = state.lock().unwrap();
                    state.transactions += 1;
                    state.transactions
                };
                if behavior == Behavior::RefusesEachTenth && transaction.is_multiple_of(10) {
                    send("451 4.3.0 not today\r\n")?;
                    continue;
                }
                recipients.push(line.split(['<', '@']).nth(1)?.to_owned());
                send("250 recipient\r\n")?;
            }
            "DATA" => {
                send("354 go ahead\r\n")?;
                let source = data(&mut input)?;
                if recipients.is_empty() {
                    assert_eq!(source, "", "RFC 2920: nothing is sent without a recipient");
                    send("554 no recipients\r\n")?;
                } else {
                    store(state, behavior, std::mem::take(&mut recipients), &source)?;
                    send("250 stored\r\n")?;
                }
            }
            "QUIT" => return send("221 bye\r\n"),
            _ => send("500 what\r\n")?,
        }
    }
}

fn data(input: &mut impl BufRead) -> Option<String> {
    let mut source = String::new();
    loop {
        match next_line(input)?.as_str() {
            "." => return Some(source),
            line => source.extend([line, "\r\n"]),
        }
    }
}

/// Stores a message. Returns `None` if the connection must be closed.
fn store(state: &Mutex<State>, behavior: Behavior, recipients: Vec<String>, source: &str) -> Option<()> {
    let mut state = state.lock().unwrap();
    state.messages += 1;
    let is_tenth = state.messages.is_multiple_of(10);
    let copies = match behavior {
        Behavior::LosesEachTenth if is_tenth => 0,
        Behavior::DoublesEachTenth if is_tenth => 2,
        Behavior::DropsEachTenth if is_tenth => return None,
        _ => 1,
    };
    let event_count = match behavior {
        Behavior::OmitsEachTenthEvent if is_tenth => 0,
        Behavior::RepeatsEachTenthEvent if is_tenth => 2,
        _ => 1,
    };
    let subject = source.lines().find_map(|line| line.strip_prefix("Subject: ")).unwrap_or_default();
    for mailbox in recipients {
        for _ in 0..event_count {
            state.monitors.publish(&mailbox, subject);
        }
        for _ in 0..copies {
            let messages = state.mailboxes.entry(mailbox.clone()).or_default();
            messages.push(Stored {
                id: messages.last().map_or(1, |last| last.id + 1),
                subject: subject.to_owned(),
                source: source.to_owned(),
            });
        }
    }
    Some(())
}

fn http_session(stream: TcpStream, behavior: Behavior, state: &Mutex<State>) -> Option<()> {
    let mut output = stream.try_clone().ok()?;
    let mut input = BufReader::new(stream);
    loop {
        let request = next_line(&mut input)?;
        let fields = fields(&mut input)?;
        let mut words = request.split(' ');
        let (method, path) = (words.next()?, words.next()?);
        if let Some(request) = monitor::MonitorRequest::parse(path, &fields) {
            return monitor::session(output, &request, behavior, state);
        }
        if let Some(response) = mailpit::respond(method, path, &mut state.lock().unwrap()) {
            output.write_all(response.as_bytes()).ok()?;
            continue;
        }
        let segments: Vec<&str> = path.trim_start_matches("/api/v1/mailbox/").split('/').collect();
        let mut state = state.lock().unwrap();
        if behavior == Behavior::EmptiesAtSixthList && method == "GET" {
            let count = state.list_counts.entry(segments[0].to_owned()).or_default();
            *count += 1;
            if *count == 6 {
                state.mailboxes.remove(segments[0]);
            }
        }
        let response = respond(method, &segments, &mut state);
        drop(state);
        output.write_all(response.as_bytes()).ok()?;
    }
}

fn fields(input: &mut impl BufRead) -> Option<Vec<String>> {
    let mut fields = Vec::new();
    loop {
        match next_line(input)? {
            line if line.is_empty() => return Some(fields),
            line => fields.push(line),
        }
    }
}

fn respond(method: &str, segments: &[&str], state: &mut State) -> String {
    let messages = state.mailboxes.entry(segments[0].to_owned()).or_default();
    let find = |id: &str| match id {
        "latest" => messages.len().checked_sub(1),
        id => messages.iter().position(|message| message.id.to_string() == id),
    };
    match (method, &segments[1..]) {
        ("GET", []) => {
            let entry =
                |m: &Stored| format!(r#"{{"id":"{}","subject":"{}","size":{}}}"#, m.id, m.subject, m.source.len());
            let entries: Vec<_> = messages.iter().map(entry).collect();
            chunked(&format!("[{}]", entries.join(",")))
        }
        ("GET", [id] | [id, "source"]) => match find(id) {
            Some(at) => sized("200 OK", &messages[at].source),
            None => sized("404 Not Found", "no such message"),
        },
        ("DELETE", []) => {
            messages.clear();
            sized("200 OK", "\"OK\"")
        }
        ("DELETE", [id]) => match find(id) {
            Some(at) => {
                messages.remove(at);
                sized("200 OK", "\"OK\"")
            }
            None => sized("404 Not Found", "no such message"),
        },
        _ => sized("405 Method Not Allowed", ""),
    }
}

fn sized(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn chunked(body: &str) -> String {
    let mut response = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned();
    for chunk in body.as_bytes().chunks(1000) {
        let length = format!("{:x}\r\n", chunk.len());
        response.extend([&length, &*String::from_utf8_lossy(chunk), "\r\n"]);
    }
    response + "0\r\n\r\n"
}

fn next_line(input: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    let length = input.read_line(&mut line).ok()?;
    (length > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned())
}
