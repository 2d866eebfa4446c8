//! The part of the object `t` that is written in Rust: creates objects for tests and controls the test environment.
//! `t.lua` contains the functions that tests call. On failure a function returns nil and an error message to `t.lua`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mlua::{
    AnyUserData, FromLua as _, FromLuaMulti, Function, IntoLua as _, IntoLuaMulti, Lua, ObjectLike as _, Table, Value,
};
use restante_mail::message::{Headline, Summary};
use restante_mail::mime::NamedAddress;
use restante_mailroom::hooks::IncomingMessage;

use super::environment::{ReleasedMessage, TestEnvironment};
use super::{arguments, fixtures};
use crate::call_error::PRELUDE_NAME;
use crate::event::{CallContext, ScriptEvent};
use crate::objects;

/// The event that is set while test code runs. It is an `after` event, so that tests can use `restante.store`.
pub(super) const TEST_EVENT: ScriptEvent = ScriptEvent::AfterStored;

/// The result of a native function for `t.lua`: a value, or nil and an error message.
type NativeResult = mlua::Result<(Value, Option<String>)>;

/// A function for `t.lua`.
type NativeFunction = fn(&Lua, &TestEnvironment, &Value) -> NativeResult;

/// The functions that `t.lua` calls with one value. Two more are in [`install`].
const NATIVE_FUNCTIONS: [(&str, NativeFunction); 18] = [
    ("session", session),
    ("sender", sender),
    ("candidate", candidate),
    ("message", message),
    ("inbound", inbound_object),
    ("metadata", metadata),
    ("store", store_message),
    ("stored", stored_object),
    ("deleted", deleted_object),
    ("messages", list_messages),
    ("enter_event", enter_event),
    ("leave_event", leave_event),
    ("advance", advance),
    ("logs", logs),
    ("releases", releases),
    ("set_release_error", set_release_error),
    ("set_responder", set_responder),
    ("record_error", record_error),
];

/// Creates the object `t`.
pub(super) fn install(lua: &Lua, environment: &Arc<TestEnvironment>) -> mlua::Result<Value> {
    let native = lua.create_table()?;
    for (name, function) in NATIVE_FUNCTIONS {
        let environment = environment.clone();
        native.raw_set(name, lua.create_function(move |lua, value: Value| function(lua, &environment, &value))?)?;
    }
    let check_verdict = |_: &Lua, (event, result): (String, Value)| Ok(check_verdict(&event, &result));
    native.raw_set("check_verdict", lua.create_function(check_verdict)?)?;
    let environment = environment.clone();
    native
        .raw_set("outcome", lua.create_function(move |lua, pair: (Value, Value)| outcome(lua, &environment, &pair))?)?;
    for class in ["address", "inbound_message", "message_metadata"] {
        let new: Function = lua.globals().get::<Table>(class)?.get("new")?;
        lua.set_named_registry_value(class, new)?;
    }
    lua.load(include_str!("t.lua")).set_name(format!("={PRELUDE_NAME}")).call(native)
}

fn session(lua: &Lua, _: &TestEnvironment, value: &Value) -> NativeResult {
    to_native_result(fixtures::parse_session(value), |session| {
        objects::session(lua, &session.from, session.ip, &session.to)
    })
}

/// Returns the session as it is when the script decides about its sender: without recipients.
fn sender(lua: &Lua, _: &TestEnvironment, value: &Value) -> NativeResult {
    to_native_result(fixtures::parse_session(value), |session| objects::session(lua, &session.from, session.ip, &[]))
}

/// Returns the session as it is when the script decides about its last recipient.
fn candidate(lua: &Lua, _: &TestEnvironment, value: &Value) -> NativeResult {
    let session = fixtures::parse_session(value).and_then(|session| {
        if session.to.is_empty() { Err("the session has no recipient".to_owned()) } else { Ok(session) }
    });
    to_native_result(session, |session| objects::session(lua, &session.from, session.ip, &session.to))
}

/// Returns a message as a script creates it with `inbound_message.new()`, whose source can be set.
fn message(lua: &Lua, environment: &TestEnvironment, value: &Value) -> NativeResult {
    to_native_result(fixtures::parse_inbound(value, environment.naming), |message| new_message(lua, &message))
}

/// Returns the object that the server passes to `before.message_stored`.
fn inbound_object(lua: &Lua, environment: &TestEnvironment, value: &Value) -> NativeResult {
    to_native_result(fixtures::parse_inbound(value, environment.naming), |message| objects::inbound(lua, &message))
}

