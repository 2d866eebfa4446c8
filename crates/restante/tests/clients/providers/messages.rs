//! The messages that every SDK sends, and those that the server has stored.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The messages, with `SDK` instead of the name of the SDK.
const MESSAGES: &str = include_str!("messages.json");

/// An SDK.
#[derive(Clone, Copy)]
pub(crate) struct Sdk {
    /// The start of its mailboxes: the language and the package.
    pub(crate) name: &'static str,
    /// How its messages differ from those in the file.
    pub(crate) differs: &'static [Difference],
}

/// A difference between the messages of an SDK and those in the file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Difference {
    /// The API or the SDK has no inline images, so there is no message with one.
    NoInlineImage,
    /// The API has no names of senders.
    NoSenderName,
    /// The SDK also sends a message that a template makes.
    Template,
}

/// Messages in a common form, by the recipients of their envelopes.
type Messages = BTreeMap<Vec<String>, Value>;

/// Asserts that the server at this URL has the messages of these SDKs, and no others.
pub(crate) fn assert_stored(url: &str, token: Option<&str>, sdks: &[Sdk], only: Option<&str>) {
    let stored = stored_messages(&Reader { url, token });
    let expected: Messages = sdks.iter().flat_map(|sdk| expected_messages(sdk, only)).collect();
    let mut report = String::new();
    for (recipients, message) in &expected {
        match stored.get(recipients) {
            None => writeln!(report, "missing: {recipients:?}").unwrap(),
            Some(found) if found != message => {
                writeln!(report, "{recipients:?}").unwrap();
                for (member, value) in message.as_object().unwrap() {
                    if found[member] != *value {
                        writeln!(report, "  {member}: {}\n    expected {value}", found[member]).unwrap();
                    }
                }
            }
            Some(_) => {}
        }
    }
    for recipients in stored.keys().filter(|recipients| !expected.contains_key(*recipients)) {
        writeln!(report, "unexpected: {recipients:?}").unwrap();
    }
    assert!(report.is_empty(), "stored messages differ:\n{report}");
}

fn expected_messages(sdk: &Sdk, only: Option<&str>) -> Messages {
    let messages: Vec<Value> = serde_json::from_str(&MESSAGES.replace("SDK", sdk.name)).unwrap();
    let differs = |difference| sdk.differs.contains(&difference);
    let is_sent = |message: &&Value| match message["name"].as_str().unwrap() {
        "invalid" => false,
        "inline" => !differs(Difference::NoInlineImage),
        "template" => differs(Difference::Template),
        _ => true,
    };
    let is_selected = |message: &&Value| only.is_none_or(|name| message["name"] == name);
    let mut expected = Messages::new();
    for message in messages.iter().filter(is_sent).filter(is_selected) {
        let list = |member: &str| message[member].as_array().unwrap().clone();
        let people = |member: &str| list(member).iter().map(format).collect::<Vec<_>>();
        let address = |person: &Value| person["address"].as_str().unwrap().to_owned();
        let from = &message["from"];
        let from = if differs(Difference::NoSenderName) { json!({"address": from["address"]}) } else { from.clone() };
        let files = list("attachments");
        let files = files.iter().map(|file| {
            json!({"filename": file["filename"], "type": file["type"], "content": file["content"], "cid": file["cid"]})
        });
        let form = json!({
            "from": format(&from),
            "to": people("to"),
            "cc": people("cc"),
            "reply-to": people("reply-to").join(", "),
            "subject": message["subject"],
            "text": message["text"],
            "html": message["html"],
            "attachments": files.collect::<Vec<_>>(),
        });
        let mut recipients: Vec<_> =
            ["to", "cc", "bcc"].into_iter().flat_map(list).map(|person| address(&person)).collect();
        recipients.sort();
        expected.insert(recipients, form);
    }
    expected
}

/// Returns a person as lists of the server show it.
fn format(person: &Value) -> String {
    let address = person["address"].as_str().unwrap();
    match person["name"].as_str() {
        None | Some("") => format!("<{address}>"),
        Some(name) => format!("{name} <{address}>"),
    }
}

/// Reads from the REST API.
struct Reader<'a> {
    url: &'a str,
    token: Option<&'a str>,
}

impl Reader<'_> {
    fn bytes(&self, path: &str) -> Vec<u8> {
        let mut request = ureq::get(format!("{}{path}", self.url));
        if let Some(token) = self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        request.call().unwrap().body_mut().read_to_vec().unwrap()
    }

    fn json(&self, path: &str) -> Value {
        serde_json::from_slice(&self.bytes(path)).unwrap()
    }
}

fn stored_messages(reader: &Reader<'_>) -> Messages {
    let list = reader.json("/api/v2/messages?limit=1000");
    let mut messages = Messages::new();
    for summary in list["messages"].as_array().unwrap() {
        let mailboxes = strings(&summary["mailboxes"]);
        let mut recipients = strings(&summary["recipients"]);
        recipients.sort();
        // Each recipient has a copy.
        assert_eq!(mailboxes.len(), recipients.len(), "{summary}");
        for address in &recipients {
            assert!(mailboxes.iter().any(|mailbox| address.starts_with(&format!("{mailbox}@"))), "{summary}");
        }
        let path = format!("{}/{}", mailboxes[0], summary["id"].as_str().unwrap());
        let message = message_at(reader, &path, summary);
        assert!(messages.insert(recipients, message).is_none(), "two messages to the same recipients: {summary}");
    }
    messages
}

/// Returns the message at a path in the common form.
fn message_at(reader: &Reader<'_>, path: &str, summary: &Value) -> Value {
    let details = reader.json(&format!("/api/v2/mailbox/{path}"));
    let body = reader.json(&format!("/api/v1/mailbox/{path}"))["body"].take();
    let text = |value: &Value| value.as_str().unwrap().replace("\r\n", "\n").trim_end().to_owned();
    let header = |name: &str| {
        let fields = details["headers"].as_array().unwrap();
        let field = fields.iter().find(|field| field["name"].as_str().unwrap().eq_ignore_ascii_case(name));
        field.map_or("", |field| field["decoded"].as_str().or(field["value"].as_str()).unwrap()).to_owned()
    };
    assert_eq!(header("Bcc"), "", "blind copies are named in the header");
    assert_eq!(details["defects"], json!([]), "{summary}");
    let attachments = details["attachments"].as_array().unwrap().iter().map(|file| {
        let content = reader.bytes(&format!("/serve/mailbox/{path}/attach/{}/file", file["index"]));
        let kind = text(&file["content-type"]);
        json!({
            "filename": file["filename"],
            "type": kind.split(';').next(),
            "content": STANDARD.encode(content),
            "cid": file["content-id"],
        })
    });
    json!({
        "from": summary["from"],
        "to": summary["to"],
        "cc": summary["cc"],
        "reply-to": header("Reply-To"),
        "subject": summary["subject"],
        "text": text(&body["text"]),
        "html": text(&body["html"]),
        "attachments": attachments.collect::<Vec<_>>(),
    })
}

fn strings(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|value| value.as_str().unwrap().to_owned()).collect()
}
