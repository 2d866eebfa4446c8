//! Rules about additions, the cursor, cancellation, retries by hand and the limits.

use super::*;

fn only(id: EntryId) -> Selection {
    Selection::Ids(vec![id])
}

pub(super) async fn cancelled_entry_is_not_sent(queue: &impl Queue) {
    let id = add(queue, new_entry(1)).await;
    assert_eq!(queue.cancel(only(id)).await.unwrap(), 1);
    assert_eq!(queue.cancel(only(id)).await.unwrap(), 0);
    assert_eq!(claim(queue, second(500), 10).await, []);
    assert_eq!(queue.next_due("mx").await.unwrap(), None);
    assert_eq!(queue.expire(Timestamp::MAX).await.unwrap().len(), 0);
    assert_eq!(state_of(queue, id).await.0, EntryState::Cancelled);
    assert_eq!(find(queue, id).await.next_attempt, None);
}

pub(super) async fn result_does_not_undo_cancellation(queue: &impl Queue) {
    let added = queue.add(vec![new_entry(1), new_entry(2)]).await.unwrap();
    assert_eq!(claim(queue, second(0), 10).await, added);
    assert_eq!(queue.cancel(Selection::Target(None)).await.unwrap(), 2);
    record(queue, vec![attempted(added[0], EntryState::Queued, "half", "451 half"), released(added[1])]).await;
    assert_eq!(state_of(queue, added[0]).await, state(EntryState::Cancelled, "half"));
    let entry = find(queue, added[0]).await;
    assert_eq!((entry.attempts, &*entry.last_reply), (1, "451 half"));
    assert_eq!(queue.attempt_log(added[0]).await.unwrap(), Some(log("451 half")));
    assert_eq!(state_of(queue, added[1]).await.0, EntryState::Cancelled);
    // There is only one result of a claim.
    record(queue, vec![delivered(added[0]), delivered(added[1])]).await;
    assert_eq!(find(queue, added[0]).await.last_reply, "451 half");
    assert_eq!(find(queue, added[1]).await.last_reply, "");
}

pub(super) async fn selection_limits_cancellation(queue: &impl Queue) {
    let other = |message| NewEntry { target: "other".to_owned(), ..new_entry(message) };
    let added = queue.add(vec![new_entry(1), new_entry(2), other(3), other(4)]).await.unwrap();
    let ids = vec![added[0], added[0], EntryId(u64::MAX)];
    assert_eq!(queue.cancel(Selection::Ids(ids)).await.unwrap(), 1);
    assert_eq!(queue.cancel(Selection::Ids(Vec::new())).await.unwrap(), 0);
    assert_eq!(queue.cancel(Selection::Target(Some("other".to_owned()))).await.unwrap(), 2);
    assert_eq!(claim(queue, second(0), 10).await, [added[1]]);
    record(queue, vec![delivered(added[1])]).await;
    assert_eq!(queue.cancel(Selection::Target(None)).await.unwrap(), 0, "a delivered entry cannot be cancelled");
    assert_eq!(state_of(queue, added[1]).await.0, EntryState::Delivered);
}

/// The sender of the first claim is slow. Meanwhile the entry is cancelled, retried and claimed again.
pub(super) async fn result_of_an_earlier_claim_is_ignored(queue: &impl Queue) {
    let id = add(queue, new_entry(1)).await;
    let earlier = queue.claim("mx", second(0), 1).await.unwrap().remove(0).claim;
    queue.cancel(only(id)).await.unwrap();
    assert_eq!(retry(queue, only(id), second(0), second(1000)).await, 1);
    let claimed = queue.claim("mx", second(0), 1).await.unwrap().remove(0);
    for late in [failed(id), delivered(id), released(id)] {
        queue.record(vec![AttemptRecord { claim: earlier, ..late }]).await.unwrap();
        assert_eq!(find(queue, id).await, claimed);
    }
    record(queue, vec![delivered(id)]).await;
    assert_eq!(state_of(queue, id).await.0, EntryState::Delivered);
}

pub(super) async fn entry_with_the_same_key_is_added_once(queue: &impl Queue) {
    let keyed =
        |target: &str, key: &str| NewEntry { target: target.to_owned(), key: Some(key.to_owned()), ..new_entry(1) };
    let added = queue.add(vec![keyed("mx", "a"), keyed("mx", "b"), keyed("mx", "a")]).await.unwrap();
    assert_eq!(added.len(), 2);
    assert_eq!(claim(queue, second(0), 1).await, added[..1]);
    record(queue, vec![delivered(added[0])]).await;
    assert_eq!(queue.add(vec![keyed("mx", "b"), keyed("other", "b"), keyed("mx", "a")]).await.unwrap().len(), 1);
    let keys: Vec<_> = list_all(queue).await.into_iter().map(|entry| entry.key.unwrap()).collect();
    assert_eq!(keys, ["b", "b", "a"]);
}