/// Returns the message as it would be stored after the script's function returned `result`; nil if it would be
/// discarded.
fn outcome(lua: &Lua, environment: &TestEnvironment, (message, result): &(Value, Value)) -> NativeResult {
    let outcome = fixtures::parse_inbound(message, environment.naming).and_then(|message| {
        let changed = objects::parse_inbound_result(result, &message, environment.naming);
        let changed = changed.map_err(|text| format!("{} {text}", ScriptEvent::BeforeStored))?;
        Ok(changed.unwrap_or(message))
    });
    to_native_result(
        outcome,
        |message| if message.mailboxes.is_empty() { Ok(Value::Nil) } else { new_message(lua, &message) },
    )
}

/// Returns a message with its source set on the object, because there is no delivery to read it from.
fn new_message(lua: &Lua, message: &IncomingMessage) -> mlua::Result<Value> {
    let object: AnyUserData = construct(lua, "inbound_message", ())?;
    let mut mailboxes: Vec<&str> = Vec::new();
    for mailbox in &message.mailboxes {
        if !mailboxes.contains(&mailbox.as_str()) {
            mailboxes.push(mailbox.as_str());
        }
    }
    object.set("mailboxes", mailboxes)?;
    set_headline(lua, &object, &message.headline)?;
    object.set("source", lua.create_string(&message.body)?)?;
    Ok(Value::UserData(object))
}

/// Returns metadata with the source set on the object, because the message is not in the store.
fn metadata(lua: &Lua, environment: &TestEnvironment, value: &Value) -> NativeResult {
    to_native_result(parse_stored(environment, value), |(summary, source)| {
        let object: AnyUserData = construct(lua, "message_metadata", ())?;
        object.set("mailbox", summary.mailbox.as_str())?;
        object.set("id", summary.id.to_string())?;
        object.set("date", summary.received.as_second())?;
        set_headline(lua, &object, &summary.headline)?;
        object.set("source", lua.create_string(&source)?)?;
        Ok(Value::UserData(object))
    })
}

fn set_headline(lua: &Lua, object: &AnyUserData, headline: &Headline) -> mlua::Result<()> {
    let address = |text: &str| {
        let NamedAddress { name, address } = NamedAddress::from_display(text);
        construct::<Value>(lua, "address", (name, address))
    };
    let to = headline.to().map(address).collect::<mlua::Result<Vec<_>>>()?;
    object.set("from", address(headline.from())?)?;
    object.set("to", to)?;
    object.set("subject", headline.subject())
}

/// Calls a constructor. It is stored in the registry, because a test may have a global variable `address`.
fn construct<T: FromLuaMulti>(lua: &Lua, class: &str, arguments: impl IntoLuaMulti) -> mlua::Result<T> {
    lua.named_registry_value::<Function>(class)?.call(arguments)
}

/// Stores a message.
fn store_message(lua: &Lua, environment: &TestEnvironment, value: &Value) -> NativeResult {
    to_native_result(parse_stored(environment, value), |(summary, source)| {
        let object = objects::metadata(lua, &summary, true)?;
        environment.add_message(summary, source);
        Ok(object)
    })
}

/// Returns a stored message. A table is stored now; an object is returned as it is.
fn stored_object(lua: &Lua, environment: &TestEnvironment, value: &Value) -> NativeResult {
    if !value.is_userdata() {
        return store_message(lua, environment, value);
    }
    let parsed = parse_stored(environment, value).map(|_| ());
    to_native_result(parsed, |()| Ok(value.clone()))
}

/// Deletes a message and returns its metadata.
fn deleted_object(lua: &Lua, environment: &TestEnvironment, value: &Value) -> NativeResult {
    to_native_result(parse_stored(environment, value), |(summary, _)| {
        environment.remove(&summary.mailbox, summary.id);
        objects::metadata(lua, &summary, false)
    })
}

fn parse_stored(environment: &TestEnvironment, value: &Value) -> Result<(Summary, Bytes), String> {
    fixtures::parse_stored(value, environment.naming, environment.next_id(), environment.now())
}

fn list_messages(lua: &Lua, environment: &TestEnvironment, value: &Value) -> NativeResult {
    let mailbox =
        arguments::text("the mailbox", value).and_then(|name| fixtures::parse_mailbox(environment.naming, &name));
    to_native_result(mailbox, |mailbox| {
        let messages = environment.messages(&mailbox);
        let messages =
            messages.iter().map(|message| objects::metadata(lua, message, true)).collect::<mlua::Result<Vec<_>>>()?;
        lua.create_sequence_from(messages).map(Value::Table)
    })
}

fn advance(lua: &Lua, environment: &TestEnvironment, value: &Value) -> NativeResult {
    let seconds = f64::from_lua(value.clone(), lua).ok();
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    to_native_result(duration.ok_or_else(|| "t.advance takes a number of seconds, 0 or more".to_owned()), |duration| {
        environment.advance(duration);
        Ok(Value::Nil)
    })
}

