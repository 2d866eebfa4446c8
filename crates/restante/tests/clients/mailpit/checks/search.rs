//! The search: fields, quotes, negation, sizes, and deletion of what is found.

use serde_json::{Value, json};

use super::{Checks, encode, get, run, totals};
use crate::mailpit::differential::answer::{Request, send};
use crate::mailpit::differential::mails::Mail;
use crate::mailpit::differential::side::{Side, deliver};

#[test]
fn searches_find_what_mailpit_finds() {
    run("search", |checks| {
        hundred_messages(checks);
        quotes(checks);
        percent_signs(checks);
        sizes(checks);
        deletion(checks);
    });
}

/// Returns the names of the messages that are found, in alphabetical order.
fn found(side: &Side, query: &str) -> Vec<Value> {
    let mut list = get(side, &format!("/api/v1/search?limit=1000&query={}", encode(query)));
    let messages = list["messages"].as_array_mut().into_iter().flatten();
    let mut names: Vec<Value> = messages.map(|message| message["ID"].take()).collect();
    names.sort_by_key(Value::to_string);
    names
}

/// Queries that find the message with the number `{n}` only.
const FOR_ONE: [&str; 15] = [
    "sender-{n}@one.test",
    "from:sender-{n}@one.test",
    "first-{n}@two.test",
    "to:first-{n}@two.test",
    "second-{n}@two.test",
    "to:second-{n}@two.test",
    "copy-{n}@two.test",
    "cc:copy-{n}@two.test",
    "other-copy-{n}@two.test",
    "cc:other-copy-{n}@two.test",
    "answer-{n}@one.test",
    "reply-to:\"answer-{n}@one.test\"",
    "\"Report {n} of Monday\"",
    "subject:\"Report {n} of Monday\"",
    "\"words of report {n} in angle brackets\"",
];
/// Queries, and the number of messages that they find of 100.
const COUNTS: [(&str, usize); 17] = [
    ("sender-1@one.test", 1),
    ("from:sender-1@one.test", 1),
    ("-from:sender-1@one.test", 99),
    ("-FROM:SENDER-1@ONE.TEST", 99),
    ("to:sender-1@one.test", 0),
    ("from:@one.test", 100),
    ("subject:\"of Monday\"", 100),
    ("subject:\"REPORT 17 OF MONDAY\"", 1),
    ("!missing-everywhere", 100),
    ("-Missing-Everywhere", 100),
    ("missing-everywhere", 0),
    ("tag:\"Label 065\"", 1),
    ("tag:\"LABEL 065\"", 1),
    ("!tag:\"Label 023\"", 99),
    ("the words of report", 100),
    ("is:unread", 100),
    ("is:read", 0),
];

fn hundred_messages(checks: &mut Checks) {
    let mail = |n: usize| {
        let headers = format!(
            "From: Sender {n} <sender-{n}@one.test>\nTo: First {n} <first-{n}@two.test>, Second {n} <second-{n}@two.test>\n\
             Cc: Copy {n} <copy-{n}@two.test>, Other {n} <other-copy-{n}@two.test>\nReply-To: Answer {n} <answer-{n}@one.test>\n\
             X-Tags: Label {n:03}\nSubject: Report {n} of Monday\n\nThe words of report {n} <in;angle brackets;>.\n"
        );
        let to = ["first", "second"].map(|name| format!("{name}-{n}@two.test"));
        let cc = ["copy", "other-copy"].map(|name| format!("{name}-{n}@two.test"));
        Mail::new(&format!("mail-{n}"), &headers).to(&[&to[0], &to[1], &cc[0], &cc[1]])
    };
    let mails: Vec<Mail> = (1..=100).map(mail).collect();
    for tenant in ["", "Branch 3", "shop.one.test"] {
        let side = Side::new(&checks.program, &[("MP_TENANT_ID", tenant)], &mails);
        for (position, form) in FOR_ONE.iter().enumerate() {
            // All numbers for one server, another number for each query with a tenant.
            let numbers = if tenant.is_empty() { vec![1, 5, 10, 23, 50, 99] } else { vec![position + 7] };
            for n in numbers {
                let query = form.replace("{n}", &n.to_string());
                checks.equal(
                    format!("{query}, tenant {tenant:?}"),
                    found(&side, &query),
                    [format!("{{mail-{n}}}")].as_slice(),
                );
            }
        }
        let counts = if tenant.is_empty() { &COUNTS[..] } else { &COUNTS[..1] };
        for (query, count) in counts {
            let list = get(&side, &format!("/api/v1/search?limit=1&query={}", encode(query)));
            checks.equal(format!("{query}, tenant {tenant:?}"), list["messages_count"].clone(), *count);
        }
    }
}

/// Returns a mail with a name, a subject and a text.
fn mail(name: &str, subject: &str, text: &str) -> Mail {
    let kind = "MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n";
    let text = format!("From: ann@one.test\nTo: bob@two.test\n{kind}Subject: {subject}\n\n{text}\n");
    Mail::new(name, &text).to(&["bob@two.test"])
}

