//! Databases of earlier versions, and the query plans of SQLite for each of them.

use super::*;
use restante_mail::details::{DetailFields, Details};

use super::backfill::Backfill;
use super::segment::Segments;
use crate::{NewCopy, NewMessage};

/// A message as the server receives it. Its number is also the second of receipt.
fn received_message(number: u8, mailboxes: &[&str]) -> NewMessage {
    let body = format!("Cc: Cid <cid@x.org>\r\nX-Padding: {}\r\n\r\nHello {number}\r\n", "x".repeat(2500));
    let copy = |mailbox: &&str| NewCopy {
        mailbox: name(mailbox),
        tags: Tags::new(["new", mailbox]).unwrap(),
        details: received_details(number, &[format!("{mailbox}@x.org")]),
        trace: None,
    };
    let copies = mailboxes.iter().map(copy).collect();
    NewMessage { copies, ..message(number.into(), &[], body.as_bytes()) }
}

fn received_details(number: u8, recipients: &[String]) -> Details {
    Details::new(&DetailFields {
        sender: "ann@x.org",
        helo: "laptop",
        ip: Some([192, 0, 2, number].into()),
        login: None,
        host: "mx.test",
        attachments: 0,
        snippet: &format!("Hello {number}"),
        cc: &["Cid <cid@x.org>".to_owned()],
        lacks_from: true,
        lacks_to: true,
        recipients,
        ..DetailFields::default()
    })
}

/// The number of messages that [`create_directory`] stores.
const MESSAGES: u8 = 20;

/// A data directory of an earlier version.
struct OldDirectory {
    dir: TestDir,
    mailboxes: Vec<MailboxState>,
    usage: Usage,
    /// All copies, ascending by id, as they are after the migration.
    migrated: Vec<Summary>,
}

