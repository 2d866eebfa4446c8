//! Chromium browsers that tests use one after another. A start costs more CPU time than most tests, and each test needs its own cookies,
//! storage, cache and permissions: each test gets a browser context of its own, which is what a private window uses.

use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Message, WebSocket, client};

use super::driver::{Browser, DriverError, DriverResult, find_program, start_browser};
use super::other_hosts::ExternalHosts;
use super::process_group::ProcessGroup;
use crate::support::connect;

const FLAGS: [&str; 7] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--window-size=1280,800",
    "--disable-background-networking",
];

/// The name of Debian's headless shell: Chromium without the interface of the browser, which costs as much CPU time as the pages of a test. Tests
/// that need no complete browser use the shell if it is installed.
const HEADLESS_SHELL: &str = "chromium-headless-shell";

/// Features of the browser that are off.
const DISABLED_FEATURES: [&str; 10] = [
    // The console messages of a sandboxed frame in another process would not be visible. Its permissions are the same.
    "IsolateSandboxedIframes",
    // The other features cost CPU time in every window: pages of the browser itself, and processes for pages that may be opened.
    "InitialWebUI",
    "MediaRouter",
    "OptimizationHints",
    "PreloadTopChromeWebUI",
    "SpareRendererForSitePerProcess",
    "Translate",
    "WebUIOmniboxAimPopup",
    "WebUIOmniboxPopup",
    "WebUIReloadButton",
];

/// The browsers that no test uses now. Their number does not exceed the number of test threads, except for tests that use two at once.
static IDLE: Mutex<Vec<Chromium>> = Mutex::new(Vec::new());

/// A running Chromium with its driver.
pub(crate) struct Chromium {
    process: ProcessGroup,
    /// The address of the driver.
    driver: SocketAddr,
    /// The address at which other sessions attach to the browser.
    debugger: SocketAddr,
    devtools: Mutex<Devtools>,
    external: ExternalHosts,
}

impl Chromium {
    /// Starts a browser: the complete Chromium if `is_complete` is true or the headless shell is not installed, otherwise the shell. Returns
    /// `None` if the browser is not installed.
    pub(crate) fn start(is_complete: bool) -> Option<Self> {
        let external = ExternalHosts::start();
        let features = format!("--disable-features={}", DISABLED_FEATURES.join(","));
        let flags: Vec<String> = FLAGS.into_iter().map(str::to_owned).chain([features, external.flag()]).collect();
        // The session stays open without being used, and with it the browser and a window.
        let mut capabilities = json!({ "goog:chromeOptions": { "args": flags } });
        if !is_complete && let Some(shell) = find_program(HEADLESS_SHELL) {
            capabilities["goog:chromeOptions"]["binary"] = json!(shell);
        }
        let (process, session) = start_browser(Browser::Chromium, &capabilities)?;
        let debugger = session.capabilities["goog:chromeOptions"]["debuggerAddress"].as_str();
        // `localhost` and a port.
        let port = debugger.and_then(|address| address.rsplit_once(':')?.1.parse().ok());
        let debugger = SocketAddr::from(([127, 0, 0, 1], port.expect("a browser on this machine has an address")));
        let devtools = Mutex::new(Devtools::connect(debugger).expect("the browser responds"));
        Some(Self { process, driver: session.driver, debugger, devtools, external })
    }

    /// Returns a browser that an earlier test has used.
    pub(crate) fn take_idle() -> Option<Self> {
        IDLE.lock().unwrap().pop()
    }

    /// Keeps a browser without contexts for a later test.
    pub(crate) fn make_idle(self) {
        IDLE.lock().unwrap().push(self);
    }

    /// Returns the address of the driver.
    pub(crate) fn driver(&self) -> SocketAddr {
        self.driver
    }

    /// Returns the capabilities of a session that attaches to this browser.
    pub(crate) fn capabilities(&self) -> Value {
        json!({
            "goog:chromeOptions": { "debuggerAddress": self.debugger.to_string() },
            "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
        })
    }

    /// Returns the server for all external hosts.
    pub(crate) fn external(&self) -> &ExternalHosts {
        &self.external
    }

    /// Returns the id of the process group.
    pub(crate) fn process_group(&self) -> u32 {
        self.process.id()
    }

