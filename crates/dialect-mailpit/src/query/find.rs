//! Finds the messages that match a query, the newest first.
//!
//! Most terms are decided from the summaries, which are read in batches. Words and phrases are searched in the sources of
//! the newest messages for which the summary does not decide. For older messages the index of the server's own search
//! decides, if it is enabled: it finds words by their beginnings, not parts of words. An older message does not match if the
//! source is needed for another term. Changes need a complete result. The search texts of the newest messages are cached,
//! because a client that waits for a message or shows a list of matches repeats its search.
//!
//! A search never holds a permit while it waits for another one, and gives each permit back after one batch, so that other
//! requests wait for a batch at most. The number of bytes that all terms together are compared with is limited, and so the
//! time of a search.

use std::collections::{HashSet, VecDeque};
use std::hash::BuildHasher as _;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use restante_auth::Grant;
use restante_http_connection::work::WorkPermit;
use restante_http_core::messages::permitted_copies;
use restante_http_core::render::CacheKey;
use restante_http_core::response::problem::Problem;
use restante_http_core::server::Server;
use restante_mail::message::{Message, MessageId, Summary};
use restante_search::SearchError;
use restante_store::Page;

use crate::query::Query;
use crate::query::evaluate::Decision;
use crate::query::indexed::{CopyRange, IndexedMatches};

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
/// A search uses the response cache divided by this number for search texts. These are the texts of the newest messages. If
/// it used more, it would evict the texts that the next search needs first.
const CACHE_DIVISOR: usize = 2;
/// The maximum size of the sources that are in memory at once, unless a single one is larger.
const MAX_CHUNK_BYTES: u64 = 1 << 20;

/// The state of one search.
struct Finder<'s> {
    server: &'s Server,
    query: Arc<Query>,
    read_messages: usize,
    read_bytes: u64,
    /// The size of the search texts that may still be read from the cache or added to it.
    cache_bytes_left: usize,
    /// The number of bytes that terms may still be compared with.
    bytes_left: u64,
    /// The matches of the index, from the first message on that is too old to be read.
    indexed: Option<IndexedMatches<'s>>,
    /// False if the search could not decide about some messages.
    is_complete: bool,
}

/// What is known of a message beyond its summary.
enum MessageContent {
    /// Its search text, from the cache.
    SearchText(Bytes),
    /// Its source, and the key and the version with which its search text is cached.
    Source(Bytes, Option<(CacheKey, u64)>),
    /// The message does not exist any more.
    Deleted,
}

