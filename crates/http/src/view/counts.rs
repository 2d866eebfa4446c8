//! How many attachments the messages of a list have. Arriving mail is not looked at that closely, so this is found out
//! when somebody asks, and remembered: a message never changes.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::response::Response;
use restante_cache::{Answer, Cache};
use restante_mail::message::MessageId;
use restante_mail::mime::Mime;
use restante_mail::naming::MailboxName;
use restante_store::Which;

use crate::answers::source_length;
use crate::etag::Known;
use crate::problem::Problem;
use crate::target::{InMailbox, query, text};
use crate::{Server, json, reply};

/// How many messages may be asked about at once.
const MAX_IDS: usize = 200;
/// Up to so many bytes of mail are looked at where the request is answered, which is about many mails.
const QUICK: usize = 4 * 1024;
/// What is remembered, in bytes: some ten thousand numbers.
const REMEMBERED: usize = 4 * 1024 * 1024;

/// The numbers that are known already.
pub(crate) struct Counted(Cache<(MailboxName, MessageId), Count>);

impl Counted {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self(Cache::new(REMEMBERED))
    }
}

#[derive(Clone, Copy)]
struct Count(usize);

impl Answer for Count {
    fn bytes(&self) -> usize {
        size_of::<Self>()
    }
}

/// The messages that the query names.
#[derive(Debug)]
pub(crate) struct Ids(BTreeSet<MessageId>);

impl<S: Sync> FromRequestParts<S> for Ids {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let pairs = query(parts)?;
        let list =
            text(&pairs, "ids")?.ok_or_else(|| Problem::Malformed("The parameter ids is missing.".to_owned()))?;
        let ids: Vec<&str> = list.split(',').filter(|id| !id.is_empty()).take(MAX_IDS + 1).collect();
        if ids.len() > MAX_IDS {
            return Err(Problem::Malformed(format!("The parameter ids must not name more than {MAX_IDS} messages.")));
        }
        let ids: Result<_, _> = ids.into_iter().map(str::parse).collect();
        ids.map(Self)
            .map_err(|_| Problem::Malformed("The parameter ids must be ids with commas between them.".to_owned()))
    }
}

/// The number of attachments of each of the messages that is there, by id.
pub(crate) async fn counts(
    State(server): State<Arc<Server>>,
    InMailbox(mailbox): InMailbox,
    Ids(ids): Ids,
    known: Known,
) -> Result<Response, Problem> {
    let tag = server.tags.counts(server.mailroom.version(&mailbox).await?);
    if known.includes(&tag) {
        return Ok(reply::not_modified(reply::JSON, tag));
    }
    let mut counts = Vec::with_capacity(ids.len());
    // One after the other, so that no more than one of the mails is held.
    for id in ids {
        if let Some(count) = server.count(&mailbox, id).await? {
            counts.push((id, count));
        }
    }
    let mut out = Vec::with_capacity(32 * (counts.len() + 1));
    json::object(&mut out, &counts, |out, (id, Count(count))| json::display(out, format_args!("\"{id}\":{count}")));
    out.push(b'\n');
    Ok(reply::json(out.into(), tag))
}

impl Server {
    /// The number of attachments of a message; `None` when there is no such message.
    async fn count(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Count>, Problem> {
        let Some(summary) = self.mailroom.find(mailbox, Which::Id(id)).await? else { return Ok(None) };
        let key = (mailbox.clone(), id);
        if let Some(count) = self.counted.0.find(&key, 0) {
            return Ok(Some(count));
        }
        let turn = self.turn(source_length(&summary), QUICK).await?;
        let Some(source) = self.mailroom.source(mailbox, id).await? else { return Ok(None) };
        let count = turn.work(move || Count(Mime::parse(source.to_bytes()).attachment_count())).await?;
        self.counted.0.remember(key, 0, count);
        Ok(Some(count))
    }
}
