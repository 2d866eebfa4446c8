//! Tests of reading and writing fields.

use mlua::Lua;

use super::super::{handler, metadata, session};
use super::{address, check, run, state, summary, with_message};
use crate::event::ScriptEvent;

const KNOWN_EVENTS: &str = "functions can be assigned to inbucket.before.mail_from_accepted, inbucket.before.rcpt_to_accepted, \
    inbucket.before.message_stored, inbucket.after.message_stored, inbucket.after.message_deleted";

#[test]
fn addresses() {
    check(
        |_| {},
        &[
            ("return address.new('Jane', 'jane@x').name", "Jane"),
            ("return address.new('Jane', 'jane@x').address", "jane@x"),
            ("return address.new('Jane', 'jane@x')", "Jane <jane@x>"),
            ("return address.new('', 'jane@x')", "<jane@x>"),
            ("return address.new(1, 2)", "1 <2>"),
            ("return address.new('a', 'b').domain", "nil"),
            ("return address.new('a', 'b')[1]", "nil"),
            ("local a = address.new('', ''); a.name = 'N'; a.address = 12; return a", "N <12>"),
            ("return address.new('a', 'b') == address.new('a', 'b')", "true"),
            ("return address.new('a', 'b') == address.new('a', 'c')", "false"),
            ("return address.new('a', 'b') == smtp.allow()", "false"),
            ("address.new('x')", "error: the address in address.new(name, address) must be a text, not nil"),
            ("address.new({}, 'x')", "error: the name in address.new(name, address) must be a text, not a table"),
            ("address.new('a', 'b').domain = 'x'", "error: attempt to set unknown field 'domain' of address"),
            ("address.new('a', 'b').name = nil", "error: address.name must be a text, not nil"),
            ("address.new('a', 'b').address = true", "error: address.address must be a text, not a boolean"),
            ("address.new('a', 'b')[true] = 1", "error: attempt to set unknown field 'true' of address"),
            (
                "address.new('a', 'b')[setmetatable({}, {__tostring = error})] = 1",
                "error: attempt to set unknown field 'a table' of address",
            ),
        ],
    );
}

#[test]
fn internals_of_addresses_and_sessions_are_protected() {
    check(
        with_message,
        &[
            ("return getmetatable(address.new('a', 'b'))", "false"),
            ("return getmetatable(smtp_session.new())", "false"),
            ("return select(2, pcall(setmetatable, address.new('a', 'b'), {}))", "cannot change a protected metatable"),
            ("local a = address.new('a', 'b'); rawset(a, 'name', {}); a.address = 'c'; return a", "a <c>"),
            ("local a = address.new('a', 'b'); for k in pairs(a) do rawset(a, k, nil) end; return a.name", "nil"),
            ("local a = address.new('a', 'b'); for k in pairs(a) do rawset(a, k, nil) end; return a", "address"),
            (
                "local a = address.new('a', 'b'); for k in pairs(a) do rawset(a, k, nil) end; a.name = 'x'",
                "error: attempt to set unknown field '\0name' of address",
            ),
            (
                "msg.from = setmetatable({name = 'a', address = 'b'}, {class = msg})",
                "error: inbound_message.from must be an address, not a table",
            ),
            ("msg.from = smtp_session.new()", "error: inbound_message.from must be an address, not another object"),
            (
                "msg.to = smtp_session.new()",
                "error: inbound_message.to must be a list of addresses, not another object",
            ),
            (
                "msg.mailboxes = address.new('', '')",
                "error: inbound_message.mailboxes must be a list of texts, not another object",
            ),
            (
                "msg.mailboxes = {address.new('', '')}",
                "error: inbound_message.mailboxes must be a list of texts, but item 1 is another object",
            ),
            (
                "smtp_session.new().to = address.new('', '')",
                "error: smtp_session.to must be a list of addresses, not another object",
            ),
        ],
    );
}

