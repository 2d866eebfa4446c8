//! `restante.release`: sends a stored message to a real mailbox through the relay, for `after` hooks only. The message
//! is added to the queue of the relay, so the script does not wait until it is sent.

use std::sync::Arc;

use mlua::{Function, Lua, LuaString, Table, Value};

use super::convert::text_prefix;
use super::store::{parse_id, prepare};
use crate::objects::describe_type;
use crate::services::{MailAccess, NO_SUCH_MESSAGE, Release};

/// The name of the function.
const NAME: &str = "restante.release";

/// The maximum number of recipients.
const MAX_RECIPIENTS: usize = 100;

/// How much of an address or a name is read. Valid ones are shorter.
const MAX_TEXT_BYTES: usize = 1000;

/// Creates the function `release(mailbox, id [, {to=, target=}])`. It returns the id of the entry, or nil and an error
/// text.
pub(super) fn function(lua: &Lua, access: &Arc<dyn MailAccess>) -> mlua::Result<Function> {
    let mail = Arc::clone(access);
    lua.create_function(move |lua, (mailbox, id, options): (LuaString, Value, Option<Table>)| {
        let (mailbox, timeout) = prepare(lua, &*mail, NAME, &mailbox)?;
        let release = match options {
            Some(options) => parse_options(&options)?,
            None => Ok(Release::default()),
        };
        let id = parse_id(lua, &id)?;
        let result = release.and_then(|release| {
            let id = id.ok_or(NO_SUCH_MESSAGE)?;
            mail.release(&mailbox, id, release, timeout)
        });
        Ok(match result {
            Ok(entry) => (Some(entry), None),
            Err(error) => (None, Some(error)),
        })
    })
}

/// Parses the options. The inner error is the error text that the function returns; wrong types raise an error.
fn parse_options(options: &Table) -> mlua::Result<Result<Release, String>> {
    options.for_each(|key: Value, _: Value| match key.as_string().map(|key| text_prefix(key, MAX_TEXT_BYTES)) {
        Some(name) if name == "to" || name == "target" => Ok(()),
        Some(name) => Err(mlua::Error::runtime(format!("{NAME} has no option {name:?}; its options are to, target"))),
        None => Err(mlua::Error::runtime(format!("{NAME} takes a table with the options to, target"))),
    })?;
    let target = match options.raw_get("target")? {
        Value::Nil => None,
        value => Some(parse_text("target", &value)?),
    };
    let recipients = match options.raw_get("to")? {
        Value::Nil => return Ok(Ok(Release { target, recipients: Vec::new() })),
        Value::Table(list) => {
            let values = list.sequence_values::<Value>().take(MAX_RECIPIENTS + 1);
            values.map(|value| parse_text("to", &value?)).collect::<mlua::Result<Vec<_>>>()?
        }
        value => vec![parse_text("to", &value)?],
    };
    // An empty list must not select the recipients of the envelope.
    Ok(match recipients.len() {
        0 => Err("there is no recipient".to_owned()),
        1..=MAX_RECIPIENTS => Ok(Release { target, recipients }),
        _ => Err(format!("there are more than {MAX_RECIPIENTS} recipients")),
    })
}

fn parse_text(option: &str, value: &Value) -> mlua::Result<String> {
    let text = value.as_string().map(|text| text_prefix(text, MAX_TEXT_BYTES));
    text.ok_or_else(|| {
        let kind = describe_type(value);
        mlua::Error::runtime(format!("{NAME}: the option {option} must contain texts, not {kind}"))
    })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use bytes::Bytes;

    use super::*;
    use crate::event::{CallContext, ScriptEvent};
    use crate::modules::store::tests::summary;
    use crate::tests::fake_mail::FakeMail;

    fn state(event: Option<ScriptEvent>) -> Lua {
        let lua = Lua::new();
        let mail: Arc<dyn MailAccess> = Arc::new(FakeMail::with_messages([(summary(3), Bytes::new())]));
        lua.globals().set("release", function(&lua, &mail).unwrap()).unwrap();
        lua.set_app_data(CallContext { event, deadline: Instant::now() + Duration::from_mins(1) });
        lua
    }

    #[test]
    fn returns_the_entry_or_an_error_text() {
        let table = [
            ("release('anna', '3')", "default: "),
            ("release('Anna@example.org', 3, {})", "default: "),
            ("release('anna', '3', {to = 'a@x.org'})", "default: a@x.org"),
            ("release('anna', '3', {to = {'a@x.org', 'b@x.org'}, target = 'main'})", "main: a@x.org b@x.org"),
            ("select(2, release('anna', '4'))", NO_SUCH_MESSAGE),
            ("select(2, release('anna', 'nonsense'))", NO_SUCH_MESSAGE),
            ("select(2, release('broken', '3'))", "the store does not respond"),
            ("select(2, release('anna', '3', {to = {}}))", "there is no recipient"),
            ("select(2, release('anna', '3', {to = many}))", "there are more than 100 recipients"),
            ("(release('anna', '4'))", "nil"),
        ];
        for (code, expected) in table {
            let lua = state(Some(ScriptEvent::AfterStored));
            lua.load("many = {} for i = 1, 101 do many[i] = i .. '@x.org' end").exec().unwrap();
            let value: Value = lua.load(format!("return {code}")).eval().unwrap();
            assert_eq!(value.to_string().unwrap(), expected, "{code}");
        }
    }

    #[test]
    fn wrong_types_and_unknown_options_raise() {
        let table = [
            ("release()", "bad argument #1"),
            ("release('', '3')", "empty"),
            ("release('anna', '3', 'a@x.org')", "bad argument #3"),
            ("release('anna', '3', {recipients = {'a@x.org'}})", "has no option \"recipients\""),
            ("release('anna', '3', {'a@x.org'})", "takes a table with the options to, target"),
            ("release('anna', '3', {to = {1}})", "the option to must contain texts"),
            ("release('anna', '3', {target = true})", "the option target must contain texts"),
        ];
        for (code, expected) in table {
            let error = state(Some(ScriptEvent::AfterStored)).load(code).exec().unwrap_err().to_string();
            assert!(error.contains(expected), "{code}: {error}");
        }
    }

    #[test]
    fn release_is_not_available_in_before_hooks() {
        for event in [None, Some(ScriptEvent::MailFrom), Some(ScriptEvent::RcptTo), Some(ScriptEvent::BeforeStored)] {
            let error = state(event).load("release('anna', '3')").exec().unwrap_err().to_string();
            assert!(error.contains("restante.release can be used in after hooks only"), "{event:?}: {error}");
        }
    }
}
