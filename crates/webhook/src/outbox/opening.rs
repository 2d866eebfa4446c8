//! How the file is opened: what is in it, which of it is still of use, and what is done with a file that makes no sense.

use std::collections::HashMap;
use std::fmt::Display;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::ErrorCode::{
    CannotOpen, DatabaseBusy, DatabaseLocked, DiskFull, OutOfMemory, PermissionDenied, ReadOnly, SystemIoFailure,
};
use rusqlite::{Connection, OpenFlags};

use super::{Missed, Novelty, Outbox, Past};
use crate::notice::Notice;
use crate::place::Digest;

/// The name of the file.
const FILE: &str = "webhooks.db";
/// Says that a database is ours: the letters `rhok`.
const APPLICATION: i64 = 0x7268_6f6b;
/// Files of another version are not read: what they hold lives for hours, not for years.
const VERSION: i64 = 1;
/// When the log begins anew, its file is not kept longer than this.
const MAX_LOG: i64 = 4 << 20;
/// What the clerk waits for somebody who looks into the file.
const PATIENCE: Duration = Duration::from_secs(1);

const SCHEMA: &str = "
    CREATE TABLE state (
        only INTEGER PRIMARY KEY CHECK (only = 1),
        floor INTEGER NOT NULL,          -- of messages up to this id none can be missing
        clean INTEGER NOT NULL           -- whether the last end was in good order
    ) STRICT;
    CREATE TABLE targets (
        id INTEGER PRIMARY KEY,
        digest BLOB NOT NULL UNIQUE      -- of the URL, which may hold a secret
    ) STRICT;
    CREATE TABLE waiting (
        id INTEGER PRIMARY KEY,
        target INTEGER NOT NULL,
        name TEXT NOT NULL,
        since INTEGER NOT NULL,          -- Unix milliseconds
        body TEXT NOT NULL
    ) STRICT;
    -- Stored messages above the floor that were dealt with.
    CREATE TABLE taken (
        id INTEGER NOT NULL,
        mailbox TEXT NOT NULL,
        PRIMARY KEY (id, mailbox)
    ) STRICT, WITHOUT ROWID;
";

/// See [`Outbox::open`].
pub(super) fn open(directory: &Path, digests: &[Digest]) -> Result<(Outbox, Past), String> {
    let path = directory.join(FILE);
    let told = |error: &dyn Display| format!("{} cannot be used: {error}", path.display());
    make(&path).map_err(|error| told(&error))?;
    let problem = match read(&path, digests) {
        Ok(opened) => return Ok(opened),
        Err(error) if is_passing(&error) => return Err(told(&error)),
        Err(error) => told(&error),
    };
    let aside = move_aside(&path).map_err(|error| format!("{problem}, nor moved aside: {error}"))?;
    tracing::error!(
        problem,
        aside = %aside.display(),
        "the events that waited for webhooks are lost; their file is moved aside, and a new one begun"
    );
    make(&path).map_err(|error| told(&error))?;
    read(&path, digests).map_err(|error| told(&error))
}

fn read(path: &Path, digests: &[Digest]) -> rusqlite::Result<(Outbox, Past)> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "journal_size_limit", MAX_LOG)?;
    prepare(&mut connection)?;
    let (targets, novelty) = compare_targets(&connection, digests)?;
    let mut missed = read_missed(&connection)?;
    if let Some(missed) = &mut missed {
        let is_new = |target: &i64| novelty.come.iter().any(|(come, _)| come == target);
        missed.new = targets.iter().enumerate().filter(|(_, target)| is_new(target)).map(|(lane, _)| lane).collect();
    }
    let past = Past { waiting: read_waiting(&connection, &targets)?, missed };
    let taken = connection.query_row("SELECT count(*) FROM taken", [], |row| row.get(0))?;
    Ok((Outbox { connection, targets, taken, novelty: Some(novelty) }, past))
}

/// Makes an empty file where there is none. SQLite would let everybody read it.
fn make(path: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path).map(|_| ())
}

/// Whether the file itself may well be in order.
fn is_passing(error: &rusqlite::Error) -> bool {
    let passing =
        [CannotOpen, DatabaseBusy, DatabaseLocked, DiskFull, OutOfMemory, PermissionDenied, ReadOnly, SystemIoFailure];
    error.sqlite_error_code().is_some_and(|code| passing.contains(&code))
}

/// Fills an empty file, and makes sure that another one is ours and whole.
fn prepare(connection: &mut Connection) -> rusqlite::Result<()> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    if (application, version) == (0, 0) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(SCHEMA)?;
        transaction.execute("INSERT INTO state VALUES (1, 0, 1)", [])?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
        return transaction.commit();
    }
    if (application, version) != (APPLICATION, VERSION) {
        return Err(unusable("it belongs to another program, or to another version of this one".to_owned()));
    }
    let health: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if health == "ok" { Ok(()) } else { Err(unusable(health)) }
}

/// What may have been missed, unless the last end was in good order. Mail that was imported since then is none that somebody
/// waits to be told of.
fn read_missed(connection: &Connection) -> rusqlite::Result<Option<Missed>> {
    let (above, clean): (u64, bool) =
        connection.query_row("SELECT floor, clean FROM state", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if clean {
        return Ok(None);
    }
    let mut taken = connection.prepare("SELECT id, mailbox FROM taken WHERE id > ?1")?;
    let taken = taken.query_map([above], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
    Ok(Some(Missed { above, taken, ..Missed::default() }))
}

/// Finds the number of each target in the file, and who has come and gone.
fn compare_targets(connection: &Connection, digests: &[Digest]) -> rusqlite::Result<(Vec<i64>, Novelty)> {
    let mut known: HashMap<Vec<u8>, i64> = connection
        .prepare("SELECT digest, id FROM targets")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut last = known.values().copied().max().unwrap_or(0);
    let (mut targets, mut come) = (Vec::with_capacity(digests.len()), Vec::new());
    for digest in digests {
        targets.push(known.remove(&digest[..]).unwrap_or_else(|| {
            last += 1;
            come.push((last, *digest));
            last
        }));
    }
    Ok((targets, Novelty { come, gone: known.into_values().collect() }))
}

fn read_waiting(connection: &Connection, targets: &[i64]) -> rusqlite::Result<Vec<(usize, i64, Notice)>> {
    let lanes: HashMap<i64, usize> = targets.iter().enumerate().map(|(lane, target)| (*target, lane)).collect();
    let mut rows = connection.prepare("SELECT target, id, name, since, body FROM waiting ORDER BY id")?;
    let rows = rows.query_map([], |row| {
        let notice = Notice { name: row.get(2)?, since: row.get(3)?, body: row.get(4)? };
        Ok((row.get::<_, i64>(0)?, row.get(1)?, notice))
    })?;
    let found = rows.filter_map(|row| match row {
        Ok((target, row, notice)) => lanes.get(&target).map(|lane| Ok((*lane, row, notice))),
        Err(error) => Some(Err(error)),
    });
    found.collect()
}

fn unusable(why: String) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT), Some(why))
}

/// Gives the file another name, and its log with it, which can say something about the file only.
fn move_aside(path: &Path) -> io::Result<PathBuf> {
    let named = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let aside = format!(".unusable-{}", Timestamp::now().as_second());
    for log in ["-wal", "-shm"] {
        if named(log).exists() {
            fs::rename(named(log), named(&format!("{aside}{log}")))?;
        }
    }
    fs::rename(path, named(&aside))?;
    Ok(named(&aside))
}
