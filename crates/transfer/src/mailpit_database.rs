//! Reads the messages of a Mailpit database: an SQLite file whose messages are compressed with zstd. All versions of its
//! tables are supported, also those of several tenants in one file. The file is opened for reading only.
//!
//! The file may be made to take very long or much memory. So only stored columns of tables are read, the length of values is
//! limited, and SQLite is interrupted if it takes very many steps until the next message.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use restante_mail::tags::MAX_TAG_CHARS;
use restante_sqlite::open_immutable;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, Row};
use ruzstd::decoding::StreamingDecoder;
use serde::Deserialize;

/// The first bytes of every SQLite file.
pub(super) const SQLITE_MAGIC: &[u8] = b"SQLite format 3\0";

/// Returns whether this is a regular file that begins like an SQLite file.
pub fn is_sqlite(path: &Path) -> bool {
    let mut start = Vec::new();
    // Opening a pipe would wait for its writer.
    path.is_file()
        && File::open(path).and_then(|file| file.take(SQLITE_MAGIC.len() as u64).read_to_end(&mut start)).is_ok()
        && start == SQLITE_MAGIC
}

/// The end of the name of the write-ahead log beside a database.
const WRITE_AHEAD_LOG: &str = "-wal";
/// The end of the name of the log with which SQLite undoes an interrupted change.
const ROLLBACK_JOURNAL: &str = "-journal";
/// How long a lock of a running Mailpit is waited for.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// The end of the name of the table with the sources of messages. A tenant's name precedes it.
const DATA_TABLE: &str = "mailbox_data";
/// The maximum number of tenants in a file.
const MAX_TENANTS: usize = 1000;
/// The maximum length of the SQL text that defines a table. SQLite reads those of all tables.
const MAX_SQL_BYTES: i32 = 100_000;
/// The maximum length of the id of a message in bytes. Mailpit's have 22.
const MAX_ID_BYTES: usize = 255;
/// The maximum size of the metadata of a message in bytes, and that of the list of its tags.
const MAX_METADATA_BYTES: usize = 1024 * 1024;
/// The maximum number of recipients of a message.
const MAX_RECIPIENTS: usize = 1000;
/// The maximum number of tags of a message that are read, and the maximum length of a tag in bytes.
const MAX_TAGS: usize = 100;
const MAX_TAG_BYTES: usize = MAX_TAG_CHARS * 4;
/// The number of steps of SQLite between two checks of the limit on steps.
const STEPS_PER_CHECK: i32 = 10_000;
/// The maximum number of checks before the first message. Meanwhile SQLite sorts the messages: the steps are enough for about
/// 10 million.
const MAX_CHECKS: i64 = 100_000;
/// The number of checks that each message adds. It needs some hundred steps.
const CHECKS_PER_MESSAGE: i64 = 10;

/// A message of the database.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DatabaseMessage {
    /// Mailpit's id of the message.
    pub(super) id: String,
    /// The source of the message.
    pub(super) source: Vec<u8>,
    /// The time of arrival.
    pub(super) received: Option<Timestamp>,
    /// Whether the message is marked as read.
    pub(super) seen: bool,
    /// The addresses in To, Cc and Bcc. Mailpit adds the recipients of the envelope to Bcc.
    pub(super) recipients: Vec<String>,
    /// The user name of the SMTP session.
    pub(super) login: Option<String>,
    /// The tags.
    pub(super) tags: Vec<String>,
}

/// A message that cannot be imported: its id, and the reason.
pub(super) type RowResult = Result<DatabaseMessage, String>;

/// Returns the beginning of the names of a tenant's tables. As in Mailpit, characters other than ASCII letters, digits
/// and underscores count as underscores, and it ends in one. It is in lower case, because SQLite ignores the case of names.
/// An empty name is the default tenant, whose tables have no prefix.
pub fn mailpit_table_prefix(tenant: &str) -> String {
    let words = tenant.split_whitespace().collect::<Vec<_>>().join(" ");
    let keep = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let mut prefix: String = words.chars().map(keep).collect();
    if !prefix.is_empty() && !prefix.ends_with('_') {
        prefix.push('_');
    }
    prefix
}

