//! The requests of the client in the Maven package `ch.martinelli.oss:testcontainers-mailpit`, which reads mail without a login.
//! Not all registries have the package, so the requests are sent from here.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::mailpit::server::{Program, Server};
use crate::support::{LineConnection, connect};

/// Sends a request as the client does, with the ids of a deletion as JSON. Returns the status and the body.
fn request(server: &Server, method: &str, path: &str, ids: Option<&[&str]>) -> (u16, String) {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let request = ureq::http::Request::builder().method(method).uri(server.url(path));
    let response = match ids {
        Some(ids) => {
            agent.run(request.header("content-type", "application/json").body(json!({"ids": ids}).to_string()).unwrap())
        }
        None => agent.run(request.header("accept", "application/json").body(()).unwrap()),
    };
    let mut response = response.unwrap();
    (response.status().as_u16(), response.body_mut().read_to_string().unwrap())
}

/// Returns the list of messages.
fn messages(server: &Server) -> Vec<Value> {
    let (status, body) = request(server, "GET", "/api/v1/messages", None);
    let list: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(status, 200);
    assert!(["total", "unread", "count", "start"].iter().all(|&field| list[field].is_u64()), "{list}");
    assert!(list["tags"].is_array(), "{list}");
    list["messages"].as_array().unwrap().clone()
}

fn send(smtp: SocketAddr, to: &[&str], subject: &str, body: &str) {
    let mut connection = LineConnection::new(connect(smtp));
    connection.expect("220");
    connection.command("EHLO localhost", "250");
    connection.command("MAIL FROM:<ann@example.test>", "250");
    for address in to {
        connection.command(&format!("RCPT TO:<{address}>"), "250");
    }
    connection.command("DATA", "354");
    let to = to.join(", ");
    connection.send(format!("From: ann@example.test\r\nTo: {to}\r\nSubject: {subject}\r\n{body}\r\n.\r\n"));
    connection.expect("250");
    connection.command("QUIT", "221");
}

#[test]
fn testcontainers_for_java() {
    for program in Program::mailpit().into_iter().chain([Program::Restante]) {
        let server = Server::start(&program, &[]);
        // The container is ready when its page is.
        assert_eq!(request(&server, "GET", "/", None).0, 200);
        assert_eq!(request(&server, "DELETE", "/api/v1/messages", None).0, 200);
        assert_eq!(messages(&server), [Value::Null; 0]);

        send(server.smtp(), &["bob@example.test", "cid@example.test"], "Plain", "\r\nThe text");
        send(server.smtp(), &["bob@example.test"], "HTML", "Content-Type: text/html\r\n\r\n<h1>Hello</h1>");
        let list = messages(&server);
        let ids: Vec<&str> = list.iter().map(|message| message["ID"].as_str().unwrap()).collect();
        let [html, plain] = ids[..] else { panic!("{list:?}") };
        assert_eq!((&list[0]["Subject"], &list[1]["Subject"]), (&json!("HTML"), &json!("Plain")));
        let to = |address: &str| json!({"Name": "", "Address": address});
        assert_eq!(list[1]["To"], json!([to("bob@example.test"), to("cid@example.test")]));
        assert_eq!((&list[1]["Attachments"], &list[1]["Read"]), (&json!(0), &json!(false)));
        list[1]["Created"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();

        let (status, message) = request(&server, "GET", &format!("/api/v1/message/{plain}"), None);
        let message: Value = serde_json::from_str(&message).unwrap();
        assert_eq!((status, &message["Subject"], &message["Attachments"]), (200, &json!("Plain"), &json!([])));
        assert_eq!(message["From"], to("ann@example.test"));
        let table = [
            (format!("/view/{html}.html"), "<h1>Hello</h1>"),
            (format!("/view/{plain}.txt"), "The text"),
            (format!("/api/v1/message/{plain}/raw"), "Subject: Plain\r\n"),
        ];
        for (path, content) in table {
            let (status, body) = request(&server, "GET", &path, None);
            assert!(status == 200 && body.contains(content), "{path}: {status} {body}");
        }
        // The client has no value for a message that does not exist.
        for path in ["/api/v1/message/absent", "/api/v1/message/absent/raw", "/view/absent.html", "/view/absent.txt"] {
            assert_eq!(request(&server, "GET", path, None).0, 404, "{path}");
        }

        assert_eq!(request(&server, "DELETE", "/api/v1/messages", Some(&[html])).0, 200);
        assert_eq!(messages(&server).len(), 1);
        assert_eq!(request(&server, "DELETE", "/api/v1/messages", Some(&[plain])).0, 200);
        assert_eq!(messages(&server).len(), 0);
    }
}
