//! FETCH. Values that the session knows are written at once. For the others, the sources and properties of messages are
//! requested in batches of limited size. A value is created when the one before it is written, and a large one is written in
//! parts.

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
use super::view::{MessageView, UnknownEncoding};
use super::write::{write_internal_date, write_number, write_part, write_section_name, write_string};
use super::{NewMarks, Operation, Outcome, Properties};

/// Values of at least this size are written in parts.
const MIN_LARGE_BYTES: usize = 16 * 1024;

/// Other sessions continue between the items of a message of more than this size.
const LARGE_MESSAGE_BYTES: usize = 256 * 1024;

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
    /// The message whose reply is being written.
    current: Option<Current>,
    /// The part of a large value that is left.
    rest: Bytes,
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

/// A message whose reply is being written.
#[derive(Debug)]
struct Current {
    fetched: Fetched,
    view: Option<MessageView>,
    /// The index of the next item.
    item: usize,
}

impl FetchTask {
    pub(super) fn new(
        selected: &Selected,
        set: &SequenceSet,
        is_uid: bool,
        requested: Vec<FetchItem>,
        changed_since: Option<u64>,
    ) -> Self {
        let uid = is_uid.then_some(FetchItem::Uid);
        let modseq = changed_since.map(|_| FetchItem::ModSeq);
        let mut items = Vec::with_capacity(requested.len());
        for item in uid.into_iter().chain(requested).chain(modseq) {
            if !items.contains(&item) {
                items.push(item);
            }
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
            current: None,
            rest: Bytes::new(),
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

    /// Starts the reply for a message.
    fn start_message(&mut self, context: &mut Context<'_>, fetched: Fetched) {
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
        let _ = write!(context.out, "* {} FETCH (", fetched.index + 1);
        if fetched.has_become_seen {
            if !self.items.contains(&FetchItem::Flags) {
                context.out.extend_from_slice(b"FLAGS ");
                reply::write_flags(context.out, selected, &entry);
                context.out.push(b' ');
            }
            if context.enabled.condstore && !self.items.contains(&FetchItem::ModSeq) {
                let _ = write!(context.out, "MODSEQ ({}) ", entry.modseq);
            }
        }
        self.current = Some(Current { fetched, view, item: 0 });
    }

    /// Writes the next item, or ends the reply.
    fn continue_message(&mut self, context: &mut Context<'_>, mut current: Current) {
        let Some(selected) = context.selected.as_mut() else { return };
        let Some(&entry) = selected.entries().get(current.fetched.index) else { return };
        if let Some(item) = self.items.get(current.item) {
            if current.item > 0 {
                context.out.push(b' ');
            }
            let message = Message {
                selected,
                entry: &entry,
                view: current.view.as_ref(),
                properties: current.fetched.properties.as_ref(),
                is_utf8: context.enabled.has_utf8_names(),
            };
            match write_item(context.out, &message, item) {
                Ok(rest) => self.rest = rest,
                Err(UnknownEncoding) => self.has_unknown_encoding = true,
            }
            current.item += 1;
            self.current = Some(current);
            return;
        }
        context.out.extend_from_slice(b")\r\n");
        if current.fetched.has_become_seen || self.items.contains(&FetchItem::Flags) {
            selected.flags_sent(current.fetched.index);
        }
        if let Some(view) = current.view.filter(|_| self.is_partial) {
            *context.last_view = Some((entry.id, view));
        }
    }

    /// Moves the next part of a large value to the replies.
    fn write_rest(&mut self, out: &mut Vec<u8>) {
        let free = MAX_REPLY_BYTES.saturating_sub(out.len());
        let part = self.rest.split_to(self.rest.len().min(free));
        out.extend_from_slice(&part);
    }
}

impl Task for FetchTask {
    fn advance(&mut self, context: &mut Context<'_>, outcome: Option<Outcome>) -> Step {
        let mut outcome = outcome;
        loop {
            self.write_rest(context.out);
            if context.is_full() {
                return Step::Write;
            }
            if let Some(current) = self.current.take() {
                let is_large = current.view.as_ref().is_some_and(|view| view.source().len() > LARGE_MESSAGE_BYTES);
                self.continue_message(context, current);
                if is_large {
                    return Step::Write;
                }
                continue;
            }
            if let Some(operation) = self.next_operation(context, outcome.take()) {
                return Step::Perform(operation);
            }
            match self.batch.pop_front() {
                Some(fetched) => self.start_message(context, fetched),
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
        let current = self.current.iter().map(|current| &current.fetched);
        let sources = self.batch.iter().chain(current).filter_map(|fetched| fetched.source.as_ref());
        sources.map(Bytes::len).sum::<usize>() + self.rest.len()
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

/// Writes a value with its name. Returns the part of a large value that is left.
fn write_item(out: &mut Vec<u8>, message: &Message<'_>, item: &FetchItem) -> Result<Bytes, UnknownEncoding> {
    let Message { selected, entry, view, properties, .. } = message;
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
                Some(value) => return Ok(write_value(out, slice(value, *partial), false)),
                None => out.extend_from_slice(b" NIL"),
            }
        }
        (FetchItem::Binary { part, partial, .. }, Some(view)) => {
            write_binary_name(out, "BINARY", part);
            if let Some((origin, _)) = partial {
                let _ = write!(out, "<{origin}>");
            }
            match view.binary(part) {
                Some(Ok(value)) => return Ok(write_value(out, slice(value, *partial), true)),
                Some(Err(error)) => {
                    out.extend_from_slice(b" NIL");
                    return Err(error);
                }
                None => out.extend_from_slice(b" NIL"),
            }
        }
        (FetchItem::BinarySize(part), Some(view)) => {
            write_binary_name(out, "BINARY.SIZE", part);
            let content = view.binary(part).transpose();
            let size = content.as_ref().map_or(0, |content| content.as_ref().map_or(0, Bytes::len));
            let _ = write!(out, " {size}");
            return content.map(|_| Bytes::new());
        }
        (_, None) => {}
    }
    Ok(Bytes::new())
}

/// Writes a space and a literal. NUL is only allowed in a literal8 (RFC 3516). Returns a large value instead of writing it.
fn write_value(out: &mut Vec<u8>, value: Bytes, is_binary: bool) -> Bytes {
    out.extend_from_slice(if is_binary && memchr::memchr(0, &value).is_some() { b" ~{" } else { b" {" });
    write_number(out, value.len() as u64);
    out.extend_from_slice(b"}\r\n");
    if value.len() >= MIN_LARGE_BYTES {
        return value;
    }
    out.extend_from_slice(&value);
    Bytes::new()
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