/// Reads the messages of one tenant or of all tenants in the order of their arrival, and calls `handle` for each until it
/// fails. Messages of more than `limit` bytes are errors. The error of this function is a sentence about the file.
pub(super) fn read<E>(
    path: &Path,
    tenant: Option<&str>,
    limit: usize,
    mut handle: impl FnMut(RowResult) -> Result<(), E>,
) -> Result<Result<(), E>, String> {
    let mut connection = open(path, limit)?;
    let steps = StepLimit::new(&mut connection, MAX_CHECKS).map_err(|error| error.to_string())?;
    let mut prefixes = table_prefixes(&connection).map_err(|error| describe(&error))?;
    if prefixes.is_empty() {
        return Err("is not a Mailpit database".to_owned());
    }
    if let Some(tenant) = tenant {
        let wanted = mailpit_table_prefix(tenant);
        prefixes.retain(|prefix| prefix.eq_ignore_ascii_case(&wanted));
        if prefixes.is_empty() {
            return Err(format!("does not contain the tenant {tenant:?}"));
        }
    }
    for prefix in &prefixes {
        let query = Query::for_tenant(&connection, prefix)?;
        match query.run(&connection, limit, &steps, &mut handle).map_err(|error| describe(&error))? {
            Ok(()) => {}
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(Ok(()))
}

/// Interrupts SQLite after too many steps.
struct StepLimit {
    checks_left: Arc<AtomicI64>,
}

impl StepLimit {
    fn new(connection: &mut Connection, max_checks: i64) -> rusqlite::Result<Self> {
        let checks_left = Arc::new(AtomicI64::new(max_checks));
        let counter = checks_left.clone();
        let is_exceeded = move || counter.fetch_sub(1, Ordering::Relaxed) <= 0;
        connection.progress_handler(STEPS_PER_CHECK, Some(is_exceeded))?;
        Ok(Self { checks_left })
    }

    /// Permits the steps of a further message.
    fn add_message(&self) {
        self.checks_left.fetch_add(CHECKS_PER_MESSAGE, Ordering::Relaxed);
    }
}

/// Returns an error of SQLite as the end of a sentence about the file.
fn describe(error: &rusqlite::Error) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => "takes too long to read: it may be damaged".to_owned(),
        Some(ErrorCode::TooBig) => "contains a value that is too large".to_owned(),
        _ => error.to_string(),
    }
}

/// Opens the file for reading, with messages of at most `limit` bytes. Without a log the file is opened as one that
/// does not change, so that SQLite creates no files beside it. With a log that cannot be used this is an error, because
/// the file alone is not complete.
fn open(path: &Path, limit: usize) -> Result<Connection, String> {
    // The row of a message has a source, metadata, tags and some short values.
    let max_row_bytes = i32::try_from(limit.saturating_add(3 * MAX_METADATA_BYTES)).unwrap_or(i32::MAX);
    let connect = |connection: Connection| {
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, max_row_bytes)?;
        connection.set_limit(Limit::SQLITE_LIMIT_SQL_LENGTH, MAX_SQL_BYTES)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.execute_batch("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;")?;
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(connection)
    };
    let has_log = |suffix| {
        let mut log = path.as_os_str().to_owned();
        log.push(suffix);
        std::fs::metadata(log).is_ok_and(|log| log.len() > 0)
    };
    let open_with_log = || restante_sqlite::connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY).and_then(connect);
    if has_log(ROLLBACK_JOURNAL) {
        open_with_log().map_err(|error| {
            format!(
                "{error}: the file that ends in {ROLLBACK_JOURNAL} contains an interrupted change; copy both files to a \
                 writable directory, start and stop Mailpit there, and import the copy"
            )
        })
    } else if has_log(WRITE_AHEAD_LOG) {
        open_with_log().map_err(|error| {
            format!(
                "{error}: the file that ends in {WRITE_AHEAD_LOG} contains messages and cannot be read here; copy both \
                 files to a writable directory, and import the copy"
            )
        })
    } else {
        open_immutable(path).and_then(connect).map_err(|error| error.to_string())
    }
}

/// Returns the prefixes of the tables of all tenants. The default one is empty.
fn table_prefixes(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")?;
    let names = statement.query_map([], |row| row.get::<_, String>(0))?;
    let prefixes = names.filter_map(Result::ok).filter_map(|name| Some(name.strip_suffix(DATA_TABLE)?.to_owned()));
    Ok(prefixes.take(MAX_TENANTS).collect())
}

/// The names of the columns that are stored in a table.
struct Columns(Vec<String>);

