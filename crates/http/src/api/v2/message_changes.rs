//! Changes of many messages as a whole in one request: of those whose ids are in the body, and of those that match a query.
//! They apply to the copies that the client may access. Messages are found and changed in batches. After an error, the
//! messages of earlier batches are changed. If the client disconnects, a change by ids completes, and a change by a query
//! ends after the current batch.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use restante_auth::Grant;
use restante_mail::message::{Message, MessageId};
use restante_store::MessageSelector;
use serde_json::Value;

use crate::api::v2::batch::{Deleted, MAX_BODY_BYTES, Marked, parse_ids, parse_mark};
use crate::api::v2::messages::copy_keys;
use crate::extractors::body;
use crate::extractors::cancellation::Cancellation;
use crate::extractors::messages::MessageFilter;
use crate::extractors::parameters::RequestGrant;
use crate::response::problem::{Problem, internal_error};
use crate::response::success;
use crate::state::Server;
use crate::state::messages::{MessagePage, MessageRange, permitted_copies};

/// The maximum number of ids in a request. All copies of these messages are changed.
const MAX_IDS: usize = 20_000;
/// The number of messages that are found and changed at once.
const BATCH_SIZE: usize = 200;
/// The number of messages that are looked up concurrently.
const CONCURRENT_LOOKUPS: usize = 16;
/// The maximum size of a request body without ids.
const MAX_SMALL_BODY_BYTES: usize = 64 * 1024;

const SEEN_SHAPE: &str = "{\"seen\": true} or {\"seen\": false}";
const IDS_SHAPE: &str = "{\"ids\": [\"…\"]}, with at most 20,000 ids as strings";
const MARK_SHAPE: &str = "{\"ids\": [\"…\"], \"seen\": true} or false, with at most 20,000 ids as strings";

type HandlerResult = Result<Response, Problem>;

/// Marks the messages that match a query, and that existed when the request arrived.
pub(crate) async fn mark_matching(
    State(server): State<Arc<Server>>,
    RequestGrant(grant): RequestGrant,
    filter: MessageFilter,
    cancellation: Cancellation,
    request: Request,
) -> HandlerResult {
    let value = body::read_json::<Value>(request, MAX_SMALL_BODY_BYTES).await?;
    let seen = parse_seen(value.as_ref()).ok_or(Problem::WrongShape(SEEN_SHAPE))?;
    let marked = server.change_matching(&grant, &filter, Change::Mark { seen }, &cancellation).await?;
    success::no_store_json(&Marked { marked })
}

/// Deletes the messages that match a query, and that existed when the request arrived.
pub(crate) async fn delete_matching(
    State(server): State<Arc<Server>>,
    RequestGrant(grant): RequestGrant,
    filter: MessageFilter,
    cancellation: Cancellation,
) -> HandlerResult {
    let deleted = match &filter {
        MessageFilter { mailbox: Some(mailbox), query: None } => server.mailroom.purge(mailbox).await?,
        filter => server.change_matching(&grant, filter, Change::Delete, &cancellation).await?,
    };
    success::no_store_json(&Deleted { deleted })
}

/// Marks the messages in the request. Messages that do not exist do not count.
pub(crate) async fn mark(
    State(server): State<Arc<Server>>,
    RequestGrant(grant): RequestGrant,
    cancellation: Cancellation,
    request: Request,
) -> HandlerResult {
    let value = body::read_json::<Value>(request, MAX_BODY_BYTES).await?;
    let parsed = parse_mark(value.as_ref()).filter(|_| has_few_ids(value.as_ref()));
    let (ids, seen) = parsed.ok_or(Problem::WrongShape(MARK_SHAPE))?;
    let marked = server.change_ids(grant, ids, Change::Mark { seen }, &cancellation).await?;
    success::no_store_json(&Marked { marked })
}

/// Deletes the messages in the request. Messages that do not exist do not count.
pub(crate) async fn delete(
    State(server): State<Arc<Server>>,
    RequestGrant(grant): RequestGrant,
    cancellation: Cancellation,
    request: Request,
) -> HandlerResult {
    let value = body::read_json::<Value>(request, MAX_BODY_BYTES).await?;
    let parsed = parse_ids(value.as_ref()).filter(|_| has_few_ids(value.as_ref()));
    let ids = parsed.ok_or(Problem::WrongShape(IDS_SHAPE))?;
    let deleted = server.change_ids(grant, ids, Change::Delete, &cancellation).await?;
    success::no_store_json(&Deleted { deleted })
}

/// A change of messages.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// Marks them as seen or unseen.
    Mark {
        /// Whether they are marked as seen.
        seen: bool,
    },
    /// Deletes them.
    Delete,
}

