//! SORT (RFC 5256): the values of a message that are compared, and the order.

use std::cmp::Ordering;

use jiff::Timestamp;
use restante_mail::mime::decode_field;

use super::command::{SortCriterion, SortKey};
use super::date::SentDate;
use super::search::Known;
use super::subject::base_subject;
use super::view::MessageView;
use super::view::{fold, parse_addresses};

/// The maximum length of a text that is compared.
const MAX_TEXT_BYTES: usize = 1000;

/// The values of a message by which SORT compares. Those that are not requested are empty.
#[derive(Clone, Debug)]
pub(super) struct SortEntry {
    /// The sequence number. It is the last criterion.
    pub sequence: u32,
    /// The UID.
    pub uid: u32,
    arrival: Timestamp,
    sent: Timestamp,
    size: u64,
    cc: String,
    from: String,
    to: String,
    subject: String,
}

impl SortEntry {
    /// Extracts the values for these criteria. `view` can be missing if [`needs_header`] returns false, and can be a view of
    /// only the header.
    pub(super) fn new(known: &impl Known, view: Option<&MessageView>, criteria: &[SortCriterion]) -> Self {
        let view = |key| view.filter(|_| criteria.iter().any(|criterion| criterion.key == key));
        let mailbox = |key, field| view(key).map(|view| first_mailbox(view, field)).unwrap_or_default();
        Self {
            sequence: known.sequence(),
            uid: known.uid(),
            arrival: known.received(),
            sent: view(SortKey::Date).map_or(known.received(), |view| sent_time(known, view)),
            size: known.size(),
            cc: mailbox(SortKey::Cc, "Cc"),
            from: mailbox(SortKey::From, "From"),
            to: mailbox(SortKey::To, "To"),
            subject: view(SortKey::Subject).map(|view| folded_subject(view).0).unwrap_or_default(),
        }
    }
}

/// Returns whether the criteria need the header of the message.
pub(super) fn needs_header(criteria: &[SortCriterion]) -> bool {
    criteria.iter().any(|criterion| !matches!(criterion.key, SortKey::Arrival | SortKey::Size))
}

/// Sorts messages. Those that are equal are in the order of their sequence numbers.
pub(super) fn sort(entries: &mut [SortEntry], criteria: &[SortCriterion]) {
    // Only the first criterion of each key has an effect.
    let mut effective: Vec<SortCriterion> = Vec::new();
    for criterion in criteria {
        if !effective.iter().any(|earlier| earlier.key == criterion.key) {
            effective.push(*criterion);
        }
    }
    entries.sort_unstable_by(|a, b| {
        let orders = effective.iter().map(|criterion| {
            let order = compare(a, b, criterion.key);
            if criterion.is_reverse { order.reverse() } else { order }
        });
        orders.fold(Ordering::Equal, Ordering::then).then(a.sequence.cmp(&b.sequence))
    });
}

fn compare(a: &SortEntry, b: &SortEntry, key: SortKey) -> Ordering {
    match key {
        SortKey::Arrival => a.arrival.cmp(&b.arrival),
        SortKey::Cc => a.cc.cmp(&b.cc),
        SortKey::Date => a.sent.cmp(&b.sent),
        SortKey::From => a.from.cmp(&b.from),
        SortKey::Size => a.size.cmp(&b.size),
        SortKey::Subject => a.subject.cmp(&b.subject),
        SortKey::To => a.to.cmp(&b.to),
    }
}

/// Returns the time at which the message was sent, or received if the Date field is missing or invalid.
pub(super) fn sent_time(known: &impl Known, view: &MessageView) -> Timestamp {
    view.first_field("Date").and_then(SentDate::parse).map_or(known.received(), |sent| sent.time)
}

/// Returns the start of a text, folded. The rest of a long text is not compared.
fn folded_start(text: &str) -> String {
    fold(text[..text.floor_char_boundary(MAX_TEXT_BYTES)].to_owned())
}

/// Returns the start of the folded base subject, and whether the message is a reply or forwarded.
pub(super) fn folded_subject(view: &MessageView) -> (String, bool) {
    let (subject, is_reply) = base_subject(&view.first_field("Subject").map(decode_field).unwrap_or_default());
    (folded_start(&subject), is_reply)
}

/// Returns the local part of the first address in a field, or the name of a group.
fn first_mailbox(view: &MessageView, field: &str) -> String {
    let addresses = view.first_field(field).map(|value| parse_addresses(value, 1)).unwrap_or_default();
    let mailbox = addresses.into_iter().next().and_then(|address| address.mailbox).unwrap_or_default();
    folded_start(&String::from_utf8_lossy(&mailbox))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imap::command::Flag;

    struct Message(u32, &'static str);

    impl Known for Message {
        fn sequence(&self) -> u32 {
            self.0
        }
        fn uid(&self) -> u32 {
            self.0 * 10
        }
        fn has_flag(&self, _: &Flag) -> bool {
            false
        }
        fn is_recent(&self) -> bool {
            false
        }
        fn received(&self) -> Timestamp {
            Timestamp::from_second(1_704_103_200 - i64::from(self.0)).unwrap()
        }
        fn size(&self) -> u64 {
            self.1.len() as u64
        }
        fn modseq(&self) -> u64 {
            0
        }
        fn has_email_id(&self, _: &str) -> bool {
            false
        }
    }

    #[test]
    fn sorts_messages() {
        let messages = [
            Message(1, "From: Zoe <b@x>\nTo: c@x\nDate: 3 Jan 2024 10:00:00 +0000\nSubject: Re: alpha\n\n"),
            Message(2, "From: A@y\nTo: Group: c@x;\nDate: 3 Jan 2024 10:00:00 +0100\nSubject: =?utf-8?q?=C3=84?=\n\n"),
            Message(
                3,
                "Subject: ALPHA\nCc: x@x\n\nlong enough to be the largest message of all, certainly larger than one\n",
            ),
            Message(4, "From: b@z\nDate: invalid\nSubject: [list] Beta\n\n"),
        ];
        let by = |key, is_reverse| SortCriterion { key, is_reverse };
        let table: &[(&[SortCriterion], [u32; 4])] = &[
            (&[by(SortKey::Arrival, false)], [4, 3, 2, 1]),
            (&[by(SortKey::Arrival, true)], [1, 2, 3, 4]),
            (&[by(SortKey::Size, true)], [3, 2, 1, 4]),
            (&[by(SortKey::Date, false)], [4, 3, 2, 1]),
            (&[by(SortKey::From, false)], [3, 2, 1, 4]),
            (&[by(SortKey::From, true)], [1, 4, 2, 3]),
            (&[by(SortKey::To, false)], [3, 4, 1, 2]),
            (&[by(SortKey::Cc, true), by(SortKey::Size, false)], [3, 4, 1, 2]),
            (&[by(SortKey::Subject, false)], [1, 3, 4, 2]),
            (&[by(SortKey::Subject, false), by(SortKey::Subject, true), by(SortKey::Arrival, false)], [3, 1, 4, 2]),
        ];
        for (criteria, expected) in table {
            let entry = |message: &Message| {
                let view = needs_header(criteria).then(|| MessageView::parse(message.1.as_bytes().into()));
                SortEntry::new(message, view.as_ref(), criteria)
            };
            let mut entries: Vec<_> = messages.iter().map(entry).collect();
            sort(&mut entries, criteria);
            assert_eq!(entries.iter().map(|entry| entry.sequence).collect::<Vec<_>>(), expected, "{criteria:?}");
        }
    }
}
