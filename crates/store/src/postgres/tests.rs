//! Tests of the PostgreSQL store with a real server.

mod nodes;
mod rates;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::FutureExt as _;
use restante_sqlite::Migration;
use restante_testpg::Postgres;

use super::*;
use crate::tests::conformance::{self, message};

/// Returns a database for all tests of this program; each uses its own schemas. `None` if PostgreSQL is not
/// installed.
fn address() -> Option<Address> {
    Postgres::shared().map(|server| server.url().parse().expect("a valid URL"))
}

/// Returns a name that no other test has.
fn fresh_schema() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

async fn open(address: &Address, limits: Limits) -> PostgresStore {
    let settings = Settings { limits, schema: fresh_schema(), ..Settings::default() };
    PostgresStore::open(address, settings).await.expect("the database is available")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn passes_conformance_suite() {
    let Some(address) = address() else { return };
    Box::pin(conformance::run(|limits| open(&address, limits))).await;
}

/// Schemas take the place of the directories of a disk store.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn passes_restart_conformance_suite() {
    let Some(address) = address() else { return };
    let schemas: Mutex<HashMap<PathBuf, String>> = Mutex::default();
    let open = async |dir: PathBuf, limits| {
        let schema = schemas.lock().unwrap().entry(dir).or_insert_with(fresh_schema).clone();
        PostgresStore::open(&address, Settings { limits, schema, ..Settings::default() }).await.unwrap()
    };
    Box::pin(conformance::run_durable(open)).await;
}

#[tokio::test]
async fn uses_later_schema_if_compatible() {
    let Some(address) = address() else { return };
    let schema = fresh_schema();
    let open = || {
        let settings = Settings { schema: schema.clone(), ..Settings::default() };
        PostgresStore::open(&address, settings)
    };
    let store = open().await.unwrap();
    store.database.execute("INSERT INTO schema_versions VALUES (1000, 1)", &[]).await.unwrap();
    assert!(open().await.is_ok(), "this program is not too old for it");
    store.database.execute("INSERT INTO schema_versions VALUES (1001, 1000)", &[]).await.unwrap();
    let refused = open().await.err().expect("it is not compatible");
    let expected = format!("a later version of Restante has migrated its schema {schema} to version 1001, which needs");
    assert!(refused.is_permanent() && refused.to_string().contains(&expected), "{refused}");
}

/// The table of versions has another name since 0.1.0.
#[tokio::test]
async fn refuses_schema_of_a_development_version() {
    let Some(address) = address() else { return };
    let (administrator, schema) = (open(&address, Limits::default()).await, fresh_schema());
    for statement in [
        format!("CREATE SCHEMA {schema}"),
        format!("CREATE TABLE {schema}.version (version int PRIMARY KEY, oldest int NOT NULL)"),
        format!("INSERT INTO {schema}.version VALUES (5, 4)"),
    ] {
        administrator.database.execute(&statement, &[]).await.unwrap();
    }
    for access in [Access::ReadWrite, Access::ReadOnly] {
        let settings = Settings { schema: schema.clone(), access, ..Settings::default() };
        let refused = PostgresStore::open(&address, settings).await.err().expect("it has other tables");
        let expected =
            format!("a development version of Restante before 0.1.0 has written its schema {schema}; export");
        assert!(refused.is_permanent() && refused.to_string().contains(&expected), "{refused}");
    }
    let tables = format!("SELECT count(*) FROM pg_tables WHERE schemaname = '{schema}'");
    assert_eq!(administrator.database.query(&tables, &[]).await.unwrap()[0].get::<_, i64>(0), 1);
}

/// The second version of the schema adds a column, and the third one fills it in several transactions.
#[tokio::test]
async fn migration_continues_after_interruption() {
    let Some(address) = address() else { return };
    let schema = fresh_schema();
    let settings = Settings { schema: schema.clone(), ..Settings::default() };
    let store = PostgresStore::open(&address, settings).await.unwrap();
    for second in 1..=5 {
        store.append(message(second, &["bob"], b"x")).await.unwrap();
    }
    let run = async |statement: &str| drop(store.database.execute(statement, &[]).await.unwrap());
    let number = async |query: &str| store.database.query(query, &[]).await.unwrap()[0].get::<_, i64>(0);
    let version = |migration| schema::Version { migration, min_compatible: 1 };
    let versions = [
        version(Migration::Once("not run again")),
        version(Migration::Once("ALTER TABLE copies ADD COLUMN length bigint")),
        version(Migration::Repeat(
            "UPDATE copies SET length = size WHERE id IN (SELECT id FROM copies WHERE length IS NULL ORDER BY id LIMIT 2)",
        )),
    ];
    let migrate = async || {
        let (mut client, driver) = store.database.connect().await.unwrap().unwrap();
        tokio::spawn(driver.map(drop));
        schema::migrate(&mut client, &schema, &versions).await
    };
    run("ALTER TABLE copies ADD CONSTRAINT stop CHECK (received < 4000000000) NOT VALID").await;
    migrate().await.unwrap_err();
    let (pending, last) =
        ("SELECT count(*) FROM copies WHERE length IS NULL", "SELECT max(version)::bigint FROM schema_versions");
    assert_eq!((number(pending).await, number(last).await), (3, 2));
    assert!(store.append(message(1, &["bob"], b"x")).await.is_ok(), "the store can be used meanwhile");
    run("ALTER TABLE copies DROP CONSTRAINT stop").await;
    migrate().await.unwrap();
    assert_eq!((number(pending).await, number(last).await), (0, 3));
    migrate().await.unwrap();
}

