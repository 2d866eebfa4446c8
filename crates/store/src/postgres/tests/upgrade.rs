//! Nodes of the previous version, whose statements are kept here, run together with nodes of this version. Messages that
//! they stored are migrated.

use std::collections::BTreeMap;
use std::time::Duration;

use restante_mail::details::{DetailFields, Details};
use restante_mail::message::{Message, MessageId, Summary};
use tokio::time::{sleep, timeout};

use super::super::copy_migration::{CopyMigration, Progress, TRY_LOCK};
use super::super::schema;
use super::*;
use crate::NewCopy;
use crate::tests::conformance::name;
use crate::feed::{Event, FeedItem};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_mins(1);

/// The subject of messages that an old node stores.
const OLD_SUBJECT: &str = "hello";

// The statements of the previous version.
const OLD_APPEND: &str = "SELECT * FROM append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
const OLD_REMOVE: &str = "SELECT * FROM remove($1, $2)";
const OLD_SET_SEEN: &str = "SELECT * FROM mark($1, $2, $3)";
const OLD_PURGE: &str = "SELECT * FROM purge($1, $2, $3)";
const OLD_EXPIRE: &str = "SELECT * FROM expire($1, $2)";
const OLD_CHANGES: &str = "SELECT * FROM changes($1, $2)";
const OLD_TRIM_HISTORY: &str = "SELECT tidy(make_interval(secs => $1), $2) AS tidied";
const OLD_PROBE: &str = "SELECT probe()";
const OLD_STATE: &str = "SELECT clock, forgotten, messages, mailboxes, bytes,
        (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now,
        current_setting('transaction_read_only')::boolean AS is_read_only
    FROM state";
const OLD_IS_KNOWN: &str = "SELECT clock, $1 <= forgotten
        OR EXISTS (SELECT FROM copies WHERE id = $1)
        OR EXISTS (SELECT FROM past WHERE number = $1)
        OR EXISTS (SELECT FROM past WHERE deleted AND id = $1) AS is_known
    FROM state";
const OLD_BACKLOG_START: &str = "SELECT coalesce(greatest(
        (SELECT id FROM copies ORDER BY id DESC OFFSET $1 LIMIT 1),
        (SELECT number FROM past ORDER BY number DESC OFFSET $1 LIMIT 1)
    ), 0) AS start";
const OLD_VERSION: &str = "SELECT version FROM mailboxes WHERE name = $1";
const OLD_LIST: &str =
    "SELECT version, copy.* FROM mailboxes LEFT JOIN LATERAL (SELECT id, received, size, seen, headline \
     FROM copies WHERE mailbox = name AND id > $2 AND id < $3 ORDER BY id LIMIT $4) AS copy ON true
     WHERE name = $1 ORDER BY id";
const OLD_FIND: &str =
    "SELECT copies.id, received, size, seen, headline, trace, CASE WHEN length(bytes) <= $3 THEN bytes END AS bytes
    FROM copies JOIN bodies ON bodies.id = copies.body WHERE copies.id = $2 AND mailbox = $1";
const OLD_LATEST: &str =
    "SELECT latest.id, received, size, seen, headline, trace, CASE WHEN length(bytes) <= $2 THEN bytes END AS bytes
    FROM (SELECT * FROM copies WHERE mailbox = $1 ORDER BY id DESC LIMIT 1) AS latest JOIN bodies ON bodies.id = latest.body";
const OLD_SOURCE: &str =
    "SELECT trace, body, length(bytes) AS length, CASE WHEN length(bytes) <= $3 THEN bytes END AS bytes
    FROM copies JOIN bodies ON bodies.id = copies.body WHERE copies.id = $2 AND mailbox = $1";
const OLD_MAILBOXES: &str = "SELECT name, messages, unseen, bytes, newest.id, newest.received
    FROM mailboxes CROSS JOIN LATERAL (SELECT id, received FROM copies WHERE mailbox = name ORDER BY id DESC LIMIT 1) AS newest
    WHERE name >= $1 AND name > $2 AND ($3::bytea IS NULL OR name < $3) ORDER BY name LIMIT $4";
