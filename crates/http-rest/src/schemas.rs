//! The schemas of the types that handlers serialize, for the description of the API.

use restante_api_types::{RelayTarget, WebhookTarget, WholeMessage};
use restante_http_core::response::message_json::Message;
use restante_http_core::response::problem::ProblemDocument;
use restante_http_core::response::success::Done;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema as _, ToSchema as _};

use crate::live::frame::{Change, MessageChange};
use crate::serve::message::CompatMessage;
use crate::v2::about::AboutResponse;
use crate::v2::attachment_counts::AttachmentCounts;
use crate::v2::chaos::SimulatedFailures;
use crate::v2::html_check::HtmlCheck;
use crate::v2::mailboxes::Mailboxes;
use crate::v2::message::MessageDetails;
use crate::v2::messages::MessageEntries;
use crate::v2::projects::Projects;
use crate::v2::relay::{RelayEntries, RelayEntryDetails};
use crate::v2::runs::Run;
use crate::v2::search::SearchResponse;
use crate::v2::sessions::{Sessions, Transcript};
use crate::v2::tags::{RenamedTag, Tags};
use crate::v2::usage::UsageRecord;
use crate::v2::webhooks::{WebhookEntries, WebhookEntryDetails};

/// Returns the schemas of types, and all schemas that they refer to.
macro_rules! schemas_of {
    ($($type:ty),+ $(,)?) => {{
        let mut schemas = Vec::new();
        $(
            schemas.push((<$type>::name().into_owned(), <$type>::schema()));
            <$type>::schemas(&mut schemas);
        )+
        schemas
    }};
}

/// Returns the schemas of the types that handlers serialize, and of the types in them.
pub fn schemas() -> Vec<(String, RefOr<Schema>)> {
    schemas_of![
        AboutResponse<'_>,
        AttachmentCounts,
        Change<'_>,
        CompatMessage<'_>,
        Done,
        HtmlCheck,
        Mailboxes<'_>,
        Message<'_>,
        MessageChange<'_>,
        MessageDetails<'_>,
        MessageEntries<'_>,
        ProblemDocument,
        Projects<'_>,
        RelayEntries<'_>,
        RelayEntryDetails<'_>,
        RelayTarget<'_>,
        RenamedTag<'_>,
        Run<'_>,
        SearchResponse<'_>,
        Sessions<'_>,
        SimulatedFailures,
        Tags<'_>,
        Transcript<'_>,
        UsageRecord,
        WebhookEntries<'_>,
        WebhookEntryDetails<'_>,
        WebhookTarget<'_>,
        WholeMessage<'_>,
    ]
}
