//! The server on the other side: requests to its API, and what its refusals mean for a command. What is asked for is decided
//! by the commands.

use std::io::Read;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use restante_http_client::{
    BodyMode, ClientPolicy, Download, HttpClient, HttpService as _, Request, Response, TlsTrust, Url, parse_url,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::failure::Failure;

/// The longest answer that is kept in memory: a mail, its HTML and what JSON makes of both.
const MAX_ANSWER: u64 = 512 * 1024 * 1024;
/// The longest refusal that is read of an answer that is otherwise a stream.
const MAX_REFUSAL: u64 = 64 * 1024;
/// The longest text of a refusal that is no JSON.
const MAX_LINE: usize = 200;
/// How much longer than the server may wait for mail, its answer may take.
const GRACE: Duration = Duration::from_secs(30);

/// Who asks.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Credentials {
    /// Anybody.
    None,
    Token(String),
    User {
        name: String,
        password: String,
    },
}

/// A server, and how to talk to it.
pub(crate) struct Server {
    base: Url,
    courier: HttpClient,
    credentials: Credentials,
    timeout: Duration,
}

/// A path below the base, and what is asked of it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Question<'a> {
    pub(crate) path: &'a [&'a str],
    pub(crate) parameters: &'a [(&'a str, &'a str)],
    /// How long the server is asked to wait before it answers.
    pub(crate) wait: Duration,
}

impl Server {
    pub(crate) fn new(base: Url, credentials: Credentials, trust: TlsTrust, timeout: Duration) -> Self {
        let rules = ClientPolicy {
            allow_private_addresses: true,
            use_proxies: true,
            // A redirect can turn what should delete into what only asks.
            max_redirects: 0,
            body_mode: BodyMode::Full { max_bytes: MAX_ANSWER },
            retry_all_methods: false,
        };
        Self { base, courier: HttpClient::with_trust(trust, rules), credentials, timeout }
    }

    /// The host of the server, as it stands in a URL.
    pub(crate) fn host(&self) -> Option<&str> {
        self.base.host_str()
    }

    pub(crate) fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// The JSON document that a path gives.
    pub(crate) fn get(&self, question: Question<'_>) -> Result<Value, Failure> {
        document(&self.ask("GET", question, None)?)
    }

    /// The JSON document that a path gives when this is sent to it.
    pub(crate) fn post(&self, path: &[&str], body: &Value) -> Result<Value, Failure> {
        document(&self.ask("POST", Question { path, ..Question::default() }, Some(body))?)
    }

    /// The JSON document that deleting a path gives.
    pub(crate) fn delete(&self, path: &[&str]) -> Result<Value, Failure> {
        document(&self.ask("DELETE", Question { path, ..Question::default() }, None)?)
    }

    /// The whole answer, whatever its status.
    pub(crate) fn ask(&self, method: &str, question: Question<'_>, body: Option<&Value>) -> Result<Response, Failure> {
        let mut request = self.request(method, question);
        if let Some(body) = body {
            request.headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
            request.body = Some(body.to_string().into_bytes());
        }
        self.courier.send(&request).map_err(|failure| self.unreachable(&failure))
    }

    /// The bytes of a path, while they arrive.
    pub(crate) fn download(&self, path: &[&str]) -> Result<Download, Failure> {
        let request = self.request("GET", Question { path, ..Question::default() });
        let mut download = self.courier.download(&request).map_err(|failure| self.unreachable(&failure))?;
        if download.status == 200 {
            return Ok(download);
        }
        let mut body = Vec::new();
        // What is missing of it is missing of a sentence.
        let _ = (&mut download).take(MAX_REFUSAL).read_to_end(&mut body);
        Err(refusal(download.status, &body))
    }

    fn request(&self, method: &str, question: Question<'_>) -> Request {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(question.path);
        }
        if !question.parameters.is_empty() {
            url.query_pairs_mut().extend_pairs(question.parameters);
        }
        let authorization = match &self.credentials {
            Credentials::None => None,
            Credentials::Token(token) => Some(format!("Bearer {token}")),
            Credentials::User { name, password } => {
                Some(format!("Basic {}", STANDARD.encode(format!("{name}:{password}"))))
            }
        };
        Request {
            method: method.to_owned(),
            url: url.into(),
            headers: authorization.map(|value| ("Authorization".to_owned(), value)).into_iter().collect(),
            body: None,
            timeout: if question.wait.is_zero() { self.timeout } else { question.wait + GRACE },
        }
    }

    fn unreachable(&self, failure: &restante_http_client::HttpError) -> Failure {
        use restante_http_client::HttpError as Sent;
        let base = &self.base;
        match failure {
            Sent::InvalidRequest(_) => Failure::Usage(format!("The request cannot be sent to {base}: {failure}.")),
            Sent::ResponseTooLarge => Failure::Server(format!("The answer of {base} is too long.")),
            Sent::Timeout | Sent::Network(_) | Sent::ForbiddenAddress(_) => {
                Failure::Unreachable(format!("The server {base} cannot be reached: {failure}."))
            }
        }
    }
}

