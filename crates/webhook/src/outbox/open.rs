//! Opening the outbox: its schema, reading its contents, and replacing an unusable file.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use restante_sqlite::{Migration, OpenError, Schema, Synchronous, Unusable};
use rusqlite::Connection;

use super::{Backlog, Missed, Outbox, TargetChanges};
use crate::endpoint::Digest;
use crate::payload::Payload;

/// The name of the file.
const FILE_NAME: &str = "webhooks.db";

/// The schema. Files of other versions are not migrated: their contents are useful for hours only.
const SCHEMA: Schema = Schema {
    application_id: 0x7268_6f6b, // "rhok"
    migrations: &[Migration::Once(TABLES)],
    incremental_vacuum: false,
    synchronous: Synchronous::Normal,
    checkpoint_pages: None,
    max_wal_bytes: 4 << 20,
    cache_bytes: None,
    busy_timeout: Duration::from_secs(1),
    quick_check: true,
    unusable: Unusable::Rename,
};

const TABLES: &str = "
    CREATE TABLE state (
        only INTEGER PRIMARY KEY CHECK (only = 1),
        floor INTEGER NOT NULL,          -- of messages up to this id none can be missing
        clean INTEGER NOT NULL           -- whether the last end was in good order
    ) STRICT;
    INSERT INTO state VALUES (1, 0, 1);
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
pub(super) fn open(directory: &Path, digests: &[Digest]) -> Result<(Outbox, Backlog), String> {
    let path = directory.join(FILE_NAME);
    let describe = |error: OpenError| format!("{} cannot be used: {error}", path.display());
    let error = match read(&path, digests) {
        Ok(opened) => return Ok(opened),
        Err(error) => error,
    };
    let replaced = SCHEMA.replace(&path, error).map_err(describe)?;
    tracing::error!(
        error = describe(replaced.error),
        renamed_to = %replaced.renamed_to.unwrap_or_default().display(),
        "the webhook outbox is unusable and was renamed; its events are lost and a new file is created"
    );
    read(&path, digests).map_err(describe)
}

fn read(path: &Path, digests: &[Digest]) -> Result<(Outbox, Backlog), OpenError> {
    let connection = SCHEMA.open(path)?;
    let (targets, target_changes) = compare_targets(&connection, digests)?;
    let mut missed = read_missed(&connection)?;
    if let Some(missed) = &mut missed {
        let is_new = |target: &i64| target_changes.added.iter().any(|(added, _)| added == target);
        missed.new_targets =
            targets.iter().enumerate().filter(|(_, target)| is_new(target)).map(|(index, _)| index).collect();
    }
    let backlog = Backlog { waiting: read_waiting(&connection, &targets)?, missed };
    let processed = connection.query_row("SELECT count(*) FROM taken", [], |row| row.get(0))?;
    Ok((Outbox { connection, targets, processed, target_changes: Some(target_changes) }, backlog))
}

/// Reads which messages may have been missed. Returns `None` after a clean shutdown: messages that were imported since then are
/// not reported.
fn read_missed(connection: &Connection) -> rusqlite::Result<Option<Missed>> {
    let (floor, clean): (u64, bool) =
        connection.query_row("SELECT floor, clean FROM state", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if clean {
        return Ok(None);
    }
    let mut processed = connection.prepare("SELECT id, mailbox FROM taken WHERE id > ?1")?;
    let processed =
        processed.query_map([floor], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
    Ok(Some(Missed { floor, processed, ..Missed::default() }))
}

/// Returns the row id of each configured target, and how the targets differ from those in the file.
fn compare_targets(connection: &Connection, digests: &[Digest]) -> rusqlite::Result<(Vec<i64>, TargetChanges)> {
    let mut known: HashMap<Vec<u8>, i64> = connection
        .prepare("SELECT digest, id FROM targets")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut last_id = known.values().copied().max().unwrap_or(0);
    let (mut targets, mut added) = (Vec::with_capacity(digests.len()), Vec::new());
    for digest in digests {
        targets.push(known.remove(&digest[..]).unwrap_or_else(|| {
            last_id += 1;
            added.push((last_id, *digest));
            last_id
        }));
    }
    Ok((targets, TargetChanges { added, removed: known.into_values().collect() }))
}

fn read_waiting(connection: &Connection, targets: &[i64]) -> rusqlite::Result<Vec<(usize, i64, Payload)>> {
    let indexes: HashMap<i64, usize> = targets.iter().enumerate().map(|(index, target)| (*target, index)).collect();
    let mut rows = connection.prepare("SELECT target, id, name, since, body FROM waiting ORDER BY id")?;
    let rows = rows.query_map([], |row| {
        let payload = Payload { webhook_id: row.get(2)?, occurred_at_millis: row.get(3)?, body: row.get(4)? };
        Ok((row.get::<_, i64>(0)?, row.get(1)?, payload))
    })?;
    let found = rows.filter_map(|row| match row {
        Ok((target, row, payload)) => indexes.get(&target).map(|index| Ok((*index, row, payload))),
        Err(error) => Some(Err(error)),
    });
    found.collect()
}