impl Server {
    /// Changes the messages that match a filter, and that exist now. Returns their number.
    async fn change_matching(
        &self,
        grant: &Grant,
        filter: &MessageFilter,
        change: Change,
        cancellation: &Cancellation,
    ) -> Result<usize, Problem> {
        let last = self.mailroom.last_id().await?;
        let before = Some(last.number().saturating_add(1).into());
        let (mut range, mut count) = (MessageRange { before, after: None, limit: BATCH_SIZE }, 0);
        loop {
            let find = self.matching_messages(grant, filter, range);
            let MessagePage { messages, next } = cancellation.run_until_cancelled(find).await?;
            count += self.change_messages(messages, change).await?;
            if next.is_none() {
                return Ok(count);
            }
            range.before = next;
        }
    }

    /// Returns a page of the messages that match a filter. With a mailbox these are its copies, each as a message of its
    /// own.
    async fn matching_messages(
        &self,
        grant: &Grant,
        MessageFilter { mailbox, query }: &MessageFilter,
        range: MessageRange,
    ) -> Result<MessagePage, Problem> {
        match (query, mailbox) {
            (Some(query), mailbox) => {
                let found = self.search_messages(grant, mailbox.as_ref(), query, range).await?;
                if found.is_complete { Ok(found.page) } else { Err(Problem::IncompleteIndex) }
            }
            (None, None) if !grant.covers_all_mailboxes() => self.scan_messages(grant, range).await,
            (None, mailbox) => Ok(self.read_list(mailbox.as_ref(), range).await?.1),
        }
    }

    /// Changes the messages with these ids, unless the request is canceled already. Returns how many of them the client
    /// may access. The change runs in its own task, so that it completes even if the client disconnects.
    async fn change_ids(
        self: Arc<Self>,
        grant: Grant,
        ids: Vec<MessageId>,
        change: Change,
        cancellation: &Cancellation,
    ) -> Result<usize, Problem> {
        cancellation.check().await?;
        let task = async move { self.change_each_batch(&grant, &ids, change).await };
        tokio::spawn(task).await.map_err(|error| internal_error(&error))?
    }

    /// Changes the messages with these ids in batches, so that only those of one batch are in memory.
    async fn change_each_batch(&self, grant: &Grant, ids: &[MessageId], change: Change) -> Result<usize, Problem> {
        let mut count = 0;
        for batch in ids.chunks(BATCH_SIZE) {
            let find = |&id: &MessageId| self.mailroom.find_message(MessageSelector::Id(id));
            let lookups: Vec<_> = batch.iter().map(find).collect();
            let found: Vec<_> = stream::iter(lookups).buffered(CONCURRENT_LOOKUPS).try_collect().await?;
            let messages = found.into_iter().flatten().filter_map(|message| permitted_copies(grant, message));
            count += self.change_messages(messages.collect(), change).await?;
        }
        Ok(count)
    }

    /// Changes these copies of messages. Returns the number of messages that still existed.
    async fn change_messages(&self, messages: Vec<Message>, change: Change) -> Result<usize, Problem> {
        match change {
            Change::Mark { seen } => {
                let is_marked = |message: &Message| message.copies().iter().all(|copy| copy.seen == seen);
                let (marked, rest): (Vec<_>, Vec<_>) = messages.into_iter().partition(is_marked);
                let changed_copies = self.mailroom.mark_copies(rest.iter().flat_map(copy_keys).collect(), seen).await?;
                Ok(marked.len() + changed_messages(&rest, changed_copies))
            }
            Change::Delete => {
                let removed_copies = self.mailroom.remove_copies(messages.iter().flat_map(copy_keys).collect()).await?;
                Ok(changed_messages(&messages, removed_copies))
            }
        }
    }
}

/// Returns the mark in a request that has no other member.
fn parse_seen(value: Option<&Value>) -> Option<bool> {
    let members = value?.as_object().filter(|members| members.len() == 1)?;
    members.get("seen")?.as_bool()
}

/// Returns whether the number of ids in a request is within the limit.
fn has_few_ids(value: Option<&Value>) -> bool {
    value.and_then(|value| value.get("ids")?.as_array()).is_some_and(|ids| ids.len() <= MAX_IDS)
}

/// Returns how many of the messages were changed with this number of copies. Other requests may have deleted some of the
/// copies. Then this is the smallest number of messages that can have this number of copies.
fn changed_messages(messages: &[Message], changed_copies: usize) -> usize {
    let mut counts: Vec<usize> = messages.iter().map(|message| message.copies().len()).collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let mut rest = changed_copies;
    let is_changed = |count: usize| {
        let is_changed = rest > 0;
        rest = rest.saturating_sub(count);
        is_changed
    };
    counts.into_iter().map(is_changed).take_while(|is_changed| *is_changed).count()
}
