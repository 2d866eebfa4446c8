//! Requests to the REST API of a server, and the conversion of its error responses to command errors.

use std::borrow::Cow;
use std::io::Read;
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use restante_http_client::{
    BodyMode, ClientPolicy, Download, HttpClient, HttpError, HttpService as _, Request, Response, TlsTrust, Url,
    parse_url,
};
use restante_mail::naming::Project;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::CommandError;

/// The maximum size of a response in bytes: a message, its HTML and the overhead of JSON.
const MAX_RESPONSE_BYTES: u64 = 512 * 1024 * 1024;
/// The maximum size of an error response to a download in bytes.
const MAX_ERROR_BYTES: u64 = 64 * 1024;
/// The maximum length of an error text that is not JSON.
const MAX_ERROR_LINE_BYTES: usize = 200;
/// The end of the scheme of a URL.
const SCHEME_END: &str = "://";
/// The HTTP port of a server, unless another one is configured.
const DEFAULT_PORT: u16 = 9000;
/// How much longer than the requested wait a response may take.
const WAIT_GRACE: Duration = Duration::from_secs(30);

/// The credentials of the requests.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Credentials {
    /// Anonymous.
    None,
    Token(String),
    User {
        name: String,
        password: String,
    },
}

/// A server and how to access it.
pub(crate) struct Server {
    base: Url,
    client: Arc<HttpClient>,
    credentials: Credentials,
    timeout: Duration,
}

/// A request to the API.
#[derive(Clone, Copy, Default)]
pub(crate) struct ApiRequest<'a> {
    pub(crate) path: &'a [&'a str],
    pub(crate) parameters: &'a [(&'a str, &'a str)],
    /// How long the server is asked to wait before it responds.
    pub(crate) wait: Duration,
}

/// A list of the API that has pages.
pub(crate) struct PagedList<'a> {
    pub(crate) path: &'a [&'a str],
    /// The member of the response that has the items.
    pub(crate) member: &'a str,
    /// The parameter with the position of a page.
    pub(crate) cursor: &'a str,
    /// The maximum number of items per request.
    pub(crate) page_size: usize,
}

/// Items of a list.
pub(crate) struct ListedItems {
    pub(crate) items: Vec<Value>,
    /// The position of the next page, or null if there are no more items.
    pub(crate) next: Value,
    /// False if the server reports that items may be missing.
    pub(crate) is_complete: bool,
}

impl Server {
    pub(crate) fn new(base: Url, credentials: Credentials, trust: TlsTrust, timeout: Duration) -> Self {
        let policy = ClientPolicy {
            allow_private_addresses: true,
            use_proxies: true,
            // A redirect can change the method of a request, for example from DELETE to GET.
            max_redirects: 0,
            body_mode: BodyMode::Full { max_bytes: MAX_RESPONSE_BYTES },
            retry_all_methods: false,
        };
        Self { base, client: HttpClient::with_trust(trust, policy).into(), credentials, timeout }
    }

    /// Returns the host of the server, as written in the URL.
    pub(crate) fn host(&self) -> Option<&str> {
        self.base.host_str()
    }

    /// Returns the URL of the server, without credentials.
    pub(crate) fn url(&self) -> &str {
        self.base.as_str()
    }

    /// Returns the server for the leased run with this token. The run is a project of its own, so the path of another project is
    /// removed from the URL.
    pub(crate) fn for_run(&self, token: &str) -> Self {
        let mut base = self.base.clone();
        base.set_path(&format!("{}/", without_project(self.base.path().trim_end_matches('/'))));
        let credentials = Credentials::Token(token.to_owned());
        Self { base, client: self.client.clone(), credentials, timeout: self.timeout }
    }

    pub(crate) fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// Sends GET and returns the JSON document.
    pub(crate) fn get(&self, path: &[&str], parameters: &[(&str, &str)]) -> Result<Value, CommandError> {
        json_body(&self.send("GET", ApiRequest { path, parameters, ..ApiRequest::default() }, None)?)
    }

