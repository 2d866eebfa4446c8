//! Many monitors on a separate thread: some read, and reconnect when they are disconnected; some never read. In
//! practice they run on other machines. Here they share one with the server, so their thread can have the lowest
//! priority.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
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

/// The delay before a monitor reconnects.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);
/// For how many monitors the latency is recorded if all receive the same events. Recording all would take too much
/// memory.
const MAX_TIMED_MONITORS: usize = 20;
/// The interval at which progress is checked.
const TICK: Duration = Duration::from_millis(50);
/// The maximum time to wait for events.
const WAIT_TIMEOUT: Duration = Duration::from_mins(2);
/// If a stalled monitor receives nothing for this time once it reads, the server has not disconnected it.
const STALLED_READ_TIMEOUT: Duration = Duration::from_millis(500);

/// The settings of a group of monitors.
#[derive(Clone)]
pub(super) struct GroupSettings {
    /// The server.
    pub(super) base: BaseUrl,
    /// The protocol.
    pub(super) protocol: Protocol,
    /// What the reading monitors listen to. The stalled ones always listen to all mailboxes, because otherwise they
    /// would get too few events.
    pub(super) topic: Topic,
    /// The prefix of the mailbox names.
    pub(super) prefix: &'static str,
    /// The number of reading monitors.
    pub(super) monitors: usize,
    /// The number of monitors that never read.
    pub(super) stalled: usize,
    /// Whether their thread gets the lowest priority.
    pub(super) is_low_priority: bool,
    /// The numbers of the messages that count.
    pub(super) numbers: Range<usize>,
}

/// A group of open monitors.
pub(super) struct MonitorGroup {
    shared: Arc<Shared>,
    stop: oneshot::Sender<()>,
    /// Receives the number of stalled monitors that the server has disconnected.
    stalled_dropped: oneshot::Receiver<usize>,
}

/// The result of a group.
pub(super) struct GroupOutcome {
    /// The results of the reading monitors.
    pub(super) summary: EventSummary,
    /// The number of stalled monitors that the server has disconnected.
    pub(super) stalled_dropped: usize,
}

struct Shared {
    settings: GroupSettings,
    received: Vec<Mutex<ReceivedEvents>>,
    /// All events at all reading monitors.
    event_count: AtomicU64,
    /// Those of them that count.
    counted_events: AtomicU64,
    /// Reading monitors that are currently disconnected.
    disconnected: AtomicU64,
    /// How many times [`TICK`] has passed on the thread of the monitors.
    ticks: AtomicU64,
}

impl MonitorGroup {
    /// Opens all monitors and waits until they have received the history.
    pub(super) async fn open(settings: GroupSettings) -> Result<Self, Error> {
        allow_open_files(settings.monitors + settings.stalled)?;
        let is_timed = |index: usize| {
            settings.topic == Topic::Mailbox
                || index.is_multiple_of(settings.monitors.div_ceil(MAX_TIMED_MONITORS).max(1))
        };
        let received = (0..settings.monitors)
            .map(|index| Mutex::new(ReceivedEvents::new(settings.numbers.clone(), is_timed(index))));
        let received = received.collect();
        let [event_count, counted_events, disconnected, ticks] = [0; 4].map(AtomicU64::new);
        let shared = Arc::new(Shared { settings, received, event_count, counted_events, disconnected, ticks });
        let (open_sender, open_receiver) = oneshot::channel();
        let (stop, stop_requested) = oneshot::channel();
        let (result_sender, stalled_dropped) = oneshot::channel();
        let thread_shared = Arc::clone(&shared);
        thread::spawn(move || {
            // The receiver is gone only if another error occurred.
            match open_all(&thread_shared) {
                Err(error) => {
                    let _ = open_sender.send(Err(error));
                }
                Ok(monitors) => {
                    let _ = open_sender.send(Ok(()));
                    let _ = result_sender.send(monitors.run(&thread_shared, stop_requested));
                }
            }
        });
        open_receiver.await.unwrap_or_else(|_| Err(monitors_ended()))?;
        let group = Self { shared, stop, stalled_dropped };
        group.wait_until(u64::MAX, Duration::from_millis(300)).await;
        Ok(group)
    }

    /// Waits until all monitors have received the acknowledged messages, or receive nothing any more.
    pub(super) async fn wait_for(&self, acknowledged: &[Option<Instant>]) {
        let messages = acknowledged.iter().flatten().count() as u64;
        let due = match self.shared.settings.topic {
            Topic::All => messages * self.shared.received.len() as u64,
            Topic::Mailbox => messages,
        };
        // Long enough for disconnected monitors to reconnect.
        self.wait_until(due, RECONNECT_DELAY * 2).await;
    }

    /// Closes all monitors and returns the results.
    pub(super) async fn close(self, acknowledged: &[Option<Instant>]) -> Result<GroupOutcome, Error> {
        // If the thread has ended, the next line reports it.
        let _ = self.stop.send(());
        let stalled_dropped = self.stalled_dropped.await.map_err(|_| monitors_ended())?;
        let received: Vec<_> = self.shared.received.iter().map(Mutex::lock).collect();
        let received: Vec<&ReceivedEvents> = received.iter().map(|received| &**received).collect();
        Ok(GroupOutcome {
            summary: EventSummary::compare(&received, acknowledged, self.shared.settings.topic),
            stalled_dropped,
        })
    }

