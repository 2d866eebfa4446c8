//! The objects and constructors of scripts in Lua.

use std::fmt::Write as _;

use super::folder::Folder;

/// Expressions with their value, or with the error text without its location.
const TABLE: [(&str, &str); 40] = [
    ("restante == inbucket", "true"),
    ("address.new('Ann', 'ann@x.org').name", "Ann"),
    ("address.new('Ann', 'ann@x.org').address", "ann@x.org"),
    ("address.new('Ann', 'ann@x.org').nothing", "nil"),
    ("set(address.new('', ''), 'name', 'Bob').name", "Bob"),
    ("set(address.new('', ''), 'address', 'bob@x.org').address", "bob@x.org"),
    ("set(address.new('', ''), 'nothing', 1)", "attempt to set unknown field 'nothing' of address"),
    ("address.new('Ann')", "the address in address.new(name, address) must be a text, not nil"),
    ("#inbound_message.new().mailboxes", "0"),
    ("#inbound_message.new().to", "0"),
    ("inbound_message.new().from.address", ""),
    ("inbound_message.new().subject", ""),
    ("inbound_message.new().size", "0"),
    ("inbound_message.new().nothing", "nil"),
    ("set(inbound_message.new(), 'mailboxes', {'a', 'b'}).mailboxes[2]", "b"),
    ("set(inbound_message.new(), 'subject', 'hi').subject", "hi"),
    ("set(inbound_message.new(), 'from', address.new('', 'a@x.org')).from.address", "a@x.org"),
    ("set(inbound_message.new(), 'to', {address.new('', 'a@x.org')}).to[1].address", "a@x.org"),
    ("set(inbound_message.new(), 'from', 'a@x.org')", "inbound_message.from must be an address, not a text"),
    ("set(inbound_message.new(), 'size', 1)", "inbound_message.size is read-only"),
    ("set(inbound_message.new(), 'nothing', 1)", "attempt to set unknown field 'nothing' of inbound_message"),
    ("message_metadata.new().mailbox", ""),
    ("message_metadata.new().date", "0"),
    ("set(message_metadata.new(), 'mailbox', 'bob').mailbox", "bob"),
    ("set(message_metadata.new(), 'id', '7').id", "7"),
    ("set(message_metadata.new(), 'date', 1000).date", "1000"),
    ("set(message_metadata.new(), 'subject', 'hi').subject", "hi"),
    ("set(message_metadata.new(), 'size', 9).size", "9"),
    ("set(message_metadata.new(), 'to', {address.new('', 'a@x.org')}).to[1].address", "a@x.org"),
    ("message_metadata.new().nothing", "nil"),
    ("set(message_metadata.new(), 'nothing', 1)", "attempt to set unknown field 'nothing' of message_metadata"),
    ("smtp_session.new().remote_addr", ""),
    ("#smtp_session.new().to", "0"),
    ("set(smtp_session.new(), 'remote_addr', '::1').remote_addr", "::1"),
    ("set(smtp_session.new(), 'from', address.new('', 'a@x.org')).from.address", "a@x.org"),
    ("smtp_session.new().nothing", "nil"),
    ("set(smtp_session.new(), 'nothing', 1)", "attempt to set unknown field 'nothing' of smtp_session"),
    ("inbucket.nothing", "nil"),
    ("inbucket.before.mail_from_accepted ~= nil", "true"),
    ("inbucket.after.message_deleted", "nil"),
];

#[test]
fn objects_are_created_read_and_written() {
    let mut script = r#"
local note = require("note")
function set(object, field, value) object[field] = value return object end
function inbucket.before.mail_from_accepted(session)
"#
    .to_owned();
    for (expression, _) in TABLE {
        writeln!(
            script,
            "note((tostring(select(2, pcall(function() return {expression} end))):gsub('^rules.lua:%d+: ', '')))"
        )
        .unwrap();
    }
    script.push_str("end\n");
    let folder = Folder::new("objects", &script);
    let server = folder.start(&[]);
    server.connect_smtp().start_message("bob@x.org");
    for ((expression, expected), note) in TABLE.into_iter().zip(folder.notes(TABLE.len())) {
        assert_eq!(note, expected, "{expression}");
    }
}

#[test]
fn global_assignments_of_a_call_do_not_persist() {
    let folder = Folder::new(
        "globals",
        r#"
local note = require("note")
kept = "from the file"

function inbucket.before.mail_from_accepted(session)
  count = (count or 0) + 1
  note(count, kept)
  kept = "from a call"
end

function inbucket.before.rcpt_to_accepted(session)
  note(count, kept, inbucket.shared.incr("recipients", 1))
end
"#,
    );
    let server = folder.start(&["--lua-states", "1"]);
    for _ in 0..2 {
        server.connect_smtp().start_message("bob@x.org");
    }
    let expected = ["1 from the file", "nil from the file 1", "1 from the file", "nil from the file 2"];
    assert_eq!(folder.notes(4), expected);
}
