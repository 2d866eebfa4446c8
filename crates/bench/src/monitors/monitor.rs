//! A live monitor: opens a WebSocket or an event stream and returns the numbers of the messages in its events. Counting
//! and reconnecting are in `monitor_group`.

use std::io;
use std::net::SocketAddr;

use clap::ValueEnum;
use tokio::net::{TcpSocket, TcpStream};

use super::delivery::find_number;
use super::events::EventStream;
use super::websocket::{self, Frame};
use crate::connection::{Connection, with_timeout};
use crate::error::Error;
use crate::http::{BaseUrl, Framing, Head, MAX_HEAD_BYTES, read_part};

/// The size of a read.
const READ_BYTES: usize = 8 * 1024;
/// The receive buffer of a monitor that never reads: as small as the kernel allows, so that the server soon notices.
const STALLED_BUFFER_BYTES: u32 = 4 * 1024;

/// The protocol of a monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Protocol {
    /// WebSocket, a frame for each stored message.
    V1,
    /// WebSocket, a frame for each stored or deleted message.
    V2,
    /// Server-Sent Events.
    Sse,
}

impl Protocol {
    fn path(self, mailbox: Option<&str>) -> String {
        let path = match self {
            Self::V1 => "/api/v1/monitor/messages",
            Self::V2 => "/api/v2/monitor/messages",
            Self::Sse => "/api/v2/events",
        };
        mailbox.map_or(path.to_owned(), |mailbox| format!("{path}/{mailbox}"))
    }
}

/// What a monitor subscribes to.
#[derive(Clone)]
pub(super) struct Subscription {
    /// The server.
    pub(super) base: BaseUrl,
    /// The protocol.
    pub(super) protocol: Protocol,
    /// The mailbox; `None` for all.
    pub(super) mailbox: Option<String>,
    /// The event after which to resume.
    pub(super) last_id: Option<String>,
    /// Whether the monitor never reads.
    pub(super) is_stalled: bool,
}

/// An event at a monitor.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MonitorEvent {
    /// A message with this number was stored.
    Stored(usize),
    /// Something else.
    Other,
    /// The server reports that the monitor lagged.
    Lagged,
}

impl MonitorEvent {
    /// Returns the event for the text of a server.
    fn from_text(text: &[u8]) -> Self {
        find_number(text).map_or(Self::Other, Self::Stored)
    }
}

/// An open monitor.
pub(super) struct Monitor {
    connection: Connection,
    /// How the body of an event stream is read, and its parser; `None` for a WebSocket.
    events: Option<(Framing, EventStream)>,
}

impl Monitor {
    /// Sends the request and waits for the response of the server.
    pub(super) async fn open(subscription: &Subscription) -> Result<Self, Error> {
        let Subscription { base, protocol, mailbox, last_id, is_stalled } = subscription;
        let mut fields = match protocol {
            Protocol::V1 | Protocol::V2 => websocket::REQUEST_FIELDS.to_owned(),
            Protocol::Sse => "Accept: text/event-stream\r\n".to_owned(),
        };
        if let Some(id) = last_id {
            fields.extend(["Last-Event-ID: ", id, "\r\n"]);
        }
        let request = base.request_with("GET", &protocol.path(mailbox.as_deref()), &fields);
        with_timeout(async {
            let stream = if *is_stalled {
                connect_with_small_buffer(base.addresses()).await
            } else {
                TcpStream::connect(base.addresses()).await
            };
            let stream = stream.map_err(|error| Error::Io("connecting", error))?;
            let mut connection = Connection::new(stream, READ_BYTES);
            connection.write(&request).await?;
            let (head, bytes) = connection.read(MAX_HEAD_BYTES, Head::parse).await?;
            let events = match (protocol, head.status) {
                (Protocol::V1 | Protocol::V2, 101) if websocket::is_accepted(&head) => None,
                (Protocol::V1 | Protocol::V2, 101) => return Err(Error::Protocol("wrong Sec-WebSocket-Accept")),
                (Protocol::Sse, 200) => Some((head.framing, EventStream::default())),
                _ => return Err(Error::refused(bytes)),
            };
            Ok(Self { connection, events })
        })
        .await
    }

    /// Waits for the next event. Must not be called again after an error or after [`MonitorEvent::Lagged`].
    pub(super) async fn next(&mut self) -> Result<MonitorEvent, Error> {
        match &mut self.events {
            Some((framing, events)) => next_of_stream(&mut self.connection, *framing, events).await,
            None => next_of_socket(&mut self.connection).await,
        }
    }

    /// Returns the id of the last event that has one, from which to resume.
    pub(super) fn last_id(&self) -> Option<&str> {
        self.events.as_ref().and_then(|(_, events)| events.last_id())
    }
}

/// Waits for the next event of an event stream. Its end is the only way to report that the monitor lagged.
async fn next_of_stream(
    connection: &mut Connection,
    framing: Framing,
    events: &mut EventStream,
) -> Result<MonitorEvent, Error> {
    loop {
        if let Some(data) = events.next_data() {
            return Ok(MonitorEvent::from_text(data));
        }
        match read_part(connection, framing).await {
            Ok(Some(part)) => events.feed(part)?,
            Ok(None) | Err(Error::Closed) => return Ok(MonitorEvent::Lagged),
            Err(error) => return Err(error),
        }
    }
}

/// Waits for the next event of a WebSocket, and answers pings.
async fn next_of_socket(connection: &mut Connection) -> Result<MonitorEvent, Error> {
    let parse = |bytes: &[u8]| {
        let Some((frame, length)) = websocket::parse_frame(bytes)? else { return Ok(None) };
        let parsed = match frame {
            Frame::Text(text) => Ok(MonitorEvent::from_text(text)),
            Frame::Ping(content) => Err(websocket::pong(content)),
            Frame::TryAgainLater => Ok(MonitorEvent::Lagged),
            Frame::Closed => return Err(Error::Protocol("monitor closed without having lagged")),
            Frame::Other => Ok(MonitorEvent::Other),
        };
        Ok(Some((parsed, length)))
    };
    loop {
        match connection.read(websocket::MAX_FRAME_BYTES, parse).await?.0 {
            Ok(event) => return Ok(event),
            Err(pong) => connection.write(&pong).await?,
        }
    }
}

/// Connects with a small receive buffer.
async fn connect_with_small_buffer(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut outcome = Err(io::ErrorKind::AddrNotAvailable.into());
    for &address in addresses {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_recv_buffer_size(STALLED_BUFFER_BYTES)?;
        outcome = socket.connect(address).await;
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}
