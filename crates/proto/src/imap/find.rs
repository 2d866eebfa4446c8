//! SEARCH, SORT and THREAD. Keys that do not need the messages are evaluated at once; the sources of the other messages are
//! read in batches.

use std::collections::HashMap;
use std::io::Write as _;
use std::ops::Range;

use bytes::Bytes;
use jiff::Timestamp;
use restante_mail::message::MessageId;

use super::command::{Flag, Search, SearchKey, SearchReturn, SortCriterion};
use super::commands::flag_of;
use super::reply::{self, write_set};
use super::search::{Known, Query, SearchError, SearchNeeds};
use super::selected::{Entry, Selected};
use super::sort::{SortEntry, needs_header, sort};
use super::task::{BATCH_BYTES, BATCH_MESSAGES, Completion, Context, Step, Task};
use super::thread::{ThreadEntry, thread};
use super::view::MessageView;
use super::{Operation, Outcome};

/// After this number of messages other sessions continue.
const MESSAGES_PER_STEP: usize = 5000;

/// The form of the result.
#[derive(Debug)]
pub(super) enum Form {
    /// SEARCH, with the options of RETURN.
    Search { returns: Option<Vec<SearchReturn>> },
    /// SORT.
    Sort(Vec<SortCriterion>),
    /// THREAD.
    Thread,
}

impl Form {
    /// Returns whether the result contains values of the headers of the messages that match.
    fn needs_header(&self) -> bool {
        match self {
            Self::Search { .. } => false,
            Self::Sort(criteria) => needs_header(criteria),
            Self::Thread => true,
        }
    }
}

/// SEARCH, SORT or THREAD.
#[derive(Debug)]
pub(super) struct FindTask {
    tag: String,
    form: Form,
    is_uid: bool,
    query: Query,
    needs: SearchNeeds,
    /// Whether the search has the key MODSEQ.
    pub(super) has_modseq: bool,
    stage: Stage,
    /// The messages whose source is needed, in descending order, and whether they match, if that is known.
    queue: Vec<(usize, bool)>,
    /// The messages of the current operation.
    batch: Vec<(usize, bool)>,
    /// The ids of messages by those of their copies, if the search needs them.
    message_ids: HashMap<MessageId, MessageId>,
    matched: Vec<usize>,
    sort_entries: Vec<SortEntry>,
    thread_entries: Vec<ThreadEntry>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The ids of messages are read, up to this index.
    Ids(usize),
    /// The messages from this index on are not evaluated.
    Known(usize),
    /// The sources are read.
    Sources,
}

/// A message as a search sees it.
struct Candidate<'a> {
    selected: &'a Selected,
    index: usize,
    entry: &'a Entry,
    message_id: MessageId,
}

impl Known for Candidate<'_> {
    fn sequence(&self) -> u32 {
        u32::try_from(self.index + 1).unwrap_or(u32::MAX)
    }

    fn uid(&self) -> u32 {
        self.entry.uid
    }

    fn has_flag(&self, flag: &Flag) -> bool {
        match flag {
            Flag::Seen => self.entry.is_seen,
            Flag::System => false,
            Flag::Keyword(tag) => self.selected.tags(self.entry).contains(tag),
            Flag::Answered | Flag::Flagged | Flag::Deleted | Flag::Draft => self.entry.flags.contains(flag_of(flag)),
        }
    }

    fn is_recent(&self) -> bool {
        self.entry.is_recent
    }

    fn received(&self) -> Timestamp {
        self.entry.received()
    }

    fn size(&self) -> u64 {
        self.entry.size()
    }

    fn modseq(&self) -> u64 {
        self.entry.modseq
    }

    fn has_email_id(&self, id: &str) -> bool {
        id.strip_prefix('M') == Some(self.message_id.to_string().as_str())
    }
}

