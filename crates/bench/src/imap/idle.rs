//! The step of the `imap` command with idle sessions: the memory of the server for each of them, and the time until all are
//! notified of a message.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::client::Client;
use super::{SMALL_READ_BYTES, Target, appended_message};
use crate::error::Error;
use crate::measure::{Latencies, median, mib, millis, ratio, to_f64};
use crate::monitors::allow_open_files;
use crate::process_tree::{self, Memory};
use crate::report::{Report, Row, rounded};

/// The number of messages in the mailbox before the sessions select it.
const MESSAGES: usize = 10;
/// The number of sessions that are opened concurrently.
const CONCURRENT_LOGINS: usize = 20;
/// The number of messages that the sessions are notified of, one after the other.
const DELIVERIES: usize = 5;
/// The pause between them.
const DELIVERY_INTERVAL: Duration = Duration::from_secs(1);
/// The maximum time until all sessions are notified.
const NOTIFICATION_TIMEOUT: Duration = Duration::from_mins(1);

/// Runs the step.
pub(super) async fn run(target: &Target<'_>, report: &mut Report) -> Result<(), Error> {
    let count = target.options.sessions;
    allow_open_files(count)?;
    target.refill(&target.account("-idle"), MESSAGES).await?;
    sleep(Duration::from_secs(target.options.settle)).await;
    let memory = || target.options.pid.map(process_tree::memory).transpose();
    let before = memory()?;
    let start = Instant::now();
    let sessions = open_sessions(target, count).await?;
    let opened = start.elapsed();
    sleep(Duration::from_secs(target.options.settle)).await;
    let after = memory()?;
    let (latencies, last) = notify(target, sessions).await?;
    let latencies = latencies.percentiles();
    let row = Row::default()
        .with("step", "idle")
        .with("sessions", count)
        .with_rounded("opened_per_s", ratio(to_f64(count), opened.as_secs_f64()), 0)
        .with_rounded("exists_p50_ms", f64::from(latencies.p50) / 1000.0, 1)
        .with_rounded("exists_p99_ms", f64::from(latencies.p99) / 1000.0, 1)
        .with_rounded("exists_all_ms", median(last.iter().map(|&elapsed| millis(elapsed))), 1)
        .with_rounded("exists_all_worst_ms", f64::from(latencies.max) / 1000.0, 1);
    report.row(&with_memory(row, before.zip(after), count));
    Ok(())
}

/// Adds the memory of the server before and after the sessions were opened.
fn with_memory(row: Row, samples: Option<(Memory, Memory)>, count: usize) -> Row {
    let value =
        |value: &dyn Fn(Memory, Memory) -> Value| samples.map_or(Value::Null, |(before, after)| value(before, after));
    let per_session = |before: Memory, after: Memory| {
        rounded(ratio((to_f64(after.pss) - to_f64(before.pss)) / 1024.0, to_f64(count)), 1)
    };
    row.with("processes", value(&|_, after| after.processes.into()))
        .with("pss_before_mib", value(&|before, _| rounded(mib(before.pss), 1)))
        .with("pss_after_mib", value(&|_, after| rounded(mib(after.pss), 1)))
        .with("kib_per_session", value(&per_session))
}

/// Opens sessions in IDLE.
async fn open_sessions(target: &Target<'_>, count: usize) -> Result<Vec<Client>, Error> {
    let next = Arc::new(AtomicUsize::new(0));
    let mut tasks: JoinSet<Result<Vec<Client>, Error>> = JoinSet::new();
    for _ in 0..CONCURRENT_LOGINS.min(count) {
        let (next, addresses, account) = (Arc::clone(&next), target.addresses.clone(), target.account("-idle"));
        tasks.spawn(async move {
            let mut clients = Vec::new();
            while next.fetch_add(1, Ordering::Relaxed) < count {
                let (mut client, _) = Client::open(&addresses, &account, SMALL_READ_BYTES).await?;
                client.idle().await?;
                clients.push(client);
            }
            Ok(clients)
        });
    }
    Ok(tasks.join_all().await.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// Appends messages. Returns the latencies of all notifications and the time of the last one for each message, both since the
/// message was acknowledged.
async fn notify(target: &Target<'_>, sessions: Vec<Client>) -> Result<(Latencies, Vec<Duration>), Error> {
    let (sender, mut notifications) = mpsc::unbounded_channel();
    let count = sessions.len();
    // The tasks end when the set is dropped.
    let mut tasks = JoinSet::new();
    for mut session in sessions {
        let sender = sender.clone();
        tasks.spawn(async move {
            let mut seen = MESSAGES;
            while let Ok(exists) = session.next_exists().await {
                // The receiver is gone after the last message.
                if exists > seen && sender.send((exists, Instant::now())).is_err() {
                    break;
                }
                seen = seen.max(exists);
            }
        });
    }
    let mut client = Client::connect(&target.addresses, SMALL_READ_BYTES).await?;
    client.login(&target.account("-idle")).await?;
    let mut latencies = Latencies::default();
    let mut last = Vec::new();
    for delivery in 1..=DELIVERIES {
        client.append(&appended_message()).await?;
        let acknowledged = Instant::now();
        let received = receive(&mut notifications, count, MESSAGES + delivery);
        let times = timeout(NOTIFICATION_TIMEOUT, received).await.map_err(|_| Error::Timeout)?;
        // A notification can arrive before the reply to APPEND.
        let elapsed = times.iter().map(|time| time.saturating_duration_since(acknowledged));
        elapsed.clone().for_each(|elapsed| latencies.push(elapsed));
        last.extend(elapsed.max());
        sleep(DELIVERY_INTERVAL).await;
    }
    Ok((latencies, last))
}

/// Waits until `count` sessions have reported this number of messages.
async fn receive(
    notifications: &mut UnboundedReceiver<(usize, Instant)>,
    count: usize,
    messages: usize,
) -> Vec<Instant> {
    let mut times = Vec::with_capacity(count);
    while times.len() < count {
        match notifications.recv().await {
            Some((exists, time)) if exists >= messages => times.push(time),
            Some(_) => {}
            // Cannot happen: the caller has a sender.
            None => break,
        }
    }
    times
}
