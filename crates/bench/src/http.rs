//! A small HTTP/1.1 client (RFC 9112) over a plain TCP connection: keep-alive, bodies by Content-Length, chunked or
//! until close. All sizes are limited.

use std::net::SocketAddr;

use httparse::Status;
use memchr::memchr;
use serde::de::DeserializeOwned;

use crate::connection::{Connection, resolve, with_timeout};
use crate::error::Error;

/// The maximum length of a response head.
pub(crate) const MAX_HEAD_BYTES: usize = 16 * 1024;
const MAX_HEADERS: usize = 64;
/// The maximum length of a line between chunks, or of a trailer field.
const MAX_LINE_BYTES: usize = 4 * 1024;
const MAX_BODY_BYTES: usize = 1 << 30;
/// The size of a read.
const READ_BYTES: usize = 16 * 1024;

/// A server and the base path of its API.
#[derive(Clone, Debug)]
pub(crate) struct BaseUrl {
    addresses: Vec<SocketAddr>,
    authority: String,
    path: String,
}

impl BaseUrl {
    /// Parses `http://HOST[:PORT][/PATH]`.
    pub(crate) async fn parse(url: &str) -> Result<Self, Error> {
        let (authority, path) = split_url(url)
            .ok_or_else(|| Error::Usage(format!("{url:?} is not of the form http://HOST[:PORT][/PATH]")))?;
        // A colon after the last bracket is not part of an IPv6 address.
        let host_and_port = match authority.rsplit_once(':') {
            Some((_, port)) if !port.ends_with(']') => authority.to_owned(),
            _ => format!("{authority}:80"),
        };
        Ok(Self { addresses: resolve(&host_and_port).await?, authority: authority.to_owned(), path: path.to_owned() })
    }

    /// Returns the bytes of a request without a body. `path` starts with a slash and is already encoded.
    pub(crate) fn request(&self, method: &str, path: &str) -> Vec<u8> {
        self.request_with(method, path, "Accept: */*\r\n")
    }

    /// Returns the bytes of a request with other header lines, each of which ends with CRLF.
    pub(crate) fn request_with(&self, method: &str, path: &str, fields: &str) -> Vec<u8> {
        let Self { authority, path: base, .. } = self;
        format!("{method} {base}{path} HTTP/1.1\r\nHost: {authority}\r\n{fields}\r\n").into_bytes()
    }

    /// Returns the host and the port.
    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    /// Returns the addresses of the server.
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

/// A connection that is opened when it is needed and reused as long as the server keeps it open.
pub(crate) struct Client {
    base: BaseUrl,
    connection: Option<Connection>,
    /// Whether the last response was read completely, and the server keeps the connection open.
    is_reusable: bool,
    /// The body of a response without Content-Length.
    body: Vec<u8>,
}

impl Client {
    /// Creates a client for the server of `base`.
    pub(crate) fn new(base: &BaseUrl) -> Self {
        Self { base: base.clone(), connection: None, is_reusable: false, body: Vec::new() }
    }

    /// Closes the connection, because the server may close it while it is idle.
    pub(crate) fn disconnect(&mut self) {
        self.connection = None;
    }

    /// Sends a request without a body. Returns the body of the response if its status is 200.
    pub(crate) async fn request(&mut self, method: &str, path: &str) -> Result<&[u8], Error> {
        let request = self.base.request(method, path);
        self.exchange(&request).await
    }

    /// Requests a JSON document.
    pub(crate) async fn get_json<T: DeserializeOwned>(&mut self, path: &str) -> Result<T, Error> {
        let body = self.request("GET", path).await?;
        serde_json::from_slice(body).map_err(|_| Error::Protocol("response is not the expected JSON"))
    }

    /// Sends a request and reads the whole response. Returns its body if the status is 200. After an error other than
    /// [`Error::Refused`] the next exchange opens a new connection.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> Result<&[u8], Error> {
        // It is reusable again only after a successful exchange, so that a partially read response is never continued.
        if !std::mem::take(&mut self.is_reusable) {
            self.connection = None;
        }
        let connection = match &mut self.connection {
            Some(connection) => connection,
            slot => slot.insert(with_timeout(Connection::open(&self.base.addresses, READ_BYTES)).await?),
        };
        // Requests are not pipelined, so nothing can follow the previous response.
        if !connection.is_empty() {
            return Err(Error::Protocol("bytes after the end of the response"));
        }
        let exchange = async {
            connection.write(request).await?;
            let (head, _) = connection.read(MAX_HEAD_BYTES, Head::parse).await?;
            let body = read_body(&head, connection, &mut self.body).await?;
            Ok((head, body))
        };
        let (head, body) = with_timeout(exchange).await?;
        self.is_reusable = !head.close;
        if head.status == 200 {
            return Ok(body);
        }
        Err(Error::refused(&[head.status.to_string().as_bytes(), b" ", body].concat()))
    }
}

