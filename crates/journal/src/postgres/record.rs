//! A piece as bytes, without its lines: texts one behind the other, each with its length, so that a mail of any shape and a client
//! that calls itself anything fit in. Databases have no text with zero bytes in it.

use std::borrow::Cow;
use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;
use restante_mail::message::MessageId;

use crate::{Cover, Dialect, End, Outcome, Piece, Recipient, Tls, Transaction};

/// What begins otherwise is of another version.
const VERSION: u8 = 1;
/// The length of a text that is not there.
const NONE: u32 = u32::MAX;

/// The piece as it is stored.
pub(super) fn encode(piece: &Piece) -> Vec<u8> {
    let mut record = Record(vec![VERSION]);
    record.cover(&piece.cover);
    if let Some(mail) = &piece.transaction {
        record.transaction(mail);
    }
    record.0
}

/// What was stored; none when it makes no sense here.
pub(super) fn decode(bytes: &[u8]) -> Option<(Cover, Option<Transaction>)> {
    let (&VERSION, rest) = bytes.split_first()? else { return None };
    let mut texts = Texts(rest);
    let cover = texts.cover().ok()?;
    let transaction = if texts.0.is_empty() { None } else { Some(texts.transaction().ok()?) };
    Some((cover, transaction))
}

/// A piece that is put into bytes.
struct Record(Vec<u8>);

impl Record {
    fn cover(&mut self, cover: &Cover) {
        let Cover { dialect, client, helo, tls, user, started, end, refused } = cover;
        self.text(dialect.name());
        self.option(client.map(|ip| ip.to_string()).as_deref());
        self.option(helo.as_deref());
        self.option(tls.as_ref().map(|tls| &*tls.version));
        self.option(tls.as_ref().map(|tls| &*tls.cipher));
        self.option(user.as_deref());
        self.number(&started.as_microsecond());
        self.option(end.as_ref().map(|end| &*end.how));
        let ended = end.as_ref().and_then(|end| end.at);
        self.option(ended.map(|at| at.as_microsecond().to_string()).as_deref());
        self.number(refused);
    }

    fn transaction(&mut self, mail: &Transaction) {
        let Transaction { from, parameters, to, outcome, reply, messages } = mail;
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
        let length = text.map_or(NONE, |text| u32::try_from(text.len()).unwrap_or(NONE));
        self.0.extend_from_slice(&length.to_le_bytes());
        if length != NONE {
            self.0.extend_from_slice(text.unwrap_or_default().as_bytes());
        }
    }
}

/// The texts that are still to be read.
struct Texts<'a>(&'a [u8]);

/// Something makes no sense.
struct Senseless;

impl<'a> Texts<'a> {
    fn cover(&mut self) -> Result<Cover, Senseless> {
        let dialect = self.text()?;
        let client = self.option()?.and_then(|ip| ip.parse().ok());
        let helo = self.option()?.map(str::to_owned);
        let tls = self.option()?.zip(self.option()?);
        let user = self.option()?.map(str::to_owned);
        let started = self.number()?;
        let (how, ended) = (self.option()?, self.option()?);
        Ok(Cover {
            dialect: Dialect::ALL.into_iter().find(|known| known.name() == dialect).ok_or(Senseless)?,
            client,
            helo,
            tls: tls.map(|(version, cipher)| Tls { version: owned(version), cipher: owned(cipher) }),
            user,
            started: moment(started),
            end: how.map(|how| End { at: ended.and_then(|at| at.parse().ok()).map(moment), how: owned(how) }),
            refused: self.number()?,
        })
    }

    fn transaction(&mut self) -> Result<Transaction, Senseless> {
        let outcome = self.text()?;
        let outcome = Outcome::ALL.into_iter().find(|known| known.name() == outcome).ok_or(Senseless)?;
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

    fn number<N: FromStr>(&mut self) -> Result<N, Senseless> {
        self.text()?.parse().map_err(|_| Senseless)
    }

    fn text(&mut self) -> Result<&'a str, Senseless> {
        self.option()?.ok_or(Senseless)
    }

    fn option(&mut self) -> Result<Option<&'a str>, Senseless> {
        let (length, rest) = self.0.split_first_chunk::<4>().ok_or(Senseless)?;
        let length = match u32::from_le_bytes(*length) {
            NONE => None,
            length => Some(usize::try_from(length).map_err(|_| Senseless)?),
        };
        let (text, rest) = rest.split_at_checked(length.unwrap_or(0)).ok_or(Senseless)?;
        self.0 = rest;
        let text = str::from_utf8(text).map_err(|_| Senseless)?;
        Ok(length.map(|_| text))
    }
}

/// What was stored was a time once; should it be damaged, any time will do.
fn moment(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or_default()
}

fn owned(text: &str) -> Cow<'static, str> {
    Cow::Owned(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::{mail, piece};

    /// A mail that never was, from a sender that is not to be believed.
    fn strange() -> Piece {
        let mut strange = mail(1, 2, "bob", 7);
        strange.transaction = strange.transaction.map(|mail| Transaction {
            from: "zero \0 and\nlines".to_owned(),
            to: Vec::new(),
            outcome: Outcome::Aborted,
            reply: None,
            messages: Vec::new(),
            ..mail
        });
        strange
    }

    /// A session of which hardly anything is known.
    fn bare() -> Piece {
        let bare = piece(1, 0, "head");
        let end = End { at: Timestamp::from_second(7).ok(), how: Cow::Borrowed("quit") };
        let cover = Cover {
            dialect: Dialect::Smtp,
            client: None,
            helo: None,
            tls: None,
            user: None,
            started: Timestamp::from_second(-7).unwrap(),
            end: Some(end),
            refused: u32::MAX,
        };
        Piece { cover: Arc::new(cover), ..bare }
    }

    #[test]
    fn pieces_come_back() {
        for piece in [piece(1, 0, "head"), mail(1, 1, "bob", u64::MAX - 1), strange(), bare()] {
            let (cover, transaction) = decode(&encode(&piece)).unwrap();
            assert_eq!((cover, transaction), (Cover::clone(&piece.cover), piece.transaction));
        }
    }

    #[test]
    fn what_makes_no_sense_is_nothing() {
        let whole = encode(&strange());
        // Without any mail it makes sense too.
        let head = encode(&Piece { transaction: None, ..strange() }).len();
        for length in (0..whole.len()).filter(|length| *length != head) {
            assert_eq!(decode(&whole[..length]), None, "{length}");
        }
        assert_eq!(decode(&[&[VERSION + 1], &whole[1..]].concat()), None, "of a later version");
    }
}
