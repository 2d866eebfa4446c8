//! Background threads, and the queues between them and threads that must not wait for them.
//!
//! A [`Worker`] is a named thread that can be joined with a deadline. An [`Inbox`] is a queue that other threads fill
//! and one worker empties; it wakes the worker and stops it. A [`BoundedQueue`] is a queue with a limit. A
//! [`RetryDelay`] is the time until work that failed is tried again.

mod inbox;
mod queue;
mod retry_delay;

use std::io;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

pub use inbox::{Contents, Inbox, Stage};
pub use queue::BoundedQueue;
pub use restante_platform::{ThreadPriority, lower_thread_priority};
pub use retry_delay::{RetryDelay, random_jitter};

/// How often a thread is checked for its end, because the standard library cannot join with a deadline.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// A background thread. If this is dropped, the thread continues.
#[derive(Debug)]
pub struct Worker<T = ()> {
    thread: JoinHandle<T>,
}

impl<T: Send + 'static> Worker<T> {
    /// Starts a thread.
    pub fn spawn(name: &str, work: impl FnOnce() -> T + Send + 'static) -> io::Result<Self> {
        let thread = thread::Builder::new().name(name.to_owned()).spawn(work)?;
        Ok(Self { thread })
    }

    /// Returns whether the thread has ended, by its return or by a panic.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for the end of the thread. Returns false if the deadline passes first.
    pub fn wait_until(&self, deadline: Instant) -> bool {
        while !self.is_finished() {
            if Instant::now() >= deadline {
                return false;
            }
            thread::sleep(POLL_INTERVAL);
        }
        true
    }

    /// Waits for the end of the thread without a deadline. Returns its result, or an error if it panicked.
    pub fn join(self) -> thread::Result<T> {
        self.thread.join()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    #[test]
    fn waits_for_worker_with_deadline() {
        let (end, ended) = mpsc::channel::<()>();
        let name = || thread::current().name().map(str::to_owned);
        let worker = Worker::spawn("test worker", move || ended.recv().map_or_else(|_| name(), |()| None)).unwrap();
        assert!(!worker.wait_until(Instant::now()));
        assert!(!worker.is_finished());
        drop(end);
        assert!(worker.wait_until(Instant::now() + LONG));
        assert_eq!(worker.join().unwrap().as_deref(), Some("test worker"));
    }

    #[test]
    fn panic_of_worker_is_reported() {
        let worker = Worker::spawn("test worker", || panic!("expected")).unwrap();
        assert!(worker.wait_until(Instant::now() + LONG));
        worker.join().unwrap_err();
    }
}
