//! Accessibility of every page, in both themes and three sizes: the rules of axe-core, and the size of targets on a phone. axe-core is
//! where `npm ci --prefix ui` installs it, or at the path in `AXE_CORE`. Without it the tests are skipped, or fail if `REQUIRE_AXE` is
//! set. Other checks are in `appearance.rs`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use restante_testdir::TestDir;
use serde_json::{Value, json};

use super::appearance::open;
use super::login::USERS;
use super::page::{DESKTOP, PHONE, Page, TABLET, key};
use super::{mails, projects, relay, sample_mail, webhooks};
use crate::support::Server;
use crate::support::installed::skip;
use crate::support::webhook_receiver::{Receiver, status};

/// The variable that makes a missing axe-core an error.
const REQUIRED: &str = "REQUIRE_AXE";

/// The address of each page, a selector that exists when it is complete, and its name.
const PAGES: [(&str, &str, &str); 15] = [
    ("/", ".message-row .row-clip:not(.none)", "inbox"),
    ("/m/anna.keller", ".message-row .row-clip:not(.none)", "mailbox"),
    ("/m/nobody", "empty-list :is(h1, h2)", "empty mailbox"),
    ("/m/anna.keller/1", "message-view .empty :is(h1, h2)", "deleted message"),
    ("/m/newsletter/latest", "message-view:has(.remote-note) .preview", "message with remote content"),
    ("/search?q=order+or+invoice", ".message-row", "search"),
    ("/search?q=zebra", "empty-list :is(h1, h2)", "search without results"),
    ("/status", ".status-words li", "status"),
    ("/sessions", ".session", "sessions"),
    ("/relay", "relay-page .empty h2", "relay that is not configured"),
    ("/webhooks", "webhooks-page .empty h2", "webhooks that are not configured"),
    ("/settings", "settings-page h1", "settings"),
    ("/send", ".snippet-code", "send"),
    ("/no/such/page", "h1", "missing page"),
    ("/api/docs#readMessage", "main details[open] pre", "API docs"),
];

/// Pages with a selector that exists when they are complete, buttons on them that some sizes have, and what those open.
const OPENERS: [(&str, &str, &str, &str); 8] = [
    ("/send", ".snippet-code", "get-started .compose", "dialog[open]"),
    ("/m/anna.keller", ".message-row", "[data-tool=menu]", "#main-nav"),
    ("/m/anna.keller", ".message-row", "[data-tool=mailbox]", "dialog[open]"),
    ("/m/anna.keller", ".message-row", "[data-tool=search]", "#search-form"),
    ("/m/anna.keller", ".message-row", "list-head [aria-haspopup=menu]", ":popover-open"),
    ("/search?q=tag:x", "empty-list h2", "[aria-label='Save this search']", "dialog[open]"),
    ("/m/anna.keller/latest", ".preview", ".more-tabs", ":popover-open"),
    ("/m/anna.keller/latest", ".preview", "message-pane [aria-haspopup=menu]", ":popover-open"),
];

/// Runs the rules for the levels A and AA of WCAG 2.2 and the best practices, and two rules that are off by default; or the rules in
/// `arguments[0]`. The contents of frames are those of messages.
const RUN_AXE: &str = "
    const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
    const options = {
        iframes: false,
        resultTypes: ['violations'],
        runOnly: arguments[0] ? { type: 'rule', values: arguments[0] } : { type: 'tag', values: tags },
        rules: { 'target-size': { enabled: true }, 'label-content-name-mismatch': { enabled: true } },
    };
    return axe.run(document, options).then(({ violations }) => violations.flatMap(({ id, nodes }) =>
        nodes.map(({ target, html }) => `${id}: ${target.join(' ')} ${html.slice(0, 160)}`)))";

/// The rules of axe-core whose result depends on colors. The other rules depend on the elements and their sizes.
const RULES_FOR_COLORS: [&str; 2] = ["color-contrast", "link-in-text-block"];

/// Returns whether all elements have the same boxes in both themes. The page does not change in between, except for its theme.
const HAS_SAME_LAYOUT: &str = "
    const { style } = document.documentElement;
    const before = style.colorScheme;
    const [light, dark] = ['light', 'dark'].map(theme => {
        style.colorScheme = theme;
        return JSON.stringify([...document.querySelectorAll('*')].map(element => element.getBoundingClientRect()));
    });
    style.colorScheme = before;
    return light === dark";

/// The size of a target on a touch screen, in CSS pixels (WCAG 2.2, success criterion 2.5.5).
const MIN_TARGET: u32 = 44;

/// Targets that may be smaller: the link that is shown while it has the keyboard focus, chips with space around them, and links in
/// the lines of a headline.
const SMALL_TARGETS: [&str; 5] =
    [".skip", ".tag-chip, .tag-chip *", ".message-mailboxes a", ".message .more", ".people a"];

