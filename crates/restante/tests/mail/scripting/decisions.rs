//! What a script says about senders and recipients, and who decides when it says nothing.

use super::folder::Folder;

/// The local part of the address in question says what the script answers.
const JUDGE: &str = r#"
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

/// What the script says, where the rules about domains say no and where they say yes: a part of the reply.
const VERDICTS: [(&str, &str, &str); 8] = [
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
fn senders_are_judged() {
    let folder = Folder::new("senders", JUDGE);
    let server = folder.start(&["--smtp-rejectorigindomains", "bad.test"]);
    let mut talk = server.talk();
    talk.expect("220");
    talk.say("EHLO client.test", "250");
    for (who, bad, good) in VERDICTS {
        for (domain, reply) in [("bad.test", bad), ("good.test", good)] {
            talk.say(&format!("MAIL FROM:<{who}@{domain}>"), reply);
            talk.say("RSET", "250");
        }
    }
    talk.say("MAIL FROM:<>", "250");
}

#[test]
fn a_verdict_of_421_ends_the_session() {
    let folder = Folder::new("bye", JUDGE);
    let server = folder.start(&[]);
    for lines in [&["MAIL FROM:<bye@x.org>"][..], &["MAIL FROM:<ann@x.org>", "RCPT TO:<bye@x.org>"]] {
        let mut talk = server.talk();
        talk.expect("220");
        talk.say("EHLO client.test", "250");
        let (last, before) = lines.split_last().unwrap();
        for line in before {
            talk.say(line, "250");
        }
        assert_eq!(talk.say(last, "421"), "421 Service shutting down");
        assert_eq!(talk.line(), None);
    }
}

#[test]
fn recipients_are_judged() {
    for policy in [
        &["--smtp-rejectdomains", "bad.test"][..],
        &["--smtp-defaultaccept=false", "--smtp-acceptdomains", "good.test"],
    ] {
        let folder = Folder::new("recipients", JUDGE);
        let server = folder.start(policy);
        let mut talk = server.talk();
        talk.expect("220");
        talk.say("EHLO client.test", "250");
        talk.say("MAIL FROM:<ann@x.org>", "250");
        for (who, bad, good) in VERDICTS {
            for (domain, reply) in [("bad.test", bad), ("good.test", good)] {
                talk.say(&format!("RCPT TO:<{who}@{domain}>"), reply);
            }
        }
        // Whoever was accepted gets the mail, wherever the domain.
        talk.say("DATA", "354");
        talk.say("Subject: hi\r\n\r\nhello\r\n.", "250");
        for (mailbox, count) in [("allow", 1), ("defer", 1), ("nothing", 1), ("deny", 0), ("own", 0)] {
            assert_eq!(server.count(mailbox), count, "{mailbox}");
        }
    }
}

#[test]
fn a_session_is_seen_as_it_goes_on() {
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
    let mut talk = server.talk();
    talk.expect("220");
    talk.say("EHLO client.test", "250");
    talk.say("MAIL FROM:<Ann@X.org>", "250");
    talk.say("RCPT TO:<bob@x.org>", "250");
    talk.say("RCPT TO:<no@x.org>", "550");
    talk.say("RCPT TO:<Carl+Tag@x.org>", "250");
    talk.say("RCPT TO:<a b@x.org>", "5");
    talk.say("DATA", "354");
    talk.say("Subject: hi\r\n\r\nhello\r\n.", "250");
    talk.say("MAIL FROM:<>", "250");
    talk.say("RCPT TO:<dora@x.org>", "250");
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
fn a_verdict_that_makes_no_sense_is_none() {
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
    let mut talk = server.talk();
    talk.open_mail("bob@x.org");
    talk.say("RCPT TO:<bob@bad.test>", "550");
    for problem in [
        "before.mail_from_accepted must return smtp.allow(), smtp.defer() or smtp.deny(), not a text script=rules.lua line=2",
        "the code in smtp.deny(code, text) must be a whole number from 400 to 599 script=rules.lua line=6",
    ] {
        server.logged(problem);
    }
}
