//! Tests with the real HTTP client against a server on loopback.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use restante_mailroom::hooks::Observer as _;

use super::support::{activate, counts, main_runtime, memory_queue, message, settings, wait_until};
use crate::{Key, Settings, Webhooks};

/// A server that records requests and sends the same response to all of them. It runs until the process ends.
struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<(String, String)>>>,
}

impl Server {
    fn start(response: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self { address: listener.local_addr().unwrap(), requests: Arc::default() };
        let requests = server.requests.clone();
        thread::spawn(move || {
            for connection in listener.incoming() {
                let mut connection = connection.unwrap();
                let request = read(&connection);
                requests.lock().unwrap().push(request);
                // The client may have disconnected.
                let _ = connection.write_all(response.as_bytes());
            }
        });
        server
    }

    fn requests(&self) -> Vec<(String, String)> {
        self.requests.lock().unwrap().clone()
    }
}

/// Returns the head of a request, in lower case, and its body.
fn read(connection: &TcpStream) -> (String, String) {
    let mut input = BufReader::new(connection);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && input.read_line(&mut head).unwrap() > 0 {}
    let head = head.to_lowercase();
    let length = head.split_once("content-length: ").unwrap().1.split_once('\r').unwrap().0.parse().unwrap();
    let mut body = vec![0; length];
    input.read_exact(&mut body).unwrap();
    (head, String::from_utf8(body).unwrap())
}

fn field<'a>(head: &'a str, name: &str) -> &'a str {
    head.split_once(&format!("\r\n{name}: ")).unwrap().1.split_once('\r').unwrap().0
}

fn start_webhooks(settings: Settings) -> Arc<Webhooks> {
    let webhooks = main_runtime().block_on(Webhooks::new(settings, memory_queue())).unwrap();
    activate(&webhooks);
    webhooks
}

fn loopback_settings(url: &str) -> Settings {
    Settings { private_addresses: true, ..settings(&[url]) }
}

#[test]
fn event_is_sent_as_signed_post() {
    let server = Server::start("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
    let key = Key::parse("0123456789abcdef").unwrap();
    let url = format!("http://{}/hook?a=b", server.address);
    let webhooks = start_webhooks(Settings { secret: Some(key.clone()), ..loopback_settings(&url) });
    let summary = message("james");
    webhooks.message_stored(&summary);
    wait_until("the event is delivered", || counts(&webhooks).delivered == 1);
    let requests = server.requests();
    let [(head, body)] = requests.as_slice() else { panic!("{requests:?}") };
    assert!(head.starts_with("post /hook?a=b http/1.1\r\n"), "{head}");
    assert_eq!(field(head, "content-type"), "application/json");
    assert!(field(head, "user-agent").starts_with("restante/"));
    let signature =
        key.sign(field(head, "webhook-id"), field(head, "webhook-timestamp").parse().unwrap(), body.as_bytes());
    assert_eq!(field(head, "webhook-signature"), signature.to_lowercase());
    assert!(body.contains(&summary.id.to_string()), "{body}");
}

#[test]
fn accepts_long_response() {
    let response = format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{}", "x".repeat(1 << 20));
    let server = Server::start(response.leak());
    let webhooks = start_webhooks(loopback_settings(&format!("http://{}/", server.address)));
    webhooks.message_stored(&message("james"));
    wait_until("the event is delivered", || counts(&webhooks).delivered == 1);
    assert_eq!(counts(&webhooks).retried, 0);
}

#[test]
fn redirects_are_not_followed() {
    let other = Server::start("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let response = format!(
        "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://{}/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        other.address
    );
    let server = Server::start(response.leak());
    let webhooks = start_webhooks(loopback_settings(&format!("http://{}/", server.address)));
    webhooks.message_stored(&message("james"));
    wait_until("the event is retried", || counts(&webhooks).retried > 0);
    assert!(other.requests().is_empty());
}

#[test]
fn rejects_private_addresses_unless_allowed() {
    let server = Server::start("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let port = server.address.port();
    for host in ["127.0.0.1", "localhost", "[::1]", "10.0.0.1", "[::ffff:127.0.0.1]", "0x7f.1"] {
        let webhooks = start_webhooks(settings(&[&format!("http://{host}:{port}/")]));
        webhooks.message_stored(&message("james"));
        wait_until(host, || counts(&webhooks).failed == 1);
    }
    assert!(server.requests().is_empty());
}

#[test]
fn retries_unreachable_target() {
    // Only root could listen on this port, and nothing does.
    let webhooks = start_webhooks(loopback_settings("http://127.0.0.1:1/"));
    webhooks.message_stored(&message("james"));
    wait_until("the event is retried", || counts(&webhooks).retried == 1);
    webhooks.shut_down(Duration::from_secs(5), true);
    assert_eq!(counts(&webhooks).waiting, 1);
}
