//! Starts the real program on free ports of the loopback interface, and connects to it.

#![allow(dead_code, reason = "every test program uses its own part of this")]

pub(crate) mod disk;
pub(crate) mod durability;
pub(crate) mod exposition;
pub(crate) mod imap;
pub(crate) mod installed;
pub(crate) mod monitor;
pub(crate) mod oidc_provider;
pub(crate) mod pop3;
pub(crate) mod random;
pub(crate) mod rest;
pub(crate) mod smtp;
pub(crate) mod tls;
pub(crate) mod webhook_receiver;

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The timeout of every wait: longer than any step of a test takes.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_mins(1);

/// A running server; killed when dropped.
pub(crate) struct Server {
    child: Child,
    log: Receiver<String>,
    lines: Vec<String>,
    /// Where the search for each text continues in `lines`.
    searched: HashMap<String, usize>,
    pub(crate) smtp: SocketAddr,
    /// The address of `web.addr`, for HTTP or HTTPS.
    pub(crate) http: SocketAddr,
}

/// Returns the program with a clean environment and free ports. More arguments can be added.
pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_restante"));
    for (name, _) in std::env::vars_os() {
        let ours = name.to_str().is_some_and(|name| name.starts_with("RESTANTE_") || name.starts_with("INBUCKET_"));
        if ours {
            command.env_remove(name);
        }
    }
    for listener in ["--smtp-addr", "--pop3-addr", "--imap-addr", "--web-addr"] {
        command.args([listener, "127.0.0.1:0"]);
    }
    command.args(["--smtp-domain", "mx.test", "--pop3-domain", "mx.test", "--imap-domain", "mx.test"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

impl Server {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::spawn(command().args(arguments))
    }

    /// Starts the command and waits until it listens.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        Self::try_spawn(command).unwrap_or_else(|(status, log)| panic!("the server exited with {status}: {log}"))
    }

    /// Starts the command and waits until it listens. If it exits first, returns its exit status and log.
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
        let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
        let mut server = Self { child, log, lines: Vec::new(), searched: HashMap::new(), smtp: unknown, http: unknown };
        // The first matching line has the address of `web.addr`.
        let texts = ["HTTP listening on tcp4 ", "HTTPS listening on tcp4 "];
        let web = |server: &Self| texts.into_iter().find(|text| server.lines.iter().any(|line| line.contains(text)));
        while web(&server).is_none() {
            match server.log.recv_timeout(TEST_TIMEOUT) {
                Ok(line) => server.lines.push(line),
                Err(RecvTimeoutError::Disconnected) => return Err((server.wait(), server.full_log())),
                Err(RecvTimeoutError::Timeout) => panic!("the server does not start: {:?}", server.lines),
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

    /// Waits for a log line that contains this text, and returns the line. The line may have been logged already, unless it was
    /// returned for the same text before: the second call waits for the second line.
    pub(crate) fn wait_for_log(&mut self, text: &str) -> String {
        self.wait_for_any_log(&[text])
    }

    /// Waits for a log line that contains one of these texts, and returns the line, like [`wait_for_log`](Self::wait_for_log).
    pub(crate) fn wait_for_any_log(&mut self, texts: &[&str]) -> String {
        let start = self.searched.get(&texts.join("\n")).copied().unwrap_or(0);
        let index = self.find_in_log(texts, start);
        self.searched.insert(texts.join("\n"), index + 1);
        self.lines[index].clone()
    }

    /// Waits for a log line that contains one of these texts, and returns its index. Lines before `start` do not count.
    fn find_in_log(&mut self, texts: &[&str], start: usize) -> usize {
        let deadline = Instant::now() + TEST_TIMEOUT;
        let mut index = start;
        loop {
            while let Some(line) = self.lines.get(index) {
                if texts.iter().any(|text| line.contains(text)) {
                    return index;
                }
                index += 1;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.log.recv_timeout(left) else {
                panic!("{texts:?} was not logged: {:?}", &self.lines[start..])
            };
            self.lines.push(line);
        }
    }

    /// Returns whether a line with this text has been read by now. The server may have logged it a moment earlier, so this is a
    /// condition to wait for.
    pub(crate) fn has_logged(&mut self, text: &str) -> bool {
        self.lines.extend(self.log.try_iter());
        self.lines.iter().any(|line| line.contains(text))
    }

    /// Returns the whole log. The server must have exited.
    pub(crate) fn full_log(&mut self) -> String {
        self.lines.extend(self.log.iter());
        self.lines.join("\n")
    }

    pub(crate) fn address_of(&mut self, text: &str) -> SocketAddr {
        let index = self.find_in_log(&[text], 0);
        let (_, address) = self.lines[index].split_once(text).unwrap();
        address.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().unwrap()
    }

    /// Closes the pipe of the log, after one more line has been written to it.
    pub(crate) fn close_log_pipe(&mut self) {
        self.log = channel().1;
        drop(self.connect_smtp());
    }

    /// Closes the server's standard input, which must be a pipe.
    pub(crate) fn close_stdin(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Sends a signal by name: TERM, HUP, INT.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("sh").args(["-c", &format!("kill -{name} {}", self.pid())]).status().unwrap();
        assert!(sent.success());
    }

    /// Kills the process with SIGKILL, and waits until it has exited.
    pub(crate) fn kill(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        self.wait();
    }

    /// Returns whether the process is running.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits until the process exits.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + TEST_TIMEOUT;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the server did not exit: {:?}", self.lines);
    }

    pub(crate) fn connect_smtp(&self) -> LineConnection<TcpStream> {
        LineConnection::new(connect(self.smtp))
    }

    /// Delivers a message byte for byte by SMTP.
    pub(crate) fn deliver(&self, to: &str, mail: &[u8]) {
        let mut connection = self.connect_smtp();
        connection.start_message(to);
        connection.send([format!("BDAT {} LAST\r\n", mail.len()).as_bytes(), mail].concat());
        connection.expect("250");
        connection.command("QUIT", "221");
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.http)
    }

    /// Returns the parsed JSON response to a GET.
    pub(crate) fn json(&self, path: &str) -> serde_json::Value {
        let mut response = ureq::get(self.url(path)).call().unwrap();
        serde_json::from_str(&response.body_mut().read_to_string().unwrap()).unwrap()
    }

    /// Returns the body of the response to a GET.
    pub(crate) fn bytes(&self, path: &str) -> Vec<u8> {
        ureq::get(self.url(path)).call().unwrap().body_mut().read_to_vec().unwrap()
    }

    /// Returns the ids of the messages in a mailbox.
    pub(crate) fn ids(&self, mailbox: &str) -> Vec<String> {
        let list = self.json(&format!("/api/v1/mailbox/{mailbox}"));
        list.as_array().unwrap().iter().map(|message| message["id"].as_str().unwrap().to_owned()).collect()
    }

    /// Returns the number of messages in a mailbox.
    pub(crate) fn count(&self, mailbox: &str) -> usize {
        self.json(&format!("/api/v1/mailbox/{mailbox}")).as_array().unwrap().len()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&address, TEST_TIMEOUT).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream.set_write_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream
}

/// A connection for a protocol of text lines.
pub(crate) struct LineConnection<S> {
    pub(crate) stream: S,
    buffer: Vec<u8>,
}

impl<S: std::io::Read + std::io::Write> LineConnection<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
        self.stream.flush().unwrap();
    }

    /// Returns the next line without its CRLF, or `None` if the server has closed the connection.
    pub(crate) fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\r\n") {
                let line = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
                self.buffer.drain(..end + 2);
                return Some(line);
            }
            let mut chunk = [0; 4096];
            match self.stream.read(&mut chunk) {
                Ok(0) => return None,
                Ok(count) => self.buffer.extend_from_slice(&chunk[..count]),
                // A read with a timeout is interrupted if the process was stopped for a while.
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                // A server that closes with input unread resets the connection.
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => {
                    panic!("waited for a line, got {error}, have {:?}", String::from_utf8_lossy(&self.buffer))
                }
            }
        }
    }

    /// Returns exactly the next `length` bytes.
    pub(crate) fn exactly(&mut self, length: usize) -> String {
        let missing = length.saturating_sub(self.buffer.len());
        let mut rest = vec![0; missing];
        self.stream.read_exact(&mut rest).unwrap();
        self.buffer.extend(rest);
        String::from_utf8(self.buffer.drain(..length).collect()).unwrap()
    }

    /// Returns everything up to and including the next occurrence of `end`.
    pub(crate) fn until(&mut self, end: &[u8]) -> Vec<u8> {
        let mut searched = 0;
        loop {
            if let Some(position) = self.buffer[searched..].windows(end.len()).position(|window| window == end) {
                return self.buffer.drain(..searched + position + end.len()).collect();
            }
            searched = (self.buffer.len() + 1).saturating_sub(end.len());
            let mut chunk = [0; 16 * 1024];
            match self.stream.read(&mut chunk) {
                Ok(count) if count > 0 => self.buffer.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                ended => panic!("{ended:?} instead of {:?}", String::from_utf8_lossy(end)),
            }
        }
    }

    /// Reads a whole reply and checks its code.
    pub(crate) fn expect(&mut self, code: &str) -> String {
        let mut reply = String::new();
        loop {
            let line = self.line().unwrap_or_else(|| panic!("closed instead of {code}, after {reply:?}"));
            assert!(line.starts_with(code), "expected {code}: {line}");
            reply.push_str(&line);
            if line.as_bytes().get(3) != Some(&b'-') {
                return reply;
            }
            reply.push('\n');
        }
    }

    /// Sends a command and reads the reply with this code.
    pub(crate) fn command(&mut self, line: &str, code: &str) -> String {
        self.send(format!("{line}\r\n"));
        self.expect(code)
    }

    /// Reads the greeting and sends EHLO, MAIL and one RCPT.
    pub(crate) fn start_message(&mut self, to: &str) {
        self.expect("220");
        self.command("EHLO client.test", "250");
        self.command("MAIL FROM:<ann@x.org>", "250");
        self.command(&format!("RCPT TO:<{to}>"), "250");
    }
}
