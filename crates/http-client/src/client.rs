//! The client: sends a request, follows redirects, and reads the response, within limits of time and size.

use std::io::{self, BufReader, Read};
use std::iter;
use std::time::{Duration, Instant};

use flate2::bufread::GzDecoder;
use ureq::Agent;
use ureq::config::Config;
use ureq::http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, LOCATION,
    PROXY_AUTHORIZATION, RANGE, TRANSFER_ENCODING,
};
use ureq::http::{self, HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use ureq::unversioned::transport::{ConnectProxyConnector, Connector as _, TcpConnector};
use url::Url;

use crate::connectors::{ConnectionObserver, LazyTlsConnector, TlsTrust, detect_new_connection};
use crate::proxies::Proxies;
use crate::resolver::PolicyResolver;
use crate::target_url::{parse_url, validate_url};
use crate::{BodyMode, ClientPolicy, HttpError, HttpService, Request, Response};

/// The maximum duration of a request, regardless of its timeout.
const MAX_REQUEST_DURATION: Duration = Duration::from_hours(1);

/// The maximum size of the head of a response, and the size of the buffers of a connection.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// The only content coding that is accepted.
const GZIP: HeaderValue = HeaderValue::from_static("gzip");

/// The first bytes of a member of a gzip stream (RFC 1952 section 2.3.1).
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The number of bytes of an unwanted body that are read. A connection can be reused only if the end of the body is
/// reached.
const MAX_DISCARDED_BYTES: u64 = 64 * 1024;

/// The time after which an idle connection is not reused.
const IDLE_CONNECTION_TIMEOUT: Duration = Duration::from_secs(15);

/// An HTTP client. Cheap to create. Connections are kept for a short time for further requests to the same host.
///
/// It does not store cookies. It decompresses responses with gzip coding.
#[derive(Debug)]
pub struct HttpClient {
    agent: Agent,
    proxies: Proxies,
    policy: ClientPolicy,
}

impl HttpClient {
    /// Creates a client with this policy.
    pub fn new(policy: ClientPolicy) -> Self {
        Self::with_trust(TlsTrust::default(), policy)
    }

    /// Creates a client with this policy that trusts other certificates than the system does.
    pub fn with_trust(trust: TlsTrust, policy: ClientPolicy) -> Self {
        let proxies = if policy.use_proxies { Proxies::from_env() } else { Proxies::default() };
        Self::with_parts(LazyTlsConnector::new(trust), proxies, policy)
    }

    /// Sends a request and returns the response with a body that is read while it arrives, of any size. The timeout of
    /// the request limits the time without data, not the whole request.
    pub fn download(&self, request: &Request) -> Result<Download, HttpError> {
        let mut pending = PendingRequest::parse(request)?;
        pending.idle_timeout = Some(request.timeout);
        // The body is returned as it arrives, so it must not be compressed.
        pending.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let (_, response) = self.follow_redirects(pending, Instant::now() + MAX_REQUEST_DURATION)?;
        let (head, body) = response.into_parts();
        Ok(Download { status: head.status.as_u16(), body: body.into_reader() })
    }

    fn with_parts(tls: LazyTlsConnector, proxies: Proxies, policy: ClientPolicy) -> Self {
        let config = Config::builder()
            .http_status_as_error(false)
            .proxy(None)
            // Redirects are followed here: the implementation of ureq panics if the body of a redirect is incomplete.
            .max_redirects(0)
            .allow_non_standard_methods(true)
            .user_agent(concat!("Restante/", env!("CARGO_PKG_VERSION")))
            .max_response_header_size(MAX_HEAD_BYTES)
            .input_buffer_size(MAX_HEAD_BYTES)
            .output_buffer_size(MAX_HEAD_BYTES)
            .build();
        let connector =
            ().chain(ConnectProxyConnector::default())
                .chain(TcpConnector::default())
                .chain(tls)
                .chain(ConnectionObserver);
        Self {
            agent: Agent::with_parts(config, connector, PolicyResolver::new(policy.allow_private_addresses)),
            proxies,
            policy,
        }
    }

    /// Sends the request. If it fails because a reused connection was closed, sends it again over a new connection. The
    /// policy decides whether methods that are not idempotent are sent again.
    fn send_with_retry(
        &self,
        pending: &PendingRequest<'_>,
        deadline: Instant,
    ) -> Result<http::Response<ureq::Body>, HttpError> {
        let (response, is_new) = detect_new_connection(|| self.try_send(pending, deadline, None));
        match response {
            Err(ureq::Error::Io(error))
                if !is_new
                    && is_connection_closed(&error)
                    && (self.policy.retry_all_methods || pending.method.is_idempotent()) =>
            {
                self.try_send(pending, deadline, Some(Duration::ZERO)).map_err(http_error)
            }
            response => response.map_err(http_error),
        }
    }

    /// Sends the request once. A connection is reused only if it was idle for at most `max_idle`, which is
    /// [`IDLE_CONNECTION_TIMEOUT`] if `None`.
    fn try_send(
        &self,
        pending: &PendingRequest<'_>,
        deadline: Instant,
        max_idle: Option<Duration>,
    ) -> Result<http::Response<ureq::Body>, ureq::Error> {
        let remaining = deadline.saturating_duration_since(Instant::now());
        if remaining.is_zero() {
            return Err(ureq::Error::Other(Box::new(HttpError::Timeout)));
        }
        let mut request = http::Request::new(());
        *request.method_mut() = pending.method.clone();
        *request.uri_mut() = pending.url.as_str().parse().map_err(http::Error::from)?;
        *request.headers_mut() = pending.headers.clone();
        if self.accepts_gzip(pending) {
            request.headers_mut().insert(ACCEPT_ENCODING, GZIP);
        }
        let proxy = self.proxies.proxy_for(&pending.url).map_err(|error| ureq::Error::Other(Box::new(error)))?;
        let max_idle = max_idle.unwrap_or(IDLE_CONNECTION_TIMEOUT);
        if let Some(body) = pending.body_to_send() {
            let request = self.agent.configure_request(request.map(|()| body));
            self.agent.run(request.timeout_global(Some(remaining)).max_idle_age(max_idle).proxy(proxy).build())
        } else {
            let request = self.agent.configure_request(request);
            let request = request.timeout_connect(pending.idle_timeout).timeout_per_read(pending.idle_timeout);
            self.agent.run(request.timeout_global(Some(remaining)).max_idle_age(max_idle).proxy(proxy).build())
        }
    }

    /// Sends the request and follows all redirects. Returns the last request and its response.
    fn follow_redirects<'a>(
        &self,
        mut pending: PendingRequest<'a>,
        deadline: Instant,
    ) -> Result<(PendingRequest<'a>, http::Response<ureq::Body>), HttpError> {
        for _ in 0..self.policy.max_redirects {
            let response = self.send_with_retry(&pending, deadline)?;
            let Some(next) = pending.redirected(response.status(), response.headers())? else {
                return Ok((pending, response));
            };
            pending = next;
        }
        let response = self.send_with_retry(&pending, deadline)?;
        if self.policy.max_redirects > 0 && pending.redirected(response.status(), response.headers())?.is_some() {
            return Err(HttpError::Network("too many redirects".to_owned()));
        }
        Ok((pending, response))
    }

    /// Returns whether the response may be compressed. A caller that requests a coding or a range gets the bytes
    /// unchanged.
    fn accepts_gzip(&self, pending: &PendingRequest<'_>) -> bool {
        matches!(self.policy.body_mode, BodyMode::Full { .. })
            && pending.method != Method::HEAD
            && ![ACCEPT_ENCODING, RANGE].iter().any(|name| pending.headers.contains_key(name))
    }

    fn read_response(
        &self,
        pending: PendingRequest<'_>,
        response: http::Response<ureq::Body>,
    ) -> Result<Response, HttpError> {
        let (mut head, mut body) = response.into_parts();
        let is_gzipped = self.accepts_gzip(&pending) && head.headers.get(CONTENT_ENCODING).is_some_and(is_gzip);
        if is_gzipped {
            // These fields describe the compressed body.
            head.headers.remove(CONTENT_ENCODING);
            head.headers.remove(CONTENT_LENGTH);
        }
        let headers = head
            .headers
            .iter()
            .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
            .collect();
        let body = match self.policy.body_mode {
            BodyMode::Full { max_bytes: max } if is_gzipped => gunzip(&mut body, max)?,
            BodyMode::Full { max_bytes: max } => read_limited(body.as_reader(), max)?,
            BodyMode::HeadOnly => {
                // The response was received, so errors in its body are ignored.
                let _ = io::copy(&mut body.as_reader().take(MAX_DISCARDED_BYTES), &mut io::sink());
                Vec::new()
            }
        };
        Ok(Response { status: head.status.as_u16(), headers, body, url: pending.url.into() })
    }
}