pub(super) async fn entries_of_removed_targets_are_cancelled(queue: &impl Queue) {
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let other = NewEntry { target: "other".to_owned(), ..new_entry(2) };
    let unknown = NewEntry { target: "unknown".to_owned(), ..new_entry(3) };
    assert_eq!(queue.set_targets(names(&["mx", "other"]), 5.into()).await.unwrap(), 0);
    let added = queue.add(vec![new_entry(1), other.clone(), unknown]).await.unwrap();
    queue.set_paused("other", true).await.unwrap();
    assert_eq!(queue.set_targets(names(&["mx", "new"]), 9.into()).await.unwrap(), 2);
    assert_eq!(state_of(queue, added[0]).await.0, EntryState::Queued);
    assert_eq!(state_of(queue, added[1]).await.0, EntryState::Cancelled);
    assert_eq!(state_of(queue, added[2]).await.0, EntryState::Cancelled, "it was never a target");
    let target = |name: &str, since: u64| TargetRecord { name: name.to_owned(), is_paused: false, since: since.into() };
    assert_eq!(queue.targets().await.unwrap(), [target("mx", 5), target("new", 9)]);

    // A node that still has the removed target adds an entry. It is not sent when the target is configured again.
    for configured in [&["mx", "other"][..], &["mx"]] {
        assert_eq!(queue.set_targets(names(&["mx"]), 10.into()).await.unwrap(), 0);
        let late = add(queue, other.clone()).await;
        assert_eq!(queue.set_targets(names(configured), 11.into()).await.unwrap(), 1, "{configured:?}");
        assert_eq!(state_of(queue, late).await.0, EntryState::Cancelled);
    }
}

pub(super) async fn retries_by_hand(queue: &impl Queue) {
    let added = queue.add((1..=6).map(new_entry).collect()).await.unwrap();
    assert_eq!(claim(queue, second(0), 5).await, added[..5]);
    let results =
        vec![attempted(added[0], EntryState::Queued, "later", "450 later"), failed(added[1]), delivered(added[3])];
    record(queue, results).await;
    assert_eq!(queue.cancel(Selection::Ids(vec![added[2], added[5]])).await.unwrap(), 2);

    assert_eq!(retry(queue, Selection::Target(None), second(50), second(5000)).await, 4);
    for index in [0, 1, 2, 5] {
        let entry = find(queue, added[index]).await;
        assert_eq!(state_of(queue, added[index]).await, state(EntryState::Queued, "again"));
        assert_eq!((entry.next_attempt, entry.expires), (Some(second(50)), second(5000)));
    }
    assert_eq!(find(queue, added[1]).await.last_reply, "550 refused", "the last result is kept");
    assert_eq!(state_of(queue, added[3]).await.0, EntryState::Delivered);
    assert_eq!(state_of(queue, added[4]).await.0, EntryState::Sending);
    assert_eq!(claim(queue, second(4999), 10).await, [added[0], added[1], added[2], added[5]]);
}

pub(super) async fn retry_leaves_out_entries_that_cannot_be_sent_again(queue: &impl Queue) {
    let added = queue.add(vec![new_entry(1), new_entry(2)]).await.unwrap();
    assert_eq!(claim(queue, second(0), 10).await, added);
    queue.cancel(only(added[0])).await.unwrap();
    record(queue, vec![delivered(added[0]), failed(added[1])]).await;
    assert_eq!(retry(queue, Selection::Ids(added.clone()), second(9), second(99)).await, 1);
    assert_eq!(state_of(queue, added[0]).await, state(EntryState::Cancelled, "sent"));
    assert_eq!(state_of(queue, added[1]).await, state(EntryState::Queued, "again"));
}

/// The queue has a limit of two entries.
pub(super) async fn retry_respects_limit(queue: &impl Queue) {
    let first = queue.add(vec![new_entry(1), new_entry(2)]).await.unwrap();
    queue.cancel(Selection::Target(None)).await.unwrap();
    let third = add(queue, new_entry(3)).await;
    assert_eq!(retry(queue, Selection::Target(None), second(9), second(99)).await, 2);
    assert_eq!(state_of(queue, first[0]).await.0, EntryState::Queued);
    assert_eq!(state_of(queue, first[1]).await.0, EntryState::Cancelled, "there is no room for it");
    assert_eq!(find(queue, third).await.next_attempt, Some(second(9)));
}

