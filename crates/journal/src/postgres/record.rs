//! The encoding of a chunk without its lines: a sequence of texts, each with its length. It can encode any message and
//! any name that a client sends; the type `text` of databases cannot contain zero bytes.

use std::borrow::Cow;
use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;
use restante_mail::message::MessageId;

use crate::{Chunk, Dialect, Outcome, Recipient, SessionEnd, SessionInfo, Tls, Transaction};

/// The first byte of the current version.
const VERSION: u8 = 1;
/// The length of an absent text.
const ABSENT: u32 = u32::MAX;

/// Encodes a chunk.
pub(super) fn encode(chunk: &Chunk) -> Vec<u8> {
    let mut record = Encoder(vec![VERSION]);
    record.session_info(&chunk.info);
    if let Some(transaction) = &chunk.transaction {
        record.transaction(transaction);
    }
    record.0
}

/// Decodes a chunk. Returns `None` if the bytes are invalid or of another version.
pub(super) fn decode(bytes: &[u8]) -> Option<(SessionInfo, Option<Transaction>)> {
    let (&VERSION, rest) = bytes.split_first()? else { return None };
    let mut texts = Decoder(rest);
    let info = texts.session_info().ok()?;
    let transaction = if texts.0.is_empty() { None } else { Some(texts.transaction().ok()?) };
    Some((info, transaction))
}

/// Encodes a chunk.
struct Encoder(Vec<u8>);

impl Encoder {
    fn session_info(&mut self, info: &SessionInfo) {
        let SessionInfo { dialect, client, helo, tls, user, started, end, refusals } = info;
        self.text(dialect.name());
        self.option(client.map(|ip| ip.to_string()).as_deref());
        self.option(helo.as_deref());
        self.option(tls.as_ref().map(|tls| &*tls.version));
        self.option(tls.as_ref().map(|tls| &*tls.cipher));
        self.option(user.as_deref());
        self.number(&started.as_microsecond());
        self.option(end.as_ref().map(|end| &*end.reason));
        let ended = end.as_ref().and_then(|end| end.at);
        self.option(ended.map(|at| at.as_microsecond().to_string()).as_deref());
        self.number(refusals);
    }

    fn transaction(&mut self, transaction: &Transaction) {
        let Transaction { from, parameters, to, outcome, reply, messages } = transaction;
        self.text(outcome.name());
        self.text(from);
        self.text(parameters);
        self.option(reply.as_deref());
        self.number(&to.len());
        for Recipient { address, parameters } in to {
            self.text(address);
            self.text(parameters);
        }
        for (mailbox, id) in messages {
            self.text(mailbox.as_str());
            self.number(&id.number());
        }
    }

    fn number(&mut self, number: &impl ToString) {
        self.text(&number.to_string());
    }

    fn text(&mut self, text: &str) {
        self.option(Some(text));
    }

    fn option(&mut self, text: Option<&str>) {
        let length = text.map_or(ABSENT, |text| u32::try_from(text.len()).unwrap_or(ABSENT));
        self.0.extend_from_slice(&length.to_le_bytes());
        if length != ABSENT {
            self.0.extend_from_slice(text.unwrap_or_default().as_bytes());
        }
    }
}

/// The bytes that are not decoded yet.
struct Decoder<'a>(&'a [u8]);

/// The bytes are not a valid encoding.
struct InvalidRecord;

impl<'a> Decoder<'a> {
    fn session_info(&mut self) -> Result<SessionInfo, InvalidRecord> {
        let dialect = self.text()?;
        let client = self.option()?.and_then(|ip| ip.parse().ok());
        let helo = self.option()?.map(str::to_owned);
        let tls = self.option()?.zip(self.option()?);
        let user = self.option()?.map(str::to_owned);
        let started = self.number()?;
        let (reason, ended) = (self.option()?, self.option()?);
        Ok(SessionInfo {
            dialect: Dialect::ALL.into_iter().find(|candidate| candidate.name() == dialect).ok_or(InvalidRecord)?,
            client,
            helo,
            tls: tls.map(|(version, cipher)| Tls { version: owned(version), cipher: owned(cipher) }),
            user,
            started: timestamp(started),
            end: reason.map(|reason| SessionEnd {
                at: ended.and_then(|at| at.parse().ok()).map(timestamp),
                reason: owned(reason),
            }),
            refusals: self.number()?,
        })
    }

    fn transaction(&mut self) -> Result<Transaction, InvalidRecord> {
        let outcome = self.text()?;
        let outcome = Outcome::ALL.into_iter().find(|candidate| candidate.name() == outcome).ok_or(InvalidRecord)?;
        let (from, parameters) = (self.text()?.to_owned(), self.text()?.to_owned());
        let reply = self.option()?.map(Arc::from);
        let mut to = Vec::new();
        for _ in 0..self.number::<usize>()? {
            to.push(Recipient { address: self.text()?.to_owned(), parameters: self.text()?.to_owned() });
        }
        let mut messages = Vec::new();
        while !self.0.is_empty() {
            messages.push((self.text()?.to_owned().into(), MessageId::from(self.number::<u64>()?)));
        }
        Ok(Transaction { from, parameters, to, outcome, reply, messages })
    }

    fn number<N: FromStr>(&mut self) -> Result<N, InvalidRecord> {
        self.text()?.parse().map_err(|_| InvalidRecord)
    }

    fn text(&mut self) -> Result<&'a str, InvalidRecord> {
        self.option()?.ok_or(InvalidRecord)
    }

    fn option(&mut self) -> Result<Option<&'a str>, InvalidRecord> {
        let (length, rest) = self.0.split_first_chunk::<4>().ok_or(InvalidRecord)?;
        let length = match u32::from_le_bytes(*length) {
            ABSENT => None,
            length => Some(usize::try_from(length).map_err(|_| InvalidRecord)?),
        };
        let (text, rest) = rest.split_at_checked(length.unwrap_or(0)).ok_or(InvalidRecord)?;
        self.0 = rest;
        let text = str::from_utf8(text).map_err(|_| InvalidRecord)?;
        Ok(length.map(|_| text))
    }
}

/// Converts a stored time. If it is damaged, returns the Unix epoch.
fn timestamp(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or_default()
}

fn owned(text: &str) -> Cow<'static, str> {
    Cow::Owned(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
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
            dialect: Dialect::Smtp,
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
    fn chunks_are_decoded_as_encoded() {
        for chunk in [chunk(1, 0, "head"), mail_chunk(1, 1, "bob", u64::MAX - 1), aborted(), bare()] {
            let (info, transaction) = decode(&encode(&chunk)).unwrap();
            assert_eq!((info, transaction), (SessionInfo::clone(&chunk.info), chunk.transaction));
        }
    }

    #[test]
    fn rejects_invalid_encoding() {
        let encoded = encode(&aborted());
        // Without a message it is valid too.
        let head = encode(&Chunk { transaction: None, ..aborted() }).len();
        for length in (0..encoded.len()).filter(|length| *length != head) {
            assert_eq!(decode(&encoded[..length]), None, "{length}");
        }
        assert_eq!(decode(&[&[VERSION + 1], &encoded[1..]].concat()), None, "of a later version");
    }
}
