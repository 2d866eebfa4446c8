//! The number of attachments of messages. Messages are not parsed on arrival. The attachments are counted on the first
//! request, and the count is cached.

use restante_cache::{Cache, CacheValue};
use restante_http_connection::work::WorkPermit;
use restante_mail::message::MessageId;
use restante_mail::mime::Mime;
use restante_mail::naming::MailboxName;
use restante_store::MessageSelector;

use crate::response::problem::Problem;
use crate::state::Server;
use crate::state::message::source_length;

/// Messages up to this size are parsed on the network thread. The limit is low, because a request is for many messages.
const MAX_INLINE_BYTES: usize = 4 * 1024;
/// The size of the cache: about ten thousand counts.
const CACHE_BYTES: usize = 4 * 1024 * 1024;

/// The cached counts.
pub(super) struct AttachmentCounts(Cache<(MailboxName, MessageId), Count>);

impl AttachmentCounts {
    pub(super) fn new() -> Self {
        Self(Cache::new(CACHE_BYTES))
    }
}

#[derive(Clone, Copy)]
struct Count(usize);

impl CacheValue for Count {
    fn bytes(&self) -> usize {
        size_of::<Self>()
    }
}

impl Server {
    /// Returns the number of attachments of a message, or `None` if there is no such message.
    pub(crate) async fn attachment_count(
        &self,
        mailbox: &MailboxName,
        id: MessageId,
    ) -> Result<Option<usize>, Problem> {
        let Some(summary) = self.mailroom.find(mailbox, MessageSelector::Id(id)).await? else { return Ok(None) };
        let key = (mailbox.clone(), id);
        if let Some(Count(count)) = self.attachment_counts.0.get(&key, 0) {
            return Ok(Some(count));
        }
        let work = match source_length(&summary) {
            ..=MAX_INLINE_BYTES => WorkPermit::Inline,
            _ => WorkPermit::acquire(&self.work_permits).await?,
        };
        let Some(source) = self.mailroom.source(mailbox, id).await? else { return Ok(None) };
        let count = work.run(move || Mime::parse(source.to_bytes()).attachment_count()).await?;
        self.attachment_counts.0.insert(key, 0, Count(count));
        Ok(Some(count))
    }
}