/// Calls `visit` with the messages that match a query, the newest first, until it breaks. They have the copies that
/// the grant allows, and were received before the time `before`, if there is one. Returns false if the search stopped
/// at the limit on messages, or could not decide about some of them. Only one request at a time reads a batch after
/// its first one. Fails if the search takes too long.
pub(crate) async fn visit_matches(
    server: &Server,
    grant: &Grant,
    query: &Arc<Query>,
    before: Option<Timestamp>,
    mut visit: impl FnMut(Message) -> ControlFlow<()>,
) -> Result<bool, Problem> {
    let mut finder = Finder {
        server,
        query: query.clone(),
        read_messages: 0,
        read_bytes: 0,
        cache_bytes_left: server.settings.cache_bytes / CACHE_DIVISOR,
        bytes_left: server.max_compared_bytes,
        indexed: None,
        is_complete: true,
    };
    let (mut scanned, mut group_size) = (0, FIRST_GROUP);
    let mut page = Page { before: None, after: None, limit: Some(BATCH) };
    loop {
        let mut permit = None;
        if scanned > 0 {
            server.messages.continue_scan(&mut permit).await?;
        }
        let messages = server.mailroom.messages(grant.home(), page).await?.messages;
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
pub(crate) async fn all_matches(server: &Server, grant: &Grant, query: &Arc<Query>) -> Result<Vec<MessageId>, Problem> {
    let mut ids = Vec::new();
    let visit = |message: Message| {
        ids.push(message.id());
        ControlFlow::Continue(())
    };
    let is_complete = visit_matches(server, grant, query, None, visit).await?;
    if is_complete { Ok(ids) } else { Err(Problem::UndecidedMatches) }
}

impl Finder<'_> {
    /// Returns those of these messages that match, in the same order.
    async fn select(&mut self, grant: &Grant, messages: Vec<Message>) -> Result<Vec<Message>, Problem> {
        let ranges: Vec<CopyRange> = messages.iter().map(CopyRange::new).collect();
        let mut candidates = self.check_summaries(messages).await?;
        let mut undecided: Vec<_> = candidates.iter_mut().filter(|(decision, _)| decision.is_undecided()).collect();
        let read = self.read(&mut undecided).await?;
        let too_old = &mut undecided[read..];
        // The index knows only the texts.
        if let Some((_, newest)) = too_old.iter().find(|(decision, _)| *decision == Decision::UndecidedTexts) {
            let (server, query) = (self.server, &self.query);
            self.indexed.get_or_insert_with(|| IndexedMatches::new(server, grant, query, newest));
        }
        let indexed = match &mut self.indexed {
            Some(indexed) => indexed.select(&ranges).await?,
            None => HashSet::new(),
        };
        for (decision, message) in too_old {
            self.is_complete = false;
            let is_match = *decision == Decision::UndecidedTexts && indexed.contains(&message.id());
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
        let work = self.server.renderer.work_permit(texts.saturating_mul(self.query.terms.len())).await?;
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
            let decisions = self.read_chunk(chunk).await?;
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

    /// Returns which of these messages match, by their search texts in the cache or by their sources. A message that does not
    /// exist any more does not match.
    async fn read_chunk(&mut self, messages: &[&mut (Decision, Message)]) -> Result<Vec<bool>, Problem> {
        // The permit is acquired first, so that no sources are in memory while it is waited for.
        let work = WorkPermit::acquire(&self.server.renderer.work_permits).await?;
        let mut contents: Vec<(Message, MessageContent)> = Vec::new();
        for (decision, message) in messages.iter().map(|entry| &**entry) {
            contents.push((message.clone(), self.load(*decision, message).await?));
        }
        let (query, cache) = (self.query.clone(), self.server.renderer.cache.clone());
        let evaluate = move || {
            let mut text_bytes = 0;
            let matches = |(message, content): (Message, MessageContent)| match content {
                MessageContent::SearchText(text) => {
                    text_bytes += text.len();
                    query.matches_search_text(&text)
                }
                MessageContent::Source(source, cache_key) => {
                    let (is_match, text) = query.check_source(&message, source);
                    if let (Some((key, version)), Some(text)) = (cache_key, text) {
                        text_bytes += text.len();
                        // The cache counts the length, so there must be no unused capacity.
                        cache.insert(key, version, text.into_boxed_str().into_boxed_bytes().into());
                    }
                    is_match
                }
                MessageContent::Deleted => false,
            };
            let decisions = contents.into_iter().map(matches).collect();
            (decisions, text_bytes)
        };
        let (decisions, text_bytes) = work.run(evaluate).await?;
        self.cache_bytes_left = self.cache_bytes_left.saturating_sub(text_bytes);
        Ok(decisions)
    }

    /// Returns what is needed to decide about a message.
    async fn load(&self, decision: Decision, message: &Message) -> Result<MessageContent, Problem> {
        let (server, first) = (self.server, message.first());
        let mut cache_key = None;
        if decision == Decision::UndecidedTexts && self.cache_bytes_left > 0 {
            let key = CacheKey::Message { name: "mailpit search text", id: message.id() };
            // The text has the recipients of the copies.
            let copies: Vec<MessageId> = message.copies().iter().map(|copy| copy.id).collect();
            let version = server.state_hasher.hash_one(copies);
            if let Some(text) = server.renderer.cache.get(&key, version) {
                return Ok(MessageContent::SearchText(text));
            }
            cache_key = Some((key, version));
        }
        let source = server.mailroom.source(&first.mailbox, first.id).await?;
        Ok(source.map_or(MessageContent::Deleted, |source| MessageContent::Source(source.to_bytes(), cache_key)))
    }
}
