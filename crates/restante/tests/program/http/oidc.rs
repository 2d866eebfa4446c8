//! Logins with a strict identity provider, without a browser: a client that follows redirects and keeps cookies.

use std::collections::HashMap;

use serde_json::Value;

use crate::support::oidc_provider::{OidcProvider, SECRET};
use crate::support::{Server, TEST_TIMEOUT};

const GRANTS: &str = "--auth-grants=groups=ann -> read,write shop:*; email=admin@acme.test -> all";
const FORM: &str = "application/x-www-form-urlencoded";

/// A client that behaves like a browser.
struct Browser {
    agent: ureq::Agent,
    /// The cookies by origin and name. Their paths are ignored.
    cookies: HashMap<(String, String), String>,
}

struct Response {
    url: String,
    status: u16,
    location: String,
    refresh: String,
    body: String,
}

impl Browser {
    fn new() -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .timeout_global(Some(TEST_TIMEOUT))
            .build();
        Self { agent: config.into(), cookies: HashMap::new() }
    }

    fn get(&mut self, url: &str) -> Response {
        let request = self.agent.get(url).header("Accept", "text/html").header("Cookie", self.cookie_header(url));
        let response = request.call().unwrap();
        self.read(url, response)
    }

    fn post(&mut self, url: &str, form: &str) -> Response {
        let request = self.agent.post(url).header("Content-Type", FORM).header("Cookie", self.cookie_header(url));
        let response = request.header("Origin", origin(url)).send(form).unwrap();
        self.read(url, response)
    }

    fn cookie_header(&self, url: &str) -> String {
        let cookies = self.cookies.iter().filter(|((origin_of_cookie, _), _)| *origin_of_cookie == origin(url));
        cookies.map(|((_, name), value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ")
    }

    fn read(&mut self, url: &str, mut response: ureq::http::Response<ureq::Body>) -> Response {
        let header = |name: &str| response.headers().get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
        let (location, refresh) = (header("location"), header("refresh"));
        for cookie in response.headers().get_all("set-cookie") {
            let (name, value) = cookie.to_str().unwrap().split(';').next().unwrap().split_once('=').unwrap();
            let key = (origin(url), name.to_owned());
            match value {
                "" => self.cookies.remove(&key),
                value => self.cookies.insert(key, value.to_owned()),
            };
        }
        let (status, body) = (response.status().as_u16(), response.body_mut().read_to_string().unwrap());
        Response { url: url.to_owned(), status, location: absolute(url, &location), refresh, body }
    }

    /// Follows redirects until the URL begins with this text.
    fn follow_until(&mut self, mut response: Response, end: &str) -> Response {
        for _ in 0..10 {
            if response.url.starts_with(end) || !(300..400).contains(&response.status) {
                break;
            }
            let location = response.location.clone();
            response = self.get(&location);
        }
        assert!(response.url.starts_with(end), "{} {} {}", response.status, response.url, response.body);
        response
    }

    /// Starts a login, and enters this name at the provider. Returns the URL that the provider redirects to.
    fn log_in_at_provider(&mut self, server: &Server, provider: &OidcProvider, name: &str) -> String {
        self.log_in_from("/login/oidc?next=m%2Fshop:a", server, provider, name)
    }

    /// Does the same from this path.
    fn log_in_from(&mut self, start: &str, server: &Server, provider: &OidcProvider, name: &str) -> String {
        let started = self.get(&server.url(start));
        let page = self.follow_until(started, &format!("{}/interaction/", provider.issuer));
        let mut response = self.get(&format!("{}?login={name}", page.url));
        while !response.location.starts_with(&server.url("/login/oidc/callback")) {
            assert!((300..400).contains(&response.status), "{} {}", response.status, response.body);
            let location = response.location.clone();
            response = self.get(&location);
        }
        response.location
    }

    fn log_in(&mut self, server: &Server, provider: &OidcProvider, name: &str) -> Response {
        let callback = self.log_in_at_provider(server, provider, name);
        self.get(&callback)
    }

    fn has_session(&self, server: &Server) -> bool {
        self.cookies.contains_key(&(server.url(""), "restante".to_owned()))
    }
}

fn origin(url: &str) -> String {
    url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/")
}

/// Resolves a location that is absolute, or relative to a path of two or fewer segments below the root.
fn absolute(url: &str, location: &str) -> String {
    match location {
        "" => String::new(),
        location if location.starts_with("http") => location.to_owned(),
        location => format!("{}/{}", origin(url), location.trim_start_matches(['.', '/'])),
    }
}

fn status(browser: &mut Browser, server: &Server, path: &str) -> u16 {
    browser.get(&server.url(path)).status
}

#[test]
fn accounts_log_in_and_out() {
    let Some(mut provider) = OidcProvider::start() else { return };
    let mut server = provider.server("restante", SECRET, &[GRANTS]);
    let mut browser = Browser::new();
    assert_eq!(browser.get(&server.url("/m/shop:a")).location, server.url("/login?next=m%2Fshop%3Aa"));
    let page = browser.get(&server.url("/login?next=m%2Fshop%3Aa")).body;
    assert!(page.contains("href=\"./login/oidc?next=m%2Fshop%3Aa\"") && !page.contains("type=\"password\""), "{page}");

    let completed = browser.log_in(&server, &provider, "ann");
    assert_eq!((completed.status, completed.location), (303, server.url("/m/shop:a")));
    let about: Value = serde_json::from_str(&browser.get(&server.url("/api/v2/server")).body).unwrap();
    assert_eq!(about["user"], "ann");
    assert_eq!(status(&mut browser, &server, "/api/v1/mailbox/shop:a"), 200);
    assert_eq!(status(&mut browser, &server, "/api/v1/mailbox/acme:a"), 403);
    let mut admin = Browser::new();
    admin.log_in(&server, &provider, "admin");
    assert_eq!(status(&mut admin, &server, "/api/v1/mailbox/acme:a"), 200);

    // A logout here leads to a logout at the provider, which asks for a confirmation and redirects back.
    let session = browser.cookie_header(&server.url("/"));
    let out = browser.post(&server.url("/logout"), "");
    assert_eq!((out.status, out.location.as_str()), (303, server.url("/logout/oidc").as_str()));
    assert!(!browser.has_session(&server));
    let page = browser.get(&out.location);
    let url = page.refresh.strip_prefix("0; url=").unwrap();
    assert!(url.starts_with(&provider.issuer) && page.body.contains("You are logged out of this server."));
    let page = browser.get(url);
    let xsrf = page.body.split("name=\"xsrf\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
    let form = format!("xsrf={}&logout=yes", xsrf.unwrap_or_else(|| panic!("{}", page.body)));
    let confirmed = browser.post(&format!("{}/session/end/confirm", provider.issuer), &form);
    assert_eq!(confirmed.location, server.url("/login"));
    let mut copied = Browser::new();
    let (name, value) = session.split("; ").find_map(|pair| pair.split_once('=')).unwrap();
    copied.cookies.insert((server.url(""), name.to_owned()), value.to_owned());
    assert_eq!(copied.get(&server.url("/m/a")).location, server.url("/login?next=m%2Fa"), "the session has ended");
    // The provider asks for the name again.
    assert_eq!(browser.log_in(&server, &provider, "ann").status, 303);

    server.signal("TERM");
    server.wait();
    assert!(!server.full_log().contains("ERROR") && !server.full_log().contains("secret"), "{}", server.full_log());
}

/// The provider knows only the URL of the server.
#[test]
fn login_that_starts_in_a_project_ends_there() {
    let Some(mut provider) = OidcProvider::start() else { return };
    let server = provider.server("restante", SECRET, &[GRANTS]);
    let mut browser = Browser::new();
    let callback = browser.log_in_from("/p/shop/login/oidc?next=m%2Fa", &server, &provider, "ann");
    let completed = browser.get(&callback);
    assert_eq!((completed.status, completed.location), (303, server.url("/p/shop/m/a")));
    assert_eq!(status(&mut browser, &server, "/p/shop/api/v1/mailbox/a"), 200);
    assert_eq!(status(&mut browser, &server, "/p/acme/api/v1/mailbox/a"), 403);
}

#[test]
fn logins_that_fail_say_why() {
    let Some(mut provider) = OidcProvider::start() else { return };
    let mut server = provider.server("restante", SECRET, &[GRANTS]);
    let mut browser = Browser::new();
    // An account without rights.
    let page = browser.log_in(&server, &provider, "eve");
    assert_eq!((page.status, browser.has_session(&server)), (403, false));
    let sentence = "You are logged in as eve. Your account has no access to this server.";
    assert!(page.body.contains(sentence) && page.body.contains("href=\"./../../logout/oidc\""), "{}", page.body);
    let line = "protocol=HTTP client=127.0.0.1 request=\"GET /login/oidc/callback\" reason=";
    server.wait_for_log(&format!("access denied {line}\"account without access\" user=eve"));
    // A login that the user cancels.
    let page = Browser::new().log_in(&server, &provider, "nobody");
    assert!(page.status == 403 && page.body.contains("The login was not completed."), "{}", page.body);
    server.wait_for_log(&format!("access denied {line}\"single sign-on failed\""));
    // A response that another browser has got.
    let mut browser = Browser::new();
    let callback = browser.log_in_at_provider(&server, &provider, "ann");
    let mut thief = Browser::new();
    assert_eq!((thief.get(&callback).status, thief.has_session(&server)), (403, false));
    thief.log_in_at_provider(&server, &provider, "eve");
    assert_eq!((thief.get(&callback).status, thief.has_session(&server)), (403, false));
    // A code can be used once.
    let login = browser.cookies.clone();
    assert_eq!((browser.get(&callback).status, browser.has_session(&server)), (303, true));
    let mut again = Browser { cookies: login, ..Browser::new() };
    assert_eq!((again.get(&callback).status, again.has_session(&server)), (403, false));
    // Another code of the same login, or none.
    for query in ["code=forged", "error=invalid_scope&error_description=no"] {
        let mut browser = Browser::new();
        let callback = browser.log_in_at_provider(&server, &provider, "ann");
        let (_, parameters) = callback.split_once("code=").unwrap();
        let (_, rest) = parameters.split_once('&').unwrap();
        let expected = if query.starts_with("code") { 403 } else { 502 };
        let url = format!("{}?{query}&{rest}", server.url("/login/oidc/callback"));
        assert_eq!((browser.get(&url).status, browser.has_session(&server)), (expected, false), "{query}");
    }
    server.wait_for_log("the identity provider cannot be used setting=auth.oidcissuer error=");
}

#[test]
fn algorithms_and_secrets_of_clients() {
    for client in ["pss", "p256", "ed25519", "public"] {
        let Some(mut provider) = OidcProvider::start() else { return };
        let secret = if client == "public" { "" } else { SECRET };
        let server = provider.server(client, secret, &[GRANTS]);
        let mut browser = Browser::new();
        let completed = browser.log_in(&server, &provider, "ann");
        assert_eq!((completed.status, browser.has_session(&server)), (303, true), "{client}: {}", completed.body);
    }
    let Some(mut provider) = OidcProvider::start() else { return };
    let mut server = provider.server("restante", "wrong", &[GRANTS]);
    let mut browser = Browser::new();
    let page = browser.log_in(&server, &provider, "ann");
    assert!(page.status == 502 && page.body.contains("The identity provider could not be used."), "{}", page.body);
    let line = server.wait_for_log("the identity provider cannot be used setting=auth.oidcissuer");
    assert!(line.contains("/token responded with status 401: invalid_client"), "{line}");
}