impl Columns {
    /// Returns the columns of a table. There are none if there is no such table, or if it is a view or a virtual table.
    /// There are also none if `rowid` is not the key of the table: a column of that name hides it, and may be generated.
    /// Generated columns are left out.
    fn stored(connection: &Connection, table: String) -> rusqlite::Result<Self> {
        let sql = "SELECT i.name FROM pragma_table_list(?1) t, pragma_table_info(?1) i WHERE t.schema = 'main' AND \
                   t.type = 'table' AND t.wr = 0 AND NOT EXISTS \
                   (SELECT 1 FROM pragma_table_xinfo(?1) x WHERE lower(x.name) = 'rowid')";
        let mut statement = connection.prepare(sql)?;
        let names = statement.query_map([table], |row| row.get(0))?;
        names.collect::<rusqlite::Result<_>>().map(Self)
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|column| column.eq_ignore_ascii_case(name))
    }

    fn has_all(&self, names: &[&str]) -> bool {
        names.iter().all(|name| self.has(name))
    }
}

/// The statements for the tables of a tenant, which depend on the version of Mailpit.
struct Query {
    /// Lists the rows of the messages and of their sources, in the order of arrival.
    keys: String,
    /// Reads the message of these rows.
    message: String,
    tags: Option<String>,
    /// Whether tags are a JSON list in the message's row.
    has_tags_column: bool,
}

impl Query {
    /// Creates the statements. Fails if a column that they read is not stored in a table: the values of a view, of a
    /// virtual table or of a generated column can take any time.
    fn for_tenant(connection: &Connection, tenant: &str) -> Result<Self, String> {
        let columns = |table: &str| -> Result<Columns, String> {
            Columns::stored(connection, format!("{tenant}{table}")).map_err(|error| describe(&error))
        };
        let (mailbox, data) = (columns("mailbox")?, columns(DATA_TABLE)?);
        // Version 1.2 of the tables renamed two columns.
        let created = if mailbox.has("Created") { "Created" } else { "Sort" };
        let metadata = if mailbox.has("Metadata") { "Metadata" } else { "Data" };
        if !mailbox.has_all(&["ID", "Read", created, metadata]) || !data.has_all(&["ID", "Email"]) {
            return Err(format!("does not store the columns of the tables {tenant}mailbox and {tenant}{DATA_TABLE}"));
        }
        let has_tags_column = mailbox.has("Tags");
        let compressed = if data.has("Compressed") { "d.Compressed" } else { "1" };
        let quoted = |table: &str| format!("\"{}\"", format!("{tenant}{table}").replace('"', "\"\""));
        // Longer values are NULL.
        let limited = |column: &str, max: usize| format!("CASE WHEN octet_length({column}) <= {max} THEN {column} END");
        let id = limited("m.ID", MAX_ID_BYTES);
        let tags = if has_tags_column { limited("m.Tags", MAX_METADATA_BYTES) } else { "NULL".to_owned() };
        let (mailbox, data) = (quoted("mailbox"), quoted(DATA_TABLE));
        // What is sorted contains no large values, and each message once: ids may not be unique.
        let keys = format!(
            "SELECT m.rowid, min(d.first) FROM {mailbox} m LEFT JOIN (SELECT ID, min(rowid) AS first FROM {data} GROUP BY ID) \
             d ON d.ID = m.ID GROUP BY m.rowid ORDER BY m.{created}, m.rowid"
        );
        // The length of a text would end at a NUL byte, unlike its length in octets.
        let message = format!(
            "SELECT {id}, m.{created}, m.Read, {}, {tags}, {compressed}, CASE WHEN octet_length(d.Email) <= ?1 THEN d.Email \
             END, d.rowid IS NULL FROM {mailbox} m LEFT JOIN {data} d ON d.rowid = ?3 WHERE m.rowid = ?2",
            limited(&format!("m.{metadata}"), MAX_METADATA_BYTES),
        );
        let (message_tags, tag_names) = (columns("message_tags")?, columns("tags")?);
        let has_tag_tables = message_tags.has_all(&["ID", "TagID"]) && tag_names.has_all(&["ID", "Name"]);
        let tags = has_tag_tables.then(|| {
            format!(
                "SELECT t.Name FROM {} x JOIN {} t ON t.ID = x.TagID WHERE x.ID = ?1 AND octet_length(t.Name) <= \
                 {MAX_TAG_BYTES} ORDER BY t.Name LIMIT {MAX_TAGS}",
                quoted("message_tags"),
                quoted("tags")
            )
        });
        Ok(Self { keys, message, tags, has_tags_column })
    }