impl FindTask {
    /// Prepares the command. If it saves its result, nothing is saved until it is complete: RFC 5182 section 2.1 requires
    /// that after NO.
    pub(super) fn new(
        selected: &mut Selected,
        form: Form,
        search: &Search,
        tag: &str,
        now: Timestamp,
    ) -> Result<Self, Completion> {
        let last_uid = selected.entries().last().map_or(0, |entry| entry.uid);
        let query = Query::new(search, selected.count(), last_uid, &selected.saved, now);
        if search.returns.iter().flatten().any(|item| *item == SearchReturn::Save) {
            selected.saved = Vec::new();
        }
        let query = query.map_err(|error| match error {
            SearchError::BadCharset => Completion::no("[BADCHARSET (US-ASCII UTF-8)] ", "The charset is unknown"),
            SearchError::TooManyTexts => Completion::no("[LIMIT] ", "The search has too many texts"),
        })?;
        let form_needs = if form.needs_header() { SearchNeeds::Header } else { SearchNeeds::Known };
        let needs_ids = contains(&search.key, &|key| matches!(key, SearchKey::EmailId(_)));
        Ok(Self {
            tag: tag.to_owned(),
            form,
            is_uid: search.is_uid,
            needs: query.needs().max(form_needs),
            query,
            has_modseq: contains(&search.key, &|key| matches!(key, SearchKey::ModSeq(_))),
            stage: if needs_ids { Stage::Ids(0) } else { Stage::Known(0) },
            queue: Vec::new(),
            batch: Vec::new(),
            message_ids: HashMap::new(),
            matched: Vec::new(),
            sort_entries: Vec::new(),
            thread_entries: Vec::new(),
        })
    }

