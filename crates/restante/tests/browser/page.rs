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
use super::other_hosts::PAGE;
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

/// Pauses the timers whose delays in milliseconds match the function `isPaused`.
const PAUSE: &str = "
    const [set, clear] = [window.setTimeout, window.clearTimeout];
    window.held ??= new Map();
    window.setTimeout = (run, millis, ...more) => {
        if (!isPaused(millis)) return set(run, millis, ...more);
        const number = held.next = (held.next ?? 0) - 1;
        held.set(number, run);
        return number;
    };
    window.clearTimeout = number => held.delete(number) || clear(number);";

/// The timers of the web interface that wait for the user: for the second key of a shortcut (`keys.js`), for the time in which a
/// notice is read (`feedback.js`) or a deletion is undone (`deletions.js`). They are paused in Chromium, because a test can be slower than
/// any user. The state that they would end stays until the test ends it.
const WAITS_FOR_USER: &str = "millis => [1500, 4000, 6000, 8000].includes(millis)";

/// Returns a script that pauses all timers of more than this time, until the page is loaded again.
pub(crate) fn pause_timers_above(millis: u32) -> String {
    format!("{{ const isPaused = millis => millis > {millis}; {PAUSE} }}")
}

/// Defines `frames()`: waits for two animation frames, which show everything that was changed before. A page in the background has none.
const FRAMES: &str = "
    const frame = () => new Promise(done => { requestAnimationFrame(done); setTimeout(done, 250); });
    const frames = () => frame().then(frame);";

/// Runs the function `read` until it returns the same before and after two animation frames, and no animation is running.
const MEASURE: &str = "
    const isResting = () => document.getAnimations().every(each => each.effect.getComputedTiming().iterations === Infinity || each.playState === 'finished');
    return (async () => {
        await document.fonts.ready;
        const end = performance.now() + 60_000;
        for (let before; ;) {
            await frames();
            const now = JSON.stringify(await read()) ?? 'null';
            if (now === before && isResting()) return JSON.parse(now);
            if (performance.now() > end) throw new Error(`the layout changes all the time: ${before}, ${now}`);
            before = now;
        }
    })()";

/// Defines `loaded(start)` for scripts: resolves when the element that `start` adds to the page has loaded, or failed to load. On a loaded
/// machine, Chromium sometimes fires no event for one of many frames; such an element is removed and started again.
pub(crate) const LOADED: &str = "
    const loaded = start => new Promise(done => {
        const attempt = () => {
            const element = start();
            const again = setTimeout(() => { element.remove(); attempt(); }, 20_000);
            element.onload = element.onerror = () => { clearTimeout(again); done(element); };
        };
        attempt();
    });";

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

/// The settings of most tests.
const SETTINGS: Settings =
    Settings { browser: Browser::Chromium, waits_for_load: true, accepts_any_certificate: false, is_complete: false };