pub(super) async fn retry_respects_limits_of_each_target(queue: &impl Queue) {
    let entry =
        |target: &str, bytes| NewEntry { target: target.to_owned(), payload: vec![b'x'; bytes], ..new_entry(1) };
    let added = queue.add(vec![entry("mx", 1), entry("mx", 1), entry("other", 7), entry("other", 1)]).await.unwrap();
    queue.cancel(Selection::Ids(vec![added[0], added[1], added[3]])).await.unwrap();
    let retry = async |max_waiting, max_bytes| {
        let limits = TargetLimits { max_waiting, max_bytes };
        queue.retry(Selection::Target(None), second(9), second(99), &targets(), limits).await.unwrap().len()
    };
    // The payload of a retried entry has five bytes. The one that waits is always retried.
    assert_eq!(retry(1, 4).await, 1);
    assert_eq!(retry(2, 9).await, 2, "a target has no room for ten bytes");
    assert_eq!(state_of(queue, added[1]).await.0, EntryState::Cancelled);
    assert_eq!(retry(1, u64::MAX).await, 2, "a target has no room for two entries");
    assert_eq!(retry(2, u64::MAX).await, 4);
}

pub(super) async fn retry_returns_the_targets_and_leaves_out_removed_ones(queue: &impl Queue) {
    let other = NewEntry { target: "other".to_owned(), ..new_entry(2) };
    let removed = NewEntry { target: "removed".to_owned(), ..new_entry(3) };
    let added = queue.add(vec![new_entry(1), other.clone(), other, removed]).await.unwrap();
    for (selection, expected) in [
        (only(added[0]), &["mx"][..]),
        (Selection::Ids(added.clone()), &["mx", "other", "other"]),
        (Selection::Target(None), &["mx", "other", "other"]),
        (Selection::Target(Some("removed".to_owned())), &[]),
    ] {
        let retried = queue.retry(selection, second(9), second(99), &targets(), TargetLimits::NONE).await.unwrap();
        assert_eq!(retried, expected);
    }
    assert_eq!(find(queue, added[3]).await.expires, second(1000), "its target does not exist");
}

pub(super) async fn large_payloads_of_finished_entries_are_not_kept(queue: &impl Queue) {
    let (kept, large) = ("x".repeat(KIND.max_finished_payload), "x".repeat(KIND.max_finished_payload + 1));
    for payload in [&kept, &large] {
        let finished = if *payload == large { "" } else { &**payload };
        let entry = NewEntry { payload: payload.clone().into(), ..new_entry(1) };
        let added = queue.add(vec![entry; 5]).await.unwrap();
        assert_eq!(claim(queue, second(0), 4).await, added[..4]);
        record(queue, vec![attempted(added[0], EntryState::Queued, payload, "450 later")]).await;
        assert_eq!(state_of(queue, added[0]).await, state(EntryState::Queued, payload));
        record(queue, vec![attempted(added[1], EntryState::Failed, payload, "550 refused")]).await;
        assert_eq!(state_of(queue, added[1]).await, state(EntryState::Failed, finished));
        // The result of an entry that is cancelled while it is sent does not restore the payload.
        assert_eq!(queue.cancel(Selection::Ids(added[2..4].to_vec())).await.unwrap(), 2);
        assert_eq!(state_of(queue, added[2]).await, state(EntryState::Cancelled, finished));
        record(queue, vec![attempted(added[2], EntryState::Queued, payload, "450 later"), released(added[3])]).await;
        for id in &added[2..4] {
            assert_eq!(state_of(queue, *id).await, state(EntryState::Cancelled, finished));
        }
        queue.expire(second(1000)).await.unwrap();
        for id in [added[0], added[4]] {
            assert_eq!(state_of(queue, id).await, state(EntryState::Failed, finished));
        }
        let bytes: u64 = queue.counts().await.unwrap().iter().map(|count| count.bytes).sum();
        assert_eq!(bytes, 5 * kept.len() as u64);
    }
}

/// The queue has a limit of three entries.
pub(super) async fn adds_all_or_none(queue: &impl Queue) {
    let added = queue.add(vec![new_entry(1), new_entry(2)]).await.unwrap();
    assert_eq!(claim(queue, second(0), 1).await, added[..1]);
    let refused = queue.add(vec![new_entry(3), new_entry(4)]).await;
    assert!(matches!(refused, Err(AddError::Full)), "{refused:?}");
    assert_eq!(list_all(queue).await.len(), 2);
    let last = add(queue, new_entry(5)).await;
    assert!(last > added[1]);
    assert!(matches!(queue.add(vec![new_entry(6)]).await, Err(AddError::Full)));
    assert_eq!(queue.add(Vec::new()).await.unwrap(), []);
    // Finished entries do not count.
    record(queue, vec![delivered(added[0])]).await;
    add(queue, new_entry(7)).await;
}