/// The administrator may have created the schema for a role that cannot create one.
#[tokio::test]
async fn uses_existing_schema_without_create_permission() {
    let Some(address) = address() else { return };
    let (administrator, schema) = (open(&address, Limits::default()).await, fresh_schema());
    let role = format!("role_of_{schema}");
    for statement in [
        format!("CREATE ROLE {role} LOGIN"),
        format!("CREATE SCHEMA {schema} AUTHORIZATION {role}"),
        "REVOKE CREATE ON DATABASE postgres FROM PUBLIC".to_owned(),
    ] {
        administrator.database.execute(&statement, &[]).await.unwrap();
    }
    let url = Postgres::shared().expect("PostgreSQL is installed").url().replace("restante@", &format!("{role}@"));
    let settings = Settings { schema, ..Settings::default() };
    assert!(PostgresStore::open(&url.parse().unwrap(), settings).await.is_ok());
    let missing_schema = Settings { schema: fresh_schema(), ..Settings::default() };
    let refused = PostgresStore::open(&url.parse().unwrap(), missing_schema)
        .await
        .err()
        .expect("it has no permission to create one");
    assert!(refused.is_permanent() && refused.to_string().contains("permission denied"), "{refused}");
}

#[tokio::test]
async fn read_only_access_creates_nothing() {
    let Some(address) = address() else { return };
    let schema = fresh_schema();
    let open = |access| {
        let settings = Settings { schema: schema.clone(), access, ..Settings::default() };
        PostgresStore::open(&address, settings)
    };
    let refused = open(Access::ReadOnly).await.err().expect("there is nothing to read");
    assert!(refused.is_permanent() && refused.to_string().contains("contains no store"), "{refused}");
    let server = open(Access::ReadWrite).await.unwrap();
    server.append(message(1, &["bob"], b"x")).await.unwrap();
    assert_eq!(open(Access::ReadOnly).await.unwrap().usage().await.unwrap().messages, 1);
}

/// The former primary is read-only after a failover.
#[tokio::test]
async fn refuses_read_only_database() {
    if address().is_none() {
        return;
    }
    let url =
        Postgres::shared().expect("PostgreSQL is installed").url() + "?options=-cdefault_transaction_read_only%3Don";
    let settings = Settings { schema: fresh_schema(), ..Settings::default() };
    let refused = PostgresStore::open(&url.parse().unwrap(), settings).await.err().expect("it cannot be written");
    assert!(!refused.is_permanent() && refused.to_string().contains("read-only"), "{refused}");
}

/// Other changes wait during an eviction, so one append evicts a limited number of messages.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lowered_limit_is_enforced_in_steps() {
    const STEP: usize = 1000;
    let Some(address) = address() else { return };
    let settings = |limits| Settings { limits, schema: "lowered_limit".to_owned(), ..Settings::default() };
    let store = PostgresStore::open(&address, settings(Limits::default())).await.unwrap();
    let store = Arc::new(store);
    let mut writers = JoinSet::new();
    for second in 0..2500 {
        let store = store.clone();
        writers.spawn(async move { store.append(message(second, &["bob"], &[b'x'; 1000])).await.unwrap() });
    }
    writers.join_all().await;
    let capped = Limits { messages_per_mailbox: 1400, ..Limits::default() };
    let store = PostgresStore::open(&address, settings(capped)).await.unwrap();
    for (second, evicted) in [(3000, STEP), (3001, 102), (3002, 1)] {
        assert_eq!(store.append(message(second, &["bob"], b"x")).await.unwrap().evicted.len(), evicted);
    }
    let bounded = Limits { bytes: 50_000, ..Limits::default() };
    let store = PostgresStore::open(&address, settings(bounded)).await.unwrap();
    assert_eq!(store.append(message(4000, &["bob"], b"x")).await.unwrap().evicted.len(), STEP);
    store.append(message(4001, &["bob"], b"x")).await.unwrap();
    let usage = store.usage().await.unwrap();
    assert!(usage.bytes <= 50_000 && usage.messages > 40, "{usage:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_messages_share_statements_and_copies_share_a_body() {
    let Some(address) = address() else { return };
    let store = Arc::new(open(&address, Limits::default()).await);
    let mut sessions = JoinSet::new();
    for second in 0..200 {
        let store = store.clone();
        sessions.spawn(async move { store.append(message(second, &["ann", "bob", "cid"], b"x")).await.unwrap() });
    }
    assert_eq!(sessions.join_all().await.len(), 200);
    let number = async |query: &str| store.database.query(query, &[]).await.unwrap()[0].get::<_, i64>(0);
    assert_eq!(number("SELECT count(*) FROM bodies").await, 200);
    assert_eq!(number("SELECT count(*) FROM copies").await, 600);
    // Each statement takes a number for its bodies. The first one is sent before the other messages arrive.
    let statements = number("SELECT last_value / 1000 + 1 FROM body_numbers").await;
    assert!(statements < 100, "{statements}");
}

