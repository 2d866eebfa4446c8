//! A WebDriver client: starts one browser per test with its driver, chromedriver or geckodriver, and sends the commands of W3C
//! WebDriver. What differs between the browsers is here; the operations of tests are in `page.rs`.

use std::io::{BufRead as _, BufReader, Read};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use restante_testdir::TestDir;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::support::TEST_TIMEOUT;
use crate::support::installed::{is_installed, skip};

/// The number of attempts to start a driver.
const ATTEMPTS: usize = 5;
/// Large enough for a screenshot of a long page, or the log of a busy one.
const MAX_RESPONSE_BYTES: u64 = 256 * 1024 * 1024;

const CHROMIUM_FLAGS: [&str; 8] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--window-size=1280,800",
    "--disable-background-networking",
    // The console messages of a sandboxed frame in another process would not be visible. Its permissions are the same.
    "--disable-features=IsolateSandboxedIframes",
];
/// The names of Firefox: Debian's, and that of other systems.
const FIREFOX: [&str; 2] = ["firefox-esr", "firefox"];
/// What Firefox prints about an uncaught error in a page, before the URL.
const FIREFOX_ERROR: &str = "JavaScript error: http";

/// A browser for tests.
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

    /// Returns the capabilities of a session.
    fn capabilities(self, settings: &Settings) -> Value {
        let mut wanted = match self {
            Self::Chromium => {
                let flags: Vec<&str> =
                    CHROMIUM_FLAGS.into_iter().chain(settings.flags.iter().map(String::as_str)).collect();
                json!({
                    "goog:chromeOptions": { "args": flags },
                    "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
                })
            }
            Self::Firefox => {
                let binary = FIREFOX.into_iter().find_map(find_program).unwrap_or_default();
                let proxy = settings.proxy;
                let preferences = json!({
                    // Prints uncaught errors.
                    "browser.dom.window.dump.enabled": true,
                    "network.proxy.type": 1,
                    "network.proxy.http": proxy.ip().to_string(),
                    "network.proxy.http_port": proxy.port(),
                    "network.proxy.ssl": proxy.ip().to_string(),
                    "network.proxy.ssl_port": proxy.port(),
                });
                json!({ "moz:firefoxOptions": { "binary": binary, "args": ["-headless"], "prefs": preferences } })
            }
        };
        wanted["pageLoadStrategy"] = if settings.waits_for_load { "normal" } else { "none" }.into();
        // The default of 30 seconds is too short for a check of a whole page on a loaded machine.
        wanted["timeouts"] = json!({ "script": 2 * TEST_TIMEOUT.as_millis() });
        // Dialogs are dismissed, so that they do not block further commands. They are recorded in the log.
        wanted["unhandledPromptBehavior"] = "dismiss".into();
        json!({ "capabilities": { "alwaysMatch": wanted } })
    }
}

/// The settings of a browser.
pub(crate) struct Settings {
    pub(crate) browser: Browser,
    /// Flags of Chromium in addition to those that every test needs.
    pub(crate) flags: Vec<String>,
    /// The proxy of Firefox for all requests that are not to this machine.
    pub(crate) proxy: SocketAddr,
    /// Whether opening a page waits until it is loaded.
    pub(crate) waits_for_load: bool,
}

/// A browser. It is stopped, with all of its processes, when dropped.
pub(crate) struct Driver {
    browser: Browser,
    agent: ureq::Agent,
    /// Stopped after the session.
    process: Process,
    session: String,
}

/// An error response of WebDriver: code and message.
#[derive(Debug)]
pub(crate) struct DriverError {
    pub(crate) code: String,
    pub(crate) message: String,
}

pub(crate) type DriverResult = Result<Value, DriverError>;

