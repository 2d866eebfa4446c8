//! What the tasks that use a queue share: access to it, and the shutdown.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use restante_mailroom::Mailroom;
use restante_mailroom::store_error_log::StoreErrorLog;
use restante_store::{Result, StoreError};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::queue::Queue;

/// Creates the runtime of the thread on which tasks use a queue. Logs an error with the name of the program part.
pub fn create_runtime(name: &str) -> Option<Runtime> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let log = |error: &io::Error| {
        tracing::error!(%error, "cannot start {name}; nothing is sent until the server is restarted");
    };
    runtime.inspect_err(log).ok()
}

/// Whether the tasks continue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// They continue.
    #[default]
    Running,
    /// Senders end when nothing can be sent.
    Draining,
    /// They end as soon as possible.
    Stopping,
}

/// What the tasks that use a queue share.
#[derive(Clone)]
pub struct Context {
    /// The queue.
    pub queue: Arc<dyn Queue>,
    /// The messages.
    pub mailroom: Arc<Mailroom>,
    /// The runtime of the store.
    pub main: Handle,
    /// Whether the tasks continue. If the sender is dropped, they end.
    pub stage: watch::Receiver<Stage>,
    /// Limits the log lines about errors.
    pub errors: Arc<StoreErrorLog>,
    /// What is logged with errors of the store and the queue.
    pub error_text: &'static str,
}

impl Context {
    /// Runs an access to the store or the queue. A shared store has connections, which belong to the main runtime.
    /// Everything else runs on threads of this runtime, whose priority may be low.
    pub async fn access<T: Send + 'static>(
        &self,
        access: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        if !self.mailroom.is_shared() {
            return access.await;
        }
        let stopped = |_| StoreError::Unavailable("the server is shutting down".to_owned());
        // Boxed, so that the task is compiled once for each type of result.
        let access: Pin<Box<dyn Future<Output = Result<T>> + Send>> = Box::pin(access);
        self.main.spawn(access).await.map_err(stopped)?
    }

    /// Returns whether the tasks have to end.
    pub fn is_stopping(&self) -> bool {
        *self.stage.borrow() == Stage::Stopping || self.stage.has_changed().is_err()
    }

    /// Returns whether senders have to end when nothing can be sent.
    pub(crate) fn is_draining(&self) -> bool {
        *self.stage.borrow() == Stage::Draining
    }

    /// Returns when the tasks have to end.
    pub async fn stopped(&self) {
        let mut stage = self.stage.clone();
        // An error means that the sender was dropped.
        let _ = stage.wait_for(|stage| *stage == Stage::Stopping).await;
    }

    /// Returns when the stage is not [`Stage::Running`].
    pub(crate) async fn stage_changed(&self) {
        let mut stage = self.stage.clone();
        let _ = stage.wait_for(|stage| *stage != Stage::Running).await;
    }

    /// Waits, but not longer than until the tasks have to end.
    pub async fn pause(&self, duration: Duration) {
        tokio::select! {
            () = sleep(duration) => {},
            () = self.stopped() => {},
        }
    }

    /// Logs an error of the store or the queue, at most once in a while.
    pub fn log_error(&self, error: &StoreError) {
        self.errors.log(self.error_text, None, error);
    }
}
