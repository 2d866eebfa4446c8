//! Answers from the file and from what still waits to be written into it.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;
use restante_store::{Result, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::file::open_to_read;
use crate::fresh::{Fresh, Part};
use crate::waiting::Waiting;
use crate::{
    Cover, Dialect, End, Lines, MAX_LISTED_PIECES, Outcome, Piece, Recipient, SessionId, SessionPage, Tls, Transaction,
    Transcript,
};

/// Everything there is at one moment.
pub(super) struct Reading {
    fresh: Fresh,
    file: Option<Connection>,
}

impl Reading {
    pub(super) fn begin(waiting: &Waiting, path: &Path) -> Result<Self> {
        let (fresh, has_file) = Fresh::look(waiting);
        let file = if has_file { Some(open_to_read(path).map_err(|error| trouble(&error))?) } else { None };
        Ok(Self { fresh, file })
    }

    pub(super) fn sessions(&self, page: SessionPage) -> Result<Vec<Transcript>> {
        let mut ids = self.fresh.sessions(page);
        if let Some(file) = &self.file {
            let before = page.before.map_or(u64::MAX, SessionId::number).min(i64::MAX as u64);
            let limit = i64::try_from(page.limit).unwrap_or(i64::MAX);
            let stored = session_ids(file, before, page.refused, limit).map_err(|error| trouble(&error))?;
            ids.extend(stored.into_iter().map(SessionId::from));
        }
        let latest = ids.into_iter().rev().take(page.limit);
        latest.filter_map(|id| self.told(id, Part::Listed).transpose()).collect()
    }

    pub(super) fn session(&self, id: SessionId) -> Result<Option<Transcript>> {
        self.told(id, Part::Whole)
    }

    pub(super) fn of_message(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Transcript>> {
        let mut place = self.fresh.place_of(mailbox, id);
        if place.is_none()
            && let Some(file) = &self.file
        {
            place = place_of(file, mailbox, id).map_err(|error| trouble(&error))?;
        }
        place.map_or(Ok(None), |(session, number)| self.told(session, Part::Piece(number)))
    }

    fn told(&self, session: SessionId, part: Part) -> Result<Option<Transcript>> {
        let stored = match &self.file {
            Some(file) => stored(file, session, part).map_err(|error| trouble(&error))?,
            None => None,
        };
        Ok(self.fresh.told(session, part, stored))
    }
}

fn session_ids(file: &Connection, before: u64, refused: bool, limit: i64) -> rusqlite::Result<Vec<u64>> {
    let query = if refused {
        "SELECT id FROM sessions WHERE id < ?1 AND refused > 0 ORDER BY id DESC LIMIT ?2"
    } else {
        "SELECT id FROM sessions WHERE id < ?1 ORDER BY id DESC LIMIT ?2"
    };
    file.prepare(query)?.query_map(params![before, limit], |row| row.get(0))?.collect()
}

fn place_of(file: &Connection, mailbox: &MailboxName, id: MessageId) -> rusqlite::Result<Option<(SessionId, u32)>> {
    file.query_row(
        "SELECT session, number FROM messages WHERE mailbox = ?1 AND id = ?2",
        params![mailbox.as_str(), id.number()],
        |row| Ok((row.get::<_, u64>(0)?.into(), row.get(1)?)),
    )
    .optional()
}

/// What the file has of a session, the last piece first.
fn stored(file: &Connection, session: SessionId, part: Part) -> rusqlite::Result<Option<Transcript>> {
    // The file has no numbers above this, and so no such session.
    let Ok(number) = i64::try_from(session.number()) else { return Ok(None) };
    let cover = file.query_row("SELECT * FROM sessions WHERE id = ?1", [number], cover).optional()?;
    let Some(cover) = cover.map(Arc::new) else { return Ok(None) };
    let columns = match part {
        Part::Listed => "number, at, outcome, sender, parameters, recipients, reply, x''",
        Part::Whole | Part::Piece(_) => "number, at, outcome, sender, parameters, recipients, reply, lines",
    };
    let (only, limit) = match part {
        Part::Listed => (None, MAX_LISTED_PIECES),
        Part::Whole => (None, usize::MAX),
        Part::Piece(number) => (Some(number), 2),
    };
    let query = format!(
        "SELECT {columns} FROM pieces WHERE session = ?1 AND (?2 IS NULL OR number IN (0, ?2))
         ORDER BY number DESC LIMIT ?3"
    );
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = file.prepare(&query)?;
    let mut rows = rows.query(params![number, only, limit])?;
    let mut pieces = Vec::new();
    while let Some(row) = rows.next()? {
        pieces.push(Arc::new(piece(file, session, &cover, row)?));
    }
    Ok(Some(Transcript { session, cover, pieces }))
}

fn cover(row: &Row<'_>) -> rusqlite::Result<Cover> {
    let dialect: String = row.get("dialect")?;
    let client: Option<String> = row.get("client")?;
    let owned = |name: &str| Ok::<_, rusqlite::Error>(row.get::<_, Option<String>>(name)?.map(Cow::Owned));
    let ended: Option<i64> = row.get("ended")?;
    Ok(Cover {
        dialect: if dialect == Dialect::Lmtp.name() { Dialect::Lmtp } else { Dialect::Smtp },
        client: client.and_then(|text| text.parse().ok()),
        helo: row.get("helo")?,
        tls: owned("tls_version")?.zip(owned("tls_cipher")?).map(|(version, cipher)| Tls { version, cipher }),
        user: row.get("user")?,
        started: moment(row.get("started")?),
        end: owned("ending")?.map(|how| End { at: ended.map(moment), how }),
        refused: row.get("refused")?,
    })
}

fn piece(file: &Connection, session: SessionId, cover: &Arc<Cover>, row: &Row<'_>) -> rusqlite::Result<Piece> {
    let number = row.get(0)?;
    let outcome: Option<String> = row.get(2)?;
    let outcome = outcome.and_then(|name| Outcome::ALL.into_iter().find(|outcome| outcome.name() == name));
    let transaction = match outcome {
        Some(outcome) => Some(Transaction {
            from: row.get(3)?,
            parameters: row.get(4)?,
            to: recipients(&row.get::<_, String>(5)?),
            outcome,
            reply: row.get::<_, Option<String>>(6)?.map(Into::into),
            messages: messages(file, session, number)?,
        }),
        None => None,
    };
    let lines = Lines::from_bytes(row.get(7)?);
    Ok(Piece { session, number, at: moment(row.get(1)?), cover: cover.clone(), transaction, lines })
}

fn recipients(text: &str) -> Vec<Recipient> {
    let mut lines = text.split_terminator('\n').map(str::to_owned);
    let next = || Some(Recipient { address: lines.next()?, parameters: lines.next()? });
    std::iter::from_fn(next).collect()
}

fn messages(file: &Connection, session: SessionId, number: u32) -> rusqlite::Result<Vec<(MailboxName, MessageId)>> {
    file.prepare_cached("SELECT mailbox, id FROM messages WHERE session = ?1 AND number = ?2 ORDER BY id")?
        .query_map(params![session.number(), number], |row| {
            Ok((row.get::<_, String>(0)?.into(), row.get::<_, u64>(1)?.into()))
        })?
        .collect()
}

/// What the file says was a time once; should it be damaged, any time will do.
fn moment(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or_default()
}

fn trouble(error: &rusqlite::Error) -> StoreError {
    StoreError::Unavailable(error.to_string())
}
