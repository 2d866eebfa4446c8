//! The client itself: one request, its redirects, and the answer, within the time and size that are allowed.

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

/// No request takes longer than this, whatever was asked for.
const MAX_REQUEST_DURATION: Duration = Duration::from_hours(1);

/// The longest head of an answer, and the size of the buffers of a connection.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// What bodies may be packed with.
const GZIP: HeaderValue = HeaderValue::from_static("gzip");

/// What a member of a gzip stream begins with (RFC 1952, section 2.3.1).
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// How much of a body is read that nobody wants. A connection can be used again only when its end is reached.
const MAX_DISCARDED_BYTES: u64 = 64 * 1024;

/// How long a connection is kept for the next request.
const IDLE_CONNECTION_TIMEOUT: Duration = Duration::from_secs(15);

/// The client. Cheap to make; connections are kept for the next request to the same host, for a short time.
///
/// It knows no cookies. Answers that are packed with gzip are unpacked.
#[derive(Debug)]
pub struct HttpClient {
    agent: Agent,
    proxies: Proxies,
    policy: ClientPolicy,
}

impl HttpClient {
    /// A client that keeps to these rules.
    pub fn new(policy: ClientPolicy) -> Self {
        Self::with_trust(TlsTrust::default(), policy)
    }

    /// A client that keeps to these rules, and believes others than the system does.
    pub fn with_trust(trust: TlsTrust, policy: ClientPolicy) -> Self {
        let proxies = if policy.use_proxies { Proxies::from_env() } else { Proxies::default() };
        Self::with_parts(LazyTlsConnector::new(trust), proxies, policy)
    }

    /// Sends a request, and hands over the body of the answer while it arrives, of any length. The time that the request
    /// allows is the longest silence, not the whole.
    pub fn download(&self, request: &Request) -> Result<Download, HttpError> {
        let mut pending = PendingRequest::parse(request)?;
        pending.idle_timeout = Some(request.timeout);
        // Nothing is unpacked on the way.
        pending.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let (_, response) = self.follow_redirects(pending, Instant::now() + MAX_REQUEST_DURATION)?;
        let (head, body) = response.into_parts();
        Ok(Download { status: head.status.as_u16(), body: body.into_reader() })
    }

    fn with_parts(tls: LazyTlsConnector, proxies: Proxies, policy: ClientPolicy) -> Self {
        let config = Config::builder()
            .http_status_as_error(false)
            .proxy(None)
            // Redirects are followed here: the client's own way to do it panics when a server breaks off the body of one.
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

    /// One attempt. A connection from an earlier request is used only when it was left not longer ago than `idle`.
    fn try_send(
        &self,
        pending: &PendingRequest<'_>,
        deadline: Instant,
        idle: Option<Duration>,
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
        let idle = idle.unwrap_or(IDLE_CONNECTION_TIMEOUT);
        if let Some(body) = pending.body_to_send() {
            let request = self.agent.configure_request(request.map(|()| body));
            self.agent.run(request.timeout_global(Some(remaining)).max_idle_age(idle).proxy(proxy).build())
        } else {
            let request = self.agent.configure_request(request);
            let request = request.timeout_connect(pending.idle_timeout).timeout_per_read(pending.idle_timeout);
            self.agent.run(request.timeout_global(Some(remaining)).max_idle_age(idle).proxy(proxy).build())
        }
    }

    /// The answer behind all redirects, and the request that got it.
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

    /// Whether the answer may come packed with gzip. Who asks for an encoding, or for a part, wants the bytes as they are.
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
            // What they say is not true of the body as it is handed over.
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
                // What matters has been said.
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

/// An answer whose body is still under way; reading it fails when the other side falls silent or breaks off.
pub struct Download {
    /// 200 and so on.
    pub status: u16,
    body: ureq::BodyReader<'static>,
}

impl Read for Download {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.body.read(buffer)
    }
}

/// One request on its way, which a redirect may send elsewhere.
struct PendingRequest<'a> {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Option<&'a [u8]>,
    /// How long the other side may say nothing; without it, only the whole is limited.
    idle_timeout: Option<Duration>,
}