/// Understands the URL of a server. Credentials in it count as those of a user.
pub(crate) fn base(text: &str) -> Result<(Url, Credentials), String> {
    let mut url = parse_url(text).map_err(|failure| failure.to_string())?;
    url.set_query(None);
    let credentials = match (url.username(), url.password()) {
        ("", _) => Credentials::None,
        (name, password) => Credentials::User { name: decoded(name), password: decoded(password.unwrap_or_default()) },
    };
    // They are sent as a header field, and appear in no error.
    let _ = url.set_password(None).and_then(|()| url.set_username(""));
    let path = format!("{}/", url.path().trim_end_matches('/'));
    url.set_path(&path);
    Ok((url, credentials))
}

/// Undoes the percent-encoding of a URL's name or password.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let hex = behind.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            _ => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The document of an answer that says yes; otherwise what its refusal means.
pub(crate) fn document(answer: &Response) -> Result<Value, Failure> {
    if !(200..300).contains(&answer.status) {
        return Err(refusal(answer.status, &answer.body));
    }
    serde_json::from_slice(&answer.body).map_err(|error| strange(&error.to_string()))
}

/// A document, or a part of one, in the shape that the API promises.
pub(crate) fn shaped<T: DeserializeOwned>(document: &Value) -> Result<T, Failure> {
    T::deserialize(document).map_err(|error| strange(&error.to_string()))
}

/// What a refusal means, in the server's own words where it has some (RFC 9457).
pub(crate) fn refusal(status: u16, body: &[u8]) -> Failure {
    let problem: Option<Value> = serde_json::from_slice(body).ok();
    let detail = problem.as_ref().and_then(|problem| problem["detail"].as_str());
    let sentence = match detail.or_else(|| line_of_text(body)) {
        Some(text) => text.to_owned(),
        None => format!("The server answers with status {status}."),
    };
    match status {
        404 | 408 | 409 => Failure::nothing(sentence),
        400 | 413 | 415 | 422 => Failure::Usage(sentence),
        401 | 403 => Failure::Refused(sentence),
        _ => Failure::Server(sentence),
    }
}

/// The text of an answer that is one line and nothing else: a port that speaks HTTPS says so that way.
fn line_of_text(body: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(body).ok()?.trim();
    let is_line =
        !text.is_empty() && text.len() <= MAX_LINE && !text.contains('\n') && !text.starts_with(['<', '{', '[']);
    is_line.then_some(text)
}

fn strange(why: &str) -> Failure {
    Failure::Server(format!("The answer of the server cannot be understood: {why}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_have_exit_codes() {
        let body = br#"{"status":0,"detail":"There is no such message."}"#;
        let table =
            [(404, 1), (408, 1), (409, 1), (400, 2), (422, 2), (401, 4), (403, 4), (421, 5), (302, 5), (503, 5)];
        for (status, code) in table {
            let failure = refusal(status, body);
            assert_eq!((failure.code(), failure.to_string().as_str()), (code, "There is no such message."), "{status}");
        }
        let line = b"This port speaks HTTPS: the URL must begin with https://.\n";
        assert_eq!(refusal(400, line).to_string(), "This port speaks HTTPS: the URL must begin with https://.");
        assert_eq!(refusal(502, b"one\ntwo\n").to_string(), "The server answers with status 502.");
        assert_eq!(refusal(502, b"<html>").to_string(), "The server answers with status 502.");
    }

    #[test]
    fn urls_of_servers() {
        let user = |name: &str, password: &str| Credentials::User { name: name.into(), password: password.into() };
        let table = [
            ("http://localhost:9000", "http://localhost:9000/", Credentials::None),
            ("https://ci.test/mail/?x#y", "https://ci.test/mail/", Credentials::None),
            ("https://ci.test/mail", "https://ci.test/mail/", Credentials::None),
            ("http://ci.test//mail///", "http://ci.test//mail/", Credentials::None),
            ("http://ci.test//", "http://ci.test/", Credentials::None),
            ("http://ann:p%40ss%zz@x.test", "http://x.test/", user("ann", "p@ss%zz")),
            ("http://ann@x.test", "http://x.test/", user("ann", "")),
        ];
        for (text, expected, credentials) in table {
            let (url, found) = base(text).unwrap();
            assert_eq!(url.as_str(), expected);
            assert!(found == credentials, "{text}");
        }
        for bad in ["localhost:9000", "ftp://x", ""] {
            assert!(base(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn paths_are_encoded_below_the_base() {
        let (url, _) = base("http://x.test/mail/").unwrap();
        let server = Server::new(url, Credentials::None, TlsTrust::default(), Duration::from_secs(1));
        let path = &["api", "v1", "mailbox", "a/b c@x.org"];
        let request = server.request("GET", Question { path, parameters: &[("q", "a b&c")], ..Question::default() });
        assert_eq!(request.url, "http://x.test/mail/api/v1/mailbox/a%2Fb%20c@x.org?q=a+b%26c");
    }
}
