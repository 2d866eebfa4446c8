//! Paths that are needed by the request checks and by handlers: health checks, pages and assets. All others are in the
//! table of routes, or next to their handlers.

/// Succeeds if the process serves requests. If it fails, the process should be restarted.
pub(crate) const LIVE: &str = "/livez";
/// Succeeds if messages can be read and accepted now. If it fails, clients should use another node or wait.
pub(crate) const READY: &str = "/readyz";
/// The login page, and the target of its form.
pub(crate) const LOGIN: &str = "/login";
/// Ends a login.
pub(crate) const LOGOUT: &str = "/logout";
/// The pages, as templates without a final slash. Any site may link to them, because they contain no messages: their
/// scripts load the messages.
const PAGES: [&str; 10] =
    ["", "/m", "/m/{name}", "/m/{name}/{id}", "/monitor", "/status", "/search", "/sessions", LOGIN, DOCS];
/// The rules for crawlers.
pub(crate) const ROBOTS: &str = "/robots.txt";
/// The icon that browsers load for documents that name none.
pub(crate) const ICON: &str = "/favicon.ico";
/// The page that describes the API.
pub(crate) const DOCS: &str = "/api/docs";
/// The files of the pages.
pub(crate) const ASSETS: &str = "/assets/{hash}/{*path}";

/// Returns whether a route template is that of a page.
pub(crate) fn is_page(template: &str) -> bool {
    PAGES.contains(&template.strip_suffix('/').unwrap_or(template))
}