    /// Opens a tab in the context that the browser has from the start, and closes its other tabs. Returns the id of the context and the
    /// handle of the tab.
    pub(crate) fn use_first_context(&self) -> Result<(String, String), DriverError> {
        let created = self.call("Target.createTarget", &json!({ "url": "about:blank" }))?;
        let tab = &created["targetId"];
        let context =
            text(&self.call("Target.getTargetInfo", &json!({ "targetId": tab }))?["targetInfo"]["browserContextId"]);
        for other in self.tabs(&context)?.iter().filter(|other| *other != tab) {
            self.call("Target.closeTarget", &json!({ "targetId": other }))?;
        }
        Ok((context, text(tab)))
    }

    /// Opens a window in a new context. Returns the id of the context and the handle of the window.
    pub(crate) fn open_context(&self) -> Result<(String, String), DriverError> {
        let created = self.call("Target.createBrowserContext", &json!({}))?;
        let context = text(&created["browserContextId"]);
        let window = json!({ "url": "about:blank", "browserContextId": context, "width": 1280, "height": 800 });
        let created = self.call("Target.createTarget", &window)?;
        Ok((context, text(&created["targetId"])))
    }

    /// Opens a tab in the background of the window of a context. Returns its handle.
    pub(crate) fn open_tab(&self, context: &str) -> DriverResult {
        let tab = json!({ "url": "about:blank", "browserContextId": context, "background": true });
        Ok(self.call("Target.createTarget", &tab)?["targetId"].take())
    }

    /// Grants a permission to all pages of a context.
    pub(crate) fn grant_permission(&self, context: &str, name: &str) -> DriverResult {
        let granted = json!({ "permission": { "name": name }, "setting": "granted", "browserContextId": context });
        self.call("Browser.setPermission", &granted)
    }

    /// Returns the handles of all tabs of a context.
    pub(crate) fn tabs(&self, context: &str) -> Result<Vec<Value>, DriverError> {
        let mut targets = self.call("Target.getTargets", &json!({}))?["targetInfos"].take();
        let targets = targets.as_array_mut().map(std::mem::take).unwrap_or_default();
        let is_tab = |target: &Value| target["type"] == "page" && target["browserContextId"] == context;
        Ok(targets.into_iter().filter(is_tab).map(|mut target| target["targetId"].take()).collect())
    }

    /// Closes all windows of a context, and deletes its data.
    pub(crate) fn close_context(&self, context: &str) -> Result<(), DriverError> {
        self.call("Target.disposeBrowserContext", &json!({ "browserContextId": context })).map(drop)
    }

    fn call(&self, method: &str, parameters: &Value) -> DriverResult {
        self.devtools.lock().unwrap().call(method, parameters)
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A connection for commands of the Chrome DevTools protocol that concern the whole browser. WebDriver passes on only those that
/// concern a window.
struct Devtools {
    socket: WebSocket<TcpStream>,
    /// The number of commands so far.
    commands: u64,
}

impl Devtools {
    /// Connects to the browser at this address.
    fn connect(debugger: SocketAddr) -> Result<Self, DriverError> {
        let version = ureq::get(format!("http://{debugger}/json/version")).call();
        let version = version.and_then(|mut response| response.body_mut().read_to_string());
        let version: Value = serde_json::from_str(&version.map_err(|error| DriverError::no_response(&error))?).unwrap();
        let url = version["webSocketDebuggerUrl"].as_str().expect("the browser has a URL");
        let (socket, _) = client(url, connect(debugger)).map_err(|error| DriverError::no_response(&error))?;
        Ok(Self { socket, commands: 0 })
    }

    /// Sends a command, and waits for its result.
    fn call(&mut self, method: &str, parameters: &Value) -> DriverResult {
        self.commands += 1;
        let command = json!({ "id": self.commands, "method": method, "params": parameters });
        self.socket.send(Message::text(command.to_string())).map_err(|error| DriverError::no_response(&error))?;
        loop {
            let message = self.socket.read().map_err(|error| DriverError::no_response(&error))?;
            let Message::Text(text) = message else { continue };
            let mut response: Value = serde_json::from_str(&text).unwrap();
            // The browser also sends events.
            if response["id"] != self.commands {
                continue;
            }
            let error = &response["error"]["message"];
            if let Some(message) = error.as_str() {
                return Err(DriverError { code: method.to_owned(), message: message.to_owned() });
            }
            return Ok(response["result"].take());
        }
    }
}
