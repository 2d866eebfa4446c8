//! Finds messages as a whole with the search, which finds copies.

use restante_auth::Grant;
use restante_http_core::messages::{MAX_PAGE_COPIES, MessagePage, MessageRange, permitted_copies, separate_copy};
use restante_http_core::response::problem::Problem;
use restante_http_core::server::Server;
use restante_mail::message::Message;
use restante_mail::naming::MailboxName;
use restante_search::{ExcerptPart, Hit, Query};
use restante_store::MessageSelector;

/// The maximum number of searches for one page. A long page needs several.
const MAX_SEARCHES: usize = 10;
/// The maximum number of hits of one search. Each search has its own time limit.
const MAX_HITS: usize = 256;

/// The words around the matches of a query, split into matching and other text.
pub(super) type Excerpt = Vec<ExcerptPart>;

/// The messages that a search has found.
pub(super) struct FoundMessages {
    pub(super) page: MessagePage,
    /// An excerpt of each message of the page, in their order.
    pub(super) excerpts: Vec<Excerpt>,
    /// Whether the search covered everything that was stored before the request.
    pub(super) is_complete: bool,
}

/// Returns a page of the messages of which a permitted copy matches, or of the copies in a mailbox that match, each as
/// a message of its own. A page can have fewer messages than requested even if it is not the last one.
pub(super) async fn search_messages(
    server: &Server,
    grant: &Grant,
    mailbox: Option<&MailboxName>,
    query: &Query,
    range: MessageRange,
) -> Result<FoundMessages, Problem> {
    let (mut found, mut is_complete, mut cursor) = (Vec::new(), true, range.before);
    let mut copies_left = MAX_PAGE_COPIES;
    for _ in 0..MAX_SEARCHES {
        // One more than requested, to know whether this is the last page.
        let limit = (range.limit - found.len()).saturating_add(1).min(MAX_HITS);
        let results = server.messages.find_copies(grant, query, mailbox, cursor, limit, mailbox.is_none()).await?;
        is_complete &= results.is_complete;
        let last_id =
            results.hits.last().map(|hit| if mailbox.is_some() { hit.summary.id } else { hit.summary.message });
        found.extend(match mailbox {
            Some(_) => copies_of_hits(results.hits, range),
            None => messages_of_hits(server, grant, results.hits, range, &mut copies_left).await?,
        });
        if found.len() > range.limit || copies_left == 0 {
            found.truncate(range.limit);
            cursor = found.last().map(|(message, _)| message.id());
            break;
        }
        // The copies of a message have ids from that of the message on. So no further copy of it is found.
        cursor = results.next.map(|next| last_id.map_or(next, |last| next.min(last)));
        if cursor.is_none_or(|next| range.ends_before(next)) {
            cursor = None;
            break;
        }
        // Each search waits for the index, so that several would take too long.
        if !is_complete {
            break;
        }
    }
    let (messages, excerpts) = found.into_iter().unzip();
    Ok(FoundMessages { page: MessagePage { messages, next: cursor }, excerpts, is_complete })
}

/// Returns the messages of these copies that are in the range, with the copies that the grant allows. Ends when no
/// copies are left for the page.
async fn messages_of_hits(
    server: &Server,
    grant: &Grant,
    mut hits: Vec<Hit>,
    range: MessageRange,
    copies_left: &mut usize,
) -> Result<Vec<(Message, Excerpt)>, Problem> {
    // The copies of a message are adjacent.
    hits.dedup_by_key(|hit| hit.summary.message);
    let mut found = Vec::new();
    for Hit { summary, excerpt } in hits.into_iter().take_while(|hit| !range.ends_before(hit.summary.message)) {
        let message = server.mailroom.find_message(MessageSelector::Id(summary.message)).await?;
        let Some(message) = message.and_then(|message| permitted_copies(grant, message)) else { continue };
        *copies_left = copies_left.saturating_sub(message.copies().len());
        found.push((message, excerpt));
        if *copies_left == 0 {
            break;
        }
    }
    Ok(found)
}

/// Returns the copies that are in the range, each as a message of its own.
fn copies_of_hits(hits: Vec<Hit>, range: MessageRange) -> Vec<(Message, Excerpt)> {
    let hits = hits.into_iter().take_while(|hit| !range.ends_before(hit.summary.id));
    let as_message = |hit: Hit| Some((Message::group([separate_copy(hit.summary)]).pop()?, hit.excerpt));
    hits.filter_map(as_message).collect()
}