/// Returns the targets in the element `arguments[2]` that are smaller than `arguments[0]`, except for those that match `arguments[1]`
/// and links in a text. Measures where a click reaches the target, so a pseudo-element or a label may enlarge it.
const FIND_SMALL_TARGETS: &str = "
    const [min, exempt, within] = arguments;
    const targets = document.querySelector(within).querySelectorAll('a[href], button, input, select, textarea, summary, [role=tab], [role=button]');
    const isVisible = element => element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && element.getClientRects().length > 0 && !element.closest('.hidden');
    const hasText = node => node.nodeType === Node.TEXT_NODE && node.data.trim() !== '';
    const isInText = element => getComputedStyle(element).display === 'inline' && [...element.parentElement.childNodes].some(hasText);
    const reaches = (element, x, y) => {
        const hit = document.elementFromPoint(x, y);
        return hit && (element.contains(hit) || hit.closest('label')?.control === element);
    };
    // In one direction and then in the other, until it is known to be large enough.
    const extent = (element, x, y, dx, dy) => {
        let [before, after] = [0, 0];
        while (before < min && reaches(element, x - dx * (before + 1), y - dy * (before + 1))) before += 1;
        while (before + after < min && reaches(element, x + dx * (after + 1), y + dy * (after + 1))) after += 1;
        return before + after + 1;
    };
    const small = [];
    for (const element of targets) {
        if (!isVisible(element) || isInText(element) || element.disabled || exempt && element.matches(exempt)) continue;
        element.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
        const { left, top, width, height } = element.getClientRects()[0];
        const [x, y] = [left + width / 2, top + height / 2];
        const name = `${element.outerHTML.slice(0, 120)} at ${Math.round(x)}, ${Math.round(y)}`;
        if (!reaches(element, x, y)) {
            if (x > 0 && y > 0 && x < innerWidth && y < innerHeight) small.push(`covered: ${name} by ${document.elementFromPoint(x, y)?.outerHTML.slice(0, 80)}`);
            continue;
        }
        const [across, down] = [extent(element, x, y, 1, 0), extent(element, x, y, 0, 1)];
        // Edges between two pixels make it one pixel smaller.
        if (across < min - 1 || down < min - 1) small.push(`${across} x ${down}: ${name}`);
    }
    return small";

/// Returns the script of axe-core. Skips the test if it is not there.
fn axe() -> Option<String> {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui/node_modules/axe-core/axe.min.js");
    let path = std::env::var_os("AXE_CORE").map_or_else(default, PathBuf::from);
    let script = std::fs::read_to_string(&path).ok();
    if script.is_none() {
        skip(&format!("axe-core is not at {}: run `npm ci --prefix ui`", path.display()), REQUIRED);
    }
    script
}

/// Finds violations on one page after another.
struct Audit<'a> {
    page: &'a Page,
    axe: &'a str,
    size: (u32, u32),
    found: BTreeSet<String>,
}

impl<'a> Audit<'a> {
    fn new(page: &'a Page, axe: &'a str) -> Self {
        Self { page, axe, size: DESKTOP, found: BTreeSet::new() }
    }

    /// Sets the size of the window for the following pages, which are opened in the light theme.
    fn set_size(&mut self, size: (u32, u32)) {
        self.page.set_display(size, false);
        self.size = size;
    }

    /// Checks the page as it is shown, in both themes.
    fn check(&mut self, name: &str) {
        self.check_layer(name, "body");
    }

    /// Checks the page as it is shown, in both themes. Only the targets in an element are checked, because it covers others. The page
    /// is not loaded again for the dark theme, so it has the same elements. If their boxes are the same too, only the rules about colors
    /// can have another result.
    fn check_layer(&mut self, name: &str, layer: &str) {
        assert_eq!(self.page.eval(HAS_SAME_LAYOUT, &json!([])), true, "{name}: the layout depends on the theme");
        // The colors change gradually.
        self.page.until_at_rest();
        self.note(name, "light", &self.violations(&Value::Null));
        self.page.set_display(self.size, true);
        self.page.until_at_rest();
        self.note(name, "dark", &self.violations(&json!(RULES_FOR_COLORS)));
        self.page.set_display(self.size, false);
        if self.size == PHONE {
            let arguments = json!([MIN_TARGET, SMALL_TARGETS.join(", "), layer]);
            let small = texts(self.page.eval(FIND_SMALL_TARGETS, &arguments));
            let small: Vec<String> = small.iter().map(|target| format!("size {target}")).collect();
            self.note(name, "light", &small);
        }
    }

    /// Adds violations.
    fn note(&mut self, name: &str, theme: &str, violations: &[String]) {
        let (width, height) = self.size;
        self.found.extend(violations.iter().map(|violation| format!("{name}, {width}x{height} {theme}: {violation}")));
    }

