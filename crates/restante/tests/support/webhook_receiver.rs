//! A webhook receiver: listens on loopback, records every request, and responds as the test wants.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;
use socket2::{Domain, Socket, Type};

use super::TEST_TIMEOUT;
use super::durability::eventually;

/// A webhook receiver. It runs until the process ends.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Requests>>,
    /// The bound socket until `listen` is called: the port is reserved, and connections are refused.
    socket: Mutex<Option<Socket>>,
    respond: Arc<ResponseFn>,
}

/// Returns the response to a request, given how often the same request was sent before. `None` means no response.
type ResponseFn = dyn Fn(&WebhookRequest, usize) -> Option<String> + Send + Sync;

/// All requests so far.
#[derive(Default)]
struct Requests {
    all: Vec<WebhookRequest>,
    /// How often each event was sent with the same request line. Scanning all requests would be too slow.
    times: HashMap<(String, String), usize>,
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct WebhookRequest {
    /// The method and the target of the request line: `POST /hook`.
    pub(crate) request_line: String,
    /// Names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) text: String,
    pub(crate) body: Value,
}

impl Receiver {
    /// Starts a receiver that accepts everything.
    pub(crate) fn start() -> Self {
        Self::responding_with(|_, _| Some(status(204)))
    }

    /// Starts a receiver with these responses.
    pub(crate) fn responding_with(
        respond: impl Fn(&WebhookRequest, usize) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        let receiver = Self::stopped(respond);
        receiver.listen();
        receiver
    }

    /// Returns a receiver that does not listen yet.
    pub(crate) fn stopped(respond: impl Fn(&WebhookRequest, usize) -> Option<String> + Send + Sync + 'static) -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        let address = socket.local_addr().unwrap().as_socket().unwrap();
        Self { address, requests: Arc::default(), socket: Mutex::new(Some(socket)), respond: Arc::new(respond) }
    }

    /// Starts to listen. Must be called once.
    pub(crate) fn listen(&self) {
        let socket = self.socket.lock().unwrap().take().expect("listen is called once");
        socket.listen(128).unwrap();
        let listener = TcpListener::from(socket);
        let (requests, respond) = (self.requests.clone(), self.respond.clone());
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (requests, respond) = (requests.clone(), respond.clone());
                thread::spawn(move || serve(stream, &requests, &*respond));
            }
        });
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns all requests so far.
    pub(crate) fn requests(&self) -> Vec<WebhookRequest> {
        self.requests.lock().unwrap().all.clone()
    }

    /// Waits for `count` requests, and returns all requests.
    pub(crate) fn wait_for(&self, count: usize) -> Vec<WebhookRequest> {
        eventually("the webhook is not called", || self.requests().len() >= count);
        self.requests()
    }
}

impl WebhookRequest {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("no header {name} in {self:?}"))
    }

    pub(crate) fn webhook_id(&self) -> &str {
        self.header("webhook-id")
    }

    pub(crate) fn subject(&self) -> &str {
        self.body["message"]["subject"].as_str().unwrap()
    }

    /// Returns the request line, event, mailbox and subject, for comparisons.
    pub(crate) fn short(&self) -> String {
        let word = |value: &Value| value.as_str().unwrap().to_owned();
        let (event, mailbox) = (word(&self.body["event"]), word(&self.body["message"]["mailbox"]));
        format!("{} {event} {mailbox} {}", self.request_line, self.subject())
    }
}

/// Returns a response without a body.
pub(crate) fn status(code: u16) -> String {
    format!("HTTP/1.1 {code} Whatever\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

/// Handles one request per connection.
fn serve(mut stream: TcpStream, requests: &Mutex<Requests>, respond: &ResponseFn) {
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    // A killed server closes the connection in the middle of a request.
    let Some(request) = read(&stream) else { return };
    let mut all = requests.lock().unwrap();
    all.all.push(request.clone());
    let times = all.times.entry((request.request_line.clone(), request.webhook_id().to_owned())).or_default();
    let before = *times;
    *times += 1;
    drop(all);
    match respond(&request, before) {
        Some(response) => drop(stream.write_all(response.as_bytes())),
        // Waits until the client closes the connection.
        None => drop(stream.read(&mut [0])),
    }
}

fn read(stream: &TcpStream) -> Option<WebhookRequest> {
    let mut input = BufReader::new(stream);
    let mut line = || {
        let mut line = String::new();
        input.read_line(&mut line).ok().filter(|&length| length > 0)?;
        Some(line.trim_end().to_owned())
    };
    let request_line = line()?.strip_suffix(" HTTP/1.1")?.to_owned();
    let mut headers = BTreeMap::new();
    while let Some((name, value)) = line()?.split_once(": ") {
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let mut bytes = vec![0; headers.get("content-length")?.parse().ok()?];
    input.read_exact(&mut bytes).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let body = serde_json::from_str(&text).ok()?;
    Some(WebhookRequest { request_line, headers, text, body })
}
