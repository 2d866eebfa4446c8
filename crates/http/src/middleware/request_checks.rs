//! Checks every request: the Host header (DNS rebinding), Fetch Metadata and Origin (requests from
//! web pages of other origins). The address of the client is determined in `forwarded`, its identity in
//! `authentication`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use axum::extract::{MatchedPath, Request};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Version, header};
use axum::response::{IntoResponse, Response};
use restante_http_connection::clean_path::{clean_path, path_and_query};
use restante_http_connection::context::Peer;
use restante_http_connection::disconnect::Disconnect;
use restante_http_core::extractors::cancellation::or_pending;
use restante_http_core::extractors::request_context::{
    AllowedOrigin, FETCH_MODE, FETCH_SITE, RequestHost, client_path, is_page_request,
};
use restante_http_core::paths::{self, ASSETS, LIVE, READY};
use restante_http_core::response::problem::Problem;
use restante_http_core::response::success::moved_permanently;
use restante_http_core::response::viewer::{FETCH_DEST, is_browser};
use restante_http_core::server::Settings;
use tokio::time::sleep;

use crate::middleware::Mount;
use crate::middleware::forwarded::Forwarded;

const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The host in links for clients that name none.
const DEFAULT_HOST: &str = "localhost";
/// The maximum length of a host name (RFC 1035 section 2.3.4).
const MAX_HOST_BYTES: usize = 255;
/// Top-level domains that are reserved for use on one machine or network: RFC 6761 section 6.3, RFC 6762 section 3,
/// ICANN's `internal`, and the domains of Kubernetes services, `svc` and `cluster.local`.
const PRIVATE_DOMAINS: [&str; 4] = ["localhost", "local", "internal", "svc"];
/// The destinations of code, separated by spaces.
const CODE_DESTINATIONS: &str =
    "audioworklet embed manifest object paintworklet script serviceworker sharedworker style worker xslt";
/// The time that a response may still take after the client has closed its side of the connection. A client may close
/// only its sending side and still read the response, but most clients that close have disconnected.
const DISCONNECT_GRACE: Duration = Duration::from_secs(2);

/// Refuses requests that are not addressed to this server or come from another site. Redirects requests for paths with
/// repeated slashes or dot segments. Cancels a request if its client disconnects.
pub(super) async fn check_request(
    mount: &Mount,
    mut request: Request,
    next: impl AsyncFnOnce(Request) -> Response,
) -> Response {
    let forwarded = match validate_request(mount, &mut request) {
        Ok(_) if let Some(path) = redirect_target(&mount.server.settings, &request) => {
            return moved_permanently(path).unwrap_or_else(Problem::into_response);
        }
        Ok(forwarded) => forwarded,
        Err(problem) => return problem.into_response(),
    };
    let disconnect: Option<Disconnect> = request.extensions().get().cloned();
    let handle = async {
        match forwarded {
            // Boxed, so that the future of a request without a proxy is small.
            Some(forwarded) => Box::pin(forwarded.run(request, next)).await,
            None => next(request).await,
        }
    };
    cancel_on_disconnect(disconnect.as_ref(), handle).await
}

/// Cancels `handler` shortly after the client disconnects, so that its permits are released. Store changes that have
/// started still complete: the mailroom runs them in their own task.
async fn cancel_on_disconnect(disconnect: Option<&Disconnect>, handler: impl Future<Output = Response>) -> Response {
    tokio::select! {
        biased;
        response = handler => response,
        () = async {
            or_pending(disconnect.map(Disconnect::wait)).await;
            sleep(DISCONNECT_GRACE).await;
        } => Problem::Disconnected.into_response(),
    }
}

/// Returns the location to which a GET with repeated slashes or dot segments is redirected. It is the path that
/// browsers see: a proxy may have replaced its beginning.
fn redirect_target(settings: &Settings, request: &Request) -> Option<String> {
    let path = if request.method().is_safe() { clean_path(request.uri().path())? } else { return None };
    Some(path_and_query(request.uri(), &client_path(settings, request.extensions(), &path)))
}

/// Checks a request and adds its host as an extension. Health checks may be sent to any host or none: supervisors know
/// only an address, and the response reveals nothing.
fn validate_request(mount: &Mount, request: &mut Request) -> Result<Option<Forwarded>, Problem> {
    let settings = &mount.server.settings;
    check_destination(mount, request)?;
    if ![LIVE, READY].contains(&mount.route_template(request)) {
        let host = request_host(settings, request)?;
        check_site(mount, request, &host)?;
        request.extensions_mut().insert(host);
    }
    Forwarded::from_request(&mount.server, request)
}

