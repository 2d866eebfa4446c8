//! Many monitors on a thread of their own: those that read, and come back when they were cut off, and those that never
//! read. In reality they are other machines; here they share one with the server, so their thread can have the lowest
//! priority.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit, setpriority_process, setrlimit};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::Topic;
use super::monitor::{Monitor, MonitorEvent, Protocol, Subscription};
use super::received_events::{EventSummary, ReceivedEvents};
use crate::error::Error;
use crate::http::BaseUrl;
use crate::message::mailbox_name;

/// Between being cut off and coming back.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);
/// Of how many monitors the latency is noted when all hear the same; every event of every monitor would be too much.
const MAX_TIMED_MONITORS: usize = 20;
/// How often it is looked whether anything still happens.
const TICK: Duration = Duration::from_millis(50);
/// The longest wait for that.
const WAIT_TIMEOUT: Duration = Duration::from_mins(2);
/// How long nothing comes to a stalled monitor, once it reads, when the server has kept it.
const STALLED_READ_TIMEOUT: Duration = Duration::from_millis(500);

/// Who listens to what.
#[derive(Clone)]
pub(super) struct GroupSettings {
    /// The server.
    pub(super) base: BaseUrl,
    /// How it tells.
    pub(super) protocol: Protocol,
    /// What the reading monitors listen to; the stalled ones listen to everything, or nothing much would come to them.
    pub(super) topic: Topic,
    /// What the names of the mailboxes begin with.
    pub(super) prefix: &'static str,
    /// How many read.
    pub(super) monitors: usize,
    /// How many never do.
    pub(super) stalled: usize,
    /// Whether everything else on the machine comes before them.
    pub(super) is_low_priority: bool,
    /// The messages that count.
    pub(super) numbers: Range<u64>,
}

/// Monitors that are open.
pub(super) struct MonitorGroup {
    shared: Arc<Shared>,
    stop: oneshot::Sender<()>,
    /// Tells how many of the stalled ones the server had given up.
    stalled_dropped: oneshot::Receiver<usize>,
}

/// What came of a crowd.
pub(super) struct GroupOutcome {
    /// Of the reading monitors.
    pub(super) summary: EventSummary,
    /// Stalled ones that the server had given up.
    pub(super) stalled_dropped: usize,
}

struct Shared {
    settings: GroupSettings,
    received: Vec<Mutex<ReceivedEvents>>,
    /// Everything that happened at any reading monitor.
    event_count: AtomicU64,
    /// What of it counts.
    counted_events: AtomicU64,
    /// Reading monitors that were cut off and have not come back yet.
    disconnected: AtomicU64,
    /// How many times [`INTERVAL`] has passed on the thread of the monitors.
    ticks: AtomicU64,
}

impl MonitorGroup {
    /// Opens all monitors, and waits until they have heard what the server tells about the past.
    pub(super) async fn open(plan: GroupSettings) -> Result<Self, Error> {
        allow_open_files(plan.monitors + plan.stalled)?;
        let is_timed = |index: usize| {
            plan.topic == Topic::Mailbox || index.is_multiple_of(plan.monitors.div_ceil(MAX_TIMED_MONITORS).max(1))
        };
        let seen =
            (0..plan.monitors).map(|index| Mutex::new(ReceivedEvents::new(plan.numbers.clone(), is_timed(index))));
        let seen = seen.collect();
        let [happenings, heard, away, ticks] = [0; 4].map(AtomicU64::new);
        let shared = Arc::new(Shared {
            settings: plan,
            received: seen,
            event_count: happenings,
            counted_events: heard,
            disconnected: away,
            ticks,
        });
        let (opened, is_open) = oneshot::channel();
        let (leave, left) = oneshot::channel();
        let (went, gone) = oneshot::channel();
        let theirs = Arc::clone(&shared);
        thread::spawn(move || {
            // Whoever is not there any more to hear this has failed for another reason.
            match open_all(&theirs) {
                Err(error) => {
                    let _ = opened.send(Err(error));
                }
                Ok(hall) => {
                    let _ = opened.send(Ok(()));
                    let _ = went.send(hall.run(&theirs, left));
                }
            }
        });
        is_open.await.unwrap_or_else(|_| Err(monitors_ended()))?;
        let crowd = Self { shared, stop: leave, stalled_dropped: gone };
        crowd.wait_until(u64::MAX, Duration::from_millis(300)).await;
        Ok(crowd)
    }