impl OldDirectory {
    /// Creates a directory with a database of this version.
    async fn create(version: usize) -> Self {
        let dir = TestDir::new();
        let store = open(dir.path());
        let mut emptied = Vec::new();
        for number in 0..MESSAGES {
            let mailboxes: &[&str] = if number % 5 == 4 { &["bob"] } else { &["ann", "bob", "zoë"] };
            let stored = store.append(received_message(number, mailboxes)).await.unwrap().stored;
            for copy in &stored {
                let seen = copy.mailbox == name("bob") || number % 3 == 0;
                store.set_seen(&copy.mailbox, copy.id, seen).await.unwrap();
            }
            // Sometimes the first copy is removed.
            if number % 4 == 2 {
                store.remove(&stored[0].mailbox, stored[0].id).await.unwrap();
            }
            emptied.extend(store.append(received_message(number, &["cid"])).await.unwrap().stored);
        }
        store.expire(Timestamp::from_second(2).unwrap(), 5).await.unwrap();
        for copy in emptied {
            store.remove(&copy.mailbox, copy.id).await.unwrap();
        }
        let (mailboxes, usage) = (store.mailboxes(MailboxPage::ALL).await.unwrap(), store.usage().await.unwrap());
        let migrated = migrated_copies(&store).await;
        drop(store);
        downgrade(dir.path(), version);
        Self { dir, mailboxes, usage, migrated }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Migrates some copies, in batches, as a server does that is killed afterwards.
    fn migrate_batches(&self, batches: usize, batch_copies: usize) {
        let mut database =
            schema::open_writer(&self.path().join("restante.db"), Durability::Full, SMALL.cache_bytes).unwrap();
        let segments = Segments::new(self.path().join("segments"));
        let mut backfill = Backfill::resume(&database, &segments).unwrap().expect("it is not complete");
        for _ in 0..batches {
            assert!(!backfill.run_batch(&mut database, batch_copies).unwrap(), "there are more copies");
        }
    }
}

/// Returns all copies as the migration from an earlier version leaves them.
async fn migrated_copies(store: &DiskStore) -> Vec<Summary> {
    let messages = store.messages(Page::ALL).await.unwrap().messages;
    let mut last_numbers = std::collections::HashMap::new();
    let mut migrated = Vec::new();
    for copies in messages.into_iter().map(Message::into_copies) {
        let message = copies[0].id;
        for copy in copies {
            let number = last_numbers.entry(copy.mailbox.clone()).or_insert(0);
            *number += 1;
            let second = u8::try_from(copy.received.as_second()).unwrap();
            let details = received_details(second, &[]);
            migrated.push(Summary { message, number: *number, tags: Tags::default(), details, ..copy });
        }
    }
    migrated
}

/// Replaces the database by one of an earlier version.
fn downgrade(dir: &Path, version: usize) {
    let (path, later) = (dir.join("restante.db"), dir.join("later.db"));
    fs::rename(&path, &later).unwrap();
    let database = schema::create_version(version, &path);
    database.execute("ATTACH ?1 AS later", [later.to_str().unwrap()]).unwrap();
    let contents = if version == 1 { "" } else { ", unseen, bytes" };
    let copies =
        "mailbox, id, received, seen, size, body, sender, recipients, subject, segment, offset, length, shared";
    let rows = format!(
        "DELETE FROM state;
        INSERT INTO state SELECT 1, last_id, last_version, copies, mailboxes, bytes FROM later.state;
        INSERT INTO mailboxes SELECT name, messages, version {contents} FROM later.mailboxes;
        INSERT INTO copies SELECT {copies} FROM later.copies;
        INSERT INTO shared SELECT * FROM later.shared;
        INSERT INTO segments SELECT * FROM later.segments;"
    );
    database.execute_batch(&rows).unwrap();
    database.execute_batch("DETACH later").unwrap();
    drop(database);
    fs::remove_file(later).unwrap();
}

async fn all_copies(store: &DiskStore) -> Vec<Summary> {
    let messages = store.messages(Page::ALL).await.unwrap().messages;
    messages.into_iter().flat_map(Message::into_copies).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn migrates_earlier_versions() {
    for version in [1, 2] {
        let old = OldDirectory::create(version).await;
        let short: Vec<_> = old.mailboxes.iter().map(|mailbox| (mailbox.messages, mailbox.unseen)).collect();
        assert_eq!(short, [(10, 7), (18, 0), (15, 10)], "version {version}");
        for _ in 0..2 {
            let store = open(old.path());
            assert_eq!(store.mailboxes(MailboxPage::ALL).await.unwrap(), old.mailboxes);
            assert_eq!(store.usage().await.unwrap(), old.usage);
            assert_eq!(all_copies(&store).await, old.migrated, "version {version}");
        }
        assert_counters_equal_rows(old.path());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn migrated_messages_can_be_changed() {
    let old = OldDirectory::create(2).await;
    let store = open(old.path());
    let newest = store.find(&name("ann"), MessageSelector::Latest).await.unwrap().unwrap();
    let message = store.find_message(MessageSelector::Id(newest.message)).await.unwrap().unwrap();
    assert_eq!(message.mailboxes().map(MailboxName::as_str).collect::<Vec<_>>(), ["ann", "bob", "zoë"]);
    let keys = message.copies().iter().map(CopyKey::from).collect();
    assert_eq!(store.remove_copies(keys).await.unwrap(), message.copies());
    let after = store.usage().await.unwrap();
    assert_eq!((after.messages, after.copies), (old.usage.messages - 1, old.usage.copies - 3));
    // Numbers continue, even after the mailbox was emptied.
    let next = store.append(received_message(30, &["ann"])).await.unwrap().stored.remove(0);
    assert_eq!(next.number, newest.number + 1);
    store.purge(&name("ann"), MessageId::MAX, usize::MAX).await.unwrap();
    let next = store.append(received_message(31, &["ann"])).await.unwrap().stored.remove(0);
    assert_eq!(next.number, newest.number + 2);
    drop(store);
    assert_counters_equal_rows(old.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn migration_continues_after_interruption() {
    // Batches of two copies end between the copies of a message.
    for (batches, batch_copies) in [(0, 1), (1, 2), (7, 2), (1, 41)] {
        let old = OldDirectory::create(2).await;
        assert_eq!(old.migrated.len(), 43);
        old.migrate_batches(batches, batch_copies);
        // An interrupted migration can be read. Copies that are not migrated are messages of their own.
        let reader = DiskStore::open_read_only(old.path(), 1 << 20).unwrap();
        let done = batches * batch_copies;
        let read = all_copies(&reader).await;
        assert_eq!(read[..done], old.migrated[..done]);
        assert!(read[done..].iter().all(|copy| copy.message == copy.id && copy.details.is_empty()));
        drop(reader);
        old.migrate_batches(batches.min(1), batch_copies.min(2) / 2);
        let store = open(old.path());
        assert_eq!(all_copies(&store).await, old.migrated, "after {batches} batches of {batch_copies}");
        assert_eq!(store.usage().await.unwrap(), old.usage);
        drop(store);
        assert_counters_equal_rows(old.path());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn migration_ignores_damaged_records() {
    let old = OldDirectory::create(2).await;
    let files = segments(old.path());
    fs::write(&files[1], vec![b'x'; 20_000]).unwrap();
    fs::remove_file(&files[2]).unwrap();
    let store = open(old.path());
    let copies = all_copies(&store).await;
    let damaged = copies.iter().filter(|copy| copy.details.is_empty()).count();
    assert!((2..copies.len()).contains(&damaged), "{damaged}");
    for (copy, expected) in copies.iter().zip(&old.migrated) {
        assert_eq!((copy.id, copy.message, copy.number), (expected.id, expected.message, expected.number));
        assert!(copy.details.is_empty() || copy.details == expected.details);
    }
}

/// A message that cannot be read now keeps its place in the migration.
#[tokio::test(flavor = "multi_thread")]
async fn migration_stops_at_read_error() {
    let old = OldDirectory::create(2).await;
    let file = &segments(old.path())[1];
    let moved = old.path().join("moved");
    fs::rename(file, &moved).unwrap();
    // A directory can be opened but not read.
    fs::create_dir(file).unwrap();
    let path = old.path().join("restante.db");
    let mut database = schema::open_writer(&path, Durability::Full, SMALL.cache_bytes).unwrap();
    let segments = Segments::new(old.path().join("segments"));
    let mut backfill = Backfill::resume(&database, &segments).unwrap().expect("it is not complete");
    assert!(matches!(backfill.run_batch(&mut database, 1000), Err(OpenError::Database(_))));
    drop(database);
    fs::remove_dir(file).unwrap();
    fs::rename(&moved, file).unwrap();
    assert_eq!(all_copies(&open(old.path())).await, old.migrated);
}

#[tokio::test(flavor = "multi_thread")]
async fn migrates_empty_directory() {
    let dir = TestDir::new();
    drop(open(dir.path()));
    downgrade(dir.path(), 2);
    let store = open(dir.path());
    assert_eq!(store.usage().await.unwrap(), Usage::default());
    assert_eq!(add(&store, &["ann"], b'a').await[0].number, 1);
}

/// A database is not migrated while a server of an earlier version is running, and if it cannot be written.
#[tokio::test(flavor = "multi_thread")]
async fn reads_earlier_versions_without_migration() {
    for version in [1, 2] {
        let old = OldDirectory::create(version).await;
        let reader = DiskStore::open_read_only(old.path(), 1 << 20).unwrap();
        assert_eq!(reader.mailboxes(MailboxPage::ALL).await.unwrap(), old.mailboxes);
        let page = MailboxPage { prefix: "b".to_owned(), ..MailboxPage::ALL };
        assert_eq!(reader.mailboxes(page).await.unwrap(), old.mailboxes[1..2]);
        let newest = reader.find(&name("ann"), MessageSelector::Latest).await.unwrap().unwrap();
        assert_eq!(newest.id, old.mailboxes[0].newest.id);
        assert!(reader.source(&name("ann"), newest.id).await.unwrap().is_some());
        // Each copy is a message of its own.
        let copies = old.migrated.iter().cloned();
        let details = Details::default();
        let copies = copies.map(|copy| Summary { message: copy.id, number: 0, details: details.clone(), ..copy });
        let copies: Vec<_> = copies.collect();
        assert_eq!(all_copies(&reader).await, copies);
        let page = Page { limit: Some(2), before: Some(copies[9].id), after: None };
        assert_eq!(reader.messages(page).await.unwrap().messages, Message::group(copies[7..9].to_vec()));
        assert_eq!(reader.usage().await.unwrap(), Usage { messages: old.usage.copies, ..old.usage });
        assert_eq!(reader.find_message(MessageSelector::Latest).await.unwrap().unwrap().id(), copies[42].id);
        assert_ne!(reader.store_version().await.unwrap(), Version(0));
        // Another process migrates it meanwhile.
        let store = open(old.path());
        store.remove(&name("ann"), newest.id).await.unwrap();
        assert_eq!(reader.mailboxes(MailboxPage::ALL).await.unwrap(), store.mailboxes(MailboxPage::ALL).await.unwrap());
    }
}

/// Queries read only the rows that they return, and sort nothing. Only version 1 must count, and only for the list.
#[tokio::test(flavor = "multi_thread")]
async fn queries_read_only_rows_they_return() {
    let by_name = "SEARCH mailboxes USING PRIMARY KEY (name=?)";
    let subquery = ["CORRELATED SCALAR SUBQUERY", "SEARCH copies USING PRIMARY KEY (mailbox=?)"];
    // The plan contains the name of the table if it is read through a view.
    for (version, newest, subqueries) in [(1, "copies", 3), (2, "copies", 1), (3, "newest", 1)] {
        let old = OldDirectory::create(version.min(2)).await;
        let _store = (version == 3).then(|| open(old.path()));
        let database = schema::open_reader(&old.path().join("restante.db"), 0).unwrap();
        assert_eq!(plan(&database, reader::SELECT_VERSION), [by_name]);
        let newest = format!("SEARCH {newest} USING PRIMARY KEY (mailbox=? AND id=?)");
        let each = ["SEARCH mailboxes USING PRIMARY KEY (name>?)", &newest];
        let expected = [each.to_vec(), subquery.repeat(subqueries)].concat();
        assert_eq!(plan(&database, reader::SELECT_MAILBOXES), expected, "version {version}");
        if version == 3 {
            let range = "SEARCH copies USING INDEX copies_by_id (id>? AND id<?)";
            assert_eq!(plan(&database, reader::SELECT_COPIES), [range]);
            assert_eq!(plan(&database, reader::SELECT_COPIES_DESCENDING), [range]);
            assert_eq!(plan(&database, reader::SELECT_COPIES_FROM), ["SEARCH copies USING INDEX copies_by_id (id>?)"]);
            assert_eq!(plan(&database, reader::SELECT_OLDEST), ["SCAN copies USING INDEX arrivals"]);
            assert_eq!(plan(&database, reader::SELECT_NEWEST_COPY), ["SCAN copies USING INDEX copies_by_id"]);
            assert_eq!(plan(&database, reader::SELECT_TAGS), ["SCAN copies USING COVERING INDEX tagged"]);
            assert_eq!(plan(&database, reader::SELECT_SHARED_TAGS), ["SCAN copies USING COVERING INDEX tagged_shared"]);
            assert!(
                plan(&database, reader::SELECT_UNREAD).iter().any(|step| step.contains("COVERING INDEX unread_shared"))
            );
        }
    }
}

/// Returns the plan of a query, without the names of databases and the numbers of subqueries.
fn plan(database: &rusqlite::Connection, query: &str) -> Vec<String> {
    let mut statement = database.prepare(&format!("EXPLAIN QUERY PLAN {query}")).unwrap();
    let steps = statement.raw_query().mapped(|row| row.get::<_, String>(3));
    let steps = steps.map(|step| step.unwrap().replace("main.", ""));
    steps.map(|step| step.trim_end_matches(|last| " 0123456789".contains(last)).to_owned()).collect()
}
