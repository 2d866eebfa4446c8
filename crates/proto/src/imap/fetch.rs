//! FETCH. Values that the session knows are written at once. For the others, the sources and properties of messages are
//! requested in batches of limited size. Large values are written in parts, without a copy of the message.

use std::collections::VecDeque;
use std::io::Write as _;
use std::num::NonZeroU32;

use bytes::Bytes;
use restante_mail::message::MessageId;

use super::command::{BodyName, FetchItem, Section, SequenceSet, StoreOperation};
use super::flags::FlagChanges;
use super::reply;
use super::selected::{Entry, Selected};
use super::task::{BATCH_BYTES, BATCH_MESSAGES, Completion, Context, MAX_REPLY_BYTES, Step, Task};
use super::view::MessageView;
use super::write::{write_internal_date, write_number, write_part, write_section_name, write_string};
use super::{NewMarks, Operation, Outcome, Properties};

/// Values of at least this size are not copied.
const MIN_PIECE_BYTES: usize = 16 * 1024;

/// FETCH.
#[derive(Debug)]
pub(super) struct FetchTask {
    items: Vec<FetchItem>,
    needs: Needs,
    /// Whether the last source is kept for the next command.
    is_partial: bool,
    /// The indices of the messages that are left, in ascending order.
    indices: std::vec::IntoIter<usize>,
    stage: Stage,
    /// The messages of the batch, and their data as far as it is known.
    batch: VecDeque<Fetched>,
    /// The parts of the reply for the current message that are left.
    pieces: VecDeque<Bytes>,
    has_missing: bool,
    has_unknown_encoding: bool,
}

/// The data that the values need.
#[derive(Clone, Copy, Debug)]
struct Needs {
    source: bool,
    properties: bool,
    /// Whether the messages become seen.
    seen: bool,
}

/// What is known of the current batch.
#[derive(Debug)]
enum Stage {
    /// There is no batch.
    Start,
    /// The messages become seen.
    Marking(FlagChanges),
    /// Their properties are requested.
    Properties,
    /// Their sources are requested.
    Sources,
    /// Everything is known.
    Writing,
}

/// A message of a batch.
#[derive(Debug)]
struct Fetched {
    index: usize,
    source: Option<Bytes>,
    properties: Option<Properties>,
    /// Whether FLAGS are reported because the message has become seen.
    has_become_seen: bool,
}

impl FetchTask {
    pub(super) fn new(
        selected: &Selected,
        set: &SequenceSet,
        is_uid: bool,
        mut items: Vec<FetchItem>,
        changed_since: Option<u64>,
    ) -> Self {
        if is_uid && !items.contains(&FetchItem::Uid) {
            items.insert(0, FetchItem::Uid);
        }
        if changed_since.is_some() && !items.contains(&FetchItem::ModSeq) {
            items.push(FetchItem::ModSeq);
        }
        let entries = selected.entries();
        let is_wanted = |index: &usize| {
            let is_changed = |entry: &Entry| changed_since.is_none_or(|modseq| entry.modseq > modseq);
            entries.get(*index).is_some_and(is_changed)
        };
        let indices: Vec<usize> = selected.resolve(set, is_uid).into_iter().flatten().filter(is_wanted).collect();
        // Some clients expect short values before literals.
        items.sort_by_key(needs_source);
        let needs = Needs {
            source: items.iter().any(needs_source),
            properties: items.iter().any(|item| matches!(item, FetchItem::EmailId | FetchItem::Preview)),
            seen: !selected.is_read_only && items.iter().any(sets_seen),
        };
        Self {
            is_partial: items.iter().any(is_partial),
            items,
            needs,
            indices: indices.into_iter(),
            stage: Stage::Start,
            batch: VecDeque::new(),
            pieces: VecDeque::new(),
            has_missing: false,
            has_unknown_encoding: false,
        }
    }

    /// Takes the next messages into the batch.
    fn start_batch(&mut self, selected: &mut Selected) {
        let mut bytes = 0;
        while self.batch.len() < BATCH_MESSAGES && (bytes < BATCH_BYTES || !self.needs.source) {
            let Some(index) = self.indices.next() else { break };
            let Some(entry) = selected.entries().get(index) else { continue };
            if entry.is_gone {
                self.has_missing = true;
                continue;
            }
            bytes += entry.size();
            let has_become_seen = self.needs.seen && !entry.is_seen;
            self.batch.push_back(Fetched { index, source: None, properties: None, has_become_seen });
        }
    }