    /// Requests the items of a list that match the conditions, page by page, up to the limit.
    pub(crate) fn list(
        &self,
        list: &PagedList<'_>,
        conditions: &[(&str, String)],
        limit: usize,
    ) -> Result<ListedItems, CommandError> {
        let mut found = ListedItems { items: Vec::new(), next: Value::Null, is_complete: true };
        loop {
            let page_size = (limit - found.items.len()).min(list.page_size).to_string();
            let mut parameters = vec![("limit", page_size.as_str())];
            parameters.extend(conditions.iter().map(|(name, value)| (*name, value.as_str())));
            parameters.extend(found.next.as_str().map(|next| (list.cursor, next)));
            let mut page = self.get(list.path, &parameters)?;
            if let Some(Value::Array(items)) = page.get_mut(list.member).map(Value::take) {
                found.items.extend(items);
            }
            found.is_complete &= page["complete"] != false;
            let next = page.get_mut("next").map(Value::take).unwrap_or_default();
            // A page may be empty although there are more. A position that is repeated would never end.
            let is_last = !next.is_string() || next == found.next;
            found.next = next;
            if is_last || found.items.len() >= limit {
                found.items.truncate(limit);
                return Ok(found);
            }
        }
    }

    /// Sends POST with a JSON body and returns the JSON document.
    pub(crate) fn post(&self, path: &[&str], body: &Value) -> Result<Value, CommandError> {
        json_body(&self.send("POST", ApiRequest { path, ..ApiRequest::default() }, Some(body))?)
    }

    /// Sends PATCH with a JSON body and returns the JSON document.
    pub(crate) fn patch(&self, path: &[&str], body: &Value) -> Result<Value, CommandError> {
        json_body(&self.send("PATCH", ApiRequest { path, ..ApiRequest::default() }, Some(body))?)
    }

    /// Sends DELETE and returns the JSON document.
    pub(crate) fn delete(&self, path: &[&str]) -> Result<Value, CommandError> {
        json_body(&self.send("DELETE", ApiRequest { path, ..ApiRequest::default() }, None)?)
    }

    /// Sends a request and returns the response, whatever its status.
    pub(crate) fn send(
        &self,
        method: &str,
        request: ApiRequest<'_>,
        body: Option<&Value>,
    ) -> Result<Response, CommandError> {
        let mut request = self.request(method, request);
        if let Some(body) = body {
            request.headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
            request.body = Some(body.to_string().into_bytes());
        }
        self.client.send(&request).map_err(|error| self.transport_error(&error))
    }

    /// Sends GET and returns the body as a stream.
    pub(crate) fn download(&self, path: &[&str]) -> Result<Download, CommandError> {
        self.stream(ApiRequest { path, ..ApiRequest::default() })
    }

    /// Sends GET and returns the body as a stream, which fails if no data arrives within the time limit.
    pub(crate) fn stream(&self, request: ApiRequest<'_>) -> Result<Download, CommandError> {
        let request = self.request("GET", request);
        let mut download = self.client.download(&request).map_err(|error| self.transport_error(&error))?;
        if download.status == 200 {
            return Ok(download);
        }
        let mut body = Vec::new();
        // If the body is incomplete, only a part of the error text is missing.
        let _ = (&mut download).take(MAX_ERROR_BYTES).read_to_end(&mut body);
        Err(status_error(download.status, &body))
    }

    fn request(&self, method: &str, request: ApiRequest<'_>) -> Request {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(request.path);
        }
        if !request.parameters.is_empty() {
            url.query_pairs_mut().extend_pairs(request.parameters);
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
            timeout: if request.wait.is_zero() { self.timeout } else { request.wait + WAIT_GRACE },
        }
    }

    fn transport_error(&self, error: &HttpError) -> CommandError {
        let base = &self.base;
        match error {
            HttpError::InvalidRequest(_) => {
                CommandError::Usage(format!("The request cannot be sent to {base}: {error}."))
            }
            HttpError::ResponseTooLarge => CommandError::Server(format!("The response of {base} is too long.")),
            HttpError::ConnectionRefused => CommandError::Unreachable(format!(
                "The server {base} cannot be reached: {error}. Is it running? Start a server with `restante`, or \
                 choose another one with --server."
            )),
            HttpError::Timeout | HttpError::Network(_) | HttpError::ForbiddenAddress(_) => {
                CommandError::Unreachable(format!("The server {base} cannot be reached: {error}."))
            }
        }
    }
}

