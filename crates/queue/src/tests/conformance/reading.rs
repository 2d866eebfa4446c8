//! Rules about what a queue returns.

use super::*;

pub(super) async fn identity_is_random_and_stays(queue: &impl Queue, other: &impl Queue) {
    let identity = queue.identity().await.unwrap();
    assert!(identity.len() == 32 && identity.bytes().all(|digit| digit.is_ascii_hexdigit()), "{identity}");
    assert_eq!(queue.identity().await.unwrap(), identity);
    assert_ne!(other.identity().await.unwrap(), identity);
    let secret = queue.secret().await.unwrap();
    assert!(secret.len() == 32 && secret != identity, "{secret}");
    assert_eq!(queue.secret().await.unwrap(), secret);
    assert_ne!(other.secret().await.unwrap(), secret);
}

pub(super) async fn empty_queue_returns_nothing(queue: &impl Queue) {
    assert_eq!(queue.claim("mx", Timestamp::MAX, 10).await.unwrap(), []);
    assert_eq!(queue.next_due("mx").await.unwrap(), None);
    assert_eq!(queue.expire(Timestamp::MAX).await.unwrap().len(), 0);
    assert_eq!(list_all(queue).await, []);
    for id in [0, 1, u64::MAX] {
        assert_eq!(queue.find(EntryId(id)).await.unwrap(), None);
        assert_eq!(queue.attempt_log(EntryId(id)).await.unwrap(), None);
        let filter = EntryFilter { message: Some(id.into()), limit: 10, ..EntryFilter::default() };
        assert_eq!(queue.list(filter).await.unwrap(), []);
        let filter = EntryFilter { before: Some(EntryId(id)), limit: 10, ..EntryFilter::default() };
        assert_eq!(queue.list(filter).await.unwrap(), []);
        assert_eq!(queue.cancel(Selection::Ids(vec![EntryId(id)])).await.unwrap(), 0);
        record(queue, vec![delivered(EntryId(id))]).await;
    }
    assert_eq!(queue.cancel(Selection::Target(None)).await.unwrap(), 0);
    assert_eq!(retry(queue, Selection::Target(None), second(0), second(9)).await, 0);
    assert_eq!(queue.counts().await.unwrap(), []);
    assert_eq!(queue.add(Vec::new()).await.unwrap(), []);
    record(queue, Vec::new()).await;
    queue.heartbeat().await.unwrap();
}

pub(super) async fn entry_is_returned_as_added(queue: &impl Queue) {
    let entries = [
        NewEntry { payload: Vec::new(), ..new_entry(10) },
        NewEntry { payload: vec![0, 0xff], target: "bücher".to_owned(), ..new_entry(20) },
        NewEntry { payload: "é".repeat(5000).into(), key: Some("k".to_owned()), ..new_entry(30) },
        NewEntry { mailbox: "büro@x.org".to_owned().into(), created: second(-5), ..new_entry(1_800_000_000_000_000) },
    ];
    let added = queue.add(entries.to_vec()).await.unwrap();
    assert!(added.is_sorted() && added[0] > EntryId(0), "{added:?}");
    for (id, new) in added.iter().zip(&entries) {
        let entry = find(queue, *id).await;
        assert_eq!(entry.id, *id);
        assert_eq!((entry.message, &entry.mailbox, &entry.key), (new.message, &new.mailbox, &new.key));
        assert_eq!((&entry.target, &entry.payload), (&new.target, &new.payload));
        assert_eq!((entry.created, entry.expires), (new.created, new.expires));
        assert_eq!((entry.state, entry.attempts), (EntryState::Queued, 0));
        assert_eq!((entry.next_attempt, entry.last_attempt, &*entry.last_reply), (Some(new.created), None, ""));
        assert_eq!(queue.attempt_log(*id).await.unwrap(), None);
    }
    let mut listed = list_all(queue).await;
    listed.reverse();
    assert_eq!(ids(&listed), added);
    assert_eq!(listed[2], find(queue, added[2]).await, "a list contains the same");
    let filter = EntryFilter { omits_payloads: true, limit: 10, ..EntryFilter::default() };
    let without: Vec<Entry> = listed.into_iter().rev().map(|entry| Entry { payload: Vec::new(), ..entry }).collect();
    assert_eq!(queue.list(filter).await.unwrap(), without);
    let claimed = queue.claim("mx", second(0), 10).await.unwrap();
    let id = claimed[1].id;
    assert_eq!(claimed[1], find(queue, id).await, "a claimed entry is the same");
    assert_eq!((claimed[1].state, claimed[1].next_attempt), (EntryState::Sending, None));
}

