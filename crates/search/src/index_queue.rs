//! The bounded queue of events between delivery, which must not wait, and the indexer. Events that do not fit are
//! dropped. The queue remembers what has to be compared with the store because of that.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytes::Bytes;
use restante_mail::message::{Marks, MessageId, Summary};
use restante_mail::naming::MailboxName;
use restante_worker::{BoundedQueue, Contents, Inbox, Stage};
use tokio::sync::{Notify, watch};

/// The maximum size of the queue, in bytes. A message has about 700 bytes without its body.
const MAX_SIZE: usize = 8 << 20;
/// The size of the queue in bytes up to which it also keeps the bodies of messages. Those of others are read from the
/// store.
const MAX_SIZE_WITH_BODIES: usize = 4 << 20;
/// The minimum size of an event in the queue, in bytes. It is enough for everything except the headline.
const MIN_EVENT_BYTES: usize = 256;

/// A change of a stored message that the index has to follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IndexEvent {
    /// The summary is the one at the time of storing. Later changes cause other events. With the body of the message, if
    /// it is in memory.
    Stored(Summary, Option<Bytes>),
    /// The marks after the change.
    MarkChanged(MessageId, Marks),
    Deleted(MessageId),
    /// The index differs from the store for this message.
    Recheck(MailboxName, MessageId),
}

/// What the indexer has to compare with the store, because events were dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resync {
    /// Messages with ids above this one may be missing.
    NewerThan(MessageId),
    /// Anything may have changed.
    Everything,
    /// The index is unusable and has to be rebuilt.
    Rebuild,
}

/// The progress of the indexer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The number of events that were applied.
    pub(crate) processed: u64,
    /// True if nothing has to be compared with the store.
    pub(crate) is_caught_up: bool,
}

/// Work for the indexer.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) events: Vec<IndexEvent>,
    pub(crate) resync: Option<Resync>,
    /// True if the queue is closed and there is no more work after this batch.
    pub(crate) is_last: bool,
    /// True if the queue knows every event until it was closed.
    pub(crate) is_clean: bool,
}

/// The queue. See the module documentation.
#[derive(Debug, Default)]
pub(crate) struct IndexQueue {
    /// True once the indexer has started.
    is_open: AtomicBool,
    /// If it is stopped, queued events are not applied, and the index counts as incomplete.
    pub(crate) inbox: Inbox<State>,
    /// Notified when `highest_id` grows.
    highest_changed: Notify,
    progress: watch::Sender<Progress>,
}

#[derive(Debug)]
pub(crate) struct State {
    /// The size of an event is in bytes.
    events: BoundedQueue<IndexEvent>,
    resync: Option<Resync>,
    /// True if a stored message was queued after others were lost. A comparison for missing messages does not look at it again.
    has_stored_since_loss: bool,
    /// The number of events that were ever pushed.
    total_pushed: u64,
    /// The highest id of a stored message that the queue has seen.
    highest_id: MessageId,
    /// True if a search waits for the queued events.
    is_urgent: bool,
}

impl Default for State {
    fn default() -> Self {
        let events = BoundedQueue::new(MAX_SIZE);
        Self {
            events,
            resync: None,
            has_stored_since_loss: false,
            total_pushed: 0,
            highest_id: MessageId::ZERO,
            is_urgent: false,
        }
    }
}

impl IndexQueue {
    /// Starts to accept events. Earlier ones were dropped.
    pub(crate) fn open(&self) {
        self.is_open.store(true, Relaxed);
    }

    /// Pushes an event. Until the queue is open this costs next to nothing, and the closure is not called.
    pub(crate) fn push(&self, event: impl FnOnce() -> IndexEvent) {
        if !self.is_open.load(Relaxed) {
            return;
        }
        let mut event = event();
        let mut contents = self.inbox.lock();
        let is_closed = contents.stage != Stage::Open;
        let state = &mut contents.queue;
        if is_closed {
            // The indexer no longer takes it, but the index must not count as complete.
            state.record_lost(&event);
            return;
        }
        // The id of a deleted message was assigned too.
        if let IndexEvent::Stored(Summary { id, .. }, _) | IndexEvent::Deleted(id) = &event {
            state.highest_id = state.highest_id.max(*id);
            self.highest_changed.notify_waiters();
        }
        let mut size = event.size();
        if let IndexEvent::Stored(_, body) = &mut event {
            *body = body.take().filter(|body| state.events.size() + size + body.len() <= MAX_SIZE_WITH_BODIES);
            size += body.as_ref().map_or(0, Bytes::len);
        }
        let is_stored = matches!(event, IndexEvent::Stored(..));
        if let Err(event) = state.events.push(event, size) {
            state.record_lost(&event);
            self.progress.send_if_modified(|progress| std::mem::take(&mut progress.is_caught_up));
            return;
        }
        state.has_stored_since_loss |= is_stored && state.resync.is_some();
        state.total_pushed += 1;
        if state.events.len() == 1 {
            self.inbox.notify();
        }
    }