    fn candidate<'a>(&self, selected: &'a Selected, index: usize) -> Option<Candidate<'a>> {
        let entry = selected.entries().get(index).filter(|entry| !entry.is_gone)?;
        let message_id = self.message_ids.get(&entry.id).copied().unwrap_or(entry.id);
        Some(Candidate { selected, index, entry, message_id })
    }

    /// Evaluates messages as far as that is possible without their sources.
    fn evaluate(&mut self, selected: &Selected, indices: Range<usize>) {
        for index in indices {
            let Some(candidate) = self.candidate(selected, index) else { continue };
            match self.query.decide(&candidate) {
                Some(false) => {}
                Some(true) if !self.form.needs_header() => self.add(selected, index, None),
                decision => self.queue.push((index, decision.is_some())),
            }
        }
    }

    /// Adds a message to the result.
    fn add(&mut self, selected: &Selected, index: usize, view: Option<&MessageView>) {
        let Some(candidate) = self.candidate(selected, index) else { return };
        match (&self.form, view) {
            (Form::Sort(criteria), view) => self.sort_entries.push(SortEntry::new(&candidate, view, criteria)),
            (Form::Thread, Some(view)) => {
                self.thread_entries.push(ThreadEntry::new(&candidate, view, self.is_uid));
            }
            (Form::Search { .. } | Form::Thread, _) => {}
        }
        self.matched.push(index);
    }

    fn add_sources(&mut self, selected: &Selected, sources: Vec<Option<Bytes>>) {
        for ((index, is_match), source) in std::mem::take(&mut self.batch).into_iter().zip(sources) {
            let Some(source) = source else { continue };
            let view = match self.needs {
                SearchNeeds::Message => MessageView::parse(source),
                SearchNeeds::Header | SearchNeeds::Known => MessageView::parse(header_of(&source)),
            };
            let is_match = is_match
                || self.candidate(selected, index).is_some_and(|candidate| self.query.matches(&candidate, &view));
            if is_match {
                self.add(selected, index, Some(&view));
            }
        }
    }

    fn next_sources(&mut self, selected: &Selected) -> Option<Operation> {
        let (mut bytes, mut ids) = (0, Vec::new());
        while self.batch.len() < BATCH_MESSAGES
            && bytes < BATCH_BYTES
            && let Some((index, is_match)) = self.queue.pop()
        {
            let Some(entry) = selected.entries().get(index).filter(|entry| !entry.is_gone) else { continue };
            bytes += entry.size();
            ids.push(entry.id);
            self.batch.push((index, is_match));
        }
        (!ids.is_empty()).then_some(Operation::Sources { ids, bytes })
    }

    /// Writes the result. Saves it for `$` if the client has requested it.
    fn finish(&mut self, selected: &mut Selected, out: &mut Vec<u8>, is_rev2: bool) -> Completion {
        self.matched.sort_unstable();
        let name = match std::mem::replace(&mut self.form, Form::Thread) {
            Form::Search { returns: None } if !is_rev2 => {
                self.write_plain(selected, out);
                "SEARCH completed"
            }
            Form::Search { returns } => {
                self.write_extended(selected, out, &returns.unwrap_or_default());
                "SEARCH completed"
            }
            Form::Sort(criteria) => {
                sort(&mut self.sort_entries, &criteria);
                out.extend_from_slice(b"* SORT");
                for entry in &self.sort_entries {
                    let _ = write!(out, " {}", if self.is_uid { entry.uid } else { entry.sequence });
                }
                self.write_modseq(selected, out);
                out.extend_from_slice(b"\r\n");
                "SORT completed"
            }
            Form::Thread => {
                out.extend_from_slice(b"* THREAD ");
                thread(std::mem::take(&mut self.thread_entries)).write(out);
                if out.ends_with(b" ") {
                    out.pop();
                }
                out.extend_from_slice(b"\r\n");
                "THREAD completed"
            }
        };
        Completion::ok(name)
    }

    fn write_plain(&self, selected: &Selected, out: &mut Vec<u8>) {
        out.extend_from_slice(b"* SEARCH");
        for number in self.numbers(selected) {
            let _ = write!(out, " {number}");
        }
        self.write_modseq(selected, out);
        out.extend_from_slice(b"\r\n");
    }

    /// Writes ESEARCH (RFC 4731, RFC 5182).
    fn write_extended(&self, selected: &mut Selected, out: &mut Vec<u8>, returns: &[SearchReturn]) {
        let has = |item| returns.contains(&item);
        let numbers: Vec<u32> = self.numbers(selected).collect();
        if has(SearchReturn::Save) {
            let saves_all = has(SearchReturn::All)
                || has(SearchReturn::Count)
                || !(has(SearchReturn::Min) || has(SearchReturn::Max));
            let uids = self.matched.iter().filter_map(|&index| selected.entries().get(index)).map(|entry| entry.uid);
            let mut uids: Vec<u32> = uids.collect();
            if !saves_all {
                let (first, last) = (uids.first().copied(), uids.last().copied());
                uids = first
                    .filter(|_| has(SearchReturn::Min))
                    .into_iter()
                    .chain(last.filter(|_| has(SearchReturn::Max)))
                    .collect();
                uids.dedup();
            }
            selected.saved = uids;
            if returns.len() == 1 {
                return;
            }
        }
        out.extend_from_slice(b"* ESEARCH (TAG ");
        super::write::write_string(out, self.tag.as_bytes(), false);
        out.extend_from_slice(if self.is_uid { b") UID" } else { b")" });
        if has(SearchReturn::Min)
            && let Some(first) = numbers.first()
        {
            let _ = write!(out, " MIN {first}");
        }
        if has(SearchReturn::Max)
            && let Some(last) = numbers.last()
        {
            let _ = write!(out, " MAX {last}");
        }
        if (has(SearchReturn::All) || returns.is_empty()) && !numbers.is_empty() {
            out.extend_from_slice(b" ALL ");
            write_set(out, numbers.iter().copied());
        }
        if has(SearchReturn::Count) {
            let _ = write!(out, " COUNT {}", numbers.len());
        }
        let only_ends = !returns.is_empty()
            && returns.iter().all(|item| matches!(item, SearchReturn::Min | SearchReturn::Max | SearchReturn::Save));
        let (first, last) = (self.matched.first(), self.matched.last());
        let reported: Vec<usize> = if only_ends {
            let ends =
                first.filter(|_| has(SearchReturn::Min)).into_iter().chain(last.filter(|_| has(SearchReturn::Max)));
            ends.copied().collect()
        } else {
            self.matched.clone()
        };
        if let Some(modseq) = self.highest_modseq(selected, &reported) {
            let _ = write!(out, " MODSEQ {modseq}");
        }
        out.extend_from_slice(b"\r\n");
    }

    fn numbers<'a>(&'a self, selected: &'a Selected) -> impl Iterator<Item = u32> + 'a {
        self.matched.iter().filter_map(move |&index| {
            let uid = || selected.entries().get(index).map(|entry| entry.uid);
            if self.is_uid { uid() } else { u32::try_from(index + 1).ok() }
        })
    }

    /// Returns the highest MODSEQ of the reported messages, if the search contains MODSEQ (RFC 7162 section 3.1.5).
    fn highest_modseq(&self, selected: &Selected, reported: &[usize]) -> Option<u64> {
        let entries = reported.iter().filter_map(|&index| selected.entries().get(index));
        entries.map(|entry| entry.modseq).max().filter(|_| self.has_modseq)
    }

    fn write_modseq(&self, selected: &Selected, out: &mut Vec<u8>) {
        if let Some(modseq) = self.highest_modseq(selected, &self.matched) {
            let _ = write!(out, " (MODSEQ {modseq})");
        }
    }
}

