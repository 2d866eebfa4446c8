//! Paths that the request checks know beside the handlers: probes, pages and assets. All others are in the table of routes, or
//! with their handlers.

/// Whether the process serves at all. Who gets no answer here should start it again.
pub(crate) const LIVE: &str = "/livez";
/// Whether mail can be read and taken in now. Who gets no 200 here should send clients elsewhere, or wait.
pub(crate) const READY: &str = "/readyz";
/// Where the form is, and where it is sent.
pub(crate) const LOGIN: &str = "/login";
/// Where a login is ended.
pub(crate) const LOGOUT: &str = "/logout";
/// The pages, as templates without a final slash: any site may link to them. They contain no mail; their scripts load it.
const PAGES: [&str; 10] =
    ["", "/m", "/m/{name}", "/m/{name}/{id}", "/monitor", "/status", "/search", "/sessions", LOGIN, DOCS];
/// Where robots look.
pub(crate) const ROBOTS: &str = "/robots.txt";
/// Where browsers look for an icon when they show what is no page of ours.
pub(crate) const ICON: &str = "/favicon.ico";
/// The page that describes the API.
pub(crate) const DOCS: &str = "/api/docs";
/// Where the files of the pages are.
pub(crate) const ASSETS: &str = "/assets/{hash}/{*path}";

/// Returns whether a template of a path is that of a page.
pub(crate) fn is_page(template: &str) -> bool {
    PAGES.contains(&template.strip_suffix('/').unwrap_or(template))
}