    /// Waits until `due` events that count were received, or until nothing happened for the time `quiet` while all
    /// monitors were connected. That time is measured by the thread of the monitors, because on a busy machine its low
    /// priority may keep it from running.
    async fn wait_until(&self, due: u64, quiet: Duration) {
        let now = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Shared { event_count, counted_events, disconnected, ticks, .. } = &*self.shared;
        let deadline = Instant::now() + WAIT_TIMEOUT;
        let mut last = (now(ticks), 0);
        while now(counted_events) < due && TICK * ticks_since(last.0, now(ticks)) < quiet && Instant::now() < deadline {
            sleep(TICK).await;
            if now(event_count) != last.1 || now(disconnected) > 0 {
                last = (now(ticks), now(event_count));
            }
        }
    }
}

fn ticks_since(before: u64, now: u64) -> u32 {
    u32::try_from(now - before).unwrap_or(u32::MAX)
}

/// The runtime and the open monitors of the thread.
struct OpenMonitors {
    runtime: tokio::runtime::Runtime,
    reading: Vec<(Subscription, Monitor)>,
    stalled: Vec<Monitor>,
}

/// Opens the monitors one after the other. They do not read yet.
fn open_all(shared: &Shared) -> Result<OpenMonitors, Error> {
    if shared.settings.is_low_priority {
        // On Linux a priority belongs to a thread, and `None` means the calling one.
        let result = setpriority_process(None, 19);
        result.map_err(|error| Error::Io("lowering the priority of the monitors", error.into()))?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Error::Io("starting the runtime of the monitors", error))?;
    let settings = &shared.settings;
    let subscription = |mailbox, is_stalled| {
        let (base, protocol) = (settings.base.clone(), settings.protocol);
        Subscription { base, protocol, mailbox, last_id: None, is_stalled }
    };
    let (mut reading, mut stalled) = (Vec::new(), Vec::new());
    runtime.block_on(async {
        for index in 0..settings.monitors {
            let mailbox = (settings.topic == Topic::Mailbox).then(|| mailbox_name(settings.prefix, index));
            let subscription = subscription(mailbox, false);
            let monitor = Monitor::open(&subscription).await?;
            reading.push((subscription, monitor));
        }
        for _ in 0..settings.stalled {
            stalled.push(Monitor::open(&subscription(None, true)).await?);
        }
        Ok(())
    })?;
    Ok(OpenMonitors { runtime, reading, stalled })
}

impl OpenMonitors {
    /// Runs the monitors until `stop_requested` receives a value. Returns how many stalled monitors the server has
    /// disconnected.
    fn run(self, shared: &Arc<Shared>, stop_requested: oneshot::Receiver<()>) -> usize {
        self.runtime.block_on(async {
            let mut reading = JoinSet::new();
            reading.spawn(tick(Arc::clone(shared)));
            for (index, (subscription, monitor)) in self.reading.into_iter().enumerate() {
                reading.spawn(read(Arc::clone(shared), index, subscription, monitor));
            }
            // An error means that the receiver of the results is gone, which has the same effect.
            let _ = stop_requested.await;
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

/// Runs one reading monitor, which reconnects when it is disconnected.
async fn read(shared: Arc<Shared>, index: usize, mut subscription: Subscription, mut monitor: Monitor) {
    loop {
        let result = read_until_disconnected(&shared, index, &mut monitor).await;
        shared.disconnected.fetch_add(1, Ordering::Relaxed);
        shared.received[index].lock().record_disconnect(result);
        if let Some(id) = monitor.last_id() {
            subscription.last_id = Some(id.to_owned());
        }
        monitor = loop {
            sleep(RECONNECT_DELAY).await;
            match Monitor::open(&subscription).await {
                Ok(monitor) => break monitor,
                Err(error) => shared.received[index].lock().record_disconnect(Err(error)),
            }
        };
        shared.received[index].lock().reconnected += 1;
        shared.disconnected.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Reads events until the server reports that the monitor lagged (`Ok`) or the connection ends otherwise.
async fn read_until_disconnected(shared: &Shared, index: usize, monitor: &mut Monitor) -> Result<(), Error> {
    loop {
        let event = monitor.next().await?;
        shared.event_count.fetch_add(1, Ordering::Relaxed);
        match event {
            MonitorEvent::Stored(number) => {
                if shared.received[index].lock().record(number) {
                    shared.counted_events.fetch_add(1, Ordering::Relaxed);
                }
            }
            MonitorEvent::Other => {}
            MonitorEvent::Lagged => return Ok(()),
        }
    }
}

/// Reads the pending events of a stalled monitor. Returns whether the server has disconnected it.
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

/// Returns the error for a panic on the thread of the monitors, which has printed the cause.
fn monitors_ended() -> Error {
    Error::Usage("the thread of the monitors panicked".to_owned())
}

/// Raises the limit of open files to the allowed maximum. Fails if that is not enough.
pub(crate) fn allow_open_files(connections: usize) -> Result<(), Error> {
    /// The connections that send, and the other files of the process.
    const OTHER_FILES: u64 = 200;
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).map_err(|error| Error::Io("raising the limit of open files", error.into()))?;
    let needed = connections as u64 + OTHER_FILES;
    match limit.maximum {
        Some(maximum) if maximum < needed => Err(Error::Usage(format!(
            "{needed} open files are needed, but only {maximum} are allowed: raise the limit with ulimit -n"
        ))),
        _ => Ok(()),
    }
}
