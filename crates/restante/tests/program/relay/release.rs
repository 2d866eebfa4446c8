//! Messages that are released over the API arrive in a mailbox of Postfix. Replies decide about each recipient.

use serde_json::json;

use super::postfix::Postfix;
use super::queue::{Queue, latest, recipients, send, start};
use crate::support::durability::eventually;

#[test]
fn released_message_arrives_without_bcc() {
    let Some(postfix) = Postfix::start() else { return };
    let server = start(&[&postfix.target()], &[]);
    let mail = "From: Ann <ann@x.org>\r\nTo: bob@example.org\r\nBcc: secret@example.org,\r\n more@example.org\r\n\
                Subject: Hello\r\n\r\n.\r\n..two dots\r\nBcc: text\r\n";
    server.deliver("bob@example.org", mail.as_bytes());
    let queue = Queue::of(&server);
    let entry = queue.wait_for(&queue.release(&latest(&server), &json!({})), "delivered");

    assert_eq!(recipients(&entry), ["bob@example.org delivered 250"]);
    assert_eq!((&entry["origin"], &entry["attempts"]), (&"release".into(), &1.into()));
    let transcript = entry["transcript"].to_string();
    assert!(transcript.contains("RCPT TO:<bob@example.org>") && transcript.contains("queued as"), "{transcript}");
    let mails = postfix.wait_for(1);
    let [mail] = &mails[..] else { panic!("{mails:?}") };
    assert_eq!((mail.recipient.as_str(), mail.sender.as_str()), ("bob@example.org", "ann@x.org"));
    let (identity, domain) = mail.field("X-Restante-Relay").and_then(|value| value.split_once(' ')).unwrap();
    assert_eq!((identity.len(), domain), (32, "mx.test"));
    assert!(mail.text.contains("by mx.test"), "{}", mail.text);
    assert_eq!(mail.field("Bcc"), None, "{}", mail.text);
    assert!(!mail.text.contains("secret@example.org") && !mail.text.contains("more@example.org"), "{}", mail.text);
    assert_eq!(mail.body(), ".\n..two dots\nBcc: text\n");
}

#[test]
fn each_recipient_has_its_own_state() {
    let Some(postfix) = Postfix::start() else { return };
    let server = start(&[&postfix.target()], &[]);
    let queue = Queue::of(&server);
    postfix.reply_to("later@example.org", "450 4.2.0 try again");
    postfix.reply_to("never@example.org", "550 5.1.1 no such user");
    let addresses = ["now@example.org", "later@example.org", "never@example.org"];
    let id = queue.release_to(&server, "Three", &addresses);
    let entry = queue.wait_for(&id, "queued");
    assert_eq!(
        recipients(&entry),
        ["now@example.org delivered 250", "later@example.org waiting 450", "never@example.org failed 550"]
    );
    assert!(entry["recipients"][2]["reply"].as_str().unwrap().contains("no such user"), "{entry}");
    assert!(entry["next-attempt"].is_string() && entry["last-attempt"].is_string(), "{entry}");
    assert_eq!(queue.target()["state"], "ready");
    postfix.wait_for(1);

    // Only the recipients that have not got the message get it now.
    postfix.accept_all();
    assert_eq!(queue.retry(&json!({ "ids": [id] })), 1);
    let entry = queue.wait_for(&id, "delivered");
    assert_eq!(recipients(&entry), addresses.map(|address| format!("{address} delivered 250")));
    let arrived: Vec<String> = postfix.wait_for(3).into_iter().map(|mail| mail.recipient).collect();
    assert_eq!(arrived, ["later@example.org", "never@example.org", "now@example.org"]);
    assert_eq!(queue.retry(&json!({ "ids": [id] })), 0, "a delivered entry was sent again");
}

#[test]
fn deferred_recipient_is_retried_without_a_request() {
    let Some(postfix) = Postfix::start() else { return };
    let server = start(&[&postfix.target()], &[]);
    let queue = Queue::of(&server);
    postfix.reply_to("later@example.org", "450 4.2.0 try again");
    let id = queue.release_to(&server, "Later", &["later@example.org"]);
    queue.wait_for(&id, "queued");
    postfix.accept_all();
    let entry = queue.wait_for(&id, "delivered");
    assert!(entry["attempts"].as_u64() > Some(1), "{entry}");
    assert_eq!(postfix.wait_for(1).len(), 1);
}

#[test]
fn cancelled_entry_is_not_sent() {
    let Some(postfix) = Postfix::start() else { return };
    let server = start(&[&postfix.target()], &[]);
    let queue = Queue::of(&server);
    postfix.reply_to("later@example.org", "450 4.2.0 try again");
    let id = queue.release_to(&server, "Cancelled", &["later@example.org"]);
    queue.wait_for(&id, "queued");
    assert_eq!(queue.cancel(&json!({ "ids": [id] })), 1);
    assert_eq!(queue.cancel(&json!({ "ids": [id] })), 0);
    postfix.accept_all();
    // It would be due after 10 seconds at most. A later message shows that the target is served.
    let other = queue.release_to(&server, "Sent", &["now@example.org"]);
    queue.wait_for(&other, "delivered");
    let entry = queue.wait_for(&id, "cancelled");
    assert!(entry["next-attempt"].is_null(), "{entry}");
    assert_eq!(postfix.wait_for(1)[0].recipient, "now@example.org");
    // A cancelled entry can be sent after all.
    assert_eq!(queue.retry(&json!({ "target": "postfix" })), 1);
    queue.wait_for(&id, "delivered");
    assert_eq!(postfix.wait_for(2).len(), 2);
}

