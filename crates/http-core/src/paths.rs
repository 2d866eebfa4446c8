//! Paths that are needed by the request checks and by handlers: health checks, pages and assets. All others are in the
//! table of routes, or next to their handlers.

/// Succeeds if the process serves requests. If it fails, the process should be restarted.
pub const LIVE: &str = "/livez";
/// Succeeds if messages can be read and accepted now. If it fails, clients should use another node or wait.
pub const READY: &str = "/readyz";
/// The login page, and the target of its form.
pub const LOGIN: &str = "/login";
/// Ends a login.
pub const LOGOUT: &str = "/logout";
/// Starts a login with the identity provider.
pub const LOGIN_OIDC: &str = "/login/oidc";
/// Where the identity provider redirects browsers to after a login.
pub const LOGIN_OIDC_CALLBACK: &str = "/login/oidc/callback";
/// Ends a login at the identity provider.
pub const LOGOUT_OIDC: &str = "/logout/oidc";
/// The pages directly below the root.
pub const ROOT_PAGES: [&str; 8] =
    ["/monitor", "/status", "/search", "/sessions", "/relay", "/webhooks", "/settings", "/send"];
/// The other pages, as templates without a final slash.
const OTHER_PAGES: [&str; 9] =
    ["", "/messages", "/messages/{id}", "/m", "/m/{name}", "/m/{name}/{id}", LOGIN, LOGIN_OIDC_CALLBACK, DOCS];
/// The beginnings of paths that programs request. Those without a route are never a page.
const PROGRAM_PATHS: [&str; 4] = ["/api/", "/serve/", "/debug/", "/assets/"];
/// The rules for crawlers.
pub const ROBOTS: &str = "/robots.txt";
/// The icon that browsers load for documents that name none.
pub const ICON: &str = "/favicon.ico";
/// The page that describes the API.
pub const DOCS: &str = "/api/docs";
/// The files of the pages.
pub const ASSETS: &str = "/assets/{hash}/{*path}";

/// The beginning of paths inside of a project: all paths of the server are also below `/p/PROJECT`.
pub const PROJECTS: &str = "/p";

/// Returns whether a route template is that of a page. Any site may link to pages, because they contain no messages: their
/// scripts load the messages.
pub fn is_page(template: &str) -> bool {
    let page = template.strip_suffix('/').unwrap_or(template);
    ROOT_PAGES.contains(&page) || OTHER_PAGES.contains(&page)
}

/// Returns the part of a path below the base path. All paths are also served without it.
pub fn below_base<'p>(base_path: &str, path: &'p str) -> &'p str {
    path.strip_prefix(base_path).filter(|rest| rest.starts_with('/')).unwrap_or(path)
}

/// Returns the path from a page to the root, with a slash at its end.
pub fn relative_root(base_path: &str, path: &str) -> String {
    format!("./{}", "../".repeat(below_base(base_path, path).matches('/').count().saturating_sub(1)))
}

/// Returns whether a path below the base path is reserved for programs.
pub fn is_program_path(path: &str) -> bool {
    PROGRAM_PATHS.iter().any(|start| path.starts_with(start))
}
