//! Starts the real program on free ports of the loopback interface, and talks to it.

#![allow(dead_code, reason = "every test program uses its own part of this")]

pub(crate) mod disk;
pub(crate) mod durability;
pub(crate) mod exposition;
pub(crate) mod installed;
pub(crate) mod monitor;
pub(crate) mod pop3;
pub(crate) mod random;
pub(crate) mod rest;
pub(crate) mod smtp;
pub(crate) mod tls;
pub(crate) mod webhook_receiver;

use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Longer than anything here takes; a test that waits so long has failed.
pub(crate) const LONG: Duration = Duration::from_mins(1);

/// A running server; killed when dropped.
pub(crate) struct Server {
    child: Child,
    log: Receiver<String>,
    seen: Vec<String>,
    pub(crate) smtp: SocketAddr,
    /// Where `web.addr` is, whatever is spoken there.
    pub(crate) http: SocketAddr,
}

/// The program with a clean environment and free ports; more arguments may follow.
pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_restante"));
    for (name, _) in std::env::vars_os() {
        let ours = name.to_str().is_some_and(|name| name.starts_with("RESTANTE_") || name.starts_with("INBUCKET_"));
        if ours {
            command.env_remove(name);
        }
    }
    for listener in ["--smtp-addr", "--pop3-addr", "--web-addr"] {
        command.args([listener, "127.0.0.1:0"]);
    }
    command.args(["--smtp-domain", "mx.test", "--pop3-domain", "mx.test"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

impl Server {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::spawn(command().args(arguments))
    }

    /// Starts the command and waits until it says where it listens.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        Self::try_spawn(command).unwrap_or_else(|(status, log)| panic!("the server ended with {status}: {log}"))
    }

    /// Starts the command and waits until it says where it listens, or ends: how, and what it has logged.
    pub(crate) fn try_spawn(command: &mut Command) -> Result<Self, (ExitStatus, String)> {
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, log) = channel();
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let mut server = Self { child, log, seen: Vec::new(), smtp: nowhere, http: nowhere };
        // The first of them is where `web.addr` is.
        let listens = ["HTTP listening on tcp4 ", "HTTPS listening on tcp4 "];
        let web = |server: &Self| listens.into_iter().find(|text| server.seen.iter().any(|line| line.contains(text)));
        while web(&server).is_none() {
            match server.log.recv_timeout(LONG) {
                Ok(line) => server.seen.push(line),
                Err(RecvTimeoutError::Disconnected) => return Err((server.wait(), server.whole_log())),
                Err(RecvTimeoutError::Timeout) => panic!("the server does not start: {:?}", server.seen),
            }
        }
        server.smtp = server.address_of("SMTP listening on tcp4 ");
        if let Some(text) = web(&server) {
            server.http = server.address_of(text);
        }
        Ok(server)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a log line that holds this text, and returns the line.
    pub(crate) fn logged(&mut self, text: &str) -> String {
        self.logged_any(&[text])
    }

    /// Waits for a log line that holds one of these texts, and returns the line.
    pub(crate) fn logged_any(&mut self, texts: &[&str]) -> String {
        let holds = |line: &String| texts.iter().any(|text| line.contains(text));
        if let Some(line) = self.seen.iter().find(|line| holds(line)) {
            return line.clone();
        }
        let deadline = Instant::now() + LONG;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line =
                self.log.recv_timeout(left).unwrap_or_else(|_| panic!("{texts:?} was not logged: {:?}", self.seen));
            self.seen.push(line.clone());
            if holds(&line) {
                return line;
            }
        }
    }

    /// Everything that was logged; the server must have ended.
    pub(crate) fn whole_log(&mut self) -> String {
        self.seen.extend(self.log.iter());
        self.seen.join("\n")
    }

    pub(crate) fn address_of(&mut self, text: &str) -> SocketAddr {
        let line = self.logged(text);
        let (_, address) = line.split_once(text).unwrap();
        address.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().unwrap()
    }

    /// Closes the pipe that the log goes to, as soon as one more line has come through it.
    pub(crate) fn stop_reading_the_log(&mut self) {
        self.log = channel().1;
        drop(self.talk());
    }

    /// Sends a signal by name: TERM, HUP, INT.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("sh").args(["-c", &format!("kill -{name} {}", self.pid())]).status().unwrap();
        assert!(sent.success());
    }

    /// Ends the process as `kill -9` does, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        self.wait();
    }

    /// Whether the process has not ended.
    pub(crate) fn lives(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for the end of the process.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + LONG;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the server did not end: {:?}", self.seen);
    }

    pub(crate) fn talk(&self) -> Talk<TcpStream> {
        Talk::new(connect(self.smtp))
    }

    /// Hands in a mail for somebody, byte for byte.
    pub(crate) fn deliver(&self, to: &str, mail: &[u8]) {
        let mut talk = self.talk();
        talk.open_mail(to);
        talk.send([format!("BDAT {} LAST\r\n", mail.len()).as_bytes(), mail].concat());
        talk.expect("250");
        talk.say("QUIT", "221");
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.http)
    }

    /// The parsed JSON answer to a GET.
    pub(crate) fn json(&self, path: &str) -> serde_json::Value {
        let mut answer = ureq::get(self.url(path)).call().unwrap();
        serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap()
    }

    /// The bytes of an answer to a GET.
    pub(crate) fn bytes(&self, path: &str) -> Vec<u8> {
        ureq::get(self.url(path)).call().unwrap().body_mut().read_to_vec().unwrap()
    }

    /// The ids of the messages in a mailbox.
    pub(crate) fn ids(&self, mailbox: &str) -> Vec<String> {
        let list = self.json(&format!("/api/v1/mailbox/{mailbox}"));
        list.as_array().unwrap().iter().map(|message| message["id"].as_str().unwrap().to_owned()).collect()
    }

    /// How many messages a mailbox holds.
    pub(crate) fn count(&self, mailbox: &str) -> usize {
        self.json(&format!("/api/v1/mailbox/{mailbox}")).as_array().unwrap().len()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&address, LONG).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.set_write_timeout(Some(LONG)).unwrap();
    stream
}

