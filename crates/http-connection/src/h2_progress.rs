//! The answers under way on one HTTP/2 connection, and how fast each is taken. The connection as a whole is never stuck
//! there because a client takes nothing of one answer, so what `impatient` does for HTTP/1.1 is done here for each.
//!
//! An answer goes out in pieces, and a piece is dropped when it has been written: this is how it is known what was taken,
//! whoever holds it meanwhile.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::context::Tenure;
use crate::write_timeout::Patience;

/// How large a piece is at most; a frame takes no more by default (RFC 9113 section 4.2).
const PIECE: usize = 16 * 1024;

/// See the module's documentation. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Ledger(Arc<Mutex<Book>>);

struct Book {
    patience: Patience,
    lines: Vec<Line>,
    /// Whether a request has come since that was asked last.
    is_fresh: bool,
}

/// An answer, and how long its client may still take nothing of it.
struct Line {
    entry: Weak<Entry>,
    left: Duration,
}

/// An answer that is being worked out, or not taken to its end yet.
pub(crate) struct Entry {
    tenure: Tenure,
    /// Bytes that were handed over and not written yet.
    waiting: AtomicUsize,
    /// Bytes that were written since it was looked last.
    taken: AtomicUsize,
}

impl Ledger {
    /// The ledger of a connection whose client is waited for with this patience.
    pub(crate) fn new(patience: Patience) -> Self {
        Self(Arc::new(Mutex::new(Book { patience, lines: Vec::new(), is_fresh: true })))
    }

    /// Enters the answer to a request that has just come.
    pub(crate) fn open(&self, tenure: Tenure) -> Arc<Entry> {
        let entry = Arc::new(Entry { tenure, waiting: AtomicUsize::new(0), taken: AtomicUsize::new(0) });
        let mut book = self.lock();
        book.is_fresh = true;
        let left = book.patience.stock;
        // There are no more of them than streams, but those that have ended must not pile up between two looks.
        if book.lines.len() == book.lines.capacity() {
            book.lines.retain(Line::is_open);
        }
        book.lines.push(Line { entry: Arc::downgrade(&entry), left });
        entry
    }

    /// Whether all answers that are not taken yet are such that do not end by themselves.
    pub(crate) fn is_endless(&self) -> bool {
        self.lock().lines.iter().filter_map(|line| line.entry.upgrade()).all(|entry| entry.tenure.is_endless())
    }

    /// Whether there is nothing to answer, and nobody has asked since this was asked last.
    pub(crate) fn is_quiet(&self) -> bool {
        let mut book = self.lock();
        let is_fresh = std::mem::replace(&mut book.is_fresh, false);
        !is_fresh && !book.lines.iter().any(Line::is_open)
    }

    /// Whether every answer is taken fast enough. To be asked every so often.
    pub(crate) fn is_taken(&self, since_last_time: Duration) -> bool {
        let mut book = self.lock();
        let Patience { stock, rate } = book.patience;
        book.lines.retain(Line::is_open);
        let open = book.lines.iter_mut().filter_map(|line| Some((line.entry.upgrade()?, &mut line.left)));
        let waiting: Vec<_> = open.filter(|(entry, _)| entry.waiting.load(Ordering::Relaxed) > 0).collect();
        // They share one line, so each may be as much slower as there are others.
        let sharers = u32::try_from(waiting.len()).unwrap_or(u32::MAX);
        waiting.into_iter().all(|(entry, left)| {
            let taken = u32::try_from(entry.taken.swap(0, Ordering::Relaxed)).unwrap_or(u32::MAX);
            let regained = Duration::from_secs(1) * taken / rate;
            let regained = left.saturating_add(regained.saturating_mul(sharers)).min(stock);
            *left = regained.saturating_sub(since_last_time);
            !left.is_zero()
        })
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    fn is_open(&self) -> bool {
        self.entry.strong_count() > 0
    }
}

/// The body of an answer, in pieces that are accounted for.
pub(crate) struct Metered {
    body: Body,
    entry: Arc<Entry>,
    /// What the body has given and is not handed over yet.
    rest: Bytes,
}

impl Metered {
    /// The body of this answer.
    pub(crate) fn new(body: Body, entry: Arc<Entry>) -> Self {
        Self { body, entry, rest: Bytes::new() }
    }
}

impl http_body::Body for Metered {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        while self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                end => return Poll::Ready(end),
            }
        }
        let length = self.rest.len().min(PIECE);
        let piece = Piece::new(self.rest.split_to(length), self.entry.clone());
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_owner(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, body) = (self.rest.len() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower() + rest);
        if let Some(upper) = body.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}

