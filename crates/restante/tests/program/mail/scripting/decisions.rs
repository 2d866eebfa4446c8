//! Decisions of scripts about senders and recipients, and the default if the script makes none.

use super::folder::Folder;

/// The local part of the address selects the decision of the script.
const DECIDE: &str = r#"
local verdicts = {
  allow = function() return smtp.allow() end,
  defer = function() return smtp.defer() end,
  deny = function() return smtp.deny() end,
  code = function() return smtp.deny(452) end,
  text = function() return smtp.deny(554, "Not on a Monday") end,
  own = function() return smtp.deny(450, "4.2.1 Come back later") end,
  bye = function() return smtp.deny(421, "Service shutting down") end,
  lines = function() return smtp.deny(550, "one\r\n250 two") end,
}

local function judge(address)
  local verdict = verdicts[address.address:match("^[^@]*")]
  return verdict and verdict()
end

function inbucket.before.mail_from_accepted(session)
  return judge(session.from)
end

function inbucket.before.rcpt_to_accepted(session)
  return judge(session.to[#session.to])
end
"#;

/// The decision of the script, and the start of the reply: for a domain that the policy refuses, and for one that it accepts.
const DECISIONS: [(&str, &str, &str); 8] = [
    ("allow", "250", "250"),
    ("defer", "550", "250"),
    ("nothing", "550", "250"),
    ("deny", "550 Mail denied by policy", "550 Mail denied by policy"),
    ("code", "452", "452"),
    ("text", "554 Not on a Monday", "554 Not on a Monday"),
    ("own", "450 4.2.1 Come back later", "450 4.2.1 Come back later"),
    ("lines", "550 one  250 two", "550 one  250 two"),
];

#[test]
fn script_decides_about_senders() {
    let folder = Folder::new("senders", DECIDE);
    let server = folder.start(&["--smtp-rejectorigindomains", "bad.test"]);
    let mut connection = server.connect_smtp();
    connection.expect("220");
    connection.command("EHLO client.test", "250");
    for (local_part, bad, good) in DECISIONS {
        for (domain, reply) in [("bad.test", bad), ("good.test", good)] {
            connection.command(&format!("MAIL FROM:<{local_part}@{domain}>"), reply);
            connection.command("RSET", "250");
        }
    }
    connection.command("MAIL FROM:<>", "250");
}

#[test]
fn decision_421_ends_the_session() {
    let folder = Folder::new("bye", DECIDE);
    let server = folder.start(&[]);
    for lines in [&["MAIL FROM:<bye@x.org>"][..], &["MAIL FROM:<ann@x.org>", "RCPT TO:<bye@x.org>"]] {
        let mut connection = server.connect_smtp();
        connection.expect("220");
        connection.command("EHLO client.test", "250");
        let (last, before) = lines.split_last().unwrap();
        for line in before {
            connection.command(line, "250");
        }
        assert_eq!(connection.command(last, "421"), "421 Service shutting down");
        assert_eq!(connection.line(), None);
    }
}

#[test]
fn script_decides_about_recipients() {
    for policy in [
        &["--smtp-rejectdomains", "bad.test"][..],
        &["--smtp-defaultaccept=false", "--smtp-acceptdomains", "good.test"],
    ] {
        let folder = Folder::new("recipients", DECIDE);
        let server = folder.start(policy);
        let mut connection = server.connect_smtp();
        connection.expect("220");
        connection.command("EHLO client.test", "250");
        connection.command("MAIL FROM:<ann@x.org>", "250");
        for (local_part, bad, good) in DECISIONS {
            for (domain, reply) in [("bad.test", bad), ("good.test", good)] {
                connection.command(&format!("RCPT TO:<{local_part}@{domain}>"), reply);
            }
        }
        // Accepted recipients receive the message, whatever their domain.
        connection.command("DATA", "354");
        connection.command("Subject: hi\r\n\r\nhello\r\n.", "250");
        for (mailbox, count) in [("allow", 1), ("defer", 1), ("nothing", 1), ("deny", 0), ("own", 0)] {
            assert_eq!(server.count(mailbox), count, "{mailbox}");
        }
    }
}

#[test]
fn script_sees_the_state_of_the_session() {
    let folder = Folder::new(
        "session",
        r#"
local note = require("note")

local function list(addresses)
  local texts = {}
  for i, address in ipairs(addresses) do texts[i] = address.name .. "<" .. address.address .. ">" end
  return table.concat(texts, ",")
end

function inbucket.before.mail_from_accepted(session)
  note("mail", session.from.name .. "<" .. session.from.address .. ">", "to", list(session.to), session.remote_addr)
end

function inbucket.before.rcpt_to_accepted(session)
  note("rcpt", session.from.address, "to", list(session.to), session.remote_addr)
  if session.to[#session.to].address == "no@x.org" then return smtp.deny() end
end
"#,
    );
    let server = folder.start(&[]);
    let mut connection = server.connect_smtp();
    connection.expect("220");
    connection.command("EHLO client.test", "250");
    connection.command("MAIL FROM:<Ann@X.org>", "250");
    connection.command("RCPT TO:<bob@x.org>", "250");
    connection.command("RCPT TO:<no@x.org>", "550");
    connection.command("RCPT TO:<Carl+Tag@x.org>", "250");
    connection.command("RCPT TO:<a b@x.org>", "5");
    connection.command("DATA", "354");
    connection.command("Subject: hi\r\n\r\nhello\r\n.", "250");
    connection.command("MAIL FROM:<>", "250");
    connection.command("RCPT TO:<dora@x.org>", "250");
    let expected = [
        "mail <Ann@X.org> to  127.0.0.1",
        "rcpt Ann@X.org to <bob@x.org> 127.0.0.1",
        "rcpt Ann@X.org to <bob@x.org>,<no@x.org> 127.0.0.1",
        "rcpt Ann@X.org to <bob@x.org>,<Carl+Tag@x.org> 127.0.0.1",
        "mail <> to  127.0.0.1",
        "rcpt  to <dora@x.org> 127.0.0.1",
    ];
    assert_eq!(folder.notes(expected.len()), expected);
}

#[test]
fn invalid_decision_is_ignored_and_logged() {
    let folder = Folder::new(
        "nonsense",
        r#"
function inbucket.before.mail_from_accepted(session)
  return "allow"
end

function inbucket.before.rcpt_to_accepted(session)
  return smtp.deny(250, "what is that?")
end
"#,
    );
    let mut server = folder.start(&["--smtp-rejectdomains", "bad.test"]);
    let mut connection = server.connect_smtp();
    connection.start_message("bob@x.org");
    connection.command("RCPT TO:<bob@bad.test>", "550");
    for problem in [
        "before.mail_from_accepted must return smtp.allow(), smtp.defer() or smtp.deny(), not a text script=rules.lua line=2",
        "the code in smtp.deny(code, text) must be a whole number from 400 to 599 script=rules.lua line=6",
    ] {
        server.wait_for_log(problem);
    }
}
