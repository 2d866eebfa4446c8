//! One of the two servers of the comparison.

use std::time::Duration;

use serde_json::{Value, json};

use super::answer::{MAX_BODY_BYTES, Request, send};
use super::mails::Mail;
use super::normal::ALL;
use crate::mailpit::server::{Program, Server};
use crate::support::{LineConnection, connect};

/// One of the servers, with the ids that it gave to the mails.
pub(crate) struct Side {
    pub(crate) server: Server,
    /// Name and id of each mail.
    pub(crate) ids: Vec<(String, String)>,
}

impl Side {
    /// Starts a program with these variables and sends it the mails.
    pub(crate) fn new(program: &Program, variables: &[(&str, &str)], mails: &[Mail]) -> Self {
        let server = Server::start(program, variables);
        deliver(&server, mails);
        let mut side = Self { server, ids: Vec::new() };
        let list = send(&side, &Request::get(ALL));
        let messages = list["body"]["messages"].as_array().unwrap_or_else(|| panic!("{list}"));
        assert_eq!(messages.len(), mails.len());
        for (message, mail) in messages.iter().rev().zip(mails) {
            let id = message["ID"].as_str().unwrap().to_owned();
            side.ids.push((mail.name.clone(), id));
        }
        side
    }

    fn source_length(&self, id: &str) -> usize {
        let url = self.server.url(&format!("/api/v1/message/{id}/raw"));
        ureq::get(url).call().unwrap().body_mut().with_config().limit(MAX_BODY_BYTES).read_to_vec().unwrap().len()
    }

    /// Replaces the sizes of messages in an answer that are compared.
    pub(crate) fn replace_sizes(&self, request: &Request, answer: &mut Value) {
        self.replace_size(&mut answer["body"]);
        if request.path == ALL {
            for message in answer["body"]["messages"].as_array_mut().into_iter().flatten() {
                self.replace_size(message);
            }
        }
    }

    /// Replaces the size of a message by a text if it is the length of its source, which differs between the programs.
    pub(crate) fn replace_size(&self, message: &mut Value) {
        if let (Some(id), Some(size)) = (message.get("ID").and_then(Value::as_str), message.get("Size"))
            && *size == json!(self.source_length(&self.with_ids(id)))
        {
            message["Size"] = "LENGTH OF SOURCE".into();
        }
    }

    /// Gives a name to the message that the API has just sent, if the answer is that of such a request.
    pub(crate) fn name_new_message(&mut self, answer: &mut Value) {
        let body = answer["body"].as_object_mut().filter(|body| body.len() == 1);
        let Some(Value::String(id)) = body.and_then(|body| body.get_mut("ID")) else { return };
        let name = format!("message-{}", self.ids.len());
        let id = std::mem::replace(id, format!("{{{name}}}"));
        self.ids.push((name, id));
    }

    /// Replaces `{name}` by the id of the mail.
    pub(crate) fn with_ids(&self, text: &str) -> String {
        self.ids.iter().fold(text.to_owned(), |text, (name, id)| text.replace(&format!("{{{name}}}"), id))
    }

    /// Replaces ids by `{name}`, and the address of the server.
    pub(crate) fn with_names(&self, text: &str) -> String {
        let text = text.replace(&self.server.http().to_string(), "SERVER");
        self.ids.iter().fold(text, |text, (name, id)| text.replace(id, &format!("{{{name}}}")))
    }
}

/// Sends mails by SMTP.
pub(crate) fn deliver(server: &Server, mails: &[Mail]) {
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
}
