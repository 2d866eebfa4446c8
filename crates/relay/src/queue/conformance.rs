//! The rules of [`Queue`] as tests that every backend runs. [`run`] opens a new queue for each rule.

mod changes;
mod reading;
mod sending;

use std::sync::Arc;

use restante_journal::{Side, TranscriptLine};

use super::*;
use crate::entry::{Origin, RecipientState};

/// A limit that no test reaches.
const LARGE_LIMIT: usize = 100_000;

/// Runs every rule against queues that `open` creates with the maximum numbers of waiting and of finished entries.
pub(super) async fn run<Q: Queue>(open: impl AsyncFn(usize, usize) -> Q) {
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
    sending::leave_returns_claimed_entries(&*large().await).await;
    changes::cancelled_entry_is_not_sent(&*large().await).await;
    changes::result_does_not_undo_cancellation(&*large().await).await;
    changes::selection_limits_cancellation(&*large().await).await;
    changes::retries_by_hand(&*large().await).await;
    changes::retry_leaves_out_entries_without_waiting_recipient(&*large().await).await;
    changes::retry_respects_limit(&open(2, LARGE_LIMIT).await).await;
    changes::adds_all_or_none(&open(3, LARGE_LIMIT).await).await;
    changes::forwards_and_moves_cursor(&open(3, LARGE_LIMIT).await).await;
    changes::cursor_is_moved_once(large().await).await;
    changes::finished_entries_are_pruned(&open(LARGE_LIMIT, 3).await).await;
}

/// Returns a time.
pub(super) fn second(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

/// Returns an entry of target `mx` that is created at second 0 and expires at second 1000.
pub(super) fn new_entry(message: u64) -> NewEntry {
    NewEntry {
        message: message.into(),
        mailbox: "james".to_owned().into(),
        copy: (message + 1).into(),
        target: "mx".to_owned(),
        sender: "app@example.org".to_owned(),
        recipients: vec!["ann@example.org".to_owned(), "bob@example.org".to_owned()],
        origin: Origin::Forward,
        created: second(0),
        expires: second(1000),
    }
}

/// Returns a result, to be completed by [`record`].
pub(super) fn attempted(id: EntryId, state: EntryState, recipients: [RecipientState; 2], reply: &str) -> AttemptRecord {
    let addresses = ["ann@example.org", "bob@example.org"];
    let recipient = |(address, state): (&str, RecipientState)| EntryRecipient {
        address: address.to_owned(),
        state,
        reply: format!("{} {reply}", state.name()),
    };
    AttemptRecord {
        id,
        claim: 0,
        outcome: AttemptOutcome::Attempted {
            state,
            next_attempt: (state == EntryState::Queued).then(|| second(100)),
            at: second(7),
            recipients: addresses.into_iter().zip(recipients).map(recipient).collect(),
            reply: reply.to_owned(),
            transcript: transcript(reply),
        },
    }
}

/// Returns the result of an accepted message.
pub(super) fn delivered(id: EntryId) -> AttemptRecord {
    attempted(id, EntryState::Delivered, [RecipientState::Delivered; 2], "250 accepted")
}

/// Returns the result of a refused message.
pub(super) fn failed(id: EntryId) -> AttemptRecord {
    attempted(id, EntryState::Failed, [RecipientState::Failed; 2], "550 refused")
}

/// Returns a transcript of one line.
pub(super) fn transcript(text: &str) -> TranscriptLines {
    let mut lines = TranscriptLines::default();
    lines.push(TranscriptLine { micros: 3, side: Side::Server, text });
    lines
}

/// Adds an entry.
pub(super) async fn add(queue: &impl Queue, entry: NewEntry) -> EntryId {
    queue.add(vec![entry]).await.unwrap()[0]
}

/// Returns the ids of the entries that are claimed.
pub(super) async fn claim(queue: &impl Queue, now: Timestamp, limit: usize) -> Vec<EntryId> {
    ids(&queue.claim("mx", now, limit).await.unwrap())
}

/// Records results of the present claims of the entries.
pub(super) async fn record(queue: &impl Queue, mut results: Vec<AttemptRecord>) {
    for result in &mut results {
        result.claim = queue.find(result.id).await.unwrap().map_or(0, |entry| entry.claim);
    }
    queue.record(results).await.unwrap();
}

/// Returns the result of an entry that was not attempted.
pub(super) fn released(id: EntryId) -> AttemptRecord {
    AttemptRecord { id, claim: 0, outcome: AttemptOutcome::Released }
}

/// Returns an entry that exists.
pub(super) async fn find(queue: &impl Queue, id: EntryId) -> Entry {
    queue.find(id).await.unwrap().unwrap()
}

/// Returns the states of an entry and of its recipients.
pub(super) async fn states(queue: &impl Queue, id: EntryId) -> (EntryState, Vec<RecipientState>) {
    let entry = find(queue, id).await;
    (entry.state, entry.recipients.iter().map(|recipient| recipient.state).collect())
}

/// Returns all entries.
pub(super) async fn list_all(queue: &impl Queue) -> Vec<Entry> {
    queue.list(EntryFilter { limit: LARGE_LIMIT, ..EntryFilter::default() }).await.unwrap()
}

pub(super) fn ids(entries: &[Entry]) -> Vec<EntryId> {
    entries.iter().map(|entry| entry.id).collect()
}
