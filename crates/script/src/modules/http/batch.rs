//! `http.request_batch`: concurrent requests. Each response is moved into the Lua state, whose memory is limited, as
//! soon as it arrives. So no more responses are held outside of it than requests are in flight.

use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use mlua::{Lua, Table, Value};
use parking_lot::Mutex;
use restante_http_client::{HttpService, Request, Response};

use super::budget::{RequestBudget, RequestError};
use super::options;
use super::{send_within, to_lua_result};
use crate::event::CallContext;

/// The maximum number of concurrent requests.
const MAX_IN_FLIGHT: usize = 8;

/// The maximum number of requests in a batch.
const MAX_REQUESTS: usize = 100;

/// The maximum size of all responses of a batch.
const MAX_RESPONSE_BYTES: usize = 32 * 1024 * 1024;

/// Sends the requests of a table. Returns a table of responses, and a table of errors if there are any. Both use the
/// indexes of the requests.
pub(super) fn send(lua: &Lua, client: &dyn HttpService, requests: &Table) -> mlua::Result<(Table, Option<Table>)> {
    let count = requests.raw_len();
    if count > MAX_REQUESTS {
        return Err(mlua::Error::runtime(format!("a batch has at most {MAX_REQUESTS} requests")));
    }
    let deadline = CallContext::current(lua)?.deadline;
    let responses = lua.create_table()?;
    let errors = lua.create_table()?;
    let mut queue = Vec::with_capacity(count);
    let mut budget = RequestBudget::new(lua);
    for index in 1..=count {
        match parse_entry(&mut budget, &requests.raw_get(index)?) {
            Ok(request) => queue.push((index, request)),
            Err(RequestError::Invalid(reason)) => errors.raw_set(index, reason)?,
            Err(RequestError::TooLarge) => return Err(mlua::Error::runtime("the requests of the batch are too long")),
            Err(RequestError::Lua(error)) => return Err(error),
        }
    }
    let mut remaining = MAX_RESPONSE_BYTES;
    send_all(client, queue, deadline, |index, response| {
        let response = response.and_then(|response| {
            // Smaller responses may still fit.
            remaining =
                remaining.checked_sub(response_size(&response)).ok_or("the responses of the batch are too long")?;
            Ok(response)
        });
        match to_lua_result(lua, response)? {
            Ok(response) => responses.raw_set(index, response),
            Err(reason) => errors.raw_set(index, reason),
        }
    })?;
    let errors = (!errors.is_empty()).then_some(errors);
    Ok((responses, errors))
}

fn parse_entry(budget: &mut RequestBudget<'_>, entry: &Value) -> Result<Request, RequestError> {
    let Value::Table(entry) = entry else {
        return Err(RequestError::Invalid("a request is a table {method, url, options}".to_owned()));
    };
    options::parse_request(budget, &entry.raw_get(1)?, &entry.raw_get(2)?, &entry.raw_get(3)?)
}

fn response_size(response: &Response) -> usize {
    let headers: usize = response.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    headers + response.url.len() + response.body.len()
}

/// Sends all requests and passes each result to `on_result`. Stops at the first error of `on_result`.
fn send_all(
    client: &dyn HttpService,
    queue: Vec<(usize, Request)>,
    deadline: Instant,
    mut on_result: impl FnMut(usize, Result<Response, String>) -> mlua::Result<()>,
) -> mlua::Result<()> {
    if client.requires_caller_thread() {
        return queue
            .into_iter()
            .try_for_each(|(index, request)| on_result(index, send_within(client, request, deadline)));
    }
    let workers = queue.len().min(MAX_IN_FLIGHT);
    let queue = Mutex::new(queue.into_iter());
    let (sender, receiver) = mpsc::sync_channel(0);
    let work = |sender: mpsc::SyncSender<_>| {
        let next = || queue.lock().next();
        while let Some((index, request)) = next() {
            // The receiver is gone if a response could not be stored. The other requests are not needed then.
            if sender.send((index, send_within(client, request, deadline))).is_err() {
                return;
            }
        }
    };
    thread::scope(|scope| {
        // Moved here, so that it is dropped before the scope waits for the threads, also on an early return.
        let receiver = receiver;
        for _ in 0..workers {
            let (work, sender) = (&work, sender.clone());
            let thread = thread::Builder::new().name("script http".to_owned());
            thread.spawn_scoped(scope, move || work(sender)).map_err(mlua::Error::external)?;
        }
        drop(sender);
        for (index, response) in receiver {
            on_result(index, response)?;
        }
        Ok(())
    })
}
