//! Behavior of the disk store beyond the contract: recovery, reclaimed space, and errors.

mod space;
mod versions;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use restante_mail::message::Flags;
use restante_mail::tags::Tags;
use restante_testdir::TestDir;

use super::*;
use crate::Newest;
use crate::tests::conformance::{self, SetMarks as _, message, name};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_mins(1);

/// Returns settings with segments so small that a few messages fill one.
fn small() -> Settings {
    Settings { cache_bytes: 1 << 20, segment_bytes: 16 << 10, ..Settings::default() }
}

fn open(dir: &Path) -> DiskStore {
    try_open(dir, &small()).unwrap()
}

/// Opens a store, and retries while its directory is in use. Tests open a store again right after they dropped it, but
/// dropping waits for the writer thread only up to [`CLOSE_TIMEOUT`]. On a loaded machine the thread can take longer,
/// and it holds the lock of the directory until it ends.
fn try_open(dir: &Path, settings: &Settings) -> Result<DiskStore, OpenError> {
    let deadline = Instant::now() + LONG;
    loop {
        match DiskStore::open(dir, settings.clone()) {
            Err(OpenError::Locked { .. }) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            opened => return opened,
        }
    }
}

fn refusal(dir: &Path) -> String {
    try_open(dir, &small()).err().expect("it cannot be opened").to_string()
}

