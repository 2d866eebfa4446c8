//! What the disk store promises beyond the contract: it survives, it cleans up, and it says what is wrong.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use super::*;
use crate::Newest;
use crate::conformance::{self, message, name};
use crate::testdir::TestDir;

/// Segments so small that a few messages fill one.
const SMALL: Settings = Settings {
    limits: Limits { messages_per_mailbox: 0, bytes: 0 },
    durability: Durability::Full,
    cache_bytes: 1 << 20,
    segment_bytes: 16 << 10,
};

fn open(dir: &Path) -> DiskStore {
    DiskStore::open(dir, SMALL).unwrap()
}

fn refusal(dir: &Path) -> String {
    DiskStore::open(dir, SMALL).err().expect("it cannot be opened").to_string()
}

/// The names of the segment files, in order.
fn segments(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(dir.join("segments")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Damages the first record of a segment.
fn flip_a_bit(segment: &Path) {
    let mut bytes = fs::read(segment).unwrap();
    bytes[500] ^= 1;
    fs::write(segment, bytes).unwrap();
}

/// Waits for what the writer does by itself.
async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it never came true that {what}");
}

/// A message of 1,000 bytes that are all the same.
async fn add(store: &DiskStore, mailboxes: &[&str], letter: u8) -> Vec<Summary> {
    store.append(message(i64::from(letter), mailboxes, &[letter; 1000])).await.unwrap().stored
}

async fn body(store: &DiskStore, of: &Summary) -> Result<Vec<u8>> {
    Ok(store.source(&of.mailbox, of.id).await?.expect("it is there").body.to_vec())
}

/// A copy of the directory as a crash would leave it, while the store is still open.
fn crashed(dir: &Path) -> TestDir {
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

#[tokio::test(flavor = "multi_thread")]
async fn passes_the_conformance_suite() {
    for durability in [Durability::Full, Durability::Relaxed] {
        let dirs = Mutex::new(Vec::new());
        let run = conformance::run(|limits| {
            let dir = TestDir::new();
            let store = DiskStore::open(dir.path(), Settings { limits, durability, ..SMALL }).unwrap();
            dirs.lock().unwrap().push(dir);
            async move { store }
        });
        Box::pin(run).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn passes_the_rules_for_restarts() {
    for durability in [Durability::Full, Durability::Relaxed] {
        conformance::run_durable(|dir, limits| DiskStore::open(dir, Settings { limits, durability, ..SMALL }).unwrap())
            .await;
    }
}

#[test]
fn a_second_server_is_refused_until_the_first_has_ended() {
    let dir = TestDir::new();
    let store = open(dir.path());
    let second = DiskStore::open(dir.path(), SMALL).err().unwrap();
    assert!(!second.is_permanent());
    let owner = format!("is in use by another server (process {})", std::process::id());
    assert!(second.to_string().ends_with(&owner), "{second}");
    drop(store);
    open(dir.path());
}

#[test]
fn what_cannot_be_used_is_told_and_left_alone() {
    let dir = TestDir::new();
    let file = dir.path().join("file");
    fs::write(&file, "x").unwrap();
    assert!(refusal(&file).starts_with("cannot make the data directory"), "{}", refusal(&file));

    drop(open(&dir.path().join("newer")));
    let newer = dir.path().join("newer/restante.db");
    rusqlite::Connection::open(&newer).unwrap().pragma_update(None, "user_version", 99).unwrap();
    assert!(refusal(&dir.path().join("newer")).contains("later version of Restante: its schema is 99, this version"));

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
        assert!(refusal(&orphaned).contains("holds mail, but its database restante.db is missing or empty"));
        assert_eq!(segments(&orphaned).len(), 1);
    }

    fs::create_dir(dir.path().join("garbage")).unwrap();
    let garbage = dir.path().join("garbage/restante.db");
    fs::write(&garbage, [b'x'; 5000]).unwrap();
    assert!(refusal(&dir.path().join("garbage")).contains("is damaged"));
    assert_eq!(fs::read(garbage).unwrap(), [b'x'; 5000]);
}

#[test]
fn nobody_else_can_read_the_files() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = TestDir::new();
    let _store = open(dir.path());
    for file in ["lock", "restante.db", "restante.db-wal", "restante.db-shm"] {
        let mode = fs::metadata(dir.path().join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{file}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_that_contradict_each_other_are_damage() {
    let dir = TestDir::new();
    let store = open(dir.path());
    let stored = add(&store, &["ann"], b'a').await.remove(0);
    drop(store);
    let database = rusqlite::Connection::open(dir.path().join("restante.db")).unwrap();
    database.execute_batch("CREATE TABLE saved AS SELECT * FROM segments; DELETE FROM segments").unwrap();
    let refused = DiskStore::open(dir.path(), SMALL).err().unwrap();
    assert!(refused.is_permanent() && refused.to_string().contains("its table of segments is empty"), "{refused}");
    database.execute_batch("INSERT INTO segments SELECT * FROM saved; DROP TABLE saved").unwrap();
    drop(database);
    assert_eq!(body(&open(dir.path()), &stored).await.unwrap(), [b'a'; 1000]);
}

/// A directory whose database is of the first version, and the list of its mailboxes.
async fn of_version_1() -> (TestDir, Vec<MailboxState>) {
    let dir = TestDir::new();
    let store = open(dir.path());
    for letter in 0..20 {
        let stored = add(&store, &["ann", "bob", "zoë"], letter).await;
        store.set_seen(&name("ann"), stored[0].id, letter % 3 == 0).await.unwrap();
        store.set_seen(&name("bob"), stored[1].id, true).await.unwrap();
    }
    store.expire(Timestamp::from_second(2).unwrap(), 4).await.unwrap();
    let mailboxes = store.mailboxes(MailboxPage::ALL).await.unwrap();
    drop(store);
    let (path, later) = (dir.path().join("restante.db"), dir.path().join("later.db"));
    fs::rename(&path, &later).unwrap();
    let database = schema::make_version_1(&path);
    database.execute("ATTACH ?1 AS later", [later.to_str().unwrap()]).unwrap();
    let rows = "
        DELETE FROM state;
        INSERT INTO state SELECT * FROM later.state;
        INSERT INTO mailboxes SELECT name, messages, version FROM later.mailboxes;
        INSERT INTO copies SELECT * FROM later.copies;
        INSERT INTO shared SELECT * FROM later.shared;
        INSERT INTO segments SELECT * FROM later.segments;";
    database.execute_batch(rows).unwrap();
    database.execute_batch("DETACH later").unwrap();
    drop(database);
    fs::remove_file(later).unwrap();
    (dir, mailboxes)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_of_the_first_version_is_taken_over() {
    let (dir, before) = of_version_1().await;
    let short: Vec<_> = before.iter().map(|mailbox| (mailbox.messages, mailbox.unseen)).collect();
    assert_eq!(short, [(18, 12), (19, 0), (19, 19)]);
    for _ in 0..2 {
        let store = open(dir.path());
        assert_eq!(store.mailboxes(MailboxPage::ALL).await.unwrap(), before);
    }
    let store = open(dir.path());
    let newest = store.find(&name("ann"), Which::Latest).await.unwrap().unwrap();
    store.remove(&name("ann"), newest.id).await.unwrap();
    let after = store.mailboxes(MailboxPage::ALL).await.unwrap();
    assert_eq!((after[0].messages, after[0].unseen), (17, 11));
    assert_eq!((after[0].bytes, &after[1..]), (before[0].bytes - newest.size, &before[1..]));
}

/// As it has to be beside a server of that version, or where nothing can be written.
#[tokio::test(flavor = "multi_thread")]
async fn a_directory_of_the_first_version_can_be_read_as_it_is() {
    let (dir, before) = of_version_1().await;
    let reader = DiskStore::open_read_only(dir.path(), 1 << 20).unwrap();
    assert_eq!(reader.mailboxes(MailboxPage::ALL).await.unwrap(), before);
    let page = MailboxPage { prefix: "b".to_owned(), ..MailboxPage::ALL };
    assert_eq!(reader.mailboxes(page).await.unwrap(), before[1..2]);
    let newest = reader.find(&name("ann"), Which::Latest).await.unwrap().unwrap();
    assert_eq!(newest.id, before[0].newest.id);
    // Somebody takes it over meanwhile.
    let store = open(dir.path());
    store.remove(&name("ann"), newest.id).await.unwrap();
    assert_eq!(reader.mailboxes(MailboxPage::ALL).await.unwrap(), store.mailboxes(MailboxPage::ALL).await.unwrap());
}

/// Nothing is looked at that is not in the answer, and nothing has to be sorted. Only the first version has to count, and
/// only for the list.
#[tokio::test(flavor = "multi_thread")]
async fn questions_cost_what_they_return() {
    let (dir, _) = of_version_1().await;
    let database = schema::open_reader(&dir.path().join("restante.db"), 0).unwrap();
    let one = "SEARCH mailboxes USING PRIMARY KEY (name=?)";
    let each = ["SEARCH mailboxes USING PRIMARY KEY (name>?)", "SEARCH newest USING PRIMARY KEY (mailbox=? AND id=?)"];
    let subquery = ["CORRELATED SCALAR SUBQUERY", "SEARCH copies USING PRIMARY KEY (mailbox=?)"];
    assert_eq!(plan(&database, reader::VERSION), [one]);
    assert_eq!(plan(&database, reader::MAILBOXES), [each, subquery, subquery, subquery].concat());

    let _store = open(dir.path());
    let database = schema::open_reader(&dir.path().join("restante.db"), 0).unwrap();
    assert_eq!(plan(&database, reader::VERSION), [one]);
    assert_eq!(plan(&database, reader::MAILBOXES), [each, subquery].concat());
}

/// What SQLite does for a query, without the names of databases and the numbers of subqueries.
fn plan(database: &rusqlite::Connection, query: &str) -> Vec<String> {
    let mut statement = database.prepare(&format!("EXPLAIN QUERY PLAN {query}")).unwrap();
    let steps = statement.raw_query().mapped(|row| row.get::<_, String>(3));
    let steps = steps.map(|step| step.unwrap().replace("main.", ""));
    steps.map(|step| step.trim_end_matches(|last| " 0123456789".contains(last)).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_text_hurts_nobody() {
    let dir = TestDir::new();
    let store = open(dir.path());
    let hurt = add(&store, &["ann"], b'a').await.remove(0);
    drop(store);
    let database = rusqlite::Connection::open(dir.path().join("restante.db")).unwrap();
    database.execute_batch("UPDATE copies SET subject = CAST(x'ff41' AS TEXT)").unwrap();
    drop(database);
    let store = open(dir.path());
    let listed = store.list(&name("ann"), Page::ALL).await.unwrap().messages;
    assert_eq!(listed[0].headline.subject(), "\u{fffd}A");
    assert_eq!(store.remove(&name("ann"), hurt.id).await.unwrap().unwrap().id, hurt.id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_row_costs_nothing_but_its_own_message() {
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
async fn what_was_not_lost_in_the_crash_is_not_taken_for_lost() {
    let dir = TestDir::new();
    let store = open(dir.path());
    let first = add(&store, &["ann"], b'a').await.remove(0);
    let changes: [fn(&Path); 2] = [
        // As on a disk that is not mounted.
        |segment| fs::rename(segment, segment.with_extension("away")).unwrap(),
        flip_a_bit,
    ];
    for change in changes {
        let copy = crashed(dir.path());
        change(&segments(copy.path())[0]);
        let store = open(copy.path());
        assert!(matches!(body(&store, &first).await, Err(StoreError::Broken(_))));
        add(&store, &["bob"], b'b').await;
        assert_eq!(store.list(&name("ann"), Page::ALL).await.unwrap().messages, std::slice::from_ref(&first));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_can_be_read_beside_its_server() {
    let dir = TestDir::new();
    assert!(matches!(DiskStore::open_read_only(dir.path(), 0).err(), Some(OpenError::Missing(_))));
    let store = open(dir.path());
    let first = add(&store, &["ann"], b'a').await;
    let reader = DiskStore::open_read_only(dir.path(), 1 << 20).unwrap();
    let second = add(&store, &["ann"], b'b').await;
    let listed = reader.list(&name("ann"), Page::ALL).await.unwrap();
    assert_eq!(listed.messages, [first, second].concat());
    assert_eq!(body(&reader, &listed.messages[1]).await.unwrap(), [b'b'; 1000]);
    assert_eq!(reader.usage().await.unwrap(), store.usage().await.unwrap());
    let refused = reader.purge(&name("ann"), MessageId::MAX, usize::MAX).await.unwrap_err().to_string();
    assert_eq!(refused, "store unavailable: it is open for reading only");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_go_with_the_mail_in_them() {
    let dir = TestDir::new();
    let store = open(dir.path());
    for letter in 0..100 {
        add(&store, &["ann", "bob"], letter).await;
    }
    assert!(segments(dir.path()).len() >= 5);
    store.purge(&name("ann"), MessageId::MAX, usize::MAX).await.unwrap();
    assert!(segments(dir.path()).len() >= 5, "bob still needs them");
    store.purge(&name("bob"), MessageId::MAX, usize::MAX).await.unwrap();
    eventually("hardly a segment is left", || segments(dir.path()).len() <= 1).await;
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_large_message_gives_its_space_back_at_once() {
    use std::os::unix::fs::MetadataExt as _;
    let dir = TestDir::new();
    let store = DiskStore::open(dir.path(), Settings::default()).unwrap();
    let first = add(&store, &["ann"], b'a').await.remove(0);
    let large = store.append(message(1, &["ann"], &vec![b'x'; 4 << 20])).await.unwrap().stored.remove(0);
    let last = add(&store, &["ann"], b'z').await.remove(0);
    let file = segments(dir.path()).remove(0);
    let blocks = || fs::metadata(&file).unwrap().blocks() * 512;
    assert!(blocks() > 4 << 20);
    store.remove(&large.mailbox, large.id).await.unwrap();
    eventually("the space is back", || blocks() < 1 << 20).await;
    // A hole is no damage, neither to those around it nor after a crash.
    let copy = crashed(dir.path());
    for store in [store, open(copy.path())] {
        assert_eq!(store.source(&large.mailbox, large.id).await.unwrap(), None);
        assert_eq!(body(&store, &first).await.unwrap(), [b'a'; 1000]);
        assert_eq!(body(&store, &last).await.unwrap(), [b'z'; 1000]);
        assert_eq!(store.usage().await.unwrap().messages, 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_last_segment_gives_its_space_back() {
    let dir = TestDir::new();
    let store = open(dir.path());
    for letter in 0..5 {
        add(&store, &["ann"], letter).await;
    }
    store.purge(&name("ann"), MessageId::MAX, usize::MAX).await.unwrap();
    eventually("no file is left", || segments(dir.path()).is_empty()).await;
    let next = add(&store, &["ann"], b'n').await.remove(0);
    drop(store);
    assert_eq!(body(&open(dir.path()), &next).await.unwrap(), [b'n'; 1000]);
}

#[tokio::test(flavor = "multi_thread")]
async fn sparse_segments_are_written_again() {
    let dir = TestDir::new();
    let store = open(dir.path());
    let mut kept = Vec::new();
    for letter in 0..200 {
        let stored = add(&store, &["ann", "bob"], letter).await;
        for summary in &stored[..if letter % 10 == 0 { 1 } else { 2 }] {
            store.remove(&summary.mailbox, summary.id).await.unwrap();
        }
        kept.extend((letter % 10 == 0).then(|| (letter, stored[1].clone())));
    }
    // Twenty messages of a kilobyte fit into two segments, and the last one stays as it is.
    eventually("few segments are left", || segments(dir.path()).len() <= 4).await;
    let copy = crashed(dir.path());
    for store in [store, open(copy.path())] {
        assert_eq!(store.usage().await.unwrap().messages, kept.len() as u64);
        for (letter, summary) in &kept {
            assert_eq!(body(&store, summary).await.unwrap(), [*letter; 1000]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_segment_is_not_in_the_way_of_others() {
    let dir = TestDir::new();
    let store = open(dir.path());
    let mut all = Vec::new();
    for letter in 0..150 {
        all.extend(add(&store, &["ann"], letter).await);
    }
    drop(store);
    let first = &segments(dir.path())[0];
    flip_a_bit(first);
    let store = open(dir.path());
    for (number, summary) in all.iter().enumerate() {
        if number % 5 != 0 {
            store.remove(&summary.mailbox, summary.id).await.unwrap();
        }
    }
    eventually("most segments are gone", || segments(dir.path()).len() <= 5).await;
    assert!(first.exists());
    assert_eq!(body(&store, &all[145]).await.unwrap(), [145; 1000]);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_are_taken_away_are_noticed() {
    for file in ["segments", "restante.db"] {
        let dir = TestDir::new();
        let store = open(dir.path());
        let first = add(&store, &["ann"], b'a').await.remove(0);
        let (place, aside) = (dir.path().join(file), dir.path().join("aside"));
        fs::rename(&place, &aside).unwrap();
        // It is not looked for with every message.
        tokio::time::sleep(Duration::from_millis(150)).await;
        for _ in 0..2 {
            store.append(message(2, &["ann"], b"lost?")).await.unwrap_err();
            store.usage().await.unwrap_err();
        }
        fs::rename(&aside, &place).unwrap();
        store.usage().await.unwrap();
        add(&store, &["ann"], b'b').await;
        assert_eq!(body(&store, &first).await.unwrap(), [b'a'; 1000]);
        assert_eq!(store.list(&name("ann"), Page::ALL).await.unwrap().messages.len(), 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_answer_does_not_hold_a_long_record() {
    let dir = TestDir::new();
    let store = open(dir.path());
    let names: Vec<String> = (0..100).map(|number| format!("box{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let stored = store.append(message(1, &names, b"short")).await.unwrap().stored.swap_remove(7);
    let source = store.source(&stored.mailbox, stored.id).await.unwrap().unwrap();
    assert_eq!((&source.trace[..], &source.body[..]), (&b"X-Trace: box7\r\n"[..], &b"short"[..]));
    // Without anybody else who holds it, memory can be taken over; then its whole length can be seen.
    drop(store);
    let taken = source.body.try_into_mut().expect("nobody else holds it");
    assert!(taken.capacity() < 100, "{}", taken.capacity());
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_do_not_notice_that_mail_is_moved() {
    let dir = TestDir::new();
    let store = Arc::new(open(dir.path()));
    let kept = add(&store, &["kept"], b'k').await.remove(0);
    let reader = tokio::spawn({
        let (store, kept) = (store.clone(), kept.clone());
        async move {
            for _ in 0..500 {
                assert_eq!(body(&store, &kept).await.unwrap(), [b'k'; 1000]);
            }
        }
    });
    while !reader.is_finished() {
        for letter in 0..50 {
            add(&store, &["ann"], letter).await;
        }
        store.purge(&name("ann"), MessageId::MAX, usize::MAX).await.unwrap();
    }
    reader.await.unwrap();
    assert_eq!(body(&store, &kept).await.unwrap(), [b'k'; 1000]);
}

#[tokio::test(flavor = "multi_thread")]
async fn leftovers_of_a_crash_are_removed() {
    let dir = TestDir::new();
    let store = open(dir.path());
    let stored = add(&store, &["ann"], b'a').await.remove(0);
    let copy = crashed(dir.path());
    let last = segments(copy.path()).pop().unwrap();
    // Bytes of a message that was never acknowledged, and a segment that was only begun.
    let whole = fs::read(&last).unwrap();
    fs::write(&last, [whole.as_slice(), b"garbage"].concat()).unwrap();
    fs::write(copy.path().join("segments/0000000077.seg"), "garbage").unwrap();
    fs::write(copy.path().join("segments/notes.txt"), "not ours").unwrap();
    let store = open(copy.path());
    eventually("the leftover is gone", || segments(copy.path()).len() == 2).await;
    let next = add(&store, &["ann"], b'b').await.remove(0);
    assert_eq!(body(&store, &stored).await.unwrap(), [b'a'; 1000]);
    assert_eq!(body(&store, &next).await.unwrap(), [b'b'; 1000]);
    assert!(copy.path().join("segments/notes.txt").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leftover_does_not_take_new_mail_with_it() {
    // The first segment was begun, and never committed: the first mail must not go to a file that is about to be removed.
    for _ in 0..20 {
        let dir = TestDir::new();
        drop(open(dir.path()));
        fs::write(dir.path().join("segments/0000000001.seg"), "garbage").unwrap();
        let store = open(dir.path());
        let stored = add(&store, &["ann"], b'a').await.remove(0);
        eventually("the leftover is gone", || segments(dir.path()).len() == 1).await;
        drop(store);
        assert_eq!(body(&open(dir.path()), &stored).await.unwrap(), [b'a'; 1000]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_end_costs_only_the_messages_in_it() {
    let dir = TestDir::new();
    let store = open(dir.path());
    let first = add(&store, &["ann"], b'a').await.remove(0);
    let gone = add(&store, &["ann", "bob"], b'b').await;
    let damages: [fn(&mut Vec<u8>); 2] =
        [|bytes| bytes.truncate(bytes.len() - 10), |bytes| bytes.iter_mut().rev().take(500).for_each(|byte| *byte = 0)];
    for damage in damages {
        let copy = crashed(dir.path());
        let last = segments(copy.path()).pop().unwrap();
        let mut bytes = fs::read(&last).unwrap();
        damage(&mut bytes);
        fs::write(&last, bytes).unwrap();
        let store = open(copy.path());
        let third = add(&store, &["ann"], b'c').await.remove(0);
        assert!(third.id > gone[1].id);
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
async fn damage_is_noticed_and_does_not_spread() {
    let dir = TestDir::new();
    let store = open(dir.path());
    let mut all = Vec::new();
    for letter in 0..30 {
        all.extend(add(&store, &["ann"], letter).await);
    }
    drop(store);
    let first = &segments(dir.path())[0];
    flip_a_bit(first);
    let store = open(dir.path());
    let damaged = body(&store, &all[0]).await.unwrap_err();
    assert!(
        matches!(&damaged, StoreError::Broken(cause) if cause.contains("the checksum does not match")),
        "{damaged}"
    );
    assert_eq!(body(&store, &all[1]).await.unwrap(), [1; 1000]);
    // A damaged segment is not written again, and goes when nobody needs it.
    for summary in &all[1..] {
        store.remove(&summary.mailbox, summary.id).await.unwrap();
    }
    assert!(body(&store, &all[0]).await.is_err());
    store.purge(&name("ann"), MessageId::MAX, usize::MAX).await.unwrap();
    assert_eq!(store.usage().await.unwrap(), Usage::default());
    eventually("the damaged segment is gone", || !first.exists()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_segment_costs_only_the_messages_in_it() {
    let dir = TestDir::new();
    let store = open(dir.path());
    let mut all = Vec::new();
    for letter in 0..30 {
        all.extend(add(&store, &["ann"], letter).await);
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
async fn the_database_gives_space_back() {
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
