//! A response as a Lua object. Everything is copied into the Lua state at once, so that its memory limit covers the
//! responses that a script keeps.

use mlua::{AnyUserData, Lua, LuaString, MetaMethod, Table, UserData, UserDataFields, UserDataMethods, Value};
use restante_http_client::Response;

/// Creates the object of a response.
pub(super) fn to_object(lua: &Lua, response: &Response) -> mlua::Result<AnyUserData> {
    let headers = lua.create_table()?;
    let cookies = lua.create_table()?;
    for (name, value) in &response.headers {
        let canonical = canonical_name(name);
        if !headers.contains_key(canonical.as_str())? {
            headers.raw_set(canonical, value.as_str())?;
        }
        if name.eq_ignore_ascii_case("set-cookie")
            && let Some((name, value)) = parse_cookie(value)
        {
            cookies.raw_set(name, value)?;
        }
    }
    lua.create_userdata(ResponseObject {
        status: response.status,
        headers,
        cookies,
        body: lua.create_string(&response.body)?,
        url: lua.create_string(&response.url)?,
    })
}

struct ResponseObject {
    status: u16,
    headers: Table,
    cookies: Table,
    body: LuaString,
    url: LuaString,
}

impl UserData for ResponseObject {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_field_method_get("status_code", |_, this| Ok(this.status));
        fields.add_field_method_get("headers", |_, this| Ok(this.headers.clone()));
        fields.add_field_method_get("cookies", |_, this| Ok(this.cookies.clone()));
        fields.add_field_method_get("body", |_, this| Ok(this.body.clone()));
        fields.add_field_method_get("body_size", |_, this| Ok(this.body.as_bytes().len()));
        fields.add_field_method_get("url", |_, this| Ok(this.url.clone()));
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        // Unknown fields are nil.
        methods.add_meta_method(MetaMethod::Index, |_, _, _: Value| Ok(Value::Nil));
    }
}

/// Returns the name of a header field as Go writes it: `Content-Type`.
fn canonical_name(name: &str) -> String {
    let mut at_start = true;
    let mut convert = |c: char| {
        let c = if at_start { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
        at_start = c == '-';
        c
    };
    name.chars().map(&mut convert).collect()
}

/// Parses the name and value of a Set-Cookie field.
fn parse_cookie(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split(';').next()?.split_once('=')?;
    let value = value.trim();
    let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
    Some((name.trim(), value)).filter(|(name, _)| !name.is_empty())
}
