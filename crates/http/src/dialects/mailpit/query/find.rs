//! Finds the messages that match a query, the newest first.
//!
//! Most terms are decided from the summaries, which are read in batches. Words and phrases are searched in the sources of
//! the newest messages for which the summary does not decide. For older messages the index of the server's own search
//! decides, if it is enabled: it finds words by their beginnings, not parts of words. An older message does not match if the
//! source is needed for another term. Changes need a complete result.
//!
//! A search never holds a permit while it waits for another one, and gives each permit back after one batch, so that other
//! requests wait for a batch at most. The number of bytes that all terms together are compared with is limited, and so the
//! time of a search.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use restante_auth::Grant;
use restante_http_connection::work::WorkPermit;
use restante_mail::message::{Message, MessageId, Summary};
use restante_search::SearchError;
use restante_store::Page;

use crate::dialects::mailpit::query::Query;
use crate::dialects::mailpit::query::evaluate::Decision;
use crate::dialects::mailpit::query::indexed::IndexedMatches;
use crate::response::problem::Problem;
use crate::state::Server;
use crate::state::messages::permitted_copies;

/// The number of messages whose summaries are read at once. Each of them can have many copies.
const BATCH: usize = 200;
/// The number of messages about which a search decides first. This number doubles up to a batch, so that a search for the
/// latest message reads few sources if a recent one matches.
const FIRST_GROUP: usize = 8;
/// The maximum number of messages whose summaries a request reads.
const MAX_SEARCHED_MESSAGES: usize = 500_000;
/// The maximum number of messages whose sources a request reads, and the maximum size of these sources together.
pub(crate) const MAX_READ_MESSAGES: usize = 2000;
const MAX_READ_BYTES: u64 = 256 << 20;
/// The maximum size of the sources that are in memory at once, unless a single one is larger.
const MAX_CHUNK_BYTES: u64 = 1 << 20;

/// The state of one search.
struct Finder<'s> {
    server: &'s Server,
    query: Arc<Query>,
    read_messages: usize,
    read_bytes: u64,
    /// The number of bytes that terms may still be compared with.
    bytes_left: u64,
    /// The matches of the index, from the first message on that is too old to be read.
    indexed: Option<IndexedMatches<'s>>,
    /// False if the search could not decide about some messages.
    is_complete: bool,
}

impl Server {
    /// Calls `visit` with the messages that match a query, the newest first, until it breaks. They have the copies that
    /// the grant allows, and were received before the time `before`, if there is one. Returns false if the search stopped
    /// at the limit on messages, or could not decide about some of them. Only one request at a time reads a batch after
    /// its first one. Fails if the search takes too long.
    pub(crate) async fn visit_matches(
        &self,
        grant: &Grant,
        query: &Arc<Query>,
        before: Option<Timestamp>,
        mut visit: impl FnMut(Message) -> ControlFlow<()>,
    ) -> Result<bool, Problem> {
        let mut finder = Finder {
            server: self,
            query: query.clone(),
            read_messages: 0,
            read_bytes: 0,
            bytes_left: self.max_compared_bytes,
            indexed: None,
            is_complete: true,
        };
        let (mut scanned, mut group_size) = (0, FIRST_GROUP);
        let mut page = Page { before: None, after: None, limit: Some(BATCH) };
        loop {
            let mut permit = None;
            if scanned > 0 {
                self.continue_scan(&mut permit).await?;
            }
            let messages = self.mailroom.messages(page).await?.messages;
            drop(permit);
            let is_last = messages.len() < BATCH;
            scanned += messages.len();
            page.before = messages.first().map(Message::id);
            let is_in_range = |message: &Message| {
                before.is_none_or(|before| message.first().received.as_millisecond() < before.as_millisecond())
            };
            let permitted = messages.into_iter().rev().filter_map(|message| permitted_copies(grant, message));
            let mut rest: VecDeque<Message> = permitted.filter(is_in_range).collect();
            while !rest.is_empty() {
                let group = rest.drain(..rest.len().min(group_size)).collect();
                group_size = BATCH.min(2 * group_size);
                for message in finder.select(grant, group).await? {
                    if visit(message).is_break() {
                        return Ok(finder.is_complete);
                    }
                }
            }
            if is_last {
                return Ok(finder.is_complete);
            }
            if scanned >= MAX_SEARCHED_MESSAGES {
                return Ok(false);
            }
        }
    }

    /// Returns the ids of all messages that match a query and exist now. Fails if it cannot decide about all of them.
    pub(crate) async fn all_matches(&self, grant: &Grant, query: &Arc<Query>) -> Result<Vec<MessageId>, Problem> {
        let mut ids = Vec::new();
        let visit = |message: Message| {
            ids.push(message.id());
            ControlFlow::Continue(())
        };
        let is_complete = self.visit_matches(grant, query, None, visit).await?;
        if is_complete { Ok(ids) } else { Err(Problem::UndecidedMatches) }
    }
}

