//! A small HTTP/1.1 client (RFC 9112) over a plain TCP connection: keep-alive, bodies by Content-Length, chunked or
//! until close. All sizes are limited.

use std::net::SocketAddr;
use std::ops::Range;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::error::Error;
use crate::smtp::{connect, resolve, with_timeout};

const MAX_LINE_BYTES: usize = 16 * 1024;
const MAX_HEADERS: usize = 200;
const MAX_BODY_BYTES: usize = 1 << 30;

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

    /// Returns the addresses of the server.
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

/// A response.
#[derive(Debug)]
pub(crate) struct Response<'a> {
    /// The status code.
    pub(crate) status: u16,
    /// The content, without transfer coding.
    pub(crate) body: &'a [u8],
}

impl Response<'_> {
    /// Returns the body if the status is 200.
    pub(crate) fn ok(&self) -> Result<&[u8], Error> {
        if self.status == 200 {
            return Ok(self.body);
        }
        let status = self.status.to_string();
        Err(Error::refused(&[status.as_bytes(), b" ", self.body].concat()))
    }
}

/// A connection that is opened when it is needed and reused as long as the server keeps it open.
pub(crate) struct Client {
    addresses: Vec<SocketAddr>,
    stream: Option<TcpStream>,
    /// The response as received; everything before `position` has been parsed.
    buffer: Vec<u8>,
    position: usize,
    /// The body of a chunked response.
    chunked_body: Vec<u8>,
}

impl Client {
    /// Creates a client for the server of `base`.
    pub(crate) fn new(base: &BaseUrl) -> Self {
        Self {
            addresses: base.addresses.clone(),
            stream: None,
            buffer: Vec::with_capacity(MAX_LINE_BYTES),
            position: 0,
            chunked_body: Vec::new(),
        }
    }

    /// Sends a request and reads the whole response. After an error the next exchange opens a new connection.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> Result<Response<'_>, Error> {
        // The stream is put back only after a successful exchange, so that a partially read response is never
        // continued.
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => with_timeout(connect(&self.addresses)).await?,
        };
        let exchange = async {
            stream.write_all(request).await.map_err(|error| Error::io("sending", error))?;
            self.read_response(&mut stream).await
        };
        let (head, body) = with_timeout(exchange).await?;
        if !head.close {
            self.stream = Some(stream);
        }
        let body = match body {
            Body::InBuffer(range) => &self.buffer[range],
            Body::Dechunked => &self.chunked_body[..],
        };
        Ok(Response { status: head.status, body })
    }

    async fn read_response(&mut self, stream: &mut TcpStream) -> Result<(Head, Body), Error> {
        self.buffer.clear();
        self.position = 0;
        let status_line = self.read_line(stream).await?;
        let mut head = Head::parse(&self.buffer[status_line])?;
        for _ in 0..MAX_HEADERS {
            let line = self.read_line(stream).await?;
            if line.is_empty() {
                let body = self.read_body(stream, &mut head).await?;
                // Requests are not pipelined, so nothing can follow the response.
                if self.position < self.buffer.len() {
                    return Err(Error::Protocol("bytes after the end of the response"));
                }
                return Ok((head, body));
            }
            head.parse_field(&self.buffer[line])?;
        }
        Err(Error::Protocol("too many header lines"))
    }

    /// Reads the body (RFC 9112 section 6.3, in its order of precedence).
    async fn read_body(&mut self, stream: &mut TcpStream, head: &mut Head) -> Result<Body, Error> {
        let start = self.position;
        if matches!(head.status, 100..200 | 204 | 304) {
            return Ok(Body::InBuffer(start..start));
        }
        if head.chunked {
            self.read_chunks(stream).await?;
            return Ok(Body::Dechunked);
        }
        if let Some(length) = head.length {
            self.read_exact(stream, length).await?;
            return Ok(Body::InBuffer(start..self.position));
        }
        head.close = true;
        while self.fill(stream).await? {}
        self.position = self.buffer.len();
        Ok(Body::InBuffer(start..self.position))
    }

    /// Reads chunks up to one of length 0, then trailer fields up to an empty line (RFC 9112 section 7.1).
    async fn read_chunks(&mut self, stream: &mut TcpStream) -> Result<(), Error> {
        self.chunked_body.clear();
        loop {
            let line = self.read_line(stream).await?;
            let length = chunk_length(&self.buffer[line])?;
            if length == 0 {
                break;
            }
            let chunk = self.read_exact(stream, length).await?;
            if self.chunked_body.len() + length > MAX_BODY_BYTES {
                return Err(Error::Protocol("body too large"));
            }
            self.chunked_body.extend_from_slice(&self.buffer[chunk]);
            if !self.read_line(stream).await?.is_empty() {
                return Err(Error::Protocol("chunk longer than its length"));
            }
        }
        for _ in 0..MAX_HEADERS {
            if self.read_line(stream).await?.is_empty() {
                return Ok(());
            }
        }
        Err(Error::Protocol("too many trailer lines"))
    }

    /// Reads a line. Returns its range in the buffer, without the line end.
    async fn read_line(&mut self, stream: &mut TcpStream) -> Result<Range<usize>, Error> {
        let start = self.position;
        let mut search_start = start;
        loop {
            if let Some(found) = self.buffer[search_start..].iter().position(|&byte| byte == b'\n') {
                let newline = search_start + found;
                self.position = newline + 1;
                let carriage_return = newline > start && self.buffer[newline - 1] == b'\r';
                return Ok(start..newline - usize::from(carriage_return));
            }
            search_start = self.buffer.len();
            if search_start - start > MAX_LINE_BYTES {
                return Err(Error::Protocol("line too long"));
            }
            if !self.fill(stream).await? {
                return Err(Error::Protocol("connection closed within the response"));
            }
        }
    }

    /// Reads `length` bytes. Returns their range in the buffer.
    async fn read_exact(&mut self, stream: &mut TcpStream, length: usize) -> Result<Range<usize>, Error> {
        let start = self.position;
        let end = start + length;
        while self.buffer.len() < end {
            if !self.fill(stream).await? {
                return Err(Error::Protocol("connection closed within the body"));
            }
        }
        self.position = end;
        Ok(start..end)
    }

    /// Reads more bytes. Returns false at the end of the stream.
    async fn fill(&mut self, stream: &mut TcpStream) -> Result<bool, Error> {
        if self.buffer.len() > MAX_BODY_BYTES {
            return Err(Error::Protocol("response too large"));
        }
        self.buffer.reserve(MAX_LINE_BYTES);
        let read = stream.read_buf(&mut self.buffer).await;
        Ok(read.map_err(|error| Error::io("receiving", error))? > 0)
    }
}