/// A piece of an answer, which waits until it is dropped.
struct Piece {
    bytes: Bytes,
    entry: Arc<Entry>,
}

impl Piece {
    fn new(bytes: Bytes, entry: Arc<Entry>) -> Self {
        entry.waiting.fetch_add(bytes.len(), Ordering::Relaxed);
        Self { bytes, entry }
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.entry.waiting.fetch_sub(self.bytes.len(), Ordering::Relaxed);
        self.entry.taken.fetch_add(self.bytes.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;
    use restante_net::ShutdownTrigger;

    const PATIENCE: Patience = Patience { stock: Duration::from_mins(1), rate: 1000 };
    const SECOND: Duration = Duration::from_secs(1);

    fn tenure() -> Tenure {
        Tenure::new(None, ShutdownTrigger::new().1)
    }

    fn piece(entry: &Arc<Entry>, length: usize) -> Piece {
        Piece::new(Bytes::from(vec![0; length]), entry.clone())
    }

    #[tokio::test]
    async fn a_body_stays_what_it_is() {
        for length in [0, 1, PIECE - 1, PIECE, PIECE + 1, 10 * PIECE + 7] {
            let bytes: Bytes = (0..length).map(|number| number.to_le_bytes()[0]).collect();
            let ledger = Ledger::new(PATIENCE);
            let mut body = Metered::new(Body::from(bytes.clone()), ledger.open(tenure()));
            assert_eq!(http_body::Body::size_hint(&body).exact(), Some(length as u64));
            let mut read = Vec::new();
            while let Some(frame) = body.frame().await {
                let piece = frame.unwrap().into_data().unwrap();
                assert!(piece.len() <= PIECE);
                read.extend_from_slice(&piece);
                assert_eq!(http_body::Body::size_hint(&body).exact(), Some((length - read.len()) as u64));
            }
            assert!(read == bytes && http_body::Body::is_end_stream(&body), "{length}");
        }
    }

    /// How many seconds answers are waited for when so many bytes of each are taken in a second.
    fn served(answers: usize, bytes: usize) -> usize {
        let ledger = Ledger::new(PATIENCE);
        let entries: Vec<_> = (0..answers).map(|_| ledger.open(tenure())).collect();
        let _held: Vec<_> = entries.iter().map(|entry| piece(entry, 1)).collect();
        let in_time = |_: &usize| {
            for entry in &entries {
                drop(piece(entry, bytes));
            }
            ledger.is_taken(SECOND)
        };
        (0..1000).take_while(in_time).count()
    }

    #[test]
    fn who_is_waited_for() {
        assert_eq!(served(1, 0), 59);
        assert_eq!(served(1, 500), 118);
        assert_eq!(served(1, 1000), 1000);
        // Two share a line.
        assert_eq!(served(2, 500), 1000);
        assert_eq!(served(2, 250), 118);
    }

    #[test]
    fn an_answer_that_has_nothing_to_say_is_not_waited_for() {
        let ledger = Ledger::new(PATIENCE);
        let _entry = ledger.open(tenure());
        assert!((0..1000).all(|_| ledger.is_taken(SECOND)));
    }

    #[test]
    fn quiet_is_where_nothing_is_asked_or_answered() {
        let ledger = Ledger::new(PATIENCE);
        assert_eq!((ledger.is_quiet(), ledger.is_quiet()), (false, true), "a connection has just begun");
        let entry = ledger.open(tenure());
        let last = piece(&entry, 1);
        drop(entry);
        assert_eq!((ledger.is_quiet(), ledger.is_quiet()), (false, false), "an answer is on its way");
        drop(last);
        assert!(ledger.is_quiet());
        drop(ledger.open(tenure()));
        assert_eq!((ledger.is_quiet(), ledger.is_quiet()), (false, true), "a request has come");
    }

    #[test]
    fn endless_is_a_connection_with_nothing_else() {
        let ledger = Ledger::new(PATIENCE);
        let (finite, endless) = (tenure(), tenure());
        endless.answer_is_endless(true);
        let (finite, _endless) = (ledger.open(finite), ledger.open(endless));
        assert!(!ledger.is_endless());
        drop(finite);
        assert!(ledger.is_endless());
    }
}