const OLD_LAST_ID: &str = "SELECT last_id FROM state";

/// The database as a node of the previous version uses it.
struct OldNode {
    database: Arc<Database>,
}

impl OldNode {
    /// Creates the schema of the previous version.
    async fn with_fresh_schema() -> Option<Self> {
        let database = Arc::new(Database::new(&address()?, &fresh_schema(), 3, 3).unwrap());
        schema::prepare_version(&database, 2).await;
        Some(Self { database })
    }

    /// Opens a node of this version with the same schema.
    async fn open_new_node(&self) -> PostgresStore {
        let settings = Settings { schema: self.database.schema().to_owned(), ..Settings::default() };
        PostgresStore::open(&address().unwrap(), settings).await.unwrap()
    }

    fn migration(&self) -> CopyMigration {
        CopyMigration::new(self.database.clone(), Arc::new(BulkDeleter::new(self.database.clone())))
    }

    /// Stores messages in one statement. Returns the ids of the copies.
    async fn try_append(&self, messages: &[NewMessage]) -> Result<Vec<i64>> {
        let bodies: Vec<&[u8]> = messages.iter().map(|message| &message.body[..]).collect();
        let lengths: Vec<i64> = bodies.iter().map(|body| to_i64(body.len())).collect();
        let shared: Vec<bool> = messages.iter().map(|message| message.copies.len() > 1).collect();
        let received: Vec<i64> = messages.iter().map(|message| time_to_nanos(message.received)).collect();
        let headline = format!("<ann@example.org>\n{OLD_SUBJECT}\n<bob@example.org>\n");
        let headlines: Vec<&[u8]> = messages.iter().map(|_| headline.as_bytes()).collect();
        let copies = || {
            (1_i32..)
                .zip(messages)
                .flat_map(|(index, message)| message.copies.iter().map(move |copy| (index, message, copy)))
        };
        let indexes: Vec<i32> = copies().map(|(index, ..)| index).collect();
        let names: Vec<&[u8]> = copies().map(|(.., copy)| copy.mailbox.as_str().as_bytes()).collect();
        let traces: Vec<_> = copies().map(|(_, message, copy)| copy.trace(message.received)).collect();
        let traces: Vec<&[u8]> = traces.iter().map(|trace| &trace[..]).collect();
        let new_bytes: i64 = to_i64(bodies.iter().chain(&traces).map(|bytes| bytes.len()).sum::<usize>());
        let parameters: Parameters<'_> =
            &[&bodies, &lengths, &shared, &received, &headlines, &indexes, &names, &traces, &new_bytes, &0_i64, &0_i64];
        let rows = self.database.execute(OLD_APPEND, parameters).await?;
        rows::get_column(&rows[0], "ids")
    }

    async fn append(&self, second: i64, mailboxes: &[&str]) -> Vec<i64> {
        self.try_append(&[old_message(second, mailboxes)]).await.unwrap()
    }

    async fn remove(&self, mailbox: &str, id: i64) {
        let rows = self.database.execute(OLD_REMOVE, &[&vec![mailbox.as_bytes()], &vec![id]]).await.unwrap();
        assert_eq!(rows.len(), 2, "the message existed");
        assert_eq!((rows[1].get("deleted"), rows[1].get("id")), (Some(true), id));
    }

