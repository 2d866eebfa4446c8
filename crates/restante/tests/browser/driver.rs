//! The wire to a browser: one chromedriver and one Chromium, started for one test and ended with it, and the commands of
//! W3C WebDriver as they are. What tests say to a page stands in `page.rs`.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use restante_testdir::TestDir;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::support::LONG;
use crate::support::installed::{is_there, skip};

/// The variable that does not put up with a browser that is missing.
const REQUIRED: &str = "REQUIRE_BROWSER";
/// What chromedriver says when it is there and the browser is not.
const NO_BROWSER: &str = "cannot find Chrome binary";
/// How often it is tried to start chromedriver.
const ATTEMPTS: usize = 5;
/// A screenshot of a long page, or the log of a busy one.
const LARGEST_ANSWER: u64 = 256 * 1024 * 1024;

const FLAGS: [&str; 8] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--window-size=1280,800",
    "--disable-background-networking",
    // In a process of its own, a sandboxed frame would keep what it logs from us. What it may do is the same.
    "--disable-features=IsolateSandboxedIframes",
];

/// A browser; it ends, with everything that it has started, when dropped.
pub(crate) struct Driver {
    agent: ureq::Agent,
    /// Held for its end, after that of the session.
    _process: Process,
    session: String,
}

/// A command that the browser refused: its error code and its words.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: String,
    pub(crate) message: String,
}

pub(crate) type Answer = Result<Value, Refusal>;

impl Driver {
    /// Starts a browser with more flags than those that every test needs; `None` when there is none to start.
    pub(crate) fn start(flags: &[String]) -> Option<Self> {
        if !is_there("chromedriver", &["--version"], "ChromeDriver", REQUIRED) {
            return None;
        }
        let (process, port) = Process::start();
        let config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(3 * LONG));
        let session = format!("http://127.0.0.1:{port}/session");
        let mut driver = Self { agent: config.build().into(), _process: process, session };
        let flags: Vec<&str> = FLAGS.into_iter().chain(flags.iter().map(String::as_str)).collect();
        let wanted = json!({
            "goog:chromeOptions": { "args": flags },
            "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
            // A dialog shall be found in the log, and not be in the way of looking there.
            "unhandledPromptBehavior": "dismiss",
        });
        match driver.post("", &json!({ "capabilities": { "alwaysMatch": wanted } })) {
            Ok(answer) => {
                let id = answer["sessionId"].as_str().expect("a session has an id");
                driver.session = format!("{}/{id}", driver.session);
                Some(driver)
            }
            Err(Refusal { message, .. }) if message.contains(NO_BROWSER) => {
                skip("chromedriver is there, but no Chromium", REQUIRED);
                None
            }
            Err(refusal) => panic!("the browser does not start: {refusal:?}"),
        }
    }

    /// A command with parameters.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        let request = self.agent.post(format!("{}{path}", self.session)).content_type("application/json");
        answer(request.send(body.to_string()).expect("chromedriver answers"))
    }

    /// A question.
    pub(crate) fn ask(&self, path: &str) -> Answer {
        answer(self.agent.get(format!("{}{path}", self.session)).call().expect("chromedriver answers"))
    }

    /// A command of the browser's own protocol.
    pub(crate) fn command(&self, name: &str, parameters: &Value) -> Answer {
        self.post("/goog/cdp/execute", &json!({ "cmd": name, "params": parameters }))
    }

    /// What has come into one of the logs since it was read last.
    pub(crate) fn log(&self, kind: &str) -> Vec<Value> {
        let entries = self.post("/se/log", &json!({ "type": kind })).expect("the browser keeps this log");
        entries.as_array().cloned().unwrap_or_default()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Asked to end, a browser ends cleanly; what is left of it ends with the process, whatever it answers.
        let end = self.agent.delete(&self.session).config().timeout_global(Some(Duration::from_secs(5))).build();
        let _ = end.call();
    }
}

fn answer(mut response: ureq::http::Response<ureq::Body>) -> Answer {
    let text = response.body_mut().with_config().limit(LARGEST_ANSWER).read_to_string().expect("an answer of text");
    let mut answer: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"));
    let value = answer["value"].take();
    if response.status().is_success() {
        return Ok(value);
    }
    let word = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    Err(Refusal { code: word("error"), message: word("message") })
}

/// chromedriver and what it starts: one group of processes, so that none of them outlives a test that panics.
struct Process {
    child: Child,
    /// Removes the profile when dropped.
    _scratch: TestDir,
}

impl Process {
    /// Starts it on a free port. It may find that another program was faster there, and end.
    fn start() -> (Self, u16) {
        (0..ATTEMPTS).find_map(|_| Self::try_start()).expect("chromedriver says where it listens")
    }

    /// Starts it, and waits until it says where it listens.
    fn try_start() -> Option<(Self, u16)> {
        // For the profile, and for a socket, whose path must be short.
        let scratch = TestDir::new();
        let mut command = Command::new("chromedriver");
        command.arg("--port=0").env("TMPDIR", scratch.path()).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = Self { child: command.spawn().unwrap(), _scratch: scratch };
        let mut lines = BufReader::new(process.child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let port =
            lines.find_map(|line| line.split_once("successfully on port ")?.1.trim_end_matches('.').parse().ok());
        // Nobody may find the pipe full.
        std::thread::spawn(move || lines.for_each(drop));
        Some((process, port?))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // There may be nobody left.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}