    /// Opens a page and checks it.
    fn check_page(&mut self, path: &str, landmark: &str, name: &str) {
        open(self.page, path, landmark);
        self.check(name);
    }

    /// Returns the violations of these rules, or of all rules for `null`.
    fn violations(&self, rules: &Value) -> Vec<String> {
        // The script is large.
        if self.page.eval("return window.axe === undefined", &json!([])) == true {
            self.page.eval(self.axe, &json!([]));
        }
        texts(self.page.eval(RUN_AXE, &json!([rules])))
    }

    #[track_caller]
    fn finish(self) {
        assert!(self.found.is_empty(), "{} violations: {:#?}", self.found.len(), self.found);
    }
}

fn texts(value: Value) -> Vec<String> {
    serde_json::from_value(value).unwrap()
}

/// Checks every page of a server with sample messages in windows of this size, in both themes.
#[track_caller]
fn check_all_pages(size: (u32, u32)) {
    let Some(axe) = axe() else { return };
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    let mut audit = Audit::new(&page, &axe);
    audit.set_size(size);
    audit.check_page("/", "empty-list send-here .snippet-code", "empty inbox");
    sample_mail::set_up(&server);
    for (path, landmark, name) in PAGES {
        audit.check_page(path, landmark, name);
    }
    check_message(&mut audit, &server);
    check_dialogs(&mut audit);
    check_openers(&mut audit);
    audit.finish();
}

/// Checks every tab of a message with HTML, and of one with attachments.
#[track_caller]
fn check_message(audit: &mut Audit<'_>, server: &Server) {
    let page = audit.page;
    for id in &server.ids("anna.keller")[3..] {
        open(page, &format!("/m/anna.keller/{id}"), ".message-subject");
        let tabs =
            texts(page.eval("return [...document.querySelectorAll('[role=tab]')].map(tab => tab.id)", &json!([])));
        assert!(tabs.len() > 4, "{tabs:?}");
        for tab in tabs {
            // Without room for it, a tab is hidden and in a menu. Tabs that do not apply ignore the click.
            let choose = "const tab = document.getElementById(arguments[0]);
                tab.click();
                return tab.getAttribute('aria-selected') === 'true'";
            if page.eval(choose, &json!([tab])) == true {
                let panel = tab.replace("tab-", "panel-");
                page.find(&format!("#{panel} :is(.panel-body, .stage, .empty) > *"));
                audit.check(&tab);
            }
        }
    }
    // The selected tab would be shown the next time.
    page.eval("localStorage.clear()", &json!([]));
    open(page, &format!("/m/anna.keller/{}", server.ids("anna.keller")[3]), ".message-subject");
    page.click(".cards .card:last-child button");
    page.find("dialog[open]");
    audit.check_layer("attachment", "dialog[open]");
}

/// Checks what buttons open.
#[track_caller]
fn check_openers(audit: &mut Audit<'_>) {
    let page = audit.page;
    for (path, landmark, opener, opened) in OPENERS {
        open(page, path, landmark);
        let is_visible = "return document.querySelector(arguments[0])?.checkVisibility() ?? false";
        if page.eval(is_visible, &json!([opener])) == true {
            page.click(opener);
            page.find(opened);
            audit.check_layer(opener, opened);
        }
    }
}

/// Checks what is shown above a page: dialogs, a selection and a notice.
#[track_caller]
fn check_dialogs(audit: &mut Audit<'_>) {
    let page = audit.page;
    open(page, "/m/anna.keller", ".message-row .row-clip:not(.none)");
    page.keys("?");
    page.find("dialog[open]");
    audit.check_layer("help", "dialog[open]");
    page.keys(key::ESCAPE);
    page.until("the end of the dialog", || page.count("dialog[open]") == 0);
    page.eval("document.querySelector('.message-row .row-check').click()", &json!([]));
    page.find("[aria-label='Selected messages'] .danger");
    audit.check("selection");
    page.click("[aria-label='Selected messages'] .danger");
    page.find(".toast");
    audit.check("notice");
    page.keys("z");
    page.until("the end of the notice", || page.count(".toast") == 0);
}

#[test]
fn pages_are_accessible_on_a_desktop() {
    check_all_pages(DESKTOP);
}

#[test]
fn pages_are_accessible_on_a_tablet() {
    check_all_pages(TABLET);
}

#[test]
fn pages_are_accessible_on_a_phone() {
    check_all_pages(PHONE);
}

#[test]
fn login_page_is_accessible() {
    let Some(axe) = axe() else { return };
    let dir = TestDir::new();
    let file = dir.path().join("users");
    std::fs::write(&file, USERS).unwrap();
    let server = Server::start(&[&format!("--auth-users={}", file.display())]);
    let Some(page) = Page::of(&server) else { return };
    let mut audit = Audit::new(&page, &axe);
    for size in [DESKTOP, TABLET, PHONE] {
        audit.set_size(size);
        audit.check_page("/login", "#user", "login");
        page.fill("#user", "ann");
        page.fill("#password", "wrong\n");
        page.find(".note.bad");
        audit.check("failed login");
    }
    audit.finish();
}