    /// Reads the messages of the tenant. A damaged file ends the reading with an error.
    fn run<E>(
        &self,
        connection: &Connection,
        limit: usize,
        steps: &StepLimit,
        handle: &mut impl FnMut(RowResult) -> Result<(), E>,
    ) -> rusqlite::Result<Result<(), E>> {
        let limit_value = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut keys = connection.prepare(&self.keys)?;
        let mut message = connection.prepare(&self.message)?;
        let mut tags = self.tags.as_deref().map(|sql| connection.prepare(sql)).transpose()?;
        let mut keys = keys.query([])?;
        let mut sources = HashSet::new();
        while let Some(key) = keys.next()? {
            steps.add_message();
            let (row, source): (i64, Option<i64>) = (key.get(0)?, key.get(1)?);
            // A small file could otherwise contain one large source many times.
            let is_repeated = source.is_some_and(|source| !sources.insert(source));
            let source = source.filter(|_| !is_repeated);
            let mut rows = message.query((limit_value, row, source))?;
            let Some(row) = rows.next()? else { continue };
            let id = text(row, 0)?;
            let mut result = if is_repeated {
                Err("has the id of another message".to_owned())
            } else {
                self.message(row, &id, limit)?
            };
            if let (Ok(message), Some(statement)) = (&mut result, &mut tags) {
                let mut names = statement.query([&id])?;
                while let Some(row) = names.next()? {
                    message.tags.push(text(row, 0)?);
                }
            }
            if let Err(error) = handle(result.map_err(|reason| format!("message {id}: {reason}"))) {
                return Ok(Err(error));
            }
        }
        Ok(Ok(()))
    }

    fn message(&self, row: &Row<'_>, id: &str, limit: usize) -> rusqlite::Result<Result<DatabaseMessage, String>> {
        if id.is_empty() {
            return Ok(Err("has no id, or one that is too long".to_owned()));
        }
        let source = match row.get_ref(6)? {
            ValueRef::Blob(bytes) | ValueRef::Text(bytes) => bytes,
            _ if integer(row, 7)? != 0 => return Ok(Err("has no source".to_owned())),
            _ => return Ok(Err("is empty or too large".to_owned())),
        };
        let source = if integer(row, 5)? == 0 {
            source.to_vec()
        } else {
            match decompress(source, limit) {
                Ok(source) => source,
                Err(reason) => return Ok(Err(reason)),
            }
        };
        if source.is_empty() {
            return Ok(Err("is empty".to_owned()));
        }
        let mut metadata: Metadata = serde_json::from_str(&text(row, 3)?).unwrap_or_default();
        let mut tags: Vec<String> =
            if self.has_tags_column { serde_json::from_str(&text(row, 4)?).unwrap_or_default() } else { Vec::new() };
        tags.truncate(MAX_TAGS);
        Ok(Ok(DatabaseMessage {
            id: id.to_owned(),
            source,
            received: Timestamp::from_millisecond(integer(row, 1)?).ok(),
            seen: integer(row, 2)? != 0,
            login: Some(std::mem::take(&mut metadata.username)).filter(|name| !name.is_empty()),
            recipients: metadata.recipients(),
            tags,
        }))
    }
}

/// Returns a column as text. Another type is an empty text.
fn text(row: &Row<'_>, index: usize) -> rusqlite::Result<String> {
    Ok(match row.get_ref(index)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    })
}

/// Returns a column as a number. Another type is zero.
fn integer(row: &Row<'_>, index: usize) -> rusqlite::Result<i64> {
    Ok(row.get_ref(index)?.as_i64().unwrap_or(0))
}

/// Decompresses a source of at most `limit` bytes.
fn decompress(compressed: &[u8], limit: usize) -> Result<Vec<u8>, String> {
    let damaged = |error: &dyn std::fmt::Display| format!("cannot be decompressed: {error}");
    let decoder = StreamingDecoder::new(compressed).map_err(|error| damaged(&error))?;
    let mut source = Vec::new();
    decoder.take(limit as u64 + 1).read_to_end(&mut source).map_err(|error| damaged(&error))?;
    if source.len() > limit { Err("is too large".to_owned()) } else { Ok(source) }
}

/// What Mailpit stores about a message beside its source.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Metadata {
    to: Option<Vec<MetadataAddress>>,
    cc: Option<Vec<MetadataAddress>>,
    bcc: Option<Vec<MetadataAddress>>,
    username: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct MetadataAddress {
    address: String,
}

