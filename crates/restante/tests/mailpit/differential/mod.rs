//! The same mails into Mailpit and into Restante, and every answer compared field by field. Differences that are intended are
//! listed in `expected.rs` with a reason; any other difference, and one that no longer occurs, fails the test.
//!
//! Needs a real Mailpit: `MAILPIT_BIN` is its path. Without it the test is skipped.

mod answer;
mod compare;
mod expected;
mod mails;
mod normal;
mod requests;

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use self::answer::{Request, send};
use self::compare::{Difference, compare};
use self::mails::Mail;
use self::normal::normal;
use crate::server::{MAILPIT_BIN, Program, Server};
use crate::support::{LineConnection, connect};

/// The environment variable that makes a missing Mailpit an error.
const REQUIRED: &str = "REQUIRE_MAILPIT";

/// The variables of both servers.
const VARIABLES: [(&str, &str); 4] = [
    ("MP_ENABLE_CHAOS", "true"),
    ("MP_SMTP_AUTH_ACCEPT_ANY", "true"),
    ("MP_SMTP_AUTH_ALLOW_INSECURE", "true"),
    // Mailpit requests the links of a message, and by default waits between requests to the same host.
    ("MP_DISABLE_LINK_CHECK_RATE_LIMIT", "true"),
];

/// One of the servers, with the ids that it gave to the mails.
struct Side {
    server: Server,
    /// Name and id of each mail.
    ids: Vec<(String, String)>,
}

impl Side {
    fn new(program: &Program, mails: &[Mail]) -> Self {
        let server = Server::start(program, &VARIABLES);
        let mut connection = LineConnection::new(connect(server.smtp()));
        connection.expect("220");
        connection.command("EHLO client.test", "250");
        for mail in mails {
            connection.command(&format!("MAIL FROM:<{}>", mail.sender), "250");
            for recipient in &mail.recipients {
                connection.command(&format!("RCPT TO:<{recipient}>"), "250");
            }
            connection.command("DATA", "354");
            connection.send(mail.stuffed());
            let reply = connection.line().unwrap();
            assert!(reply.starts_with("250"), "{}: {reply}", mail.name);
            // Mailpit sorts by the millisecond of arrival.
            std::thread::sleep(Duration::from_millis(3));
        }
        connection.command("QUIT", "221");
        let mut side = Self { server, ids: Vec::new() };
        let list = send(&side, &Request::get("/api/v1/messages?limit=1000"));
        let messages = list["body"]["messages"].as_array().unwrap_or_else(|| panic!("{list}"));
        assert_eq!(messages.len(), mails.len());
        let ids = messages.iter().rev().map(|message| message["ID"].as_str().unwrap().to_owned());
        side.ids = mails.iter().map(|mail| mail.name.clone()).zip(ids).collect();
        side
    }

    /// Gives a name to the message that the API has just sent, if the answer is that of such a request.
    fn name_new_message(&mut self, answer: &mut Value) {
        let body = answer["body"].as_object_mut().filter(|body| body.len() == 1);
        let Some(Value::String(id)) = body.and_then(|body| body.get_mut("ID")) else { return };
        let name = format!("message-{}", self.ids.len());
        let id = std::mem::replace(id, format!("{{{name}}}"));
        self.ids.push((name, id));
    }

    /// Replaces `{name}` by the id of the mail.
    fn with_ids(&self, text: &str) -> String {
        self.ids.iter().fold(text.to_owned(), |text, (name, id)| text.replace(&format!("{{{name}}}"), id))
    }

    /// Replaces ids by `{name}`, and the address of the server.
    fn with_names(&self, text: &str) -> String {
        let text = text.replace(&self.server.http().to_string(), "SERVER");
        self.ids.iter().fold(text, |text, (name, id)| text.replace(id, &format!("{{{name}}}")))
    }
}

#[test]
fn answers_are_those_of_mailpit() {
    let Some(mailpit) = Program::mailpit() else {
        return restante_testdir::skip(&format!("{MAILPIT_BIN} is not set"), REQUIRED);
    };
    let mails = mails::all();
    let mut sides = [mailpit, Program::Restante].map(|program| Side::new(&program, &mails));
    let mut differences = Vec::new();
    for stage in requests::STAGES {
        for request in stage(&sides[0], &mails) {
            let [one, other] = sides.each_mut().map(|side| {
                let mut answer = send(side, &request);
                side.name_new_message(&mut answer);
                answer
            });
            let body = request.body.as_deref().map(|body| format!(" {body}")).unwrap_or_default();
            let place = format!("{} {}{body}", request.method, request.path);
            compare(&place, &normal(&request, one), &normal(&request, other), &mut differences);
        }
    }
    report(&differences);
}

/// Fails if there is a difference that is not expected, or an expected one that did not occur.
fn report(differences: &[Difference]) {
    let mut used = BTreeSet::new();
    let mut unexpected = Vec::new();
    for difference in differences {
        match expected::DIFFERENCES.iter().position(|expected| expected.matches(difference)) {
            Some(at) => drop(used.insert(at)),
            None => unexpected.push(difference),
        }
    }
    for Difference { place, mailpit, restante } in &unexpected {
        eprintln!("{place}\n    Mailpit:  {mailpit}\n    Restante: {restante}");
    }
    let unused: Vec<_> = (0..expected::DIFFERENCES.len()).filter(|at| !used.contains(at)).collect();
    for at in &unused {
        eprintln!("no longer a difference: {}", expected::DIFFERENCES[*at].place);
    }
    let count = (unexpected.len(), unused.len());
    assert_eq!(count, (0, 0), "unexpected differences, and expected ones that did not occur");
}
