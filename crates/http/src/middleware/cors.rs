//! CORS (Fetch Standard, section 3.2) for the origins that the operator lists. Only the API is shared; pages and
//! responses that a browser shows as documents are not.
//!
//! Cookies are removed from requests of other origins, whatever the browser sends: a login session is only for pages of
//! this server. Such requests use a token if authentication is enabled. `Cross-Origin-Resource-Policy` does not prevent
//! them: browsers check it only for resources loaded without CORS.
//!
//! `tower_http::cors` does not replace this. It responds to every `OPTIONS` request, sends the permitted methods and
//! headers to origins that are not listed, and reads only the first `Origin`. Removing cookies, the restriction to the
//! API and the mark for the origin check would remain here.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use restante_http_core::extractors::request_context::AllowedOrigin;
use restante_http_core::server::Settings;

use crate::middleware::{Mount, request_checks};

/// The methods that pages may use.
const ALLOWED_METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE");
/// The request headers that pages may send in addition to the safelisted ones.
const ALLOWED_HEADERS: HeaderValue =
    HeaderValue::from_static("Authorization, Content-Type, Last-Event-ID, If-None-Match");
/// The response headers that pages may read in addition to the safelisted ones.
const EXPOSED_HEADERS: HeaderValue = HeaderValue::from_static("ETag, Location, Retry-After");
/// The number of seconds for which a browser may cache the preflight response. Chromium limits it to two hours.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");
const VARY_ORIGIN: HeaderValue = HeaderValue::from_static("Origin");

/// Responds to preflight requests, and adds CORS headers to the responses for allowed origins.
pub(crate) async fn apply_cors(State(mount): State<Arc<Mount>>, mut request: Request, next: Next) -> Response {
    let settings = &mount.server.settings;
    if !is_shared(&mount, request.uri().path()) {
        return next.run(request).await;
    }
    let mut response = match allowed_origin(settings, &request) {
        None => next.run(request).await,
        Some(origin) => {
            let mut response = if is_preflight(&request) {
                preflight_response()
            } else {
                request.headers_mut().remove(header::COOKIE);
                request.extensions_mut().insert(AllowedOrigin);
                next.run(request).await
            };
            let headers = response.headers_mut();
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
            response
        }
    };
    // A cache must not reuse the response for another origin.
    response.headers_mut().append(header::VARY, VARY_ORIGIN);
    response
}

fn is_shared(mount: &Mount, path: &str) -> bool {
    let below_prefix = path.strip_prefix(mount.prefix.as_str()).unwrap_or(path);
    let below_base = path.strip_prefix(mount.server.settings.base_path.as_str()).unwrap_or(path);
    [path, below_prefix, below_base].iter().any(|path| path.starts_with("/api/"))
}

/// Returns the origin of the request if it is another one than this server's and is allowed.
fn allowed_origin(settings: &Settings, request: &Request) -> Option<HeaderValue> {
    let headers = request.headers();
    let origin = single_origin(headers)?;
    if !settings.cors.as_ref()?.allows(origin.to_str().ok()?) {
        return None;
    }
    // A request for another host is refused by the request checks, whatever its origin is.
    let host = request_checks::request_host(settings, request).ok()?;
    (!request_checks::is_own_page(settings, headers, &host)).then(|| origin.clone())
}

fn single_origin(headers: &HeaderMap) -> Option<&HeaderValue> {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let origin = origins.next()?;
    origins.next().is_none().then_some(origin)
}

fn is_preflight(request: &Request) -> bool {
    request.method() == Method::OPTIONS && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

fn preflight_response() -> Response {
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, ALLOWED_METHODS),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED_HEADERS),
        (header::ACCESS_CONTROL_MAX_AGE, MAX_AGE),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}
