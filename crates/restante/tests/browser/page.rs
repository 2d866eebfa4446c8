//! A page with the operations of tests: open, click, type, read and wait. Every operation on an element waits for the element, so
//! tests do not depend on the speed of the machine.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::driver::{Browser, Driver, DriverError, DriverResult, Settings};
use super::other_hosts::{ExternalHosts, PAGE};
use crate::support::{Server, TEST_TIMEOUT};

/// Keys without a character, in the encoding of WebDriver (section 17.4.2).
pub(crate) mod key {
    pub(crate) const TAB: &str = "\u{e004}";
    pub(crate) const ENTER: &str = "\u{e007}";
    pub(crate) const SHIFT: &str = "\u{e008}";
    pub(crate) const ESCAPE: &str = "\u{e00c}";
    pub(crate) const UP: &str = "\u{e013}";
    pub(crate) const RIGHT: &str = "\u{e014}";
    pub(crate) const DOWN: &str = "\u{e015}";
    pub(crate) const DELETE: &str = "\u{e017}";
}

/// Chromium's reasons for requests that were never sent.
const FORBIDDEN: [&str; 2] = ["csp", "origin"];

/// Pauses all timers of more than five seconds: those wait for the user.
pub(crate) const PAUSE_TIMERS: &str = "
    const [set, clear] = [window.setTimeout, window.clearTimeout];
    window.held = new Map();
    window.setTimeout = (run, millis, ...more) => {
        if (!(millis > 5000)) return set(run, millis, ...more);
        const number = -1 - window.held.size;
        window.held.set(number, run);
        return number;
    };
    window.clearTimeout = number => window.held.delete(number) || clear(number)";

/// The size of a window on a desktop.
pub(crate) const DESKTOP: (u32, u32) = (1280, 800);
/// The size of a window on a small laptop or a tablet.
pub(crate) const TABLET: (u32, u32) = (1024, 768);
/// The size of the window on a phone, which has a touch screen.
pub(crate) const PHONE: (u32, u32) = (390, 844);

/// A display mode of the browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DisplayMode {
    Light,
    Dark,
    Phone,
}

/// The open tab of a browser.
pub(crate) struct Page {
    driver: Driver,
    external: ExternalHosts,
    root: String,
    seen: RefCell<LogState>,
}

/// The log entries so far. The browser returns each entry only once.
#[derive(Default)]
struct LogState {
    console: Vec<String>,
    dialogs: Vec<String>,
    /// The URLs of requests, by the browser's request id.
    requests: Vec<(String, String)>,
    /// The status of each response by request id, including responses that the browser hides from the page.
    statuses: Vec<(String, u64)>,
}

impl Page {
    /// Opens an empty page whose paths are those of a server. Returns `None` if there is no browser.
    pub(crate) fn of(server: &Server) -> Option<Self> {
        Self::at(server.http)
    }

    /// Opens an empty page whose paths are those of a server, in Firefox. Returns `None` if that is not installed.
    pub(crate) fn in_firefox(server: &Server) -> Option<Self> {
        Self::start(format!("http://{}", server.http), |settings| settings.browser = Browser::Firefox)
    }

    /// Opens an empty page whose paths are at this address, for a proxy in front of the server.
    pub(crate) fn at(address: SocketAddr) -> Option<Self> {
        Self::start(format!("http://{address}"), |_| {})
    }

    /// Opens an empty page whose paths are at this address. Opening a path does not wait until it is loaded.
    pub(crate) fn without_waiting_at(address: SocketAddr) -> Option<Self> {
        Self::start(format!("http://{address}"), |settings| settings.waits_for_load = false)
    }

    /// Opens an empty page whose paths are at this address with HTTPS and any certificate.
    pub(crate) fn secure_at(address: SocketAddr) -> Option<Self> {
        Self::start(format!("https://{address}"), |settings| {
            settings.flags.push("--ignore-certificate-errors".to_owned());
        })
    }

    fn start(root: String, change: impl FnOnce(&mut Settings)) -> Option<Self> {
        let external = ExternalHosts::start();
        let mut settings = Settings {
            browser: Browser::Chromium,
            flags: vec![external.flag()],
            proxy: external.address(),
            waits_for_load: true,
        };
        change(&mut settings);
        let driver = Driver::start(&settings)?;
        Some(Self { driver, external, root, seen: RefCell::default() })
    }

