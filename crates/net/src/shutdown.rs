//! The end: one trigger, any number of holders. A holder learns that the end has come, and as long as it is held the
//! end is not complete.

use std::convert::Infallible;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

/// How long what is under way when the server stops may take; a little less than the server waits.
pub const SHUTDOWN_GRACE_PERIOD: Duration = Duration::from_secs(13);

/// Starts the end and waits for it.
pub struct ShutdownTrigger {
    signal: watch::Sender<Option<Instant>>,
    holders: mpsc::Receiver<Infallible>,
}

/// Held by whatever must be allowed to finish.
#[derive(Clone)]
pub struct Shutdown {
    /// When the end began.
    signal: watch::Receiver<Option<Instant>>,
    _holder: mpsc::Sender<Infallible>,
}

impl ShutdownTrigger {
    /// A trigger, and the first holder to clone all others from.
    pub fn new() -> (Self, Shutdown) {
        let (signal, observer) = watch::channel(None);
        let (holder, holders) = mpsc::channel(1);
        (Self { signal, holders }, Shutdown { signal: observer, _holder: holder })
    }

    /// Tells every holder, and waits until none is left or the time is over; false means that some were left.
    pub async fn trigger_and_wait(mut self, patience: Duration) -> bool {
        self.signal.send_replace(Some(Instant::now()));
        // Nothing can ever be received: the channel only ends.
        tokio::time::timeout(patience, self.holders.recv()).await.is_ok()
    }
}

impl Shutdown {
    /// Whether the end has begun.
    pub fn is_triggered(&self) -> bool {
        self.signal.borrow().is_some()
    }

    /// Waits until the end begins.
    pub async fn triggered(&mut self) {
        // An error says that the trigger is gone, which is an end too.
        let _ = self.signal.wait_for(Option::is_some).await;
    }

    /// Waits until the end has been going on for so long.
    pub async fn triggered_for(&mut self, time: Duration) {
        let begun = self.signal.wait_for(Option::is_some).await.map_or(None, |begun| *begun);
        if let Some(begun) = begun {
            sleep_until(begun + time).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_end_waits_for_its_holders() {
        let (trigger, mut shutdown) = ShutdownTrigger::new();
        let holder = tokio::spawn(async move {
            shutdown.triggered().await;
            assert!(shutdown.is_triggered());
        });
        assert!(trigger.trigger_and_wait(Duration::from_secs(10)).await);
        holder.await.unwrap();
    }

    #[tokio::test]
    async fn the_end_does_not_wait_for_ever() {
        let (trigger, shutdown) = ShutdownTrigger::new();
        assert!(!trigger.trigger_and_wait(Duration::from_millis(10)).await);
        drop(shutdown);
    }
}
