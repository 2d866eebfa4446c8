//! Opening, migrating and replacing files.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use restante_testdir::TestDir;

use super::*;

const FIRST: Migration = Migration::Once("CREATE TABLE notes (text TEXT)");
const SECOND: Migration = Migration::Once("INSERT INTO notes VALUES ('two')");
const BROKEN: Migration = Migration::Once("DELETE FROM notes; broken");
/// Changes one row at a time.
const THIRD: Migration = Migration::Repeat(
    "UPDATE notes SET text = 'three' WHERE rowid = (SELECT min(rowid) FROM notes WHERE text <> 'three')",
);

const SCHEMA: Schema = Schema {
    application_id: 7,
    migrations: &[FIRST, SECOND],
    incremental_vacuum: true,
    synchronous: Synchronous::Normal,
    checkpoint_pages: Some(100),
    max_wal_bytes: 1 << 20,
    cache_bytes: Some(256 << 10),
    busy_timeout: Duration::from_secs(1),
    quick_check: true,
    unusable: Unusable::Keep,
};

fn schema_with(migrations: &'static [Migration]) -> Schema {
    Schema { migrations, ..SCHEMA }
}

fn count_notes(connection: &Connection) -> i64 {
    connection.query_row("SELECT count(*) FROM notes", [], |row| row.get(0)).unwrap()
}

fn pragma<T: rusqlite::types::FromSql>(connection: &Connection, name: &str) -> T {
    connection.pragma_query_value(None, name, |row| row.get(0)).unwrap()
}

