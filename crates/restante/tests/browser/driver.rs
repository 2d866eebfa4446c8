//! A browser that a test uses, and the commands of W3C WebDriver. What differs between the browsers is here; the operations of tests are in
//! `page.rs`. Tests use Chromium browsers one after another (`chromium.rs`); a Firefox browser is started for each test.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::chromium::Chromium;
use super::other_hosts::ExternalHosts;
use super::process_group::ProcessGroup;
use crate::support::TEST_TIMEOUT;
use crate::support::installed::{is_installed, skip};

/// The number of attempts to start a driver: another program can take its port first.
const ATTEMPTS: usize = 5;
/// Large enough for a screenshot of a long page, or the log of a busy one.
const MAX_RESPONSE_BYTES: u64 = 256 * 1024 * 1024;

/// The names of Firefox: Debian's, and that of other systems.
const FIREFOX: [&str; 2] = ["firefox-esr", "firefox"];
/// What Firefox prints about an uncaught error in a page, before the URL.
const FIREFOX_ERROR: &str = "JavaScript error: http";

/// The kind of a browser for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Browser {
    Chromium,
    Firefox,
}

impl Browser {
    /// Returns the program that controls the browser.
    fn driver(self) -> &'static str {
        match self {
            Self::Chromium => "chromedriver",
            Self::Firefox => "geckodriver",
        }
    }

    /// Returns the environment variable that makes a missing browser an error.
    fn required_by(self) -> &'static str {
        match self {
            Self::Chromium => "REQUIRE_BROWSER",
            Self::Firefox => "REQUIRE_FIREFOX",
        }
    }

    /// Returns the part of an error of the driver which says that the browser is not installed.
    fn missing(self) -> &'static str {
        match self {
            Self::Chromium => "cannot find Chrome binary",
            Self::Firefox => "binary is not a Firefox executable",
        }
    }

    /// Returns the text in the output of the driver before the port on which it listens.
    fn before_port(self) -> &'static str {
        match self {
            Self::Chromium => "successfully on port ",
            Self::Firefox => "Listening on 127.0.0.1:",
        }
    }
}

/// The settings of a use of a browser.
pub(crate) struct Settings {
    pub(crate) browser: Browser,
    /// Whether opening a page waits until it is loaded.
    pub(crate) waits_for_load: bool,
    /// Whether pages with an invalid certificate are opened.
    pub(crate) accepts_any_certificate: bool,
    /// Whether the test needs a complete Chromium, in the context that it has from the start. Only such a browser connects to a host before
    /// it has a request for the host, and only a complete browser shows PDF files. The browser is for one use.
    pub(crate) is_complete: bool,
}

impl Settings {
    /// Adds these settings to the capabilities of a session.
    fn complete(&self, mut capabilities: Value) -> Value {
        capabilities["pageLoadStrategy"] = if self.waits_for_load { "normal" } else { "none" }.into();
        capabilities["acceptInsecureCerts"] = self.accepts_any_certificate.into();
        // The default of 30 seconds is too short for a check of a whole page on a loaded machine.
        capabilities["timeouts"] = json!({ "script": 2 * TEST_TIMEOUT.as_millis() });
        // Dialogs are dismissed, so that they do not block further commands. They are recorded in the log.
        capabilities["unhandledPromptBehavior"] = "dismiss".into();
        capabilities
    }
}

/// The use of a browser by one test. No state of an earlier use is visible in it.
pub(crate) struct Driver {
    /// `None` only while this is dropped.
    session: Option<Session>,
    instance: Option<Instance>,
}

/// The browser of a [`Driver`].
enum Instance {
    /// A browser that other tests use before and after, and the id of the browser context of this test. A context has its own cookies,
    /// storage, cache and permissions.
    Chromium { browser: Box<Chromium>, context: String, is_for_one_use: bool },
    /// A browser for one test.
    Firefox { process: ProcessGroup, external: ExternalHosts },
}

/// An error response of WebDriver: code and message. The code of a missing response is [`NO_RESPONSE`].
#[derive(Debug)]
pub(crate) struct DriverError {
    pub(crate) code: String,
    pub(crate) message: String,
}

/// The code of the error if the driver or the browser does not respond.
const NO_RESPONSE: &str = "no response";

impl DriverError {
    /// Returns the error for a connection that failed.
    pub(crate) fn no_response(cause: &impl ToString) -> Self {
        Self { code: NO_RESPONSE.to_owned(), message: cause.to_string() }
    }
}

pub(crate) type DriverResult = Result<Value, DriverError>;

