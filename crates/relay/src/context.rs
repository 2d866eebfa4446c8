//! What the tasks of the relay share: access to the store and the queue, and the shutdown.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use restante_mailroom::Mailroom;
use restante_mailroom::store_error_log::StoreErrorLog;
use restante_store::{Result, StoreError};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::session::Connector;
use crate::shared::Shared;

/// What all tasks of the relay share.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) shared: Arc<Shared>,
    pub(crate) mailroom: Arc<Mailroom>,
    pub(crate) connector: Arc<Connector>,
    /// See [`crate::queue::Queue::identity`].
    pub(crate) identity: Arc<str>,
    pub(crate) errors: Arc<StoreErrorLog>,
    pub(crate) main: Handle,
    pub(crate) stop: watch::Receiver<bool>,
}

impl Context {
    /// Runs an access to the store or the queue. A shared store has connections, which belong to the main runtime.
    /// Everything else runs on threads of this runtime, whose priority is low, too.
    pub(crate) async fn access<T: Send + 'static>(
        &self,
        access: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        if !self.mailroom.is_shared() {
            return access.await;
        }
        let stopped = |_| StoreError::Unavailable("the server is shutting down".to_owned());
        self.main.spawn(access).await.map_err(stopped)?
    }

    /// Returns whether the relay shuts down.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }

    /// Returns when the relay shuts down.
    pub(crate) async fn stopped(&self) {
        let mut stop = self.stop.clone();
        // An error means that the relay was dropped.
        let _ = stop.wait_for(|is_stopping| *is_stopping).await;
    }

    /// Waits, but not longer than until the relay shuts down.
    pub(crate) async fn pause(&self, duration: Duration) {
        tokio::select! {
            () = sleep(duration) => {},
            () = self.stopped() => {},
        }
    }

    pub(crate) fn log_error(&self, error: &StoreError) {
        self.errors.log("the relay cannot access the store or its queue, retrying", None, error);
    }
}