impl Task for FindTask {
    fn advance(&mut self, context: &mut Context<'_>, outcome: Option<Outcome>) -> Step {
        let is_rev2 = context.enabled.rev2;
        let Some(selected) = context.selected.as_mut() else { return Step::Done(Completion::bad(reply::SELECT_FIRST)) };
        if let Stage::Ids(mut index) = self.stage {
            if let Some(Outcome::Properties(properties)) = &outcome {
                for properties in properties {
                    if let (Some(entry), Some(properties)) = (selected.entries().get(index), properties) {
                        self.message_ids.insert(entry.id, properties.message);
                    }
                    index += 1;
                }
            }
            let ids: Vec<MessageId> =
                selected.entries().iter().skip(index).take(BATCH_MESSAGES).map(|entry| entry.id).collect();
            self.stage = if ids.is_empty() { Stage::Known(0) } else { Stage::Ids(index) };
            if !ids.is_empty() {
                return Step::Perform(Operation::Properties(ids));
            }
        }
        if let Stage::Known(start) = self.stage {
            let count = selected.entries().len();
            let end = count.min(start + MESSAGES_PER_STEP);
            self.evaluate(selected, start..end);
            if end < count {
                self.stage = Stage::Known(end);
                return Step::Write;
            }
            self.queue.reverse();
            self.stage = Stage::Sources;
        } else if let Some(Outcome::Sources(sources)) = outcome {
            self.add_sources(selected, sources);
        }
        match self.next_sources(selected) {
            Some(operation) => Step::Perform(operation),
            None => Step::Done(self.finish(selected, context.out, is_rev2)),
        }
    }
}

/// Returns the header of a message.
fn header_of(source: &Bytes) -> Bytes {
    let end = memchr::memmem::find(source, b"\r\n\r\n").map_or(source.len(), |end| end + 4);
    source.slice(..end)
}

/// Returns whether a key, or one inside of it, fulfils the condition. Parsing limits the depth.
fn contains(key: &SearchKey, condition: &impl Fn(&SearchKey) -> bool) -> bool {
    condition(key)
        || match key {
            SearchKey::And(keys) => keys.iter().any(|key| contains(key, condition)),
            SearchKey::Or(a, b) => contains(a, condition) || contains(b, condition),
            SearchKey::Not(key) => contains(key, condition),
            _ => false,
        }
}