impl Metadata {
    fn recipients(self) -> Vec<String> {
        let lists = [self.to, self.cc, self.bcc].into_iter().flatten().flatten();
        let addresses = lists.map(|address| address.address).filter(|address| !address.is_empty());
        addresses.take(MAX_RECIPIENTS).collect()
    }
}

#[cfg(test)]
mod tests {
    use restante_testdir::TestDir;

    use super::*;

    /// A source that Mailpit 1.30 has compressed.
    const FRAME: &str = "28B52FFD440083007D080042923B2500CB58001F45AEF32B86852ACC3A3FE214600483608D0BC63615BD662EF16BFF7F0A090410CD3996462CBE6B9DD913564FEF5AE7A3B9E616B797FB046669AD743AC458AC1409CD657C29E530CBC9605D22CD5D541ECA4673564F875D593B7058E95BD01CA251490E7FEF3D80470F841E7CD023E841C7F4C1A3E709DBD4033492D516E3B729908A8A3CCB347304757805738DF5E610197756A3EC7AF8C2E33CE7390BE85178A52FE5F09A183A259ED96990AC8D8CC32C4788C2DE4B9E08CD09646AA934562449251309F5705826D0E661D7CC5C4775448C430203C5C422C6936A2EE3999D8D64E775D1EC50CA290A0002CC89296607C3C3C8EC3BA4C34046B75FC3E0B88C4C27FFCC8769069E62AC26";

    /// The tables of Mailpit 1.30, as far as they are read.
    const TABLES: &str = "CREATE TABLE mailbox (Created INTEGER, ID TEXT, Metadata TEXT, Read INTEGER);
        CREATE TABLE mailbox_data (ID TEXT, Email BLOB, Compressed INTEGER NOT NULL DEFAULT '0');
        CREATE TABLE tags (ID INTEGER PRIMARY KEY, Name TEXT);
        CREATE TABLE message_tags (Key INTEGER PRIMARY KEY, ID TEXT, TagID INTEGER);";

    fn read_all(dir: &TestDir, sql: &str, limit: usize) -> Result<Vec<RowResult>, String> {
        read_tenant(dir, sql, None, limit)
    }

    fn read_tenant(dir: &TestDir, sql: &str, tenant: Option<&str>, limit: usize) -> Result<Vec<RowResult>, String> {
        let path = dir.path().join("mailpit #1.db");
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch("PRAGMA journal_mode = WAL").unwrap();
        connection.execute_batch(sql).unwrap();
        connection.close().unwrap();
        let mut found = Vec::new();
        read(&path, tenant, limit, |result| {
            found.push(result);
            Ok::<(), ()>(())
        })?
        .unwrap();
        // Nothing is created beside it.
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        Ok(found)
    }

    #[test]
    fn reads_the_current_tables() {
        let metadata = r#"{"From":{"Address":"ann@x.test"},"To":[{"Name":"Bob","Address":"bob@y.test"}],"Cc":null,"Bcc":[{"Address":"hid@z.test"}],"Username":"app"}"#;
        let sql = format!(
            "{TABLES} INSERT INTO mailbox VALUES (1794859336931, 'b', '{{}}', 0), (1794859336927, 'a', '{metadata}', 1);
             INSERT INTO mailbox_data VALUES ('a', x'{FRAME}', 1), ('b', 'Subject: plain\n\n', 0);
             INSERT INTO tags VALUES (1, 'Billing'), (2, 'other');
             INSERT INTO message_tags VALUES (1, 'a', 1);"
        );
        let mut found = read_all(&TestDir::new(), &sql, 10_000).unwrap().into_iter().map(Result::unwrap);
        let first = found.next().unwrap();
        assert!(
            first.source.starts_with(b"Bcc: hidden@z.test\r\n") && first.source.len() == 387,
            "{}",
            first.source.len()
        );
        assert_eq!((first.id.as_str(), first.seen, first.login.as_deref()), ("a", true, Some("app")));
        assert_eq!(first.received, Timestamp::from_millisecond(1_794_859_336_927).ok());
        assert_eq!(
            (first.recipients, first.tags),
            (vec!["bob@y.test".into(), "hid@z.test".into()], vec!["Billing".into()])
        );
        let second = found.next().unwrap();
        assert_eq!((second.source.as_slice(), second.seen, second.login), (&b"Subject: plain\n\n"[..], false, None));
        assert!(second.recipients.is_empty() && second.tags.is_empty() && found.next().is_none());
    }