/// Prepares the call of the script's function for an event. Returns a table with the function and the globals of the
/// test.
fn enter_event(lua: &Lua, _: &TestEnvironment, value: &Value) -> NativeResult {
    let name = value.to_string()?;
    let event =
        ScriptEvent::from_name(&name).ok_or_else(|| mlua::Error::runtime(format!("there is no event {name}")))?;
    let call = lua.create_table()?;
    call.raw_set("handler", objects::handler(lua, event))?;
    let globals = lua.create_table()?;
    copy_table(&globals, &lua.globals())?;
    call.raw_set("globals", globals)?;
    set_event(lua, event)?;
    objects::set_handlers_frozen(lua, true);
    Ok((Value::Table(call), None))
}

/// Returns to the test after a call. The globals of the function are discarded, as after a call by the server.
fn leave_event(lua: &Lua, _: &TestEnvironment, value: &Value) -> NativeResult {
    set_event(lua, TEST_EVENT)?;
    objects::set_handlers_frozen(lua, false);
    objects::clear_message_cache(lua);
    if let Value::Table(call) = value {
        let globals = lua.globals();
        globals.clear()?;
        copy_table(&globals, &call.raw_get("globals")?)?;
    }
    Ok((Value::Nil, None))
}

fn set_event(lua: &Lua, event: ScriptEvent) -> mlua::Result<()> {
    let context = CallContext::current(lua)?;
    lua.set_app_data(CallContext { event: Some(event), ..context });
    Ok(())
}

fn copy_table(target: &Table, source: &Table) -> mlua::Result<()> {
    source.for_each(|key: Value, value: Value| target.raw_set(key, value))
}

/// Returns an error if `result` is not a valid verdict.
fn check_verdict(event: &str, result: &Value) -> Option<String> {
    objects::parse_verdict(result).err().map(|text| format!("{event} {text}"))
}

/// Appends the new log lines to a list.
fn logs(lua: &Lua, environment: &TestEnvironment, value: &Value) -> NativeResult {
    let Value::Table(list) = value else { return Ok((Value::Nil, None)) };
    for entry in environment.log_after(list.raw_len()) {
        let table = lua.create_table()?;
        table.raw_set("level", entry.level.name())?;
        table.raw_set("text", entry.text)?;
        let fields = lua.create_table()?;
        for (name, value) in &entry.fields {
            fields.raw_set(name.as_str(), json_value(lua, value)?)?;
        }
        table.raw_set("fields", fields)?;
        list.raw_push(table)?;
    }
    Ok((value.clone(), None))
}

/// Converts the value of a log field. Tables become JSON text, as in the log.
fn json_value(lua: &Lua, value: &serde_json::Value) -> mlua::Result<Value> {
    match value {
        serde_json::Value::Bool(value) => Ok(Value::Boolean(*value)),
        serde_json::Value::Number(number) => number.as_f64().into_lua(lua),
        serde_json::Value::String(text) => text.as_str().into_lua(lua),
        other => other.to_string().into_lua(lua),
    }
}

/// Appends the messages that were released since the last call to a list.
fn releases(lua: &Lua, environment: &TestEnvironment, value: &Value) -> NativeResult {
    let Value::Table(list) = value else { return Ok((Value::Nil, None)) };
    for ReleasedMessage { mailbox, id, release } in environment.releases_after(list.raw_len()) {
        let table = lua.create_table()?;
        table.raw_set("mailbox", mailbox.as_str())?;
        table.raw_set("id", id.to_string())?;
        table.raw_set("target", release.target)?;
        table.raw_set("to", (!release.recipients.is_empty()).then_some(release.recipients))?;
        list.raw_push(table)?;
    }
    Ok((value.clone(), None))
}

/// Sets the error text that every release returns; nil for none.
fn set_release_error(lua: &Lua, environment: &TestEnvironment, value: &Value) -> NativeResult {
    environment.state.lock().release_error = Option::from_lua(value.clone(), lua)?;
    Ok((Value::Nil, None))
}

/// Sets the function of the test that responds to requests.
fn set_responder(lua: &Lua, environment: &TestEnvironment, value: &Value) -> NativeResult {
    environment.state.lock().responder = Some(Function::from_lua(value.clone(), lua)?);
    Ok((Value::Nil, None))
}

/// Records an error that the script did not see.
fn record_error(_: &Lua, environment: &TestEnvironment, value: &Value) -> NativeResult {
    // This can run a function of the script, so it comes before the lock.
    let text = value.to_string()?;
    environment.state.lock().error.get_or_insert(text);
    Ok((Value::Nil, None))
}

fn to_native_result<T>(result: Result<T, String>, make: impl FnOnce(T) -> mlua::Result<Value>) -> NativeResult {
    match result {
        Ok(value) => Ok((make(value)?, None)),
        Err(error) => Ok((Value::Nil, Some(error))),
    }
}