/// The queue has a limit of three entries.
pub(super) async fn forwards_and_moves_cursor(queue: &impl Queue) {
    let ids = |numbers: [u64; 2]| numbers.map(MessageId::from);
    let [from, to] = ids([100, 120]);
    let forward = async |messages: &[u64], [from, to]: [MessageId; 2]| {
        queue.forward(messages.iter().copied().map(new_entry).collect(), from, to).await.unwrap()
    };
    assert_eq!(forward(&[1], [from, to]).await, ForwardOutcome::CursorMoved, "there is no cursor");
    assert_eq!(queue.acquire_cursor(from).await.unwrap(), Some(from));
    assert_eq!(queue.acquire_cursor(to).await.unwrap(), Some(from));
    assert_eq!(forward(&[1, 2], [from, to]).await, ForwardOutcome::Added);
    assert_eq!(queue.acquire_cursor(from).await.unwrap(), Some(to));
    for (messages, cursor, expected) in [
        (&[3][..], ids([100, 130]), ForwardOutcome::CursorMoved),
        (&[][..], ids([119, 130]), ForwardOutcome::CursorMoved),
        (&[3, 4][..], ids([120, 130]), ForwardOutcome::Full),
    ] {
        assert_eq!(forward(messages, cursor).await, expected, "{messages:?} {cursor:?}");
        assert_eq!(list_all(queue).await.len(), 2);
        assert_eq!(queue.acquire_cursor(from).await.unwrap(), Some(to));
    }
    assert_eq!(forward(&[5], ids([120, 130])).await, ForwardOutcome::Added);
    assert_eq!(forward(&[6], ids([130, 140])).await, ForwardOutcome::Full);
    assert_eq!(forward(&[], ids([130, 140])).await, ForwardOutcome::Added, "nothing was to be added");
    assert_eq!(list_all(queue).await.iter().map(|entry| entry.message.number()).collect::<Vec<_>>(), [5, 2, 1]);
    assert_eq!(queue.cancel(Selection::Target(None)).await.unwrap(), 3);
    assert_eq!(forward(&[7, 8, 9, 10], ids([140, 150])).await, ForwardOutcome::Added, "no entry waits");
    for _ in 0..2 {
        assert!(queue.delete_cursor().await.unwrap(), "there is no cursor afterwards");
    }
    assert_eq!(queue.acquire_cursor(5.into()).await.unwrap(), Some(5.into()));
    queue.leave().await.unwrap();
    assert_eq!(queue.acquire_cursor(6.into()).await.unwrap(), Some(5.into()), "the cursor is kept");
}

pub(super) async fn cursor_is_moved_once(queue: Arc<impl Queue>) {
    assert_eq!(queue.acquire_cursor(0.into()).await.unwrap(), Some(0.into()));
    let tasks: Vec<_> = (0..4).map(|_| tokio::spawn(forward_all(queue.clone()))).collect();
    let mut added = 0;
    for task in tasks {
        added += task.await.unwrap();
    }
    assert_eq!(added, 20);
    let mut messages: Vec<u64> = list_all(&*queue).await.iter().map(|entry| entry.message.number()).collect();
    messages.reverse();
    assert_eq!(messages, (0..20).collect::<Vec<_>>());
}

/// Tries to forward twenty messages. Returns how many were added by this task.
async fn forward_all(queue: Arc<impl Queue>) -> usize {
    let mut added = 0;
    for number in 0..20_u64 {
        let outcome = queue.forward(vec![new_entry(number)], number.into(), (number + 1).into()).await.unwrap();
        added += usize::from(outcome == ForwardOutcome::Added);
    }
    added
}

/// The queue keeps three finished entries.
pub(super) async fn finished_entries_are_pruned(queue: &impl Queue) {
    let added = queue.add((0..8).map(new_entry).collect()).await.unwrap();
    let remaining = async || {
        let mut entries = list_all(queue).await;
        entries.reverse();
        ids(&entries)
    };
    assert_eq!(claim(queue, second(0), 5).await, added[..5]);
    record(queue, vec![delivered(added[0]), failed(added[2]), delivered(added[4])]).await;
    assert_eq!(remaining().await, added);
    record(queue, vec![delivered(added[3])]).await;
    assert_eq!(remaining().await, added[1..], "the lowest id is deleted");
    assert_eq!(queue.attempt_log(added[0]).await.unwrap(), None);
    assert_eq!(queue.cancel(only(added[7])).await.unwrap(), 1);
    assert_eq!(remaining().await, [added[1], added[3], added[4], added[5], added[6], added[7]]);
    assert_eq!(queue.expire(second(1000)).await.unwrap().len(), 2);
    assert_eq!(remaining().await, [added[1], added[5], added[6], added[7]], "waiting entries stay");
}