impl<'a> PendingRequest<'a> {
    fn parse(request: &'a Request) -> Result<Self, HttpError> {
        let method = Method::from_bytes(request.method.as_bytes())
            .ok()
            // These two turn a connection into something else.
            .filter(|method| ![Method::CONNECT, Method::TRACE].contains(method))
            .ok_or_else(|| HttpError::InvalidRequest(format!("{:?} is no method", request.method)))?;
        let url = parse_url(&request.url)?;
        let mut headers = HeaderMap::with_capacity(request.headers.len());
        for (name, value) in &request.headers {
            let (Ok(name), Ok(value)) =
                (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value.as_bytes()))
            else {
                return Err(HttpError::InvalidRequest(format!("{name:?} is no header field, or its value is none")));
            };
            headers.append(name, value);
        }
        // How long the body is, is known better here.
        headers.remove(CONTENT_LENGTH);
        headers.remove(TRANSFER_ENCODING);
        Ok(Self { method, url, headers, body: request.body.as_deref(), idle_timeout: None })
    }

    /// What is sent behind the head. For these methods an empty body is told as such (RFC 9110, section 8.6).
    fn body_to_send(&self) -> Option<&'a [u8]> {
        let sends_empty_body = [Method::POST, Method::PUT, Method::PATCH].contains(&self.method);
        self.body.or(sends_empty_body.then_some(&[]))
    }

    /// The request that follows this answer to it; none when the answer is no redirect. As browsers do, 307 and 308 keep
    /// method and body, the others ask with GET (RFC 9110, section 15.4). Secrets stay with those they were meant for.
    fn redirected(&self, status: StatusCode, response: &HeaderMap) -> Result<Option<Self>, HttpError> {
        let keeps_method = matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        let changes_to_get =
            matches!(status, StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND | StatusCode::SEE_OTHER);
        let (true, Some(location)) = (keeps_method || changes_to_get, response.get(LOCATION)) else { return Ok(None) };

        let location = String::from_utf8_lossy(location.as_bytes());
        let url = self.url.join(&location);
        let url = url.map_err(|error| HttpError::InvalidRequest(format!("{location} is no URL: {error}")))?;
        let url = validate_url(url)?;
        let mut next = Self {
            method: self.method.clone(),
            headers: self.headers.clone(),
            body: self.body,
            idle_timeout: self.idle_timeout,
            url,
        };
        if changes_to_get {
            if next.method != Method::HEAD {
                next.method = Method::GET;
            }
            next.body = None;
            next.headers.remove(CONTENT_TYPE);
            next.headers.remove(CONTENT_ENCODING);
        }
        if self.url.origin() != next.url.origin() {
            for private in [AUTHORIZATION, COOKIE, HOST, PROXY_AUTHORIZATION] {
                next.headers.remove(private);
            }
        }
        Ok(Some(next))
    }
}

/// Both names are the same, in any case (RFC 9110, section 8.4.1).
fn is_gzip(encoding: &HeaderValue) -> bool {
    [&b"gzip"[..], b"x-gzip"].iter().any(|name| encoding.as_bytes().eq_ignore_ascii_case(name))
}

/// The bound holds for what comes out. Nothing at all, as with many a status, is not packed either. Some pad what they have
/// packed: what follows a member and begins no other one is left alone.
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

/// Whether this is what a connection looks like that the other side has closed.
fn is_connection_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof};
    [BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof].contains(&error.kind())
}

fn http_error(error: ureq::Error) -> HttpError {
    match error {
        ureq::Error::Timeout(_) => HttpError::Timeout,
        ureq::Error::BadUri(text) => HttpError::InvalidRequest(text),
        ureq::Error::Http(error) => HttpError::InvalidRequest(error.to_string()),
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

    /// Answers one request after the other by TLS.
    fn serve(listener: TcpListener, certificate: CertificateDer<'static>, key: PrivateKeyDer<'static>) {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = Arc::new(config.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap());
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut stream = StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), stream);
                // A client that does not trust the certificate hangs up here.
                if stream.read(&mut [0; 1000]).is_ok() {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret");
                }
            }
        });
    }

    /// Answers one request with a redirect.
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
        let https_url = format!("https://localhost:{}/", secure.local_addr().unwrap().port());
        let http_url = format!("http://{}/", plain.local_addr().unwrap());
        serve(secure, certificate.clone(), key);
        redirect(plain, https_url.clone());

        let trusting_client =
            HttpClient::with_trust(TlsTrust::with_extra_roots(generated.cert.pem().as_bytes()).unwrap(), POLICY);
        // By name, twice, to see that what was set up serves the second one too; and on the way of a redirect.
        for url in [&https_url, &https_url, &http_url] {
            assert_eq!(trusting_client.send(&request(url)).unwrap().body, b"secret");
        }
        let other_name = https_url.replace("localhost", "127.0.0.1");
        for (client, url) in [(&HttpClient::new(POLICY), &https_url), (&trusting_client, &other_name)] {
            let result = client.send(&request(url));
            assert!(matches!(&result, Err(HttpError::Network(why)) if why.contains("certificate")), "{result:?}");
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
        download.read_exact(&mut body).expect_err("the other half is missing");
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