    /// Returns the operation that the batch needs next, if any. Afterwards the batch can be written.
    fn next_operation(&mut self, context: &mut Context<'_>, mut outcome: Option<Outcome>) -> Option<Operation> {
        let selected = context.selected.as_mut()?;
        loop {
            match &mut self.stage {
                Stage::Start => {
                    self.start_batch(selected);
                    let marks = NewMarks { seen: true, ..NewMarks::default() };
                    let unseen =
                        self.batch.iter().filter(|fetched| fetched.has_become_seen).map(|fetched| fetched.index);
                    self.stage = Stage::Marking(FlagChanges::new(StoreOperation::Add, marks, unseen));
                }
                Stage::Marking(changes) => {
                    if let Some(operation) = changes.advance(selected, outcome.take()) {
                        return Some(operation);
                    }
                    self.stage = Stage::Properties;
                    if self.needs.properties && !self.batch.is_empty() {
                        return Some(Operation::Properties(self.ids(selected).collect()));
                    }
                }
                Stage::Properties => {
                    if let Some(Outcome::Properties(properties)) = outcome.take() {
                        for (fetched, properties) in self.batch.iter_mut().zip(properties) {
                            fetched.properties = properties;
                        }
                    }
                    self.stage = Stage::Sources;
                    if self.needs.source
                        && !self.batch.is_empty()
                        && !self.use_last_view(context.last_view.as_ref(), selected)
                    {
                        *context.last_view = None;
                        let bytes = self.batch.iter().filter_map(|fetched| selected.entries().get(fetched.index));
                        let bytes = bytes.map(Entry::size).sum();
                        return Some(Operation::Sources { ids: self.ids(selected).collect(), bytes });
                    }
                }
                Stage::Sources => {
                    if let Some(Outcome::Sources(sources)) = outcome.take() {
                        for (fetched, source) in self.batch.iter_mut().zip(sources) {
                            fetched.source = source;
                        }
                    }
                    self.stage = Stage::Writing;
                }
                Stage::Writing => return None,
            }
        }
    }

    fn ids<'a>(&self, selected: &'a Selected) -> impl Iterator<Item = MessageId> + use<'a, '_> {
        self.batch.iter().filter_map(|fetched| selected.entries().get(fetched.index)).map(|entry| entry.id)
    }

    /// Returns whether the batch is only the message of the last partial fetch.
    fn use_last_view(&self, last_view: Option<&(MessageId, MessageView)>, selected: &Selected) -> bool {
        let mut ids = self.ids(selected);
        ids.next().is_some_and(|id| last_view.is_some_and(|(last, _)| *last == id)) && ids.next().is_none()
    }

    /// Writes the reply for a message.
    fn write_message(&mut self, context: &mut Context<'_>, fetched: &Fetched) {
        let Some(selected) = context.selected.as_mut() else { return };
        let Some(&entry) = selected.entries().get(fetched.index) else { return };
        let view = match (&fetched.source, context.last_view.take()) {
            (Some(source), _) => Some(MessageView::parse(source.clone())),
            (None, Some((id, view))) if id == entry.id => Some(view),
            _ => None,
        };
        let is_missing = (self.needs.source && view.is_none())
            || (self.needs.properties && fetched.properties.is_none())
            || entry.is_gone;
        if is_missing {
            selected.remove(entry.id);
            self.has_missing = true;
            return;
        }
        let mut writer = Writer { out: context.out, pieces: &mut self.pieces, text: None };
        let _ = write!(writer.text(), "* {} FETCH (", fetched.index + 1);
        let has_flags = self.items.contains(&FetchItem::Flags);
        if fetched.has_become_seen {
            if !has_flags {
                writer.text().extend_from_slice(b"FLAGS ");
                reply::write_flags(writer.text(), selected, &entry);
                writer.text().push(b' ');
            }
            if context.enabled.condstore && !self.items.contains(&FetchItem::ModSeq) {
                let _ = write!(writer.text(), "MODSEQ ({}) ", entry.modseq);
            }
        }
        let is_utf8 = context.enabled.has_utf8_names();
        for (position, item) in self.items.iter().enumerate() {
            if position > 0 {
                writer.text().push(b' ');
            }
            let message = Message {
                selected,
                entry: &entry,
                view: view.as_ref(),
                properties: fetched.properties.as_ref(),
                is_utf8,
            };
            if !write_item(&mut writer, &message, item) {
                self.has_unknown_encoding = true;
            }
        }
        writer.text().extend_from_slice(b")\r\n");
        writer.finish();
        if has_flags || fetched.has_become_seen {
            selected.flags_sent(fetched.index);
        }
        if let Some(view) = view.filter(|_| self.is_partial) {
            *context.last_view = Some((entry.id, view));
        }
    }

    /// Moves the next part of a large reply to the replies.
    fn write_pieces(&mut self, out: &mut Vec<u8>) {
        while out.len() < MAX_REPLY_BYTES
            && let Some(mut piece) = self.pieces.pop_front()
        {
            let part = piece.split_to(piece.len().min(MAX_REPLY_BYTES - out.len()));
            out.extend_from_slice(&part);
            if !piece.is_empty() {
                self.pieces.push_front(piece);
            }
        }
    }
}

