//! A message that was sent, as reading routes return it.

use jiff::Timestamp;
use restante_auth::Grant;
use restante_http_core::response::problem::Problem;
use restante_http_core::server::Server;
use restante_mail::message::{Message, MessageId};
use restante_mail::mime::{HeaderSummary, Mime, header_summary};
use restante_store::MessageSelector;

/// A stored message.
pub(crate) struct StoredEmail {
    pub(crate) id: MessageId,
    pub(crate) received: Timestamp,
    /// The addresses, the subject and other fields of the header.
    pub(crate) header: HeaderSummary,
    pub(crate) text: Option<String>,
    pub(crate) html: Option<String>,
}

impl StoredEmail {
    /// Reads a message, if the grant allows it.
    pub(crate) async fn read(server: &Server, grant: &Grant, id: MessageId) -> Result<Self, Problem> {
        let message: Message = server.messages.permitted_message(grant, MessageSelector::Id(id)).await?;
        let copy = message.first();
        let source = server.mailroom.source(&copy.mailbox, copy.id).await?.ok_or(Problem::NoSuchMessage)?;
        let received = copy.received;
        let work = server.renderer.work_permit(source.body.len()).await?;
        let read = move || {
            let mime = Mime::parse(source.body.clone());
            let html = mime.has_html().then(|| mime.html());
            Self { id, received, header: header_summary(&source.body), text: mime.text_body(), html }
        };
        Ok(work.run(read).await?)
    }
}