#[test]
fn sessions() {
    let prepare = |lua: &Lua| {
        let (jane, ip) = (Some(address("jane@x.org")), Some([192, 0, 2, 7].into()));
        let to = ["a@y.org", "\"b c\"@y.org", "d@z.org"].map(address);
        let globals = lua.globals();
        globals.set("s", session(lua, &jane, ip, &to).unwrap()).unwrap();
        globals.set("bounce", session(lua, &None, ip, &[]).unwrap()).unwrap();
        globals.set("unix", session(lua, &None, None, &[]).unwrap()).unwrap();
    };
    check(
        prepare,
        &[
            ("return s.from.address", "jane@x.org"),
            ("return s.from.name", ""),
            ("return type(s.to) .. #s.to", "table3"),
            ("return s.to[1].address .. ' ' .. s.to[2].address", "a@y.org \"b c\"@y.org"),
            ("return s.to[#s.to].address", "d@z.org"),
            ("return s.remote_addr", "192.0.2.7"),
            ("return rawequal(s.from, s.from) and rawequal(s.to, s.to)", "true"),
            ("s.remote_addr = 'x'; s.from.address = 'y'; return s.remote_addr .. s.from.address .. s.from.name", "xy"),
            ("return unix.remote_addr", ""),
            ("return bounce.from.name .. bounce.from.address .. #bounce.to", "0"),
            ("return s", "smtp_session(192.0.2.7)"),
            ("return s.helo", "nil"),
            ("s.helo = 'x'", "error: attempt to set unknown field 'helo' of smtp_session"),
            ("local n = smtp_session.new(); return n.from.address .. #n.to .. n.remote_addr", "0"),
            ("local n = smtp_session.new(); n.remote_addr = '::1'; return n.remote_addr", "::1"),
            ("local n = smtp_session.new(); n.from = address.new('', 'a@x'); return n.from", "<a@x>"),
            ("local n = smtp_session.new(); table.insert(n.to, address.new('', 'a@x')); return n.to[1]", "<a@x>"),
            ("smtp_session.new().from = 'a@x'", "error: smtp_session.from must be an address, not a text"),
            (
                "smtp_session.new().to = {'a@x'}",
                "error: smtp_session.to must be a list of addresses, but item 1 is a text",
            ),
        ],
    );
}

#[test]
fn inbound_messages() {
    check(
        with_message,
        &[
            ("return table.concat(msg.mailboxes, ' ')", "jane joe"),
            ("return msg.from", "Ann <a@x>"),
            ("return msg.from.name", "Ann"),
            ("return #msg.to .. msg.to[1].address .. msg.to[2].name", "2jane@xJoe  D."),
            ("return msg.subject", "Hello"),
            ("return msg.size", &super::MAIL.len().to_string()),
            ("return msg", "inbound_message(Hello)"),
            ("return msg.body", "nil"),
            ("return msg[1]", "nil"),
            ("msg.mailboxes = {'x'}; table.insert(msg.mailboxes, 'y'); return #msg.mailboxes", "2"),
            ("msg.subject = 12; return msg.subject .. '!'", "12!"),
            ("msg.subject = 'New'; return msg", "inbound_message(New)"),
            ("msg.from.name = 'Neu'; return msg.from", "Neu <a@x>"),
            ("msg.from = address.new('N', 'a'); return msg.from", "N <a>"),
            ("msg.to = {}; return #msg.to", "0"),
            ("msg.body = ''", "error: attempt to set unknown field 'body' of inbound_message"),
            ("msg[1] = ''", "error: attempt to set unknown field '1' of inbound_message"),
            ("msg.size = 1", "error: inbound_message.size is read-only"),
            ("msg.text = 'x'", "error: inbound_message.text is read-only"),
            ("msg.source = 'x'", "error: inbound_message.source is read-only except in a new inbound_message"),
            ("msg.subject = {}", "error: inbound_message.subject must be a text, not a table"),
            ("msg.subject = nil", "error: inbound_message.subject must be a text, not nil"),
            ("msg.mailboxes = 'x'", "error: inbound_message.mailboxes must be a list of texts, not a text"),
            (
                "msg.mailboxes = {'x', {}}",
                "error: inbound_message.mailboxes must be a list of texts, but item 2 is a table",
            ),
            (
                "msg.mailboxes = {'a b'}",
                "error: inbound_message.mailboxes holds 'a b': the local part has a character that needs quotes",
            ),
            ("msg.from = 'x'", "error: inbound_message.from must be an address, not a text"),
            ("msg.from = smtp.allow()", "error: inbound_message.from must be an address, not another object"),
            (
                "msg.to = address.new('', '')",
                "error: inbound_message.to must be a list of addresses, not another object",
            ),
            ("msg.to = {'x'}", "error: inbound_message.to must be a list of addresses, but item 1 is a text"),
            ("local n = inbound_message.new(); return #n.mailboxes .. #n.to .. n.subject .. n.size", "000"),
            ("local n = inbound_message.new(); return n.from == address.new('', '')", "true"),
            ("local n = inbound_message.new(); n.subject = 'S'; return n", "inbound_message(S)"),
        ],
    );
}

