//! The thread that writes what waits to where it is kept for good.

use std::io;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use restante_worker::{Worker, lower_priority};

use super::waiting::{Batch, Next, ShelfState, Waiting};

/// The name of the thread.
const THREAD: &str = "journal";

/// How long the thread rests between batches, so that a few sessions now and then are written together. It does not when
/// there is enough for another batch.
const REST: Duration = Duration::from_millis(250);
/// The longest rest, for a shelf that was slow for once.
const LONGEST_REST: Duration = Duration::from_secs(2);
/// How long nothing is said of what is lost after something was.
const QUIET: Duration = Duration::from_mins(1);

/// Where pieces are kept for good.
pub(super) trait Shelf: Send + 'static {
    /// How long the thread rests after a failure.
    const LONG_REST: Duration;
    /// How many times as long as it has written the thread rests at least, for the sake of others who use what the shelf is in.
    const MODESTY: u32 = 0;
    /// How long it leaves the shelf alone when there is nothing to write.
    const IDLE: Duration = Duration::MAX;

    /// Does what the batch says. After a failure, whose error is for the operator, it comes again; some of it may have been
    /// done then.
    fn write(&mut self, batch: &Batch) -> Result<(), String>;

    /// Does something about a failure, after the rest.
    fn mend(&mut self) {}

    /// Everything is written, and nothing more comes.
    fn close(self);
}

/// The thread, from the outside. When this is dropped, what still waits is written, but not at any price: whoever keeps it may
/// not answer.
pub(super) struct Writing<S: Shelf> {
    waiting: Arc<Waiting>,
    /// None once it is closed.
    thread: Option<Worker<Option<Writer<S>>>>,
}

impl<S: Shelf> Writing<S> {
    /// Starts the thread, which also opens the shelf, so that nobody waits for it here. The error of that is a sentence for the
    /// operator; the journal is one in memory then.
    pub(super) fn start(
        waiting: Arc<Waiting>,
        open: impl FnOnce() -> Result<S, String> + Send + 'static,
    ) -> io::Result<Self> {
        let shared = waiting.clone();
        let thread = Worker::spawn(THREAD, move || run(shared, open))?;
        Ok(Self { waiting, thread: Some(thread) })
    }
}

impl<S: Shelf> Drop for Writing<S> {
    fn drop(&mut self) {
        self.waiting.close();
        let Some(thread) = self.thread.take() else { return };
        // A lowered priority cannot be raised again, so another thread finishes. The old one could take long on busy processors.
        let finish = move || {
            if let Ok(Some(writer)) = thread.join() {
                writer.finish();
            }
        };
        if Worker::spawn(THREAD, finish).is_err() || !self.waiting.is_closed_soon() {
            tracing::warn!("some transcripts of sessions could not be written in time");
        }
    }
}

/// Writes until nothing more comes. What is left then is for [`Writer::finish`], where there is a shelf.
fn run<S: Shelf>(waiting: Arc<Waiting>, open: impl FnOnce() -> Result<S, String>) -> Option<Writer<S>> {
    let shelf = match open() {
        Ok(shelf) => shelf,
        Err(problem) => {
            tracing::error!(problem, "transcripts of sessions are kept in memory only");
            waiting.set_shelf(ShelfState::Closed);
            return None;
        }
    };
    waiting.set_shelf(ShelfState::Open);
    // Not earlier: requests wait until the shelf is open.
    if let Err(error) = lower_priority() {
        tracing::debug!(%error, "transcripts of sessions are written at the usual priority");
    }
    let mut writer = Writer { shelf, waiting, losses: Losses::default() };
    writer.keep_writing();
    Some(writer)
}

/// The thread, from the inside.
struct Writer<S> {
    shelf: S,
    waiting: Arc<Waiting>,
    losses: Losses,
}

