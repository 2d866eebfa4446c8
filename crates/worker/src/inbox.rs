//! The input of a worker: a queue with a lock, the wake-up of the worker, and its shutdown.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

/// A queue that many threads fill and one worker empties.
///
/// The queue is of any type, because workers differ in what they accept and in what they do with input that does not fit. The
/// lock is not poisoned, so no change of the queue may panic half-way.
#[derive(Debug, Default)]
pub struct Inbox<Q> {
    contents: Mutex<Contents<Q>>,
    changed: Condvar,
}

/// The state that the lock of an [`Inbox`] protects.
#[derive(Debug, Default)]
pub struct Contents<Q> {
    /// The queue.
    pub queue: Q,
    /// Whether input is accepted, and whether the worker continues.
    pub stage: Stage,
}

/// The stages of a worker's shutdown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Input is accepted.
    #[default]
    Open,
    /// No input is accepted. The worker finishes what is queued.
    Closed,
    /// The worker stops immediately and discards the queue.
    Stopped,
}

impl<Q> Inbox<Q> {
    /// Creates an inbox with this queue.
    pub fn new(queue: Q) -> Self {
        Self { contents: Mutex::new(Contents { queue, stage: Stage::Open }), changed: Condvar::new() }
    }

    /// Locks the contents. A change that another thread waits for must be followed by [`Inbox::notify`].
    pub fn lock(&self) -> MutexGuard<'_, Contents<Q>> {
        self.contents.lock()
    }

    /// Wakes the waiting threads, which check their condition again. This is a system call, so avoid it if no condition
    /// can have changed.
    pub fn notify(&self) {
        self.changed.notify_all();
    }

    /// Waits until a condition is true, or the deadline passes. Returns the locked contents, and whether the condition is true.
    pub fn wait_until(
        &self,
        deadline: Option<Instant>,
        mut is_ready: impl FnMut(&mut Contents<Q>) -> bool,
    ) -> (MutexGuard<'_, Contents<Q>>, bool) {
        let mut contents = self.lock();
        while !is_ready(&mut contents) {
            match deadline {
                Some(deadline) if Instant::now() >= deadline => return (contents, false),
                Some(deadline) => drop(self.changed.wait_until(&mut contents, deadline)),
                None => self.changed.wait(&mut contents),
            }
        }
        (contents, true)
    }

    /// Waits for some time, or until the inbox is closed. Returns whether it is closed.
    pub fn pause(&self, time: Duration) -> bool {
        self.wait_until(Instant::now().checked_add(time), |contents| contents.stage != Stage::Open).1
    }

    /// Accepts no more input.
    pub fn close(&self) {
        self.advance(Stage::Closed);
    }

    /// Stops the worker.
    pub fn stop(&self) {
        self.advance(Stage::Stopped);
    }

    /// Returns whether input is no longer accepted.
    pub fn is_closed(&self) -> bool {
        self.lock().stage != Stage::Open
    }

    fn advance(&self, stage: Stage) {
        let mut contents = self.lock();
        contents.stage = contents.stage.max(stage);
        drop(contents);
        self.notify();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Worker;

    const LONG: Duration = Duration::from_mins(1);

    #[test]
    fn worker_is_woken_by_input_and_close() {
        let inbox = Arc::new(Inbox::new(Vec::new()));
        let shared = inbox.clone();
        let worker = Worker::spawn("test worker", move || {
            let mut taken = Vec::new();
            loop {
                let has_work =
                    |contents: &mut Contents<Vec<u32>>| !contents.queue.is_empty() || contents.stage != Stage::Open;
                let (mut contents, _) = shared.wait_until(None, has_work);
                if contents.queue.is_empty() {
                    return taken;
                }
                taken.append(&mut contents.queue);
            }
        })
        .unwrap();
        for number in 0..10 {
            inbox.lock().queue.push(number);
            inbox.notify();
        }
        inbox.close();
        assert_eq!(worker.join().unwrap(), (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn wait_ends_at_deadline() {
        let inbox = Inbox::new(7);
        let (contents, is_ready) = inbox.wait_until(Some(Instant::now()), |contents| contents.queue == 8);
        assert_eq!((contents.queue, is_ready), (7, false));
        drop(contents);
        let past = Instant::now();
        assert!(inbox.wait_until(Some(past), |contents| contents.queue == 7).1, "the condition is checked first");
    }

    #[test]
    fn pause_ends_when_inbox_is_closed() {
        let inbox = Arc::new(Inbox::new(()));
        assert!(!inbox.pause(Duration::ZERO));
        let shared = inbox.clone();
        let worker = Worker::spawn("test worker", move || shared.pause(Duration::MAX)).unwrap();
        inbox.close();
        assert!(worker.wait_until(Instant::now() + LONG));
        assert!(worker.join().unwrap());
    }

    #[test]
    fn inbox_never_reopens() {
        let inbox = Inbox::new(());
        assert!(!inbox.is_closed());
        inbox.stop();
        inbox.close();
        assert_eq!(inbox.lock().stage, Stage::Stopped);
        assert!(inbox.is_closed());
    }

    #[test]
    fn panic_of_another_thread_does_not_poison_inbox() {
        let inbox = Arc::new(Inbox::new(7));
        let shared = inbox.clone();
        let panicked = Worker::spawn("test worker", move || {
            let _contents = shared.lock();
            panic!("expected");
        });
        panicked.unwrap().join().unwrap_err();
        assert_eq!(inbox.lock().queue, 7);
    }
}