/// Refuses requests for scripts, styles and plugins, except for files of the web interface. An attachment has the
/// content type that its sender chose, and would be a script of this origin. Browsers send the destination over
/// connections that they trust: HTTPS and the same machine (Fetch Metadata, section 2.1).
fn check_destination(mount: &Mount, request: &Request) -> Result<(), Problem> {
    let destination = request.headers().get(FETCH_DEST);
    let is_code = destination.is_some_and(|found| CODE_DESTINATIONS.split(' ').any(|code| found == code));
    let is_asset = mount.route_template(request) == ASSETS;
    if is_code && !is_asset { Err(Problem::ForbiddenDestination) } else { Ok(()) }
}

/// Returns the host of the request, if it is a host of this server.
pub(crate) fn request_host(settings: &Settings, request: &Request) -> Result<RequestHost, Problem> {
    let peer = request.extensions().get::<Peer>().copied().unwrap_or_default();
    let trusted = settings.trusts(peer);
    let headers = request.headers();
    let forwarded = |name| if trusted { last_list_element(headers, name) } else { None };

    let authority = client_authority(settings, request, forwarded(FORWARDED_HOST))?;
    if !trusted && !has_reliable_origin(settings, headers, peer, authority) {
        return Err(Problem::Misdirected);
    }
    let scheme = match forwarded(FORWARDED_PROTO) {
        Some(scheme) if scheme.eq_ignore_ascii_case("https") => "https",
        Some(scheme) if scheme.eq_ignore_ascii_case("http") => "http",
        _ => peer.scheme(),
    };
    Ok(RequestHost { scheme, authority: authority.into() })
}

/// Returns the host that the client requested, from the request or from a trusted proxy. A proxy may forward headers of
/// the client, so a forwarded host does not make a request for another host valid: both must be hosts of this server.
fn client_authority<'r>(
    settings: &Settings,
    request: &'r Request,
    forwarded: Option<&'r str>,
) -> Result<&'r str, Problem> {
    let requested = requested_authority(request)?;
    check_host(settings, requested)?;
    let Some(forwarded) = forwarded else { return Ok(requested) };
    check_host(settings, forwarded)?;
    Ok(forwarded)
}

/// Returns the host that the request is addressed to. A target in absolute form takes precedence over the Host header
/// (RFC 9112 section 3.2.2), but the header is required exactly once (section 3.2). In HTTP/2 the authority replaces
/// it, and they must not differ (RFC 9113 section 8.3.1).
fn requested_authority(request: &Request) -> Result<&str, Problem> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (host, authority) = (hosts.next(), request.uri().authority().map(Authority::as_str));
    if hosts.next().is_some() {
        return Err(Problem::BadHost);
    }
    match (host, authority) {
        (None, Some(authority)) if request.version() == Version::HTTP_2 => Ok(authority),
        (Some(host), Some(authority)) if request.version() == Version::HTTP_2 => {
            let same = host.as_bytes().eq_ignore_ascii_case(authority.as_bytes());
            if same { Ok(authority) } else { Err(Problem::BadHost) }
        }
        (Some(_), Some(authority)) => Ok(authority),
        (Some(host), None) => host.to_str().map_err(|_| Problem::BadHost),
        // HTTP/1.0 has no Host header (RFC 1945). No browser uses it, so this does not bypass the check.
        (None, None) if request.version() <= Version::HTTP_10 => Ok(DEFAULT_HOST),
        (None, _) => Err(Problem::BadHost),
    }
}

/// Returns the last element of a header that proxies append to. The trusted proxy wrote it; the others may come from
/// the client.
fn last_list_element(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let list = headers.get_all(name).iter().next_back()?.to_str().ok()?;
    list.rsplit(',').next().map(str::trim).filter(|last| !last.is_empty())
}

/// Refuses requests for other hosts than addresses, names that cannot be registered in the public DNS, and configured
/// names.
fn check_host(settings: &Settings, authority: &str) -> Result<(), Problem> {
    match Host::parse(authority).ok_or(Problem::BadHost)? {
        Host::Name(name) if !is_own_name(settings, name, is_private) => Err(Problem::Misdirected),
        _ => Ok(()),
    }
}

/// Returns whether a name is local, or configured as a name of this server.
fn is_own_name(settings: &Settings, name: &str, is_local: impl Fn(&str) -> bool) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    is_local(name) || settings.hosts.allows(name) || is_public_host(settings, name)
}

