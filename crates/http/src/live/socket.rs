//! One WebSocket after its handshake: events go out, several in one write, and what comes in only shows that the peer
//! lives. The stream underneath must fail by itself when the peer takes nothing.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use restante_mailroom::events::{Lagged, PublishedEvent, Subscription};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use crate::live::frame::EventFilter;
use crate::live::{CloseReason, SubscriberGuard};

/// How often the peer is asked for a sign of life.
const PING_INTERVAL: Duration = Duration::from_secs(54);
/// After how long without one it is given up.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);
/// The longest message of a client, in bytes; none has anything to say.
const MAX_MESSAGE_BYTES: usize = 512;
/// What is read at once.
const READ_BUFFER_BYTES: usize = 1024;
/// What is collected before it is written. With one more event it is all that waits for a peer that does not read, because
/// no other is taken before it is written.
const WRITE_BUFFER_BYTES: usize = 16 * 1024;
/// How many events are sent before the peer is heard again.
const MAX_BATCH_EVENTS: usize = 64;
/// How long the peer may take to hear why it is over, and to say good-bye.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Why it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndCause {
    /// The peer left, or the connection broke.
    Disconnected,
    /// The peer gave no sign of life.
    IdleTimeout,
    /// The peer did not read fast enough.
    Lagged,
    /// The server ends.
    Shutdown,
    /// The peer would not be let in any more.
    Revoked,
    /// The peer sent something that is too long.
    MessageTooLong,
    /// The peer sent what calls itself text and is no UTF-8.
    InvalidUtf8,
    /// The peer sent something that is no WebSocket frame.
    InvalidFrame,
}

/// Serves a WebSocket until the peer leaves or breaks the rules, or the server ends.
pub(crate) async fn serve<S>(
    stream: S,
    mut events: Subscription,
    audience: &EventFilter,
    ending: impl Future<Output = CloseReason>,
    open: &SubscriberGuard,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(WRITE_BUFFER_BYTES)
        .max_message_size(Some(MAX_MESSAGE_BYTES))
        .max_frame_size(Some(MAX_MESSAGE_BYTES));
    let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
    let end = tokio::select! {
        biased;
        notice = ending => match notice {
            CloseReason::Shutdown => EndCause::Shutdown,
            CloseReason::Revoked => EndCause::Revoked,
        },
        end = send_events(&mut socket, &mut events, audience) => end,
    };
    if end == EndCause::Lagged {
        open.count_lagged();
    }
    // What happens from now on is not for this peer, and nobody need wake it.
    drop(events);
    if end != EndCause::IdleTimeout {
        drop(timeout(CLOSE_TIMEOUT, close(&mut socket, end)).await);
    }
}

/// Tells the peer what happens, until there is a reason to end.
async fn send_events<S>(socket: &mut WebSocketStream<S>, events: &mut Subscription, audience: &EventFilter) -> EndCause
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut pings = interval_at(Instant::now() + PING_INTERVAL, PING_INTERVAL);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut silence = pin!(sleep(IDLE_TIMEOUT));
    loop {
        let sent = tokio::select! {
            // What the peer has sent counts before it is said to be silent.
            biased;
            frame = socket.next() => match frame {
                Some(Ok(Message::Close(_))) | None => return EndCause::Disconnected,
                Some(Ok(_)) => {
                    silence.as_mut().reset(Instant::now() + IDLE_TIMEOUT);
                    Ok(())
                }
                Some(Err(error)) => Err(error.into()),
            },
            () = &mut silence => return EndCause::IdleTimeout,
            _ = pings.tick() => socket.send(Message::Ping(Bytes::new())).await.map_err(EndCause::from),
            told = events.next() => match told {
                Ok(told) => send_batch(socket, events, audience, &told).await,
                Err(Lagged) => return EndCause::Lagged,
            },
        };
        if let Err(end) = sent {
            return end;
        }
    }
}

/// Sends an event, and with it those that have come meanwhile.
async fn send_batch<S>(
    socket: &mut WebSocketStream<S>,
    events: &mut Subscription,
    audience: &EventFilter,
    first: &PublishedEvent,
) -> Result<(), EndCause>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    feed_event(socket, audience, first).await?;
    for _ in 1..MAX_BATCH_EVENTS {
        match events.try_next() {
            Ok(Some(told)) => feed_event(socket, audience, &told).await?,
            Ok(None) => break,
            Err(Lagged) => return Err(EndCause::Lagged),
        }
    }
    Ok(socket.flush().await?)
}

async fn feed_event<S>(
    socket: &mut WebSocketStream<S>,
    audience: &EventFilter,
    told: &PublishedEvent,
) -> Result<(), EndCause>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    // What was rendered is UTF-8, because it was made of nothing else.
    let text = audience.render(told).and_then(|json| Utf8Bytes::try_from(json).ok());
    if let Some(text) = text {
        socket.feed(Message::Text(text)).await?;
    }
    Ok(())
}

/// Says why it is over, where that helps, and lets the peer answer. The peer might miss it if the connection were closed
/// with input unread: the system would reset it.
async fn close<S>(socket: &mut WebSocketStream<S>, end: EndCause) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    if let Some(frame) = end.close_frame() {
        socket.send(Message::Close(Some(frame))).await?;
    }
    // This also sends the answer to the peer's own good-bye.
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
    /// What the peer is told (RFC 6455 section 7.4.1; 1013 is of the registry that section 11.7 opens).
    fn close_frame(self) -> Option<CloseFrame> {
        let (code, reason) = match self {
            Self::Disconnected | Self::IdleTimeout => return None,
            Self::Lagged => (CloseCode::Again, "you fell behind and missed events: connect again"),
            Self::Shutdown => (CloseCode::Away, "the server ends"),
            Self::Revoked => (CloseCode::Policy, "the credentials are not good any more"),
            Self::MessageTooLong => (CloseCode::Size, "a message may have 512 bytes at most"),
            Self::InvalidUtf8 => (CloseCode::Invalid, "text must be UTF-8"),
            Self::InvalidFrame => (CloseCode::Protocol, "this is no WebSocket frame"),
        };
        Some(CloseFrame { code, reason: Utf8Bytes::from_static(reason) })
    }

    /// Whether the rest of what the peer sends cannot be understood.
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
