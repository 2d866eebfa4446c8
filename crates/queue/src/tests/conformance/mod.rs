//! The rules of [`Queue`] as tests that every backend runs. [`run`] opens a new queue for each rule.

mod changes;
mod reading;
mod sending;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use restante_mail::message::MessageId;

use crate::*;

/// A limit that no test reaches.
const LARGE_LIMIT: usize = 100_000;

/// Runs every rule against queues that `open` creates with the maximum numbers of waiting and of finished entries.
pub(crate) async fn run<Q: Queue>(open: impl AsyncFn(usize, usize) -> Q) {
    let large = async || Arc::new(open(LARGE_LIMIT, LARGE_LIMIT).await);
    reading::identity_is_random_and_stays(&*large().await, &*large().await).await;
    reading::empty_queue_returns_nothing(&*large().await).await;
    reading::entry_is_returned_as_added(&*large().await).await;
    reading::list_is_filtered_and_paged(&*large().await).await;
    reading::counts_follow_states(&*large().await).await;
    sending::claims_due_entries_in_order(&*large().await).await;
    sending::entry_is_due_at_once_after_the_clock_was_set_back(&*large().await).await;
    sending::entry_is_claimed_once(large().await).await;
    sending::records_outcomes(&*large().await).await;
    sending::released_entry_is_queued_as_it_was(&*large().await).await;
    sending::entry_is_retried_when_it_is_due(&*large().await).await;
    sending::result_without_claim_is_ignored(&*large().await).await;
    sending::expired_entries_fail(&*large().await).await;
    sending::expiry_can_be_postponed(&*large().await).await;
    sending::entries_of_a_paused_target_wait(&*large().await).await;
    sending::leave_returns_claimed_entries(&*large().await).await;
    changes::cancelled_entry_is_not_sent(&*large().await).await;
    changes::result_does_not_undo_cancellation(&*large().await).await;
    changes::result_of_an_earlier_claim_is_ignored(&*large().await).await;
    changes::entry_with_the_same_key_is_added_once(&*large().await).await;
    changes::selection_limits_cancellation(&*large().await).await;
    changes::retries_by_hand(&*large().await).await;
    changes::retry_leaves_out_entries_that_cannot_be_sent_again(&*large().await).await;
    changes::retry_respects_limit(&open(2, LARGE_LIMIT).await).await;
    changes::retry_respects_limits_of_each_target(&*large().await).await;
    changes::retry_returns_the_targets_and_leaves_out_removed_ones(&*large().await).await;
    changes::large_payloads_of_finished_entries_are_not_kept(&*large().await).await;
    changes::entries_of_removed_targets_are_cancelled(&*large().await).await;
    changes::adds_all_or_none(&open(3, LARGE_LIMIT).await).await;
    changes::forwards_and_moves_cursor(&open(3, LARGE_LIMIT).await).await;
    changes::cursor_is_moved_once(large().await).await;
    changes::finished_entries_are_pruned(&open(LARGE_LIMIT, 3).await).await;
}

/// Returns a time.
pub(crate) fn second(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

/// A kind whose entries can be retried by hand unless their payload is `sent`. The payload then is `again`.
pub(crate) const KIND: QueueKind = QueueKind {
    name: "test",
    file_name: "test.db",
    application_id: 0x7465_7374,
    max_delay: Duration::from_mins(30),
    is_synced: true,
    max_finished_payload: 100,
    retried_payload: |payload| (payload != b"sent").then(|| b"again".to_vec()),
};

/// Returns an entry of target `mx` that is created at second 0 and expires at second 1000.
pub(crate) fn new_entry(message: u64) -> NewEntry {
    NewEntry {
        message: message.into(),
        mailbox: "james".to_owned().into(),
        target: "mx".to_owned(),
        key: None,
        payload: b"new".to_vec(),
        created: second(0),
        expires: second(1000),
    }
}

/// Returns a result, to be completed by [`record`].
pub(crate) fn attempted(id: EntryId, state: EntryState, payload: &str, reply: &str) -> AttemptRecord {
    AttemptRecord {
        id,
        claim: 0,
        outcome: AttemptOutcome::Attempted {
            state,
            next_attempt: (state == EntryState::Queued).then(|| second(100)),
            at: second(7),
            payload: payload.into(),
            reply: reply.to_owned(),
            log: log(reply),
        },
    }
}

/// Returns the result of an accepted entry.
pub(crate) fn delivered(id: EntryId) -> AttemptRecord {
    attempted(id, EntryState::Delivered, "sent", "250 accepted")
}

/// Returns the result of a refused entry.
pub(crate) fn failed(id: EntryId) -> AttemptRecord {
    attempted(id, EntryState::Failed, "refused", "550 refused")
}

/// Returns what is kept of an attempt.
pub(crate) fn log(reply: &str) -> Vec<u8> {
    format!("log of {reply}").into()
}

/// Adds an entry.
pub(crate) async fn add(queue: &impl Queue, entry: NewEntry) -> EntryId {
    queue.add(vec![entry]).await.unwrap()[0]
}

/// Returns the ids of the entries that are claimed.
pub(crate) async fn claim(queue: &impl Queue, now: Timestamp, limit: usize) -> Vec<EntryId> {
    ids(&queue.claim("mx", now, limit).await.unwrap())
}

/// Records results of the present claims of the entries.
pub(crate) async fn record(queue: &impl Queue, mut results: Vec<AttemptRecord>) {
    for result in &mut results {
        result.claim = queue.find(result.id).await.unwrap().map_or(0, |entry| entry.claim);
    }
    queue.record(results).await.unwrap();
}

/// Retries entries without limits of their targets. Returns their number.
pub(crate) async fn retry(queue: &impl Queue, selection: Selection, now: Timestamp, expires: Timestamp) -> usize {
    queue.retry(selection, now, expires, &targets(), TargetLimits::NONE).await.unwrap().len()
}

/// Returns the targets of retried entries.
pub(crate) fn targets() -> [String; 2] {
    ["mx", "other"].map(str::to_owned)
}

/// Returns the result of an entry that was not attempted.
pub(crate) fn released(id: EntryId) -> AttemptRecord {
    AttemptRecord { id, claim: 0, outcome: AttemptOutcome::Released }
}

/// Returns an entry that exists.
pub(crate) async fn find(queue: &impl Queue, id: EntryId) -> Entry {
    queue.find(id).await.unwrap().unwrap()
}

/// Returns the state and the payload of an entry.
pub(crate) async fn state_of(queue: &impl Queue, id: EntryId) -> (EntryState, String) {
    let entry = find(queue, id).await;
    (entry.state, String::from_utf8(entry.payload).unwrap())
}

/// Returns the expected result of [`state_of`].
pub(crate) fn state(state: EntryState, payload: &str) -> (EntryState, String) {
    (state, payload.to_owned())
}

/// Returns the messages of the abandoned checkpoints.
pub(crate) async fn abandoned(queue: &impl Queue) -> Vec<MessageId> {
    queue.abandoned_checkpoints().await.unwrap().iter().map(|checkpoint| checkpoint.message).collect()
}

/// Returns all entries.
pub(crate) async fn list_all(queue: &impl Queue) -> Vec<Entry> {
    queue.list(EntryFilter { limit: LARGE_LIMIT, ..EntryFilter::default() }).await.unwrap()
}

pub(crate) fn ids(entries: &[Entry]) -> Vec<EntryId> {
    entries.iter().map(|entry| entry.id).collect()
}