    /// Runs every query.
    async fn read(&self, mailbox: &str) {
        let (mailbox, all) = (mailbox.as_bytes(), i64::MAX);
        let query = async |sql: &str, parameters: Parameters<'_>| self.database.query(sql, parameters).await.unwrap();
        let listed = query(OLD_LIST, &[&mailbox, &-1_i64, &all, &None::<i64>]).await;
        let id: i64 = listed.last().expect("the mailbox is not empty").get("id");
        assert_eq!(query(OLD_VERSION, &[&mailbox]).await.len(), 1);
        assert_eq!(query(OLD_FIND, &[&mailbox, &id, &1000]).await.len(), 1);
        assert_eq!(query(OLD_LATEST, &[&mailbox, &1000]).await[0].get::<_, i64>("id"), id);
        assert_eq!(query(OLD_SOURCE, &[&mailbox, &id, &1000]).await.len(), 1);
        assert!(!query(OLD_MAILBOXES, &[&b"".as_slice(), &b"".as_slice(), &None::<&[u8]>, &all]).await.is_empty());
        assert_eq!(query(OLD_LAST_ID, &[]).await.len(), 1);
        let state = query(OLD_STATE, &[]).await;
        let copies: i64 = query("SELECT count(*) FROM copies", &[]).await[0].get(0);
        assert_eq!(state[0].get::<_, i64>("messages"), copies);
        let is_known = query(OLD_IS_KNOWN, &[&state[0].get::<_, i64>("clock")]).await;
        assert!(is_known[0].get::<_, bool>("is_known"), "every change can be found by its number");
        query(OLD_BACKLOG_START, &[&1000_i64]).await;
        self.database.execute(OLD_PROBE, &[]).await.unwrap();
    }

    /// Returns all changes: the number, and whether it is a deletion.
    async fn changes(&self) -> Vec<(i64, Option<bool>)> {
        let rows = self.database.query(OLD_CHANGES, &[&0_i64, &10_000_i64]).await.unwrap();
        rows.iter().map(|row| (row.get("number"), row.get("deleted"))).collect()
    }

    async fn number(&self, query: &str) -> i64 {
        self.database.query(query, &[]).await.unwrap()[0].get(0)
    }
}

/// Returns a message with the trace lines of a real one, and without what the previous version did not know.
fn old_message(second: i64, mailboxes: &[&str]) -> NewMessage {
    let message = message(second, mailboxes, b"Cc: cid@example.org\r\n\r\nYour code is 1234.\r\n");
    let details = Details::new(&DetailFields {
        sender: "ann@example.org",
        helo: "laptop",
        ip: Some([192, 0, 2, 7].into()),
        host: "mx.test",
        ..DetailFields::default()
    });
    let trace = |copy: &NewCopy| Some(details.trace(&copy.mailbox, message.received));
    let copies = message.copies.iter().map(|copy| NewCopy { trace: trace(copy), ..copy.clone() }).collect();
    NewMessage { copies, ..message }
}

fn assert_migrated(copy: &Summary) {
    assert_eq!((copy.details.sender(), &*copy.details.helo()), ("ann@example.org", "laptop"), "{copy:?}");
    assert_eq!((copy.details.ip(), copy.details.snippet()), ("192.0.2.7", "Your code is 1234."), "{copy:?}");
    assert_eq!(copy.details.cc().collect::<Vec<_>>(), ["<cid@example.org>"]);
    assert!(copy.number > 0);
}

/// Returns the ids of messages, and those of their copies.
fn ids(messages: &[Message]) -> Vec<(i64, Vec<i64>)> {
    let copies = |message: &Message| message.copies().iter().map(|copy| id_to_i64(copy.id)).collect();
    messages.iter().map(|message| (id_to_i64(message.id()), copies(message))).collect()
}

fn id(number: i64) -> MessageId {
    rows::to_u64(number).into()
}

