//! Tests of the test harness itself, with pages that are written here.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Instant;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;

use super::page::{DisplayMode, PHONE, Page, key};
use crate::support::{Server, TEST_TIMEOUT};

/// Returns a data URL with this HTML.
fn document(html: &str) -> String {
    format!("data:text/html;base64,{}", BASE64_STANDARD.encode(format!("<meta charset=utf-8>{html}")))
}

#[test]
fn page_can_be_read_and_used() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open(&document(
        "<title>Try</title><input value=old><button onclick=\"setTimeout(() => {
            const item = document.createElement('li');
            item.textContent = document.querySelector('input').value;
            document.querySelector('ul').append(item);
        }, 100)\">Add</button><ul></ul><p>
        <script>document.onkeydown = event => document.querySelector('p').dataset.keys += ' ' + event.key</script>",
    ));
    assert_eq!(page.title(), "Try");
    page.fill("input", "Grüße");
    page.click("button");
    assert_eq!(page.text("li"), "Grüße");
    page.click("button");
    page.until("a second item", || page.count("li") == 2);
    assert_eq!(page.texts("li"), ["Grüße", "Grüße"]);
    page.keys("j?");
    page.keys(&[key::UP, key::DOWN, key::DELETE, key::ENTER, key::ESCAPE, key::TAB].concat());
    let pressed = "j ? ArrowUp ArrowDown Delete Enter Escape Tab";
    page.until("the keys", || page.attribute("p", "data-keys").is_some_and(|keys| keys.ends_with(pressed)));
    page.reload();
    assert_eq!(page.count("li"), 0);
    assert_eq!(page.eval("return Promise.resolve(arguments[0] + 1)", &json!([2])), 3);
    page.assert_quiet();
}

#[test]
fn click_waits_until_a_button_is_enabled() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open(&document(
        "<button disabled onclick=\"this.dataset.clicks = 1 + Number(this.dataset.clicks ?? 0)\">Add</button>
        <script>setTimeout(() => document.querySelector('button').disabled = false, 3000)</script>",
    ));
    page.click("button");
    assert_eq!(page.attribute("button", "data-clicks").as_deref(), Some("1"));
    page.assert_quiet();
}

#[test]
fn display_modes_and_screenshots() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open(&document("<meta name=viewport content='width=device-width'><p>Hello"));
    let seen = "return [innerWidth, matchMedia('(prefers-color-scheme: dark)').matches, 'ontouchstart' in window]";
    for (display, expected) in [
        (DisplayMode::Light, json!([1280, false, false])),
        (DisplayMode::Dark, json!([1280, true, false])),
        (DisplayMode::Phone, json!([390, false, true])),
    ] {
        page.set_display_mode(display);
        page.reload();
        assert_eq!(page.eval(seen, &json!([])), expected, "{display:?}");
    }
    let picture = std::fs::read(page.screenshot("harness")).unwrap();
    assert!(picture.starts_with(b"\x89PNG"));
}

#[test]
fn network_is_recorded_and_can_be_disabled() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/livez");
    page.open("/readyz");
    page.back();
    assert_eq!(page.path(), "/livez");
    page.until("the request", || page.requests().contains(&server.url("/livez")));
    let status = "return fetch('/api/v1/mailbox/ann').then(answer => answer.status, () => 'failed')";
    assert_eq!(page.eval(status, &json!([])), 200);
    page.offline(true);
    assert_eq!(page.eval(status, &json!([])), "failed");
    page.offline(false);
    assert_eq!(page.eval(status, &json!([])), 200);
    assert_eq!(page.external_requests(), [""; 0]);
}

#[test]
fn running_scripts_are_detected() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    // Directly, in a frame, and in a frame with its own origin, which may not open dialogs.
    let scripts = [
        "<script>SCRIPT</script>",
        "<img src=x: onerror='SCRIPT'>",
        "<iframe srcdoc='<script>SCRIPT</script>'></iframe>",
        "<iframe sandbox='allow-scripts' srcdoc='<script>SCRIPT</script>'></iframe>",
    ];
    for (number, case) in scripts.iter().enumerate() {
        let mark = format!("executed {number}");
        page.open(&document(&case.replace("SCRIPT", &format!("console.log(`{mark}`); alert(`{mark}`)"))));
        page.until(case, || page.console().iter().any(|line| line.contains(&mark)));
        let may_ask = !case.contains("sandbox");
        page.until(case, || page.dialogs().contains(&mark) || !may_ask);
    }
}

