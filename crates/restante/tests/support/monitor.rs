//! Those who listen to the live monitor: over a WebSocket, and over Server-Sent Events.

use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::net::TcpStream;

use serde_json::Value;
use socket2::{Domain, Socket, Type};
use tokio_tungstenite::tungstenite::{Error, Message, WebSocket, client};

use super::{LONG, Server, connect};

/// One who listens to a WebSocket.
pub(crate) struct Ear(WebSocket<TcpStream>);

/// What can be heard there.
#[derive(Debug, PartialEq)]
pub(crate) enum Heard {
    Text(Value),
    Closed(u16),
}

impl Ear {
    pub(crate) fn open(server: &Server, path: &str) -> Self {
        Self::over(connect(server.http), server, path)
    }

    /// One that the system keeps little for until it is read.
    pub(crate) fn hard_of_hearing(server: &Server, path: &str) -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        socket.connect(&server.http.into()).unwrap();
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(LONG)).unwrap();
        Self::over(stream, server, path)
    }

    fn over(stream: TcpStream, server: &Server, path: &str) -> Self {
        let url = format!("ws://{}{path}", server.http);
        Self(client(url, stream).unwrap_or_else(|error| panic!("{path}: {error}")).0)
    }

    pub(crate) fn next(&mut self) -> Heard {
        loop {
            match self.0.read() {
                Ok(Message::Text(text)) => return Heard::Text(serde_json::from_str(&text).unwrap()),
                Ok(Message::Close(Some(frame))) => return Heard::Closed(frame.code.into()),
                Ok(Message::Ping(_)) => {}
                // So end reads with a timeout when the process was stopped for a while.
                Err(Error::Io(error)) if error.kind() == ErrorKind::Interrupted => {}
                other => panic!("waited for a text, got {other:?}"),
            }
        }
    }

    /// The next text.
    pub(crate) fn text(&mut self) -> Value {
        match self.next() {
            Heard::Text(text) => text,
            Heard::Closed(code) => panic!("closed with {code}"),
        }
    }

    pub(crate) fn say(&mut self, text: String) {
        self.0.send(Message::text(text)).unwrap();
    }

    /// Answers the server's good-bye, and waits until it hangs up.
    pub(crate) fn hang_up(mut self) {
        while self.0.read().is_ok() {}
        assert!(matches!(self.0.read(), Err(Error::ConnectionClosed | Error::AlreadyClosed | Error::Io(_))));
    }
}

/// One who listens to Server-Sent Events.
pub(crate) struct EventStream(BufReader<TcpStream>);

/// An event with its lines.
#[derive(Debug)]
pub(crate) struct ServerSent {
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) data: Value,
}

impl EventStream {
    /// Asks with these headers, each ended by CRLF. As HTTP/1.0, so that the events come as they are, without chunks.
    pub(crate) fn open(server: &Server, path: &str, headers: &str) -> Self {
        let mut stream = connect(server.http);
        let request = format!("GET {path} HTTP/1.0\r\nHost: {}\r\n{headers}\r\n", server.http);
        stream.write_all(request.as_bytes()).unwrap();
        let mut stream = Self(BufReader::new(stream));
        assert_eq!(stream.line().as_deref(), Some("HTTP/1.0 200 OK"));
        while stream.line().is_some_and(|line| !line.is_empty()) {}
        assert_eq!(stream.line().as_deref(), Some("retry: 1000"));
        stream
    }

    /// The next event; `None` when the stream ends, also in the middle of one.
    pub(crate) fn next(&mut self) -> Option<ServerSent> {
        let name = loop {
            if let Some(name) = self.line()?.strip_prefix("event: ") {
                break name.to_owned();
            }
        };
        // An event that tells of no message has no id.
        let line = self.line()?;
        let (id, line) = match line.strip_prefix("id: ") {
            Some(id) => (id.to_owned(), self.line()?),
            None => (String::new(), line),
        };
        let data = serde_json::from_str(line.strip_prefix("data: ").unwrap()).unwrap();
        Some(ServerSent { name, id, data })
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(_) => line.ends_with('\n').then(|| line.trim_end().to_owned()),
            // A server that was killed.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => None,
            Err(error) => panic!("waited for a line, got {error}"),
        }
    }
}