    /// Requests a comparison with the store.
    pub(crate) fn request_resync(&self, resync: Resync) {
        let mut contents = self.inbox.lock();
        let state = &mut contents.queue;
        state.resync = Some(state.resync.map_or(resync, |before| before.merge(resync)));
        self.progress.send_if_modified(|progress| std::mem::take(&mut progress.is_caught_up));
        self.inbox.notify();
    }

    /// Records that ids up to this one may have been assigned.
    pub(crate) fn record_id(&self, id: MessageId) {
        let mut contents = self.inbox.lock();
        contents.queue.highest_id = contents.queue.highest_id.max(id);
        self.highest_changed.notify_waiters();
    }

    /// Waits for events and takes up to `max_events` of them. After the first event it waits up to `delay` for more,
    /// unless a search waits. If `is_busy`, it does not wait at all. Called by the indexer.
    pub(crate) fn next_batch(&self, max_events: usize, delay: Duration, is_busy: bool) -> Batch {
        if !is_busy {
            let has_work = |Contents { queue, stage }: &mut Contents<State>| {
                !queue.events.is_empty() || queue.resync.is_some() || *stage != Stage::Open
            };
            drop(self.inbox.wait_until(None, has_work));
            let has_enough = |Contents { queue, stage }: &mut Contents<State>| {
                queue.is_urgent || *stage != Stage::Open || queue.events.len() >= max_events
            };
            drop(self.inbox.wait_until(Some(Instant::now() + delay), has_enough));
        }
        let mut contents = self.inbox.lock();
        let (stage, queue) = (contents.stage, &mut contents.queue);
        let (events, _) = queue.events.take(max_events, usize::MAX);
        if queue.events.is_empty() {
            queue.is_urgent = false;
        }
        // The queued events may be among those to compare, so they are applied first, unless the index has to be
        // rebuilt.
        let is_resync_due = queue.events.is_empty() || queue.resync == Some(Resync::Rebuild);
        let resync = if is_resync_due { queue.resync.take() } else { None };
        queue.has_stored_since_loss &= queue.resync.is_some();
        // During shutdown there is no time for queries of the store.
        let is_last = match stage {
            Stage::Open => false,
            Stage::Closed => events.is_empty() || resync.is_some(),
            Stage::Stopped => true,
        };
        Batch { is_last, is_clean: stage != Stage::Stopped, events, resync }
    }

    /// Reports that `count` more events were applied, and whether nothing else is left to compare. Called by the
    /// indexer.
    pub(crate) fn mark_done(&self, count: usize, is_caught_up: bool) {
        let contents = self.inbox.lock();
        let is_caught_up = is_caught_up && contents.queue.resync.is_none();
        self.progress.send_modify(|progress| {
            progress.processed += count as u64;
            progress.is_caught_up = is_caught_up;
        });
    }

    /// Waits until the queue has seen this id or a higher one. Returns false after `timeout`.
    pub(crate) async fn wait_for_id(&self, id: MessageId, timeout: Duration) -> bool {
        let seen = async {
            loop {
                let changed = self.highest_changed.notified();
                if self.highest_id() >= id {
                    return;
                }
                changed.await;
            }
        };
        tokio::time::timeout(timeout, seen).await.is_ok()
    }

    /// Waits until all events so far were applied. Returns false after `timeout`.
    pub(crate) async fn wait_until_indexed(&self, timeout: Duration) -> bool {
        let count = {
            let mut contents = self.inbox.lock();
            contents.queue.is_urgent = true;
            self.inbox.notify();
            contents.queue.total_pushed
        };
        let mut progress = self.progress.subscribe();
        let applied = progress.wait_for(|progress| progress.is_caught_up && progress.processed >= count);
        tokio::time::timeout(timeout, applied).await.is_ok_and(|applied| applied.is_ok())
    }

    /// Returns the highest id of a stored message that the queue has seen.
    pub(crate) fn highest_id(&self) -> MessageId {
        self.inbox.lock().queue.highest_id
    }

    /// Returns the number of queued events.
    pub(crate) fn pending(&self) -> usize {
        self.inbox.lock().queue.events.len()
    }
}

