//! Tests of the queue with real files.

use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use restante_testdir::TestDir;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

use super::*;
use crate::entry::EntryState;
use crate::tests::conformance::{
    self, KIND, abandoned, add, attempted, claim, delivered, find, ids, list_all, log, new_entry, record, second,
};

const LIMITS: Limits = Limits { max_waiting: 100, max_finished: 100 };

fn open(dir: &TestDir) -> SqliteQueue {
    SqliteQueue::open(dir.path(), KIND, LIMITS).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn file_passes_conformance_suite() {
    let dirs = RefCell::new(Vec::new());
    conformance::run(async |max_waiting, max_finished| {
        let dir = TestDir::new();
        let queue = SqliteQueue::open(dir.path(), KIND, Limits { max_waiting, max_finished }).unwrap();
        dirs.borrow_mut().push(dir);
        queue
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_passes_conformance_suite() {
    conformance::run(async |max_waiting, max_finished| {
        SqliteQueue::in_memory(KIND, Limits { max_waiting, max_finished }).unwrap()
    })
    .await;
}

#[tokio::test]
async fn checkpoint_of_an_earlier_process_is_abandoned() {
    let dir = TestDir::new();
    let queue = open(&dir);
    assert_eq!(abandoned(&queue).await, []);
    for checkpoint in [Some(7.into()), None, Some(5.into()), Some(9.into())] {
        queue.set_checkpoint(checkpoint).await.unwrap();
        assert_eq!(abandoned(&queue).await, []);
    }
    drop(queue);
    for later in [11, 13] {
        let queue = open(&dir);
        assert_eq!(abandoned(&queue).await, [9.into()]);
        queue.set_checkpoint(Some(later.into())).await.unwrap();
        queue.delete_abandoned(Vec::new()).await.unwrap();
        queue.leave().await.unwrap();
    }
    let queue = open(&dir);
    assert_eq!(abandoned(&queue).await, [9.into()], "messages above it were not found yet");
    queue.delete_abandoned(queue.abandoned_checkpoints().await.unwrap()).await.unwrap();
    queue.set_checkpoint(None).await.unwrap();
    drop(queue);
    assert_eq!(abandoned(&open(&dir)).await, []);
}

#[tokio::test]
async fn committed_change_is_not_an_error_if_the_mode_cannot_be_reset() {
    let queue = SqliteQueue::in_memory(KIND, LIMITS).unwrap();
    let refuse_normal = |context: AuthContext<'_>| match context.action {
        AuthAction::Pragma { pragma_name: "synchronous", pragma_value: Some("'NORMAL'" | "NORMAL") } => {
            Authorization::Deny
        }
        _ => Authorization::Allow,
    };
    queue.file.try_lock().unwrap().connection.authorizer(Some(refuse_normal)).unwrap();
    let id = add(&queue, new_entry(1)).await;
    assert_eq!(ids(&list_all(&queue).await), [id]);
}

#[tokio::test]
async fn entries_survive_the_process() {
    let dir = TestDir::new();
    let queue = open(&dir);
    let added = queue.add((1..=5).map(new_entry).collect()).await.unwrap();
    queue.acquire_cursor(7.into()).await.unwrap();
    let forwarded = queue.forward(vec![new_entry(8)], 7.into(), 9.into()).await.unwrap();
    assert_eq!(forwarded, ForwardOutcome::Added);
    assert_eq!(claim(&queue, second(0), 4).await, added[..4]);
    let results = vec![delivered(added[0]), attempted(added[1], EntryState::Queued, "later", "450 later")];
    record(&queue, results).await;
    queue.cancel(Selection::Ids(vec![added[3]])).await.unwrap();
    let (mut before, identity) = (list_all(&queue).await, queue.identity().await.unwrap());
    let secret = queue.secret().await.unwrap();
    // Without a call of `leave`, as if the process was killed.
    drop(queue);

    let queue = open(&dir);
    let interrupted = before.iter_mut().find(|entry| entry.id == added[2]).unwrap();
    assert_eq!(interrupted.state, EntryState::Sending);
    (interrupted.state, interrupted.next_attempt, interrupted.claim) = (EntryState::Queued, Some(second(0)), 0);
    before.iter_mut().find(|entry| entry.id == added[3]).unwrap().claim = 0;
    assert_eq!(list_all(&queue).await, before);
    assert_eq!((queue.identity().await.unwrap(), queue.secret().await.unwrap()), (identity, secret));
    assert_eq!(queue.attempt_log(added[1]).await.unwrap(), Some(log("450 later")));
    assert_eq!(queue.acquire_cursor(1.into()).await.unwrap(), Some(9.into()));
    // The results of the earlier process are not expected any more.
    record(&queue, vec![delivered(added[2]), delivered(added[3])]).await;
    assert_eq!(list_all(&queue).await, before);
    assert_eq!(claim(&queue, second(0), 1).await, [added[2]]);
    let mode = fs::metadata(dir.path().join(KIND.file_name)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "only the owner can read it");
}

#[tokio::test]
async fn ids_are_not_reused() {
    let dir = TestDir::new();
    let limits = Limits { max_waiting: 10, max_finished: 0 };
    let queue = SqliteQueue::open(dir.path(), KIND, limits).unwrap();
    let first = add(&queue, new_entry(1)).await;
    queue.cancel(Selection::Target(None)).await.unwrap();
    assert_eq!(queue.find(first).await.unwrap(), None);
    drop(queue);
    assert!(add(&open(&dir), new_entry(2)).await > first);
}

#[tokio::test]
async fn unusable_file_is_renamed_and_replaced() {
    let damages: [fn(&Path); 3] = [
        |path| fs::write(path, "this is not a database").unwrap(),
        |path| {
            let mut bytes = fs::read(path).unwrap();
            bytes[4096..].fill(0xff);
            fs::write(path, bytes).unwrap();
        },
        |path| rusqlite::Connection::open(path).unwrap().execute_batch("DROP TABLE entries").unwrap(),
    ];
    for damage in damages {
        let dir = TestDir::new();
        add(&open(&dir), new_entry(1)).await;
        damage(&dir.path().join(KIND.file_name));
        let queue = open(&dir);
        assert_eq!(list_all(&queue).await, []);
        let id = add(&queue, new_entry(2)).await;
        drop(queue);
        assert_eq!(find(&open(&dir), id).await.message.number(), 2);
        let is_renamed =
            |entry: fs::DirEntry| entry.file_name().to_str().is_some_and(|name| name.starts_with("test.db.unusable-"));
        assert!(fs::read_dir(dir.path()).unwrap().any(|entry| is_renamed(entry.unwrap())));
    }
}

#[tokio::test]
async fn file_that_cannot_be_opened_is_an_error() {
    let dir = TestDir::new();
    fs::create_dir(dir.path().join(KIND.file_name)).unwrap();
    let error = SqliteQueue::open(dir.path(), KIND, LIMITS).map(drop).unwrap_err();
    assert!(error.contains("test.db cannot be used: "), "{error}");
}

#[tokio::test]
async fn reserved_space_is_left_to_messages() {
    let dir = TestDir::new();
    let queue = open(&dir);
    let id = add(&queue, new_entry(1)).await;
    queue.acquire_cursor(5.into()).await.unwrap();
    let set_space = |has_space| queue.file.try_lock().unwrap().has_space = has_space;
    set_space(|_| false);
    let refused = queue.add(vec![new_entry(2)]).await;
    assert!(matches!(refused, Err(AddError::Store(StoreError::NoSpace(_)))), "{refused:?}");
    let refused = queue.forward(vec![new_entry(2)], 5.into(), 6.into()).await;
    assert!(matches!(refused, Err(StoreError::NoSpace(_))), "{refused:?}");
    // A message that matches no rule needs no space, and entries that wait are sent.
    assert_eq!(queue.forward(Vec::new(), 5.into(), 6.into()).await.unwrap(), ForwardOutcome::Added);
    assert_eq!(claim(&queue, second(0), 10).await, [id]);
    record(&queue, vec![delivered(id)]).await;
    set_space(|_| true);
    assert_eq!(queue.forward(vec![new_entry(2)], 6.into(), 7.into()).await.unwrap(), ForwardOutcome::Added);
}

#[tokio::test]
async fn full_disk_changes_nothing() {
    let dir = TestDir::new();
    let queue = SqliteQueue::open(dir.path(), KIND, Limits { max_waiting: 100_000, ..LIMITS }).unwrap();
    let id = add(&queue, new_entry(1)).await;
    queue.acquire_cursor(5.into()).await.unwrap();
    let set_max_pages = |pages: u32| {
        let file = queue.file.try_lock().unwrap();
        file.connection.pragma_update(None, "max_page_count", pages).unwrap();
    };
    // SQLite reports a full disk at its present size.
    set_max_pages(1);
    let entries: Vec<NewEntry> = (0..1000).map(new_entry).collect();
    let refused = queue.add(entries.clone()).await;
    assert!(matches!(refused, Err(AddError::Store(StoreError::NoSpace(_)))), "{refused:?}");
    let refused = queue.forward(entries.clone(), 5.into(), 6.into()).await;
    assert!(matches!(refused, Err(StoreError::NoSpace(_))), "{refused:?}");
    assert_eq!(ids(&list_all(&queue).await), [id]);
    assert_eq!(queue.acquire_cursor(1.into()).await.unwrap(), Some(5.into()));
    set_max_pages(1_000_000);
    assert_eq!(queue.forward(entries, 5.into(), 6.into()).await.unwrap(), ForwardOutcome::Added);
}

#[tokio::test]
async fn answers_to_users_are_on_disk() {
    let dir = TestDir::new();
    let queue = open(&dir);
    let synchronous = || -> i64 {
        let file = queue.file.try_lock().unwrap();
        file.connection.pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap()
    };
    let during = queue
        .run(Durability::OnCommit, |file| {
            Ok(file.connection.pragma_query_value(None, "synchronous", |row| row.get::<_, i64>(0)).unwrap())
        })
        .await;
    assert_eq!((during.unwrap(), synchronous()), (2, 1), "full during the transaction, then normal");
    let failed: Result<()> = queue.run(Durability::OnCommit, |_| Err(StoreError::Broken(String::new()))).await;
    failed.unwrap_err();
    assert_eq!(synchronous(), 1);
}

/// Records the mode in which rows of a table are inserted and deleted.
fn record_modes(queue: &SqliteQueue, table: &str) {
    let sql = format!(
        "CREATE TEMP TABLE modes (synchronous);
        CREATE TEMP TRIGGER created AFTER INSERT ON main.{table} BEGIN
            INSERT INTO modes SELECT synchronous FROM pragma_synchronous;
        END;
        CREATE TEMP TRIGGER deleted AFTER DELETE ON main.{table} BEGIN
            INSERT INTO modes SELECT synchronous FROM pragma_synchronous;
        END;"
    );
    queue.file.try_lock().unwrap().connection.execute_batch(&sql).unwrap();
}

/// Returns the recorded modes. That of a change that is on disk is 2.
fn modes(queue: &SqliteQueue) -> String {
    let file = queue.file.try_lock().unwrap();
    file.connection.query_row("SELECT group_concat(synchronous) FROM modes", [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn first_cursor_is_on_disk() {
    let dir = TestDir::new();
    let queue = open(&dir);
    record_modes(&queue, "cursor");
    queue.acquire_cursor(5.into()).await.unwrap();
    assert_eq!(modes(&queue), "2");
    assert!(queue.delete_cursor().await.unwrap());
    assert_eq!(modes(&queue), "2,2");
}

#[tokio::test]
async fn checkpoint_is_on_disk_although_the_targets_are_known() {
    let (dir, targets) = (TestDir::new(), vec!["mx".to_owned()]);
    open(&dir).set_targets(targets.clone(), 5.into()).await.unwrap();
    let queue = open(&dir);
    record_modes(&queue, "checkpoints");
    queue.set_checkpoint(Some(7.into())).await.unwrap();
    queue.set_targets(targets, 7.into()).await.unwrap();
    assert_eq!(modes(&queue), "2");
}