#[test]
fn recipients_that_are_not_allowed_get_nothing() {
    let Some(postfix) = Postfix::start() else { return };
    let target = format!(
        "postfix smtp://127.0.0.1:{} starttls=never allow=*@example.org|/^qa[0-9]@/ block=boss@*",
        postfix.port()
    );
    let server = start(&[&target], &["--relay-forward", "postfix"]);
    let queue = Queue::of(&server);
    for to in
        ["ann@example.org", "boss@example.org", "ann@example.com", "qa7@x.org", "qa77@x.org", "me@sub.example.org"]
    {
        send(&server, to, to);
    }
    let message = latest(&server);
    for refused in [json!(["boss@example.org"]), json!(["bob@example.org", "ann@example.com"])] {
        let (status, problem) = queue.try_release(&message, &json!({ "to": refused })).unwrap();
        assert!((400..500).contains(&status), "{status} {problem}");
    }
    // Without a list, the recipients of the envelope have to be allowed, too.
    assert!((400..500).contains(&queue.try_release(&message, &json!({})).unwrap().0));
    queue.wait_for(&queue.release(&message, &json!({ "to": ["last@example.org"] })), "delivered");
    let arrived: Vec<String> = postfix.wait_for(3).into_iter().map(|mail| mail.recipient).collect();
    assert_eq!(arrived, ["ann@example.org", "last@example.org", "qa7@x.org"]);
    eventually("a result is not recorded", || queue.entries().iter().all(|entry| entry["state"] == "delivered"));
    let mut states: Vec<String> = queue.entries().iter().flat_map(recipients).collect();
    states.sort();
    assert_eq!(states, arrived.iter().map(|address| format!("{address} delivered 250")).collect::<Vec<_>>());
}

#[test]
fn large_and_international_messages_arrive_unchanged() {
    let Some(postfix) = Postfix::start() else { return };
    let server = start(&[&postfix.target()], &["--smtp-maxmessagebytes", "20000000"]);
    let queue = Queue::of(&server);
    // 8 MB with dots at the start of lines.
    let line = format!(".{}\r\n", "0123456789".repeat(7));
    let body = line.repeat(8_000_000 / line.len());
    server.deliver("large@example.org", format!("Subject: Large\r\n\r\n{body}").as_bytes());
    queue.wait_for(&queue.release(&latest(&server), &json!({})), "delivered");
    let mails = postfix.wait_for(1);
    assert!(mails[0].body() == body.replace("\r\n", "\n"), "the large message has changed");

    // 8-bit content, and international addresses and header fields (RFC 6531).
    let text = "Grüße aus Köln: ✉\r\n";
    let header = "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n";
    server.deliver("eight@example.org", format!("Subject: Eight\r\n{header}\r\n{text}").as_bytes());
    queue.wait_for(&queue.release(&latest(&server), &json!({})), "delivered");
    server.deliver("utf8@example.org", format!("Subject: Grüße\r\n{header}\r\n{text}").as_bytes());
    let id = queue.release(&latest(&server), &json!({ "to": ["jürgen@example.org"] }));
    let entry = queue.wait_for(&id, "delivered");
    assert!(entry["transcript"].to_string().contains("SMTPUTF8"), "{entry}");
    let mails = postfix.wait_for(3);
    let found: Vec<[&str; 3]> =
        mails.iter().map(|mail| [mail.recipient.as_str(), mail.subject(), mail.body()]).collect();
    assert!(found.contains(&["eight@example.org", "Eight", "Grüße aus Köln: ✉\n"]), "{found:.300?}");
    assert!(found.contains(&["jürgen@example.org", "Grüße", "Grüße aus Köln: ✉\n"]), "{found:.300?}");
}

#[test]
fn sender_and_from_can_be_replaced() {
    let Some(postfix) = Postfix::start() else { return };
    let server = start(&[&format!("{} from=robot@example.org returnpath=bounces@example.org", postfix.target())], &[]);
    let queue = Queue::of(&server);
    server.deliver("ann@example.org", b"From: Ann <ann@x.org>\r\nSubject: From\r\n\r\nHello\r\n");
    queue.wait_for(&queue.release(&latest(&server), &json!({})), "delivered");
    let mails = postfix.wait_for(1);
    assert_eq!(mails[0].sender, "bounces@example.org");
    assert_eq!(mails[0].field("From"), Some("Ann <robot@example.org>"));
    assert_eq!(mails[0].field("X-Original-From"), Some("Ann <ann@x.org>"));
}
