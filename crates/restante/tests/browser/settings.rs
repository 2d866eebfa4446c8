//! The settings page: every setting takes effect at once and in all tabs, and is kept in the browser.

use serde_json::json;

use super::mails;
use super::page::Page;
use crate::support::Server;

/// Opens the settings page.
fn open_settings(page: &Page) {
    page.open("/settings");
    page.find("settings-page h1");
}

/// Selects a radio button.
fn choose(page: &Page, setting: &str, value: &str) {
    page.click(&format!("[name={setting}][value='{value}']"));
}

/// Returns whether the first matching checkbox or radio button is checked.
fn is_checked(page: &Page, css: &str) -> bool {
    page.find(css);
    page.eval("return document.querySelector(arguments[0]).checked", &json!([css])) == true
}

/// Returns an attribute of the root element.
fn root_attribute(page: &Page, name: &str) -> Option<String> {
    page.attribute("html", name)
}

#[test]
fn clock_and_time_zone_change_all_times() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.command("Emulation.setTimezoneOverride", &json!({ "timezoneId": "America/New_York" }));
    page.command("Emulation.setLocaleOverride", &json!({ "locale": "en-US" }));
    server.deliver("james@x.org", &mails::text("Hello", "Hello"));
    let started = || server.json("/api/v2/sessions")["sessions"][0]["started-millis"].clone();
    page.until("the session", || started().is_number());
    let format = "return new Date(arguments[0]).toLocaleTimeString('en-US', { timeZone: arguments[1], hourCycle: arguments[2] })";
    let expected = |zone: &str, cycle: &str| {
        page.eval(format, &json!([started(), zone, cycle])).as_str().unwrap_or_default().to_owned()
    };
    page.open("/sessions");
    let shown = || page.attribute(".session-time time-ago", "title").unwrap_or_default();
    let new_york = expected("America/New_York", "h12");
    page.until("the local time", || shown().ends_with(&new_york));
    // A change in another tab has an effect in this one.
    page.in_new_tab(|tab| {
        open_settings(tab);
        choose(tab, "clock", "24");
        choose(tab, "timeZone", "utc");
        tab.until("the example", || tab.text("[data-example=time]").ends_with(" UTC"));
    });
    let utc = format!("{} UTC", expected("UTC", "h23"));
    page.until("the time in UTC", || shown().ends_with(&utc));
    page.reload();
    page.until("the time after a reload", || shown().ends_with(&utc));
    page.assert_quiet();
}

#[test]
fn theme_and_density_change_the_page() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    open_settings(&page);
    assert_eq!(root_attribute(&page, "data-density").as_deref(), Some("comfortable"));
    let padding = || {
        let script = "return parseFloat(getComputedStyle(document.querySelector('.setting')).paddingTop)";
        page.eval(script, &json!([])).as_f64().unwrap()
    };
    let comfortable = padding();
    choose(&page, "density", "compact");
    page.until("the density", || root_attribute(&page, "data-density").as_deref() == Some("compact"));
    assert!(padding() < comfortable, "the compact padding is {} of {comfortable}", padding());
    choose(&page, "theme", "dark");
    page.until("the theme", || root_attribute(&page, "data-theme").as_deref() == Some("dark"));
    page.expect_attribute("[data-tool=theme]", "aria-label", "Theme: dark");
    // The button of the bar changes the setting too. The order is system, light, dark.
    page.click("[data-tool=theme]");
    page.until("the setting", || is_checked(&page, "[name=theme][value=system]"));
    page.assert_quiet();
}

#[test]
fn settings_are_kept_and_can_be_reset() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    open_settings(&page);
    choose(&page, "clock", "24");
    choose(&page, "remoteContent", "always");
    page.click("[name=openNewest]");
    page.reload();
    for chosen in ["[name=clock][value='24']", "[name=remoteContent][value=always]", "[name=openNewest]"] {
        assert!(is_checked(&page, chosen), "{chosen}");
    }
    page.click(".page-head button");
    let defaults = ["[name=clock][value=system]", "[name=remoteContent][value=ask]", "[name=theme][value=system]"];
    for default in defaults {
        page.until(default, || is_checked(&page, default));
    }
    assert!(!is_checked(&page, "[name=openNewest]"));
    page.assert_quiet();
}

