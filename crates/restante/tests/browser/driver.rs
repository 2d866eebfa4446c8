//! A WebDriver client: starts one chromedriver and one Chromium per test, and sends the commands of W3C WebDriver. The operations
//! of tests are in `page.rs`.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use restante_testdir::TestDir;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::support::TEST_TIMEOUT;
use crate::support::installed::{is_installed, skip};

/// The environment variable that makes a missing browser an error.
const REQUIRED: &str = "REQUIRE_BROWSER";
/// The error of chromedriver if the browser is not installed.
const NO_BROWSER: &str = "cannot find Chrome binary";
/// The number of attempts to start chromedriver.
const ATTEMPTS: usize = 5;
/// Large enough for a screenshot of a long page, or the log of a busy one.
const MAX_RESPONSE_BYTES: u64 = 256 * 1024 * 1024;

const FLAGS: [&str; 8] = [
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

/// A browser. It is stopped, with all of its processes, when dropped.
pub(crate) struct Driver {
    agent: ureq::Agent,
    /// Stopped after the session.
    _process: Process,
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
    /// Starts a browser with these flags in addition to those that every test needs. Returns `None` if it is not installed.
    pub(crate) fn start(flags: &[String]) -> Option<Self> {
        if !is_installed("chromedriver", &["--version"], "ChromeDriver", REQUIRED) {
            return None;
        }
        let (process, port) = Process::start();
        let config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(3 * TEST_TIMEOUT));
        let session = format!("http://127.0.0.1:{port}/session");
        let mut driver = Self { agent: config.build().into(), _process: process, session };
        let flags: Vec<&str> = FLAGS.into_iter().chain(flags.iter().map(String::as_str)).collect();
        let wanted = json!({
            "goog:chromeOptions": { "args": flags },
            "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
            // Dialogs are dismissed, so that they do not block further commands. They are recorded in the log.
            "unhandledPromptBehavior": "dismiss",
        });
        match driver.post("", &json!({ "capabilities": { "alwaysMatch": wanted } })) {
            Ok(response) => {
                let id = response["sessionId"].as_str().expect("a session has an id");
                driver.session = format!("{}/{id}", driver.session);
                Some(driver)
            }
            Err(DriverError { message, .. }) if message.contains(NO_BROWSER) => {
                skip("chromedriver is there, but no Chromium", REQUIRED);
                None
            }
            Err(error) => panic!("the browser does not start: {error:?}"),
        }
    }

    /// Sends a POST command with parameters.
    pub(crate) fn post(&self, path: &str, body: &Value) -> DriverResult {
        let request = self.agent.post(format!("{}{path}", self.session)).content_type("application/json");
        into_result(request.send(body.to_string()).expect("chromedriver responds"))
    }

    /// Sends a GET command.
    pub(crate) fn get(&self, path: &str) -> DriverResult {
        into_result(self.agent.get(format!("{}{path}", self.session)).call().expect("chromedriver responds"))
    }

    /// Sends a command of the Chrome DevTools protocol.
    pub(crate) fn command(&self, name: &str, parameters: &Value) -> DriverResult {
        self.post("/goog/cdp/execute", &json!({ "cmd": name, "params": parameters }))
    }

    /// Returns the new entries of a log since the last call.
    pub(crate) fn log(&self, kind: &str) -> Vec<Value> {
        let entries = self.post("/se/log", &json!({ "type": kind })).expect("the log exists");
        entries.as_array().cloned().unwrap_or_default()
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

/// chromedriver and its child processes in one process group, so that none outlives a test that panics.
struct Process {
    child: Child,
    /// Removes the profile when dropped.
    _scratch: TestDir,
}

impl Process {
    /// Starts chromedriver on a free port. Retries if another program takes the port first.
    fn start() -> (Self, u16) {
        (0..ATTEMPTS).find_map(|_| Self::try_start()).expect("chromedriver starts")
    }

    /// Starts chromedriver and waits until it listens.
    fn try_start() -> Option<(Self, u16)> {
        // For the profile, and for a socket whose path must be short.
        let scratch = TestDir::new();
        let mut command = Command::new("chromedriver");
        command.arg("--port=0").env("TMPDIR", scratch.path()).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = Self { child: command.spawn().unwrap(), _scratch: scratch };
        let mut lines = BufReader::new(process.child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let port =
            lines.find_map(|line| line.split_once("successfully on port ")?.1.trim_end_matches('.').parse().ok());
        // The pipe is drained, so that chromedriver does not block.
        std::thread::spawn(move || lines.for_each(drop));
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
