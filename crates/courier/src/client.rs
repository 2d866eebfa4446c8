//! The client itself: one request, its redirects, and the answer, within the time and size that are allowed.

use std::io::{self, Read as _};
use std::time::{Duration, Instant};

use ureq::Agent;
use ureq::config::Config;
use ureq::http::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, LOCATION, PROXY_AUTHORIZATION,
    TRANSFER_ENCODING,
};
use ureq::http::{self, HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use ureq::unversioned::transport::{Connector as _, TcpConnector};
use url::Url;

use crate::resolver::Guide;
use crate::tls::Tls;
use crate::{Answers, Failure, Http, Request, Response, Rules};

/// No request takes longer than this, whatever was asked for.
const LONGEST: Duration = Duration::from_hours(1);

/// The longest head of an answer, and the size of the buffers of a connection.
const HEAD: usize = 64 * 1024;

/// How much of a body is read that nobody wants. A connection can be used again only when its end is reached.
const UNWANTED: u64 = 64 * 1024;

/// The client. Cheap to make; connections are kept for the next request to the same host, for a short time.
///
/// It knows no cookies and no proxies, those of the environment neither: a proxy would look up names itself, past
/// [`Rules::private_addresses`].
#[derive(Debug)]
pub struct Courier {
    agent: Agent,
    rules: Rules,
}

impl Courier {
    /// A client that keeps to these rules.
    pub fn new(rules: Rules) -> Self {
        Self::over(Tls::default(), rules)
    }

    fn over(tls: Tls, rules: Rules) -> Self {
        let config = Config::builder()
            .http_status_as_error(false)
            .proxy(None)
            // Redirects are followed here: the client's own way to do it panics when a server breaks off the body of one.
            .max_redirects(0)
            .allow_non_standard_methods(true)
            .user_agent(concat!("Restante/", env!("CARGO_PKG_VERSION")))
            .max_response_header_size(HEAD)
            .input_buffer_size(HEAD)
            .output_buffer_size(HEAD)
            .build();
        let connector = ().chain(TcpConnector::default()).chain(tls);
        Self { agent: Agent::with_parts(config, connector, Guide::new(rules.private_addresses)), rules }
    }

    fn exchange(&self, errand: &Errand<'_>, deadline: Instant) -> Result<http::Response<ureq::Body>, Failure> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Failure::Timeout);
        }
        let mut request = http::Request::new(());
        *request.method_mut() = errand.method.clone();
        *request.uri_mut() = errand.url.as_str().parse().map_err(|error| malformed(&errand.url, &error))?;
        *request.headers_mut() = errand.headers.clone();
        let answer = if let Some(body) = errand.body {
            let request = self.agent.configure_request(request.map(|()| body));
            self.agent.run(request.timeout_global(Some(left)).build())
        } else {
            let request = self.agent.configure_request(request);
            self.agent.run(request.timeout_global(Some(left)).build())
        };
        answer.map_err(failure)
    }

    fn read(&self, url: Url, answer: http::Response<ureq::Body>) -> Result<Response, Failure> {
        let (head, mut body) = answer.into_parts();
        let headers = head
            .headers
            .iter()
            .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
            .collect();
        let body = match self.rules.answers {
            Answers::Whole { max } => whole(&mut body, max)?,
            Answers::Head => {
                // What matters has been said.
                let _ = io::copy(&mut body.as_reader().take(UNWANTED), &mut io::sink());
                Vec::new()
            }
        };
        Ok(Response { status: head.status.as_u16(), headers, body, url: url.into() })
    }
}

impl Http for Courier {
    fn send(&self, request: &Request) -> Result<Response, Failure> {
        let mut errand = Errand::parse(request)?;
        let deadline = Instant::now() + request.timeout.min(LONGEST);
        for _ in 0..self.rules.redirects {
            let answer = self.exchange(&errand, deadline)?;
            let Some(next) = errand.follow(answer.status(), answer.headers())? else {
                return self.read(errand.url, answer);
            };
            errand = next;
        }
        let answer = self.exchange(&errand, deadline)?;
        if self.rules.redirects > 0 && errand.follow(answer.status(), answer.headers())?.is_some() {
            return Err(Failure::Broken("too many redirects".to_owned()));
        }
        self.read(errand.url, answer)
    }
}

/// One request on its way, which a redirect may send elsewhere.
struct Errand<'a> {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Option<&'a [u8]>,
}