/// Returns whether a name cannot be registered in the public DNS, so that no outside attacker can point it at this
/// server: a name without a dot, such as a service of Docker Compose, or a name under one of [`PRIVATE_DOMAINS`].
fn is_private(name: &str) -> bool {
    match name.rsplit_once('.') {
        None => true,
        Some((_, last_label)) => PRIVATE_DOMAINS.iter().any(|domain| last_label.eq_ignore_ascii_case(domain)),
    }
}

/// Returns false if a browser sends the request without Fetch Metadata, so that the origin of the page is not known.
/// Browsers leave it out if they reach this machine under a name or address that they do not treat as this machine,
/// such as `0.0.0.0` or an alias in the hosts file. Programs are not affected, and a configured name is accepted.
fn has_reliable_origin(settings: &Settings, headers: &HeaderMap, peer: Peer, authority: &str) -> bool {
    if !is_browser(headers)
        || headers.contains_key(FETCH_SITE)
        || peer.tls
        || !peer.socket_ip.is_some_and(|ip| ip.is_loopback())
    {
        return true;
    }
    match Host::parse(authority) {
        Some(Host::Name(name)) => is_own_name(settings, name, is_localhost),
        Some(Host::Address(ip)) => ip.is_loopback(),
        None => false,
    }
}

/// Returns whether a name is `localhost` or below it (RFC 6761 section 6.3).
fn is_localhost(name: &str) -> bool {
    name.rsplit('.').next().is_some_and(|label| label.eq_ignore_ascii_case("localhost"))
}

fn public_authority(settings: &Settings) -> Option<&str> {
    let (_, rest) = settings.public_url.as_deref()?.split_once("://")?;
    rest.split('/').next()
}

fn is_public_host(settings: &Settings, name: &str) -> bool {
    let public = public_authority(settings).and_then(Host::parse);
    matches!(public, Some(Host::Name(public)) if public.eq_ignore_ascii_case(name))
}

/// Refuses requests of web pages of other origins, for every method: a page cannot read the response to a GET, but it
/// can measure how long the response takes. CORS may allow an origin, and any site may link to a page.
fn check_site(mount: &Mount, request: &Request, host: &RequestHost) -> Result<(), Problem> {
    let settings = &mount.server.settings;
    let is_allowed = request.extensions().get::<AllowedOrigin>().is_some()
        || is_own_page(settings, request.headers(), host)
        || is_page(mount, request) && is_top_level_navigation(request);
    if is_allowed { Ok(()) } else { Err(Problem::ForeignOrigin) }
}

/// Returns whether the response is a page: the web interface or, for an unknown path, the page that says so.
fn is_page(mount: &Mount, request: &Request) -> bool {
    if request.extensions().get::<MatchedPath>().is_some() {
        paths::is_page(mount.route_template(request))
    } else {
        is_page_request(&mount.server.settings, request)
    }
}

/// Returns whether a browser loads the response as the document of a tab, not of a frame.
fn is_top_level_navigation(request: &Request) -> bool {
    let has = |name: &HeaderName, value: &[u8]| request.headers().get(name).is_some_and(|sent| sent == value);
    request.method().is_safe() && has(&FETCH_MODE, b"navigate") && has(&FETCH_DEST, b"document")
}

/// Returns false if a web page of another origin sends the request. Browsers send the origin in `Origin`, and newer
/// ones in `Sec-Fetch-Site`; other programs send neither.
pub(crate) fn is_own_page(settings: &Settings, headers: &HeaderMap, host: &RequestHost) -> bool {
    let is_site_accepted = match headers.get(FETCH_SITE).map(HeaderValue::as_bytes) {
        None | Some(b"same-origin" | b"none") => true,
        // Another port, or another name below the same domain. With a proxy it may be this server, so `Origin` decides.
        Some(b"same-site") => headers.contains_key(header::ORIGIN),
        Some(_) => false,
    };
    let is_own_origin = |origin: &HeaderValue| {
        let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        origin.is_some_and(|(_, origin)| {
            same_authority(origin, &host.authority)
                || public_authority(settings).is_some_and(|public| same_authority(origin, public))
        })
    };
    is_site_accepted && headers.get_all(header::ORIGIN).iter().all(is_own_origin)
}

