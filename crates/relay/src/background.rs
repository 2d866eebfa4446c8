//! The thread of the relay: a runtime of low priority on which the senders, the recorder, the forwarder and the
//! maintenance of the queue run.

use std::future::Future;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use restante_mailroom::Mailroom;
use restante_mailroom::store_error_log::StoreErrorLog;
use restante_store::{Result, StoreError};
use restante_worker::lower_priority;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::forwarder::Forwarder;
use crate::recorder::{MAX_WAITING, Recorder};
use crate::relay::Relay;
use crate::sender::Sender;
use crate::session::Connector;

/// How often entries expire, the entries are counted, and the other nodes are notified that this one is alive.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(5);

/// What all tasks of the relay share.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) relay: Arc<Relay>,
    pub(crate) mailroom: Arc<Mailroom>,
    pub(crate) connector: Arc<Connector>,
    /// See [`crate::queue::Queue::identity`].
    pub(crate) identity: Arc<str>,
    pub(crate) errors: Arc<StoreErrorLog>,
    main: Handle,
    stop: watch::Receiver<bool>,
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

/// Runs until the relay shuts down.
pub(crate) fn run(
    relay: Arc<Relay>,
    mailroom: Arc<Mailroom>,
    identity: Arc<str>,
    main: Handle,
    stop: watch::Receiver<bool>,
) {
    if let Err(error) = lower_priority() {
        tracing::debug!(%error, "cannot lower the priority of the relay thread");
    }
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "cannot start the relay; nothing is sent until the server is restarted");
            return;
        }
    };
    let connector = Connector::new(relay.settings.domain.clone(), relay.settings.allow_private_addresses);
    let (connector, errors) = (Arc::new(connector), Arc::default());
    let context = Context { relay, mailroom, connector, identity, errors, main, stop };
    runtime.block_on(run_tasks(context));
}

async fn run_tasks(context: Context) {
    let mut tasks = JoinSet::new();
    let (results, recorded) = mpsc::channel(MAX_WAITING);
    tasks.spawn(Recorder::new(context.clone(), recorded).run());
    for (target, state) in context.relay.settings.targets.iter().zip(&context.relay.states) {
        for _ in 0..target.connections {
            tasks.spawn(Sender::new(context.clone(), target.clone(), state.clone(), results.clone()).run());
        }
    }
    // The recorder ends after the last sender.
    drop(results);
    if !context.relay.settings.rules.is_empty() {
        tasks.spawn(Forwarder::new(context.clone()).run());
    }
    maintain(&context).await;
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended {
            tracing::error!(%error, "a task of the relay failed");
        }
    }
    let queue = context.relay.queue.clone();
    if let Err(error) = context.access(async move { queue.leave().await }).await {
        tracing::debug!(%error, "the relay queue was not left; other nodes take over when the heartbeat ends");
    }
}

/// Maintains the queue until the relay shuts down.
async fn maintain(context: &Context) {
    while !context.is_stopping() {
        let queue = context.relay.queue.clone();
        let maintenance = async move {
            queue.heartbeat().await?;
            let expired = queue.expire(Timestamp::now()).await?;
            Ok((expired, queue.counts().await?))
        };
        match context.access(maintenance).await {
            Ok((expired, counts)) => {
                if expired > 0 {
                    tracing::warn!(entries = expired, "messages could not be relayed in time and have failed");
                }
                *context.relay.entry_counts.lock().unwrap_or_else(PoisonError::into_inner) = counts;
            }
            Err(error) => context.log_error(&error),
        }
        context.pause(MAINTENANCE_INTERVAL).await;
    }
}
