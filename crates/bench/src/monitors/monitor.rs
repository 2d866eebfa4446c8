//! A live monitor: opens a WebSocket or an event stream and returns the numbers of the messages in its events. Counting
//! and reconnecting are in `monitor_group`.

use std::net::SocketAddr;

use clap::ValueEnum;
use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::delivery::find_number;
use super::events::EventStream;
use super::websocket::{self, Frame};
use crate::error::Error;
use crate::http::{BaseUrl, Head};
use crate::smtp::with_timeout;

/// The maximum size of a read.
const READ_BYTES: usize = 8 * 1024;
const MAX_HEAD_BYTES: usize = 16 * 1024;
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
    Stored(u64),
    /// Something else.
    Other,
    /// The server reports that the monitor lagged.
    Lagged,
}

/// An open monitor.
pub(super) struct Monitor {
    stream: TcpStream,
    /// The buffer for reading.
    read_buffer: Box<[u8]>,
    decoder: Decoder,
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
            let mut stream = if *is_stalled {
                connect_with_small_buffer(base.addresses()).await
            } else {
                TcpStream::connect(base.addresses()).await.map_err(|error| Error::io("connecting", error))
            }?;
            stream.write_all(&request).await.map_err(|error| Error::io("sending", error))?;
            let decoder = read_response_head(&mut stream, *protocol).await?;
            Ok(Self { stream, read_buffer: vec![0; READ_BYTES].into(), decoder })
        })
        .await
    }

    /// Waits for the next event. Must not be called again after an error or after [`MonitorEvent::Lagged`].
    pub(super) async fn next(&mut self) -> Result<MonitorEvent, Error> {
        loop {
            match self.decoder.next()? {
                Some(Decoded::Event(event)) => return Ok(event),
                Some(Decoded::Ping(pong)) => {
                    self.stream.write_all(&pong).await.map_err(|error| Error::io("sending", error))?;
                    continue;
                }
                None => {}
            }
            let read = self.stream.read(&mut self.read_buffer).await.map_err(|error| Error::io("receiving", error))?;
            if read == 0 {
                return self.decoder.end();
            }
            self.decoder.feed(&self.read_buffer[..read])?;
        }
    }

    /// Returns the id of the last event that has one, from which to resume.
    pub(super) fn last_id(&self) -> Option<&str> {
        match &self.decoder {
            Decoder::WebSocket(_) => None,
            Decoder::Events(stream) => stream.last_id(),
        }
    }
}

enum Decoded {
    Event(MonitorEvent),
    /// A ping, with the frame to reply.
    Ping(Vec<u8>),
}

/// Decodes the received bytes.
enum Decoder {
    WebSocket(Frames),
    Events(EventStream),
}

/// Received bytes of WebSocket frames.
#[derive(Default)]
struct Frames {
    buffer: Vec<u8>,
    /// Everything before this has been returned.
    consumed: usize,
}

impl Decoder {
    fn feed(&mut self, bytes: &[u8]) -> Result<(), Error> {
        match self {
            Self::WebSocket(Frames { buffer, consumed }) => {
                buffer.drain(..*consumed);
                *consumed = 0;
                buffer.extend_from_slice(bytes);
                Ok(())
            }
            Self::Events(stream) => stream.feed(bytes),
        }
    }

    fn next(&mut self) -> Result<Option<Decoded>, Error> {
        let stored_event =
            |text: &[u8]| Decoded::Event(find_number(text).map_or(MonitorEvent::Other, MonitorEvent::Stored));
        match self {
            Self::WebSocket(Frames { buffer, consumed }) => {
                let Some((frame, length)) = websocket::parse_frame(&buffer[*consumed..])? else { return Ok(None) };
                let decoded = match frame {
                    Frame::Text(text) => stored_event(text),
                    Frame::Ping(content) => Decoded::Ping(websocket::pong(content)),
                    Frame::TryAgainLater => Decoded::Event(MonitorEvent::Lagged),
                    Frame::Closed => return Err(Error::Protocol("monitor closed without having lagged")),
                    Frame::Other => Decoded::Event(MonitorEvent::Other),
                };
                *consumed += length;
                Ok(Some(decoded))
            }
            Self::Events(stream) => {
                if let Some(data) = stream.next_data() {
                    return Ok(Some(stored_event(data)));
                }
                Ok(stream.is_finished().then_some(Decoded::Event(MonitorEvent::Lagged)))
            }
        }
    }

    /// Returns what the end of the connection means. An event stream has no other way to report that the monitor
    /// lagged.
    fn end(&self) -> Result<MonitorEvent, Error> {
        match self {
            Self::WebSocket(_) => Err(Error::Protocol("connection of a monitor closed without a close frame")),
            Self::Events(_) => Ok(MonitorEvent::Lagged),
        }
    }
}

/// Reads the head of the response and passes the bytes after it to the decoder.
async fn read_response_head(stream: &mut TcpStream, protocol: Protocol) -> Result<Decoder, Error> {
    let mut buffer = Vec::new();
    let end = loop {
        if let Some(end) = memmem::find(&buffer, b"\r\n\r\n") {
            break end;
        }
        if buffer.len() > MAX_HEAD_BYTES {
            return Err(Error::Protocol("response head too long"));
        }
        let read = stream.read_buf(&mut buffer).await.map_err(|error| Error::io("receiving", error))?;
        if read == 0 {
            return Err(Error::Protocol("connection closed before the response"));
        }
    };
    let mut lines = buffer[..end].split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_end);
    let mut head = Head::parse(lines.next().unwrap_or_default())?;
    let mut is_accepted = false;
    for line in lines {
        head.parse_field(line)?;
        is_accepted |= websocket::is_accept_field(line);
    }
    let mut decoder = match (protocol, head.status) {
        (Protocol::V1 | Protocol::V2, 101) if is_accepted => Decoder::WebSocket(Frames::default()),
        (Protocol::V1 | Protocol::V2, 101) => return Err(Error::Protocol("wrong Sec-WebSocket-Accept")),
        (Protocol::Sse, 200) => Decoder::Events(EventStream::new(head.chunked)),
        _ => return Err(Error::refused(&buffer[..end])),
    };
    decoder.feed(&buffer[end + 4..])?;
    Ok(decoder)
}

/// Connects with a small receive buffer.
async fn connect_with_small_buffer(addresses: &[SocketAddr]) -> Result<TcpStream, Error> {
    let mut outcome = Err(Error::Timeout);
    for &address in addresses {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
        let socket = socket.map_err(|error| Error::io("connecting", error))?;
        socket.set_recv_buffer_size(STALLED_BUFFER_BYTES).map_err(|error| Error::io("connecting", error))?;
        outcome = socket.connect(address).await.map_err(|error| Error::io("connecting", error));
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}
