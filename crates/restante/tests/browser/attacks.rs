//! Attacks by web pages of other origins through the user's browser, on all listeners and with default settings: they can neither
//! store, delete nor read messages, and cannot learn anything from response times.

use serde_json::json;

use super::mails::{self, File, Mail};
use super::page::{LOADED, Page};
use crate::support::Server;
use crate::support::exposition::Exposition;

/// Sends commands in request bodies, in every way that needs no permission of the server. Returns the number of ways.
const SEND_COMMANDS: &str = "
    const [url, commands] = arguments;
    const settled = promise => promise.then(() => {}, () => {});
    const form = (enctype, name) => loaded(() => {
        const frame = document.createElement('iframe');
        frame.name = 'frame' + Math.random();
        document.body.append(frame);
        const form = document.createElement('form');
        Object.assign(form, { method: 'POST', action: url, enctype, target: frame.name });
        const field = document.createElement('textarea');
        Object.assign(field, { name, value: commands });
        form.append(field);
        document.body.append(form);
        form.submit();
        return frame;
    });
    const socket = () => new Promise(done => {
        const socket = new WebSocket(url.replace('http:', 'ws:'));
        socket.onopen = () => { socket.send(commands); done(); };
        socket.onerror = done;
    });
    return (async () => {
        const post = (path, body) => settled(fetch(url + path, { method: 'POST', mode: 'no-cors', body }));
        await post('/', commands);
        await post('/?' + 'x'.repeat(10_000), commands);
        await post('/', new Blob([commands.repeat(50)]));
        await settled(fetch(url, { mode: 'no-cors' }));
        await settled(fetch(url, { method: 'POST', body: commands, headers: { 'X-Custom': 'x' } }));
        navigator.sendBeacon(url, commands);
        await form('text/plain', 'x');
        await form('multipart/form-data', commands);
        await socket();
        return 9;
    })()";

/// Requests a path of the server in every way that a page has. Waits until all requests have ended.
const REQUEST: &str = "
    const [url] = arguments;
    const settled = promise => promise.then(() => {}, () => {});
    const element = (name, properties) => loaded(() => {
        const element = Object.assign(document.createElement(name), properties);
        document.body.append(element);
        return element;
    });
    const stream = () => new Promise(done => {
        const events = new EventSource(url);
        events.onopen = events.onerror = () => { events.close(); done(); };
    });
    const socket = () => new Promise(done => {
        const socket = new WebSocket(url.replace('http:', 'ws:'));
        socket.onopen = socket.onerror = () => { socket.close(); done(); };
    });
    return Promise.all([
        settled(fetch(url, { mode: 'no-cors' })),
        settled(fetch(url)),
        settled(fetch(url, { mode: 'no-cors', method: 'POST', body: 'x' })),
        settled(fetch(url, { method: 'DELETE' })),
        element('img', { src: url }),
        element('script', { src: url }),
        element('link', { rel: 'stylesheet', href: url }),
        element('iframe', { src: url }),
        element('iframe', { src: url, sandbox: '' }),
        element('video', { src: url, onloadedmetadata: null }),
        element('object', { data: url }),
        stream(),
        socket(),
    ]).then(() => 'done')";

/// A server with one message for James, and the attacking pages: on another site and on another port.
struct Setup {
    server: Server,
    page: Page,
    attackers: [String; 2],
}

impl Setup {
    /// Starts a server with these arguments in addition to the default settings; `None` if there is no browser.
    fn start(arguments: &[&str]) -> Option<Self> {
        let server = Server::start(arguments);
        let page = Page::of(&server)?;
        let file = File { kind: "text/plain", name: "x.txt", content: b"271828" };
        let mail = Mail { subject: "Your code", text: "Your code is 271828.", files: &[file], ..Mail::default() };
        server.deliver("james@x.org", &mail.bytes());
        let attackers = page.external_pages();
        Some(Self { server, page, attackers })
    }

    /// Returns the number of sessions that the server has ended because of the input.
    fn disconnected(&self, protocol: &str) -> f64 {
        let metrics = String::from_utf8(self.server.bytes("/metrics")).unwrap();
        let series = format!("restante_sessions_ended_total{{protocol=\"{protocol}\",outcome=\"errors\"}}");
        Exposition::parse(&metrics).value(&series)
    }
}

#[test]
fn page_cannot_store_or_delete_through_mail_ports() {
    let Some(mut setup) = Setup::start(&["--lmtp-addr=127.0.0.1:0"]) else { return };
    let pop3 = setup.server.address_of("POP3 listening on tcp4 ");
    let imap = setup.server.address_of("IMAP listening on tcp4 ");
    let lmtp = setup.server.address_of("LMTP listening on tcp4 ");
    let expunge = "\r\na LOGIN james x\r\nb SELECT INBOX\r\nc STORE 1 +FLAGS (\\Deleted)\r\nd EXPUNGE\r\ne LOGOUT\r\n";
    let forged = "MAIL FROM:<evil@x.test>\r\nRCPT TO:<james@x.org>\r\nDATA\r\nSubject: Forged\r\n\r\nx\r\n.\r\n";
    let before = setup.server.ids("james");
    let ports = [
        ("smtp", setup.server.smtp, format!("\r\nEHLO evil.test\r\n{forged}QUIT\r\n")),
        ("lmtp", lmtp, format!("\r\nLHLO evil.test\r\n{forged}QUIT\r\n")),
        ("pop3", pop3, "\r\nUSER james\r\nPASS x\r\nDELE 1\r\nQUIT\r\n".to_owned()),
        ("imap", imap, expunge.to_owned()),
    ];
    for (protocol, address, commands) in ports {
        for attacker in &setup.attackers {
            let before_attack = setup.disconnected(protocol);
            setup.page.open(attacker);
            let send = format!("{LOADED} {SEND_COMMANDS}");
            let ways = setup.page.eval(&send, &json!([format!("http://{address}"), commands])).as_f64().unwrap();
            let all_ended = || setup.disconnected(protocol) >= before_attack + ways;
            setup.page.until("the end of every attack", all_ended);
            assert_eq!(setup.server.ids("james"), before, "{protocol} from {attacker}");
        }
    }
    let mailboxes = setup.server.json("/api/v2/mailboxes");
    assert_eq!(mailboxes["mailboxes"].as_array().map(Vec::len), Some(1), "{mailboxes}");
}