/// Parses the URL of a server, or its host and optionally its port. Credentials are returned separately, and are not
/// part of an error.
pub(crate) fn parse_base_url(text: &str) -> Result<(Url, Credentials), String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("it is empty".to_owned());
    }
    let mut url = Url::parse(&with_scheme(text)).map_err(|error| error.to_string())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("{} is neither http nor https", url.scheme()));
    }
    if !text.contains(SCHEME_END) && matches!(url.host_str(), Some("http" | "https")) {
        return Err("a URL begins with http:// or https://".to_owned());
    }
    url.set_query(None);
    let credentials = match (url.username(), url.password()) {
        ("", _) => Credentials::None,
        (name, password) => {
            Credentials::User { name: percent_decode(name), password: percent_decode(password.unwrap_or_default()) }
        }
    };
    // Credentials are sent in a header field and must not appear in errors.
    let _ = url.set_password(None).and_then(|()| url.set_username(""));
    let path = format!("{}/", url.path().trim_end_matches('/'));
    url.set_path(&path);
    let url = parse_url(url.as_str()).map_err(|error| error.to_string())?;
    Ok((url, credentials))
}

/// Returns the URL of a server that may be given without a scheme: `HOST`, `HOST:PORT`, `HOST:PORT/path`. The scheme is
/// then http, and the port is the default one of a server.
fn with_scheme(text: &str) -> Cow<'_, str> {
    if text.contains(SCHEME_END) {
        return Cow::Borrowed(text);
    }
    if text.parse::<Ipv6Addr>().is_ok() {
        return Cow::Owned(format!("http://[{text}]:{DEFAULT_PORT}"));
    }
    let (authority, path) = text.split_at(text.find(['/', '?', '#']).unwrap_or(text.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let has_port = host.rsplit_once(']').map_or(host, |(_, after_address)| after_address).contains(':');
    Cow::Owned(if has_port { format!("http://{text}") } else { format!("http://{authority}:{DEFAULT_PORT}{path}") })
}

/// Returns the path of a server without `/p/PROJECT` at its end.
fn without_project(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some((parent, name)) if name.parse::<Project>().is_ok() => parent.strip_suffix("/p").unwrap_or(path),
        _ => path,
    }
}

/// Decodes the percent-encoding of a user name or password in a URL.
fn percent_decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Returns the JSON document of a successful response, or the error of any other.
pub(crate) fn json_body(response: &Response) -> Result<Value, CommandError> {
    if !(200..300).contains(&response.status) {
        return Err(status_error(response.status, &response.body));
    }
    serde_json::from_slice(&response.body).map_err(|error| unexpected_response(&error.to_string()))
}

/// Deserializes a JSON document, or a part of one.
pub(crate) fn decode<T: DeserializeOwned>(document: &Value) -> Result<T, CommandError> {
    T::deserialize(document).map_err(|error| unexpected_response(&error.to_string()))
}

/// Converts an error response to a command error, with the text of the server if it has one (RFC 9457).
pub(crate) fn status_error(status: u16, body: &[u8]) -> CommandError {
    let problem: Option<Value> = serde_json::from_slice(body).ok();
    let detail = problem.as_ref().and_then(|problem| problem["detail"].as_str());
    let message = match detail.or_else(|| plain_text_line(body)) {
        Some(text) => text.to_owned(),
        None => format!("The server responded with status {status}."),
    };
    match status {
        404 | 408 | 409 => CommandError::not_found(message),
        400 | 413 | 415 | 422 => CommandError::Usage(message),
        401 | 403 => CommandError::Unauthorized(message),
        _ => CommandError::Server(message),
    }
}

/// Returns the text of a body that is a single line. A port that speaks HTTPS responds like that.
fn plain_text_line(body: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(body).ok()?.trim();
    let is_line = !text.is_empty()
        && text.len() <= MAX_ERROR_LINE_BYTES
        && !text.contains('\n')
        && !text.starts_with(['<', '{', '[']);
    is_line.then_some(text)
}

