//! Tests of the writer without its thread.

use restante_queue::{SqliteQueue, Stage};
use restante_testdir::TestDir;
use rusqlite::Connection;
use tokio::sync::watch;

use super::*;
use crate::tests::support::{FAST, FakeTargets, mailroom, main_runtime, message, settings};
use crate::{QUEUE, QUEUE_LIMITS, Webhooks};

#[tokio::test]
async fn many_entries_are_added_in_parts_that_can_be_repeated() {
    let dir = TestDir::new();
    let queue = Arc::new(SqliteQueue::open(dir.path(), QUEUE, QUEUE_LIMITS).unwrap());
    let http = FakeTargets::new(|_, _| Ok(200));
    let webhooks = Webhooks::with_http(settings(&["http://x.org/"]), queue.clone(), http, FAST).await.unwrap();
    let stage = watch::Sender::<Stage>::default();
    let context = Context {
        queue: queue.clone(),
        mailroom: mailroom(),
        main: main_runtime(),
        stage: stage.subscribe(),
        errors: Arc::default(),
        error_text: "",
    };
    let writer = Writer::start(context, webhooks.shared.clone(), MessageId::ZERO).await.unwrap();
    let new_entry = |mailbox: &str| {
        let summary = message(mailbox);
        writer.new_entry(0, &summary, &Payload::new(EventKind::Stored, &summary))
    };
    let mut entries: Vec<NewEntry> = (0..2 * MAX_ADDED).map(|_| new_entry("accepted")).collect();
    entries.push(new_entry("refused"));
    let file = Connection::open(dir.path().join(QUEUE.file_name)).unwrap();
    let sql = "CREATE TRIGGER refuse BEFORE INSERT ON entries WHEN NEW.mailbox = 'refused' BEGIN
            SELECT RAISE(ABORT, 'refused');
        END";
    file.execute_batch(sql).unwrap();
    let count = async || queue.counts().await.unwrap().iter().map(|count| count.count).sum::<u64>();
    writer.add(entries.clone()).await.unwrap_err();
    assert_eq!(count().await, 2 * MAX_ADDED as u64);
    file.execute_batch("DROP TRIGGER refuse").unwrap();
    writer.add(entries).await.unwrap();
    assert_eq!(count().await, 2 * MAX_ADDED as u64 + 1);
}
