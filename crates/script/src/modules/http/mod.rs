//! The module `http`: requests to any server. They are limited by the deadline of the call. Errors are returned as nil
//! and a text and never raised, because a failing server is not an error of the script.

mod batch;
mod budget;
mod options;
mod response;

use std::sync::Arc;
use std::time::Instant;

use mlua::{AnyUserData, Lua, Table, Value};
use restante_http_client::{HttpService, Request, Response};

use self::budget::{RequestBudget, RequestError};
use super::set_function;
use crate::event::CallContext;

/// Creates the module.
pub(super) fn module(lua: &Lua, client: &Arc<dyn HttpService>) -> mlua::Result<Table> {
    let module = lua.create_table()?;
    for method in ["get", "post", "put", "patch", "delete", "head"] {
        set_function(lua, &module, method, client, move |lua, client, (url, options): (Value, Value)| {
            send_request(lua, client, &Value::String(lua.create_string(method)?), &url, &options)
        })?;
    }
    set_function(lua, &module, "request", client, |lua, client, (method, url, options): (Value, Value, Value)| {
        send_request(lua, client, &method, &url, &options)
    })?;
    set_function(lua, &module, "request_batch", client, |lua, client, requests: Table| {
        batch::send(lua, client, &requests)
    })?;
    Ok(module)
}

type ResponseResult = Result<AnyUserData, String>;

fn send_request(
    lua: &Lua,
    client: &dyn HttpService,
    method: &Value,
    url: &Value,
    options: &Value,
) -> mlua::Result<ResponseResult> {
    let deadline = CallContext::current(lua)?.deadline;
    match options::parse_request(&mut RequestBudget::new(lua), method, url, options) {
        Ok(request) => to_lua_result(lua, send_within(client, request, deadline)),
        Err(RequestError::TooLarge) => Ok(Err("the request is too long".to_owned())),
        Err(RequestError::Invalid(reason)) => Ok(Err(reason)),
        Err(RequestError::Lua(error)) => Err(error),
    }
}

/// Sends a request, limited by its own timeout and by the deadline of the call.
fn send_within(client: &dyn HttpService, mut request: Request, deadline: Instant) -> Result<Response, String> {
    request.timeout = request.timeout.min(deadline.saturating_duration_since(Instant::now()));
    client.send(&request).map_err(|error| error.to_string())
}

fn to_lua_result(lua: &Lua, result: Result<Response, String>) -> mlua::Result<ResponseResult> {
    match result {
        Ok(response) => response::to_object(lua, &response).map(Ok),
        Err(reason) => Ok(Err(reason)),
    }
}

#[cfg(test)]
mod tests;
