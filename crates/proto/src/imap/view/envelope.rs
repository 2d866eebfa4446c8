//! ENVELOPE (RFC 3501 section 7.4.2).

use restante_mail::mime::unfold;

use super::MessageView;
use super::address::{EnvelopeAddress, parse_addresses};
use crate::imap::write::write_nstring;

/// The maximum number of addresses in one reply. An address can take twenty times the space that it has in the message.
const MAX_ADDRESSES: usize = 10_000;

/// A reply that is written, and what applies to all its values.
pub(super) struct Writer<'a> {
    pub(super) out: &'a mut Vec<u8>,
    /// Whether quoted strings can contain UTF-8.
    is_utf8: bool,
    addresses_left: usize,
}

impl<'a> Writer<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>, is_utf8: bool) -> Self {
        Self { out, is_utf8, addresses_left: MAX_ADDRESSES }
    }

    pub(super) fn raw(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    pub(super) fn nstring(&mut self, text: Option<&[u8]>) {
        write_nstring(self.out, text, self.is_utf8);
    }

    /// Writes the unfolded value of a field, or NIL if it is missing.
    pub(super) fn field(&mut self, value: Option<&[u8]>) {
        self.nstring(value.map(unfold).as_deref());
    }

    fn addresses(&mut self, addresses: &[EnvelopeAddress]) {
        if addresses.is_empty() {
            return self.raw("NIL");
        }
        self.raw("(");
        for EnvelopeAddress { name, route, mailbox, host } in addresses {
            for (part, before) in [(name, "("), (route, " "), (mailbox, " "), (host, " ")] {
                self.raw(before);
                self.nstring(part.as_deref());
            }
            self.raw(")");
        }
        self.raw(")");
    }
}

/// The values of the fields in an envelope.
#[derive(Default)]
struct EnvelopeFields<'a> {
    /// Date, Subject, In-Reply-To and Message-ID. Of several fields with one name, the first counts.
    texts: [Option<&'a [u8]>; 4],
    /// From, Sender, Reply-To, To, Cc and Bcc. Several fields with one name are one list.
    lists: [Vec<&'a [u8]>; 6],
}

impl MessageView {
    /// Writes the ENVELOPE of the message. `is_utf8` is described at [`write_string`](crate::imap::write::write_string).
    pub(in crate::imap) fn write_envelope(&self, out: &mut Vec<u8>, is_utf8: bool) {
        self.write_envelope_of(0, &mut Writer::new(out, is_utf8));
    }

    /// Writes the envelope of the message with this root.
    pub(super) fn write_envelope_of(&self, root: usize, writer: &mut Writer<'_>) {
        let EnvelopeFields { texts: [date, subject, in_reply_to, message_id], lists } = self.envelope_fields(root);
        writer.raw("(");
        writer.field(date);
        writer.raw(" ");
        writer.field(subject);
        let mut from = Vec::new();
        for (index, fields) in lists.iter().enumerate() {
            let mut addresses = Vec::new();
            for field in fields {
                addresses.append(&mut parse_addresses(field, writer.addresses_left));
                writer.addresses_left = writer.addresses_left.saturating_sub(addresses.len());
            }
            writer.raw(" ");
            match index {
                0 => from = addresses.clone(),
                // Sender and Reply-To.
                1 | 2 if addresses.is_empty() => addresses.clone_from(&from),
                _ => {}
            }
            writer.addresses(&addresses);
        }
        writer.raw(" ");
        writer.field(in_reply_to);
        writer.raw(" ");
        writer.field(message_id);
        writer.raw(")");
    }

    fn envelope_fields(&self, root: usize) -> EnvelopeFields<'_> {
        const TEXTS: [&[u8]; 4] = [b"date", b"subject", b"in-reply-to", b"message-id"];
        const LISTS: [&[u8]; 6] = [b"from", b"sender", b"reply-to", b"to", b"cc", b"bcc"];
        let mut found = EnvelopeFields::default();
        for (name, value) in self.fields(root) {
            let position = |names: &[&[u8]]| names.iter().position(|known| name.eq_ignore_ascii_case(known));
            if let Some(index) = position(&TEXTS) {
                found.texts[index].get_or_insert(value);
            } else if let Some(index) = position(&LISTS) {
                found.lists[index].push(value);
            }
        }
        found
    }
}
