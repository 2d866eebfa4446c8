//! A program that is told by webhooks: it listens on loopback, writes down every request, and answers as a test wants.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;
use socket2::{Domain, Socket, Type};

use super::LONG;
use super::durability::eventually;

/// See the file's documentation. It goes on until the process ends.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Requests>>,
    /// As long as it does not listen: the port is taken, and every connection refused.
    socket: Mutex<Option<Socket>>,
    manner: Arc<Manner>,
}

/// What is answered to a request, given how often the same was asked before. Nothing means that nobody ever answers.
type Manner = dyn Fn(&Told, usize) -> Option<String> + Send + Sync;

/// All requests so far.
#[derive(Default)]
struct Requests {
    told: Vec<Told>,
    /// How often each event was sent by the same first line. Looking through all requests for it takes too long in a flood.
    times: HashMap<(String, String), usize>,
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    /// As in the first line: `POST /hook`.
    pub(crate) what: String,
    /// Names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) text: String,
    pub(crate) body: Value,
}

impl Receiver {
    /// One that takes everything.
    pub(crate) fn start() -> Self {
        Self::answering(|_, _| Some(status(204)))
    }

    /// One that answers so.
    pub(crate) fn answering(manner: impl Fn(&Told, usize) -> Option<String> + Send + Sync + 'static) -> Self {
        let receiver = Self::asleep(manner);
        receiver.wake();
        receiver
    }

    /// One that is not there yet.
    pub(crate) fn asleep(manner: impl Fn(&Told, usize) -> Option<String> + Send + Sync + 'static) -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        let address = socket.local_addr().unwrap().as_socket().unwrap();
        Self { address, requests: Arc::default(), socket: Mutex::new(Some(socket)), manner: Arc::new(manner) }
    }

    /// From now on it is there.
    pub(crate) fn wake(&self) {
        let socket = self.socket.lock().unwrap().take().expect("it is woken once");
        socket.listen(128).unwrap();
        let listener = TcpListener::from(socket);
        let (requests, manner) = (self.requests.clone(), self.manner.clone());
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (requests, manner) = (requests.clone(), manner.clone());
                thread::spawn(move || serve(stream, &requests, &*manner));
            }
        });
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// All requests so far.
    pub(crate) fn told(&self) -> Vec<Told> {
        self.requests.lock().unwrap().told.clone()
    }

    /// Waits for so many requests, and returns all of them.
    pub(crate) fn wait_for(&self, count: usize) -> Vec<Told> {
        eventually("the webhook is not told", || self.told().len() >= count);
        self.told()
    }
}

impl Told {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("there is no {name} in {self:?}"))
    }

    pub(crate) fn name(&self) -> &str {
        self.header("webhook-id")
    }

    pub(crate) fn subject(&self) -> &str {
        self.body["message"]["subject"].as_str().unwrap()
    }

    /// Event, mailbox and subject, for comparisons.
    pub(crate) fn short(&self) -> String {
        let word = |value: &Value| value.as_str().unwrap().to_owned();
        let (event, mailbox) = (word(&self.body["event"]), word(&self.body["message"]["mailbox"]));
        format!("{} {event} {mailbox} {}", self.what, self.subject())
    }
}

/// An answer without a body.
pub(crate) fn status(code: u16) -> String {
    format!("HTTP/1.1 {code} Whatever\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

/// One request for each connection.
fn serve(mut stream: TcpStream, requests: &Mutex<Requests>, manner: &Manner) {
    stream.set_read_timeout(Some(LONG)).unwrap();
    // A server that is killed may break off.
    let Some(request) = read(&stream) else { return };
    let mut all = requests.lock().unwrap();
    all.told.push(request.clone());
    let times = all.times.entry((request.what.clone(), request.name().to_owned())).or_default();
    let before = *times;
    *times += 1;
    drop(all);
    match manner(&request, before) {
        Some(answer) => drop(stream.write_all(answer.as_bytes())),
        // Until the other side has had enough.
        None => drop(stream.read(&mut [0])),
    }
}

fn read(stream: &TcpStream) -> Option<Told> {
    let mut input = BufReader::new(stream);
    let mut line = || {
        let mut line = String::new();
        input.read_line(&mut line).ok().filter(|&length| length > 0)?;
        Some(line.trim_end().to_owned())
    };
    let what = line()?.strip_suffix(" HTTP/1.1")?.to_owned();
    let mut headers = BTreeMap::new();
    while let Some((name, value)) = line()?.split_once(": ") {
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let mut bytes = vec![0; headers.get("content-length")?.parse().ok()?];
    input.read_exact(&mut bytes).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let body = serde_json::from_str(&text).ok()?;
    Some(Told { what, headers, text, body })
}