#[test]
fn foreign_values_are_ignored() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    open_settings(&page);
    for stored in [r#"{"clock":5,"density":"huge","openNewest":"yes"}"#, "[1]", "{", "null"] {
        page.eval("localStorage.setItem('restante.setting', arguments[0])", &json!([stored]));
        page.reload();
        assert!(is_checked(&page, "[name=clock][value=system]"), "{stored}");
        assert!(!is_checked(&page, "[name=openNewest]"), "{stored}");
        assert_eq!(root_attribute(&page, "data-density").as_deref(), Some("comfortable"), "{stored}");
    }
    page.assert_quiet();
}

#[test]
fn message_opens_in_the_default_tab() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    server.deliver("james@x.org", &mails::html("Hello", "<h1>Hello James</h1>"));
    page.open("/m/james/latest");
    let is_selected = |tab: &str| page.attribute(tab, "aria-selected").as_deref() == Some("true");
    page.until("the HTML", || is_selected("#tab-html"));
    open_settings(&page);
    choose(&page, "defaultTab", "source");
    page.open("/m/james/latest");
    page.until("the source", || is_selected("#tab-source"));
    page.assert_quiet();
}

#[test]
fn remote_content_can_always_be_loaded() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    server.deliver("james@x.org", &mails::html("Hello", "<img src=http://tracker.test/open.gif>"));
    page.open("/m/james/latest");
    page.until("the note", || page.text(".remote-note").contains("blocked"));
    assert_eq!(page.external_requests(), [""; 0]);
    open_settings(&page);
    choose(&page, "remoteContent", "always");
    page.open("/m/james/latest");
    page.until("the request", || page.external_requests().contains(&"http://tracker.test/open.gif".to_owned()));
}

#[test]
fn inbox_can_open_the_newest_message() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    for subject in ["Older", "Newest"] {
        server.deliver("james@x.org", &mails::text(subject, "Hello"));
    }
    page.open("/");
    page.until("the list", || page.count(".message-row") == 2);
    page.expect_count(".message-subject", 0);
    open_settings(&page);
    page.click("[name=openNewest]");
    page.open("/");
    page.until("the newest message", || page.text(".message-subject") == "Newest");
    page.assert_quiet();
}

/// The page itself simulates the desktop, because a headless browser has none.
#[test]
fn notifications_are_a_setting() {
    const DESKTOP: &str = "window.answer = 'denied';
        window.Notification = class {
            static permission = 'default';
            static async requestPermission() { return (Notification.permission = answer); }
        };";
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    open_settings(&page);
    page.eval(DESKTOP, &json!([]));
    page.click("[name=notices]");
    page.until("the refusal", || page.texts(".toast.bad").len() == 1 && !is_checked(&page, "[name=notices]"));
    page.eval("window.answer = 'granted'", &json!([]));
    page.click("[name=notices]");
    page.until("the stored value", || page.eval("return localStorage['restante.notices']", &json!([])) == "true");
    assert!(is_checked(&page, "[name=notices]"));
    page.click("[name=notices]");
    page.until("the stored value", || page.eval("return localStorage['restante.notices']", &json!([])) == "false");
    page.assert_quiet();
}

#[test]
fn simulated_failures_are_set() {
    let server = Server::start(&["--chaos-enabled"]);
    let Some(page) = Page::of(&server) else { return };
    open_settings(&page);
    page.fill("[name=recipient-code]", "452");
    page.fill("[name=recipient-probability]", "100");
    page.expect_count("chaos-settings .note", 0);
    page.click("chaos-settings [type=submit]");
    page.until("the warning", || page.text("chaos-settings .note").starts_with("Failures are simulated."));
    page.expect_part("chaos-settings .note", "100 % of recipients are refused with 452.");
    let mut connection = server.connect_smtp();
    connection.expect("220");
    connection.command("EHLO client.test", "250");
    connection.command("MAIL FROM:<ann@x.org>", "250");
    connection.command("RCPT TO:<james@x.org>", "452");
    page.reload();
    page.until("the warning", || page.count("chaos-settings .note") == 1);
    page.click("chaos-settings .row .button:not(.main)");
    page.until("the end of the failures", || page.count("chaos-settings .note") == 0);
    connection.command("RCPT TO:<james@x.org>", "250");
    page.assert_quiet();
}

#[test]
fn simulated_failures_must_be_enabled() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    open_settings(&page);
    page.until("the note", || page.text("chaos-settings").contains("--chaos-enabled"));
    page.assert_quiet();
}