/// Reads the body (RFC 9112 section 6.3, in its order of precedence). `buffer` is used if its length is not known.
async fn read_body<'a>(
    head: &Head,
    connection: &'a mut Connection,
    buffer: &'a mut Vec<u8>,
) -> Result<&'a [u8], Error> {
    if let Framing::Length(length) = head.framing {
        return read_exact(connection, length).await;
    }
    buffer.clear();
    while let Some(part) = read_part(connection, head.framing).await? {
        if buffer.len() + part.len() > MAX_BODY_BYTES {
            return Err(Error::Protocol("body too large"));
        }
        buffer.extend_from_slice(part);
    }
    Ok(buffer)
}

/// Reads the next part of a body whose length is not known. Returns `None` at its end.
pub(crate) async fn read_part(connection: &mut Connection, framing: Framing) -> Result<Option<&[u8]>, Error> {
    match framing {
        Framing::Chunked => read_chunk(connection).await,
        Framing::Length(_) | Framing::UntilClose => connection.read_some().await,
    }
}

/// Reads the next chunk (RFC 9112 section 7.1). Returns `None` after the last one and the trailer fields.
async fn read_chunk(connection: &mut Connection) -> Result<Option<&[u8]>, Error> {
    let parse_length = |bytes: &[u8]| match httparse::parse_chunk_size(bytes) {
        Ok(Status::Complete((line_length, length))) => Ok(Some((length, line_length))),
        Ok(Status::Partial) => Ok(None),
        Err(_) => Err(Error::Protocol("invalid chunk length")),
    };
    let (length, _) = connection.read(MAX_LINE_BYTES, parse_length).await?;
    if length == 0 {
        let find_end = |bytes: &[u8]| Ok(memchr(b'\n', bytes).map(|newline| ((), newline + 1)));
        while !connection.read(MAX_LINE_BYTES, find_end).await?.1.trim_ascii().is_empty() {}
        return Ok(None);
    }
    let length = usize::try_from(length).ok().filter(|&length| length <= MAX_BODY_BYTES);
    let chunk = read_exact(connection, length.ok_or(Error::Protocol("chunk too large"))? + b"\r\n".len()).await?;
    chunk.strip_suffix(b"\r\n").map(Some).ok_or(Error::Protocol("chunk longer than its length"))
}

async fn read_exact(connection: &mut Connection, length: usize) -> Result<&[u8], Error> {
    let is_complete = |bytes: &[u8]| Ok((bytes.len() >= length).then_some(((), length)));
    Ok(connection.read(length, is_complete).await?.1)
}

/// The parts of a response head that are used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The status code.
    pub(crate) status: u16,
    /// How the end of the body is found.
    pub(crate) framing: Framing,
    /// The value of Sec-WebSocket-Accept.
    pub(crate) websocket_accept: Option<Vec<u8>>,
    /// Whether the server closes the connection.
    close: bool,
}

/// How the end of a body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(usize),
    Chunked,
    UntilClose,
}

impl Head {
    /// Parses the head of a response. Returns it and its length, or `None` if it is incomplete.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, Error> {
        let mut fields = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut response = httparse::Response::new(&mut fields);
        let parsed = response.parse(bytes).map_err(|_| Error::Protocol("invalid head of an HTTP response"))?;
        let Status::Complete(head_length) = parsed else { return Ok(None) };
        let field = |name: &str| {
            let field = response.headers.iter().rfind(|field| field.name.eq_ignore_ascii_case(name));
            field.map(|field| field.value.trim_ascii())
        };
        let status = response.code.unwrap_or_default();
        let framing = match (field("transfer-encoding"), field("content-length")) {
            _ if matches!(status, 100..200 | 204 | 304) => Framing::Length(0),
            (Some(coding), _) if coding.eq_ignore_ascii_case(b"chunked") => Framing::Chunked,
            (_, Some(length)) => Framing::Length(content_length(length)?),
            (_, None) => Framing::UntilClose,
        };
        let is_persistent = match field("connection") {
            Some(option) => !option.eq_ignore_ascii_case(b"close"),
            None => response.version == Some(1),
        };
        let close = !is_persistent || framing == Framing::UntilClose;
        let websocket_accept = field("sec-websocket-accept").map(<[u8]>::to_vec);
        Ok(Some((Self { status, framing, websocket_accept, close }, head_length)))
    }
}