impl IndexEvent {
    /// Returns the size in the queue without the body.
    fn size(&self) -> usize {
        match self {
            Self::Stored(summary, _) => MIN_EVENT_BYTES + summary.text_len(),
            Self::MarkChanged(_, marks) => MIN_EVENT_BYTES + marks.tags.encoded().len(),
            _ => MIN_EVENT_BYTES,
        }
    }
}

impl State {
    fn record_lost(&mut self, event: &IndexEvent) {
        let resync = match (event, self.resync) {
            (IndexEvent::Stored(summary, _), _) => Resync::NewerThan(summary.id.number().saturating_sub(1).into()),
            // This message was lost too, so the comparison reads its current state.
            (
                IndexEvent::MarkChanged(id, _) | IndexEvent::Deleted(id) | IndexEvent::Recheck(_, id),
                Some(Resync::NewerThan(above)),
            ) if *id > above && !self.has_stored_since_loss => {
                return;
            }
            _ => Resync::Everything,
        };
        self.resync = Some(self.resync.map_or(resync, |before| before.merge(resync)));
    }
}

impl Resync {
    fn merge(self, other: Self) -> Self {
        match (self, other) {
            (Self::NewerThan(left), Self::NewerThan(right)) => Self::NewerThan(left.min(right)),
            (Self::Rebuild, _) | (_, Self::Rebuild) => Self::Rebuild,
            _ => Self::Everything,
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use restante_mail::details::Details;
    use restante_mail::message::{Flags, Headline};
    use restante_mail::naming::Naming;
    use restante_mail::tags::Tags;

    use super::*;

    const MAX_EVENTS: usize = MAX_SIZE / MIN_EVENT_BYTES;

    fn stored(id: u64) -> IndexEvent {
        stored_with_subject(id, "")
    }

    fn stored_with_subject(id: u64, subject: &str) -> IndexEvent {
        let summary = Summary {
            mailbox: Naming::Local.parse_mailbox("ann").unwrap(),
            id: id.into(),
            message: id.into(),
            number: 1,
            headline: Headline::new("", [], subject),
            received: Timestamp::UNIX_EPOCH,
            size: 1,
            seen: false,
            flags: Flags::default(),
            modseq: 1,
            tags: Tags::default(),
            details: Details::default(),
        };
        IndexEvent::Stored(summary, None)
    }

    #[test]
    fn bodies_are_kept_while_the_queue_is_short() {
        let queue = IndexQueue::default();
        queue.open();
        let body = Bytes::from(vec![b'x'; MAX_SIZE_WITH_BODIES / 4]);
        let push = |id| {
            let IndexEvent::Stored(summary, _) = stored(id) else { unreachable!() };
            queue.push(|| IndexEvent::Stored(summary, Some(body.clone())));
        };
        for _ in 0..2 {
            (1..=10).for_each(push);
            let events = queue.next_batch(10, Duration::ZERO, false).events;
            let kept = events.iter().filter(|event| matches!(event, IndexEvent::Stored(_, Some(_)))).count();
            assert_eq!((events.len(), kept), (10, 3));
        }
    }

    #[test]
    fn long_headlines_fill_the_queue() {
        let queue = IndexQueue::default();
        queue.open();
        let subject = "x".repeat(3 * MIN_EVENT_BYTES);
        for id in 1..=MAX_EVENTS as u64 {
            queue.push(|| stored_with_subject(id, &subject));
        }
        let batch = queue.next_batch(MAX_EVENTS, Duration::ZERO, false);
        let (fitting, last) = (MAX_EVENTS / 4, MessageId::from(MAX_EVENTS as u64 / 4));
        assert_eq!((batch.events.len(), batch.resync), (fitting, Some(Resync::NewerThan(last))));
    }

    #[test]
    fn events_before_open_are_ignored() {
        let queue = IndexQueue::default();
        queue.push(|| unreachable!("the closure must not be called"));
        queue.open();
        queue.push(|| stored(1));
        assert_eq!(queue.next_batch(10, Duration::ZERO, false).events, [stored(1)]);
    }

    #[test]
    fn overflow_requests_resync_of_newer_ids() {
        let queue = IndexQueue::default();
        queue.open();
        for id in 1..=MAX_EVENTS as u64 {
            queue.push(|| stored(id));
        }
        let beyond = MAX_EVENTS as u64 + 1;
        for id in (beyond..beyond + 10).rev() {
            queue.push(|| stored(id));
            queue.push(|| IndexEvent::Deleted(id.into()));
        }
        let first = queue.next_batch(MAX_EVENTS - 1, Duration::ZERO, false);
        assert_eq!((first.events.len(), first.resync), (MAX_EVENTS - 1, None), "queued events come first");
        let second = queue.next_batch(MAX_EVENTS, Duration::ZERO, false);
        assert_eq!((second.events.len(), second.resync), (1, Some(Resync::NewerThan((beyond - 1).into()))));
        assert_eq!(queue.highest_id(), (beyond + 9).into());
    }

    #[test]
    fn lost_deletion_of_a_message_queued_after_a_loss_requests_full_resync() {
        let queue = IndexQueue::default();
        queue.open();
        queue.request_resync(Resync::NewerThan(0.into()));
        for id in 1..=MAX_EVENTS as u64 + 1 {
            queue.push(|| stored(id));
        }
        queue.push(|| IndexEvent::Deleted(1.into()));
        assert_eq!(queue.next_batch(MAX_EVENTS, Duration::ZERO, false).resync, Some(Resync::Everything));
    }

    #[test]
    fn lost_deletion_requests_full_resync() {
        let queue = IndexQueue::default();
        queue.open();
        for id in 1..=MAX_EVENTS as u64 {
            queue.push(|| stored(id));
        }
        queue.push(|| IndexEvent::Deleted(1.into()));
        queue.push(|| stored(1 << 40));
        assert_eq!(queue.next_batch(MAX_EVENTS, Duration::ZERO, false).resync, Some(Resync::Everything));
    }

    #[test]
    fn rebuild_comes_before_queued_events() {
        let queue = IndexQueue::default();
        queue.open();
        queue.push(|| stored(1));
        queue.push(|| stored(2));
        queue.request_resync(Resync::Rebuild);
        assert_eq!(queue.next_batch(1, Duration::ZERO, false).resync, Some(Resync::Rebuild));
        assert_eq!(queue.next_batch(1, Duration::ZERO, false).events, [stored(2)]);
    }

    #[tokio::test]
    async fn waits_until_events_are_indexed() {
        let queue = IndexQueue::default();
        queue.open();
        queue.push(|| stored(1));
        assert!(!queue.wait_until_indexed(Duration::ZERO).await);
        let batch = queue.next_batch(10, Duration::from_hours(1), false);
        assert_eq!(batch.events.len(), 1, "a waiting search ends the delay");
        queue.mark_done(1, false);
        assert!(!queue.wait_until_indexed(Duration::ZERO).await, "the comparison is not complete");
        queue.mark_done(0, true);
        assert!(queue.wait_until_indexed(Duration::ZERO).await);
        queue.push(|| stored(2));
        assert!(!queue.wait_until_indexed(Duration::ZERO).await);
    }

    #[tokio::test]
    async fn waits_for_this_or_a_higher_id() {
        let queue = IndexQueue::default();
        queue.open();
        assert!(queue.wait_for_id(0.into(), Duration::ZERO).await);
        assert!(!queue.wait_for_id(2.into(), Duration::ZERO).await);
        let long = Duration::from_mins(1);
        let (seen, ()) = tokio::join!(queue.wait_for_id(2.into(), long), async { queue.push(|| stored(3)) });
        assert!(seen);
        let (seen, ()) =
            tokio::join!(queue.wait_for_id(4.into(), long), async { queue.push(|| IndexEvent::Deleted(4.into())) });
        assert!(seen, "a deleted message has an id too");
        let (seen, ()) = tokio::join!(queue.wait_for_id(5.into(), long), async { queue.record_id(5.into()) });
        assert!(seen);
    }

    #[tokio::test]
    async fn waits_until_resync_is_done() {
        let queue = IndexQueue::default();
        queue.open();
        queue.mark_done(0, true);
        assert!(queue.wait_until_indexed(Duration::ZERO).await);
        queue.request_resync(Resync::Everything);
        assert!(!queue.wait_until_indexed(Duration::ZERO).await);
    }

    #[test]
    fn queued_events_are_taken_after_close() {
        let queue = IndexQueue::default();
        queue.open();
        queue.push(|| stored(1));
        queue.inbox.close();
        let first = queue.next_batch(10, Duration::from_hours(1), false);
        assert_eq!((first.events, first.is_last), (vec![stored(1)], false));
        let last = queue.next_batch(10, Duration::ZERO, false);
        assert!(last.is_last && last.resync.is_none());
        queue.push(|| stored(2));
        let last = queue.next_batch(10, Duration::ZERO, false);
        assert!(last.is_last && last.resync.is_some(), "pushed after close: {last:?}");
    }
}