/// The parts of a response head that determine its body.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// The status code.
    pub(crate) status: u16,
    length: Option<usize>,
    /// Whether the body is chunked.
    pub(crate) chunked: bool,
    close: bool,
}

impl Head {
    /// Parses the status line, without its end.
    pub(crate) fn parse(status_line: &[u8]) -> Result<Self, Error> {
        let invalid = Error::Protocol("invalid HTTP status line");
        let (close, rest) = match status_line.split_at_checked(9) {
            Some((b"HTTP/1.1 ", rest)) => (false, rest),
            Some((b"HTTP/1.0 ", rest)) => (true, rest),
            _ => return Err(invalid),
        };
        let code = rest.get(..3).filter(|code| code.iter().all(u8::is_ascii_digit));
        let status = code.and_then(|code| str::from_utf8(code).ok()?.parse().ok()).ok_or(invalid)?;
        Ok(Self { status, close, ..Self::default() })
    }

    /// Parses a header line, without its end.
    pub(crate) fn parse_field(&mut self, line: &[u8]) -> Result<(), Error> {
        let colon = line.iter().position(|&byte| byte == b':');
        let (name, value) = line.split_at(colon.ok_or(Error::Protocol("header line without a colon"))?);
        let value = value[1..].trim_ascii();
        if name.eq_ignore_ascii_case(b"content-length") {
            self.length = Some(content_length(value)?);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.chunked = value.eq_ignore_ascii_case(b"chunked");
        } else if name.eq_ignore_ascii_case(b"connection") {
            self.close = value.eq_ignore_ascii_case(b"close");
        }
        Ok(())
    }
}

/// Where the body of a response is.
enum Body {
    InBuffer(Range<usize>),
    Dechunked,
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

/// Parses the length in the first line of a chunk, before any extension (RFC 9112 section 7.1.1).
pub(crate) fn chunk_length(line: &[u8]) -> Result<usize, Error> {
    let digits = line.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
    let length = str::from_utf8(digits).ok().and_then(|text| usize::from_str_radix(text, 16).ok());
    length.filter(|&length| length <= MAX_BODY_BYTES).ok_or(Error::Protocol("invalid chunk length"))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    /// Runs a server that responds to each request with the next of the given texts, in small pieces, on as few
    /// connections as the client opens. Returns the result of each exchange.
    fn exchange_all(responses: &[&'static str]) -> Vec<Result<(u16, String), String>> {
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
                let response = client.exchange(&base.request("GET", "/x")).await;
                let text = |body: &[u8]| String::from_utf8_lossy(body).into_owned();
                results.push(response.map(|r| (r.status, text(r.body))).map_err(|e| e.to_string()));
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
            (200, "hello"),
            (200, "hello, chunked!"),
            (204, ""),
            (404, "none"),
            (200, "one"),
            (200, "until close"),
            (200, ""),
        ];
        for (result, (status, body)) in results.into_iter().zip(expected) {
            assert_eq!(result, Ok((status, body.to_owned())));
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