/// A conversation in lines.
pub(crate) struct Talk<S> {
    pub(crate) stream: S,
    read: Vec<u8>,
}

impl<S: std::io::Read + std::io::Write> Talk<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, read: Vec::new() }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
        self.stream.flush().unwrap();
    }

    /// The next line without its CRLF; `None` when the server has closed.
    pub(crate) fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.read.windows(2).position(|pair| pair == b"\r\n") {
                let line = String::from_utf8_lossy(&self.read[..end]).into_owned();
                self.read.drain(..end + 2);
                return Some(line);
            }
            let mut chunk = [0; 4096];
            match self.stream.read(&mut chunk) {
                Ok(0) => return None,
                Ok(count) => self.read.extend_from_slice(&chunk[..count]),
                // So end reads with a timeout when the process was stopped for a while.
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                // A server that closes with input unread resets the connection.
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("waited for a line, got {error}, have {:?}", String::from_utf8_lossy(&self.read)),
            }
        }
    }

    /// The next bytes, exactly so many.
    pub(crate) fn exactly(&mut self, length: usize) -> String {
        let missing = length.saturating_sub(self.read.len());
        let mut rest = vec![0; missing];
        self.stream.read_exact(&mut rest).unwrap();
        self.read.extend(rest);
        String::from_utf8(self.read.drain(..length).collect()).unwrap()
    }

    /// Everything up to the next place where this stands, and that as well.
    pub(crate) fn until(&mut self, end: &[u8]) -> Vec<u8> {
        let mut seen = 0;
        loop {
            if let Some(place) = self.read[seen..].windows(end.len()).position(|window| window == end) {
                return self.read.drain(..seen + place + end.len()).collect();
            }
            seen = (self.read.len() + 1).saturating_sub(end.len());
            let mut chunk = [0; 16 * 1024];
            match self.stream.read(&mut chunk) {
                Ok(count) if count > 0 => self.read.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                ended => panic!("{ended:?} instead of {:?}", String::from_utf8_lossy(end)),
            }
        }
    }

    /// Reads a whole reply, and checks its code.
    pub(crate) fn expect(&mut self, code: &str) -> String {
        let mut reply = String::new();
        loop {
            let line = self.line().unwrap_or_else(|| panic!("closed instead of {code}, after {reply:?}"));
            assert!(line.starts_with(code), "{code} was expected: {line}");
            reply.push_str(&line);
            if line.as_bytes().get(3) != Some(&b'-') {
                return reply;
            }
            reply.push('\n');
        }
    }

    /// Sends a line and reads the reply with this code.
    pub(crate) fn say(&mut self, line: &str, code: &str) -> String {
        self.send(format!("{line}\r\n"));
        self.expect(code)
    }

    /// Greeting, EHLO, MAIL and one RCPT.
    pub(crate) fn open_mail(&mut self, to: &str) {
        self.expect("220");
        self.say("EHLO client.test", "250");
        self.say("MAIL FROM:<ann@x.org>", "250");
        self.say(&format!("RCPT TO:<{to}>"), "250");
    }
}