fn file_names(dir: &TestDir) -> Vec<String> {
    let entries = fs::read_dir(dir.path()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn migrations_run_once_and_in_order() {
    let mut connection = Connection::open_in_memory().unwrap();
    schema_with(&[FIRST]).migrate(&mut connection).unwrap();
    assert_eq!((SCHEMA.found_version(&connection).unwrap(), count_notes(&connection)), (1, 0));
    for _ in 0..2 {
        SCHEMA.migrate(&mut connection).unwrap();
        assert_eq!((SCHEMA.found_version(&connection).unwrap(), count_notes(&connection)), (2, 1));
    }
}

#[test]
fn failed_migration_changes_nothing_and_keeps_earlier_ones() {
    let mut connection = Connection::open_in_memory().unwrap();
    schema_with(&[FIRST, SECOND, BROKEN]).migrate(&mut connection).unwrap_err();
    assert_eq!((SCHEMA.found_version(&connection).unwrap(), count_notes(&connection)), (2, 1));
}

#[test]
fn repeated_migration_continues_after_interruption() {
    let dir = TestDir::new();
    let path = dir.path().join("notes.db");
    let connection = SCHEMA.open(&path).unwrap();
    connection.execute_batch("INSERT INTO notes VALUES ('a'), ('b'), ('c')").unwrap();
    connection
        .execute_batch(
            "CREATE TRIGGER stop BEFORE UPDATE ON notes WHEN OLD.text = 'b' BEGIN SELECT RAISE(ABORT, 'stop'); END",
        )
        .unwrap();
    drop(connection);
    let next = schema_with(&[FIRST, SECOND, THIRD]);
    let error = next.open(&path).unwrap_err();
    assert!(error.to_string().contains("stop"), "{error}");
    let connection = SCHEMA.open(&path).unwrap();
    let migrated = "SELECT count(*) FROM notes WHERE text = 'three'";
    assert_eq!(connection.query_row(migrated, [], |row| row.get::<_, i64>(0)).unwrap(), 2);
    connection.execute_batch("DROP TRIGGER stop").unwrap();
    drop(connection);
    let connection = next.open(&path).unwrap();
    assert_eq!(connection.query_row(migrated, [], |row| row.get::<_, i64>(0)).unwrap(), 4);
    assert_eq!(
        (next.found_version(&connection).unwrap(), connection.total_changes()),
        (3, 2),
        "the others stay as they are"
    );
}

#[test]
fn refuses_newer_and_foreign_databases() {
    let mut newer = SCHEMA.open_in_memory().unwrap();
    let refused = schema_with(&[FIRST]).migrate(&mut newer);
    assert!(matches!(refused, Err(OpenError::Newer { found: 2, known: 1, .. })), "{refused:?}");

    let dir = TestDir::new();
    let path = dir.path().join("notes.db");
    drop(SCHEMA.open(&path).unwrap());
    let error = schema_with(&[FIRST]).open(&path).unwrap_err();
    assert!(matches!(&error, OpenError::Newer { path: named, .. } if *named == path), "{error:?}");
    let versions = ["its schema has version 2, and version ", " of Restante supports schema versions up to 1"];
    assert!(versions.iter().all(|text| error.to_string().contains(text)), "{error}");

    let mut unmarked = Connection::open_in_memory().unwrap();
    unmarked.execute_batch("CREATE TABLE other (x)").unwrap();
    assert!(matches!(SCHEMA.migrate(&mut unmarked), Err(OpenError::Unmarked)));

    let mut marked = SCHEMA.open_in_memory().unwrap();
    let other = Schema { application_id: 8, ..SCHEMA };
    assert!(matches!(other.migrate(&mut marked), Err(OpenError::Foreign { application_id: 7, .. })));
}

#[test]
fn new_file_is_private_and_configured() {
    let dir = TestDir::new();
    let path = dir.path().join("notes.db");
    let connection = SCHEMA.open(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(pragma::<i64>(&connection, "application_id"), 7);
    assert_eq!(pragma::<i64>(&connection, "user_version"), 2);
    assert_eq!(pragma::<i64>(&connection, "auto_vacuum"), 2, "incremental");
    assert_eq!(pragma::<String>(&connection, "journal_mode"), "wal");
    assert_eq!(pragma::<i64>(&connection, "synchronous"), 1, "normal");
    assert_eq!(pragma::<i64>(&connection, "wal_autocheckpoint"), 100);
    assert_eq!(pragma::<i64>(&connection, "journal_size_limit"), 1 << 20);
    assert_eq!(pragma::<i64>(&connection, "cache_size"), -256);
    assert!(wal_path(&path).exists());

    let reader = open_reader(&path, Duration::ZERO).unwrap();
    assert_eq!(count_notes(&reader), 1);
    reader.execute("DELETE FROM notes", []).unwrap_err();
}

#[test]
fn refused_file_is_not_changed() {
    let dir = TestDir::new();
    let path = dir.path().join("notes.db");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE other (x)").unwrap();
    let before = fs::read(&path).unwrap();
    assert!(matches!(SCHEMA.open(&path), Err(OpenError::Unmarked)));
    assert_eq!(fs::read(&path).unwrap(), before);
}

/// The process that wrote the file was killed.
#[test]
fn log_of_refused_file_is_not_changed() {
    let dir = TestDir::new();
    let (path, killed) = (dir.path().join("notes.db"), dir.path().join("killed.db"));
    let _writer = SCHEMA.open(&path).unwrap();
    fs::copy(&path, &killed).unwrap();
    fs::copy(wal_path(&path), wal_path(&killed)).unwrap();
    let contents = || [&killed, &wal_path(&killed)].map(|path| fs::read(path).unwrap());
    let before = contents();
    assert!(!before[1].is_empty());
    assert!(matches!(schema_with(&[FIRST]).open(&killed), Err(OpenError::Newer { .. })));
    assert!(contents() == before);
}

#[test]
fn unusable_file_is_replaced_as_configured() {
    let garbage = |path: &Path| fs::write(path, "not a database. ".repeat(1000)).unwrap();
    let damaged_page = |path: &Path| {
        SCHEMA.open(path).unwrap();
        let mut bytes = fs::read(path).unwrap();
        bytes[4096..].fill(0xff);
        fs::write(path, bytes).unwrap();
    };
    let damages: [&dyn Fn(&Path); 2] = [&garbage, &damaged_page];
    for damage in damages {
        for unusable in [Unusable::Keep, Unusable::Delete, Unusable::Rename] {
            let (dir, schema) = (TestDir::new(), Schema { unusable, ..SCHEMA });
            let path = dir.path().join("notes.db");
            damage(&path);
            let error = schema.open(&path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
            let replaced = schema.replace(&path, error);
            match unusable {
                Unusable::Keep => {
                    replaced.unwrap_err();
                    assert_eq!(file_names(&dir), ["notes.db"]);
                    continue;
                }
                Unusable::Delete => {
                    assert_eq!(replaced.unwrap().renamed_to, None);
                    assert!(file_names(&dir).is_empty());
                }
                Unusable::Rename => {
                    let renamed = replaced.unwrap().renamed_to.unwrap();
                    let name = renamed.file_name().unwrap().to_str().unwrap();
                    assert!(name.starts_with("notes.db.unusable-"), "{name}");
                    assert_eq!(file_names(&dir), [name]);
                }
            }
            assert_eq!(count_notes(&schema.open(&path).unwrap()), 1);
        }
    }
}

#[test]
fn file_without_application_id_is_never_deleted() {
    let dir = TestDir::new();
    let path = dir.path().join("notes.db");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE other (text TEXT)").unwrap();
    let delete = Schema { unusable: Unusable::Delete, ..SCHEMA };
    let error = delete.open(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Other, "{error}");
    assert_eq!(ErrorKind::classify(&delete.replace(&path, error).unwrap_err().into()), ErrorKind::Other);
    assert_eq!(file_names(&dir), ["notes.db"]);
    Connection::open(&path).unwrap().prepare("SELECT text FROM other").unwrap();
}

#[test]
fn file_is_not_replaced_after_temporary_error() {
    let dir = TestDir::new();
    let path = dir.path().join("notes.db");
    let connection = SCHEMA.open(&path).unwrap();
    let missing = || OpenError::from(connection.prepare("SELECT * FROM missing").unwrap_err());
    let delete = Schema { unusable: Unusable::Delete, ..SCHEMA };
    assert_eq!(delete.replace(&path, missing()).unwrap_err().kind(), ErrorKind::Other);
    assert!(path.exists(), "a missing table does not prove damage");

    let rename = Schema { unusable: Unusable::Rename, busy_timeout: Duration::ZERO, ..SCHEMA };
    connection.execute_batch("PRAGMA locking_mode = EXCLUSIVE; DELETE FROM notes").unwrap();
    let busy = rename.open(&path).unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::Busy, "{busy}");
    assert_eq!(rename.replace(&path, busy).unwrap_err().kind(), ErrorKind::Busy);
    assert!(path.exists());

    let replaced = rename.replace(&path, missing()).unwrap();
    assert!(replaced.renamed_to.unwrap().exists() && !path.exists());
}

#[test]
fn converted_open_error_keeps_kind_and_text() {
    for error in [
        OpenError::Foreign { path: PathBuf::new(), application_id: 8 },
        OpenError::Damaged("a page is lost".to_owned()),
    ] {
        let text = error.to_string();
        let converted = rusqlite::Error::from(error);
        assert_eq!((ErrorKind::classify(&converted), converted.to_string()), (ErrorKind::Damaged, text));
    }
    let dir = TestDir::new();
    let converted = rusqlite::Error::from(SCHEMA.open(dir.path()).unwrap_err());
    assert_eq!(ErrorKind::classify(&converted), ErrorKind::Unavailable);
}