impl Task for FetchTask {
    fn advance(&mut self, context: &mut Context<'_>, outcome: Option<Outcome>) -> Step {
        let mut outcome = outcome;
        loop {
            self.write_pieces(context.out);
            if context.is_full() {
                return Step::Write;
            }
            if let Some(operation) = self.next_operation(context, outcome.take()) {
                return Step::Perform(operation);
            }
            match self.batch.pop_front() {
                Some(fetched) => self.write_message(context, &fetched),
                None if self.indices.len() == 0 => break,
                None => self.stage = Stage::Start,
            }
        }
        let completion = if self.has_unknown_encoding {
            Completion::no("[UNKNOWN-CTE] ", "A part has an unknown transfer encoding")
        } else if self.has_missing {
            Completion::ok("Some messages no longer exist").with_code("[EXPUNGEISSUED] ")
        } else {
            Completion::ok("FETCH completed")
        };
        Step::Done(completion)
    }

    fn memory_bytes(&self) -> usize {
        let batch: usize = self.batch.iter().filter_map(|fetched| fetched.source.as_ref()).map(Bytes::len).sum();
        batch + self.pieces.iter().map(Bytes::len).sum::<usize>()
    }

    fn contains_mail(&self) -> bool {
        true
    }
}

/// A message with its data.
struct Message<'a> {
    selected: &'a Selected,
    entry: &'a Entry,
    view: Option<&'a MessageView>,
    properties: Option<&'a Properties>,
    is_utf8: bool,
}

/// Writes a reply. Text is written to the replies until the first large value; everything after it becomes pieces.
struct Writer<'a> {
    out: &'a mut Vec<u8>,
    pieces: &'a mut VecDeque<Bytes>,
    text: Option<Vec<u8>>,
}

impl Writer<'_> {
    fn text(&mut self) -> &mut Vec<u8> {
        self.text.as_mut().unwrap_or(self.out)
    }

    /// Writes octets, which may be a slice of the source.
    fn octets(&mut self, value: Bytes) {
        if value.len() < MIN_PIECE_BYTES {
            self.text().extend_from_slice(&value);
            return;
        }
        let text = self.text.replace(Vec::new()).unwrap_or_default();
        self.pieces.push_back(text.into());
        self.pieces.push_back(value);
    }

    fn finish(self) {
        self.pieces.extend(self.text.map(Bytes::from));
    }
}

