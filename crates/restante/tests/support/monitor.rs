//! Clients of the live monitor: over a WebSocket and over Server-Sent Events.

use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::net::TcpStream;

use serde_json::Value;
use socket2::{Domain, Socket, Type};
use tokio_tungstenite::tungstenite::{Error, Message, WebSocket, client};

use super::{Server, TEST_TIMEOUT, connect};

/// A client of a monitor WebSocket.
pub(crate) struct WebSocketClient(WebSocket<TcpStream>);

/// A message of the server on the WebSocket.
#[derive(Debug, PartialEq)]
pub(crate) enum SocketMessage {
    Text(Value),
    Closed(u16),
}

impl WebSocketClient {
    pub(crate) fn open(server: &Server, path: &str) -> Self {
        Self::over(connect(server.http), server, path)
    }

    /// Opens a WebSocket with a small receive buffer, so that a client that does not read soon blocks the server.
    pub(crate) fn open_with_small_buffer(server: &Server, path: &str) -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        socket.connect(&server.http.into()).unwrap();
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        Self::over(stream, server, path)
    }

    fn over(stream: TcpStream, server: &Server, path: &str) -> Self {
        let url = format!("ws://{}{path}", server.http);
        Self(client(url, stream).unwrap_or_else(|error| panic!("{path}: {error}")).0)
    }

    pub(crate) fn next(&mut self) -> SocketMessage {
        loop {
            match self.0.read() {
                Ok(Message::Text(text)) => return SocketMessage::Text(serde_json::from_str(&text).unwrap()),
                Ok(Message::Close(Some(frame))) => return SocketMessage::Closed(frame.code.into()),
                Ok(Message::Ping(_)) => {}
                // A read with a timeout is interrupted if the process was stopped for a while.
                Err(Error::Io(error)) if error.kind() == ErrorKind::Interrupted => {}
                other => panic!("waited for a text, got {other:?}"),
            }
        }
    }

    /// Returns the next text message.
    pub(crate) fn text(&mut self) -> Value {
        match self.next() {
            SocketMessage::Text(text) => text,
            SocketMessage::Closed(code) => panic!("closed with {code}"),
        }
    }

    pub(crate) fn send(&mut self, text: String) {
        self.0.send(Message::text(text)).unwrap();
    }

    /// Replies to the close frame of the server, and waits until it closes the connection.
    pub(crate) fn wait_for_close(mut self) {
        while self.0.read().is_ok() {}
        assert!(matches!(self.0.read(), Err(Error::ConnectionClosed | Error::AlreadyClosed | Error::Io(_))));
    }
}

/// A client of Server-Sent Events.
pub(crate) struct EventStream(BufReader<TcpStream>);

/// An event of the stream.
#[derive(Debug)]
pub(crate) struct ServerSentEvent {
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) data: Value,
}

impl EventStream {
    /// Sends a request with these headers, each terminated by CRLF. It uses HTTP/1.0, so that the response is not chunked.
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

    /// Returns the next event, or `None` if the stream ends, also in the middle of an event.
    pub(crate) fn next(&mut self) -> Option<ServerSentEvent> {
        let name = loop {
            if let Some(name) = self.line()?.strip_prefix("event: ") {
                break name.to_owned();
            }
        };
        // An event without a message has no id.
        let line = self.line()?;
        let (id, line) = match line.strip_prefix("id: ") {
            Some(id) => (id.to_owned(), self.line()?),
            None => (String::new(), line),
        };
        let data = serde_json::from_str(line.strip_prefix("data: ").unwrap()).unwrap();
        Some(ServerSentEvent { name, id, data })
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(_) => line.ends_with('\n').then(|| line.trim_end().to_owned()),
            // The server was killed.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => None,
            Err(error) => panic!("waited for a line, got {error}"),
        }
    }
}
