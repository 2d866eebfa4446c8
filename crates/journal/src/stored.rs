//! Written chunks as the storages keep them: the properties of the session and the message as JSON, and the lines of the
//! conversation. The JSON consists of arrays, because there are very many chunks, and few are ever read.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;

use crate::queued::TranscriptPart;
use crate::{
    Chunk, Outcome, Protocol, Recipient, SessionEnd, SessionId, SessionInfo, Tls, Transaction, Transcript,
    TranscriptLines,
};

/// A session: protocol, client, HELO, version and cipher of TLS, user, start, time and reason of the end, refusals. Times are
/// Unix microseconds.
type StoredInfo<T> = (T, Option<IpAddr>, Option<T>, Option<(T, T)>, Option<T>, i64, Option<(Option<i64>, T)>, u32);

/// A message: outcome, sender, parameters, recipients with their parameters, reply, mailboxes and ids of its copies.
type StoredTransaction<T> = (T, T, T, Vec<(T, T)>, Option<T>, Vec<(T, u64)>);

/// A chunk that was read from a storage.
pub(super) struct StoredChunk<'a> {
    pub(super) session: SessionId,
    pub(super) number: u32,
    /// Unix microseconds.
    pub(super) at: i64,
    /// Whether the process that wrote it still runs. Otherwise its sessions are over.
    pub(super) is_running: bool,
    /// The result of [`encode_head`].
    pub(super) head: &'a [u8],
    pub(super) lines: Vec<u8>,
}

/// Encodes a chunk without its lines.
pub(super) fn encode_head(chunk: &Chunk) -> Vec<u8> {
    let SessionInfo { protocol, client, helo, tls, user, started, end, refusals } = &*chunk.info;
    let info: StoredInfo<&str> = (
        protocol.name(),
        *client,
        helo.as_deref(),
        tls.as_ref().map(|tls| (&*tls.version, &*tls.cipher)),
        user.as_deref(),
        started.as_microsecond(),
        end.as_ref().map(|end| (end.at.map(Timestamp::as_microsecond), &*end.reason)),
        *refusals,
    );
    let transaction = chunk.transaction.as_ref().map(|mail| -> StoredTransaction<&str> {
        let to = mail.to.iter().map(|to| (&*to.address, &*to.parameters));
        let messages = mail.messages.iter().map(|(mailbox, id)| (mailbox.as_str(), id.number()));
        (mail.outcome.name(), &mail.from, &mail.parameters, to.collect(), mail.reply.as_deref(), messages.collect())
    });
    // Strings and numbers can always be encoded.
    serde_json::to_vec(&(info, transaction)).unwrap_or_default()
}

/// Decodes a chunk without its lines. Returns `None` if the bytes are damaged, or if a later version of this program has
/// written them.
fn decode_head(bytes: &[u8]) -> Option<(SessionInfo, Option<Transaction>)> {
    let (info, transaction): (StoredInfo<String>, Option<StoredTransaction<String>>) =
        serde_json::from_slice(bytes).ok()?;
    let (protocol, client, helo, tls, user, started, end, refusals) = info;
    let info = SessionInfo {
        protocol: Protocol::from_name(&protocol)?,
        client,
        helo,
        tls: tls.map(|(version, cipher)| Tls { version: Cow::Owned(version), cipher: Cow::Owned(cipher) }),
        user,
        started: timestamp(started),
        end: end.map(|(at, reason)| SessionEnd { at: at.map(timestamp), reason: Cow::Owned(reason) }),
        refusals,
    };
    let transaction = match transaction {
        Some((outcome, from, parameters, to, reply, messages)) => Some(Transaction {
            from,
            parameters,
            to: to.into_iter().map(|(address, parameters)| Recipient { address, parameters }).collect(),
            outcome: Outcome::from_name(&outcome)?,
            reply: reply.map(Arc::from),
            messages: messages.into_iter().map(|(mailbox, id)| (mailbox.into(), id.into())).collect(),
        }),
        None => None,
    };
    Some((info, transaction))
}