impl HttpService for HttpClient {
    fn send(&self, request: &Request) -> Result<Response, HttpError> {
        let pending = PendingRequest::parse(request)?;
        let (pending, response) =
            self.follow_redirects(pending, Instant::now() + request.timeout.min(MAX_REQUEST_DURATION))?;
        self.read_response(pending, response)
    }
}

/// A response whose body is still arriving. Reading fails if the server sends nothing for too long, or closes the
/// connection too early.
pub struct Download {
    /// The status code.
    pub status: u16,
    body: ureq::BodyReader<'static>,
}

impl Read for Download {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.body.read(buffer)
    }
}

/// A validated request. A redirect creates another one.
#[derive(Clone)]
struct PendingRequest<'a> {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Option<&'a [u8]>,
    /// The maximum time without data from the server. `None` if only the whole request is limited.
    idle_timeout: Option<Duration>,
}

impl<'a> PendingRequest<'a> {
    fn parse(request: &'a Request) -> Result<Self, HttpError> {
        let method = Method::from_bytes(request.method.as_bytes())
            .ok()
            // These two methods turn a connection into something else.
            .filter(|method| ![Method::CONNECT, Method::TRACE].contains(method))
            .ok_or_else(|| HttpError::InvalidRequest(format!("{:?} is not a supported HTTP method", request.method)))?;
        let url = parse_url(&request.url)?;
        let mut headers = HeaderMap::with_capacity(request.headers.len());
        for (name, value) in &request.headers {
            let (Ok(name), Ok(value)) =
                (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value.as_bytes()))
            else {
                return Err(HttpError::InvalidRequest(format!("header field {name:?} has an invalid name or value")));
            };
            headers.append(name, value);
        }
        // The length is set by the client.
        headers.remove(CONTENT_LENGTH);
        headers.remove(TRANSFER_ENCODING);
        Ok(Self { method, url, headers, body: request.body.as_deref(), idle_timeout: None })
    }

    /// Returns the body to send. For these methods an empty body is declared explicitly (RFC 9110 section 8.6).
    fn body_to_send(&self) -> Option<&'a [u8]> {
        let sends_empty_body = [Method::POST, Method::PUT, Method::PATCH].contains(&self.method);
        self.body.or(sends_empty_body.then_some(&[]))
    }

    /// Returns the request that follows a redirect, or `None` if the response is not a redirect. Like browsers, 307 and
    /// 308 keep the method and the body, and other redirects use GET (RFC 9110 section 15.4). Secrets are not sent to
    /// another origin.
    fn redirected(&self, status: StatusCode, response: &HeaderMap) -> Result<Option<Self>, HttpError> {
        let keeps_method = matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        let changes_to_get =
            matches!(status, StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND | StatusCode::SEE_OTHER);
        let (true, Some(location)) = (keeps_method || changes_to_get, response.get(LOCATION)) else { return Ok(None) };

        let location = String::from_utf8_lossy(location.as_bytes());
        let url = self.url.join(&location);
        let url = url.map_err(|error| {
            HttpError::InvalidRequest(format!("redirect to {location}, which is not a valid URL: {error}"))
        })?;
        let url = validate_url(url)?;
        let mut next = Self { url, ..self.clone() };
        if changes_to_get {
            if next.method != Method::HEAD {
                next.method = Method::GET;
            }
            next.body = None;
            next.headers.remove(CONTENT_TYPE);
            next.headers.remove(CONTENT_ENCODING);
        }
        if self.url.origin() != next.url.origin() {
            for name in [AUTHORIZATION, COOKIE, HOST, PROXY_AUTHORIZATION] {
                next.headers.remove(name);
            }
        }
        Ok(Some(next))
    }
}

