//! Several requests at the same time. Answers enter the Lua state, whose memory is limited, one by one as they come, so
//! that no more of them are held outside than are under way.

use std::sync::mpsc;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use mlua::{Lua, Table, Value};
use restante_http_client::{HttpService, Request, Response};

use super::budget::{RequestBudget, RequestError};
use super::options;
use super::{send_within, to_lua_result};
use crate::event::CallContext;

/// How many requests are under way at the same time.
const MAX_IN_FLIGHT: usize = 8;

/// How many requests a batch may have.
const MAX_REQUESTS: usize = 100;

/// How long the answers of a batch may be together, in bytes.
const MAX_RESPONSE_BYTES: usize = 32 * 1024 * 1024;

/// Sends the requests of a table. Gives a table of answers, and one of errors when there are any; each stands where its
/// request does.
pub(super) fn send(lua: &Lua, client: &dyn HttpService, requests: &Table) -> mlua::Result<(Table, Option<Table>)> {
    let count = requests.raw_len();
    if count > MAX_REQUESTS {
        return Err(mlua::Error::runtime(format!("a batch has at most {MAX_REQUESTS} requests")));
    }
    let deadline = CallContext::current(lua)?.deadline;
    let answers = lua.create_table()?;
    let errors = lua.create_table()?;
    let mut queue = Vec::with_capacity(count);
    let mut room = RequestBudget::new(lua);
    for place in 1..=count {
        match parse_entry(&mut room, &requests.raw_get(place)?) {
            Ok(request) => queue.push((place, request)),
            Err(RequestError::Invalid(why)) => errors.raw_set(place, why)?,
            Err(RequestError::TooLarge) => return Err(mlua::Error::runtime("the requests of the batch are too long")),
            Err(RequestError::Lua(error)) => return Err(error),
        }
    }
    let mut left = MAX_RESPONSE_BYTES;
    send_all(client, queue, deadline, |place, response| {
        let response = response.and_then(|response| {
            // Those that are shorter may still fit.
            left = left.checked_sub(response_size(&response)).ok_or("the answers of the batch are too long")?;
            Ok(response)
        });
        match to_lua_result(lua, response)? {
            Ok(response) => answers.raw_set(place, response),
            Err(why) => errors.raw_set(place, why),
        }
    })?;
    let errors = (!errors.is_empty()).then_some(errors);
    Ok((answers, errors))
}

fn parse_entry(room: &mut RequestBudget<'_>, entry: &Value) -> Result<Request, RequestError> {
    let Value::Table(entry) = entry else {
        return Err(RequestError::Invalid("a request is a table {method, url, options}".to_owned()));
    };
    options::parse_request(room, &entry.raw_get(1)?, &entry.raw_get(2)?, &entry.raw_get(3)?)
}

fn response_size(response: &Response) -> usize {
    let headers: usize = response.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    headers + response.url.len() + response.body.len()
}

/// Sends all of them, and hands over what comes back; ends early when that fails.
fn send_all(
    client: &dyn HttpService,
    queue: Vec<(usize, Request)>,
    deadline: Instant,
    mut take: impl FnMut(usize, Result<Response, String>) -> mlua::Result<()>,
) -> mlua::Result<()> {
    if client.requires_caller_thread() {
        return queue.into_iter().try_for_each(|(place, request)| take(place, send_within(client, request, deadline)));
    }
    let workers = queue.len().min(MAX_IN_FLIGHT);
    let queue = Mutex::new(queue.into_iter());
    let (sender, receiver) = mpsc::sync_channel(0);
    let work = |sender: mpsc::SyncSender<_>| {
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        while let Some((place, request)) = next() {
            // When nobody takes the answer, nobody wants the others.
            if sender.send((place, send_within(client, request, deadline))).is_err() {
                return;
            }
        }
    };
    thread::scope(|scope| {
        // Moved in here, so that it is gone before the threads are waited for, however this ends.
        let receiver = receiver;
        for _ in 0..workers {
            let (work, sender) = (&work, sender.clone());
            let thread = thread::Builder::new().name("script http".to_owned());
            thread.spawn_scoped(scope, move || work(sender)).map_err(mlua::Error::external)?;
        }
        drop(sender);
        for (place, response) in receiver {
            take(place, response)?;
        }
        Ok(())
    })
}