#[test]
fn errors_are_truncated() {
    let (lua, _) = state();
    with_message(&lua);
    let table = [
        "msg[('x'):rep(1e6)] = 1",
        "msg.mailboxes = {('x'):rep(1e6)}",
        "inbucket[('x'):rep(1e6)] = 1",
        "inbucket.before[('x'):rep(1e6)] = 1",
    ];
    for script in table {
        let error = run(&lua, script);
        assert!(error.lines().next().is_some_and(|line| line.contains("rules.lua:1:") && line.len() < 500), "{script}");
    }
}

#[test]
fn metadata_of_messages() {
    check(
        |lua| lua.globals().set("meta", metadata(lua, &summary("jane"), true).unwrap()).unwrap(),
        &[
            ("return meta.mailbox", "jane"),
            ("return type(meta.id) .. meta.id", "string1794711170000001"),
            ("return meta.from", "Ann <a@x>"),
            ("return #meta.to .. meta.to[1].address", "2jane@x"),
            ("return type(meta.date) .. meta.date", "number1794711170"),
            ("return meta.subject", "Hello"),
            ("return meta.size", "1234"),
            ("return meta.seen", "nil"),
            ("return meta", "message_metadata(Hello)"),
            ("meta.seen = true", "error: attempt to set unknown field 'seen' of message_metadata"),
            ("meta.date = 'soon'", "error: message_metadata.date must be a number, not a text"),
            ("meta.source = ''", "error: message_metadata.source is read-only except in a new message_metadata"),
            ("local n = message_metadata.new(); return n.mailbox .. n.id .. n.date .. n.size .. #n.to", "000"),
            (
                "local n = message_metadata.new(); n.mailbox = 'm'; n.id = 7; n.date = '5'; n.size = 3; n.subject = 's' \
                 n.from = address.new('', 'a'); n.to = {n.from}; \
                 return n.mailbox .. n.id .. n.date + 1 .. n.size .. n.subject .. n.to[1].address",
                "m763sa",
            ),
        ],
    );
}