pub(super) async fn list_is_filtered_and_paged(queue: &impl Queue) {
    let other = |message| NewEntry { target: "other".to_owned(), ..new_entry(message) };
    let entries = vec![new_entry(10), other(10), new_entry(20), other(20), new_entry(20), new_entry(30)];
    let added = queue.add(entries).await.unwrap();
    assert_eq!(claim(queue, second(0), 2).await, [added[0], added[2]]);
    record(queue, vec![delivered(added[0])]).await;

    let filter = |message: Option<u64>, target: Option<&str>, state| EntryFilter {
        message: message.map(Into::into),
        target: target.map(str::to_owned),
        state,
        before: None,
        omits_payloads: false,
        limit: 10,
    };
    let table: [(EntryFilter, &[usize]); 9] = [
        (filter(None, None, None), &[5, 4, 3, 2, 1, 0]),
        (filter(Some(20), None, None), &[4, 3, 2]),
        (filter(Some(20), Some("mx"), None), &[4, 2]),
        (filter(Some(20), Some("mx"), Some(EntryState::Sending)), &[2]),
        (filter(Some(21), None, None), &[]),
        (filter(None, Some("other"), None), &[3, 1]),
        (filter(None, Some("mx"), Some(EntryState::Queued)), &[5, 4]),
        (filter(None, None, Some(EntryState::Delivered)), &[0]),
        (filter(None, Some("unknown"), None), &[]),
    ];
    for (filter, expected) in table {
        let expected: Vec<EntryId> = expected.iter().map(|index| added[*index]).collect();
        assert_eq!(ids(&queue.list(filter.clone()).await.unwrap()), expected, "{filter:?}");
        // Pages of one entry.
        let (mut paged, mut before) = (Vec::new(), None);
        while let [entry] = &queue.list(EntryFilter { before, limit: 1, ..filter.clone() }).await.unwrap()[..] {
            paged.push(entry.id);
            before = Some(entry.id);
        }
        assert_eq!(paged, expected, "{filter:?}");
        assert_eq!(queue.list(EntryFilter { limit: 0, ..filter }).await.unwrap(), []);
    }
}

pub(super) async fn counts_follow_states(queue: &impl Queue) {
    let other = |message| NewEntry { target: "other".to_owned(), ..new_entry(message) };
    let added = queue.add(vec![new_entry(1), new_entry(2), new_entry(3), new_entry(4), other(5)]).await.unwrap();
    claim(queue, second(0), 3).await;
    record(queue, vec![delivered(added[0]), failed(added[1])]).await;
    assert_eq!(queue.cancel(Selection::Ids(vec![added[4]])).await.unwrap(), 1);
    let mut counts: Vec<(String, &str, u64)> = queue
        .counts()
        .await
        .unwrap()
        .into_iter()
        .map(|count| {
            // The payload of an entry that was not attempted is `new`.
            assert!(count.state != EntryState::Queued || count.bytes == 3 * count.count, "{count:?}");
            (count.target, count.state.name(), count.count)
        })
        .collect();
    counts.sort();
    let expected = [("mx", "delivered", 1), ("mx", "failed", 1), ("mx", "queued", 1), ("mx", "sending", 1)];
    let expected = expected.into_iter().chain([("other", "cancelled", 1)]);
    assert_eq!(counts, expected.map(|(target, state, count)| (target.to_owned(), state, count)).collect::<Vec<_>>());
}