/// Writes a value with its name. Returns false if the transfer encoding of a part is unknown.
fn write_item(writer: &mut Writer<'_>, message: &Message<'_>, item: &FetchItem) -> bool {
    let Message { selected, entry, view, properties, .. } = message;
    let out = writer.text();
    match (item, view) {
        (FetchItem::Uid, _) => drop(write!(out, "UID {}", entry.uid)),
        (FetchItem::Flags, _) => {
            out.extend_from_slice(b"FLAGS ");
            reply::write_flags(out, selected, entry);
        }
        (FetchItem::InternalDate, _) => {
            out.extend_from_slice(b"INTERNALDATE ");
            write_internal_date(out, entry.received());
        }
        (FetchItem::Size, _) => drop(write!(out, "RFC822.SIZE {}", entry.size())),
        (FetchItem::ModSeq, _) => drop(write!(out, "MODSEQ ({})", entry.modseq)),
        (FetchItem::ThreadId, _) => out.extend_from_slice(b"THREADID NIL"),
        (FetchItem::EmailId, _) => {
            let id = properties.map_or(MessageId::ZERO, |properties| properties.message);
            let _ = write!(out, "EMAILID (M{id})");
        }
        (FetchItem::Preview, _) => {
            out.extend_from_slice(b"PREVIEW ");
            let preview = properties.map_or("", |properties| &properties.preview);
            write_string(out, preview.as_bytes(), message.is_utf8);
        }
        (FetchItem::Envelope, Some(view)) => {
            out.extend_from_slice(b"ENVELOPE ");
            view.write_envelope(out, message.is_utf8);
        }
        (FetchItem::Structure { is_extended }, Some(view)) => {
            out.extend_from_slice(if *is_extended { b"BODYSTRUCTURE " } else { b"BODY " });
            view.write_body(out, *is_extended, message.is_utf8);
        }
        (FetchItem::Body { name, section, partial, .. }, Some(view)) => {
            write_body_name(out, *name, section, *partial);
            match view.section(section) {
                Some(value) => write_value(writer, slice(value, *partial), false),
                None => out.extend_from_slice(b" NIL"),
            }
        }
        (FetchItem::Binary { part, partial, .. }, Some(view)) => {
            write_binary_name(out, "BINARY", part);
            if let Some((origin, _)) = partial {
                let _ = write!(out, "<{origin}>");
            }
            match view.binary(part) {
                Some(Ok(value)) => write_value(writer, slice(value, *partial), true),
                Some(Err(_)) => {
                    out.extend_from_slice(b" NIL");
                    return false;
                }
                None => out.extend_from_slice(b" NIL"),
            }
        }
        (FetchItem::BinarySize(part), Some(view)) => {
            write_binary_name(out, "BINARY.SIZE", part);
            let size = view.binary(part).and_then(Result::ok).map_or(0, |value| value.len());
            let _ = write!(out, " {size}");
        }
        (_, None) => {}
    }
    true
}

/// Writes a space and a literal. NUL is only allowed in a literal8 (RFC 3516).
fn write_value(writer: &mut Writer<'_>, value: Bytes, is_binary: bool) {
    let out = writer.text();
    out.extend_from_slice(if is_binary && memchr::memchr(0, &value).is_some() { b" ~{" } else { b" {" });
    write_number(out, value.len() as u64);
    out.extend_from_slice(b"}\r\n");
    writer.octets(value);
}

/// Returns the octets of a partial fetch.
fn slice(value: Bytes, partial: Option<(u32, NonZeroU32)>) -> Bytes {
    let Some((origin, count)) = partial else { return value };
    let at = |number: u64| usize::try_from(number).unwrap_or(usize::MAX).min(value.len());
    value.slice(at(origin.into())..at(u64::from(origin) + u64::from(count.get())))
}

fn write_body_name(out: &mut Vec<u8>, name: BodyName, section: &Section, partial: Option<(u32, NonZeroU32)>) {
    match name {
        BodyName::Body => write_section_name(out, section, partial.map(|(origin, _)| origin)),
        BodyName::Rfc822 => out.extend_from_slice(b"RFC822"),
        BodyName::Rfc822Header => out.extend_from_slice(b"RFC822.HEADER"),
        BodyName::Rfc822Text => out.extend_from_slice(b"RFC822.TEXT"),
    }
}

fn write_binary_name(out: &mut Vec<u8>, name: &str, part: &[NonZeroU32]) {
    let _ = write!(out, "{name}[");
    write_part(out, part);
    out.push(b']');
}

fn needs_source(item: &FetchItem) -> bool {
    matches!(
        item,
        FetchItem::Envelope
            | FetchItem::Structure { .. }
            | FetchItem::Body { .. }
            | FetchItem::Binary { .. }
            | FetchItem::BinarySize(_)
    )
}

fn sets_seen(item: &FetchItem) -> bool {
    matches!(item, FetchItem::Body { is_peek: false, .. } | FetchItem::Binary { is_peek: false, .. })
}

fn is_partial(item: &FetchItem) -> bool {
    matches!(item, FetchItem::Body { partial: Some(_), .. } | FetchItem::Binary { partial: Some(_), .. })
}
