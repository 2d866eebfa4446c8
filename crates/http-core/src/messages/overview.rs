//! The overview of all messages that a grant allows: their number, the number of unread ones, and their tags.

use std::collections::HashMap;
use std::sync::Arc;

use restante_auth::Grant;
use restante_mail::message::Message;
use restante_mail::naming::Project;
use restante_store::Version;
use restante_store::overview::Overview;
use tokio::sync::Mutex;

use crate::messages::Messages;
use crate::messages::{MAX_SCANNED_MESSAGES, MessageRange};
use crate::response::problem::Problem;

/// The maximum number of overviews that are cached.
const MAX_OVERVIEWS: usize = 100;

/// Overviews, and the version of the store before they were computed.
#[derive(Default)]
pub struct OverviewCache(Mutex<(Version, Overviews)>);

/// The overview of the whole store under `None`, and those of projects.
type Overviews = HashMap<Option<Project>, Arc<Overview>>;

impl Messages {
    /// Returns the overview of the messages that the grant allows. If it does not cover its home, only the
    /// [`MAX_SCANNED_MESSAGES`] newest messages are counted.
    pub async fn overview(&self, grant: &Grant) -> Result<Arc<Overview>, Problem> {
        if grant.covers_home() {
            return Ok(self.complete_overview(grant.home()).await?.1);
        }
        Ok(Arc::new(Overview::of_messages(&self.all_permitted_messages(grant).await?)))
    }

    /// Returns the overview of the whole store or of a project, and the version of the store before it was computed. It is
    /// cached until the store changes. Only one request at a time computes it. The grant must cover its home, and that must be
    /// this project.
    pub async fn complete_overview(&self, home: Option<&Project>) -> Result<(Version, Arc<Overview>), Problem> {
        let mut cached = self.overview_cache.0.lock().await;
        let version = self.mailroom.store_version().await?;
        if cached.0 != version || cached.1.len() >= MAX_OVERVIEWS {
            *cached = (version, HashMap::new());
        }
        if let Some(overview) = cached.1.get(&home.cloned()) {
            return Ok((version, overview.clone()));
        }
        let overview = Arc::new(self.mailroom.overview(home).await?);
        cached.1.insert(home.cloned(), overview.clone());
        Ok((version, overview))
    }

    /// Returns the messages that the grant allows, the newest first. Only the [`MAX_SCANNED_MESSAGES`] newest messages are
    /// read.
    pub async fn all_permitted_messages(&self, grant: &Grant) -> Result<Vec<Message>, Problem> {
        let all = MessageRange { before: None, after: None, limit: MAX_SCANNED_MESSAGES };
        Ok(self.scan_messages(grant, all).await?.messages)
    }
}