/// Checks that numbers ascend in each mailbox.
fn assert_numbers_ascend(messages: &[Message]) {
    let mut last: BTreeMap<&str, u32> = BTreeMap::new();
    for copy in messages.iter().flat_map(Message::copies) {
        let before = last.insert(copy.mailbox.as_str(), copy.number);
        assert!(before.unwrap_or(0) < copy.number, "{} after {before:?} in {}", copy.number, copy.mailbox);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn old_and_new_nodes_run_together() {
    let Some(old) = OldNode::with_fresh_schema().await else { return };
    // The statements are prepared before the migration.
    let before = old.append(1, &["ann", "bob"]).await;
    old.read("bob").await;
    old.remove("ann", before[0]).await;
    assert_eq!(old.changes().await.len(), 3);

    let new = old.open_new_node().await;
    let (mut feed, last) = (new.feed().unwrap(), name("last"));
    let events = tokio::spawn(async move { events_until_deletion_in(&mut feed, &last).await });
    let mut expected = 1;
    for second in 0..30 {
        let by_old = old.append(100 + second, &["ann", "bob", "cid"]).await;
        let by_new = new.append(message(100 + second, &["cid", "bob"], b"x")).await.unwrap().stored;
        assert!(by_new[0].id > id(by_old[2]));
        let found = new.find_message(MessageSelector::Id(id(by_old[0]))).await.unwrap().unwrap();
        assert_eq!(ids(&[found]), [(by_old[0], by_old.clone())]);
        // Each of them changes messages of the other.
        let [ann, bob, cid] = [("ann", by_old[0]), ("bob", by_old[1]), ("cid", by_old[2])]
            .map(|(mailbox, copy)| CopyKey { mailbox: name(mailbox), id: id(copy) });
        match second % 3 {
            0 => {
                let tags = Tags::new(["x"]).unwrap();
                assert_eq!(new.set_tags(vec![bob.clone(), cid], tags.clone()).await.unwrap().len(), 2);
                let parameters: Parameters<'_> = &[&vec![b"bob".as_slice()], &vec![by_old[1]], &vec![true]];
                old.database.execute(OLD_SET_SEEN, parameters).await.unwrap();
                let found = new.find(&bob.mailbox, MessageSelector::Id(bob.id)).await.unwrap().unwrap();
                assert_eq!((found.seen, found.tags), (true, tags));
                expected += 2;
            }
            1 => {
                assert_eq!(new.remove_copies(vec![ann, bob]).await.unwrap().len(), 2);
                old.remove("cid", by_old[2]).await;
                old.remove("cid", id_to_i64(by_new[0].id)).await;
                expected += 1;
            }
            _ => {
                assert!(new.set_seen(&bob.mailbox, bob.id, true).await.unwrap());
                old.remove("ann", by_old[0]).await;
                for copy in &by_new {
                    old.remove(copy.mailbox.as_str(), id_to_i64(copy.id)).await;
                }
                expected += 1;
            }
        }
        old.read("bob").await;
    }
    let messages = new.messages(Page::ALL).await.unwrap().messages;
    let usage = new.usage().await.unwrap();
    assert_eq!((usage.messages, messages.len() as u64), (expected, expected));
    assert_eq!(usage.copies, messages.iter().map(|message| message.copies().len() as u64).sum::<u64>());
    assert!(old.changes().await.is_sorted_by(|one, other| one.0 < other.0 || one.1.is_none()));

    // The messages of the old node are migrated, also those that it stored after the new node had started.
    let mut migration = old.migration();
    while migration.migrate_batch().await.unwrap() != Progress::Done {}
    let messages = new.messages(Page::ALL).await.unwrap().messages;
    assert_numbers_ascend(&messages);
    let copies = || messages.iter().flat_map(Message::copies);
    let by_old = copies().filter(|copy| copy.headline.subject() == OLD_SUBJECT);
    assert!(by_old.map(assert_migrated).count() > 20);

    // An emptied mailbox does not reuse numbers, whichever node empties it.
    let last = copies().filter(|copy| copy.mailbox == name("bob")).map(|copy| copy.number).max();
    old.database.execute(OLD_PURGE, &[&b"bob".as_slice(), &i64::MAX, &i64::MAX]).await.unwrap();
    old.append(200, &["bob", "last"]).await;
    let number = new.find(&name("bob"), MessageSelector::Latest).await.unwrap().unwrap().number;
    assert!(Some(number) > last, "{number} after {last:?}");
    old.database.execute(OLD_EXPIRE, &[&i64::MAX, &i64::MAX]).await.unwrap();
    assert_eq!(new.usage().await.unwrap(), Usage::default());
    assert_eq!(old.number("SELECT extra_copies FROM state").await, 0);

    let mut stored: BTreeMap<MessageId, Summary> = BTreeMap::new();
    for event in events.await.unwrap() {
        match event {
            Event::Stored(copy) => drop(stored.insert(copy.id, copy)),
            Event::Deleted(copy) => {
                let stored = stored.remove(&copy.id).expect("it was stored before");
                assert_eq!(copy.message, stored.message);
                assert!(copy.number == stored.number || copy.id <= id(before[1]), "{copy:?}");
            }
            Event::Seen { .. } | Event::Tagged { .. } => {}
        }
    }
    assert!(stored.is_empty(), "all copies were deleted");
    old.database.execute(OLD_TRIM_HISTORY, &[&0.0_f64, &100_000_i64]).await.unwrap();
}

/// Returns all events up to the first deletion in this mailbox.
async fn events_until_deletion_in(feed: &mut Feed, last: &MailboxName) -> Vec<Event> {
    let mut events = Vec::new();
    let is_last = |event: &Event| matches!(event, Event::Deleted(copy) if copy.mailbox == *last);
    while !events.last().is_some_and(is_last) {
        match timeout(LONG, feed.next()).await.expect("an item arrives") {
            Some(FeedItem::Backlog { changes, .. } | FeedItem::Changes(changes)) => {
                events.extend(changes.into_iter().map(|change| change.event));
            }
            other => panic!("{other:?}"),
        }
    }
    events
}

/// The old function is already running when the tables are migrated, and waits for another lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn old_change_during_the_migration_is_refused() {
    let Some(old) = OldNode::with_fresh_schema().await else { return };
    old.append(1, &["bob"]).await;
    let blocker = old.database.begin().await.unwrap();
    blocker.run("LOCK TABLE bodies IN ACCESS EXCLUSIVE MODE", &[]).await.unwrap();
    let database = old.database.clone();
    let append = tokio::spawn(async move { OldNode { database }.try_append(&[old_message(2, &["bob"])]).await });
    let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'bodies'::regclass";
    while old.number(waiting).await == 0 {
        sleep(Duration::from_millis(10)).await;
    }
    let new = timeout(LONG, old.open_new_node()).await.expect("the migration does not wait for the old change");
    blocker.commit().await.unwrap();
    let refused = append.await.unwrap().expect_err("it would not set the new columns");
    assert!(matches!(&refused, StoreError::Unavailable(cause) if cause.contains("migrated")), "{refused}");
    assert_eq!(new.usage().await.unwrap().messages, 1);
    old.append(2, &["bob"]).await;
    assert_eq!(new.usage().await.unwrap().messages, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn copies_are_migrated_in_steps() {
    let Some(old) = OldNode::with_fresh_schema().await else { return };
    let first = old.append(1, &["ann", "bob", "cid"]).await;
    let second = old.append(2, &["bob"]).await;
    let third = old.append(3, &["bob", "cid"]).await;
    let fourth = old.append(4, &["bob"]).await;
    // The first copy is gone, so the message gets the id of the second one.
    old.remove("ann", first[0]).await;
    schema::prepare(&old.database, Access::ReadWrite).await.unwrap();
    let expected = [
        (first[1], first[1..].to_vec()),
        (second[0], second.clone()),
        (third[0], third.clone()),
        (fourth[0], fourth.clone()),
    ];
    let list = async |page| reader::messages(&old.database, page).await.unwrap();
    let unmigrated = list(Page::ALL).await;
    assert_eq!(ids(&unmigrated.messages), expected);
    assert!(
        unmigrated.messages.iter().flat_map(Message::copies).all(|copy| copy.number == 0 && copy.details.is_empty())
    );
    let page = Page { limit: Some(1), before: Some(id(third[1])), after: None };
    assert_eq!(ids(&list(page).await.messages), expected[1..2], "the id of a copy stands for its message");
    let page = Page { limit: Some(2), before: None, after: Some(id(first[1])) };
    assert_eq!(ids(&list(page).await.messages), expected[1..3]);
    let find = async |id| reader::find_message(&old.database, MessageSelector::Id(id)).await.unwrap();
    assert_eq!(find(id(first[1])).await.unwrap().0, unmigrated.messages[0]);
    assert!(find(id(first[2])).await.is_none());

    // The second step is interrupted in the middle of a message, and a copy that has a number is deleted then.
    let mut migration = old.migration().with_max_batch_copies(2);
    assert_eq!(migration.migrate_batch().await.unwrap(), Progress::Migrated(2));
    assert_eq!(migration.migrate_batch().await.unwrap(), Progress::Migrated(2));
    let partly = list(Page::ALL).await;
    assert_eq!(ids(&partly.messages), expected);
    assert!(partly.version.0 > unmigrated.version.0, "cached lists are outdated");
    let numbers = |messages: &[Message]| -> Vec<u32> {
        messages.iter().flat_map(Message::copies).map(|copy| copy.number).collect()
    };
    assert_eq!(numbers(&partly.messages), [1, 1, 2, 3, 0, 0]);
    old.remove("bob", third[0]).await;
    let interrupted = old.database.begin().await.unwrap();
    interrupted.run(TRY_LOCK, &[]).await.unwrap();
    let mut other = old.migration().with_max_batch_copies(2);
    assert_eq!(other.migrate_batch().await.unwrap(), Progress::Busy, "one node migrates at a time");
    drop(interrupted);
    let migrated = timeout(LONG, async {
        loop {
            match other.migrate_batch().await.unwrap() {
                Progress::Busy => sleep(Duration::from_millis(10)).await,
                other => break other,
            }
        }
    });
    assert_eq!(migrated.await.unwrap(), Progress::Migrated(2), "another node continues");
    assert_eq!(other.migrate_batch().await.unwrap(), Progress::Done);
    let all = list(Page::ALL).await.messages;
    let expected = [expected[0].clone(), expected[1].clone(), (third[1], third[1..].to_vec()), expected[3].clone()];
    assert_eq!(ids(&all), expected);
    assert_eq!(numbers(&all), [1, 1, 2, 2, 4], "the number of the deleted copy is not reused");
    all.iter().flat_map(Message::copies).for_each(assert_migrated);

    let new = old.open_new_node().await;
    let next = new.append(message(5, &["bob", "cid", "new"], b"x")).await.unwrap().stored;
    assert_eq!(next.iter().map(|copy| copy.number).collect::<Vec<_>>(), [5, 3, 1]);
    assert_eq!(
        new.usage().await.unwrap(),
        Usage { messages: 5, copies: 8, mailboxes: 3, ..new.usage().await.unwrap() }
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn messages_are_migrated_in_the_background() {
    let Some(old) = OldNode::with_fresh_schema().await else { return };
    let mut last = 0;
    for batch in 0..25 {
        let messages: Vec<_> = (0..100).map(|index| old_message(batch * 100 + index, &["bob"])).collect();
        last = *old.try_append(&messages).await.unwrap().last().unwrap();
    }
    let (new, bob) = (old.open_new_node().await, name("bob"));
    let migrated = timeout(LONG, async {
        loop {
            // The result is cached, but not for longer than it is correct.
            let copy = new.find(&bob, MessageSelector::Id(id(last))).await.unwrap().unwrap();
            let found = new.find_message(MessageSelector::Id(id(last))).await.unwrap().unwrap();
            if !copy.details.is_empty() && !found.first().details.is_empty() {
                break copy;
            }
            let stored = new.append(message(3000, &["bob"], b"x")).await.unwrap().stored;
            assert!(stored[0].number > 2500, "new copies have higher numbers");
        }
    });
    assert_migrated(&migrated.await.unwrap());
    assert_eq!(old.number("SELECT count(*) FROM copies WHERE details IS NULL").await, 0);
    assert_numbers_ascend(&new.messages(Page::ALL).await.unwrap().messages);
}
