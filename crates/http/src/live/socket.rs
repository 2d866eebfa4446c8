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

use crate::live::frame::Audience;
use crate::live::{Notice, Open};

/// How often the peer is asked for a sign of life.
const PING: Duration = Duration::from_secs(54);
/// After how long without one it is given up.
const SILENCE: Duration = Duration::from_mins(1);
/// The longest message of a client, in bytes; none has anything to say.
const MAX_MESSAGE: usize = 512;
/// What is read at once.
const READ_BUFFER: usize = 1024;
/// What is collected before it is written. With one more event it is all that waits for a peer that does not read, because
/// no other is taken before it is written.
const WRITE_BUFFER: usize = 16 * 1024;
/// How many events are sent before the peer is heard again.
const BATCH: usize = 64;
/// How long the peer may take to hear why it is over, and to say good-bye.
const FAREWELL: Duration = Duration::from_secs(1);

/// Why it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The peer left, or the connection broke.
    Gone,
    /// The peer gave no sign of life.
    Silent,
    /// The peer did not read fast enough.
    Lagged,
    /// The server ends.
    Shutdown,
    /// The peer would not be let in any more.
    Revoked,
    /// The peer sent something that is too long.
    TooLong,
    /// The peer sent what calls itself text and is no UTF-8.
    NoText,
    /// The peer sent something that is no WebSocket frame.
    Malformed,
}

/// Serves a WebSocket until the peer leaves or breaks the rules, or the server ends.
pub(crate) async fn serve<S>(
    stream: S,
    mut events: Subscription,
    audience: &Audience,
    ending: impl Future<Output = Notice>,
    open: &Open,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE));
    let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
    let end = tokio::select! {
        biased;
        notice = ending => match notice {
            Notice::Shutdown => End::Shutdown,
            Notice::Revoked => End::Revoked,
        },
        end = tell(&mut socket, &mut events, audience) => end,
    };
    if end == End::Lagged {
        open.lagged();
    }
    // What happens from now on is not for this peer, and nobody need wake it.
    drop(events);
    if end != End::Silent {
        drop(timeout(FAREWELL, part(&mut socket, end)).await);
    }
}

/// Tells the peer what happens, until there is a reason to end.
async fn tell<S>(socket: &mut WebSocketStream<S>, events: &mut Subscription, audience: &Audience) -> End
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut pings = interval_at(Instant::now() + PING, PING);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut silence = pin!(sleep(SILENCE));
    loop {
        let sent = tokio::select! {
            // What the peer has sent counts before it is said to be silent.
            biased;
            frame = socket.next() => match frame {
                Some(Ok(Message::Close(_))) | None => return End::Gone,
                Some(Ok(_)) => {
                    silence.as_mut().reset(Instant::now() + SILENCE);
                    Ok(())
                }
                Some(Err(error)) => Err(error.into()),
            },
            () = &mut silence => return End::Silent,
            _ = pings.tick() => socket.send(Message::Ping(Bytes::new())).await.map_err(End::from),
            told = events.next() => match told {
                Ok(told) => send(socket, events, audience, &told).await,
                Err(Lagged) => return End::Lagged,
            },
        };
        if let Err(end) = sent {
            return end;
        }
    }
}

/// Sends an event, and with it those that have come meanwhile.
async fn send<S>(
    socket: &mut WebSocketStream<S>,
    events: &mut Subscription,
    audience: &Audience,
    first: &PublishedEvent,
) -> Result<(), End>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    feed(socket, audience, first).await?;
    for _ in 1..BATCH {
        match events.try_next() {
            Ok(Some(told)) => feed(socket, audience, &told).await?,
            Ok(None) => break,
            Err(Lagged) => return Err(End::Lagged),
        }
    }
    Ok(socket.flush().await?)
}

async fn feed<S>(socket: &mut WebSocketStream<S>, audience: &Audience, told: &PublishedEvent) -> Result<(), End>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    // What was rendered is UTF-8, because it was made of nothing else.
    let text = audience.json(told).and_then(|json| Utf8Bytes::try_from(json).ok());
    if let Some(text) = text {
        socket.feed(Message::Text(text)).await?;
    }
    Ok(())
}

/// Says why it is over, where that helps, and lets the peer answer. The peer might miss it if the connection were closed
/// with input unread: the system would reset it.
async fn part<S>(socket: &mut WebSocketStream<S>, end: End) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    if let Some(frame) = end.frame() {
        socket.send(Message::Close(Some(frame))).await?;
    }
    // This also sends the answer to the peer's own good-bye.
    while let Some(Ok(_)) = socket.next().await {}
    if end.is_by_bad_input() {
        let stream = socket.get_mut();
        stream.shutdown().await?;
        let mut unwanted = [0; READ_BUFFER];
        while stream.read(&mut unwanted).await? > 0 {}
    }
    Ok(())
}

impl End {
    /// What the peer is told (RFC 6455 section 7.4.1; 1013 is of the registry that section 11.7 opens).
    fn frame(self) -> Option<CloseFrame> {
        let (code, reason) = match self {
            Self::Gone | Self::Silent => return None,
            Self::Lagged => (CloseCode::Again, "you fell behind and missed events: connect again"),
            Self::Shutdown => (CloseCode::Away, "the server ends"),
            Self::Revoked => (CloseCode::Policy, "the credentials are not good any more"),
            Self::TooLong => (CloseCode::Size, "a message may have 512 bytes at most"),
            Self::NoText => (CloseCode::Invalid, "text must be UTF-8"),
            Self::Malformed => (CloseCode::Protocol, "this is no WebSocket frame"),
        };
        Some(CloseFrame { code, reason: Utf8Bytes::from_static(reason) })
    }

    /// Whether the rest of what the peer sends cannot be understood.
    fn is_by_bad_input(self) -> bool {
        matches!(self, Self::TooLong | Self::NoText | Self::Malformed)
    }
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        match error {
            Error::Capacity(_) => Self::TooLong,
            Error::Utf8(_) => Self::NoText,
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => Self::Gone,
            Error::Protocol(_) => Self::Malformed,
            _ => Self::Gone,
        }
    }
}