#[test]
fn page_cannot_read_measure_or_change_through_http() {
    let Some(setup) = Setup::start(&[]) else { return };
    let id = &setup.server.ids("james")[0];
    let paths = [
        "/api/v1/mailbox/james".to_owned(),
        format!("/api/v1/mailbox/james/{id}"),
        "/api/v1/mailbox/james/latest/source".to_owned(),
        "/api/v1/monitor/messages".to_owned(),
        "/api/v2/mailbox/james/wait?match=body:27*&timeout=400ms".to_owned(),
        "/api/v2/mailbox/james/wait?match=body:99*&timeout=400ms".to_owned(),
        "/api/v2/search?q=body:27*".to_owned(),
        "/api/v2/mailboxes".to_owned(),
        "/api/v2/mailbox/james/latest/codes".to_owned(),
        "/api/v2/sessions".to_owned(),
        "/api/v2/events".to_owned(),
        "/api/v2/monitor/messages".to_owned(),
        "/mailbox/vattach/james/latest/0/x.txt".to_owned(),
        "/serve/mailbox/james/latest".to_owned(),
        "/serve/mailbox/james/latest/html".to_owned(),
        "/m/james".to_owned(),
        "/metrics".to_owned(),
    ];
    for attacker in &setup.attackers {
        for path in &paths {
            setup.page.open(attacker);
            setup.page.clear_requests();
            let url = setup.server.url(path);
            assert_eq!(setup.page.eval(&format!("{LOADED} {REQUEST}"), &json!([url])), "done");
            let statuses = setup.page.statuses_from(&setup.server);
            assert!(statuses.len() >= 10, "{path} from {attacker}: {statuses:?}");
            assert!(statuses.iter().all(|status| *status == 403), "{path} from {attacker}: {statuses:?}");
        }
    }
    assert_eq!(setup.server.ids("james"), std::slice::from_ref(id));
    assert_eq!(setup.server.json("/api/v1/mailbox/james")[0]["seen"], false);
}

#[test]
fn link_of_another_site_opens_pages_but_not_the_api() {
    let Some(setup) = Setup::start(&[]) else { return };
    let Setup { server, page, attackers } = &setup;
    let go = |path: &str| page.eval("location.href = arguments[0]", &json!([server.url(path)]));
    for attacker in attackers {
        page.open(attacker);
        go("/m/james");
        page.until("the mailbox", || page.texts(".row-subject, .message-subject").contains(&"Your code".to_owned()));
        page.open(attacker);
        go("/api/v2/mailbox/james/wait?timeout=1ms");
        page.until("the refusal", || page.text("body").contains("web page of another origin"));
    }
    // Entering the address works.
    page.open("/api/v1/mailbox/james");
    page.until("the list", || page.text("body").contains("Your code"));
}

#[test]
fn page_loses_access_to_a_window_that_it_opens() {
    let Some(setup) = Setup::start(&[]) else { return };
    let Setup { server, page, attackers } = &setup;
    for attacker in attackers {
        page.open(attacker);
        page.eval("window.opened = window.open(arguments[0])", &json!([server.url("/m/james")]));
        // The number of frames would reveal whether a message is shown.
        page.until("the loss of access", || page.eval("return window.opened.closed", &json!([])) == true);
        assert_eq!(page.eval("return window.opened.length", &json!([])), 0, "{attacker}");
    }
}

#[test]
fn page_that_a_message_opens_cannot_replace_the_message() {
    for browser in [Page::of, Page::in_firefox] {
        let server = Server::start(&[]);
        let Some(page) = browser(&server) else { continue };
        let [attacker, _] = page.external_pages();
        // A tab with a name has an opener, unlike one with `_blank`.
        let html = format!("<p>Hello</p><a href=\"{attacker}\" target=other>Go</a>");
        server.deliver("james@x.org", &mails::html("Link", &html));
        page.open("/view/latest.html");
        page.expect_text("p", "Hello");
        page.click("a");
        page.in_opened_tab(|tab| {
            tab.until("the page", || tab.eval("return location.href", &json!([])) == attacker.as_str());
            assert_eq!(tab.eval("return window.opener === null", &json!([])), true);
        });
        assert_eq!(page.path(), "/view/latest.html");
    }
}

#[test]
fn host_name_of_an_attacker_is_rejected() {
    let server = Server::start(&[]);
    let status = |host: &str| {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        agent.get(server.url("/api/v1/mailbox/james")).header("Host", host).call().unwrap().status().as_u16()
    };
    for host in
        ["localhost:9000", "127.0.0.1", "[::1]", "inbucket:9000", "mail.internal", "restante.mail.svc.cluster.local"]
    {
        assert_eq!(status(host), 200, "{host}");
    }
    for host in ["evil.test", "evil.example:9000", "local.evil.example", "localhost.evil.example"] {
        assert_eq!(status(host), 421, "{host}");
    }
}