#[tokio::test(flavor = "multi_thread")]
async fn query_without_connection_times_out() {
    let Some(address) = address() else { return };
    // One of these is for queries.
    let settings = Settings { schema: fresh_schema(), connections: 5, ..Settings::default() };
    let store = Arc::new(PostgresStore::open(&address, settings).await.unwrap());
    let slow = tokio::spawn({
        let store = store.clone();
        async move { store.database.query("SELECT pg_sleep(8)", &[]).await.map(drop) }
    });
    // The statement has the only connection for queries as soon as it is visible as active.
    let other_connection = store.database.with_own_connection().unwrap();
    let active_query = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active'";
    while other_connection.query(active_query, &[]).await.unwrap().is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let bob = message(1, &["bob"], b"x").copies.remove(0).mailbox;
    let refused = store.list(&bob, Page::ALL).await.expect_err("the only connection is busy");
    assert!(refused.to_string().contains("all connections to the database are in use"), "{refused}");
    assert!(store.append(message(1, &["bob"], b"x")).await.is_ok(), "changes have their own connections");
    slow.await.unwrap().unwrap();
    assert_eq!(store.list(&bob, Page::ALL).await.unwrap().messages.len(), 1);
}

/// One large message evicts as many small ones as necessary, even above the limit per append.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn large_message_does_not_exceed_size_limit() {
    const SIZE_LIMIT: u64 = 1_000_000;
    let Some(address) = address() else { return };
    let store = Arc::new(open(&address, Limits { bytes: SIZE_LIMIT, ..Limits::default() }).await);
    let mut writers = JoinSet::new();
    for second in 0..2500 {
        let store = store.clone();
        writers.spawn(async move { store.append(message(second, &["bob"], &[b'x'; 300])).await.unwrap() });
    }
    writers.join_all().await;
    assert_eq!(store.usage().await.unwrap().messages, 2500);
    let evicted = store.append(message(3000, &["bob"], &vec![b'x'; 900_000])).await.unwrap().evicted;
    assert!(evicted.len() > 2000, "{}", evicted.len());
    assert!(store.usage().await.unwrap().bytes <= SIZE_LIMIT);
}

/// A list of a project reads no copies of other projects, even if those are most of the latest copies.
#[tokio::test]
async fn list_of_a_project_uses_its_index() {
    let Some(address) = address() else { return };
    let store = open(&address, Limits::default()).await;
    let insert = "
        INSERT INTO copies (id, message, number, modseq, received, size, body, shared, seen, mailbox, headline, trace, tags, details, project)
        SELECT number, number, number, number, number, 1, number, false, false, 'x', '', '', '', '',
            CASE WHEN number <= 100 THEN 'shop'::bytea WHEN number % 2 = 0 THEN 'acme'::bytea END
        FROM generate_series(1, 20000) AS number";
    store.database.execute(insert, &[]).await.unwrap();
    store.database.execute("ANALYZE copies", &[]).await.unwrap();
    for (project, is_first, shares_headlines) in [
        ("shop", true, false),
        ("shop", false, false),
        ("shop", false, true),
        ("acme", true, false),
        ("acme", false, true),
    ] {
        let query = reader::select_copies(true, is_first, shares_headlines);
        let values =
            [("$1", "-1"), ("$2", "9223372036854775807"), ("$3", "51"), ("$4", &format!("'{project}'::bytea"))];
        let query = values.iter().fold(query, |query, (parameter, value)| query.replace(parameter, value));
        let rows = store.database.query(&format!("EXPLAIN {query}"), &[]).await.unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        let mut scans = plan.iter().filter(|step| step.contains(" on copies"));
        assert!(scans.next().is_some_and(|before| before.contains("copies_pkey")), "{project} {plan:#?}");
        assert!(scans.next().is_some_and(|list| list.contains("copies_by_project")), "{project} {plan:#?}");
        assert!(!plan.iter().any(|step| step.contains("Sort")), "{project} {plan:#?}");
    }
}

#[tokio::test]
async fn unreachable_database_is_a_temporary_error() {
    if address().is_none() {
        return;
    }
    // Only root could listen on this port, and nothing does.
    let unreachable: Address = "postgres://restante@127.0.0.1:1/postgres".parse().unwrap();
    let error = PostgresStore::open(&unreachable, Settings::default()).await.err().expect("no server is listening");
    assert!(!error.is_permanent(), "{error}");
    let wrong = Postgres::shared().expect("PostgreSQL is installed").url().replace("/postgres", "/no_such_database");
    let error = PostgresStore::open(&wrong.parse().unwrap(), Settings::default())
        .await
        .err()
        .expect("the database does not exist");
    assert!(error.is_permanent() && error.to_string().contains("no_such_database"), "{error}");
}