/// Returns whether the coding is gzip. Both names are equivalent, ignoring case (RFC 9110 section 8.4.1).
fn is_gzip(encoding: &HeaderValue) -> bool {
    [&b"gzip"[..], b"x-gzip"].iter().any(|name| encoding.as_bytes().eq_ignore_ascii_case(name))
}

/// Decompresses a body. The limit applies to the decompressed size. An empty body, as with some status codes, is valid.
/// Padding after the last member is ignored.
fn gunzip(body: &mut ureq::Body, max: u64) -> Result<Vec<u8>, HttpError> {
    let mut compressed = BufReader::new(body.as_reader());
    let mut bytes = Vec::new();
    let mut remaining = max;
    for is_first in iter::once(true).chain(iter::repeat(false)) {
        let mut start = Vec::with_capacity(GZIP_MAGIC.len());
        (&mut compressed).take(2).read_to_end(&mut start).map_err(|error| http_error(error.into()))?;
        if start.is_empty() || (!is_first && start != GZIP_MAGIC) {
            break;
        }
        let member = read_limited(GzDecoder::new(start.chain(&mut compressed)), remaining)?;
        remaining = remaining.saturating_sub(u64::try_from(member.len()).unwrap_or(u64::MAX));
        bytes.extend(member);
    }
    Ok(bytes)
}

