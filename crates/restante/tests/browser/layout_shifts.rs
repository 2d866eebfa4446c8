//! Layout stability: the visible content does not move while a page loads over a slow network. Measures the layout shift, not time.

use serde_json::json;

use super::page::Page;
use super::sample_mail;
use crate::support::Server;

/// The pages, and the selectors that exist when they are complete.
const PAGES: [(&str, &[&str]); 10] = [
    ("/", &[".message-row", ".sidebar-mailboxes .sidebar-link"]),
    ("/send", &["send-here .snippet-code"]),
    ("/m/anna.keller", &[".row-clip:not(.none)"]),
    ("/m/anna.keller/latest", &[".row-clip:not(.none)", ".preview"]),
    ("/m/newsletter/latest", &[".remote-note", ".preview"]),
    ("/m/nobody", &["empty-list h2"]),
    ("/settings", &["settings-page h1"]),
    ("/status", &[".status-words li"]),
    ("/search?q=order", &[".message-row"]),
    ("/sessions", &[".session"]),
];

/// Pages that a user may open first, by a link.
const FIRST: [&str; 2] = ["/", "/m/newsletter/latest"];

/// Returns the sum of all layout shifts without user input, and the moved elements: <https://wicg.github.io/layout-instability/>.
const SHIFTS: &str = "
    return new Promise(tell => {
        const name = ({ node }) => node?.nodeType === Node.ELEMENT_NODE ? `${node.localName}.${node.className}` : node?.nodeName;
        const shifts = [];
        new PerformanceObserver(list => shifts.push(...list.getEntries().filter(shift => !shift.hadRecentInput)))
            .observe({ type: 'layout-shift', buffered: true });
        // Buffered entries are delivered asynchronously.
        setTimeout(() => tell({ sum: shifts.reduce((sum, shift) => sum + shift.value, 0), moved: shifts.flatMap(({ sources }) => sources.map(name)) }), 200);
    })";

/// The limit of a good score: <https://web.dev/articles/cls>.
const MAX_SHIFT: f64 = 0.1;

/// Returns the layout shift since the page was opened, and what has moved.
fn shifts(page: &Page) -> (f64, String) {
    let shifts = page.eval(SHIFTS, &json!([]));
    (shifts["sum"].as_f64().unwrap(), shifts["moved"].to_string())
}

#[test]
fn pages_load_without_layout_shifts() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    sample_mail::set_up(&server);
    let slow = json!({ "offline": false, "latency": 300, "downloadThroughput": 100_000, "uploadThroughput": 100_000 });
    page.command("Network.emulateNetworkConditions", &slow);
    for (path, parts) in PAGES {
        // Usually the scripts are cached; a first visit has to load them.
        if FIRST.contains(&path) {
            page.command("Network.clearBrowserCache", &json!({}));
        }
        page.open(path);
        for part in parts {
            page.find(part);
        }
        let duration = page.eval("return performance.getEntriesByType('navigation')[0].responseEnd", &json!([]));
        assert!(
            duration.as_f64().is_some_and(|millis| millis >= 300.0),
            "the network is not throttled: {path} loaded in {duration} ms"
        );
        let (sum, moved) = shifts(&page);
        assert!(sum < MAX_SHIFT, "layout shift {sum} of {path}: {moved}");
    }
    page.assert_quiet();
}

#[test]
fn layout_shifts_are_detected() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open("data:text/html,<p style='height: 300px; background: gray'>Here</p>");
    assert!(shifts(&page).0 < MAX_SHIFT);
    page.eval("document.body.style.paddingTop = '300px'", &json!([]));
    page.until("the shift", || shifts(&page).0 > MAX_SHIFT);
}
