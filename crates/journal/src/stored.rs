//! Written groups of chunks as the storages keep them: the properties of the session as JSON, the chunks as JSON without
//! their lines, and the lines. The JSON consists of arrays, because there are very many chunks, and few are ever read.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;

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

/// A chunk: its time in Unix microseconds, the length of its lines in bytes, and the message.
type StoredChunk<T> = (i64, usize, Option<StoredTransaction<T>>);

/// A group of chunks that was read from a storage.
pub(super) struct StoredGroup<'a> {
    pub(super) session: SessionId,
    /// The number of the first chunk.
    pub(super) number: u32,
    /// Whether the process that wrote it still runs. Otherwise its sessions are over.
    pub(super) is_running: bool,
    /// The result of [`encode_info`].
    pub(super) info: &'a [u8],
    /// The result of [`encode_chunks`].
    pub(super) chunks: &'a [u8],
    /// The lines of all chunks. Empty if they were not read.
    pub(super) lines: &'a [u8],
}

/// Encodes the properties of a session.
pub(super) fn encode_info(info: &SessionInfo) -> Vec<u8> {
    let SessionInfo { protocol, client, helo, tls, user, started, end, refusals } = info;
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
    // Strings and numbers can always be encoded.
    serde_json::to_vec(&info).unwrap_or_default()
}

/// Encodes chunks without their lines.
pub(super) fn encode_chunks<'a>(chunks: impl Iterator<Item = &'a Chunk>) -> Vec<u8> {
    let chunks = chunks.map(|chunk| -> StoredChunk<&str> {
        let transaction = chunk.transaction.as_ref().map(|mail| -> StoredTransaction<&str> {
            let to = mail.to.iter().map(|to| (&*to.address, &*to.parameters));
            let messages = mail.messages.iter().map(|(mailbox, id)| (mailbox.as_str(), id.number()));
            (mail.outcome.name(), &mail.from, &mail.parameters, to.collect(), mail.reply.as_deref(), messages.collect())
        });
        (chunk.at.as_microsecond(), chunk.lines.bytes(), transaction)
    });
    // Strings and numbers can always be encoded.
    serde_json::to_vec(&chunks.collect::<Vec<_>>()).unwrap_or_default()
}

/// Decodes the properties of a session. Returns `None` if the bytes are damaged, or if a later version of this program has
/// written them.
fn decode_info(bytes: &[u8]) -> Option<SessionInfo> {
    let (protocol, client, helo, tls, user, started, end, refusals): StoredInfo<String> =
        serde_json::from_slice(bytes).ok()?;
    Some(SessionInfo {
        protocol: Protocol::from_name(&protocol)?,
        client,
        helo,
        tls: tls.map(|(version, cipher)| Tls { version: Cow::Owned(version), cipher: Cow::Owned(cipher) }),
        user,
        started: timestamp(started),
        end: end.map(|(at, reason)| SessionEnd { at: at.map(timestamp), reason: Cow::Owned(reason) }),
        refusals,
    })
}

/// Decodes a message. Returns `None` if a later version of this program has written it.
fn decode_transaction(stored: StoredTransaction<String>) -> Option<Transaction> {
    let (outcome, from, parameters, to, reply, messages) = stored;
    Some(Transaction {
        from,
        parameters,
        to: to.into_iter().map(|(address, parameters)| Recipient { address, parameters }).collect(),
        outcome: Outcome::from_name(&outcome)?,
        reply: reply.map(Arc::from),
        messages: messages.into_iter().map(|(mailbox, id)| (mailbox.into(), id.into())).collect(),
    })
}

/// Decodes the chunks of a group, whose first chunk has this number. Returns each with its number. If the bytes are damaged,
/// there are none.
fn decode_chunks(number: u32, bytes: &[u8]) -> impl Iterator<Item = (u32, StoredChunk<String>)> {
    let chunks: Vec<StoredChunk<String>> = serde_json::from_slice(bytes).unwrap_or_default();
    (number..=u32::MAX).zip(chunks)
}

/// Returns the number of the chunk of a group that received a message. `number` is that of the first chunk.
pub(super) fn find_message(number: u32, chunks: &[u8], mailbox: &MailboxName, id: MessageId) -> Option<u32> {
    let has_message = |(_, _, transaction): &StoredChunk<String>| {
        let mut messages = transaction.iter().flat_map(|(.., messages)| messages);
        messages.any(|(name, number)| *number == id.number() && name == mailbox.as_str())
    };
    decode_chunks(number, chunks).find(|(_, chunk)| has_message(chunk)).map(|(number, _)| number)
}

/// Transcripts that are made of stored chunks.
#[derive(Default)]
pub(super) struct StoredTranscripts(HashMap<SessionId, Transcript>);

