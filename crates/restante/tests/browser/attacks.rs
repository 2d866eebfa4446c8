//! Web pages of other origins that attack the server by the browser of its user, on all of its listeners and with its default
//! settings: they can neither store, delete nor read mail, and a response tells them nothing by the time it takes.

use serde_json::json;

use super::mails::{File, Mail};
use super::page::Page;
use crate::support::Server;
use crate::support::exposition::Exposition;

/// Sends commands in the body of a request, by every way that needs no permission of the server. Returns the number of ways.
const SEND_COMMANDS: &str = "
    const [url, commands] = arguments;
    const settled = promise => promise.then(() => {}, () => {});
    const form = (enctype, name) => new Promise(done => {
        const frame = document.createElement('iframe');
        frame.name = 'frame' + Math.random();
        document.body.append(frame);
        const form = document.createElement('form');
        Object.assign(form, { method: 'POST', action: url, enctype, target: frame.name });
        const field = document.createElement('textarea');
        Object.assign(field, { name, value: commands });
        form.append(field);
        document.body.append(form);
        frame.onload = done;
        form.submit();
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

/// Asks for a path of the server by every way that a page has. Waits until all of them have ended.
const ASK: &str = "
    const [url] = arguments;
    const settled = promise => promise.then(() => {}, () => {});
    const loaded = element => new Promise(done => {
        element.onload = element.onerror = done;
        document.body.append(element);
    });
    const element = (name, properties) => loaded(Object.assign(document.createElement(name), properties));
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

/// A server with one message for James, and the pages that attack it: one on another site, one on another port.
struct Scene {
    server: Server,
    page: Page,
    attackers: [String; 2],
}

impl Scene {
    /// Starts a server with these arguments in addition to the default settings; `None` if there is no browser.
    fn start(arguments: &[&str]) -> Option<Self> {
        let server = Server::start(arguments);
        let page = Page::of(&server)?;
        let file = File { kind: "text/plain", name: "x.txt", content: b"271828" };
        let mail = Mail { subject: "Your code", text: "Your code is 271828.", files: &[file], ..Mail::default() };
        server.deliver("james@x.org", &mail.bytes());
        let attackers = page.foreign_pages();
        Some(Self { server, page, attackers })
    }

    /// How many sessions the server has ended because of what the client sent.
    fn disconnected(&self, protocol: &str) -> f64 {
        let metrics = String::from_utf8(self.server.bytes("/metrics")).unwrap();
        let series = format!("restante_sessions_ended_total{{protocol=\"{protocol}\",outcome=\"errors\"}}");
        Exposition::parse(&metrics).value(&series)
    }
}

#[test]
fn a_page_stores_and_deletes_nothing_by_the_mail_ports() {
    let Some(mut scene) = Scene::start(&["--lmtp-addr=127.0.0.1:0"]) else { return };
    let pop3 = scene.server.address_of("POP3 listening on tcp4 ");
    let lmtp = scene.server.address_of("LMTP listening on tcp4 ");
    let forged = "MAIL FROM:<evil@x.test>\r\nRCPT TO:<james@x.org>\r\nDATA\r\nSubject: Forged\r\n\r\nx\r\n.\r\n";
    let before = scene.server.ids("james");
    let ports = [
        ("smtp", scene.server.smtp, format!("\r\nEHLO evil.test\r\n{forged}QUIT\r\n")),
        ("lmtp", lmtp, format!("\r\nLHLO evil.test\r\n{forged}QUIT\r\n")),
        ("pop3", pop3, "\r\nUSER james\r\nPASS x\r\nDELE 1\r\nQUIT\r\n".to_owned()),
    ];
    for (protocol, address, commands) in ports {
        for attacker in &scene.attackers {
            let before_attack = scene.disconnected(protocol);
            scene.page.open(attacker);
            let ways =
                scene.page.eval(SEND_COMMANDS, &json!([format!("http://{address}"), commands])).as_f64().unwrap();
            let all_ended = || scene.disconnected(protocol) >= before_attack + ways;
            scene.page.until("the end of every attack", all_ended);
            assert_eq!(scene.server.ids("james"), before, "{protocol} from {attacker}");
        }
    }
    let mailboxes = scene.server.json("/api/v2/mailboxes");
    assert_eq!(mailboxes["mailboxes"].as_array().map(Vec::len), Some(1), "{mailboxes}");
}

#[test]
fn a_page_reads_times_and_changes_nothing_by_http() {
    let Some(scene) = Scene::start(&[]) else { return };
    let id = &scene.server.ids("james")[0];
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
    for attacker in &scene.attackers {
        for path in &paths {
            scene.page.open(attacker);
            scene.page.forget_requests();
            let url = scene.server.url(path);
            assert_eq!(scene.page.eval(ASK, &json!([url])), "done");
            let statuses = scene.page.statuses_of(&scene.server);
            assert!(statuses.len() >= 10, "{path} from {attacker}: {statuses:?}");
            assert!(statuses.iter().all(|status| *status == 403), "{path} from {attacker}: {statuses:?}");
        }
    }
    assert_eq!(scene.server.ids("james"), std::slice::from_ref(id));
    assert_eq!(scene.server.json("/api/v1/mailbox/james")[0]["seen"], false);
}

#[test]
fn a_link_of_another_site_leads_to_a_page_but_not_to_the_api() {
    let Some(scene) = Scene::start(&[]) else { return };
    let Scene { server, page, attackers } = &scene;
    let go = |path: &str| page.eval("location.href = arguments[0]", &json!([server.url(path)]));
    for attacker in attackers {
        page.open(attacker);
        go("/m/james");
        page.until("the mailbox", || page.texts(".row-subject, .message-subject").contains(&"Your code".to_owned()));
        page.open(attacker);
        go("/api/v2/mailbox/james/wait?timeout=1ms");
        page.until("the refusal", || page.text("body").contains("web page of another origin"));
    }
    // A person who types the address sees it.
    page.open("/api/v1/mailbox/james");
    page.until("the list", || page.text("body").contains("Your code"));
}

#[test]
fn a_page_keeps_no_hold_of_a_window_that_it_opens() {
    let Some(scene) = Scene::start(&[]) else { return };
    let Scene { server, page, attackers } = &scene;
    for attacker in attackers {
        page.open(attacker);
        page.eval("window.opened = window.open(arguments[0])", &json!([server.url("/m/james")]));
        // The frames of the window would tell whether it shows a message.
        page.until("the end of the hold", || page.eval("return window.opened.closed", &json!([])) == true);
        assert_eq!(page.eval("return window.opened.length", &json!([])), 0, "{attacker}");
    }
}

#[test]
fn a_name_of_the_attacker_is_not_answered_for() {
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