impl<S: Shelf> Writer<S> {
    fn keep_writing(&mut self) {
        let mut failing = false;
        loop {
            let batch = self.waiting.take(S::IDLE);
            if self.waiting.is_closing() {
                return;
            }
            let begun = Instant::now();
            match self.write(&batch) {
                Ok(next) => {
                    failing = false;
                    let rest = if next == Next::Rest { REST } else { Duration::ZERO };
                    self.waiting.rest(rest.max((begun.elapsed() * S::MODESTY).min(LONGEST_REST)));
                }
                Err(problem) => {
                    if !mem::replace(&mut failing, true) {
                        tracing::error!(problem, "transcripts of sessions cannot be written; trying again");
                    }
                    self.waiting.rest(S::LONG_REST);
                    self.shelf.mend();
                }
            }
        }
    }

    /// Writes what is left.
    fn finish(mut self) {
        loop {
            let batch = self.waiting.take(S::IDLE);
            match self.write(&batch) {
                Ok(Next::End) => break,
                Ok(_) => {}
                Err(problem) => {
                    tracing::error!(problem, "the last transcripts of sessions cannot be written");
                    break;
                }
            }
        }
        // Whoever waits for the end may open the same journal next.
        self.shelf.close();
        self.waiting.set_shelf(ShelfState::Closed);
    }

    /// Writes a batch and then lets it wait no longer.
    fn write(&mut self, batch: &Batch) -> Result<Next, String> {
        if let Some(pieces) = self.losses.due(batch.lost, Instant::now()) {
            tracing::warn!(pieces, "transcripts came faster than they can be written, and some are lost");
        }
        self.shelf.write(batch)?;
        Ok(self.waiting.written(batch))
    }
}

/// What was lost, until it is told.
#[derive(Default)]
struct Losses {
    pieces: u64,
    told: Option<Instant>,
}

impl Losses {
    /// So many more are lost. When it is time to tell, how many since the last time.
    fn due(&mut self, more: u64, now: Instant) -> Option<u64> {
        self.pieces += more;
        let is_quiet = self.told.is_some_and(|told| now.saturating_duration_since(told) < QUIET);
        if self.pieces == 0 || is_quiet {
            return None;
        }
        self.told = Some(now);
        Some(mem::take(&mut self.pieces))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::{mail, piece};
    use crate::waiting::MAX_WAITING;

    /// A shelf that counts.
    #[derive(Default)]
    struct Count(usize);

    impl Shelf for Count {
        const LONG_REST: Duration = Duration::ZERO;

        fn write(&mut self, batch: &Batch) -> Result<(), String> {
            self.0 += batch.chunk.pieces.len();
            Ok(())
        }

        fn close(self) {}
    }

    #[test]
    fn much_is_written_without_a_rest_and_nothing_is_lost() {
        let waiting = Arc::new(Waiting::new(8 * MAX_WAITING));
        let mut writer = Writer { shelf: Count(0), waiting: waiting.clone(), losses: Losses::default() };
        let long = "x".repeat(60_000);
        for session in 1..=100 {
            waiting.add(piece(session, 0, &long));
        }
        waiting.add(mail(101, 1, "bob", 7));
        let mut steps = vec![];
        while steps.last() != Some(&Next::Rest) {
            steps.push(writer.write(&waiting.take(Duration::MAX)).unwrap());
        }
        // Some 6 MB: five batches, and what is left waits for more.
        assert_eq!(steps, [Next::GoOn, Next::GoOn, Next::GoOn, Next::GoOn, Next::Rest]);
        waiting.close();
        assert_eq!(writer.write(&waiting.take(Duration::MAX)), Ok(Next::End));
        assert_eq!((writer.shelf.0, writer.losses.pieces, writer.losses.told), (101, 0, None));
    }

    #[test]
    fn what_is_lost_is_told_once_in_a_while() {
        let (mut losses, start) = (Losses::default(), Instant::now());
        let told = [(0, 0), (5, 1), (3, 2), (4, 50), (0, 61), (0, 200), (1, 201)]
            .map(|(lost, second)| losses.due(lost, start + Duration::from_secs(second)));
        assert_eq!(told, [None, Some(5), None, None, Some(7), None, Some(1)]);
    }
}