    /// Waits until all monitors have heard of what was acknowledged, or do not hear of anything any more.
    pub(super) async fn wait_for(&self, acknowledged: &[Option<Instant>]) {
        let messages = acknowledged.iter().flatten().count() as u64;
        let due = match self.shared.settings.topic {
            Topic::All => messages * self.shared.received.len() as u64,
            Topic::Mailbox => messages,
        };
        // Long enough for those that were cut off to come back.
        self.wait_until(due, RECONNECT_DELAY * 2).await;
    }

    /// Closes all monitors.
    pub(super) async fn close(self, acknowledged: &[Option<Instant>]) -> Result<GroupOutcome, Error> {
        // The thread waits for this, or has ended, which the next line notices.
        let _ = self.stop.send(());
        let stalled_dropped = self.stalled_dropped.await.map_err(|_| monitors_ended())?;
        let seen: Vec<_> = self.shared.received.iter().map(lock).collect();
        let seen: Vec<&ReceivedEvents> = seen.iter().map(|seen| &**seen).collect();
        Ok(GroupOutcome {
            summary: EventSummary::compare(&seen, acknowledged, self.shared.settings.topic),
            stalled_dropped,
        })
    }

    /// Waits until so many events that count were heard, or for some time nothing happened and no monitor was away. That time
    /// is counted by the thread of the monitors: on a busy machine its low priority may keep it from hearing anything.
    async fn wait_until(&self, due: u64, quiet: Duration) {
        let now = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Shared { event_count: happenings, counted_events: heard, disconnected: away, ticks, .. } = &*self.shared;
        let deadline = Instant::now() + WAIT_TIMEOUT;
        let mut last = (now(ticks), 0);
        while now(heard) < due && TICK * ticks_since(last.0, now(ticks)) < quiet && Instant::now() < deadline {
            sleep(TICK).await;
            if now(happenings) != last.1 || now(away) > 0 {
                last = (now(ticks), now(happenings));
            }
        }
    }
}

fn ticks_since(before: u64, now: u64) -> u32 {
    u32::try_from(now - before).unwrap_or(u32::MAX)
}

/// The thread's own: its runtime and the open monitors in it.
struct OpenMonitors {
    runtime: tokio::runtime::Runtime,
    reading: Vec<(Subscription, Monitor)>,
    stalled: Vec<Monitor>,
}

/// Opens the monitors one after the other; who is open hears nothing yet.
fn open_all(shared: &Shared) -> Result<OpenMonitors, Error> {
    if shared.settings.is_low_priority {
        // On Linux a priority belongs to a thread, and no process means the calling one.
        let lowered = setpriority_process(None, 19);
        lowered.map_err(|error| Error::io("lowering the priority of the monitors", error.into()))?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Error::io("starting the runtime of the monitors", error))?;
    let plan = &shared.settings;
    let subscription = |mailbox, stalled| {
        let (base, protocol) = (plan.base.clone(), plan.protocol);
        Subscription { base, protocol, mailbox, last_id: None, is_stalled: stalled }
    };
    let (mut reading, mut stalled) = (Vec::new(), Vec::new());
    runtime.block_on(async {
        for index in 0..plan.monitors {
            let mailbox = (plan.topic == Topic::Mailbox).then(|| mailbox_name(plan.prefix, index));
            let subscription = subscription(mailbox, false);
            let monitor = Monitor::open(&subscription).await?;
            reading.push((subscription, monitor));
        }
        for _ in 0..plan.stalled {
            stalled.push(Monitor::open(&subscription(None, true)).await?);
        }
        Ok(())
    })?;
    Ok(OpenMonitors { runtime, reading, stalled })
}

