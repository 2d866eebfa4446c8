//! The web interface over HTTPS, and pages of other origins that use the API.

use serde_json::json;

use super::mails::Mail;
use super::page::Page;
use crate::support::Server;

#[test]
fn live_events_work_over_https() {
    let mut server = Server::start(&["--web-tlsaddr=127.0.0.1:0", "--web-tlscert=self-signed"]);
    let address = server.address_of("HTTPS listening on tcp4 ");
    let Some(page) = Page::secure_at(address) else { return };
    page.open("/m/james");
    page.find("empty-list h2");
    let secure = "return [isSecureContext, performance.getEntriesByType('navigation')[0].nextHopProtocol]";
    assert_eq!(page.eval(secure, &json!([])), json!([true, "h2"]));
    let mail = Mail { to: "james@x.org", subject: "Safe and sound", ..Mail::default() };
    server.deliver("james@x.org", &mail.bytes());
    page.until("the arrival", || page.texts(".row-subject") == ["Safe and sound"]);
    page.click(".row-subject");
    page.until("the message", || page.text(".message-subject") == "Safe and sound");
    page.assert_quiet();
}

#[test]
fn only_allowed_origins_can_use_the_api() {
    let server = Server::start(&["--web-corsorigins=http://app.test"]);
    let Some(page) = Page::of(&server) else { return };
    server.deliver("james@x.org", &Mail { to: "james@x.org", subject: "Here", ..Mail::default() }.bytes());
    let outcome = |method: &str| {
        let script = "return fetch(arguments[0], { method: arguments[1], headers: { Authorization: 'Bearer x' } })
            .then(answer => answer.json(), () => 'refused')";
        page.eval(script, &json!([server.url("/api/v1/mailbox/james"), method]))
    };
    // Both receive messages that have already arrived.
    let receives = |script: &str, path: &str| page.eval(script, &json!([server.url(path)]));
    let stream = "return new Promise(done => {
        const events = new EventSource(arguments[0]);
        events.addEventListener('message-stored', event => { events.close(); done('received'); });
        events.onerror = () => { events.close(); done('refused'); };
    })";
    let socket = "return new Promise(done => {
        const socket = new WebSocket(arguments[0].replace('http:', 'ws:'));
        socket.onmessage = () => { socket.close(); done('received'); };
        socket.onerror = () => done('refused');
    })";
    for (origin, expected) in [("http://evil.test/", "refused"), ("http://app.test/", "received")] {
        page.open(origin);
        assert_eq!(receives(stream, "/api/v2/events"), expected, "{origin}");
        assert_eq!(receives(socket, "/api/v2/monitor/messages"), expected, "{origin}");
    }
    assert_eq!(outcome("GET")[0]["subject"], "Here");
    assert_eq!(outcome("DELETE"), "OK");
    page.open("http://evil.test/");
    assert_eq!((outcome("GET"), outcome("DELETE")), (json!("refused"), json!("refused")));
}