/// Transcripts that are made of stored chunks.
#[derive(Default)]
pub(super) struct StoredTranscripts(HashMap<SessionId, Transcript>);

impl StoredTranscripts {
    /// Adds the next chunk. The last chunk of each session comes first: its properties of the session are the latest.
    pub(super) fn add(&mut self, chunk: StoredChunk<'_>, part: TranscriptPart) {
        let StoredChunk { session, number, at, is_running, head, lines } = chunk;
        let Some((mut info, transaction)) = decode_head(head) else { return };
        if info.end.is_none() && !is_running {
            info.end = Some(SessionEnd { at: None, reason: Cow::Borrowed("lost") });
        }
        let new = || Transcript { session, info: Arc::new(info), chunks: Vec::new() };
        let transcript = self.0.entry(session).or_insert_with(new);
        if part.includes(number) {
            let (info, lines) = (transcript.info.clone(), TranscriptLines::from_bytes(lines));
            transcript.chunks.push(Arc::new(Chunk { session, number, at: timestamp(at), info, transaction, lines }));
        }
    }

    /// Removes the transcript of a session, if it exists. Its chunks are in descending order.
    pub(super) fn take(&mut self, session: SessionId) -> Option<Transcript> {
        self.0.remove(&session)
    }
}

/// Converts a stored time. If it is damaged, returns the Unix epoch.
fn timestamp(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Side;
    use crate::tests::conformance::{chunk, mail_chunk};

    /// Returns a chunk with an aborted message and an invalid sender.
    fn aborted() -> Chunk {
        let mut aborted = mail_chunk(1, 2, "bob", 7);
        aborted.transaction = aborted.transaction.map(|transaction| Transaction {
            from: "zero \0 and\nlines".to_owned(),
            to: Vec::new(),
            outcome: Outcome::Aborted,
            reply: None,
            messages: Vec::new(),
            ..transaction
        });
        aborted
    }

    /// Returns a chunk of a session without optional properties.
    fn bare() -> Chunk {
        let bare = chunk(1, 0, "head");
        let end = SessionEnd { at: Timestamp::from_second(7).ok(), reason: Cow::Borrowed("quit") };
        let info = SessionInfo {
            protocol: Protocol::Smtp,
            client: None,
            helo: None,
            tls: None,
            user: None,
            started: Timestamp::from_second(-7).unwrap(),
            end: Some(end),
            refusals: u32::MAX,
        };
        Chunk { info: Arc::new(info), ..bare }
    }

    #[test]
    fn names_are_those_in_json() {
        fn check<T: Copy + serde::Serialize>(all: impl IntoIterator<Item = T>, name: fn(T) -> &'static str) {
            for value in all {
                assert_eq!(serde_json::to_value(value).unwrap(), name(value));
            }
        }
        check(Protocol::ALL, Protocol::name);
        check(Outcome::ALL, Outcome::name);
        check(Side::ALL, Side::name);
    }

    #[test]
    fn chunks_are_decoded_as_encoded() {
        for chunk in [chunk(1, 0, "head"), mail_chunk(1, 1, "bob", u64::MAX - 1), aborted(), bare()] {
            let (info, transaction) = decode_head(&encode_head(&chunk)).unwrap();
            assert_eq!((info, transaction), (SessionInfo::clone(&chunk.info), chunk.transaction));
        }
    }

    #[test]
    fn rejects_invalid_encoding() {
        let encoded = encode_head(&aborted());
        for length in 0..encoded.len() {
            assert_eq!(decode_head(&encoded[..length]), None, "{length}");
        }
        let later = String::from_utf8(encoded).unwrap().replace("\"aborted\"", "\"another outcome\"");
        assert_eq!(decode_head(later.as_bytes()), None, "of a later version");
    }
}