    #[test]
    fn reads_the_tables_of_the_first_version_and_of_tenants() {
        let sql = format!(
            "CREATE TABLE mailbox (Sort INTEGER, ID TEXT, Data BLOB, Search TEXT, Read INTEGER, Tags TEXT);
             CREATE TABLE mailbox_data (ID TEXT, Email BLOB);
             INSERT INTO mailbox VALUES (1000, 'a', '{{\"To\":[{{\"Address\":\"bob@y.test\"}}]}}', '', 1, '[\"one\"]');
             INSERT INTO mailbox_data VALUES ('a', x'{FRAME}');
             CREATE TABLE qa_mailbox (Sort INTEGER, ID TEXT, Data BLOB, Read INTEGER);
             CREATE TABLE qa_mailbox_data (ID TEXT, Email BLOB);
             INSERT INTO qa_mailbox VALUES (2000, 'q', 'not JSON', 0);
             INSERT INTO qa_mailbox_data VALUES ('q', x'{FRAME}');"
        );
        let found = read_all(&TestDir::new(), &sql, 10_000).unwrap();
        let found: Vec<DatabaseMessage> = found.into_iter().map(Result::unwrap).collect();
        assert_eq!((found[0].tags.as_slice(), found[0].seen), (&["one".to_owned()][..], true));
        assert_eq!((found[0].recipients.as_slice(), found[1].id.as_str()), (&["bob@y.test".to_owned()][..], "q"));
        assert_eq!(found[1].source.len(), 387);
        for (tenant, expected) in [("", "a"), ("qa", "q"), ("QA_", "q"), (" Qa ", "q")] {
            let found = read_tenant(&TestDir::new(), &sql, Some(tenant), 10_000).unwrap();
            let ids: Vec<String> = found.into_iter().map(|message| message.unwrap().id).collect();
            assert_eq!(ids, [expected], "{tenant:?}");
        }
        let error = read_tenant(&TestDir::new(), &sql, Some("q"), 10_000).unwrap_err();
        assert_eq!(error, "does not contain the tenant \"q\"");
    }

    #[test]
    fn table_prefixes_are_those_of_mailpit() {
        for (tenant, prefix) in
            [("", ""), (" ", ""), ("acme", "acme_"), ("Acme_", "acme_"), ("a_ ", "a_"), ("../a  b/é", "___a_b__")]
        {
            assert_eq!(mailpit_table_prefix(tenant), prefix, "{tenant:?}");
        }
    }

    #[test]
    fn reports_damaged_rows_and_continues() {
        let sql = format!(
            "{TABLES} INSERT INTO mailbox VALUES (1, 'a', '', 0), (2, 'b', '', 0), (3, 'c', '', 0), (4, 'd', NULL, NULL),
             (5, 'e', '', 0);
             INSERT INTO mailbox_data VALUES ('b', x'00112233', 1), ('c', substr(x'{FRAME}', 1, 100), 1), ('d', x'{FRAME}', 1),
             ('e', NULL, 0);"
        );
        let problems = |limit| -> Vec<Option<String>> {
            read_all(&TestDir::new(), &sql, limit).unwrap().into_iter().map(Result::err).collect()
        };
        let found = problems(387);
        assert_eq!(found[0].as_deref(), Some("message a: has no source"));
        for (id, problem) in [("b", &found[1]), ("c", &found[2])] {
            let expected = format!("message {id}: cannot be decompressed: ");
            assert!(problem.as_ref().is_some_and(|problem| problem.starts_with(&expected)), "{problem:?}");
        }
        assert_eq!((&found[3], found[4].as_deref()), (&None, Some("message e: is empty or too large")));
        assert_eq!(problems(386)[3].as_deref(), Some("message d: is too large"));
    }

    #[test]
    fn reads_a_write_ahead_log() {
        let dir = TestDir::new();
        let path = dir.path().join("mailpit.db");
        let connection = Connection::open(&path).unwrap();
        let insert =
            "INSERT INTO mailbox VALUES (1, 'a', '', 0); INSERT INTO mailbox_data VALUES ('a', 'Subject: x', 0);";
        connection.execute_batch(&format!("PRAGMA journal_mode = WAL; {TABLES} {insert}")).unwrap();
        let mut count = 0;
        let read = read(&path, None, 100, |result| {
            count += usize::from(result.is_ok());
            Ok::<(), ()>(())
        });
        assert_eq!((read, count), (Ok(Ok(())), 1));
    }

