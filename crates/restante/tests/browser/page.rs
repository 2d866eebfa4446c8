//! A page as a test speaks of it: open, click, type, read, and wait for what shall happen. Everything that looks for
//! something on the page waits for it, so that no test depends on how fast the machine is.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::driver::{Answer, Driver, Refusal};
use super::other_hosts::{Outside, PAGE};
use crate::support::{LONG, Server};

/// Keys without a character, as WebDriver spells them (section 17.4.2).
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

/// Why a request was never sent, as Chromium puts it.
const FORBIDDEN: [&str; 2] = ["csp", "origin"];

/// Holds back what a page wants to do after more than five seconds: that is where it waits for people.
const HOLD: &str = "
    const [set, clear] = [window.setTimeout, window.clearTimeout];
    window.held = new Map();
    window.setTimeout = (run, millis, ...more) => {
        if (!(millis > 5000)) return set(run, millis, ...more);
        const number = -1 - window.held.size;
        window.held.set(number, run);
        return number;
    };
    window.clearTimeout = number => window.held.delete(number) || clear(number)";

/// What a page is looked at with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Light,
    Dark,
    Phone,
}

/// The open tab of a browser.
pub(crate) struct Page {
    driver: Driver,
    outside: Outside,
    root: String,
    seen: RefCell<Seen>,
}

/// What the browser has logged so far; it tells everything only once.
#[derive(Default)]
struct Seen {
    console: Vec<String>,
    dialogs: Vec<String>,
    /// By the browser's number for them, and their URLs.
    requests: Vec<(String, String)>,
    /// The status of each response, also of one that the browser keeps from the page, by the number of the request.
    statuses: Vec<(String, u64)>,
}

impl Page {
    /// An empty page whose paths are those of a server; `None` where there is no browser.
    pub(crate) fn of(server: &Server) -> Option<Self> {
        Self::at(server.http)
    }

    /// An empty page whose paths are found here, where somebody stands before the server.
    pub(crate) fn at(address: SocketAddr) -> Option<Self> {
        Self::start(format!("http://{address}"), &[])
    }

    /// An empty page whose paths are found here by HTTPS, whoever has signed the certificate.
    pub(crate) fn secure_at(address: SocketAddr) -> Option<Self> {
        Self::start(format!("https://{address}"), &["--ignore-certificate-errors".to_owned()])
    }

    fn start(root: String, flags: &[String]) -> Option<Self> {
        let outside = Outside::start();
        let driver = Driver::start(&[flags, &[outside.flag()]].concat())?;
        Some(Self { driver, outside, root, seen: RefCell::default() })
    }

    /// Goes to a path of the server, or to a URL, and waits until it is loaded.
    #[track_caller]
    pub(crate) fn open(&self, path: &str) {
        let url = if path.starts_with('/') { format!("{}{path}", self.root) } else { path.to_owned() };
        must(self.driver.post("/url", &json!({ "url": url })));
    }

    #[track_caller]
    pub(crate) fn reload(&self) {
        must(self.driver.post("/refresh", &json!({})));
    }

    #[track_caller]
    pub(crate) fn back(&self) {
        must(self.driver.post("/back", &json!({})));
    }

    /// The address without the server: `/m/james?a=b#c`.
    #[track_caller]
    pub(crate) fn path(&self) -> String {
        let url = must(self.driver.ask("/url"));
        let url = url.as_str().unwrap_or_default();
        url.strip_prefix(&self.root).unwrap_or(url).to_owned()
    }

    #[track_caller]
    pub(crate) fn title(&self) -> String {
        must(self.driver.ask("/title")).as_str().unwrap_or_default().to_owned()
    }

    /// Waits until something is there.
    #[track_caller]
    pub(crate) fn find(&self, css: &str) {
        self.with(css, |_| Ok(Value::Null));
    }

    /// How many of this there are now.
    #[track_caller]
    pub(crate) fn count(&self, css: &str) -> usize {
        let found = must(self.driver.post("/elements", &by(css)));
        found.as_array().map_or(0, Vec::len)
    }

    /// The visible text of the first one, once it is there.
    #[track_caller]
    pub(crate) fn text(&self, css: &str) -> String {
        let text = self.with(css, |element| self.driver.ask(&element.path("text")));
        text.as_str().unwrap_or_default().to_owned()
    }

    /// The visible texts of all that are there now.
    #[track_caller]
    pub(crate) fn texts(&self, css: &str) -> Vec<String> {
        let texts =
            self.eval("return [...document.querySelectorAll(arguments[0])].map(e => e.innerText)", &json!([css]));
        serde_json::from_value(texts).unwrap()
    }

    /// An attribute of the first one, once it is there.
    #[track_caller]
    pub(crate) fn attribute(&self, css: &str, name: &str) -> Option<String> {
        let script = "return arguments[0].getAttribute(arguments[1])";
        let value = self.with(css, |element| {
            self.driver.post("/execute/sync", &json!({ "script": script, "args": [element.reference(), name] }))
        });
        value.as_str().map(str::to_owned)
    }

