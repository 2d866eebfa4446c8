//! Serves one WebSocket after its handshake: sends events, several in one write. Input only shows that the peer is
//! alive. The underlying stream must have a write timeout.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use restante_mailroom::events::{Lagged, PublishedEvent, Subscription};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use crate::subscriber::{CloseReason, EventWriter, SubscriberGuard};

/// The interval of pings.
const PING_INTERVAL: Duration = Duration::from_secs(54);
/// The time without input after which the connection is closed.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);
/// The maximum size of a message from the client. Clients have no reason to send messages.
const MAX_MESSAGE_BYTES: usize = 512;
/// The size of the read buffer.
const READ_BUFFER_BYTES: usize = 1024;
/// The size of the write buffer. At most this and one more event are buffered for a peer that does not read: the next
/// event is taken from the subscription only after the previous one is in the buffer.
const WRITE_BUFFER_BYTES: usize = 16 * 1024;
/// The maximum number of events that are sent before input is read again.
const MAX_BATCH_EVENTS: usize = 64;
/// The time that the peer has to read the close frame and to respond.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// The reason why a WebSocket ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndCause {
    /// The peer has disconnected, or the connection failed.
    Disconnected,
    /// The peer sent nothing for too long.
    IdleTimeout,
    /// The peer did not read fast enough.
    Lagged,
    /// The server closes the subscription.
    Closed(CloseReason),
    /// The peer sent a message that is too long.
    MessageTooLong,
    /// The peer sent a text message that is not UTF-8.
    InvalidUtf8,
    /// The peer sent something that is not a WebSocket frame.
    InvalidFrame,
}

/// Serves a WebSocket until the peer closes it or violates the protocol, or the server closes it.
pub(super) async fn serve(
    stream: TokioIo<Upgraded>,
    mut events: Subscription,
    writer: &mut impl EventWriter,
    close_requested: impl Future<Output = CloseReason>,
    guard: &SubscriberGuard,
) {
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(WRITE_BUFFER_BYTES)
        .max_message_size(Some(MAX_MESSAGE_BYTES))
        .max_frame_size(Some(MAX_MESSAGE_BYTES));
    let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
    let end = tokio::select! {
        biased;
        reason = close_requested => EndCause::Closed(reason),
        end = send_events(&mut socket, &mut events, writer) => end,
    };
    if end == EndCause::Lagged {
        guard.count_lagged();
    }
    // Ends the subscription before the closing handshake, so that no further event wakes this task.
    drop(events);
    if end != EndCause::IdleTimeout {
        drop(timeout(CLOSE_TIMEOUT, close(&mut socket, end)).await);
    }
}

/// Sends events until there is a reason to end.
async fn send_events(socket: &mut Socket, events: &mut Subscription, writer: &mut impl EventWriter) -> EndCause {
    let mut pings = interval_at(Instant::now() + PING_INTERVAL, PING_INTERVAL);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut idle = pin!(sleep(IDLE_TIMEOUT));
    loop {
        let sent = tokio::select! {
            // Input is read first, so that a peer that has sent something is not considered idle.
            biased;
            frame = socket.next() => match frame {
                Some(Ok(Message::Close(_))) | None => return EndCause::Disconnected,
                Some(Ok(_)) => {
                    idle.as_mut().reset(Instant::now() + IDLE_TIMEOUT);
                    Ok(())
                }
                Some(Err(error)) => Err(error.into()),
            },
            () = &mut idle => return EndCause::IdleTimeout,
            _ = pings.tick() => socket.send(Message::Ping(Bytes::new())).await.map_err(EndCause::from),
            published = events.next() => match published {
                Ok(published) => send_batch(socket, events, writer, &published).await,
                Err(Lagged) => return EndCause::Lagged,
            },
            () = writer.report_ready() => send_all(socket, writer.write_report().await).await,
        };
        if let Err(end) = sent {
            return end;
        }
    }
}

/// Sends an event, together with those that have arrived since.
async fn send_batch(
    socket: &mut Socket,
    events: &mut Subscription,
    writer: &mut impl EventWriter,
    first: &PublishedEvent,
) -> Result<(), EndCause> {
    feed_event(socket, writer, first).await?;
    for _ in 1..MAX_BATCH_EVENTS {
        match events.try_next() {
            Ok(Some(published)) => feed_event(socket, writer, &published).await?,
            Ok(None) => break,
            Err(Lagged) => return Err(EndCause::Lagged),
        }
    }
    send_all(socket, writer.finish_batch().await).await
}

/// Sends these messages, after those that are buffered.
async fn send_all(socket: &mut Socket, messages: Vec<Bytes>) -> Result<(), EndCause> {
    for json in messages {
        feed_json(socket, json).await?;
    }
    Ok(socket.flush().await?)
}

async fn feed_event(
    socket: &mut Socket,
    writer: &mut impl EventWriter,
    published: &PublishedEvent,
) -> Result<(), EndCause> {
    match writer.write_event(published).await {
        Some(json) => feed_json(socket, json).await,
        None => Ok(()),
    }
}

async fn feed_json(socket: &mut Socket, json: Bytes) -> Result<(), EndCause> {
    // The rendered JSON is always UTF-8.
    if let Ok(text) = Utf8Bytes::try_from(json) {
        socket.feed(Message::Text(text)).await?;
    }
    Ok(())
}

/// Sends a close frame if that helps, and waits for the response of the peer. Closing the connection with unread input
/// would reset it, and the peer could miss the close frame.
async fn close(socket: &mut Socket, end: EndCause) -> Result<(), Error> {
    if let Some(frame) = end.close_frame() {
        socket.send(Message::Close(Some(frame))).await?;
    }
    // Also sends the response to a close frame of the peer.
    while let Some(Ok(_)) = socket.next().await {}
    if end.is_input_error() {
        let stream = socket.get_mut();
        stream.shutdown().await?;
        let mut unwanted = [0; READ_BUFFER_BYTES];
        while stream.read(&mut unwanted).await? > 0 {}
    }
    Ok(())
}

impl EndCause {
    /// Returns the close frame for the peer (RFC 6455 section 7.4.1; 1013 is from the registry of section 11.7).
    fn close_frame(self) -> Option<CloseFrame> {
        let (code, reason) = match self {
            Self::Disconnected | Self::IdleTimeout => return None,
            Self::Lagged => (CloseCode::Again, "the client was too slow and missed events: connect again"),
            Self::Closed(CloseReason::Shutdown) => (CloseCode::Away, "the server is shutting down"),
            Self::Closed(CloseReason::Revoked) => (CloseCode::Policy, "the credentials are no longer valid"),
            Self::MessageTooLong => (CloseCode::Size, "a message must not exceed 512 bytes"),
            Self::InvalidUtf8 => (CloseCode::Invalid, "text must be UTF-8"),
            Self::InvalidFrame => (CloseCode::Protocol, "this is not a WebSocket frame"),
        };
        Some(CloseFrame { code, reason: Utf8Bytes::from_static(reason) })
    }

    /// Returns whether the remaining input of the peer cannot be parsed.
    fn is_input_error(self) -> bool {
        matches!(self, Self::MessageTooLong | Self::InvalidUtf8 | Self::InvalidFrame)
    }
}

impl From<Error> for EndCause {
    fn from(error: Error) -> Self {
        match error {
            Error::Capacity(_) => Self::MessageTooLong,
            Error::Utf8(_) => Self::InvalidUtf8,
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => Self::Disconnected,
            Error::Protocol(_) => Self::InvalidFrame,
            _ => Self::Disconnected,
        }
    }
}