impl Driver {
    /// Starts a browser. Returns `None` if it is not installed.
    pub(crate) fn start(settings: &Settings) -> Option<Self> {
        let browser = settings.browser;
        if !is_installed(browser.driver(), &["--version"], "river", browser.required_by()) {
            return None;
        }
        let (process, port) = Process::start(browser);
        let config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(3 * TEST_TIMEOUT));
        let session = format!("http://127.0.0.1:{port}/session");
        let mut driver = Self { browser, agent: config.build().into(), process, session };
        match driver.post("", &browser.capabilities(settings)) {
            Ok(response) => {
                let id = response["sessionId"].as_str().expect("a session has an id");
                driver.session = format!("{}/{id}", driver.session);
                Some(driver)
            }
            Err(DriverError { message, .. }) if message.contains(browser.missing()) => {
                let reason = format!("{} is there, but no {browser:?}", browser.driver());
                skip(&reason, browser.required_by());
                None
            }
            Err(error) => panic!("the browser does not start: {error:?}"),
        }
    }

    /// Returns the browser.
    pub(crate) fn browser(&self) -> Browser {
        self.browser
    }

    /// Sends a POST command with parameters.
    pub(crate) fn post(&self, path: &str, body: &Value) -> DriverResult {
        let request = self.agent.post(format!("{}{path}", self.session)).content_type("application/json");
        into_result(request.send(body.to_string()).expect("the driver responds"))
    }

    /// Sends a GET command.
    pub(crate) fn get(&self, path: &str) -> DriverResult {
        into_result(self.agent.get(format!("{}{path}", self.session)).call().expect("the driver responds"))
    }

    /// Sends a command of the Chrome DevTools protocol. Firefox has none.
    pub(crate) fn command(&self, name: &str, parameters: &Value) -> DriverResult {
        self.post("/goog/cdp/execute", &json!({ "cmd": name, "params": parameters }))
    }

    /// Returns the new entries of a log of Chromium since the last call.
    pub(crate) fn log(&self, kind: &str) -> Vec<Value> {
        let entries = self.post("/se/log", &json!({ "type": kind })).expect("the log exists");
        entries.as_array().cloned().unwrap_or_default()
    }

    /// Returns what Firefox has printed about errors in pages.
    pub(crate) fn printed_errors(&self) -> Vec<String> {
        let output = self.process.output.lock().unwrap();
        output.iter().filter(|line| line.contains(FIREFOX_ERROR)).cloned().collect()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Closing the session stops the browser cleanly. Killing the process stops the rest.
        let end = self.agent.delete(&self.session).config().timeout_global(Some(Duration::from_secs(5))).build();
        let _ = end.call();
    }
}

fn into_result(mut response: ureq::http::Response<ureq::Body>) -> DriverResult {
    let text = response.body_mut().with_config().limit(MAX_RESPONSE_BYTES).read_to_string().expect("a text response");
    let mut body: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"));
    let value = body["value"].take();
    if response.status().is_success() {
        return Ok(value);
    }
    let word = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    Err(DriverError { code: word("error"), message: word("message") })
}

/// Returns the path of a program in `PATH`.
fn find_program(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// A driver and its child processes in one process group, so that none outlives a test that panics.
struct Process {
    child: Child,
    /// The lines that the driver and the browser have printed so far.
    output: Arc<Mutex<Vec<String>>>,
    /// Removes the profile when dropped.
    _scratch: TestDir,
}

impl Process {
    /// Starts the driver on a free port. Retries if another program takes the port first.
    fn start(browser: Browser) -> (Self, u16) {
        (0..ATTEMPTS).find_map(|_| Self::try_start(browser)).expect("the driver starts")
    }

    /// Starts the driver and waits until it listens.
    fn try_start(browser: Browser) -> Option<(Self, u16)> {
        // For the profile, and for a socket whose path must be short.
        let scratch = TestDir::new();
        let mut command = Command::new(browser.driver());
        command.arg("--port=0").env("TMPDIR", scratch.path()).process_group(0);
        command.env("MOZ_HEADLESS_WIDTH", "1280").env("MOZ_HEADLESS_HEIGHT", "800");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Self { child: command.spawn().unwrap(), output: Arc::default(), _scratch: scratch };
        let lines = |pipe: Box<dyn Read + Send>| BufReader::new(pipe).lines().map_while(Result::ok);
        let mut printed = lines(Box::new(process.child.stdout.take().unwrap()));
        let port =
            printed.find_map(|line| line.split_once(browser.before_port())?.1.trim_end_matches('.').parse().ok());
        // The pipes are drained, so that the driver does not block.
        let errors = lines(Box::new(process.child.stderr.take().unwrap()));
        for lines in [printed, errors] {
            let output = Arc::clone(&process.output);
            std::thread::spawn(move || lines.for_each(|line| output.lock().unwrap().push(line)));
        }
        Some((process, port?))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // All processes may have exited already.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}