impl StoredTranscripts {
    /// Adds the chunks of the next group. The last group of each session comes first: its properties of the session are the
    /// latest.
    pub(super) fn add(&mut self, group: &StoredGroup<'_>, part: TranscriptPart) {
        let StoredGroup { session, number, is_running, info, chunks, lines } = *group;
        let Some(mut info) = decode_info(info) else { return };
        if info.end.is_none() && !is_running {
            info.end = Some(SessionEnd { at: None, reason: Cow::Borrowed("lost") });
        }
        let new = || Transcript { session, info: Arc::new(info), chunks: Vec::new() };
        let transcript = self.0.entry(session).or_insert_with(new);
        let mut rest = lines;
        for (number, (at, length, stored)) in decode_chunks(number, chunks) {
            let (lines, after) = rest.split_at_checked(length).unwrap_or_default();
            rest = after;
            let decoded = stored.map_or(Some(None), |stored| decode_transaction(stored).map(Some));
            if let Some(transaction) = decoded.filter(|_| part.includes(number)) {
                let (info, lines) = (transcript.info.clone(), TranscriptLines::from_bytes(lines.to_vec()));
                transcript.chunks.push(Arc::new(Chunk {
                    session,
                    number,
                    at: timestamp(at),
                    info,
                    transaction,
                    lines,
                }));
            }
        }
    }

    /// Removes the transcript of a session, if it exists. Its chunks are in no particular order.
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

    /// Returns what is decoded of a group, whose first chunk has the number 7.
    fn decode(info: &[u8], chunks: &[u8], lines: &[u8], part: TranscriptPart) -> Option<Transcript> {
        let group = StoredGroup { session: 1.into(), number: 7, is_running: true, info, chunks, lines };
        let mut transcripts = StoredTranscripts::default();
        transcripts.add(&group, part);
        transcripts.take(1.into())
    }

    #[test]
    fn groups_are_decoded_as_encoded() {
        let chunks = [chunk(1, 7, "head"), mail_chunk(1, 8, "bob", u64::MAX - 1), Chunk { number: 9, ..aborted() }];
        let (info, encoded) = (encode_info(&chunks[0].info), encode_chunks(chunks.iter()));
        let lines: Vec<u8> = chunks.iter().flat_map(|chunk| chunk.lines.as_bytes()).copied().collect();
        let decoded = decode(&info, &encoded, &lines, TranscriptPart::Whole).unwrap();
        assert!(decoded.chunks.iter().map(|chunk| &**chunk).eq(&chunks));
        let decoded = decode(&info, &encoded, &lines, TranscriptPart::Chunk(8)).unwrap();
        assert!(decoded.chunks.iter().map(|chunk| &**chunk).eq([&chunks[1]]));
        let decoded = decode(&info, &encoded, &[], TranscriptPart::Listed).unwrap();
        assert_eq!((decoded.chunks.len(), decoded.lines().count()), (3, 0));
        assert_eq!(decoded.chunks[2].transaction, chunks[2].transaction);
    }

    #[test]
    fn properties_of_session_are_decoded_as_encoded() {
        for chunk in [chunk(1, 0, "head"), bare()] {
            assert_eq!(decode_info(&encode_info(&chunk.info)).as_ref(), Some(&*chunk.info));
        }
    }

    #[test]
    fn finds_message_in_group() {
        let chunks =
            encode_chunks([chunk(1, 7, "head"), mail_chunk(1, 8, "bob", 70), mail_chunk(1, 9, "bob", 80)].iter());
        let expected = [("bob", 70, Some(8)), ("other", 81, Some(9)), ("bob", 81, None), ("eve", 70, None)];
        for (mailbox, id, number) in expected {
            assert_eq!(find_message(7, &chunks, &mailbox.to_owned().into(), id.into()), number, "{mailbox} {id}");
        }
    }

    #[test]
    fn rejects_invalid_encoding() {
        let info = encode_info(&bare().info);
        for length in 0..info.len() {
            assert_eq!(decode_info(&info[..length]), None, "{length}");
        }
        let (first, later) = (mail_chunk(1, 7, "bob", 70), aborted());
        let encoded = encode_chunks([&first, &later].into_iter());
        for length in 0..encoded.len() {
            assert_eq!(decode_chunks(7, &encoded[..length]).count(), 0, "{length}");
        }
        let later = String::from_utf8(encoded).unwrap().replace("\"aborted\"", "\"another outcome\"");
        let decoded = decode(&info, later.as_bytes(), first.lines.as_bytes(), TranscriptPart::Whole).unwrap();
        assert_eq!(decoded.chunks.len(), 1, "the chunk of a later version is left out");
        assert_eq!(decoded.chunks[0].lines, first.lines);
    }
}
