//! The thread that writes what waits into the file.

use std::mem;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::file::File;
use crate::journal::Numbers;
use crate::journal::waiting::{Batch, Next, Stage, Waiting};

/// How long the thread rests between batches, so that a few sessions now and then are written together. It does not when
/// there is enough for another batch.
const REST: Duration = Duration::from_millis(250);
/// How long it rests after a failure.
const LONG_REST: Duration = Duration::from_secs(10);
/// How long nothing is said of what is lost after something was.
const QUIET: Duration = Duration::from_mins(1);

/// The thread.
pub(super) struct Writer {
    path: PathBuf,
    max_bytes: usize,
    waiting: Arc<Waiting>,
    numbers: Arc<Numbers>,
    losses: Losses,
}

impl Writer {
    pub(super) fn new(path: PathBuf, max_bytes: usize, waiting: Arc<Waiting>, numbers: Arc<Numbers>) -> Self {
        Self { path, max_bytes, waiting, numbers, losses: Losses::default() }
    }

    /// Writes until nothing more comes. What is left then is for [`Writer::finish`], where there is a file.
    pub(super) fn run(mut self) -> Option<(Self, File)> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(problem) => {
                tracing::error!(problem, "transcripts of sessions are kept in memory only");
                self.waiting.tell(Stage::Closed);
                return None;
            }
        };
        self.numbers.skip_to(file.last_session());
        self.waiting.tell(Stage::Usable);
        // Not before: whoever asks waits until the file is open.
        step_back();
        let file = self.keep_writing(file);
        Some((self, file))
    }

    /// Writes what is left.
    pub(super) fn finish(mut self, mut file: File) {
        loop {
            let batch = self.waiting.take();
            match self.write(&mut file, &batch) {
                Ok(Next::End) => break,
                Ok(_) => {}
                Err(error) => {
                    tracing::error!(%error, "the last transcripts of sessions cannot be written");
                    break;
                }
            }
        }
        // Whoever waits for the end may open the file next.
        drop(file);
        self.waiting.tell(Stage::Closed);
    }

    fn keep_writing(&mut self, mut file: File) -> File {
        let mut failing = false;
        loop {
            let batch = self.waiting.take();
            if self.waiting.is_closing() {
                return file;
            }
            match self.write(&mut file, &batch) {
                Ok(next) => {
                    failing = false;
                    if next == Next::Rest {
                        self.waiting.rest(REST);
                    }
                }
                Err(error) => {
                    if !mem::replace(&mut failing, true) {
                        tracing::error!(%error, "transcripts of sessions cannot be written; trying again");
                    }
                    self.waiting.rest(LONG_REST);
                    // What is damaged does not get better by trying again.
                    match File::reopen(&self.path) {
                        Ok(fresh) => file = fresh,
                        Err(problem) => tracing::debug!(problem, "transcripts of sessions cannot be written"),
                    }
                }
            }
        }
    }

    /// Writes a batch and then lets it wait no longer.
    fn write(&mut self, file: &mut File, batch: &Batch) -> rusqlite::Result<Next> {
        if let Some(pieces) = self.losses.due(batch.lost, Instant::now()) {
            tracing::warn!(pieces, "transcripts came faster than they can be written, and some are lost");
        }
        let room = self.max_bytes.saturating_sub(batch.rest);
        file.write(&batch.chunk.pieces, batch.anew, batch.deadline, room)?;
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

/// Leaves the processors to those who bring mail or ask for it.
fn step_back() {
    const NICEST: i32 = 19;
    if let Err(error) = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICEST) {
        tracing::debug!(%error, "transcripts of sessions are written at the usual priority");
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::open_to_read;
    use super::*;
    use crate::journal::conformance::{mail, piece};
    use crate::journal::waiting::MAX_WAITING;
    use restante_testdir::TestDir;

    #[test]
    fn much_is_written_without_a_rest_and_nothing_is_lost() {
        let (dir, waiting) = (TestDir::new(), Arc::new(Waiting::new(8 * MAX_WAITING)));
        let path = dir.path().join("file");
        let mut writer = Writer::new(path.clone(), 8 * MAX_WAITING, waiting.clone(), Arc::default());
        let long = "x".repeat(60_000);
        for session in 1..=100 {
            waiting.add(piece(session, 0, &long));
        }
        waiting.add(mail(101, 1, "bob", 7));
        let mut file = File::open(&path).unwrap();
        let mut steps = vec![];
        while steps.last() != Some(&Next::Rest) {
            steps.push(writer.write(&mut file, &waiting.take()).unwrap());
        }
        // Some 6 MB: five batches, and what is left waits for more.
        assert_eq!(steps, [Next::GoOn, Next::GoOn, Next::GoOn, Next::GoOn, Next::Rest]);
        waiting.tell(Stage::Closing);
        assert_eq!(writer.write(&mut file, &waiting.take()), Ok(Next::End));
        let read = open_to_read(&path).unwrap();
        let stored: u64 = read.query_row("SELECT count(*) FROM pieces", [], |row| row.get(0)).unwrap();
        assert_eq!((stored, writer.losses.pieces, writer.losses.told), (101, 0, None));
    }

    #[test]
    fn what_is_lost_is_told_once_in_a_while() {
        let (mut losses, start) = (Losses::default(), Instant::now());
        let told = [(0, 0), (5, 1), (3, 2), (4, 50), (0, 61), (0, 200), (1, 201)]
            .map(|(lost, second)| losses.due(lost, start + Duration::from_secs(second)));
        assert_eq!(told, [None, Some(5), None, None, Some(7), None, Some(1)]);
    }
}
