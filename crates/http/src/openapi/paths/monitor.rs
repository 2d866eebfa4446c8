//! Live events. Those of `/api/v2/events`, as Server-Sent Events or over a WebSocket, are one per stored message, and contain
//! the message as a whole. The other WebSockets get one event per copy of a message.

use restante_api_types::MessageRecord;
use utoipa::ToSchema;
use utoipa::openapi::path::ParameterIn;
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::schema::Type;

use crate::live::frame::{Change, MessageChange};
use crate::openapi::operation::{Operation, get, parameter, query};
use crate::openapi::reference::header;
use crate::openapi::refusals::WEBSOCKET_REQUIRED;

const RECORDS: &str = "A WebSocket. One text frame for each stored copy: its `MessageRecord`, on one line.";
const CHANGES: &str = "A WebSocket. One text frame for each stored or deleted copy: a `Change`, on one line.";
const CLOSING: &str = "\n\nThe server pings every 54 seconds and disconnects a client that sends nothing for 60 seconds. \
                       It closes with 1001 when it shuts down, with 1002, 1007 or 1009 when the client sends invalid \
                       frames, text that is not UTF-8 or too long messages, with 1008 when the credentials are no longer \
                       valid, and with 1013 when the client was too slow, missed events and should connect again.";
const EVENTS: &str = "Server-Sent Events: the response continues until the client disconnects. Events are named \
                      `message-stored` and `message-deleted`; their data is a `MessageChange`, on one line. There is one event \
                      for each stored message, with the copies that the credentials allow, and one for each deleted copy. An \
                      event named `lagged` means that events are missing at this place.\n\nA client that connects again sends the last \
                      `id` that it got, and gets the events that it missed instead of the most recent messages.\n\nA request \
                      with a WebSocket handshake gets a WebSocket instead: one text frame for each event, the data of the \
                      event. It is closed like the WebSockets of the live monitor.";

pub(super) fn operations() -> Vec<Operation> {
    let all = "All mailboxes.";
    let one = "One mailbox.";
    vec![
        stream("/api/v2/events", "events", &format!("{all} {EVENTS}")),
        stream("/api/v2/events/{name}", "mailboxEvents", &format!("{one} {EVENTS}")),
        socket::<Change<'_>>("/api/v2/monitor/messages", "monitor", &format!("{all} {CHANGES}{CLOSING}")),
        socket::<Change<'_>>("/api/v2/monitor/messages/{name}", "monitorMailbox", &format!("{one} {CHANGES}{CLOSING}")),
        socket::<MessageRecord<'_>>(
            "/api/v1/monitor/messages",
            "monitorArrivals",
            &format!("{all} {RECORDS}{CLOSING}"),
        ),
        socket::<MessageRecord<'_>>(
            "/api/v1/monitor/messages/{name}",
            "monitorMailboxArrivals",
            &format!("{one} {RECORDS}{CLOSING}"),
        ),
    ]
}

fn stream(path: &'static str, name: &str, about: &str) -> Operation {
    let last = "The `id` of the last event that the client got.";
    subscription(path, name)
        .describe("Subscribe to events with Server-Sent Events or a WebSocket", about)
        .parameter(parameter(ParameterIn::Header, "Last-Event-ID", Type::String, last))
        .parameter(query(
            "lastEventId",
            Type::String,
            "The same as `Last-Event-ID`, for clients that cannot send headers.",
        ))
        .response("101", upgrade())
        .content("text/event-stream", "The events.")
        .event_frames::<MessageChange<'_>>()
        .refusals(&[&WEBSOCKET_REQUIRED])
}

fn socket<T: ToSchema>(path: &'static str, name: &str, about: &str) -> Operation {
    subscription(path, name)
        .describe("Subscribe to events with a WebSocket", about)
        .response("101", upgrade())
        .event_frames::<T>()
        .refusals(&[&WEBSOCKET_REQUIRED])
}

fn upgrade() -> ResponseBuilder {
    ResponseBuilder::new()
        .description("The connection becomes a WebSocket.")
        .header("Upgrade", header("Always `websocket`."))
}

/// Creates an operation that sends events. Browsers cannot set headers for such requests, so it also accepts a token in
/// the query.
fn subscription(path: &'static str, name: &str) -> Operation {
    let about = "A token, for clients that cannot send headers. Prefer a header: queries are often logged.";
    get(path, name).parameter(query("access_token", Type::String, about))
}
