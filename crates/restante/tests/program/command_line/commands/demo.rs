//! The command `demo`: its messages arrive, and each has the feature that it shows.

use serde_json::Value;

use super::{restante, run, run_successfully};
use crate::support::Server;

/// The mailbox and the beginning of the subject of each message, oldest first in each mailbox.
const MESSAGES: [(&str, &str); 12] = [
    ("alex", "Undelivered Mail Returned to Sender"),
    ("alex", "Three coffees for autumn ☕"),
    ("ops", "[CRITICAL] Disk usage above 90 % on db-2.example.net"),
    ("sales", "Weekly sales report"),
    ("misaki", "【発送のお知らせ】ご注文の商品を発送しました（JP-7731）"),
    ("alex", "Launch of the new checkout on Monday"),
    ("accounting", "Invoice 2041"),
    ("sam", "Build #1287 failed: shop/checkout (feature/discount-codes)"),
    ("alex", "Invitation: Sprint review on "),
    ("alex", "Reset your password"),
    ("alex", "Your order #20418 is confirmed"),
    ("alex", "482913 is your verification code"),
];

/// Starts a server and sends the messages to it.
fn server_with_messages() -> Server {
    let server = Server::start(&[]);
    let out = run_successfully(&server, &["demo"]);
    let lines: Vec<&str> = out.lines().collect();
    for ((number, (_, subject)), line) in (1..).zip(MESSAGES).zip(&lines) {
        assert!(line.starts_with(&format!("{number:2}/12  {subject}")), "{line}");
    }
    let summary = format!("Sent 12 messages to {}. Read them at {}/", server.smtp, server.url(""));
    assert!(lines.contains(&summary.as_str()), "{out}");
    server
}

/// Returns the JSON of a message, by mailbox and beginning of the subject, and the path of its details in API 2.
fn message(server: &Server, mailbox: &str, subject: &str) -> (Value, String) {
    let list = server.json(&format!("/api/v1/mailbox/{mailbox}"));
    let found = list.as_array().unwrap().iter().find(|entry| entry["subject"].as_str().unwrap().starts_with(subject));
    let id = found.unwrap_or_else(|| panic!("{subject} is not in {mailbox}: {list}"))["id"].as_str().unwrap();
    (server.json(&format!("/api/v1/mailbox/{mailbox}/{id}")), format!("/api/v2/mailbox/{mailbox}/{id}"))
}

/// Returns the names and content types of the attachments.
fn attachments(message: &Value) -> Vec<(&str, &str)> {
    let files = message["attachments"].as_array().unwrap().iter();
    files.map(|file| (file["filename"].as_str().unwrap(), file["content-type"].as_str().unwrap())).collect()
}

#[test]
fn all_messages_arrive() {
    let server = server_with_messages();
    let all = server.json("/api/v2/messages?limit=100");
    let mut subjects: Vec<&str> =
        all["messages"].as_array().unwrap().iter().map(|message| message["subject"].as_str().unwrap()).collect();
    subjects.reverse();
    assert_eq!(subjects.len(), 12, "{subjects:?}");
    for ((mailbox, expected), subject) in MESSAGES.into_iter().zip(subjects) {
        assert!(subject.starts_with(expected), "{subject}");
        message(&server, mailbox, expected);
    }
    // They can be sent again.
    run_successfully(&server, &["demo"]);
    assert_eq!(server.count("ops"), 2);
}

#[test]
fn codes_links_and_unsubscribe_addresses_are_found() {
    let server = server_with_messages();
    assert_eq!(run_successfully(&server, &["codes", "alex@example.org"]), "482913\n");
    let link = "https://app.example.net/verify?email=alex%40example.org&code=482913";
    assert!(run_successfully(&server, &["links", "alex@example.org"]).lines().any(|found| found == link));

    let (_, reset) = message(&server, "alex", "Reset your password");
    let links = server.json(&format!("{reset}/links")).to_string();
    assert!(links.contains("https://shop.example.com/account/reset?token=9f2c41d07be84a55"), "{links}");
    let (_, news) = message(&server, "alex", "Three coffees");
    let unsubscribe = server.json(&format!("{news}/unsubscribe")).to_string();
    assert!(unsubscribe.contains("https://shop.example.com/newsletter/unsubscribe?u=41c7a9"), "{unsubscribe}");
    // Only the sign-up has a code.
    for (mailbox, subject) in &MESSAGES[..11] {
        let codes = server.json(&format!("{}/codes", message(&server, mailbox, subject).1)).to_string();
        assert!(!codes.contains("482913"), "{subject}: {codes}");
    }
}