    /// Clicks in the middle of the first one, as soon as it can be seen and nothing lies over it.
    #[track_caller]
    pub(crate) fn click(&self, css: &str) {
        self.with(css, |element| self.driver.post(&element.path("click"), &json!({})));
    }

    /// Puts a text into a field, in place of what is there.
    #[track_caller]
    pub(crate) fn fill(&self, css: &str, text: &str) {
        self.with(css, |element| self.driver.post(&element.path("clear"), &json!({})));
        self.with(css, |element| self.driver.post(&element.path("value"), &json!({ "text": text })));
    }

    /// Presses and releases keys, one after another: characters, and those of [`key`].
    #[track_caller]
    pub(crate) fn keys(&self, keys: &str) {
        let strokes =
            keys.chars().flat_map(|key| ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key })));
        let keyboard = json!({ "type": "key", "id": "keyboard", "actions": strokes.collect::<Vec<_>>() });
        must(self.driver.post("/actions", &json!({ "actions": [keyboard] })));
    }

    /// Presses and releases keys while Shift is held down.
    #[track_caller]
    pub(crate) fn shifted(&self, keys: &str) {
        let stroke = |kind: &str, key: &str| json!({ "type": kind, "value": key });
        let mut strokes = vec![stroke("keyDown", key::SHIFT)];
        for key in keys.chars().map(String::from) {
            strokes.extend([stroke("keyDown", &key), stroke("keyUp", &key)]);
        }
        strokes.push(stroke("keyUp", key::SHIFT));
        let keyboard = json!({ "type": "key", "id": "keyboard", "actions": strokes });
        must(self.driver.post("/actions", &json!({ "actions": [keyboard] })));
    }

    /// Whether the first one has the focus now.
    #[track_caller]
    pub(crate) fn is_focused(&self, css: &str) -> bool {
        let script =
            "return document.activeElement !== null && document.activeElement === document.querySelector(arguments[0])";
        self.eval(script, &json!([css])) == true
    }

    /// Runs the body of a function in the page, and returns what it returns, or its promise is kept with.
    #[track_caller]
    pub(crate) fn eval(&self, script: &str, arguments: &Value) -> Value {
        must(self.driver.post("/execute/sync", &json!({ "script": script, "args": arguments })))
    }

    /// Lets the page be as patient as a test is slow, until it is loaded anew: nothing ends by itself that waits for people.
    #[track_caller]
    pub(crate) fn hold_time(&self) {
        self.eval(HOLD, &json!([]));
    }

    /// All that time that was held passes now.
    #[track_caller]
    pub(crate) fn let_time_pass(&self) {
        self.eval("const all = [...held.values()]; held.clear(); all.forEach(run => run())", &json!([]));
    }

    /// Looks into a frame, and comes back.
    #[track_caller]
    pub(crate) fn inside<T>(&self, css: &str, look: impl FnOnce(&Self) -> T) -> T {
        self.with(css, |element| self.driver.post("/frame", &json!({ "id": element.reference() })));
        let seen = look(self);
        must(self.driver.post("/frame/parent", &json!({})));
        seen
    }

    /// Looks into another tab of the same browser, which stays open, and comes back.
    #[track_caller]
    pub(crate) fn beside<T>(&self, look: impl FnOnce(&Self) -> T) -> T {
        let here = must(self.driver.ask("/window"));
        let other = must(self.driver.post("/window/new", &json!({ "type": "tab" })));
        must(self.driver.post("/window", &json!({ "handle": other["handle"] })));
        let seen = look(self);
        must(self.driver.post("/window", &json!({ "handle": here })));
        seen
    }

    /// Shows the page to an eye that wants it so.
    #[track_caller]
    pub(crate) fn look(&self, look: Look) {
        let scheme = if look == Look::Dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.command("Emulation.setEmulatedMedia", &json!({ "features": features }));
        let phone = look == Look::Phone;
        let (width, height) = if phone { (390, 844) } else { (1280, 800) };
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone });
        self.command("Emulation.setDeviceMetricsOverride", &metrics);
        self.command("Emulation.setTouchEmulationEnabled", &json!({ "enabled": phone }));
    }

    /// A command of Chromium's own protocol.
    #[track_caller]
    pub(crate) fn command(&self, name: &str, parameters: &Value) -> Value {
        must(self.driver.command(name, parameters))
    }

    /// Cuts the browser off from everything, or joins it again.
    #[track_caller]
    pub(crate) fn offline(&self, offline: bool) {
        let unlimited = json!({ "offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1 });
        self.command("Network.emulateNetworkConditions", &unlimited);
    }

    /// Takes a picture of what is in the window, and says where it is.
    #[track_caller]
    pub(crate) fn screenshot(&self, name: &str) -> PathBuf {
        let picture = must(self.driver.ask("/screenshot"));
        let picture = BASE64_STANDARD.decode(picture.as_str().unwrap_or_default()).unwrap();
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots").join(format!("{name}.png"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, picture).unwrap();
        println!("screenshot: {}", path.display());
        path
    }

    /// What was written to the console, by the page or, as for a request that failed, by the browser.
    pub(crate) fn console(&self) -> Vec<String> {
        self.read_logs();
        self.seen.borrow().console.clone()
    }

    /// The texts of dialogs that came up; they were dismissed.
    pub(crate) fn dialogs(&self) -> Vec<String> {
        self.read_logs();
        self.seen.borrow().dialogs.clone()
    }

    /// The URLs of all requests over the network, WebSockets among them, to whomever; but not of those that a policy forbade.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.read_logs();
        self.seen.borrow().requests.iter().map(|(_, url)| url.clone()).collect()
    }

    /// Forgets the requests so far.
    pub(crate) fn forget_requests(&self) {
        self.read_logs();
        let mut seen = self.seen.borrow_mut();
        seen.requests.clear();
        seen.statuses.clear();
    }

    /// The statuses of all responses of a server, also of those that the browser keeps from the page.
    pub(crate) fn statuses_of(&self, server: &Server) -> Vec<u64> {
        self.read_logs();
        let seen = self.seen.borrow();
        let authority = format!("//{}/", server.http);
        let is_its = |id: &String| seen.requests.iter().any(|(known, url)| known == id && url.contains(&authority));
        seen.statuses.iter().filter(|(id, _)| is_its(id)).map(|(_, status)| *status).collect()
    }

    /// The URLs of empty pages that are not the server's: one on another site, one on another port of the server's host.
    pub(crate) fn foreign_pages(&self) -> [String; 2] {
        [format!("http://evil.test{PAGE}"), format!("{}{PAGE}", self.outside.origin())]
    }

    /// What was asked from anybody but the server.
    pub(crate) fn asked_outside(&self) -> Vec<String> {
        let host = self.root.trim_start_matches("http");
        let foreign = |url: &String| !url.trim_start_matches("http").trim_start_matches("ws").starts_with(host);
        let mut asked = self.outside.asked();
        asked.extend(self.requests().into_iter().filter(foreign));
        asked.sort();
        asked.dedup();
        asked
    }

    /// Nobody has complained, nothing has come up, and nothing has left the machine.
    #[track_caller]
    pub(crate) fn assert_quiet(&self) {
        assert_eq!(self.console(), [""; 0], "nothing is on the console");
        assert_eq!(self.dialogs(), [""; 0], "no dialog comes up");
        assert_eq!(self.asked_outside(), [""; 0], "nothing is asked from other hosts");
    }

    /// Waits until something holds.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, condition: impl Fn() -> bool) {
        let deadline = Instant::now() + LONG;
        while !condition() {
            if Instant::now() > deadline {
                self.give_up(what);
            }
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Does something with the first element, as soon as that can be done. A page may replace it at any time.
    #[track_caller]
    fn with(&self, css: &str, act: impl Fn(&Element) -> Answer) -> Value {
        let deadline = Instant::now() + LONG;
        loop {
            let found = self.driver.post("/element", &by(css));
            let done = found.and_then(|found| act(&Element::of(&found)));
            match done {
                Ok(value) => return value,
                Err(refusal) if !passes(&refusal) => panic!("{css}: {refusal:?}"),
                Err(refusal) if Instant::now() > deadline => self.give_up(&format!("{css}: {}", refusal.message)),
                Err(_) => std::thread::sleep(Duration::from_millis(30)),
            }
        }
    }

    #[track_caller]
    fn give_up(&self, what: &str) -> ! {
        let text = self.eval("return document.body?.innerText ?? ''", &json!([]));
        let picture = self.screenshot(&format!("failed-{}", std::thread::current().name().unwrap_or("test")));
        let (path, console) = (self.path(), self.console());
        let text = text.as_str().unwrap_or_default();
        panic!("waited for {what}\nat {path}, pictured in {}\nconsole: {console:#?}\n{text}", picture.display());
    }

    fn read_logs(&self) {
        let mut seen = self.seen.borrow_mut();
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
        // The browser's own pages and what is at hand anyway: chrome:, data:, blob:.
        seen.requests.retain(|(_, url)| url.starts_with("http") || url.starts_with("ws"));
    }
}

#[track_caller]
fn must(answer: Answer) -> Value {
    answer.unwrap_or_else(|refusal| panic!("{refusal:?}"))
}

/// An element of the page, while it is there.
struct Element(String);

impl Element {
    /// How WebDriver marks a reference to an element (section 12.1).
    const MARK: &str = "element-6066-11e4-a52e-4f735466cecf";

    fn of(reference: &Value) -> Self {
        Self(reference[Self::MARK].as_str().unwrap_or_default().to_owned())
    }

    fn reference(&self) -> Value {
        json!({ Self::MARK: self.0 })
    }

    fn path(&self, command: &str) -> String {
        format!("/element/{}/{command}", self.0)
    }
}

fn by(css: &str) -> Value {
    json!({ "using": "css selector", "value": css })
}

/// Whether a refusal may turn into something else by waiting.
fn passes(refusal: &Refusal) -> bool {
    let passing = [
        "element click intercepted",
        "element not interactable",
        "invalid element state",
        "no such element",
        "no such frame",
        "stale element reference",
    ];
    passing.contains(&refusal.code.as_str())
}