#[test]
fn external_requests_are_detected() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    let cases = [
        ("<img src=http://a.test/>", "http://a.test/"),
        ("<img src=https://b.test/>", "b.test"),
        ("<img src=http://192.0.2.1/>", "http://192.0.2.1/"),
        ("<iframe sandbox srcdoc='<img src=http://d.test/>'></iframe>", "http://d.test/"),
        ("<iframe src=http://e.test/></iframe>", "http://e.test/"),
        ("<meta http-equiv=refresh content='0; url=http://f.test/'>", "http://f.test/"),
        ("<form action=http://g.test/></form><script>document.forms[0].submit()</script>", "http://g.test/"),
        ("<script>new WebSocket('ws://h.test/')</script>", "ws://h.test/"),
        ("<img src=http://elsewhere.example/>", "http://elsewhere.example/"),
    ];
    for (html, expected) in cases {
        page.open(&document(html));
        page.until(html, || page.external_requests().iter().any(|url| url.contains(expected)));
    }
}

#[test]
fn connections_without_a_request_are_detected() {
    let server = Server::start(&[]);
    let Some(page) = Page::in_complete_browser(&server) else { return };
    page.open(&document("<p>Nothing"));
    assert_eq!(page.external_requests(), [""; 0]);
    page.open(&document("<link rel=preconnect href=http://c.test>"));
    page.until("the connection", || page.external_requests() == ["a connection"]);
    assert_eq!(page.tabs(), 1);
}

#[test]
fn frames_can_be_entered() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open(&document("<p>out</p><iframe sandbox srcdoc='<p>in</p>'></iframe>"));
    page.find("iframe");
    assert_eq!(page.in_frame("iframe", |frame| frame.text("p")), "in");
    assert_eq!(page.text("p"), "out");
    page.assert_quiet();
}

/// Returns what a test could see of an earlier test in the same browser.
const STATE: &str = "
    const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();
    return Promise.all([
        caches.keys(),
        navigator.permissions.query({ name: 'geolocation' }).then(({ state }) => state),
        fetch('/livez').then(() => 'online', () => 'offline'),
    ]).then(([cached, permission, network]) => ({
        cookies: document.cookie,
        local: localStorage.length,
        session: sessionStorage.length,
        cached,
        permission,
        network,
        size: [innerWidth, innerHeight],
        isDark: matchMedia('(prefers-color-scheme: dark)').matches,
        isTouched: 'ontouchstart' in window,
        hasScript: 'leftBehind' in window,
        timeZone,
    }))";

#[test]
fn nothing_of_a_test_is_visible_to_the_next_test() {
    let server = Server::start(&[]);
    let Some(mut page) = Page::of(&server) else { return };
    page.open("/livez");
    let before = page.eval(STATE, &json!([]));
    assert_eq!((&before["permission"], &before["network"]), (&json!("prompt"), &json!("online")), "{before}");
    // Requests that are sent all the time can arrive at any time, so the end of a test is repeated.
    for _ in 0..5 {
        page.run_first("window.leftBehind = true");
        page.set_display(PHONE, true);
        page.open("/livez");
        let leave_behind = "
            document.cookie = 'left=behind; max-age=3600';
            localStorage.left = sessionStorage.left = 'behind';
            console.log('left behind');
            window.open('/readyz');
            setInterval(() => { new Image().src = `http://left-behind.test/${Math.random()}` }, 1);
            return caches.open('left behind').then(() => null)";
        page.eval("alert('left behind')", &json!([]));
        page.eval(leave_behind, &json!([]));
        page.grant_permission("geolocation");
        page.until("the requests", || page.external_requests().len() > 20);
        page.until("the message", || page.console().iter().any(|line| line.contains("left behind")));
        page.until("the dialog", || page.dialogs() == ["left behind"]);
        page.in_opened_tab(|tab| tab.until("the page", || tab.path() == "/readyz"));
        page.command("Emulation.setTimezoneOverride", &json!({ "timezoneId": "Asia/Tokyo" }));
        page.offline(true);
        let left = page.eval(STATE, &json!([]));
        for (name, value) in before.as_object().unwrap() {
            assert_ne!(left[name], *value, "{name} is the same in both");
        }
        let process_group = page.process_group();
        page = page.of_next_test();
        assert_eq!(page.process_group(), process_group, "another browser is used");
        page.assert_quiet();
        assert_eq!(page.requests(), [""; 0]);
        assert_eq!(page.tabs(), 1);
        page.open("/livez");
        assert_eq!(page.eval(STATE, &json!([])), before);
        page.assert_quiet();
    }
}

