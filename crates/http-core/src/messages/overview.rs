//! The overview of all messages that a grant allows: their number, the number of unread ones, and their tags.

use std::sync::Arc;

use restante_auth::Grant;
use restante_mail::message::Message;
use restante_store::Version;
use restante_store::overview::Overview;
use tokio::sync::Mutex;

use crate::messages::Messages;
use crate::messages::{MAX_SCANNED_MESSAGES, MessageRange};
use crate::response::problem::Problem;

/// The last overview of the whole store, and the version of the store before it was computed.
#[derive(Default)]
pub struct OverviewCache(Mutex<Option<(Version, Arc<Overview>)>>);

impl Messages {
    /// Returns the overview of the messages that the grant allows. If it does not cover all mailboxes, only the
    /// [`MAX_SCANNED_MESSAGES`] newest messages of the store are counted.
    pub async fn overview(&self, grant: &Grant) -> Result<Arc<Overview>, Problem> {
        if grant.covers_all_mailboxes() {
            return Ok(self.complete_overview().await?.1);
        }
        Ok(Arc::new(Overview::of_messages(&self.all_permitted_messages(grant).await?)))
    }

    /// Returns the overview of the whole store, and the version of the store before it was computed. It is cached until
    /// the store changes. Only one request at a time computes it. The grant must cover all mailboxes.
    pub async fn complete_overview(&self) -> Result<(Version, Arc<Overview>), Problem> {
        let mut cached = self.overview_cache.0.lock().await;
        let version = self.mailroom.store_version().await?;
        if let Some((known, overview)) = &*cached
            && *known == version
        {
            return Ok((version, overview.clone()));
        }
        let overview = Arc::new(self.mailroom.overview(None).await?);
        *cached = Some((version, overview.clone()));
        Ok((version, overview))
    }

    /// Returns the messages that the grant allows, the newest first. Only the [`MAX_SCANNED_MESSAGES`] newest messages of
    /// the store are read.
    pub async fn all_permitted_messages(&self, grant: &Grant) -> Result<Vec<Message>, Problem> {
        let all = MessageRange { before: None, after: None, limit: MAX_SCANNED_MESSAGES };
        Ok(self.scan_messages(grant, all).await?.messages)
    }
}