/// Returns the paths of the segment files, in order.
fn segments(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(dir.join("segments")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Damages the first record of a segment.
fn flip_bit(segment: &Path) {
    let mut bytes = fs::read(segment).unwrap();
    bytes[500] ^= 1;
    fs::write(segment, bytes).unwrap();
}

/// Waits for something that the writer does in the background. `expected` describes it.
async fn eventually(expected: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !condition() {
        assert!(Instant::now() < deadline, "timeout while waiting until {expected}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Adds a message whose body is this byte, 1,000 times. The byte is also the second of receipt.
async fn add(store: &DiskStore, mailboxes: &[&str], byte: u8) -> Vec<Summary> {
    store.append(message(i64::from(byte), mailboxes, &[byte; 1000])).await.unwrap().stored
}

async fn body(store: &DiskStore, summary: &Summary) -> Result<Vec<u8>> {
    Ok(store.source(&summary.mailbox, summary.id).await?.expect("the message exists").body.to_vec())
}

/// Copies the directory of an open store, as a crash would leave it.
fn copy_as_after_crash(dir: &Path) -> TestDir {
    let copy = TestDir::new();
    fs::create_dir(copy.path().join("segments")).unwrap();
    for file in ["restante.db", "restante.db-wal"] {
        fs::copy(dir.join(file), copy.path().join(file)).unwrap();
    }
    for file in segments(dir) {
        fs::copy(&file, copy.path().join("segments").join(file.file_name().unwrap())).unwrap();
    }
    copy
}

/// Compares the counters in the database with its rows. The store is closed.
fn assert_counters_equal_rows(dir: &Path) {
    let database = rusqlite::Connection::open(dir.join("restante.db")).unwrap();
    let rows = |query: &str| {
        let mut statement = database.prepare(query).unwrap();
        let columns = statement.column_count();
        let rows = statement.raw_query().mapped(move |row| {
            (0..columns)
                .map(|column| row.get::<_, rusqlite::types::Value>(column))
                .collect::<rusqlite::Result<Vec<_>>>()
        });
        rows.collect::<rusqlite::Result<Vec<_>>>().unwrap()
    };
    let bodies = "SELECT coalesce(sum(body), 0) FROM (SELECT body FROM copies GROUP BY message)";
    assert_eq!(
        rows("SELECT messages, copies, mailboxes, bytes FROM state"),
        rows(&format!(
            "SELECT count(DISTINCT message), count(*), count(DISTINCT mailbox),
                coalesce(sum(size - body), 0) + ({bodies}) FROM copies"
        ))
    );
    assert_eq!(
        rows("SELECT name, messages, unseen, bytes FROM mailboxes ORDER BY name"),
        rows("SELECT mailbox, count(*), sum(NOT seen), sum(size) FROM copies GROUP BY mailbox ORDER BY mailbox")
    );
    let none: [Vec<rusqlite::types::Value>; 0] = [];
    assert_eq!(
        rows("SELECT name FROM mailboxes WHERE last_number < (SELECT max(number) FROM copies WHERE mailbox = name)"),
        none
    );
    assert_eq!(
        rows(
            "SELECT mailbox FROM copies WHERE coalesce(project || ':', '') <> substr(mailbox, 1, instr(mailbox, ':'))"
        ),
        none
    );
    // The copies of a message, and only they, have the same record.
    assert_eq!(
        rows("SELECT segment, offset FROM copies GROUP BY segment, offset HAVING count(DISTINCT message) > 1"),
        none
    );
    assert_eq!(
        rows("SELECT message FROM copies GROUP BY message HAVING count(DISTINCT segment || '/' || offset) > 1"),
        none
    );
    assert_eq!(
        rows("SELECT segment, offset, copies FROM shared ORDER BY segment, offset"),
        rows(
            "SELECT segment, offset, count(*) FROM copies WHERE shared GROUP BY segment, offset ORDER BY segment, offset"
        )
    );
}

/// A crash at any moment leaves all copies of a message or none, and counters that agree with them.
#[tokio::test(flavor = "multi_thread")]
async fn counters_equal_rows_after_crash() {
    let dir = TestDir::new();
    let limits = Limits { messages_per_mailbox: 7, bytes: 30_000, ..Limits::default() };
    let settings = Settings { limits, ..small() };
    let store = try_open(dir.path(), &settings).unwrap();
    let tags = Tags::new(["x"]).unwrap();
    for byte in 0..60 {
        let mailboxes: &[&str] = if byte % 3 == 0 { &["ann", "shop:bob", "cid"] } else { &["shop:bob"] };
        let copies = add(&store, mailboxes, byte).await;
        let keys: Vec<_> = copies.iter().map(CopyKey::from).collect();
        match byte % 10 {
            3 => assert_eq!(store.set_tags(keys, tags.clone()).await.unwrap().len(), copies.len()),
            6 => assert_eq!(store.remove_copies(keys[1..].to_vec()).await.unwrap(), copies[1..]),
            7 => assert!(store.set_seen(&copies[0].mailbox, copies[0].id, true).await.unwrap()),
            8 => {
                let flagged = |copy: CopyKey| CopyUpdate { flags: Some(Flags::FLAGGED), ..CopyUpdate::new(copy) };
                store.update_copies(keys.into_iter().map(flagged).collect()).await.unwrap();
            }
            9 => drop(store.purge(&name("ann"), MessageId::MAX, usize::MAX).await.unwrap()),
            _ => {}
        }
        if byte % 6 == 5 {
            let copy = copy_as_after_crash(dir.path());
            let before = (store.usage().await.unwrap(), store.messages(None, Page::ALL).await.unwrap().messages);
            let reopened = try_open(copy.path(), &settings).unwrap();
            let after = (reopened.usage().await.unwrap(), reopened.messages(None, Page::ALL).await.unwrap().messages);
            assert_eq!(after, before);
            drop(reopened);
            assert_counters_equal_rows(copy.path());
        }
    }
}

/// Copies the directory while the latest messages are only in the segments, as a crash between the acknowledgement and
/// the commit leaves it.
#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_messages_are_replayed_after_crash() {
    let dir = TestDir::new();
    let store = open(dir.path());
    let mut all = add(&store, &["ann"], 0).await;
    store.last_id().await.expect("the row is committed");
    let committed = copy_as_after_crash(dir.path());
    // They fill several segments.
    for byte in 1..50 {
        all.extend(add(&store, &["ann", "bob"], byte).await);
    }
    let expected = store.messages(None, Page::ALL).await.unwrap().messages;
    for segment in segments(dir.path()) {
        fs::copy(&segment, committed.path().join("segments").join(segment.file_name().unwrap())).unwrap();
    }
    for _ in 0..2 {
        let reopened = open(committed.path());
        assert_eq!(reopened.messages(None, Page::ALL).await.unwrap().messages, expected);
        for summary in &all {
            assert_eq!(body(&reopened, summary).await.unwrap(), body(&store, summary).await.unwrap());
        }
        drop(reopened);
        assert_counters_equal_rows(committed.path());
    }
    let reopened = open(committed.path());
    let next = add(&reopened, &["ann"], 50).await.remove(0);
    assert!(next.id > all.last().unwrap().id);
    assert_eq!(next.number, 51);
}

/// A replay with several commits and segments must not remove what it has not read yet, and queries wait for all of it.
#[tokio::test(flavor = "multi_thread")]
async fn replay_that_failed_at_start_is_completed_later() {
    let dir = TestDir::new();
    let store = open(dir.path());
    add(&store, &["ann"], 0).await;
    store.last_id().await.expect("the row is committed");
    let copy = copy_as_after_crash(dir.path());
    for number in 0..600 {
        store.append(message(number, &["ann"], &[b'x'; 100])).await.unwrap();
    }
    let expected = store.messages(None, Page::ALL).await.unwrap().messages;
    for segment in segments(dir.path()) {
        fs::copy(&segment, copy.path().join("segments").join(segment.file_name().unwrap())).unwrap();
    }
    // The writer cannot start a transaction.
    let lock = rusqlite::Connection::open(copy.path().join("restante.db")).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let reopened = open(copy.path());
    reopened.list(&name("ann"), Page::ALL).await.expect_err("the messages are not there yet");
    lock.execute_batch("ROLLBACK").unwrap();
    assert_eq!(reopened.messages(None, Page::ALL).await.unwrap().messages, expected);
    add(&reopened, &["ann"], 1).await;
    for _ in 0..2 {
        reopened.purge(&name("empty"), MessageId::MAX, usize::MAX).await.unwrap();
    }
    drop(reopened);
    let reopened = open(copy.path());
    for message in &expected {
        body(&reopened, message.first()).await.unwrap();
    }
    drop(reopened);
    assert_counters_equal_rows(copy.path());
}

/// With a smaller size limit than before the crash, the first replayed message is evicted at once.
#[tokio::test(flavor = "multi_thread")]
async fn replay_keeps_segment_of_evicted_message() {
    let dir = TestDir::new();
    let store = open(dir.path());
    store.last_id().await.expect("the tables exist");
    let copy = copy_as_after_crash(dir.path());
    store.append(message(1, &["ann"], &[b'x'; 12_000])).await.unwrap();
    let kept = add(&store, &["ann"], b'k').await.remove(0);
    for segment in segments(dir.path()) {
        fs::copy(&segment, copy.path().join("segments").join(segment.file_name().unwrap())).unwrap();
    }
    let limits = Limits { bytes: 5000, ..Limits::default() };
    for _ in 0..3 {
        let reopened = try_open(copy.path(), &Settings { limits: limits.clone(), ..small() }).unwrap();
        assert_eq!(body(&reopened, &kept).await.unwrap(), [b'k'; 1000]);
        add(&reopened, &["bob"], b'n').await;
        reopened.purge(&name("bob"), MessageId::MAX, usize::MAX).await.unwrap();
        assert_eq!(body(&reopened, &kept).await.unwrap(), [b'k'; 1000]);
    }
    assert_counters_equal_rows(copy.path());
}

/// A query that fails because the database is not there must not make acknowledged messages disappear.
#[tokio::test(flavor = "multi_thread")]
async fn messages_are_replayed_after_error_of_database() {
    let dir = TestDir::new();
    let store = open(dir.path());
    let mut all = Vec::new();
    for round in 0..5 {
        let lock = rusqlite::Connection::open(dir.path().join("restante.db")).unwrap();
        all.extend(add(&store, &["ann"], round).await);
        store.list(&name("ann"), Page::ALL).await.expect("the transaction is committed");
        // The writer cannot start a transaction.
        lock.execute_batch("BEGIN IMMEDIATE").unwrap();
        store.append(message(9, &["ann"], b"refused")).await.unwrap_err();
        lock.execute_batch("ROLLBACK").unwrap();
        all.extend(add(&store, &["ann"], round).await);
        assert_eq!(store.list(&name("ann"), Page::ALL).await.unwrap().messages, all);
    }
    drop(store);
    assert_counters_equal_rows(dir.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn passes_conformance_suite() {
    for durability in [Durability::Full, Durability::Relaxed] {
        let dirs = Mutex::new(Vec::new());
        let run = conformance::run(|limits| {
            let dir = TestDir::new();
            let store = DiskStore::open(dir.path(), Settings { limits, durability, ..small() }).unwrap();
            dirs.lock().unwrap().push(dir);
            async move { store }
        });
        Box::pin(run).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn passes_restart_conformance_suite() {
    for durability in [Durability::Full, Durability::Relaxed] {
        conformance::run_durable(async |dir: PathBuf, limits| {
            try_open(&dir, &Settings { limits, durability, ..small() }).unwrap()
        })
        .await;
    }
}

#[test]
fn refuses_second_server_until_first_has_ended() {
    let dir = TestDir::new();
    let store = open(dir.path());
    let second = DiskStore::open(dir.path(), small()).err().unwrap();
    assert!(!second.is_permanent());
    let owner = format!("is in use by another server (process {})", std::process::id());
    assert!(second.to_string().ends_with(&owner), "{second}");
    drop(store);
    open(dir.path());
}

#[test]
fn refuses_unusable_directories_without_changing_them() {
    let dir = TestDir::new();
    let file = dir.path().join("file");
    fs::write(&file, "x").unwrap();
    assert!(refusal(&file).starts_with("cannot create the data directory"), "{}", refusal(&file));

    drop(open(&dir.path().join("newer")));
    let newer = dir.path().join("newer/restante.db");
    rusqlite::Connection::open(&newer).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let refused = refusal(&dir.path().join("newer"));
    let expected = format!("{} was written by a later version of Restante: its schema has version 99", newer.display());
    assert!(refused.starts_with(&expected), "{refused}");
    assert!(refused.contains("supports schema versions up to "), "{refused}");

    fs::create_dir(dir.path().join("foreign")).unwrap();
    let foreign = dir.path().join("foreign/restante.db");
    rusqlite::Connection::open(foreign).unwrap().execute_batch("CREATE TABLE x (y)").unwrap();
    assert!(refusal(&dir.path().join("foreign")).contains("another program"));

    let orphaned = dir.path().join("orphaned");
    fs::create_dir_all(orphaned.join("segments")).unwrap();
    fs::write(orphaned.join("segments/0000000001.seg"), "mail").unwrap();
    for is_empty in [false, true] {
        if is_empty {
            fs::write(orphaned.join("restante.db"), "").unwrap();
        }
        assert!(refusal(&orphaned).contains("contains messages, but its database restante.db is missing or empty"));
        assert_eq!(segments(&orphaned).len(), 1);
    }

    fs::create_dir(dir.path().join("garbage")).unwrap();
    let garbage = dir.path().join("garbage/restante.db");
    fs::write(&garbage, [b'x'; 5000]).unwrap();
    assert!(refusal(&dir.path().join("garbage")).contains("is damaged"));
    assert_eq!(fs::read(garbage).unwrap(), [b'x'; 5000]);
}

#[test]
fn files_are_readable_by_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = TestDir::new();
    let _store = open(dir.path());
    for file in ["lock", "restante.db", "restante.db-wal", "restante.db-shm"] {
        let mode = fs::metadata(dir.path().join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{file}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_contradictory_tables() {
    let dir = TestDir::new();
    let store = open(dir.path());
    let stored = add(&store, &["ann"], b'a').await.remove(0);
    drop(store);
    let database = rusqlite::Connection::open(dir.path().join("restante.db")).unwrap();
    database.execute_batch("CREATE TABLE saved AS SELECT * FROM segments; DELETE FROM segments").unwrap();
    let refused = try_open(dir.path(), &small()).err().unwrap();
    assert!(refused.is_permanent() && refused.to_string().contains("its table of segments is empty"), "{refused}");
    database.execute_batch("INSERT INTO segments SELECT * FROM saved; DROP TABLE saved").unwrap();
    drop(database);
    assert_eq!(body(&open(dir.path()), &stored).await.unwrap(), [b'a'; 1000]);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_and_deletes_message_with_invalid_text() {
    let dir = TestDir::new();
    let store = open(dir.path());
    let damaged = add(&store, &["ann"], b'a').await.remove(0);
    drop(store);
    let database = rusqlite::Connection::open(dir.path().join("restante.db")).unwrap();
    database.execute_batch("UPDATE copies SET subject = CAST(x'ff41' AS TEXT)").unwrap();
    drop(database);
    let store = open(dir.path());
    let listed = store.list(&name("ann"), Page::ALL).await.unwrap().messages;
    assert_eq!(listed[0].headline.subject(), "\u{fffd}A");
    assert_eq!(store.remove(&name("ann"), damaged.id).await.unwrap().unwrap().id, damaged.id);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_row_does_not_damage_other_messages() {
    let dir = TestDir::new();
    let store = open(dir.path());
    let wrong = store.append(message(1, &["ann"], &vec![b'x'; 100_000])).await.unwrap().stored.remove(0);
    let other = store.append(message(1, &["bob"], &vec![b'y'; 100_000])).await.unwrap().stored.remove(0);
    let last = add(&store, &["bob"], b'z').await.remove(0);
    drop(store);
    let database = rusqlite::Connection::open(dir.path().join("restante.db")).unwrap();
    database.execute_batch("UPDATE copies SET length = length + 65536 WHERE mailbox = 'ann'").unwrap();
    drop(database);
    let store = open(dir.path());
    store.remove(&name("ann"), wrong.id).await.unwrap();
    drop(store);
    let store = open(dir.path());
    assert_eq!(body(&store, &other).await.unwrap(), vec![b'y'; 100_000]);
    assert_eq!(body(&store, &last).await.unwrap(), [b'z'; 1000]);
}

#[tokio::test(flavor = "multi_thread")]
async fn recovery_keeps_messages_with_other_damage() {
    let dir = TestDir::new();
    let store = open(dir.path());
    let first = add(&store, &["ann"], b'a').await.remove(0);
    store.last_id().await.expect("the row is committed");
    let changes: [fn(&Path); 2] = [
        // As on a disk that is not mounted.
        |segment| fs::rename(segment, segment.with_extension("away")).unwrap(),
        flip_bit,
    ];
    for change in changes {
        let copy = copy_as_after_crash(dir.path());
        change(&segments(copy.path())[0]);
        let store = open(copy.path());
        assert!(matches!(body(&store, &first).await, Err(StoreError::Broken(_))));
        add(&store, &["bob"], b'b').await;
        assert_eq!(store.list(&name("ann"), Page::ALL).await.unwrap().messages, std::slice::from_ref(&first));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn read_only_store_works_while_server_runs() {
    let dir = TestDir::new();
    assert!(matches!(DiskStore::open_read_only(dir.path(), 0).err(), Some(OpenError::Missing(_))));
    let store = open(dir.path());
    let first = add(&store, &["ann"], b'a').await;
    let second = add(&store, &["ann"], b'b').await;
    let reader = DiskStore::open_read_only(dir.path(), 1 << 20).unwrap();
    let listed = reader.list(&name("ann"), Page::ALL).await.unwrap();
    assert_eq!(listed.messages, [first, second].concat());
    assert_eq!(body(&reader, &listed.messages[1]).await.unwrap(), [b'b'; 1000]);
    assert_eq!(reader.usage().await.unwrap(), store.usage().await.unwrap());
    let refused = reader.purge(&name("ann"), MessageId::MAX, usize::MAX).await.unwrap_err().to_string();
    assert_eq!(refused, "store unavailable: it is open for reading only");
}

#[tokio::test(flavor = "multi_thread")]
async fn removes_leftovers_of_a_crash() {
    let dir = TestDir::new();
    let store = open(dir.path());
    let stored = add(&store, &["ann"], b'a').await.remove(0);
    let copy = copy_as_after_crash(dir.path());
    let last = segments(copy.path()).pop().unwrap();
    // Bytes of a message that was never acknowledged, and a segment that was started but never committed.
    let bytes = fs::read(&last).unwrap();
    fs::write(&last, [bytes.as_slice(), b"garbage"].concat()).unwrap();
    fs::write(copy.path().join("segments/0000000077.seg"), "garbage").unwrap();
    fs::write(copy.path().join("segments/notes.txt"), "not ours").unwrap();
    let store = open(copy.path());
    eventually("the leftover is removed", || segments(copy.path()).len() == 2).await;
    let next = add(&store, &["ann"], b'b').await.remove(0);
    assert_eq!(body(&store, &stored).await.unwrap(), [b'a'; 1000]);
    assert_eq!(body(&store, &next).await.unwrap(), [b'b'; 1000]);
    assert!(copy.path().join("segments/notes.txt").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn new_message_does_not_go_to_leftover_file() {
    // The first segment was started but never committed. New messages must not go to a file that is going to be
    // removed.
    for _ in 0..20 {
        let dir = TestDir::new();
        drop(open(dir.path()));
        fs::write(dir.path().join("segments/0000000001.seg"), "garbage").unwrap();
        let store = open(dir.path());
        let stored = add(&store, &["ann"], b'a').await.remove(0);
        eventually("the leftover is removed", || segments(dir.path()).len() == 1).await;
        drop(store);
        assert_eq!(body(&open(dir.path()), &stored).await.unwrap(), [b'a'; 1000]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn recovery_removes_only_messages_in_lost_end() {
    let dir = TestDir::new();
    let store = open(dir.path());
    let first = add(&store, &["ann"], b'a').await.remove(0);
    let removed = add(&store, &["ann", "bob"], b'b').await;
    let damages: [fn(&mut Vec<u8>); 2] =
        [|bytes| bytes.truncate(bytes.len() - 10), |bytes| bytes.iter_mut().rev().take(600).for_each(|byte| *byte = 0)];
    for damage in damages {
        let copy = copy_as_after_crash(dir.path());
        let last = segments(copy.path()).pop().unwrap();
        let mut bytes = fs::read(&last).unwrap();
        damage(&mut bytes);
        fs::write(&last, bytes).unwrap();
        let store = open(copy.path());
        let third = add(&store, &["ann"], b'c').await.remove(0);
        assert!(third.id > removed[1].id);
        assert_eq!(store.list(&name("ann"), Page::ALL).await.unwrap().messages, [first.clone(), third.clone()]);
        assert!(store.list(&name("bob"), Page::ALL).await.unwrap().messages.is_empty());
        let newest = Newest { id: third.id, received: third.received };
        let ann = MailboxState { name: name("ann"), messages: 2, unseen: 2, bytes: first.size + third.size, newest };
        assert_eq!(store.mailboxes(MailboxPage::ALL).await.unwrap(), [ann]);
        assert_eq!(body(&store, &first).await.unwrap(), [b'a'; 1000]);
        assert_eq!(body(&store, &third).await.unwrap(), [b'c'; 1000]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn detects_damaged_record_and_keeps_others() {
    let dir = TestDir::new();
    let store = open(dir.path());
    let mut all = Vec::new();
    for byte in 0..30 {
        all.extend(add(&store, &["ann"], byte).await);
    }
    drop(store);
    let first = &segments(dir.path())[0];
    flip_bit(first);
    let store = open(dir.path());
    let damaged = body(&store, &all[0]).await.unwrap_err();
    assert!(
        matches!(&damaged, StoreError::Broken(cause) if cause.contains("the checksum does not match")),
        "{damaged}"
    );
    assert_eq!(body(&store, &all[1]).await.unwrap(), [1; 1000]);
    // A damaged segment is not compacted. It is removed when nothing in it is in use.
    for summary in &all[1..] {
        store.remove(&summary.mailbox, summary.id).await.unwrap();
    }
    assert!(body(&store, &all[0]).await.is_err());
    store.purge(&name("ann"), MessageId::MAX, usize::MAX).await.unwrap();
    assert_eq!(store.usage().await.unwrap(), Usage::default());
    eventually("the damaged segment is removed", || !first.exists()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_segment_affects_only_its_messages() {
    let dir = TestDir::new();
    let store = open(dir.path());
    let mut all = Vec::new();
    for byte in 0..30 {
        all.extend(add(&store, &["ann"], byte).await);
    }
    drop(store);
    fs::remove_file(&segments(dir.path())[0]).unwrap();
    let store = open(dir.path());
    assert!(matches!(body(&store, &all[0]).await, Err(StoreError::Broken(_))));
    assert_eq!(body(&store, &all[29]).await.unwrap(), [29; 1000]);
    store.purge(&name("ann"), MessageId::MAX, usize::MAX).await.unwrap();
    add(&store, &["ann"], 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn database_file_shrinks_after_deletions() {
    let dir = TestDir::new();
    let size = || fs::metadata(dir.path().join("restante.db")).unwrap().len();
    let store = open(dir.path());
    let subject = "a long subject ".repeat(100);
    for second in 0..300 {
        let mailboxes: Vec<String> = (0..50).map(|number| format!("box{number}")).collect();
        let mailboxes: Vec<&str> = mailboxes.iter().map(String::as_str).collect();
        let mut message = message(second, &mailboxes, b"");
        message.headline = restante_mail::message::Headline::new("", [], &subject);
        store.append(message).await.unwrap();
    }
    drop(store);
    let full = size();
    let store = open(dir.path());
    for number in 0..50 {
        store.purge(&name(&format!("box{number}")), MessageId::MAX, usize::MAX).await.unwrap();
    }
    eventually("the file is smaller", || size() < full / 4).await;
    add(&store, &["ann"], 1).await;
}