fn read_limited(body: impl Read, max: u64) -> Result<Vec<u8>, HttpError> {
    let mut bytes = Vec::new();
    body.take(max.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| http_error(error.into()))?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > max) {
        Err(HttpError::ResponseTooLarge)
    } else {
        Ok(bytes)
    }
}

/// Returns whether the error means that the other side closed the connection.
fn is_connection_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof};
    [BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof].contains(&error.kind())
}

fn http_error(error: ureq::Error) -> HttpError {
    match error {
        ureq::Error::Timeout(_) => HttpError::Timeout,
        ureq::Error::BadUri(text) => HttpError::InvalidRequest(text),
        ureq::Error::Http(error) => HttpError::InvalidRequest(error.to_string()),
        ureq::Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => HttpError::ConnectionRefused,
        ureq::Error::Io(error) => HttpError::Network(error.to_string()),
        ureq::Error::Other(inner) => match inner.downcast::<HttpError>() {
            Ok(http_error) => *http_error,
            Err(inner) => HttpError::Network(inner.to_string()),
        },
        other => HttpError::Network(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};
    use std::sync::Arc;
    use std::thread;

    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use rustls::{ServerConfig, ServerConnection, StreamOwned};

    use super::*;

    const POLICY: ClientPolicy = ClientPolicy {
        allow_private_addresses: true,
        use_proxies: false,
        max_redirects: 1,
        body_mode: BodyMode::Full { max_bytes: 100 },
        retry_all_methods: false,
    };

    fn request(url: &str) -> Request {
        let timeout = Duration::from_secs(30);
        Request { method: "GET".to_owned(), url: url.to_owned(), timeout, ..Request::default() }
    }

    /// Responds to requests over TLS.
    fn serve(listener: TcpListener, certificate: CertificateDer<'static>, key: PrivateKeyDer<'static>) {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = Arc::new(config.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap());
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut stream = StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), stream);
                // A client that does not trust the certificate disconnects here.
                if stream.read(&mut [0; 1000]).is_ok() {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret");
                }
            }
        });
    }

    /// Responds to one request with a redirect.
    fn redirect(listener: TcpListener, location: String) {
        thread::spawn(move || {
            let (mut stream, _): (TcpStream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1000]);
            let _ = write!(stream, "HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n");
        });
    }

    #[test]
    fn https_requires_a_trusted_certificate() {
        let generated = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(generated.signing_key.serialize_der()).unwrap();
        let certificate = generated.cert.der().clone();
        let (secure, plain) = (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
        let secure_url = format!("https://localhost:{}/", secure.local_addr().unwrap().port());
        let redirect_url = format!("http://{}/", plain.local_addr().unwrap());
        serve(secure, certificate.clone(), key);
        redirect(plain, secure_url.clone());

        let trusting_client =
            HttpClient::with_trust(TlsTrust::with_extra_roots(generated.cert.pem().as_bytes()).unwrap(), POLICY);
        // Twice, so that the TLS configuration is reused, and then by a redirect.
        for url in [&secure_url, &secure_url, &redirect_url] {
            assert_eq!(trusting_client.send(&request(url)).unwrap().body, b"secret");
        }
        let other_name = secure_url.replace("localhost", "127.0.0.1");
        for (client, url) in [(&HttpClient::new(POLICY), &secure_url), (&trusting_client, &other_name)] {
            let result = client.send(&request(url));
            assert!(matches!(&result, Err(HttpError::Network(text)) if text.contains("certificate")), "{result:?}");
        }
        let insecure_client = HttpClient::with_trust(TlsTrust::accept_any(), POLICY);
        assert_eq!(insecure_client.send(&request(&other_name)).unwrap().body, b"secret");
        assert!(TlsTrust::with_extra_roots(b"no certificate").is_err());
    }

    #[test]
    fn downloads_may_exceed_the_body_limit() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1000]);
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n{}", "x".repeat(10_000));
        });
        let mut download = HttpClient::new(POLICY).download(&request(&url)).unwrap();
        assert_eq!(download.status, 200);
        let mut body = vec![0; 10_000];
        download.read_exact(&mut body).unwrap();
        assert!(body.iter().all(|byte| *byte == b'x'));
        download.read_exact(&mut body).expect_err("the second half of the body is missing");
    }

    #[test]
    fn tunnels_plain_http_through_the_proxy() {
        let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = proxy.local_addr().unwrap();
        let seen = thread::spawn(move || {
            let (mut stream, _) = proxy.accept().unwrap();
            let mut heads = Vec::new();
            for response in ["HTTP/1.1 200 Connected\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhey"] {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    head.push(byte[0]);
                }
                heads.push(String::from_utf8(head).unwrap());
                stream.write_all(response.as_bytes()).unwrap();
            }
            heads
        });
        let proxies = Proxies::new(|name| (name == "HTTP_PROXY").then(|| format!("http://user:pass@{address}")));
        let client = HttpClient::with_parts(LazyTlsConnector::default(), proxies, POLICY);
        let request = Request {
            headers: vec![("Authorization".to_owned(), "secret".to_owned())],
            ..request("http://nowhere.invalid/path")
        };
        assert_eq!(client.send(&request).unwrap().body, b"hey");
        let heads = seen.join().unwrap();
        assert!(heads[0].starts_with("CONNECT nowhere.invalid:80 HTTP/1.1\r\n"), "{heads:?}");
        assert!(heads[0].contains("Proxy-Authorization: Basic dXNlcjpwYXNz\r\n"), "{heads:?}");
        assert!(!heads[0].contains("secret") && heads[1].contains("secret"), "{heads:?}");
        assert!(heads[1].starts_with("GET /path HTTP/1.1\r\n"), "{heads:?}");
    }
}
