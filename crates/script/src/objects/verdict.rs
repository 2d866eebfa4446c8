//! The table `smtp`, and the verdicts that its functions create.

use std::fmt::Write as _;

use mlua::{AnyUserData, Function, Lua, MetaMethod, Table, UserData, UserDataMethods, Value};
use restante_mail::envelope::Refusal;
use restante_mailroom::hooks::Verdict;

use super::values::{describe_type, expect_text, field_name, script_error, unknown_field};

/// The reply to a peer if the script does not give one.
const DEFAULT_REFUSAL: (u16, &str) = (550, "Mail denied by policy");
/// The maximum length of a reply text.
const MAX_TEXT_BYTES: usize = 400;

/// A verdict as a Lua object.
struct VerdictObject(Verdict);

impl UserData for VerdictObject {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(MetaMethod::Index, |lua, this, key: Value| {
            match (field_name(&key).as_deref(), &this.0) {
                (Some(b"action"), verdict) => lua.create_string(action(verdict)).map(Value::String),
                (Some(b"code"), Verdict::Deny(refusal)) => Ok(Value::Integer(refusal.code.into())),
                (Some(b"text"), Verdict::Deny(refusal)) => lua.create_string(&refusal.text).map(Value::String),
                _ => Ok(Value::Nil),
            }
        });
        methods.add_meta_method(MetaMethod::NewIndex, |lua, _, (key, _): (Value, Value)| -> mlua::Result<()> {
            Err(match field_name(&key).as_deref() {
                Some(b"action" | b"code" | b"text") => script_error(lua, "a verdict of smtp is read-only"),
                _ => unknown_field(lua, "a verdict of smtp", &key),
            })
        });
        methods.add_meta_method(MetaMethod::ToString, |_, this, ()| {
            let mut text = format!("smtp.{}", action(&this.0));
            if let Verdict::Deny(refusal) = &this.0 {
                // Writing to a string cannot fail.
                let _ = write!(text, "({}, {})", refusal.code, refusal.text);
            }
            Ok(text)
        });
        methods.add_meta_function(MetaMethod::Eq, |_, (first, second): (AnyUserData, AnyUserData)| {
            Ok(first.borrow::<Self>()?.0 == second.borrow::<Self>()?.0)
        });
    }
}

/// Creates the table `smtp`.
pub(super) fn table(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("allow", constant_function(lua, Verdict::Allow)?)?;
    table.raw_set("defer", constant_function(lua, Verdict::Defer)?)?;
    let deny = lua.create_function(|lua, (code, text): (Value, Value)| {
        let refusal = Refusal { code: self::parse_code(lua, code)?, text: self::parse_text(lua, text)? };
        Ok(VerdictObject(Verdict::Deny(refusal)))
    })?;
    table.raw_set("deny", deny)?;
    Ok(table)
}

/// Parses the decision about a sender or recipient. Nil leaves it to the policy. An error is the end of a sentence that
/// starts with the name of the function.
pub(crate) fn parse_verdict(value: &Value) -> Result<Verdict, String> {
    if value.is_nil() {
        return Ok(Verdict::Defer);
    }
    let object = value.as_userdata().and_then(|object| object.borrow::<VerdictObject>().ok());
    object
        .map(|object| object.0.clone())
        .ok_or_else(|| format!("must return smtp.allow(), smtp.defer() or smtp.deny(), not {}", describe_type(value)))
}

/// Returns a function that always returns the same verdict. It is written in Lua, which is faster to call.
fn constant_function(lua: &Lua, verdict: Verdict) -> mlua::Result<Function> {
    let chunk = lua.load("local verdict = ... return function() return verdict end").set_name("=smtp");
    // Scripts can get the environment of the function, so it must not be that of the host.
    chunk.set_environment(lua.create_table()?).call(VerdictObject(verdict))
}

fn action(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "allow",
        Verdict::Defer => "defer",
        Verdict::Deny(_) => "deny",
    }
}

fn parse_code(lua: &Lua, value: Value) -> mlua::Result<u16> {
    if value.is_nil() {
        return Ok(DEFAULT_REFUSAL.0);
    }
    let number = lua.coerce_number(value)?.filter(|number| number.fract() == 0.0);
    (400..=599)
        .find(|code| number == Some(f64::from(*code)))
        .ok_or_else(|| script_error(lua, "the code in smtp.deny(code, text) must be a whole number from 400 to 599"))
}

/// Returns one line of text. Characters that are not allowed in a reply are replaced when the reply is written.
fn parse_text(lua: &Lua, value: Value) -> mlua::Result<String> {
    if value.is_nil() {
        return Ok(DEFAULT_REFUSAL.1.to_owned());
    }
    let text = expect_text(lua, "the text in smtp.deny(code, text)", value)?.to_string_lossy();
    let mut line: String = text.chars().take(MAX_TEXT_BYTES).map(|c| if c.is_control() { ' ' } else { c }).collect();
    line.truncate(line.floor_char_boundary(MAX_TEXT_BYTES));
    Ok(if line.trim().is_empty() { DEFAULT_REFUSAL.1.to_owned() } else { line })
}