impl Driver {
    /// Starts the use of a browser. Returns `None` if it is not installed.
    pub(crate) fn start(settings: &Settings) -> Option<Self> {
        match settings.browser {
            Browser::Chromium => {
                while !settings.is_complete
                    && let Some(browser) = Chromium::take_idle()
                {
                    match Self::in_chromium(browser, settings) {
                        Ok(driver) => return Some(driver),
                        // The browser may have crashed after its last use.
                        Err(error) => eprintln!("a browser is replaced: {error:?}"),
                    }
                }
                let browser = Chromium::start(settings.is_complete)?;
                Some(
                    Self::in_chromium(browser, settings)
                        .unwrap_or_else(|error| panic!("no browser context: {error:?}")),
                )
            }
            Browser::Firefox => Self::in_firefox(settings),
        }
    }

    /// Opens a window in a new context of the browser, and a WebDriver session for it.
    fn in_chromium(browser: Chromium, settings: &Settings) -> Result<Self, DriverError> {
        let (context, window) =
            if settings.is_complete { browser.use_first_context() } else { browser.open_context() }?;
        let session = Session::open(browser.driver(), &settings.complete(browser.capabilities()))?;
        session.post("/window", &json!({ "handle": window }))?;
        // Now the network connections of the previous context have ended.
        browser.external().clear();
        let instance = Instance::Chromium { browser: Box::new(browser), context, is_for_one_use: settings.is_complete };
        Ok(Self { session: Some(session), instance: Some(instance) })
    }

    fn in_firefox(settings: &Settings) -> Option<Self> {
        let external = ExternalHosts::start();
        let proxy = external.address();
        let preferences = json!({
            // Prints uncaught errors.
            "browser.dom.window.dump.enabled": true,
            "network.proxy.type": 1,
            "network.proxy.http": proxy.ip().to_string(),
            "network.proxy.http_port": proxy.port(),
            "network.proxy.ssl": proxy.ip().to_string(),
            "network.proxy.ssl_port": proxy.port(),
        });
        let binary = FIREFOX.into_iter().find_map(find_program).unwrap_or_default();
        let options = json!({ "binary": binary, "args": ["-headless"], "prefs": preferences });
        let capabilities = settings.complete(json!({ "moz:firefoxOptions": options }));
        let (process, session) = start_browser(Browser::Firefox, &capabilities)?;
        Some(Self { session: Some(session), instance: Some(Instance::Firefox { process, external }) })
    }

    /// Returns the kind of the browser.
    pub(crate) fn browser(&self) -> Browser {
        match self.instance() {
            Instance::Chromium { .. } => Browser::Chromium,
            Instance::Firefox { .. } => Browser::Firefox,
        }
    }

    /// Returns the server for all external hosts.
    pub(crate) fn external(&self) -> &ExternalHosts {
        match self.instance() {
            Instance::Chromium { browser, .. } => browser.external(),
            Instance::Firefox { external, .. } => external,
        }
    }

    /// Returns the id of the process group of the browser.
    pub(crate) fn process_group(&self) -> u32 {
        match self.instance() {
            Instance::Chromium { browser, .. } => browser.process_group(),
            Instance::Firefox { process, .. } => process.id(),
        }
    }

    fn instance(&self) -> &Instance {
        self.instance.as_ref().expect("the browser is in use")
    }

    fn session(&self) -> &Session {
        self.session.as_ref().expect("the browser is in use")
    }

    /// Sends a POST command with parameters.
    pub(crate) fn post(&self, path: &str, body: &Value) -> DriverResult {
        self.session().post(path, body)
    }

    /// Sends a GET command.
    pub(crate) fn get(&self, path: &str) -> DriverResult {
        self.session().get(path)
    }

    /// Sends a command of the Chrome DevTools protocol to the current window. Firefox has no such commands.
    pub(crate) fn command(&self, name: &str, parameters: &Value) -> DriverResult {
        self.post("/goog/cdp/execute", &json!({ "cmd": name, "params": parameters }))
    }

    /// Opens a tab in the background, and returns its window handle. Only Chromium has this: WebDriver would open the tab in the
    /// context of no test.
    pub(crate) fn open_tab(&self) -> DriverResult {
        match self.instance() {
            Instance::Chromium { browser, context, .. } => browser.open_tab(context),
            Instance::Firefox { .. } => panic!("no test opens a second tab in Firefox"),
        }
    }

    /// Grants a permission to all pages of this use. Only Chromium has this.
    pub(crate) fn grant_permission(&self, name: &str) -> DriverResult {
        match self.instance() {
            Instance::Chromium { browser, context, .. } => browser.grant_permission(context, name),
            Instance::Firefox { .. } => panic!("no test grants a permission in Firefox"),
        }
    }

    /// Returns the window handles of all tabs of this use.
    pub(crate) fn tabs(&self) -> Result<Vec<Value>, DriverError> {
        match self.instance() {
            Instance::Chromium { browser, context, .. } => browser.tabs(context),
            Instance::Firefox { .. } => Ok(self.get("/window/handles")?.as_array().cloned().unwrap_or_default()),
        }
    }

