//! Shutdown: one trigger, any number of holders. A holder is notified of the shutdown, and the shutdown is complete
//! when all holders are dropped.

use std::convert::Infallible;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

/// How long work in progress may take after the shutdown starts. It is a little shorter than the time that the program
/// waits for all holders, so that they can close their connections themselves.
pub const SHUTDOWN_GRACE_PERIOD: Duration = Duration::from_secs(13);

/// Starts the shutdown and waits until it is complete.
pub struct ShutdownTrigger {
    signal: watch::Sender<Option<Instant>>,
    holders: mpsc::Receiver<Infallible>,
}

/// Held by each task that must be allowed to finish.
#[derive(Clone)]
pub struct Shutdown {
    /// When the shutdown was triggered.
    signal: watch::Receiver<Option<Instant>>,
    _holder: mpsc::Sender<Infallible>,
}

impl ShutdownTrigger {
    /// Creates a trigger and the first holder, from which all others are cloned.
    pub fn new() -> (Self, Shutdown) {
        let (signal, receiver) = watch::channel(None);
        let (holder, holders) = mpsc::channel(1);
        (Self { signal, holders }, Shutdown { signal: receiver, _holder: holder })
    }

    /// Notifies all holders and waits until all are dropped. Returns false if some are left after `timeout`.
    pub async fn trigger_and_wait(mut self, timeout: Duration) -> bool {
        self.signal.send_replace(Some(Instant::now()));
        // Nothing is ever received: the channel only closes.
        tokio::time::timeout(timeout, self.holders.recv()).await.is_ok()
    }
}

impl Shutdown {
    /// Returns whether the shutdown was triggered.
    pub fn is_triggered(&self) -> bool {
        self.signal.borrow().is_some()
    }

    /// Waits until the shutdown is triggered.
    pub async fn triggered(&mut self) {
        // An error means that the trigger was dropped, which is a shutdown too.
        let _ = self.signal.wait_for(Option::is_some).await;
    }

    /// Waits until `time` has passed since the shutdown was triggered.
    pub async fn triggered_for(&mut self, time: Duration) {
        let triggered_at = self.signal.wait_for(Option::is_some).await.map_or(None, |triggered_at| *triggered_at);
        if let Some(triggered_at) = triggered_at {
            sleep_until(triggered_at + time).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn shutdown_waits_for_its_holders() {
        let (trigger, mut shutdown) = ShutdownTrigger::new();
        let holder = tokio::spawn(async move {
            shutdown.triggered().await;
            assert!(shutdown.is_triggered());
        });
        assert!(trigger.trigger_and_wait(Duration::from_secs(10)).await);
        holder.await.unwrap();
    }

    #[tokio::test]
    async fn shutdown_does_not_wait_longer_than_the_timeout() {
        let (trigger, shutdown) = ShutdownTrigger::new();
        assert!(!trigger.trigger_and_wait(Duration::from_millis(10)).await);
        drop(shutdown);
    }
}