    /// Opens a path of the server, or a URL, and waits until it is loaded.
    #[track_caller]
    pub(crate) fn open(&self, path: &str) {
        let url = if path.starts_with('/') { format!("{}{path}", self.root) } else { path.to_owned() };
        unwrap(self.driver.post("/url", &json!({ "url": url })));
    }

    #[track_caller]
    pub(crate) fn reload(&self) {
        unwrap(self.driver.post("/refresh", &json!({})));
    }

    #[track_caller]
    pub(crate) fn back(&self) {
        unwrap(self.driver.post("/back", &json!({})));
    }

    /// Returns the address without the server: `/m/james?a=b#c`.
    #[track_caller]
    pub(crate) fn path(&self) -> String {
        let url = unwrap(self.driver.get("/url"));
        let url = url.as_str().unwrap_or_default();
        url.strip_prefix(&self.root).unwrap_or(url).to_owned()
    }

    #[track_caller]
    pub(crate) fn title(&self) -> String {
        unwrap(self.driver.get("/title")).as_str().unwrap_or_default().to_owned()
    }

    /// Waits until an element exists.
    #[track_caller]
    pub(crate) fn find(&self, css: &str) {
        self.with_element(css, |_| Ok(Value::Null));
    }

    /// Returns the current number of matching elements.
    #[track_caller]
    pub(crate) fn count(&self, css: &str) -> usize {
        let found = unwrap(self.driver.post("/elements", &by(css)));
        found.as_array().map_or(0, Vec::len)
    }