/// The open tab of a browser.
pub(crate) struct Page {
    driver: Driver,
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
        Self::start(format!("http://{}", server.http), &Settings { browser: Browser::Firefox, ..SETTINGS })
    }

    /// Opens an empty page whose paths are those of a server, in a complete Chromium that is started for this test. It connects to a host when
    /// a document asks for it, as with `preconnect`, and shows PDF files.
    pub(crate) fn in_complete_browser(server: &Server) -> Option<Self> {
        let settings = Settings { is_complete: true, ..SETTINGS };
        Self::start(format!("http://{}", server.http), &settings)
    }

    /// Opens an empty page whose paths are at this address, for a proxy in front of the server.
    pub(crate) fn at(address: SocketAddr) -> Option<Self> {
        Self::start(format!("http://{address}"), &SETTINGS)
    }

    /// Opens an empty page whose paths are at this address. Opening a path does not wait until it is loaded.
    pub(crate) fn without_waiting_at(address: SocketAddr) -> Option<Self> {
        Self::start(format!("http://{address}"), &Settings { waits_for_load: false, ..SETTINGS })
    }

    /// Opens an empty page whose paths are at this address with HTTPS and any certificate.
    pub(crate) fn secure_at(address: SocketAddr) -> Option<Self> {
        Self::start(format!("https://{address}"), &Settings { accepts_any_certificate: true, ..SETTINGS })
    }

    fn start(root: String, settings: &Settings) -> Option<Self> {
        Some(Self::new(Driver::start(settings)?, root))
    }

    fn new(driver: Driver, root: String) -> Self {
        let page = Self { driver, root, seen: RefCell::default() };
        if page.driver.browser() == Browser::Chromium {
            page.run_first(&format!("{{ const isPaused = {WAITS_FOR_USER}; {PAUSE} }}"));
        }
        page
    }

    /// Closes this page as at the end of a test, and opens a page as at the start of the next test, in the same Chromium.
    pub(crate) fn of_next_test(self) -> Self {
        Self::new(self.driver.use_again(&SETTINGS), self.root)
    }

    /// Returns the id of the process group of the browser.
    pub(crate) fn process_group(&self) -> u32 {
        self.driver.process_group()
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

    /// Waits until the visible text of the first matching element is this one.
    #[track_caller]
    pub(crate) fn expect_text(&self, css: &str, expected: &str) {
        self.expect(&format!("the text of {css}"), expected, || self.text(css));
    }

    /// Waits until the visible text of the first matching element contains this one.
    #[track_caller]
    pub(crate) fn expect_part(&self, css: &str, part: &str) {
        if !Self::is_soon(|| self.text(css).contains(part)) {
            self.fail(&format!("{part:?} in {css}: {:?}", self.text(css)));
        }
    }

    /// Waits until this number of elements match.
    #[track_caller]
    pub(crate) fn expect_count(&self, css: &str, expected: usize) {
        self.expect(&format!("the number of {css}"), &expected, || self.count(css));
    }

    /// Waits until the visible texts of all matching elements are these.
    #[track_caller]
    pub(crate) fn expect_texts(&self, css: &str, expected: &[&str]) {
        let expected: Vec<String> = expected.iter().map(|&text| text.to_owned()).collect();
        self.expect(&format!("the texts of {css}"), &*expected, || self.texts(css));
    }

    /// Waits until an attribute of the first matching element has this value.
    #[track_caller]
    pub(crate) fn expect_attribute(&self, css: &str, name: &str, expected: &str) {
        let value = || self.attribute(css, name).unwrap_or_default();
        self.expect(&format!("the attribute {name} of {css}"), expected, value);
    }

    /// Waits until the address without the server is this one.
    #[track_caller]
    pub(crate) fn expect_path(&self, expected: &str) {
        self.expect("the path", expected, || self.path());
    }

    /// Waits until the title of the window is this one.
    #[track_caller]
    pub(crate) fn expect_title(&self, expected: &str) {
        self.expect("the title", expected, || self.title());
    }

    /// Waits until the first matching element has the focus.
    #[track_caller]
    pub(crate) fn expect_focus(&self, css: &str) {
        self.until(&format!("the focus of {css}"), || self.is_focused(css));
    }

    /// Waits until a value is the expected one. The failure shows both.
    #[track_caller]
    fn expect<T, E>(&self, what: &str, expected: &E, value: impl Fn() -> T)
    where
        T: std::borrow::Borrow<E> + std::fmt::Debug,
        E: PartialEq + std::fmt::Debug + ?Sized,
    {
        if !Self::is_soon(|| value().borrow() == expected) {
            self.fail(&format!("{what}: it is {:?} instead of {expected:?}", value()));
        }
    }

    /// Clicks the middle of the first matching element, as soon as it is visible, enabled and not covered.
    #[track_caller]
    pub(crate) fn click(&self, css: &str) {
        // The driver clicks a disabled button, which ignores the click. A hidden one may be shown disabled. An element that is being moved
        // would be missed.
        let script = format!(
            "{FRAMES}
            const [element] = arguments;
            const place = () => {{
                const {{ x, y, width, height }} = element.getBoundingClientRect();
                return [x, y, width, height, element.isConnected].join();
            }};
            const before = place();
            const isReady = () => element.checkVisibility() && !element.matches(':disabled') && place() === before;
            // Without scripts, nothing moves, and a document of a message has neither frames nor timers.
            const hasScripts = origin !== 'null' || !location.protocol.startsWith('http');
            return hasScripts ? frames().then(isReady) : isReady()"
        );
        self.with_element(css, |element| {
            let arguments = json!([element.reference()]);
            let is_ready = self.driver.post("/execute/sync", &json!({ "script": script, "args": arguments }))?;
            if is_ready == false {
                let message = "the element is hidden, disabled or moving".to_owned();
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

    /// Records all texts that the first matching element shows from now on, for a text that is replaced after a time.
    #[track_caller]
    pub(crate) fn record_texts(&self, css: &str) {
        let script = "
            const element = arguments[0];
            window.recordedTexts = [];
            new MutationObserver(() => recordedTexts.push(element.innerText.trim()))
                .observe(element, { childList: true, characterData: true, subtree: true })";
        self.with_element(css, |element| {
            self.driver.post("/execute/sync", &json!({ "script": script, "args": [element.reference()] }))
        });
    }

    /// Returns the recorded texts.
    #[track_caller]
    pub(crate) fn recorded_texts(&self) -> Vec<String> {
        serde_json::from_value(self.eval("return window.recordedTexts", &json!([]))).unwrap()
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

    /// Runs the body of a function that reads positions or sizes. Returns its result as soon as the layout is stable: the result is the
    /// same before and after two animation frames. The function must not change the page after its first run.
    #[track_caller]
    pub(crate) fn measure(&self, script: &str, arguments: &Value) -> Value {
        self.eval(
            &format!("const read = () => (function () {{ {script} }}).apply(window, arguments); {FRAMES} {MEASURE}"),
            arguments,
        )
    }

    /// Like [`Self::measure`], for one number.
    #[track_caller]
    pub(crate) fn measure_number(&self, script: &str, arguments: &Value) -> f64 {
        let measured = self.measure(script, arguments);
        measured.as_f64().unwrap_or_else(|| panic!("not a number: {measured}"))
    }

    /// Waits until nothing on the page moves.
    #[track_caller]
    pub(crate) fn until_at_rest(&self) {
        let boxes = "
            let sum = 0;
            for (const element of document.body.getElementsByTagName('*')) {
                const { x, y, width, height } = element.getBoundingClientRect();
                sum += x + 2 * y + 3 * width + 5 * height;
            }
            return sum";
        self.measure(boxes, &json!([]));
    }

    /// Runs a script in every document before its own scripts. Firefox cannot do this.
    #[track_caller]
    pub(crate) fn run_first(&self, script: &str) {
        self.command("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": script }));
    }

    /// Pauses the timers that wait for the user in the document of a Firefox. In Chromium they are paused in all documents.
    #[track_caller]
    pub(crate) fn pause_timers(&self) {
        self.eval(&format!("const isPaused = {WAITS_FOR_USER}; {PAUSE}"), &json!([]));
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
        self.in_tab(&unwrap(self.driver.open_tab()), display)
    }

    /// Runs a function in the second tab, which this page has opened. The tab stays open.
    #[track_caller]
    pub(crate) fn in_opened_tab<T>(&self, display: impl FnOnce(&Self) -> T) -> T {
        let here = unwrap(self.driver.get("/window"));
        let opened =
            || self.driver.tabs().expect("the browser lists its tabs").into_iter().find(|handle| *handle != here);
        self.until("the opened tab", || opened().is_some());
        self.in_tab(&opened().unwrap(), display)
    }

    /// Returns the number of tabs.
    #[track_caller]
    pub(crate) fn tabs(&self) -> usize {
        self.driver.tabs().expect("the browser lists its tabs").len()
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

    /// Grants a permission to all pages, as the user can. Firefox cannot do this.
    #[track_caller]
    pub(crate) fn grant_permission(&self, name: &str) {
        unwrap(self.driver.grant_permission(name));
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
        [format!("http://evil.test{PAGE}"), format!("{}{PAGE}", self.driver.external().origin())]
    }

    /// Returns the URLs of requests to other hosts. In Firefox: to hosts below `.test`, because it connects to its vendor.
    pub(crate) fn external_requests(&self) -> Vec<String> {
        let host = self.root.trim_start_matches("http");
        let foreign = |url: &String| !url.trim_start_matches("http").trim_start_matches("ws").starts_with(host);
        let mut urls = self.driver.external().requests();
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
        if !Self::is_soon(condition) {
            self.fail(what);
        }
    }

    /// Waits until a condition holds. Returns false if it never does.
    fn is_soon(condition: impl Fn() -> bool) -> bool {
        let mut pauses = Pauses::new();
        while !condition() {
            if pauses.are_over() {
                return false;
            }
            pauses.wait();
        }
        true
    }

    /// Runs an operation on the first matching element as soon as that is possible. A page can replace elements at any time.
    #[track_caller]
    fn with_element(&self, css: &str, act: impl Fn(&Element) -> DriverResult) -> Value {
        let mut pauses = Pauses::new();
        loop {
            let found = self.driver.post("/element", &by(css));
            let done = found.and_then(|found| act(&Element::of(&found)));
            match done {
                Ok(value) => return value,
                Err(error) if !is_transient(&error) => panic!("{css}: {error:?}"),
                Err(error) if pauses.are_over() => self.fail(&format!("{css}: {}", error.message)),
                Err(_) => pauses.wait(),
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

/// The pauses between the attempts of a wait: short at first, and longer if the browser needs the time for something else.
struct Pauses {
    end: Instant,
    next: Duration,
}

impl Pauses {
    const FIRST: Duration = Duration::from_millis(10);
    const LONGEST: Duration = Duration::from_millis(160);

    fn new() -> Self {
        Self { end: Instant::now() + TEST_TIMEOUT, next: Self::FIRST }
    }

    fn are_over(&self) -> bool {
        Instant::now() > self.end
    }

    fn wait(&mut self) {
        std::thread::sleep(self.next);
        self.next = Self::LONGEST.min(self.next * 3 / 2);
    }
}

/// Returns whether two measured numbers are the same within a pixel: browsers round positions differently at each scroll position.
pub(crate) fn is_near(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1.0
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
