//! Paths that the request checks know beside the handlers: probes, pages and assets. All others are in the table of routes, or
//! with their handlers.

/// Whether the process serves at all. Who gets no answer here should start it again.
pub(super) const LIVE: &str = "/livez";
/// Whether mail can be read and taken in now. Who gets no 200 here should send clients elsewhere, or wait.
pub(super) const READY: &str = "/readyz";
/// Where the form is, and where it is sent.
pub(super) const LOGIN: &str = "/login";
/// Where a login is ended.
pub(super) const LOGOUT: &str = "/logout";
/// The pages, as templates without a final slash: any site may link to them. They contain no mail; their scripts load it.
const PAGES: [&str; 10] =
    ["", "/m", "/m/{name}", "/m/{name}/{id}", "/monitor", "/status", "/search", "/sessions", LOGIN, DOCS];
/// Where robots look.
pub(super) const ROBOTS: &str = "/robots.txt";
/// Where browsers look for an icon when they show what is no page of ours.
pub(super) const ICON: &str = "/favicon.ico";
/// The page that describes the API.
pub(super) const DOCS: &str = "/api/docs";
/// Where the files of the pages are.
pub(super) const ASSETS: &str = "/assets/{hash}/{*path}";

/// Returns whether a template of a path is that of a page.
pub(super) fn is_page(template: &str) -> bool {
    PAGES.contains(&template.strip_suffix('/').unwrap_or(template))
}
