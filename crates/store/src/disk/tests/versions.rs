//! Databases of other versions, and the query plans of SQLite.

use restante_sqlite::{Migration, Schema, wal_path};

use super::*;

/// Adds a column, and fills it in several transactions.
const NEXT_VERSIONS: &[Migration] = &[
    Migration::Once("not run again"),
    Migration::Once("ALTER TABLE copies ADD COLUMN checked INTEGER NOT NULL DEFAULT 0"),
    Migration::Repeat(
        "UPDATE copies SET checked = 1 WHERE id IN (SELECT id FROM copies WHERE NOT checked ORDER BY id LIMIT 2)",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn migration_continues_after_interruption() {
    let dir = TestDir::new();
    let store = open(dir.path());
    for mailbox in ["ann", "bob", "cid", "dan", "eve"] {
        add(&store, &[mailbox], b'x').await;
    }
    drop(store);
    let path = dir.path().join("restante.db");
    let next = Schema { migrations: NEXT_VERSIONS, ..schema::SCHEMA };
    let run = |statement: &str| rusqlite::Connection::open(&path).unwrap().execute_batch(statement).unwrap();
    run("CREATE TRIGGER stop BEFORE UPDATE ON copies WHEN OLD.mailbox = 'dan' BEGIN SELECT RAISE(ABORT, 'stop'); END");
    next.open(&path).unwrap_err();
    run("DROP TRIGGER stop");
    let pending = |database: &rusqlite::Connection| {
        database.query_row("SELECT count(*) FROM copies WHERE NOT checked", [], |row| row.get::<_, i64>(0)).unwrap()
    };
    let database = rusqlite::Connection::open(&path).unwrap();
    assert_eq!((next.found_version(&database).unwrap(), pending(&database)), (2, 3));
    drop(database);
    let database = next.open(&path).unwrap();
    assert_eq!((next.found_version(&database).unwrap(), pending(&database)), (3, 0));
    assert_eq!(database.total_changes(), 3, "only the rest is migrated");
    drop(database);
    let refused = refusal(dir.path());
    assert!(refused.contains("its schema has version 3") && refused.contains("up to 1;"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_directory_of_a_development_version_without_changing_it() {
    let dir = TestDir::new();
    let store = open(dir.path());
    add(&store, &["ann"], b'x').await;
    drop(store);
    let written = dir.path().join("restante.db");
    let database = rusqlite::Connection::open(&written).unwrap();
    for version in 1..=3 {
        database.pragma_update(None, "application_id", schema::DEVELOPMENT_APPLICATION_ID).unwrap();
        database.pragma_update(None, "user_version", version).unwrap();
        // The old program was killed, so there is a log.
        let killed = copy_as_after_crash(dir.path());
        let path = killed.path().join("restante.db");
        let contents = || [path.clone(), wal_path(&path)].map(|path| fs::read(path).unwrap());
        let before = contents();
        assert!(!before[1].is_empty());
        let read_only = DiskStore::open_read_only(killed.path(), 0).err().unwrap().to_string();
        for refused in [refusal(killed.path()), read_only] {
            let start = format!("{} was written by a development version of Restante before 0.1.0", path.display());
            assert!(refused.starts_with(&start), "{refused}");
            assert!(refused.contains("`restante export`") && refused.contains("`restante import`"), "{refused}");
        }
        assert!(contents() == before, "version {version}");
    }
}

/// Queries read only the rows that they return, and sort nothing.
#[tokio::test(flavor = "multi_thread")]
async fn queries_read_only_rows_they_return() {
    let dir = TestDir::new();
    let _store = open(dir.path());
    let database = schema::open_reader(&dir.path().join("restante.db"), 0).unwrap();
    let range = "SEARCH copies USING INDEX copies_by_id (id>? AND id<?)";
    let mailboxes: &[&str] = &[
        "SEARCH mailboxes USING PRIMARY KEY (name>?)",
        "SEARCH newest USING PRIMARY KEY (mailbox=? AND id=?)",
        "CORRELATED SCALAR SUBQUERY",
        "SEARCH copies USING PRIMARY KEY (mailbox=?)",
    ];
    let project_range = "SEARCH copies USING INDEX copies_by_project (project=? AND id>? AND id<?)";
    let next_project = "SEARCH copies USING COVERING INDEX copies_by_project (project>?)";
    let tagged_in_project = "SEARCH copies USING COVERING INDEX tagged_in_project (project=?)";
    let table: [(&str, &[&str]); 15] = [
        (reader::SELECT_VERSION, &["SEARCH mailboxes USING PRIMARY KEY (name=?)"]),
        (reader::SELECT_MAILBOXES, mailboxes),
        (reader::SELECT_INDEX, &["SEARCH copies USING PRIMARY KEY (mailbox=? AND id>?)"]),
        (reader::SELECT_COPIES, &[range]),
        (reader::SELECT_COPIES_DESCENDING, &[range]),
        (reader::SELECT_PROJECT_COPIES, &[project_range]),
        (reader::SELECT_PROJECT_COPIES_DESCENDING, &[project_range]),
        (reader::SELECT_PROJECT_TAGS, &[tagged_in_project]),
        (reader::SELECT_NEXT_PROJECT, &[next_project]),
        (reader::SELECT_PROJECT_SUMS, &["SEARCH mailboxes USING PRIMARY KEY (name>? AND name<?)"]),
        (reader::SELECT_COPIES_FROM, &["SEARCH copies USING INDEX copies_by_id (id>?)"]),
        (reader::SELECT_OLDEST, &["SEARCH copies USING INDEX arrivals ((received,id)>(?,?) AND received<?)"]),
        (reader::SELECT_NEWEST_COPY, &["SCAN copies USING INDEX copies_by_id"]),
        (reader::SELECT_TAGS, &["SCAN copies USING COVERING INDEX tagged"]),
        (reader::SELECT_SHARED_TAGS, &["SCAN copies USING COVERING INDEX tagged_shared"]),
    ];
    for (query, expected) in table {
        assert_eq!(plan(&database, query), expected, "{query}");
    }
    let counts = plan(&database, reader::SELECT_PROJECT_COUNTS);
    let shared_in_project = "SEARCH copies USING COVERING INDEX shared_in_project (project=?)";
    assert_eq!(counts.iter().filter(|step| *step == shared_in_project).count(), 2, "{counts:?}");
    assert!(plan(&database, reader::SELECT_UNREAD).iter().any(|step| step.contains("COVERING INDEX unread_shared")));
}

/// Returns the plan of a query, without the names of databases and the numbers of subqueries.
fn plan(database: &rusqlite::Connection, query: &str) -> Vec<String> {
    let mut statement = database.prepare(&format!("EXPLAIN QUERY PLAN {query}")).unwrap();
    let steps = statement.raw_query().mapped(|row| row.get::<_, String>(3));
    let steps = steps.map(|step| step.unwrap().replace("main.", ""));
    steps.map(|step| step.trim_end_matches(|last| " 0123456789".contains(last)).to_owned()).collect()
}
