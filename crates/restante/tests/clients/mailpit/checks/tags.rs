//! Tags: set over the API, from the message, and their characters.

use serde_json::{Value, json};

use super::{Checks, get, run};
use crate::mailpit::differential::answer::{Request, send};
use crate::mailpit::differential::mails::Mail;
use crate::mailpit::differential::side::Side;
use crate::support::{LineConnection, connect};

#[test]
fn tags_are_set_as_in_mailpit() {
    run("tags", |checks| {
        for tenant in ["", "Branch 3", "shop.one.test"] {
            set_tags(checks, tenant);
        }
        characters(checks);
        tags_of_user_names(checks, "true");
        tags_of_user_names(checks, "false");
    });
}

fn mail(name: &str) -> Mail {
    let text = format!("From: ann@one.test\nTo: bob@two.test\nSubject: {name}\n\nText\n");
    Mail::new(name, &text).to(&["bob@two.test"])
}

/// Sets the tags of a message. Returns its tags.
fn set(side: &Side, name: &str, tags: &[&str]) -> Value {
    let body = json!({"IDs": [format!("{{{name}}}")], "Tags": tags}).to_string();
    let status = send(side, &Request::with_body("PUT", "/api/v1/tags", body))["status"].take();
    if status == 200 { tags_of(side, name) } else { status }
}

fn tags_of(side: &Side, name: &str) -> Value {
    get(side, &format!("/api/v1/message/{{{name}}}"))["Tags"].take()
}

fn set_tags(checks: &mut Checks, tenant: &str) {
    let mut mails: Vec<Mail> = (0..10).map(|number| mail(&format!("mail-{number}"))).collect();
    let tagged = "From: Ann <ann+FromTag@one.test>\nTo: Bob <bob+ToTag@two.test>\nCc: Cid <cid+CopyTag@two.test>\n\
                  Bcc: <dan+HiddenTag@two.test>\nX-Tags: Alpha, Beta 2\nSubject: Tags\n\nText\n";
    let recipients = ["bob+ToTag@two.test", "cid+CopyTag@two.test", "dan+HiddenTag@two.test"];
    mails.push(Mail::new("tagged", tagged).to(&recipients));
    let side = Side::new(&checks.program, &[("MP_TENANT_ID", tenant)], &mails);
    let what = |text: &str| format!("tenant {tenant:?}: {text}");

    let of_message = ["Alpha", "Beta 2", "CopyTag", "FromTag", "HiddenTag", "ToTag"];
    checks.equal(what("tags of the message"), tags_of(&side, "tagged"), of_message.as_slice());
    checks.equal(what("tags of the message removed"), set(&side, "tagged", &[]), json!([]));
    for number in 0..10 {
        let (name, tag) = (format!("mail-{number}"), format!("Label-{number}"));
        checks.equal(what(&format!("set {tag}")), set(&side, &name, &[&tag]), [tag.as_str()].as_slice());
    }
    for number in 0..10 {
        let name = format!("mail-{number}");
        checks.equal(what(&name), tags_of(&side, &name), [format!("Label-{number}")].as_slice());
        checks.equal(what(&format!("{name} without tags")), set(&side, &name, &[]), json!([]));
    }
    checks.equal(what("tags without messages are removed"), get(&side, "/api/v1/tags"), json!([]));

    let twenty: Vec<String> = (0..20).map(|number| format!("Label {number:02}")).collect();
    let twenty: Vec<&str> = twenty.iter().map(String::as_str).collect();
    checks.equal(what("20 tags"), set(&side, "mail-0", &twenty), twenty.as_slice());
    checks.equal(what("19 tags"), set(&side, "mail-0", &twenty[1..]), &twenty[1..]);
    checks.equal(what("no tags"), set(&side, "mail-0", &[]), json!([]));
    checks.equal(what("a tag twice"), set(&side, "mail-0", &["Same", "Same"]), json!(["Same"]));
    checks.equal(what("a tag twice in other case"), set(&side, "mail-1", &["Other", "oTHER"]), json!(["Other"]));
    checks.equal(what("list of all tags"), get(&side, "/api/v1/tags"), json!(["Other", "Same"]));
}

/// Tags, and what is stored of them: a list without tags is `[]`.
const CHARACTERS: [(&str, &[&str]); 9] = [
    ("words of a tag", &["words of a tag"]),
    ("upper AND lower Case", &["upper AND lower Case"]),
    ("a smile :-)", &["a smile -"]),
    ("  many 99     BLANKS :-)", &["many 99 BLANKS -"]),
    ("under_score-and minus ", &["under_score-and minus"]),
    ("at&^%%(*)@ sign", &["at @ sign"]),
    ("Bad! \"Tag\"", &["Bad Tag"]),
    ("dots.and.more", &["dots.and.more"]),
    ("!", &[]),
];

fn characters(checks: &mut Checks) {
    let side = Side::new(&checks.program, &[], &[mail("mail")]);
    for (tag, stored) in CHARACTERS {
        checks.equal(format!("{tag:?}"), set(&side, "mail", &[tag]), stored);
    }
    let long = "a tag with words ".repeat(10);
    let reason = "Tags have at most 64 characters of any language";
    let stored = [json!([&long[..100]]), json!([&long[..64]])];
    checks.differs("a long tag", set(&side, "mail", &[&long]), stored, reason);
}

fn tags_of_user_names(checks: &mut Checks, value: &str) {
    let variables =
        [("MP_TAGS_USERNAME", value), ("MP_SMTP_AUTH_ACCEPT_ANY", "true"), ("MP_SMTP_AUTH_ALLOW_INSECURE", "true")];
    let side = Side::new(&checks.program, &variables, &[]);
    let mut connection = LineConnection::new(connect(side.server.smtp()));
    connection.expect("220");
    connection.command("EHLO client.test", "250");
    // \0tester\0secret
    connection.command("AUTH PLAIN AHRlc3RlcgBzZWNyZXQ=", "235");
    connection.command("MAIL FROM:<ann@one.test>", "250");
    connection.command("RCPT TO:<bob@two.test>", "250");
    connection.command("DATA", "354");
    connection.command("From: ann@one.test\r\nTo: bob@two.test\r\nSubject: Login\r\n\r\nText\r\n.", "250");
    let message = get(&side, "/api/v1/message/latest");
    let what = format!("MP_TAGS_USERNAME={value}");
    checks.equal(format!("{what}: name"), message["Username"].clone(), "tester");
    let tags = message["Tags"].clone();
    if value == "true" {
        checks.differs(what, tags, [json!(["tester"]), json!([])], "user names do not become tags");
    } else {
        checks.equal(what, tags, json!([]));
    }
}
