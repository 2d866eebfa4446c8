//! Pictures of every page as it is seen in the light, in the dark and on a phone, for people to look at. Checked is what can
//! be counted: nothing is wider than the window, and the colours are those that were asked for.

use serde_json::json;

use super::mails;
use super::page::{Look, Page};
use super::support::Server;

/// What to look at, and what it is called.
const PAGES: [(&str, &str, &str); 4] = [
    ("/", "home-page h1", "home"),
    ("/m/james", "mailbox-page h1", "mailbox"),
    ("/monitor", "monitor-page h1", "monitor"),
    ("/status", "status-page h1", "status"),
];

/// By how many pixels the page is wider than the window.
const OVERHANG: &str = "return document.documentElement.scrollWidth - document.documentElement.clientWidth";

/// How bright the background is, from 0 to 1.
const BRIGHTNESS: &str = "
    const [red, green, blue] = getComputedStyle(document.documentElement).backgroundColor.match(/[0-9.]+/g).map(Number);
    return (red + green + blue) / 3 / 255";

#[test]
fn pages_are_pictured() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    for number in 1..=5 {
        server.deliver("james@x.org", &mails::text(&format!("Order {number} is on its way"), "Hello"));
    }
    for (look, suffix) in [(Look::Light, "light"), (Look::Dark, "dark"), (Look::Phone, "phone")] {
        page.look(look);
        for (path, landmark, name) in PAGES {
            page.open(path);
            page.find(landmark);
            page.screenshot(&format!("{name}-{suffix}"));
            assert_eq!(page.eval(OVERHANG, &json!([])), 0, "{name} fits into the window in {suffix}");
            let brightness = page.eval(BRIGHTNESS, &json!([])).as_f64().unwrap();
            assert_eq!(brightness < 0.5, look == Look::Dark, "{name} has a brightness of {brightness} in {suffix}");
        }
    }
    page.assert_quiet();
}