/// Returns whether a process of this group is running. Processes that have exited remain in the list until their parent notices.
fn is_running(process_group: u32) -> bool {
    let processes = Command::new("ps").args(["-A", "-o", "pgid=", "-o", "stat="]).output().expect("ps is installed");
    String::from_utf8(processes.stdout).unwrap().lines().any(|line| {
        let mut words = line.split_whitespace();
        words.next() == Some(&process_group.to_string()) && words.next().is_some_and(|state| !state.starts_with('Z'))
    })
}

#[track_caller]
fn until_ended(process_group: u32) {
    let start = Instant::now();
    while is_running(process_group) {
        assert!(start.elapsed() < TEST_TIMEOUT, "process group {process_group} is still running");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

/// Opens a page without a server.
fn empty_page() -> Option<Page> {
    Page::at(SocketAddr::from(([127, 0, 0, 1], 9)))
}

#[test]
fn browser_of_a_failed_test_is_stopped() {
    let Some(page) = empty_page() else { return };
    let process_group = page.process_group();
    assert!(is_running(process_group));
    let failed = std::thread::spawn(move || {
        let _page = page;
        // A panic that is not printed, because nothing has failed here.
        std::panic::resume_unwind(Box::new("failed"));
    });
    assert!(failed.join().is_err());
    until_ended(process_group);
}

/// What the ignored test prints before the id of the process group.
const GROUP: &str = "process group ";

#[test]
#[ignore = "another test runs it in a separate process"]
fn browser_until_the_end_of_the_input() {
    let Some(page) = empty_page() else { return };
    println!("{GROUP}{}", page.process_group());
    drop(page);
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn no_browser_outlives_the_test_program() {
    for is_killed in [false, true] {
        let mut program = Command::new(std::env::current_exe().unwrap());
        program.args(["--exact", "harness::browser_until_the_end_of_the_input", "--ignored", "--nocapture"]);
        let mut program = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(program.stdout.take().unwrap()).lines().map_while(Result::ok);
        let process_group = lines.find_map(|line| line.split_once(GROUP)?.1.parse().ok());
        if let Some(process_group) = process_group {
            assert!(is_running(process_group));
            if is_killed {
                program.kill().unwrap();
            }
            drop(program.stdin.take());
            until_ended(process_group);
        }
        // Without a browser, the test is skipped.
        let status = program.wait().unwrap();
        assert!(status.success() || is_killed && process_group.is_some(), "{status}");
    }
}

#[test]
fn positions_are_measured_when_nothing_moves() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open(&document(
        "<style>button { position: relative } .away { left: 300px; transition: left 1s }</style><button>Go</button><script>
        const button = document.querySelector('button');
        button.onclick = () => button.dataset.clicks = 1 + Number(button.dataset.clicks ?? 0);
        let steps = 20;
        const step = () => {
            button.style.top = `${10 * steps}px`;
            if (--steps > 0) requestAnimationFrame(step);
            else button.className = 'away';
        };
        step();
        </script>",
    ));
    let place = "const { left, top } = document.querySelector('button').getBoundingClientRect(); return [left, top]";
    let end = page.measure(place, &json!([]));
    page.until_at_rest();
    assert_eq!(page.eval(place, &json!([])), end);
    assert!(end[0].as_f64().unwrap() > 300.0, "{end}");
    // A moving button is clicked once it stands still.
    page.eval("button.style.transition = 'left 1s'; button.style.left = '0'", &json!([]));
    page.click("button");
    page.expect_attribute("button", "data-clicks", "1");
    assert_eq!(page.measure(place, &json!([]))[0], page.eval(place, &json!([]))[0]);
    page.assert_quiet();
}

#[test]
fn texts_that_disappear_are_recorded_and_timers_for_the_user_wait() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open(&document(
        "<button>Copy</button><p></p><script>
        const button = document.querySelector('button');
        const notice = document.querySelector('p');
        button.onclick = () => {
            button.textContent = 'Copied';
            notice.textContent = 'Copied';
            setTimeout(() => button.textContent = 'Copy', 1);
            setTimeout(() => notice.textContent = 'Read', 4000);
            clearTimeout(setTimeout(() => notice.textContent = 'Cleared', 6000));
        }</script>",
    ));
    page.record_texts("button");
    page.click("button");
    page.expect_text("button", "Copy");
    page.until("the text", || page.recorded_texts().contains(&"Copied".to_owned()));
    assert_eq!(page.eval("return held.size", &json!([])), 1);
    assert_eq!(page.text("p"), "Copied");
    page.run_paused_timers();
    assert_eq!(page.text("p"), "Read");
    page.assert_quiet();
}
