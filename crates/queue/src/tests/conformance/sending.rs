//! Rules about claims and their results.

use std::collections::HashSet;

use super::*;

pub(super) async fn claims_due_entries_in_order(queue: &impl Queue) {
    let created_at = |message, at| NewEntry { created: second(at), ..new_entry(message) };
    let other = NewEntry { target: "other".to_owned(), ..new_entry(9) };
    let entries = vec![created_at(1, 50), created_at(2, 10), created_at(3, 30), created_at(4, 10), other];
    let added = queue.add(entries).await.unwrap();
    assert_eq!(queue.next_due("mx").await.unwrap(), Some(second(10)));
    assert_eq!(claim(queue, second(9), 10).await, []);
    assert_eq!(claim(queue, second(10), 1).await, [added[1]]);
    assert_eq!(claim(queue, second(40), 10).await, [added[3], added[2]]);
    assert_eq!(queue.next_due("mx").await.unwrap(), Some(second(50)));
    assert_eq!(claim(queue, second(50), 0).await, []);
    assert_eq!(claim(queue, second(50), 10).await, [added[0]]);
    assert_eq!(queue.next_due("mx").await.unwrap(), None);
    assert_eq!(queue.next_due("other").await.unwrap(), Some(second(0)));
}

pub(super) async fn entry_is_due_at_once_after_the_clock_was_set_back(queue: &impl Queue) {
    let (half_an_hour, day) = (30 * 60, 24 * 60 * 60);
    let id = add(queue, new_entry(1)).await;
    assert_eq!(claim(queue, second(-half_an_hour), 10).await, []);
    assert_eq!(claim(queue, second(-half_an_hour - 1), 10).await, [id]);
    record(queue, vec![released(id)]).await;
    // Those that are due are first.
    let earlier = add(queue, NewEntry { created: second(-day), ..new_entry(2) }).await;
    assert_eq!(claim(queue, second(-day), 1).await, [earlier]);
    assert_eq!(claim(queue, second(-day), 1).await, [id]);
    assert_eq!(claim(queue, second(-day), 1).await, []);
}

pub(super) async fn entry_is_claimed_once(queue: Arc<impl Queue>) {
    const ENTRIES: u64 = 300;
    let added = queue.add((1..=ENTRIES).map(new_entry).collect()).await.unwrap();
    let tasks: Vec<_> = (0..8).map(|_| tokio::spawn(claim_all(queue.clone()))).collect();
    let mut claimed = Vec::new();
    for task in tasks {
        claimed.extend(task.await.unwrap());
    }
    // A task can end early if others have locked what is left.
    claimed.extend(claim_all(queue.clone()).await);
    assert_eq!(claimed.len(), added.len());
    assert_eq!(claimed.iter().collect::<HashSet<_>>().len(), added.len());
    assert!(list_all(&*queue).await.iter().all(|entry| entry.state == EntryState::Delivered));
}

/// Claims and delivers entries until there are none.
async fn claim_all(queue: Arc<impl Queue>) -> Vec<EntryId> {
    let mut claimed = Vec::new();
    loop {
        let batch = claim(&*queue, second(0), 7).await;
        if batch.is_empty() {
            return claimed;
        }
        record(&*queue, batch.iter().copied().map(delivered).collect()).await;
        claimed.extend(batch);
    }
}

pub(super) async fn records_outcomes(queue: &impl Queue) {
    let table = [EntryState::Delivered, EntryState::Failed, EntryState::Queued];
    let added = queue.add((1..=3).map(new_entry).collect()).await.unwrap();
    assert_eq!(claim(queue, second(0), 10).await, added);
    let result = |(id, state): (&EntryId, &EntryState)| attempted(*id, *state, "changed", "2\u{0}0 é");
    record(queue, added.iter().zip(&table).map(result).collect()).await;
    for (id, entry_state) in added.iter().zip(table) {
        assert_eq!(state_of(queue, *id).await, state(entry_state, "changed"));
        let entry = find(queue, *id).await;
        assert_eq!((entry.attempts, entry.last_attempt, &*entry.last_reply), (1, Some(second(7)), "2\u{0}0 é"));
        assert_eq!(entry.next_attempt, (entry_state == EntryState::Queued).then(|| second(100)));
        assert_eq!(queue.attempt_log(*id).await.unwrap(), Some(log("2\u{0}0 é")));
    }
}

pub(super) async fn released_entry_is_queued_as_it_was(queue: &impl Queue) {
    let id = add(queue, new_entry(1)).await;
    let before = find(queue, id).await;
    assert_eq!(claim(queue, second(20), 10).await, [id]);
    record(queue, vec![released(id)]).await;
    assert_eq!(find(queue, id).await, before);
    assert_eq!(queue.attempt_log(id).await.unwrap(), None);
    assert_eq!(claim(queue, second(0), 10).await, [id]);
}