/// Queries with quotes, and the messages that they find.
const QUOTES: [(&str, &[&str]); 10] = [
    ("red green", &["both", "quote", "reverse"]),
    ("\"red green\"", &["both"]),
    ("!\"red green\" lamp", &["quote", "reverse"]),
    ("subject:red lamp shade", &["both", "quote"]),
    ("subject:\"red green\" lamp", &["both"]),
    ("subject:\"red green\" \"lamp shade\"", &["both"]),
    ("subject:\"red 'green\" \"lamp shade\"", &["quote"]),
    ("subject:\"red 'green", &["quote"]),
    ("\"red green\"=\"red green\"", &[]),
    ("\"\"", &["both", "quote", "reverse"]),
];

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("{{{name}}}")).collect()
}

fn quotes(checks: &mut Checks) {
    let mails = [
        mail("both", "red green", "lamp shade"),
        mail("quote", "red 'green", "lamp shade"),
        mail("reverse", "green red", "lamp"),
    ];
    let side = Side::new(&checks.program, &[], &mails);
    for (query, expected) in QUOTES {
        checks.equal(query, found(&side, query), names(expected));
    }
}

/// Subjects, each of which is found as a whole.
const SUBJECTS: [(&str, &str); 7] = [
    ("none", "plain words stand"),
    ("one", "odd% words are"),
    ("two", "even%% words are"),
    ("three", "third%%% words are"),
    ("start", "%first last% words"),
    ("letter", "=?utf-8?Q?=C3=84?="),
    ("letter-percent", "=?utf-8?Q?=C3=96=25?="),
];

fn percent_signs(checks: &mut Checks) {
    let mails = SUBJECTS.map(|(name, subject)| mail(name, subject, "text"));
    let side = Side::new(&checks.program, &[], &mails);
    for (name, subject) in SUBJECTS {
        let subject = subject.replace("=?utf-8?Q?=C3=84?=", "Ä").replace("=?utf-8?Q?=C3=96=25?=", "Ö%");
        let query = format!("subject:\"{subject}\"");
        checks.equal(&query, found(&side, &query), names(&[name]));
    }
}

/// Sizes, and the messages that are larger.
const SIZES: [(&str, &[&str]); 10] = [
    ("1m", &["huge"]),
    ("1mb", &["huge"]),
    ("\"1 M\"", &["huge"]),
    ("\"1 MB\"", &["huge"]),
    ("4k", &["huge", "large"]),
    ("4kb", &["huge", "large"]),
    ("\"4 K\"", &["huge", "large"]),
    ("\"4 kB\"", &["huge", "large"]),
    ("1.5M", &[]),
    ("1234567890", &[]),
];

fn sizes(checks: &mut Checks) {
    let lines = |count: usize| "line\n".repeat(count);
    let mails = [mail("small", "s", "text"), mail("large", "l", &lines(20_000)), mail("huge", "h", &lines(210_000))];
    let side = Side::new(&checks.program, &[], &mails);
    let all = ["huge", "large", "small"];
    for (size, larger) in SIZES {
        checks.equal(format!("larger:{size}"), found(&side, &format!("larger:{size}")), names(larger));
        let smaller: Vec<&str> = all.into_iter().filter(|name| !larger.contains(name)).collect();
        checks.equal(format!("smaller:{size}"), found(&side, &format!("smaller:{size}")), names(&smaller));
    }
    // An invalid size finds nothing.
    for size in ["invalid", "1.2.3", "1.2.3M"] {
        for term in ["larger", "smaller"] {
            checks.equal(format!("{term}:{size}"), found(&side, &format!("{term}:{size}")), names(&[]));
        }
    }
}

fn deletion(checks: &mut Checks) {
    let from = |name: &str, count: usize| -> Vec<Mail> {
        let text = format!("From: {name}@one.test\nTo: bob@two.test\nSubject: Deleted\n\nText\n");
        (0..count).map(|number| Mail::new(&format!("{name}-{number}"), &text).to(&["bob@two.test"])).collect()
    };
    let count = |side: &Side| get(side, "/api/v1/search?limit=100&query=from:ann@one.test")["messages_count"].take();
    for (tenant, ann, cid) in [("", 100, 100), ("Branch 3", 100, 100), ("shop.one.test", 100, 100), ("", 1100, 0)] {
        let what = format!("{ann} of {} messages, tenant {tenant:?}:", ann + cid);
        let side = Side::new(&checks.program, &[("MP_TENANT_ID", tenant), ("MP_MAX_MESSAGES", "0")], &[]);
        deliver(&side.server, &from("ann", ann));
        deliver(&side.server, &from("cid", cid));
        checks.equal(format!("{what} found"), count(&side), ann);
        let request =
            Request { method: "DELETE", path: "/api/v1/search?query=from:ann@one.test".to_owned(), body: None };
        checks.equal(format!("{what} deletion"), send(&side, &request)["status"].take(), 200);
        checks.equal(format!("{what} found after deletion"), count(&side), 0);
        checks.equal(format!("{what} left"), totals(&side), json!([cid, cid]));
    }
}