/// Returns whether two authorities are the same, with or without the default port. The default ports of both schemes
/// are accepted: with a proxy that terminates TLS, the scheme of the page differs from that of the request.
fn same_authority(first: &str, second: &str) -> bool {
    fn without_default_port(authority: &str) -> &str {
        let stripped = authority.strip_suffix(":443").or_else(|| authority.strip_suffix(":80"));
        stripped.unwrap_or(authority)
    }
    without_default_port(first).eq_ignore_ascii_case(without_default_port(second))
}

/// The host in an authority, without its port.
#[derive(Clone, Copy, Debug)]
enum Host<'a> {
    /// A name, which an attacker can point at any address.
    Name(&'a str),
    /// An IP address.
    Address(IpAddr),
}

impl<'a> Host<'a> {
    /// Parses `host` or `host:port`, and nothing else: no user, no path, no list.
    fn parse(authority: &'a str) -> Option<Self> {
        if let Some(rest) = authority.strip_prefix('[') {
            let (address, port) = rest.split_once(']')?;
            let address = address.parse::<Ipv6Addr>().ok()?;
            return is_port(port).then_some(Self::Address(address.into()));
        }
        let (host, port) = authority.split_at(authority.find(':').unwrap_or(authority.len()));
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if host.is_empty() || host.len() > MAX_HOST_BYTES || !host.bytes().all(allowed) || !is_port(port) {
            return None;
        }
        Some(host.parse::<Ipv4Addr>().map_or(Self::Name(host), |address| Self::Address(address.into())))
    }
}

/// Returns whether the text is empty, or a colon and a port. The port after the colon may be empty (RFC 3986 section
/// 3.2.3).
fn is_port(text: &str) -> bool {
    match text.strip_prefix(':') {
        Some(port) => {
            port.bytes().all(|byte| byte.is_ascii_digit()) && (port.is_empty() || port.parse::<u16>().is_ok())
        }
        None => text.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use restante_settings::AllowList;

    #[test]
    fn accepts_and_rejects_hosts() {
        let settings = Settings {
            public_url: Some("https://Public.example:8443/mail".to_owned()),
            hosts: AllowList::Only(vec!["mail.example.org".to_owned()]),
            ..Settings::default()
        };
        // Some(true): a host of this server. Some(false): another host. None: not a host.
        let table = [
            ("localhost", Some(true)),
            ("LocalHost:9000", Some(true)),
            ("localhost.", Some(true)),
            ("a.localhost", Some(true)),
            ("localhost:", Some(true)),
            ("127.0.0.1:9000", Some(true)),
            ("192.0.2.7", Some(true)),
            ("[::1]", Some(true)),
            ("[2001:db8::1]:80", Some(true)),
            ("mail.example.org", Some(true)),
            ("MAIL.example.org.:9000", Some(true)),
            ("public.example", Some(true)),
            ("evil.example", Some(false)),
            ("localhost.evil.example", Some(false)),
            ("localhost.example", Some(false)),
            ("inbucket", Some(true)),
            ("restante:9000", Some(true)),
            ("nas.local", Some(true)),
            ("host.docker.internal", Some(true)),
            ("restante.mail.svc", Some(true)),
            ("restante.mail.svc.cluster.local:9000", Some(true)),
            ("Local.INTERNAL.", Some(true)),
            ("evil.notlocal", Some(false)),
            ("svc.example", Some(false)),
            ("internal.evil.example", Some(false)),
            ("evil.example.", Some(false)),
            (".", Some(true)),
            ("127.0.0.1.evil.example", Some(false)),
            ("", None),
            (":80", None),
            ("[::1", None),
            ("[::1]x", None),
            ("[evil]", None),
            ("::1", None),
            ("localhost:99999", None),
            ("localhost:8x", None),
            ("localhost:+80", None),
            ("user@localhost", None),
            ("localhost/x", None),
            ("localhost, evil.example", None),
            ("löcalhost", None),
        ];
        for (authority, expected) in table {
            let served = match check_host(&settings, authority) {
                Ok(()) => Some(true),
                Err(Problem::BadHost) => None,
                Err(_) => Some(false),
            };
            assert_eq!(served, expected, "{authority:?}");
        }
        let any = Settings { hosts: AllowList::Any, ..Settings::default() };
        assert!(check_host(&any, "evil.example").is_ok());
    }

    #[test]
    fn authorities_with_and_without_default_port() {
        assert!(same_authority("Localhost:9000", "localhost:9000"));
        assert!(same_authority("mail.example.org", "mail.example.org:443"));
        assert!(same_authority("[::1]:80", "[::1]"));
        assert!(!same_authority("localhost:3000", "localhost:9000"));
        assert!(!same_authority("evil.example", "localhost"));
    }
}