#[test]
fn relay_is_accessible() {
    let Some(axe) = axe() else { return };
    let dir = TestDir::new();
    let target = relay::server_that_refuses_once(&dir);
    let server = relay::relay_to(target.smtp);
    let Some(page) = Page::of(&server) else { return };
    let mut audit = Audit::new(&page, &axe);
    server.deliver("james@example.org", &mails::text("Order", "Thank you"));
    // The first one fails, the others are delivered.
    for state in ["failed", "delivered", "delivered", "delivered"] {
        relay::release(&server);
        open(&page, "/relay", "queue-entry");
        page.until(state, || page.texts("queue-entry summary > .badge").first().is_some_and(|seen| seen == state));
    }
    for size in [DESKTOP, TABLET, PHONE] {
        audit.set_size(size);
        audit.check_page("/relay?state=queued", "relay-page .empty h2", "empty queue");
        open(&page, "/relay", "queue-entry");
        page.click("queue-entry summary");
        page.click("queue-entry .outgoing summary");
        page.find("queue-entry .transcript-lines li");
        audit.check("queue");
        page.click(".queue-page .row > .button:not([aria-disabled])");
        audit.check_layer("retry all", "dialog[open]");
        open(&page, "/m/james/latest", "message-relay queue-entry");
        page.click("queue-entry summary");
        page.eval("document.querySelector('#tab-session').click()", &json!([]));
        page.find("message-session .transcript-lines li");
        page.click("outgoing-sessions summary");
        page.find("outgoing-sessions .transcript-lines li");
        audit.check("relayed message");
        page.click(relay::RELEASE);
        page.fill("#release-recipients", "ann@other.test");
        page.find("#release-hints .note");
        page.eval("document.querySelector('dialog [type=submit]').click()", &json!([]));
        page.find("dialog .note.bad");
        audit.check_layer("release", "dialog[open]");
    }
    audit.finish();
}

#[test]
fn webhooks_are_accessible() {
    let Some(axe) = axe() else { return };
    let receiver = Receiver::responding_with(|_, _| Some(status(410)));
    let server = webhooks::server_with_target(&receiver);
    let Some(page) = Page::of(&server) else { return };
    let mut audit = Audit::new(&page, &axe);
    server.deliver("james@example.org", &mails::text("Order", "Thank you"));
    receiver.wait_for(1);
    for size in [DESKTOP, TABLET, PHONE] {
        audit.set_size(size);
        open(&page, "/webhooks", "queue-entry");
        page.click("queue-entry summary");
        page.click("queue-entry .outgoing summary");
        page.find("queue-entry pre");
        audit.check("webhooks");
    }
    audit.finish();
}

#[test]
fn projects_are_accessible() {
    let Some(axe) = axe() else { return };
    let server = projects::server_with_projects(&[]);
    let Some(page) = Page::of(&server) else { return };
    let mut audit = Audit::new(&page, &axe);
    for size in [DESKTOP, TABLET, PHONE] {
        audit.set_size(size);
        open(&page, "/p/shop/", ".message-row");
        if size != DESKTOP {
            page.click(".sidebar-toggle");
        }
        page.find(projects::SWITCH);
        audit.check_layer("project", "mailbox-sidebar");
        page.click(projects::SWITCH);
        page.find("project-switch .menu-item:nth-child(3)");
        audit.check_layer("menu of projects", ":popover-open");
    }
    audit.finish();
}

#[test]
fn violations_are_detected() {
    let Some(axe) = axe() else { return };
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    server.deliver("james@x.org", &mails::text("Hello", "Hello"));
    let mut audit = Audit::new(&page, &axe);
    audit.set_size(PHONE);
    let html = "<!doctype html><html lang=en><title>Title</title><meta name=viewport content='width=device-width'><main><h1>Title</h1>
        <h3>A level is missing</h3><a href=/x style='position:absolute;top:200px'>Short</a>
        <button style='position:absolute;top:300px;width:20px;height:20px'>x</button>
        <label style='position:absolute;top:400px;padding:20px'>Word <input></label>
        <button style='position:absolute;top:500px;padding:20px' aria-label=Other>Words</button>
        <p>A text with <a href=/x>a link</a> in it.</p></main>";
    page.open(&format!("data:text/html,{html}"));
    audit.check("flaws");
    let found: Vec<&str> =
        audit.found.iter().map(|violation| violation.split(' ').nth(3).unwrap_or_default()).collect();
    assert_eq!(found, ["heading-order:", "label-content-name-mismatch:", "size", "size"], "{:#?}", audit.found);
}