impl OpenMonitors {
    /// Lets the monitors listen until they are to leave; how many of the stalled ones the server has given up by then.
    fn run(self, shared: &Arc<Shared>, left: oneshot::Receiver<()>) -> usize {
        self.runtime.block_on(async {
            let mut reading = JoinSet::new();
            reading.spawn(tick(Arc::clone(shared)));
            for (index, (subscription, monitor)) in self.reading.into_iter().enumerate() {
                reading.spawn(read(Arc::clone(shared), index, subscription, monitor));
            }
            // An error means that nobody waits for the monitors any more, which is the same.
            let _ = left.await;
            reading.shutdown().await;
            let mut stalled = JoinSet::new();
            for monitor in self.stalled {
                stalled.spawn(was_dropped(monitor));
            }
            stalled.join_all().await.into_iter().filter(|&dropped| dropped).count()
        })
    }
}

/// Counts the time on this thread.
async fn tick(shared: Arc<Shared>) {
    loop {
        sleep(TICK).await;
        shared.ticks.fetch_add(1, Ordering::Relaxed);
    }
}

/// One reading monitor, which comes back whenever it is cut off.
async fn read(shared: Arc<Shared>, index: usize, mut subscription: Subscription, mut monitor: Monitor) {
    loop {
        let end = read_until_disconnected(&shared, index, &mut monitor).await;
        shared.disconnected.fetch_add(1, Ordering::Relaxed);
        lock(&shared.received[index]).record_disconnect(end);
        if let Some(id) = monitor.last_id() {
            subscription.last_id = Some(id.to_owned());
        }
        monitor = loop {
            sleep(RECONNECT_DELAY).await;
            match Monitor::open(&subscription).await {
                Ok(monitor) => break monitor,
                Err(error) => lock(&shared.received[index]).record_disconnect(Err(error)),
            }
        };
        lock(&shared.received[index]).reconnected += 1;
        shared.disconnected.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Listens until the server says that the monitor lagged, or cuts it off without a word.
async fn read_until_disconnected(shared: &Shared, index: usize, monitor: &mut Monitor) -> Result<(), Error> {
    loop {
        let happening = monitor.next().await?;
        shared.event_count.fetch_add(1, Ordering::Relaxed);
        match happening {
            MonitorEvent::Stored(number) => {
                if lock(&shared.received[index]).record(number) {
                    shared.counted_events.fetch_add(1, Ordering::Relaxed);
                }
            }
            MonitorEvent::Other => {}
            MonitorEvent::Lagged => return Ok(()),
        }
    }
}

/// Reads what had come to a monitor that did not read, to see whether the server has ended it.
async fn was_dropped(mut monitor: Monitor) -> bool {
    let deadline = Instant::now() + WAIT_TIMEOUT;
    while Instant::now() < deadline {
        match timeout(STALLED_READ_TIMEOUT, monitor.next()).await {
            Err(_) => return false,
            Ok(Ok(MonitorEvent::Lagged) | Err(_)) => return true,
            Ok(Ok(MonitorEvent::Stored(_) | MonitorEvent::Other)) => {}
        }
    }
    false
}

/// The thread of the monitors has panicked, and said why.
fn monitors_ended() -> Error {
    Error::Usage("the monitors ended by themselves".to_owned())
}

/// What a monitor has seen is never left half noted.
fn lock(seen: &Mutex<ReceivedEvents>) -> MutexGuard<'_, ReceivedEvents> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks the system for as many open files as it lets us have, and refuses to begin when that is too few.
pub(crate) fn allow_open_files(connections: usize) -> Result<(), Error> {
    /// For the connections that send, and what every program has open.
    const OTHERS: u64 = 200;
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).map_err(|error| Error::io("raising the limit of open files", error.into()))?;
    let needed = connections as u64 + OTHERS;
    match limit.maximum {
        Some(maximum) if maximum < needed => {
            Err(Error::Usage(format!("{needed} open files are needed and {maximum} allowed: see ulimit -n")))
        }
        _ => Ok(()),
    }
}
