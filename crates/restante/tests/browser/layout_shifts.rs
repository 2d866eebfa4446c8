//! What is in sight stays where it is while the rest of a page comes, over a network that lets one watch. What is measured is
//! how much of a page moves and how far, not how long anything takes.

use serde_json::json;

use super::page::Page;
use super::sample_mail;
use crate::support::Server;

/// The pages, and all that is there when they are whole.
const PAGES: [(&str, &[&str]); 9] = [
    ("/", &[".mailbox-row", "send-here .snippet-code"]),
    ("/m/anna.keller", &[".row-clip:not(.none)"]),
    ("/m/anna.keller/latest", &[".row-clip:not(.none)", ".preview"]),
    ("/m/newsletter/latest", &[".remote-note", ".preview"]),
    ("/m/nobody", &["empty-mailbox h2"]),
    ("/monitor", &[".arrival"]),
    ("/status", &[".status-words li"]),
    ("/search?q=order", &[".hit"]),
    ("/sessions", &[".session"]),
];

/// Pages that somebody may see first, by a link.
const FIRST: [&str; 2] = ["/", "/m/newsletter/latest"];

/// The sum of all shifts that nobody caused by pressing something, and what has moved: <https://wicg.github.io/layout-instability/>.
const SHIFTS: &str = "
    return new Promise(tell => {
        const name = ({ node }) => node?.nodeType === Node.ELEMENT_NODE ? `${node.localName}.${node.className}` : node?.nodeName;
        const shifts = [];
        new PerformanceObserver(list => shifts.push(...list.getEntries().filter(shift => !shift.hadRecentInput)))
            .observe({ type: 'layout-shift', buffered: true });
        // What was observed before is told soon, but not at once.
        setTimeout(() => tell({ sum: shifts.reduce((sum, shift) => sum + shift.value, 0), moved: shifts.flatMap(({ sources }) => sources.map(name)) }), 200);
    })";

/// More than this is felt: <https://web.dev/articles/cls>.
const FELT: f64 = 0.1;

/// How much has moved since the page was opened, and what.
fn shifts(page: &Page) -> (f64, String) {
    let shifts = page.eval(SHIFTS, &json!([]));
    (shifts["sum"].as_f64().unwrap(), shifts["moved"].to_string())
}

#[test]
fn nothing_moves_while_a_page_comes() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    sample_mail::set_up(&server);
    let slow = json!({ "offline": false, "latency": 300, "downloadThroughput": 100_000, "uploadThroughput": 100_000 });
    page.command("Network.emulateNetworkConditions", &slow);
    for (path, parts) in PAGES {
        // Most visitors have the scripts from the page before; the first ones wait for them.
        if FIRST.contains(&path) {
            page.command("Network.clearBrowserCache", &json!({}));
        }
        page.open(path);
        for part in parts {
            page.find(part);
        }
        let came = page.eval("return performance.getEntriesByType('navigation')[0].responseEnd", &json!([]));
        assert!(came.as_f64().is_some_and(|millis| millis >= 300.0), "the network is fast: {path} came in {came} ms");
        let (sum, moved) = shifts(&page);
        assert!(sum < FELT, "{sum} of {path} moves: {moved}");
    }
    page.assert_quiet();
}

#[test]
fn what_moves_is_noticed() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open("data:text/html,<p style='height: 300px; background: gray'>Here</p>");
    assert!(shifts(&page).0 < FELT);
    page.eval("document.body.style.paddingTop = '300px'", &json!([]));
    page.until("the shift", || shifts(&page).0 > FELT);
}