#[test]
fn attachments_have_their_types() {
    let server = server_with_messages();
    let table: [(_, _, &[_]); 6] = [
        ("alex", "Your order", &[("coffee.png", "image/png"), ("receipt-20418.pdf", "application/pdf")]),
        ("accounting", "Invoice", &[("invoice-2041.pdf", "application/pdf"), ("invoice-2041.csv", "text/csv")]),
        ("alex", "Invitation", &[("invitation.ics", "text/calendar")]),
        ("sam", "Build", &[("build-1287.log", "text/plain")]),
        ("misaki", "【発送", &[("納品書.txt", "text/plain")]),
        ("alex", "482913", &[]),
    ];
    for (mailbox, subject, expected) in table {
        assert_eq!(attachments(&message(&server, mailbox, subject).0), expected, "{subject}");
    }
    let (order, _) = message(&server, "alex", "Your order");
    let link = order["attachments"][1]["download-link"].as_str().unwrap();
    let receipt = server.bytes(link.strip_prefix(&server.url("")).unwrap());
    assert!(receipt.starts_with(b"%PDF-1.4\n") && receipt.ends_with(b"%%EOF\n"));
    assert!(order["body"]["html"].as_str().unwrap().contains("cid:coffee@example.com"));
}

#[test]
fn tags_recipients_and_other_properties_are_set() {
    let server = server_with_messages();
    for (tag, count) in [("sign-up", 1), ("fernhill", 1), ("ci", 1), ("failed", 1), ("bounce", 1), ("newsletter", 1)] {
        let tagged = server.json(&format!("/api/v2/messages?tag={tag}"));
        assert_eq!(tagged["messages"].as_array().unwrap().len(), count, "{tag}");
    }
    for mailbox in ["alex", "sam", "priya", "product", "audit"] {
        let (team, _) = message(&server, mailbox, "Launch");
        assert!(!team.to_string().contains("audit@"), "a blind copy is not named");
    }
    let (japanese, _) = message(&server, "misaki", "【発送");
    assert_eq!(japanese["from"], "緑茶専門店 みどり <midori@example.com>");
    let (bounce, _) = message(&server, "alex", "Undelivered");
    let kind = bounce["header"]["Content-Type"][0].as_str().unwrap();
    assert!(kind.starts_with("multipart/report; report-type=delivery-status"), "{kind}");
    assert!(bounce["body"]["text"].as_str().unwrap().contains("550 5.1.1"));
    let (report, _) = message(&server, "sales", "Weekly");
    assert!(report["body"]["html"].as_str().unwrap().contains("</td></b>"));

    let score = |mailbox: &str, subject: &str| {
        let (_, path) = message(&server, mailbox, subject);
        server.json(&format!("{path}/html-check"))["score"]["supported"].as_f64().expect("a score")
    };
    assert!(score("alex", "Three coffees") < score("alex", "Your order"), "the newsletter uses rare CSS");
}

#[test]
fn demo_needs_a_server() {
    let server = Server::start(&["--smtp-defaultaccept=false"]);
    let (code, out, stderr) = run(restante(&server).arg("demo"));
    assert_eq!((code, out.as_str()), (4, ""), "{stderr}");
    assert!(stderr.contains(" replied: 5"), "{stderr}");

    let (code, out, stderr) = run(restante(&server).args(["demo", "--server", "127.0.0.1:1"]));
    assert_eq!((code, out.as_str()), (3, ""), "{stderr}");
    assert!(stderr.contains("Is it running? Start a server with `restante`"), "{stderr}");
}

#[test]
fn output_depends_on_the_flags() {
    let server = Server::start(&[]);
    let smtp = server.smtp.to_string();
    // There is no page to show if only the SMTP server is given.
    let (code, out, stderr) =
        run(restante(&server).env("RESTANTE_SERVER", "127.0.0.1:1").args(["demo", "--smtp", &smtp]));
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(out.ends_with(&format!("\nSent 12 messages to {smtp}.\n")), "{out}");

    let address = server.http.to_string();
    let out = run_successfully(&server, &["demo", "--server", &address]);
    assert!(out.contains(&format!("\n  restante list --server http://{address}/ ")), "{out}");
    let out: Value = serde_json::from_str(&run_successfully(&server, &["demo", "--json"])).unwrap();
    assert_eq!(out["messages"].as_array().unwrap().len(), 12);
    assert_eq!(out["page"], format!("http://{address}/"));
}