    #[test]
    fn a_log_that_cannot_be_used_is_an_error() {
        let insert = format!("{TABLES} INSERT INTO mailbox VALUES (1, 'a', '', 0)");
        // The change is larger than the cache, so that a part of it is written to the database.
        let interrupted = "PRAGMA cache_size = 2; BEGIN; UPDATE mailbox SET Read = 1;
            INSERT INTO mailbox_data VALUES ('a', zeroblob(1000000), 0);";
        let cases = [
            ("-wal", format!("PRAGMA journal_mode = WAL; {insert}"), "contains messages"),
            ("-journal", format!("{insert}; {interrupted}"), "an interrupted change"),
        ];
        for (suffix, sql, expected) in cases {
            let (dir, copy) = (TestDir::new(), TestDir::new());
            let connection = Connection::open(dir.path().join("mailpit.db")).unwrap();
            connection.execute_batch(&sql).unwrap();
            for name in ["mailpit.db", &format!("mailpit.db{suffix}")] {
                std::fs::copy(dir.path().join(name), copy.path().join(name)).unwrap();
            }
            // SQLite cannot create the file that it needs to read a write-ahead log.
            std::os::unix::fs::symlink("missing/file", copy.path().join("mailpit.db-shm")).unwrap();
            let error = read(&copy.path().join("mailpit.db"), None, 100, |_| Ok::<(), ()>(())).unwrap_err();
            assert!(error.contains(expected) && error.contains("to a writable directory"), "{error}");
        }
    }