    /// Returns the new entries of a log of Chromium since the last call.
    pub(crate) fn log(&self, kind: &str) -> Vec<Value> {
        let entries = self.post("/se/log", &json!({ "type": kind })).expect("the log exists");
        entries.as_array().cloned().unwrap_or_default()
    }

    /// Returns what Firefox has printed about errors in pages.
    pub(crate) fn printed_errors(&self) -> Vec<String> {
        match self.instance() {
            Instance::Firefox { process, .. } => process.printed(FIREFOX_ERROR),
            Instance::Chromium { .. } => Vec::new(),
        }
    }

    /// Ends this use, and starts the next use of the same Chromium.
    pub(crate) fn use_again(mut self, settings: &Settings) -> Self {
        let browser = self.end().expect("the use ends").expect("Chromium is used again");
        Self::in_chromium(browser, settings).expect("the next use begins")
    }

    /// Ends the use. Returns the browser for the next one, unless it is for one use.
    fn end(&mut self) -> Result<Option<Chromium>, DriverError> {
        let session = self.session.take();
        match self.instance.take() {
            Some(Instance::Chromium { browser, context, is_for_one_use: false }) => {
                session.map_or(Ok(()), Session::close)?;
                browser.close_context(&context)?;
                Ok(Some(*browser))
            }
            // Its processes are killed.
            Some(Instance::Chromium { .. } | Instance::Firefox { .. }) | None => Ok(None),
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // A browser on which a test has failed is not used again.
        if std::thread::panicking() {
            return;
        }
        match self.end() {
            Ok(browser) => browser.into_iter().for_each(Chromium::make_idle),
            Err(error) => eprintln!("a browser is replaced: {error:?}"),
        }
    }
}

/// Starts a browser with its driver, and opens a session. Returns `None` if one of the two is not installed.
pub(crate) fn start_browser(browser: Browser, capabilities: &Value) -> Option<(ProcessGroup, Session)> {
    if !is_installed(browser.driver(), &["--version"], "river", browser.required_by()) {
        return None;
    }
    let size = [("MOZ_HEADLESS_WIDTH", "1280"), ("MOZ_HEADLESS_HEIGHT", "800")];
    let port = |line: &str| line.split_once(browser.before_port())?.1.trim_end_matches('.').parse::<u16>().ok();
    let start = || ProcessGroup::start(browser.driver(), &["--port=0"], &size, port);
    let (process, port) = (0..ATTEMPTS).find_map(|_| start()).expect("the driver starts");
    match Session::open(SocketAddr::from(([127, 0, 0, 1], port)), capabilities) {
        Ok(session) => Some((process, session)),
        Err(DriverError { message, .. }) if message.contains(browser.missing()) => {
            let reason = format!("{} is there, but no {browser:?}", browser.driver());
            skip(&reason, browser.required_by());
            None
        }
        Err(error) => panic!("the browser does not start: {error:?}"),
    }
}

/// A WebDriver session.
pub(crate) struct Session {
    agent: ureq::Agent,
    /// The address of the driver.
    pub(crate) driver: SocketAddr,
    url: String,
    /// What the driver and the browser support.
    pub(crate) capabilities: Value,
}

impl Session {
    /// Opens a session of the driver at this address.
    fn open(driver: SocketAddr, capabilities: &Value) -> Result<Self, DriverError> {
        let config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(3 * TEST_TIMEOUT));
        let url = format!("http://{driver}/session");
        let mut session = Self { agent: config.build().into(), driver, url, capabilities: Value::Null };
        let mut response = session.post("", &json!({ "capabilities": { "alwaysMatch": capabilities } }))?;
        let id = response["sessionId"].as_str().expect("a session has an id");
        session.url = format!("{}/{id}", session.url);
        session.capabilities = response["capabilities"].take();
        Ok(session)
    }

    fn post(&self, path: &str, body: &Value) -> DriverResult {
        let request = self.agent.post(format!("{}{path}", self.url)).content_type("application/json");
        into_result(request.send(body.to_string()))
    }

    fn get(&self, path: &str) -> DriverResult {
        into_result(self.agent.get(format!("{}{path}", self.url)).call())
    }

    fn close(self) -> Result<(), DriverError> {
        into_result(self.agent.delete(&self.url).call()).map(drop)
    }
}

fn into_result(response: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> DriverResult {
    let mut response = response.map_err(|error| DriverError::no_response(&error))?;
    let body = response.body_mut().with_config().limit(MAX_RESPONSE_BYTES).read_to_string();
    let text = body.map_err(|error| DriverError::no_response(&error))?;
    let mut body: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"));
    let value = body["value"].take();
    if response.status().is_success() {
        return Ok(value);
    }
    let word = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    Err(DriverError { code: word("error"), message: word("message") })
}

/// Returns the path of a program in `PATH`.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}
