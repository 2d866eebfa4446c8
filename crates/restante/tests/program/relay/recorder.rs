//! A mail server that records the subject and the recipients of every message, and that can be stopped at any moment. It records a
//! message before it accepts it, so a message can be recorded without being acknowledged, but not the other way round.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use restante_testpg::ReservedPort;

/// A mail server.
pub(crate) struct Recorder {
    port: ReservedPort,
    state: Arc<State>,
    listener: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Default)]
struct Inner {
    /// How often each message arrived, by subject and recipient.
    arrived: BTreeMap<(String, String), usize>,
    is_stopping: bool,
    /// Whether messages are kept waiting for the final reply.
    is_holding: bool,
    held: usize,
    connections: Vec<TcpStream>,
}

impl Recorder {
    /// Starts a server.
    pub(crate) fn start() -> Self {
        let mut recorder = Self { port: ReservedPort::new(), state: Arc::default(), listener: None };
        recorder.start_again();
        recorder
    }

    /// Starts a server that does not reply to the end of messages until [`Self::resume`] is called.
    pub(crate) fn start_holding() -> Self {
        let recorder = Self::start();
        recorder.state.inner.lock().unwrap().is_holding = true;
        recorder
    }

    /// Starts to listen again after [`Self::stop`].
    pub(crate) fn start_again(&mut self) {
        let (state, listener) = (self.state.clone(), TcpListener::bind(self.port.address()).unwrap());
        listener.set_nonblocking(true).unwrap();
        state.inner.lock().unwrap().is_stopping = false;
        self.listener = Some(thread::spawn(move || accept(&listener, &state)));
    }

    /// Breaks all connections, and refuses new ones.
    pub(crate) fn stop(&mut self) {
        self.state.inner.lock().unwrap().is_stopping = true;
        self.state.changed.notify_all();
        if let Some(listener) = self.listener.take() {
            listener.join().unwrap();
        }
        for connection in self.state.inner.lock().unwrap().connections.drain(..) {
            // The client may have closed it.
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    /// Replies to all messages again.
    pub(crate) fn resume(&self) {
        self.state.inner.lock().unwrap().is_holding = false;
        self.state.changed.notify_all();
    }

    /// Returns the number of messages that wait for the final reply.
    pub(crate) fn held(&self) -> usize {
        self.state.inner.lock().unwrap().held
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Returns an entry of `relay.targets`: its name is `recorder`, and all recipients are allowed.
    pub(crate) fn target(&self) -> String {
        format!("recorder smtp://{} starttls=never allow=*", self.address())
    }

    /// Returns how often each message arrived, by subject and recipient.
    pub(crate) fn arrived(&self) -> BTreeMap<(String, String), usize> {
        self.state.inner.lock().unwrap().arrived.clone()
    }

    /// Returns whether a message has arrived for a recipient.
    pub(crate) fn has(&self, subject: &str, recipient: &str) -> bool {
        let key = (subject.to_owned(), recipient.to_owned());
        self.state.inner.lock().unwrap().arrived.contains_key(&key)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.stop();
    }
}

fn accept(listener: &TcpListener, state: &Arc<State>) {
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).unwrap();
                state.inner.lock().unwrap().connections.push(stream.try_clone().unwrap());
                let state = state.clone();
                // An error means that one side has closed the connection.
                thread::spawn(move || drop(serve(&stream, &state)));
            }
            Err(_) if state.inner.lock().unwrap().is_stopping => return,
            Err(_) => thread::sleep(Duration::from_millis(2)),
        }
    }
}

fn serve(mut stream: &TcpStream, state: &State) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut input = BufReader::new(stream);
    let (mut recipients, mut line) = (Vec::new(), String::new());
    stream.write_all(b"220 recorder.test\r\n")?;
    loop {
        line.clear();
        if input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let command = line.trim_end();
        let verb = command.split([' ', ':']).next().unwrap_or_default().to_ascii_uppercase();
        let reply = match verb.as_str() {
            "EHLO" => "250-recorder.test\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250 PIPELINING",
            "RCPT" => {
                let address = command.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
                recipients.push(address.map_or("", |(address, _)| address).to_owned());
                "250 OK"
            }
            "DATA" => {
                stream.write_all(b"354 go on\r\n")?;
                let subject = read_message(&mut input)?;
                for recipient in std::mem::take(&mut recipients) {
                    let arrived = &mut state.inner.lock().unwrap().arrived;
                    *arrived.entry((subject.clone(), recipient)).or_default() += 1;
                }
                wait_while_holding(state);
                "250 OK"
            }
            "MAIL" | "RSET" => {
                recipients.clear();
                "250 OK"
            }
            "QUIT" => return stream.write_all(b"221 bye\r\n"),
            _ => "250 OK",
        };
        stream.write_all(format!("{reply}\r\n").as_bytes())?;
    }
}

fn wait_while_holding(state: &State) {
    let mut inner = state.inner.lock().unwrap();
    inner.held += 1;
    inner = state.changed.wait_while(inner, |inner| inner.is_holding && !inner.is_stopping).unwrap();
    inner.held -= 1;
}

/// Reads a message to its end. Returns its subject.
fn read_message(input: &mut BufReader<&TcpStream>) -> io::Result<String> {
    let (mut subject, mut line) = (String::new(), Vec::new());
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let text = String::from_utf8_lossy(&line);
        match text.strip_prefix("Subject: ") {
            Some(value) if subject.is_empty() => value.trim_end().clone_into(&mut subject),
            _ if text == ".\r\n" => return Ok(subject),
            _ => {}
        }
    }
}