    /// The values of the others can take any time.
    #[test]
    fn only_stored_columns_of_tables_are_read() {
        let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT";
        let data = "CREATE TABLE mailbox_data (ID TEXT, Email BLOB)";
        let cases = [
            format!(
                "CREATE VIEW mailbox AS {endless} i AS ID, i AS Created, i AS Read, '' AS Metadata FROM n; {data};"
            ),
            format!("CREATE VIRTUAL TABLE mailbox USING fts4(ID, Created, Read, Metadata); {data};"),
            format!("CREATE TABLE mailbox (ID TEXT, Created, Metadata, Read AS (like('%a%a%a%a', Metadata))); {data};"),
            "CREATE TABLE mailbox (ID, Created, Read, Metadata); CREATE TABLE mailbox_data (ID TEXT, Email AS (ID));"
                .to_owned(),
            // A column hides the key of the table.
            format!(
                "CREATE TABLE mailbox (ID, Created, Read, Metadata,
                 rowid AS (instr(zeroblob(400000), zeroblob(200000) || x'01'))); {data};
                 INSERT INTO mailbox VALUES ('a', 1, 0, '');"
            ),
            format!("CREATE TABLE mailbox (ID, Created, Read, Metadata, RowID); {data};"),
            "CREATE TABLE mailbox (ID, Created, Read, Metadata);
             CREATE TABLE mailbox_data (ID TEXT, Email BLOB, ROWID AS (like('%a%a%a%a', ID)) STORED);"
                .to_owned(),
            format!("CREATE TABLE mailbox (ID PRIMARY KEY, Created, Read, Metadata) WITHOUT ROWID; {data};"),
        ];
        for sql in cases {
            let error = read_all(&TestDir::new(), &sql, 100).unwrap_err();
            assert_eq!(error, "does not store the columns of the tables mailbox and mailbox_data", "{sql}");
        }
        // Messages are read without tags that are not stored.
        let tags =
            format!("DROP TABLE message_tags; CREATE VIEW message_tags AS {endless} 'a' AS ID, i AS TagID FROM n;");
        let insert =
            "INSERT INTO mailbox VALUES (1, 'a', '', 0); INSERT INTO mailbox_data VALUES ('a', 'Subject: x', 0);";
        let found = read_all(&TestDir::new(), &format!("{TABLES} {tags} {insert}"), 100).unwrap();
        assert_eq!(found[0].as_ref().unwrap().tags, [""; 0]);
    }

    #[test]
    fn long_ids_and_tags_are_not_read() {
        let sql = format!(
            "{TABLES} INSERT INTO mailbox VALUES (1, 'a', '', 0), (2, printf('%.256c', 'x'), '', 0);
             INSERT INTO mailbox_data VALUES ('a', 'Subject: a', 0), (printf('%.256c', 'x'), 'Subject: b', 0);
             INSERT INTO tags VALUES (1, 'short'), (2, printf('%.257c', 'x'));
             INSERT INTO message_tags VALUES (1, 'a', 1), (2, 'a', 2);"
        );
        let found = read_all(&TestDir::new(), &sql, 100).unwrap();
        assert_eq!(found[0].as_ref().unwrap().tags, ["short"]);
        assert_eq!(found[1].as_ref().unwrap_err(), "message : has no id, or one that is too long");
        let sql = format!(
            "CREATE TABLE mailbox (Sort INTEGER, ID TEXT, Data BLOB, Read INTEGER, Tags TEXT);
             CREATE TABLE mailbox_data (ID TEXT, Email BLOB);
             INSERT INTO mailbox VALUES (1, 'a', '', 1, '[\"' || printf('%.{MAX_METADATA_BYTES}c', 'x') || '\"]');
             INSERT INTO mailbox_data VALUES ('a', x'{FRAME}');"
        );
        assert_eq!(read_all(&TestDir::new(), &sql, 10_000).unwrap()[0].as_ref().unwrap().tags, [""; 0]);
    }

    /// A small file does not become large while it is read.
    #[test]
    fn each_source_is_read_once() {
        let sql = format!(
            "{TABLES} WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 400)
             INSERT INTO mailbox SELECT i, 'a', '', 0 FROM n;
             INSERT INTO mailbox_data VALUES ('a', CAST(zeroblob(1000000) AS TEXT), 0), ('a', 'Subject: b', 0);"
        );
        let found = read_all(&TestDir::new(), &sql, 1_000_000).unwrap();
        assert_eq!((found.len(), found[0].as_ref().unwrap().source.len()), (400, 1_000_000));
        assert!(found[1..].iter().all(|result| {
            result.as_ref().is_err_and(|problem| problem == "message a: has the id of another message")
        }));
    }

    /// These values are compared or sorted before they can be left out.
    #[test]
    fn very_long_values_are_an_error() {
        for column in ["ID", "Created"] {
            let sql = format!(
                "{TABLES} INSERT INTO mailbox (ID, Created) VALUES ('a', 1);
                 UPDATE mailbox SET {column} = zeroblob({}); INSERT INTO mailbox_data VALUES ('a', 'Subject: a', 0);",
                4 * MAX_METADATA_BYTES
            );
            assert_eq!(read_all(&TestDir::new(), &sql, 100), Err("contains a value that is too large".to_owned()));
        }
    }

    #[test]
    fn reading_is_interrupted_after_too_many_steps() {
        let mut connection = Connection::open_in_memory().unwrap();
        let steps = StepLimit::new(&mut connection, 5).unwrap();
        let count = |rows: i64| {
            let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i FROM n";
            let sql = format!("SELECT count(*) FROM ({endless} LIMIT {rows})");
            connection.query_row(&sql, [], |row| row.get::<_, i64>(0)).map_err(|error| describe(&error))
        };
        // A negative number is no limit.
        assert_eq!(count(-1), Err("takes too long to read: it may be damaged".to_owned()));
        assert!(count(1000).is_err());
        steps.add_message();
        assert_eq!(count(1000), Ok(1000));
    }

    #[test]
    fn sizes_include_bytes_after_nul() {
        let sql = format!(
            "{TABLES} INSERT INTO mailbox VALUES (1, 'a', '', 0), (2, 'b', CAST(x'00' || zeroblob(1048576) AS TEXT), 0);
             INSERT INTO mailbox_data VALUES ('a', CAST(x'410042434445' AS TEXT), 0), ('b', CAST(x'4100424344' AS TEXT), 0);"
        );
        let found = read_all(&TestDir::new(), &sql, 5).unwrap();
        assert_eq!(found[0].as_ref().unwrap_err(), "message a: is empty or too large");
        assert_eq!(found[1].as_ref().unwrap().source, b"A\0BCD");
    }

    #[test]
    fn other_files_are_errors() {
        let dir = TestDir::new();
        assert_eq!(read_all(&dir, "CREATE TABLE x (y)", 10), Err("is not a Mailpit database".to_owned()));
        let path = dir.path().join("text");
        std::fs::write(&path, "Subject: x\n").unwrap();
        assert!(read(&path, None, 10, |_| Ok::<(), ()>(())).is_err());
        assert!(read(&dir.path().join("missing"), None, 10, |_| Ok::<(), ()>(())).is_err());
    }
}