fn split_url(url: &str) -> Option<(&str, &str)> {
    let rest = url.strip_prefix("http://")?.trim_end_matches('/');
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    (!authority.is_empty() && !rest.contains(|c: char| c.is_whitespace() || c.is_control()))
        .then_some((authority, path))
}

fn content_length(value: &[u8]) -> Result<usize, Error> {
    let length = str::from_utf8(value).ok().and_then(|text| text.parse().ok());
    length.filter(|&length| length <= MAX_BODY_BYTES).ok_or(Error::Protocol("invalid Content-Length"))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    /// Runs a server that responds to each request with the next of the given texts, in small pieces, on as few
    /// connections as the client opens. Returns the result of each exchange.
    fn exchange_all(responses: &[&'static str]) -> Vec<Result<String, String>> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let address = listener.local_addr().expect("bound");
        let mut pending: Vec<&'static str> = responses.iter().rev().copied().collect();
        let server = std::thread::spawn(move || {
            while !pending.is_empty() {
                let (mut stream, _) = listener.accept().expect("a connection");
                stream.set_nodelay(true).expect("a socket option");
                while stream.read(&mut [0; 1024]).unwrap_or(0) > 0 {
                    let Some(response) = pending.pop() else { return };
                    for piece in response.as_bytes().chunks(7) {
                        stream.write_all(piece).expect("the client listens");
                    }
                    if response.contains("close") {
                        break;
                    }
                }
            }
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let results = runtime.block_on(async {
            let base = BaseUrl::parse(&format!("http://{address}/base/")).await.expect("an address");
            let mut client = Client::new(&base);
            let mut results = Vec::new();
            for _ in responses {
                let body = client.request("GET", "/x").await.map(|body| String::from_utf8_lossy(body).into_owned());
                results.push(body.map_err(|error| error.to_string()));
            }
            results
        });
        server.join().expect("the server");
        results
    }

    #[test]
    fn reads_bodies_by_their_framing() {
        let results = exchange_all(&[
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nA;ext=1\r\n, chunked!\r\n0\r\nTrailer: x\r\n\r\n",
            "HTTP/1.1 204 No Content\r\n\r\n",
            "HTTP/1.1 404 Not Found\r\ncontent-length:  4 \r\n\r\nnone",
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\none",
            "HTTP/1.0 200 OK\r\n\r\nuntil close",
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        ]);
        let expected = [
            Ok("hello"),
            Ok("hello, chunked!"),
            Err("refused: 204"),
            Err("refused: 404 none"),
            Ok("one"),
            Ok("until close"),
            Ok(""),
        ];
        for (result, expected) in results.iter().zip(expected) {
            assert_eq!(result.as_deref().map_err(String::as_str), expected);
        }
    }

    #[test]
    fn broken_framing_is_an_error() {
        for response in [
            "220 close this is SMTP\r\n",
            "HTTP/1.1 2x0 close\r\n\r\n",
            "HTTP/1.1 200 OK\r\nConnection: close\r\nno colon\r\n\r\n",
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 99999999999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 10\r\n\r\nshort",
            "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n11111111111111111111111111111111",
            "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
            "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nlong\r\n0\r\n\r\n",
        ] {
            let results = exchange_all(&[response]);
            assert!(results[0].is_err(), "{response:?} gave {results:?}");
        }
    }

    #[test]
    fn splits_urls() {
        assert_eq!(split_url("http://127.0.0.1:9000"), Some(("127.0.0.1:9000", "")));
        assert_eq!(split_url("http://[::1]:9000/mail/"), Some(("[::1]:9000", "/mail")));
        for bad in ["127.0.0.1:9000", "https://host", "http://", "http://host/a b", "http://host/\r\nX: y"] {
            assert_eq!(split_url(bad), None, "{bad:?}");
        }
    }
}