pub(super) async fn entry_is_retried_when_it_is_due(queue: &impl Queue) {
    let id = add(queue, new_entry(1)).await;
    for attempts in 1..=3 {
        assert_eq!(claim(queue, second(100), 10).await, [id]);
        record(queue, vec![attempted(id, EntryState::Queued, "later", &attempts.to_string())]).await;
        assert_eq!(claim(queue, second(99), 10).await, []);
        assert_eq!(queue.next_due("mx").await.unwrap(), Some(second(100)));
        let entry = find(queue, id).await;
        assert_eq!((entry.attempts, entry.last_reply), (attempts, attempts.to_string()));
        assert_eq!(queue.attempt_log(id).await.unwrap(), Some(log(&attempts.to_string())), "only the last one");
    }
}

pub(super) async fn result_without_claim_is_ignored(queue: &impl Queue) {
    let id = add(queue, new_entry(1)).await;
    let queued = find(queue, id).await;
    record(queue, vec![delivered(id)]).await;
    assert_eq!(find(queue, id).await, queued);
    assert_eq!(claim(queue, second(0), 10).await, [id]);
    record(queue, vec![delivered(id)]).await;
    let finished = find(queue, id).await;
    record(queue, vec![failed(id)]).await;
    record(queue, vec![released(id)]).await;
    assert_eq!(find(queue, id).await, finished);
    assert_eq!(queue.attempt_log(id).await.unwrap(), Some(log("250 accepted")));
}

pub(super) async fn expired_entries_fail(queue: &impl Queue) {
    let late = NewEntry { expires: second(2000), ..new_entry(4) };
    let added = queue.add(vec![new_entry(1), new_entry(2), new_entry(3), late]).await.unwrap();
    assert_eq!(claim(queue, second(0), 3).await, added[..3]);
    let tried = attempted(added[0], EntryState::Queued, "later", "450 later");
    record(queue, vec![tried, released(added[2])]).await;

    assert_eq!(queue.expire(second(999)).await.unwrap().len(), 0);
    assert_eq!(claim(queue, second(1000), 10).await, [added[3]], "expired entries are not claimed");
    record(queue, vec![released(added[3])]).await;
    assert_eq!(queue.expire(second(1000)).await.unwrap().len(), 2);
    assert_eq!(state_of(queue, added[0]).await, state(EntryState::Failed, "later"));
    assert_eq!(state_of(queue, added[1]).await.0, EntryState::Sending, "it is being sent");
    assert_eq!(state_of(queue, added[2]).await.0, EntryState::Failed);
    assert_eq!(state_of(queue, added[3]).await.0, EntryState::Queued);
    let entry = find(queue, added[0]).await;
    assert_eq!((entry.next_attempt, &*entry.last_reply), (None, "450 later"));
    let entry = find(queue, added[2]).await;
    assert_eq!((entry.attempts, &*entry.last_reply), (0, "expired before the first attempt"));
    assert_eq!(queue.expire(second(1000)).await.unwrap().len(), 0);
}

pub(super) async fn expiry_can_be_postponed(queue: &impl Queue) {
    let id = add(queue, new_entry(1)).await;
    for (time, expected) in [(second(500), second(1000)), (second(1500), second(1500))] {
        queue.postpone_expiry(time).await.unwrap();
        assert_eq!(find(queue, id).await.expires, expected);
    }
}

pub(super) async fn entries_of_a_paused_target_wait(queue: &impl Queue) {
    let added = queue.add(vec![new_entry(1), NewEntry { target: "other".to_owned(), ..new_entry(2) }]).await.unwrap();
    queue.set_paused("mx", true).await.unwrap();
    assert_eq!((claim(queue, second(0), 10).await, queue.next_due("mx").await.unwrap()), (Vec::new(), None));
    assert_eq!(ids(&queue.claim("other", second(0), 10).await.unwrap()), added[1..]);
    let paused = TargetRecord { name: "mx".to_owned(), is_paused: true, since: 0.into() };
    assert_eq!(queue.targets().await.unwrap(), [paused]);
    queue.set_paused("mx", false).await.unwrap();
    assert_eq!(queue.next_due("mx").await.unwrap(), Some(second(0)));
    assert_eq!(claim(queue, second(0), 10).await, added[..1]);
}

pub(super) async fn leave_returns_claimed_entries(queue: &impl Queue) {
    let added = queue.add((1..=3).map(new_entry).collect()).await.unwrap();
    let before = list_all(queue).await;
    assert_eq!(claim(queue, second(5), 10).await, added);
    assert_eq!(queue.cancel(Selection::Ids(vec![added[0]])).await.unwrap(), 1);
    queue.leave().await.unwrap();
    assert_eq!(state_of(queue, added[0]).await.0, EntryState::Cancelled);
    assert_eq!(list_all(queue).await[..2], before[..2]);
}
