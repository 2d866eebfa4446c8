//! Clients behind a trusted proxy: their addresses, and the limit on their open requests. Clients without a proxy are
//! limited by their connections, before there is a request.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName};
use axum::response::Response;
use http_body_util::BodyExt as _;
use restante_http_connection::context::Peer;
use restante_http_core::response::problem::Problem;
use restante_http_core::server::Server;
use restante_metrics::Protocol;
use restante_net::ClientSlot;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// A client behind a trusted proxy.
pub(crate) struct Forwarded {
    /// The address of the client.
    pub(crate) ip: IpAddr,
    /// The slot of the request among those of the same client, if these are limited.
    slot: Option<Arc<ClientSlot>>,
}

impl Forwarded {
    /// Returns the client if the request comes through a trusted proxy that names one. Fails if the client has too many
    /// open requests.
    pub(crate) fn from_request(server: &Server, request: &Request) -> Result<Option<Self>, Problem> {
        let settings = &server.settings;
        let peer = request.extensions().get::<Peer>().copied().unwrap_or_default();
        // Headers from peers that are not trusted are ignored.
        if !settings.trusts(peer) {
            return Ok(None);
        }
        let is_proxy = |ip| settings.is_proxy(ip);
        // The client that the PROXY header of the connection names. Used if the header of the request names none.
        let by_connection = || peer.ip.filter(|ip| !is_proxy(*ip));
        let Some(ip) = client_ip(request.headers(), is_proxy).or_else(by_connection) else { return Ok(None) };
        match settings.clients.admit(ip) {
            Ok(slot) => Ok(Some(Self { ip, slot: slot.map(Arc::new) })),
            Err(too_many) => {
                settings.metrics.connections(Protocol::Http).count_refused();
                if server.log_throttles.requests.should_log() {
                    tracing::warn!(%ip, "too many open requests of one client behind a proxy, refusing new ones");
                }
                Err(Problem::TooMany(too_many))
            }
        }
    }

    /// Forwards the request with the address of this client. The slot is held until the response body has ended. It is
    /// also an extension of the request, so that a task that outlives the response can hold it.
    pub(crate) async fn run(self, mut request: Request, next: impl AsyncFnOnce(Request) -> Response) -> Response {
        let extensions = request.extensions_mut();
        let peer = extensions.get::<Peer>().copied().unwrap_or_default();
        extensions.insert(Peer { ip: Some(self.ip), ..peer });
        let Some(slot) = self.slot else { return next(request).await };
        extensions.insert(slot.clone());
        // The body owns this function, which does nothing but hold the slot.
        let hold = move |error: axum::Error| {
            let _ = &slot;
            error
        };
        next(request).await.map(|body| Body::new(body.map_err(hold)))
    }
}

/// Returns the last address in the list that is not a trusted proxy. Every proxy appends the address that it sees, so
/// addresses further left come from clients that are not trusted. Returns `None` if a trusted proxy wrote no address.
fn client_ip(headers: &HeaderMap, is_trusted: impl Fn(IpAddr) -> bool) -> Option<IpAddr> {
    // Several lines are one list (RFC 9110 section 5.3).
    let lines = headers.get_all(FORWARDED_FOR).iter().rev();
    let entries = lines.flat_map(|line| line.as_bytes().rsplit(|&byte| byte == b','));
    for entry in entries.map(<[u8]>::trim_ascii).filter(|entry| !entry.is_empty()) {
        let ip = parse_ip(str::from_utf8(entry).ok()?)?;
        if !is_trusted(ip) {
            return Some(ip);
        }
    }
    None
}

/// Parses an address, which some proxies write with the port.
fn parse_ip(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).filter(|text| text.contains(':'));
    let ip = bare.unwrap_or(text).parse().or_else(|_| text.parse::<SocketAddr>().map(|address| address.ip()));
    ip.ok().map(|ip| ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn finds_client_address() {
        let table: [(&[&str], Option<&str>); 20] = [
            (&[], None),
            (&[""], None),
            (&["192.0.2.1"], Some("192.0.2.1")),
            (&["10.0.0.1"], None),
            (&["192.0.2.1, 10.0.0.1 ,10.0.0.2"], Some("192.0.2.1")),
            (&["192.0.2.9, 192.0.2.1"], Some("192.0.2.1")),
            (&["127.0.0.1, 192.0.2.1, 10.0.0.1"], Some("192.0.2.1")),
            (&["192.0.2.1", "10.0.0.1"], Some("192.0.2.1")),
            (&["192.0.2.9", "192.0.2.1,10.0.0.2", "10.0.0.1"], Some("192.0.2.1")),
            (&["192.0.2.1,, ,"], Some("192.0.2.1")),
            (&["192.0.2.1:56324"], Some("192.0.2.1")),
            (&["2001:db8::1"], Some("2001:db8::1")),
            (&["[2001:db8::1]"], Some("2001:db8::1")),
            (&["[2001:db8::1]:56324"], Some("2001:db8::1")),
            (&["::ffff:192.0.2.1"], Some("192.0.2.1")),
            (&["192.0.2.1, ::ffff:10.0.0.1"], Some("192.0.2.1")),
            (&["192.0.2.1, unknown"], None),
            (&["192.0.2.1, 10.0.0.256, 10.0.0.1"], None),
            (&["192.0.2.1, [10.0.0.1]"], None),
            (&["192.0.2.1, \u{e4}, 10.0.0.1"], None),
        ];
        for (lines, expected) in table {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(FORWARDED_FOR, HeaderValue::from_bytes(line.as_bytes()).unwrap());
            }
            let is_trusted = |ip: IpAddr| ip.to_string().starts_with("10.");
            assert_eq!(client_ip(&headers, is_trusted), expected.map(|ip| ip.parse().unwrap()), "{lines:?}");
        }
    }
}