impl<'a> Errand<'a> {
    fn parse(request: &'a Request) -> Result<Self, Failure> {
        let method = Method::from_bytes(request.method.as_bytes())
            .ok()
            // These two turn a connection into something else.
            .filter(|method| ![Method::CONNECT, Method::TRACE].contains(method))
            .ok_or_else(|| Failure::Malformed(format!("{:?} is no method", request.method)))?;
        let url = Url::parse(&request.url).map_err(|error| malformed(&request.url, &error))?;
        let mut headers = HeaderMap::with_capacity(request.headers.len());
        for (name, value) in &request.headers {
            let (Ok(name), Ok(value)) =
                (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value.as_bytes()))
            else {
                return Err(Failure::Malformed(format!("{name:?} is no header field, or its value is none")));
            };
            headers.append(name, value);
        }
        // How long the body is, is known better here.
        headers.remove(CONTENT_LENGTH);
        headers.remove(TRANSFER_ENCODING);
        Self { method, url, headers, body: request.body.as_deref() }.checked()
    }

    fn checked(mut self) -> Result<Self, Failure> {
        if !matches!(self.url.scheme(), "http" | "https") {
            return Err(Failure::Malformed(format!("{} is no http or https URL", self.url)));
        }
        self.url.set_fragment(None);
        Ok(self)
    }

    /// The request that follows this answer to it; none when the answer is no redirect. As browsers do, 307 and 308 keep
    /// method and body, the others ask with GET (RFC 9110, section 15.4). Secrets stay with those they were meant for.
    fn follow(&self, status: StatusCode, answer: &HeaderMap) -> Result<Option<Self>, Failure> {
        let keeps = matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        let moves = matches!(status, StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND | StatusCode::SEE_OTHER);
        let (true, Some(location)) = (keeps || moves, answer.get(LOCATION)) else { return Ok(None) };

        let location = String::from_utf8_lossy(location.as_bytes());
        let url = self.url.join(&location).map_err(|error| malformed(&location, &error))?;
        let mut next = Self { method: self.method.clone(), headers: self.headers.clone(), body: self.body, url };
        if moves {
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
        next.checked().map(Some)
    }
}

fn whole(body: &mut ureq::Body, max: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    body.as_reader().take(max.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| failure(error.into()))?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > max) { Err(Failure::TooLong) } else { Ok(bytes) }
}

fn malformed(url: impl std::fmt::Display, error: &dyn std::fmt::Display) -> Failure {
    Failure::Malformed(format!("{url} is no URL: {error}"))
}

fn failure(error: ureq::Error) -> Failure {
    match error {
        ureq::Error::Timeout(_) => Failure::Timeout,
        ureq::Error::BadUri(text) => Failure::Malformed(text),
        ureq::Error::Http(error) => Failure::Malformed(error.to_string()),
        ureq::Error::Io(error) => Failure::Broken(error.to_string()),
        ureq::Error::Other(inner) => match inner.downcast::<Failure>() {
            Ok(ours) => *ours,
            Err(inner) => Failure::Broken(inner.to_string()),
        },
        other => Failure::Broken(other.to_string()),
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
    fn https_is_for_servers_that_are_trusted() {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let certificate = made.cert.der().clone();
        let (secure, plain) = (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
        let there = format!("https://localhost:{}/", secure.local_addr().unwrap().port());
        let here = format!("http://{}/", plain.local_addr().unwrap());
        serve(secure, certificate.clone(), key);
        redirect(plain, there.clone());

        let rules = Rules { private_addresses: true, redirects: 1, answers: Answers::Whole { max: 100 } };
        let trusting = Courier::over(Tls::trusting(&certificate), rules.clone());
        let request = |url: &str| Request {
            method: "GET".to_owned(),
            url: url.to_owned(),
            timeout: Duration::from_secs(30),
            ..Request::default()
        };
        // By name, twice, to see that what was set up serves the second one too; and on the way of a redirect.
        for url in [&there, &there, &here] {
            assert_eq!(trusting.send(&request(url)).unwrap().body, b"secret");
        }
        let other_name = there.replace("localhost", "127.0.0.1");
        for (courier, url) in [(&Courier::new(rules), &there), (&trusting, &other_name)] {
            let result = courier.send(&request(url));
            assert!(matches!(&result, Err(Failure::Broken(why)) if why.contains("certificate")), "{result:?}");
        }
    }
}
