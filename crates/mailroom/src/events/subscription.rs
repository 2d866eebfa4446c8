//! The subscriber's end: first the history or the missed events, then new events, each once and in order.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use restante_mail::naming::MailboxName;
use tokio::time::{Instant, sleep_until};

use super::hub::{Hub, ReadBatch, StartPoint};
use super::topic::TopicReceiver;
use super::{Lagged, Position, PublishedEvent};

/// The time that it takes to wake a subscriber and to write to it, and the time for each event, on a common machine. The
/// time between two reads is at least what the same work takes for all subscribers of the topic.
const WAKE_COST: Duration = Duration::from_micros(80);
const SEND_COST: Duration = Duration::from_micros(1);
/// The number of events per second above which subscribers rest longer, in proportion to it, and the largest factor. If
/// messages arrive very fast, the subscribers of one topic together use about a tenth of one processor, and may lag.
const BASE_EVENT_RATE: f64 = 5000.0;
const MAX_REST_FACTOR: f64 = 9.0;
/// The shortest time in which this rate is measured.
const MIN_RATE_PERIOD: Duration = Duration::from_millis(100);
/// The number of subscribers that read an event at the same time. If there are more, each of them waits for its turn:
/// waking a thousand tasks at once would occupy the processors for too long.
const MAX_CONCURRENT_READS: usize = 64;
/// The shortest time between two reads, so that events in quick succession are sent together.
const MIN_REST: Duration = Duration::from_millis(1);

/// A subscription to the events of one mailbox or of all.
pub struct Subscription {
    /// The history, which comes first. A message that is deleted meanwhile is skipped.
    history: VecDeque<Weak<PublishedEvent>>,
    /// Events that were read and not returned.
    ready: VecDeque<Weak<PublishedEvent>>,
    /// All events below this sequence number were returned, or are in `ready`, or do not match the topic.
    cursor: u64,
    /// Events up to this position were received before. If the subscriber comes from another node, they may still
    /// arrive here.
    resumed_from: Option<Position>,
    has_gap: bool,
    /// The time of the last read, and the number of events that were published until then.
    last_read: (Instant, u64),
    /// The earliest time of the next read.
    next_read: Instant,
    /// The time between an event and the read, if there are many subscribers.
    read_delay: Duration,
    receiver: TopicReceiver,
}

impl Hub {
    /// Subscribes to the events of one mailbox or of all. The subscriber first gets the history, or the events after
    /// `resume` if they are still known, and then new events.
    pub(crate) fn subscribe(self: &Arc<Self>, topic: Option<MailboxName>, resume: Option<Position>) -> Subscription {
        let receiver = self.listen(topic);
        let (history, cursor, is_resumed) = match self.start_point(&receiver, resume) {
            StartPoint::From(seq) => (VecDeque::new(), seq, true),
            StartPoint::History { messages, next } => (messages, next, false),
        };
        Subscription {
            history,
            ready: VecDeque::new(),
            cursor,
            resumed_from: resume.filter(|_| is_resumed),
            has_gap: resume.is_some() && !is_resumed,
            last_read: (Instant::now(), cursor),
            next_read: Instant::now(),
            read_delay: Duration::ZERO,
            receiver,
        }
    }
}

impl Subscription {
    /// Skips the history. Only events from now on follow.
    #[must_use]
    pub fn without_history(mut self) -> Self {
        self.history.clear();
        self
    }

    /// Waits for the next event. Cancel safe. After an error the caller should subscribe again.
    pub async fn next(&mut self) -> Result<Arc<PublishedEvent>, Lagged> {
        loop {
            if self.history.is_empty() && self.ready.is_empty() {
                sleep_until(self.next_read).await;
            }
            if let Some(event) = self.try_next()? {
                return Ok(event);
            }
            self.receiver.changed().await;
            self.next_read = self.next_read.max(Instant::now() + self.read_delay);
        }
    }

    /// Returns the next event if there is one now.
    pub fn try_next(&mut self) -> Result<Option<Arc<PublishedEvent>>, Lagged> {
        while let Some(event) = self.history.pop_front() {
            if let Some(event) = event.upgrade() {
                return Ok(Some(event));
            }
        }
        loop {
            if self.ready.is_empty() && !self.read()? {
                return Ok(None);
            }
            let Some(event) = self.ready.pop_front() else { return Ok(None) };
            let event = event.upgrade().ok_or(Lagged)?;
            if self.resumed_from.is_none_or(|resumed_from| event.position() > resumed_from) {
                return Ok(Some(event));
            }
        }
    }

    /// Returns whether events may be missing between the given position and those of this subscription.
    pub fn has_gap(&self) -> bool {
        self.has_gap
    }

    /// Returns the position up to which all matching events were returned, to resume from later. Events that
    /// [`Subscription::try_next`] would return now are not included.
    pub fn position(&self) -> Option<Position> {
        let is_all_returned = self.history.is_empty() && self.ready.is_empty();
        let position = || self.resumed_from.max(self.receiver.hub.position_before(self.cursor));
        is_all_returned.then(position).flatten()
    }

    /// Reads the next events. Returns false if there are none.
    fn read(&mut self) -> Result<bool, Lagged> {
        let ReadBatch { events, cursor, published, subscribers } =
            self.receiver.hub.read(&self.receiver, self.cursor)?;
        let count = u32::try_from(subscribers).unwrap_or(u32::MAX);
        let now = Instant::now();
        let (last_time, last_published) = std::mem::replace(&mut self.last_read, (now, published));
        if !events.is_empty() {
            let new_events = u32::try_from(published - last_published).unwrap_or(u32::MAX);
            let period = now.duration_since(last_time).max(MIN_RATE_PERIOD);
            let rate = f64::from(new_events) / period.as_secs_f64();
            let factor = (rate / BASE_EVENT_RATE).clamp(1.0, MAX_REST_FACTOR);
            let cost = WAKE_COST + SEND_COST * u32::try_from(events.len()).unwrap_or(u32::MAX);
            self.next_read = now + (cost * count).mul_f64(factor).max(MIN_REST);
        }
        self.read_delay = if subscribers > MAX_CONCURRENT_READS {
            WAKE_COST * u32::try_from(self.receiver.number % u64::from(count)).unwrap_or(0)
        } else {
            Duration::ZERO
        };
        (self.ready, self.cursor) = (events, cursor);
        Ok(!self.ready.is_empty())
    }
}
