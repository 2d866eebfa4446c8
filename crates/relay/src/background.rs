//! The thread of the relay: a runtime of low priority on which the senders, the recorder, the forwarder and the
//! maintenance of the queue run.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use restante_queue::{Context, Sender, StateCount, create_runtime};
use restante_worker::{ThreadPriority, lower_thread_priority};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::forwarder::Forwarder;
use crate::recorder::{MAX_WAITING, Recorder};
use crate::session::Connector;
use crate::shared::Shared;
use crate::transport::SmtpTransport;

/// The maximum number of entries that a sender claims at once.
const MAX_CLAIM: usize = 20;

/// How often entries expire, the entries are counted, a cursor without rules is deleted, and the other nodes are
/// notified that this one is alive.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(5);

/// What the tasks of the relay share, beyond the queue.
#[derive(Clone)]
pub(crate) struct RelayContext {
    pub(crate) shared: Arc<Shared>,
    pub(crate) connector: Arc<Connector>,
    /// See [`restante_queue::Queue::identity`].
    pub(crate) identity: Arc<str>,
}

/// Runs until the relay shuts down.
pub(crate) fn run(context: &Context, shared: Arc<Shared>, identity: Arc<str>) {
    if let Err(error) = lower_thread_priority(ThreadPriority::Lowest) {
        tracing::debug!(%error, "cannot lower the priority of the relay thread");
    }
    let Some(runtime) = create_runtime("the relay") else { return };
    let connector = Connector::new(shared.settings.domain.clone(), shared.settings.allow_private_addresses);
    let relay = RelayContext { shared, connector: Arc::new(connector), identity };
    runtime.block_on(run_tasks(context, &relay));
}

async fn run_tasks(context: &Context, relay: &RelayContext) {
    let mut tasks = JoinSet::new();
    let (results, recorded) = mpsc::channel(MAX_WAITING);
    tasks.spawn(Recorder { context: context.clone(), results: recorded }.run());
    for (target, state) in relay.shared.settings.targets.iter().zip(&relay.shared.states) {
        for _ in 0..target.connections {
            let (context, state, results) = (context.clone(), state.clone(), results.clone());
            let (relay, target) = (relay.clone(), target.clone());
            let transport =
                SmtpTransport { context: context.clone(), relay, target, state: state.clone(), session: None };
            tasks.spawn(Sender { context, state, transport, max_claim: MAX_CLAIM, results }.run());
        }
    }
    // The recorder ends after the last sender.
    drop(results);
    if !relay.shared.settings.rules.is_empty() {
        tasks.spawn(Forwarder::new(context.clone(), relay.shared.clone()).run());
    }
    maintain(context, &relay.shared).await;
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended {
            tracing::error!(%error, "a task of the relay failed");
        }
    }
    let queue = context.queue.clone();
    if let Err(error) = context.access(async move { queue.leave().await }).await {
        tracing::debug!(%error, "the relay queue was not left; other nodes take over when the heartbeat ends");
    }
}

/// Maintains the queue until the relay shuts down.
async fn maintain(context: &Context, shared: &Shared) {
    let mut is_first = true;
    while !context.is_stopping() {
        let (queue, has_rules) = (context.queue.clone(), !shared.settings.rules.is_empty());
        let maintenance = async move {
            queue.heartbeat().await?;
            if !has_rules {
                // At the start of this node, another one may still have forwarded.
                queue.delete_cursor().await?;
            }
            let expired = queue.expire(Timestamp::now()).await?;
            Ok((expired, queue.counts().await?))
        };
        match context.access(maintenance).await {
            Ok((expired, counts)) => {
                if !expired.is_empty() {
                    tracing::warn!(entries = expired.len(), "messages could not be relayed in time and have failed");
                }
                if std::mem::take(&mut is_first) {
                    warn_about_removed_targets(shared, &counts);
                }
                *shared.entry_counts.lock() = counts;
            }
            Err(error) => context.log_error(&error),
        }
        context.pause(MAINTENANCE_INTERVAL).await;
    }
}

/// Warns about entries that wait for a target that this node does not know. Another node may know it, so they stay.
fn warn_about_removed_targets(shared: &Shared, counts: &[StateCount]) {
    let is_known = |name: &str| shared.settings.targets.iter().any(|target| target.name == name);
    for StateCount { target, state, count: entries, .. } in counts {
        if !state.is_final() && !is_known(target) {
            tracing::warn!(
                target_name = target,
                entries,
                "messages wait for a relay target that is not configured; to end that, run restante relay cancel --target {target}"
            );
        }
    }
}