fn unexpected_response(reason: &str) -> CommandError {
    CommandError::Server(format!("The response of the server is not as expected: {reason}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_responses_have_exit_codes() {
        let body = br#"{"status":0,"detail":"There is no such message."}"#;
        let table =
            [(404, 1), (408, 1), (409, 1), (400, 2), (422, 2), (401, 4), (403, 4), (421, 5), (302, 5), (503, 5)];
        for (status, code) in table {
            let error = status_error(status, body);
            assert_eq!(
                (error.exit_code(), error.to_string().as_str()),
                (code, "There is no such message."),
                "{status}"
            );
        }
        let line = b"This port speaks HTTPS: the URL must begin with https://.\n";
        assert_eq!(status_error(400, line).to_string(), "This port speaks HTTPS: the URL must begin with https://.");
        assert_eq!(status_error(502, b"one\ntwo\n").to_string(), "The server responded with status 502.");
        assert_eq!(status_error(502, b"<html>").to_string(), "The server responded with status 502.");
    }

    #[test]
    fn parses_server_urls() {
        let user = |name: &str, password: &str| Credentials::User { name: name.into(), password: password.into() };
        let table = [
            ("http://localhost:9000", "http://localhost:9000/", Credentials::None),
            ("https://ci.test/mail/?x#y", "https://ci.test/mail/", Credentials::None),
            ("https://ci.test/mail", "https://ci.test/mail/", Credentials::None),
            ("http://ci.test//mail///", "http://ci.test//mail/", Credentials::None),
            ("http://ci.test//", "http://ci.test/", Credentials::None),
            ("http://ann:p%40ss%zz@x.test", "http://x.test/", user("ann", "p@ss%zz")),
            ("http://ann@x.test", "http://x.test/", user("ann", "")),
            ("https://localhost:9000", "https://localhost:9000/", Credentials::None),
            ("localhost:9000", "http://localhost:9000/", Credentials::None),
            ("localhost:80", "http://localhost/", Credentials::None),
            ("localhost", "http://localhost:9000/", Credentials::None),
            ("ci.test/mail", "http://ci.test:9000/mail/", Credentials::None),
            ("ci.test:8080/mail/", "http://ci.test:8080/mail/", Credentials::None),
            ("127.0.0.1:9000", "http://127.0.0.1:9000/", Credentials::None),
            ("[::1]:8080", "http://[::1]:8080/", Credentials::None),
            ("[::1]", "http://[::1]:9000/", Credentials::None),
            ("::1", "http://[::1]:9000/", Credentials::None),
            ("ann:secret@ci.test", "http://ci.test:9000/", user("ann", "secret")),
            (" localhost:9000\n", "http://localhost:9000/", Credentials::None),
        ];
        for (text, expected, credentials) in table {
            let (url, found) = parse_base_url(text).unwrap();
            assert_eq!(url.as_str(), expected);
            assert!(found == credentials, "{text}");
        }
        let invalid = [
            ("ftp://x", "ftp is neither http nor https"),
            ("", "it is empty"),
            ("http://", "empty host"),
            (":9000", "empty host"),
            ("localhost:99999", "invalid port number"),
            ("http://ann:secret@localhost:99999", "invalid port number"),
            ("localhost:web", "invalid port number"),
            ("http:localhost", "invalid port number"),
            ("http//localhost", "a URL begins with http:// or https://"),
            ("two words", "invalid international domain name"),
            ("[::1", "invalid IPv6 address"),
        ];
        for (text, expected) in invalid {
            assert_eq!(parse_base_url(text).err().as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn run_has_no_path_of_another_project() {
        let table = [
            ("http://x.test", "http://x.test/"),
            ("http://x.test/p/shop", "http://x.test/"),
            ("http://x.test/mail/p/shop/", "http://x.test/mail/"),
            ("http://x.test/mail/shop", "http://x.test/mail/shop/"),
            ("http://x.test/p/Shop", "http://x.test/p/Shop/"),
            ("http://x.test/p", "http://x.test/p/"),
        ];
        for (text, expected) in table {
            let (url, _) = parse_base_url(text).unwrap();
            let server = Server::new(url, Credentials::None, TlsTrust::default(), Duration::from_secs(1));
            assert_eq!(server.for_run("t").url(), expected);
        }
    }

    #[test]
    fn encodes_paths_below_the_base_url() {
        let (url, _) = parse_base_url("http://x.test/mail/").unwrap();
        let server = Server::new(url, Credentials::None, TlsTrust::default(), Duration::from_secs(1));
        let path = &["api", "v1", "mailbox", "a/b c@x.org"];
        let request =
            server.request("GET", ApiRequest { path, parameters: &[("q", "a b&c")], ..ApiRequest::default() });
        assert_eq!(request.url, "http://x.test/mail/api/v1/mailbox/a%2Fb%20c@x.org?q=a+b%26c");
    }
}