impl Finder<'_> {
    /// Returns those of these messages that match, in the same order.
    async fn select(&mut self, grant: &Grant, messages: Vec<Message>) -> Result<Vec<Message>, Problem> {
        let mut candidates = self.check_summaries(messages).await?;
        let mut undecided: Vec<_> = candidates.iter_mut().filter(|(decision, _)| decision.is_undecided()).collect();
        let read = self.read(&mut undecided).await?;
        for (decision, message) in &mut undecided[read..] {
            self.is_complete = false;
            // The index knows only the texts.
            let is_match = *decision == Decision::UndecidedTexts && self.check_index(grant, message).await?;
            *decision = if is_match { Decision::Match } else { Decision::NoMatch };
        }
        Ok(candidates
            .into_iter()
            .filter(|(decision, _)| *decision == Decision::Match)
            .map(|(_, message)| message)
            .collect())
    }

    /// Decides from the summaries of messages. Returns those that match or may match, in the same order.
    async fn check_summaries(&mut self, messages: Vec<Message>) -> Result<Vec<(Decision, Message)>, Problem> {
        let texts = messages.iter().flat_map(Message::copies).map(Summary::text_len).sum::<usize>();
        self.count_comparisons(texts as u64)?;
        let work = self.server.work_permit(texts.saturating_mul(self.query.terms.len())).await?;
        let query = self.query.clone();
        let check = move || {
            let decided = messages.into_iter().map(|message| (query.check_summary(&message), message));
            decided.filter(|(decision, _)| *decision != Decision::NoMatch).collect()
        };
        Ok(work.run(check).await?)
    }

    /// Decides from the sources of messages, in order, until a limit is reached. Returns the number of decided messages.
    async fn read(&mut self, undecided: &mut [&mut (Decision, Message)]) -> Result<usize, Problem> {
        let mut done = 0;
        while done < undecided.len() && self.read_messages < MAX_READ_MESSAGES && self.read_bytes < MAX_READ_BYTES {
            let (mut bytes, mut count) = (0, 0);
            for (_, message) in &undecided[done..] {
                bytes += message.first().size;
                if count > 0 && bytes > MAX_CHUNK_BYTES || self.read_messages + count >= MAX_READ_MESSAGES {
                    break;
                }
                count += 1;
            }
            let chunk = &mut undecided[done..done + count];
            self.count_comparisons(chunk.iter().map(|(_, message)| message.first().size).sum())?;
            let decisions = self.read_chunk(chunk.iter().map(|(_, message)| message)).await?;
            for ((decision, message), is_match) in chunk.iter_mut().map(|entry| &mut **entry).zip(decisions) {
                *decision = if is_match { Decision::Match } else { Decision::NoMatch };
                self.read_bytes += message.first().size;
            }
            self.read_messages += count;
            done += count;
        }
        Ok(done)
    }

    /// Counts the comparison of all terms with texts of this length. Fails if that takes too long.
    fn count_comparisons(&mut self, bytes: u64) -> Result<(), Problem> {
        let compared = bytes.saturating_mul(self.query.terms.len() as u64);
        self.bytes_left = self.bytes_left.checked_sub(compared).ok_or(Problem::Search(SearchError::Timeout))?;
        Ok(())
    }

    /// Returns which of these messages match, by their sources. A message that does not exist any more does not match.
    async fn read_chunk<'m>(&self, messages: impl Iterator<Item = &'m Message>) -> Result<Vec<bool>, Problem> {
        // The permit is acquired first, so that no sources are in memory while it is waited for.
        let work = WorkPermit::acquire(&self.server.work_permits).await?;
        let mut sources: Vec<(Message, Option<Bytes>)> = Vec::new();
        for message in messages {
            let first = message.first();
            let source = self.server.mailroom.source(&first.mailbox, first.id).await?;
            sources.push((message.clone(), source.map(|source| source.to_bytes())));
        }
        let query = self.query.clone();
        let evaluate = move || {
            let matches = |(message, source): (Message, Option<Bytes>)| {
                source.is_some_and(|source| query.matches_source(&message, source))
            };
            sources.into_iter().map(matches).collect()
        };
        Ok(work.run(evaluate).await?)
    }

    /// Returns whether a message that is too old to be read matches the texts of the query, as far as the index knows.
    async fn check_index(&mut self, grant: &Grant, message: &Message) -> Result<bool, Problem> {
        let (server, query) = (self.server, &self.query);
        let indexed = self.indexed.get_or_insert_with(|| IndexedMatches::new(server, grant, query, message));
        indexed.contains(message.id()).await
    }
}