    /// Waits for the first matching element and returns its visible text.
    #[track_caller]
    pub(crate) fn text(&self, css: &str) -> String {
        let text = self.with_element(css, |element| self.driver.get(&element.path("text")));
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Returns the visible texts of all current matching elements.
    #[track_caller]
    pub(crate) fn texts(&self, css: &str) -> Vec<String> {
        let texts =
            self.eval("return [...document.querySelectorAll(arguments[0])].map(e => e.innerText)", &json!([css]));
        serde_json::from_value(texts).unwrap()
    }

    /// Waits for the first matching element and returns an attribute.
    #[track_caller]
    pub(crate) fn attribute(&self, css: &str, name: &str) -> Option<String> {
        let script = "return arguments[0].getAttribute(arguments[1])";
        let value = self.with_element(css, |element| {
            self.driver.post("/execute/sync", &json!({ "script": script, "args": [element.reference(), name] }))
        });
        value.as_str().map(str::to_owned)
    }

    /// Clicks the middle of the first matching element, as soon as it is visible, enabled and not covered.
    #[track_caller]
    pub(crate) fn click(&self, css: &str) {
        // The driver clicks a disabled button, which ignores the click. A hidden one may be shown disabled.
        let script = "return arguments[0].checkVisibility() && !arguments[0].matches(':disabled')";
        self.with_element(css, |element| {
            let is_ready =
                self.driver.post("/execute/sync", &json!({ "script": script, "args": [element.reference()] }))?;
            if is_ready == false {
                let message = "the element is hidden or disabled".to_owned();
                return Err(DriverError { code: "element not interactable".to_owned(), message });
            }
            self.driver.post(&element.path("click"), &json!({}))
        });
    }

    /// Chooses to delete all messages in the menu of the list.
    #[track_caller]
    pub(crate) fn delete_all(&self) {
        self.click("list-head [aria-haspopup=menu]");
        self.click("list-head .menu-item:last-child");
    }

    /// Replaces the text of a field.
    #[track_caller]
    pub(crate) fn fill(&self, css: &str, text: &str) {
        self.with_element(css, |element| self.driver.post(&element.path("clear"), &json!({})));
        self.with_element(css, |element| self.driver.post(&element.path("value"), &json!({ "text": text })));
    }

    /// Presses and releases keys one after another: characters, and those of [`key`].
    #[track_caller]
    pub(crate) fn keys(&self, keys: &str) {
        let strokes =
            keys.chars().flat_map(|key| ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key })));
        let keyboard = json!({ "type": "key", "id": "keyboard", "actions": strokes.collect::<Vec<_>>() });
        unwrap(self.driver.post("/actions", &json!({ "actions": [keyboard] })));
    }

    /// Presses and releases keys while Shift is held down.
    #[track_caller]
    pub(crate) fn keys_with_shift(&self, keys: &str) {
        let stroke = |kind: &str, key: &str| json!({ "type": kind, "value": key });
        let mut strokes = vec![stroke("keyDown", key::SHIFT)];
        for key in keys.chars().map(String::from) {
            strokes.extend([stroke("keyDown", &key), stroke("keyUp", &key)]);
        }
        strokes.push(stroke("keyUp", key::SHIFT));
        let keyboard = json!({ "type": "key", "id": "keyboard", "actions": strokes });
        unwrap(self.driver.post("/actions", &json!({ "actions": [keyboard] })));
    }

    /// Returns whether the first matching element has the focus.
    #[track_caller]
    pub(crate) fn is_focused(&self, css: &str) -> bool {
        let script =
            "return document.activeElement !== null && document.activeElement === document.querySelector(arguments[0])";
        self.eval(script, &json!([css])) == true
    }

    /// Runs the body of a function in the page. Returns its result, or that of its promise.
    #[track_caller]
    pub(crate) fn eval(&self, script: &str, arguments: &Value) -> Value {
        unwrap(self.driver.post("/execute/sync", &json!({ "script": script, "args": arguments })))
    }

    /// Pauses the timers that wait for the user until the page is reloaded, so that a slow test does not miss them.
    #[track_caller]
    pub(crate) fn pause_timers(&self) {
        self.eval(PAUSE_TIMERS, &json!([]));
    }

    /// Runs all paused timers now.
    #[track_caller]
    pub(crate) fn run_paused_timers(&self) {
        self.eval("const all = [...held.values()]; held.clear(); all.forEach(run => run())", &json!([]));
    }

    /// Runs a function within a frame.
    #[track_caller]
    pub(crate) fn in_frame<T>(&self, css: &str, display: impl FnOnce(&Self) -> T) -> T {
        self.with_element(css, |element| self.driver.post("/frame", &json!({ "id": element.reference() })));
        let seen = display(self);
        unwrap(self.driver.post("/frame/parent", &json!({})));
        seen
    }

    /// Runs a function in a new tab of the same browser. The tab stays open.
    #[track_caller]
    pub(crate) fn in_new_tab<T>(&self, display: impl FnOnce(&Self) -> T) -> T {
        let other = unwrap(self.driver.post("/window/new", &json!({ "type": "tab" })));
        self.in_tab(&other["handle"], display)
    }

    /// Runs a function in the second tab, which this page has opened. The tab stays open.
    #[track_caller]
    pub(crate) fn in_opened_tab<T>(&self, display: impl FnOnce(&Self) -> T) -> T {
        let here = unwrap(self.driver.get("/window"));
        let opened = || {
            let handles = unwrap(self.driver.get("/window/handles"));
            handles.as_array().into_iter().flatten().find(|handle| **handle != here).cloned()
        };
        self.until("the opened tab", || opened().is_some());
        self.in_tab(&opened().unwrap(), display)
    }

    #[track_caller]
    fn in_tab<T>(&self, handle: &Value, display: impl FnOnce(&Self) -> T) -> T {
        let here = unwrap(self.driver.get("/window"));
        unwrap(self.driver.post("/window", &json!({ "handle": handle })));
        let seen = display(self);
        unwrap(self.driver.post("/window", &json!({ "handle": here })));
        seen
    }

    /// Sets the display mode.
    #[track_caller]
    pub(crate) fn set_display_mode(&self, mode: DisplayMode) {
        let size = if mode == DisplayMode::Phone { PHONE } else { DESKTOP };
        self.set_display(size, mode == DisplayMode::Dark);
    }

    /// Sets the size of the window and the color scheme of the system.
    #[track_caller]
    pub(crate) fn set_display(&self, size: (u32, u32), is_dark: bool) {
        let scheme = if is_dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.command("Emulation.setEmulatedMedia", &json!({ "features": features }));
        let is_phone = size == PHONE;
        let metrics = json!({ "width": size.0, "height": size.1, "deviceScaleFactor": 1, "mobile": is_phone });
        self.command("Emulation.setDeviceMetricsOverride", &metrics);
        self.command("Emulation.setTouchEmulationEnabled", &json!({ "enabled": is_phone }));
    }

    /// Sends a command of the Chrome DevTools protocol. Firefox has none.
    #[track_caller]
    pub(crate) fn command(&self, name: &str, parameters: &Value) -> Value {
        unwrap(self.driver.command(name, parameters))
    }

    /// Disables or enables the network of the browser.
    #[track_caller]
    pub(crate) fn offline(&self, offline: bool) {
        let unlimited = json!({ "offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1 });
        self.command("Network.emulateNetworkConditions", &unlimited);
    }

    /// Takes a screenshot of the window, and returns its path.
    #[track_caller]
    pub(crate) fn screenshot(&self, name: &str) -> PathBuf {
        let picture = unwrap(self.driver.get("/screenshot"));
        let picture = BASE64_STANDARD.decode(picture.as_str().unwrap_or_default()).unwrap();
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots").join(format!("{name}.png"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, picture).unwrap();
        println!("screenshot: {}", path.display());
        path
    }

    /// Returns the console messages of the page and of the browser, such as failed requests. In Firefox: uncaught errors.
    pub(crate) fn console(&self) -> Vec<String> {
        self.read_logs();
        self.seen.borrow().console.clone()
    }

    /// Returns the texts of the dialogs, which were dismissed.
    pub(crate) fn dialogs(&self) -> Vec<String> {
        self.read_logs();
        self.seen.borrow().dialogs.clone()
    }

    /// Returns the URLs of all network requests, including WebSockets, except for those that a policy blocked.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.read_logs();
        self.seen.borrow().requests.iter().map(|(_, url)| url.clone()).collect()
    }

    /// Clears the recorded requests.
    pub(crate) fn clear_requests(&self) {
        self.read_logs();
        let mut seen = self.seen.borrow_mut();
        seen.requests.clear();
        seen.statuses.clear();
    }

    /// Returns the statuses of all responses of a server, including those that the browser hides from the page.
    pub(crate) fn statuses_from(&self, server: &Server) -> Vec<u64> {
        self.read_logs();
        let seen = self.seen.borrow();
        let authority = format!("//{}/", server.http);
        let is_its = |id: &String| seen.requests.iter().any(|(known, url)| known == id && url.contains(&authority));
        seen.statuses.iter().filter(|(id, _)| is_its(id)).map(|(_, status)| *status).collect()
    }

    /// Returns the URLs of two empty external pages: on another site, and on another port of the server's host.
    pub(crate) fn external_pages(&self) -> [String; 2] {
        [format!("http://evil.test{PAGE}"), format!("{}{PAGE}", self.external.origin())]
    }

    /// Returns the URLs of requests to other hosts. In Firefox: to hosts below `.test`, because it connects to its vendor.
    pub(crate) fn external_requests(&self) -> Vec<String> {
        let host = self.root.trim_start_matches("http");
        let foreign = |url: &String| !url.trim_start_matches("http").trim_start_matches("ws").starts_with(host);
        let mut urls = self.external.requests();
        if self.driver.browser() == Browser::Firefox {
            urls.retain(|url| url.contains(".test"));
        }
        urls.extend(self.requests().into_iter().filter(foreign));
        urls.sort();
        urls.dedup();
        urls
    }

    /// Checks that there are no console messages, no dialogs and no requests to other hosts.
    #[track_caller]
    pub(crate) fn assert_quiet(&self) {
        assert_eq!(self.console(), [""; 0], "console messages");
        assert_eq!(self.dialogs(), [""; 0], "dialogs");
        assert_eq!(self.external_requests(), [""; 0], "requests to other hosts");
    }

    /// Waits until a condition holds. `what` is shown if it never does.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, condition: impl Fn() -> bool) {
        let deadline = Instant::now() + TEST_TIMEOUT;
        while !condition() {
            if Instant::now() > deadline {
                self.fail(what);
            }
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Runs an operation on the first matching element as soon as that is possible. A page can replace elements at any time.
    #[track_caller]
    fn with_element(&self, css: &str, act: impl Fn(&Element) -> DriverResult) -> Value {
        let deadline = Instant::now() + TEST_TIMEOUT;
        loop {
            let found = self.driver.post("/element", &by(css));
            let done = found.and_then(|found| act(&Element::of(&found)));
            match done {
                Ok(value) => return value,
                Err(error) if !is_transient(&error) => panic!("{css}: {error:?}"),
                Err(error) if Instant::now() > deadline => self.fail(&format!("{css}: {}", error.message)),
                Err(_) => std::thread::sleep(Duration::from_millis(30)),
            }
        }
    }

    #[track_caller]
    fn fail(&self, what: &str) -> ! {
        let text = self.eval("return document.body?.innerText ?? ''", &json!([]));
        let picture = self.screenshot(&format!("failed-{}", std::thread::current().name().unwrap_or("test")));
        let (path, console) = (self.path(), self.console());
        let text = text.as_str().unwrap_or_default();
        panic!(
            "timed out waiting for {what}\nat {path}, screenshot: {}\nconsole: {console:#?}\n{text}",
            picture.display()
        );
    }

    fn read_logs(&self) {
        let mut seen = self.seen.borrow_mut();
        if self.driver.browser() == Browser::Firefox {
            seen.console = self.driver.printed_errors();
            return;
        }
        for entry in self.driver.log("browser") {
            let word = |name: &str| entry[name].as_str().unwrap_or_default();
            seen.console.push(format!("{} {}: {}", word("level"), word("source"), word("message")));
        }
        for entry in self.driver.log("performance") {
            let event: Value = serde_json::from_str(entry["message"].as_str().unwrap_or_default()).unwrap();
            let (name, event) = (&event["message"]["method"], &event["message"]["params"]);
            let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let id = word(&event["requestId"]);
            match name.as_str().unwrap_or_default() {
                "Page.javascriptDialogOpening" => seen.dialogs.push(word(&event["message"])),
                "Network.webSocketCreated" => seen.requests.push((id, word(&event["url"]))),
                "Network.responseReceivedExtraInfo" => {
                    seen.statuses.push((id, event["statusCode"].as_u64().unwrap_or(0)));
                }
                "Network.webSocketHandshakeResponseReceived" => {
                    seen.statuses.push((id, event["response"]["status"].as_u64().unwrap_or(0)));
                }
                "Network.requestWillBeSent" => seen.requests.push((id, word(&event["request"]["url"]))),
                "Network.loadingFailed" if FORBIDDEN.contains(&word(&event["blockedReason"]).as_str()) => {
                    seen.requests.retain(|known| known.0 != id);
                }
                _ => {}
            }
        }
        // The browser's own pages and local content: chrome:, data:, blob:.
        seen.requests.retain(|(_, url)| url.starts_with("http") || url.starts_with("ws"));
    }
}

#[track_caller]
fn unwrap(result: DriverResult) -> Value {
    result.unwrap_or_else(|error| panic!("{error:?}"))
}

/// A reference to an element of the page.
struct Element(String);

impl Element {
    /// The key of an element reference in WebDriver (section 12.1).
    const REFERENCE_KEY: &str = "element-6066-11e4-a52e-4f735466cecf";

    fn of(reference: &Value) -> Self {
        Self(reference[Self::REFERENCE_KEY].as_str().unwrap_or_default().to_owned())
    }

    fn reference(&self) -> Value {
        json!({ Self::REFERENCE_KEY: self.0 })
    }

    fn path(&self, command: &str) -> String {
        format!("/element/{}/{command}", self.0)
    }
}

fn by(css: &str) -> Value {
    json!({ "using": "css selector", "value": css })
}

/// Returns whether the command can succeed later.
fn is_transient(error: &DriverError) -> bool {
    let transient = [
        "element click intercepted",
        "element not interactable",
        "invalid element state",
        "no such element",
        "no such frame",
        "stale element reference",
    ];
    transient.contains(&error.code.as_str())
}
