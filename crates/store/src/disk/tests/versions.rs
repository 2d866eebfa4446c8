//! Databases of earlier versions, and the query plans of SQLite for each of them.

use super::*;

/// Creates a directory with a database of version 1. Returns it, and the list of its mailboxes.
async fn create_directory_of_version_1() -> (TestDir, Vec<MailboxState>) {
    let dir = TestDir::new();
    let store = open(dir.path());
    for byte in 0..20 {
        let stored = add(&store, &["ann", "bob", "zoë"], byte).await;
        store.set_seen(&name("ann"), stored[0].id, byte % 3 == 0).await.unwrap();
        store.set_seen(&name("bob"), stored[1].id, true).await.unwrap();
    }
    store.expire(Timestamp::from_second(2).unwrap(), 4).await.unwrap();
    let mailboxes = store.mailboxes(MailboxPage::ALL).await.unwrap();
    drop(store);
    let (path, later) = (dir.path().join("restante.db"), dir.path().join("later.db"));
    fs::rename(&path, &later).unwrap();
    let database = schema::create_version_1(&path);
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
async fn migrates_version_1() {
    let (dir, before) = create_directory_of_version_1().await;
    let short: Vec<_> = before.iter().map(|mailbox| (mailbox.messages, mailbox.unseen)).collect();
    assert_eq!(short, [(18, 12), (19, 0), (19, 19)]);
    for _ in 0..2 {
        let store = open(dir.path());
        assert_eq!(store.mailboxes(MailboxPage::ALL).await.unwrap(), before);
    }
    let store = open(dir.path());
    let newest = store.find(&name("ann"), MessageSelector::Latest).await.unwrap().unwrap();
    store.remove(&name("ann"), newest.id).await.unwrap();
    let after = store.mailboxes(MailboxPage::ALL).await.unwrap();
    assert_eq!((after[0].messages, after[0].unseen), (17, 11));
    assert_eq!((after[0].bytes, &after[1..]), (before[0].bytes - newest.size, &before[1..]));
}

/// A database stays at version 1 while a server of that version is running, and if it cannot be written.
#[tokio::test(flavor = "multi_thread")]
async fn reads_version_1_without_migration() {
    let (dir, before) = create_directory_of_version_1().await;
    let reader = DiskStore::open_read_only(dir.path(), 1 << 20).unwrap();
    assert_eq!(reader.mailboxes(MailboxPage::ALL).await.unwrap(), before);
    let page = MailboxPage { prefix: "b".to_owned(), ..MailboxPage::ALL };
    assert_eq!(reader.mailboxes(page).await.unwrap(), before[1..2]);
    let newest = reader.find(&name("ann"), MessageSelector::Latest).await.unwrap().unwrap();
    assert_eq!(newest.id, before[0].newest.id);
    // Another process migrates it meanwhile.
    let store = open(dir.path());
    store.remove(&name("ann"), newest.id).await.unwrap();
    assert_eq!(reader.mailboxes(MailboxPage::ALL).await.unwrap(), store.mailboxes(MailboxPage::ALL).await.unwrap());
}

/// Queries read only the rows that they return, and sort nothing. Only version 1 must count, and only for the list.
#[tokio::test(flavor = "multi_thread")]
async fn queries_read_only_rows_they_return() {
    let (dir, _) = create_directory_of_version_1().await;
    let database = schema::open_reader(&dir.path().join("restante.db"), 0).unwrap();
    let by_name = "SEARCH mailboxes USING PRIMARY KEY (name=?)";
    let each = ["SEARCH mailboxes USING PRIMARY KEY (name>?)", "SEARCH newest USING PRIMARY KEY (mailbox=? AND id=?)"];
    let subquery = ["CORRELATED SCALAR SUBQUERY", "SEARCH copies USING PRIMARY KEY (mailbox=?)"];
    assert_eq!(plan(&database, reader::SELECT_VERSION), [by_name]);
    assert_eq!(plan(&database, reader::SELECT_MAILBOXES), [each, subquery, subquery, subquery].concat());

    let _store = open(dir.path());
    let database = schema::open_reader(&dir.path().join("restante.db"), 0).unwrap();
    assert_eq!(plan(&database, reader::SELECT_VERSION), [by_name]);
    assert_eq!(plan(&database, reader::SELECT_MAILBOXES), [each, subquery].concat());
}

/// Returns the plan of a query, without the names of databases and the numbers of subqueries.
fn plan(database: &rusqlite::Connection, query: &str) -> Vec<String> {
    let mut statement = database.prepare(&format!("EXPLAIN QUERY PLAN {query}")).unwrap();
    let steps = statement.raw_query().mapped(|row| row.get::<_, String>(3));
    let steps = steps.map(|step| step.unwrap().replace("main.", ""));
    steps.map(|step| step.trim_end_matches(|last| " 0123456789".contains(last)).to_owned()).collect()
}