#[test]
fn verdicts() {
    check(
        |_| {},
        &[
            ("return smtp.allow()", "smtp.allow"),
            ("return smtp.defer().action", "defer"),
            ("return smtp.allow().code", "nil"),
            ("return smtp.deny()", "smtp.deny(550, Mail denied by policy)"),
            ("return smtp.deny(451).code", "451"),
            ("return smtp.deny('451', 'Later').text", "Later"),
            ("return smtp.deny(nil, 'No').code", "550"),
            ("return smtp.deny(550, 'a\\r\\n250 Ok\\0').text", "a  250 Ok "),
            ("return smtp.deny(550, ' \\n').text", "Mail denied by policy"),
            ("return #smtp.deny(550, ('x'):rep(1000)).text", "400"),
            ("return #smtp.deny(550, 'x' .. ('€'):rep(1000)).text", "400"),
            ("return #smtp.deny(550, ('€'):rep(1000)).text", "399"),
            ("return smtp.deny(551, 'x') == smtp.deny(551, 'x')", "true"),
            ("return smtp.deny(551, 'x') == smtp.deny(552, 'x')", "false"),
            ("return smtp.allow() == smtp.defer()", "false"),
            ("return rawequal(smtp.defer(), smtp.defer())", "true"),
            ("smtp.deny(250)", "error: the code in smtp.deny(code, text) must be a whole number from 400 to 599"),
            ("smtp.deny(600)", "error: the code in smtp.deny(code, text) must be a whole number from 400 to 599"),
            ("smtp.deny(550.5)", "error: the code in smtp.deny(code, text) must be a whole number from 400 to 599"),
            ("smtp.deny('no')", "error: the code in smtp.deny(code, text) must be a whole number from 400 to 599"),
            ("smtp.deny(550, {})", "error: the text in smtp.deny(code, text) must be a text, not a table"),
            ("smtp.deny().code = 1", "error: a verdict of smtp is read-only"),
            ("smtp.deny().colour = 1", "error: attempt to set unknown field 'colour' of a verdict of smtp"),
        ],
    );
}

#[test]
fn inbucket_object() {
    let unknown_event = format!("error: there is no event before.no_such_event; {KNOWN_EVENTS}");
    let renamed =
        "error: there is no event before.mail_accepted any more; it is now inbucket.before.mail_from_accepted(session)";
    let not_a_function = "error: inbucket.before.message_stored must be a function, not a text";
    let unknown_field = format!("error: attempt to set field 'before' of inbucket; {KNOWN_EVENTS}");
    check(
        |lua| {
            for field in ["store", "sleep"] {
                lua.set_named_registry_value(&format!("restante.{field}"), format!("the {field}")).unwrap();
            }
        },
        &[
            ("return inbucket == restante", "true"),
            ("return inbucket.before == restante.before", "true"),
            ("return inbucket.version", env!("CARGO_PKG_VERSION")),
            ("return inbucket.store", "the store"),
            ("return inbucket.sleep", "the sleep"),
            ("return inbucket.shared", "nil"),
            ("return inbucket.during", "nil"),
            ("inbucket.config.decode_headers = {'subject'}; return inbucket.config.decode_headers[1]", "subject"),
            ("inbucket.config = {x = 1}; return restante.config.x", "1"),
            ("return inbucket.before.message_stored", "nil"),
            ("return inbucket.before.message_deleted", "nil"),
            ("return inbucket.before.no_such_event", "nil"),
            (
                "local f = function() end; inbucket.after.message_stored = f; return restante.after.message_stored == f",
                "true",
            ),
            ("function inbucket.before.no_such_event() end", &unknown_event),
            ("function inbucket.before.mail_accepted() end", renamed),
            ("inbucket.before.message_stored = 'x'", not_a_function),
            ("inbucket.before = {}", &unknown_field),
        ],
    );
}

#[test]
fn event_functions_can_be_defined_and_chained() {
    for event in ScriptEvent::ALL {
        let (lua, _) = state();
        assert!(handler(&lua, event).is_none());
        run(&lua, &format!("function inbucket.{event}(x) return x + 1 end"));
        let others = ScriptEvent::ALL.into_iter().filter(|other| handler(&lua, *other).is_some());
        assert_eq!(others.collect::<Vec<_>>(), [event]);
        // Scripts chain functions that others have defined.
        run(&lua, &format!("local f = inbucket.{event}; inbucket.{event} = function(x) return f(x) * 2 end"));
        assert_eq!(handler(&lua, event).unwrap().call::<i32>(3).unwrap(), 8);
        run(&lua, &format!("inbucket.{event} = nil"));
        assert!(handler(&lua, event).is_none());
    }
}
