//! A message that was sent, as reading routes return it.

use bytes::Bytes;
use jiff::Timestamp;
use restante_auth::Grant;
use restante_http_core::response::problem::Problem;
use restante_http_core::server::Server;
use restante_mail::message::{Message, MessageId};
use restante_mail::mime::{HeaderSummary, Mime, NamedAddress, RawFields, decode_short_field, header_summary};
use restante_store::MessageSelector;

/// The field with the time at which the provider would send the message. [`crate::email`] adds it.
const SCHEDULED_FIELD: &[u8] = b"x-scheduled-at";

/// A stored message.
pub(crate) struct StoredEmail {
    pub(crate) id: MessageId,
    pub(crate) received: Timestamp,
    /// The addresses, the subject and other fields of the header. An address without a name has no angle brackets.
    pub(crate) header: HeaderSummary,
    pub(crate) text: Option<String>,
    pub(crate) html: Option<String>,
    pub(crate) source: Bytes,
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
            let header = without_brackets(header_summary(&source.body));
            Self { id, received, header, text: mime.text_body(), html, source: source.body.clone() }
        };
        Ok(work.run(read).await?)
    }

    /// Returns the id as 16 hexadecimal digits.
    pub(crate) fn hex(&self) -> String {
        format!("{:016x}", self.id.number())
    }

    /// Returns the sender. It is empty if there is none.
    pub(crate) fn sender(&self) -> NamedAddress {
        NamedAddress::from_display(self.header.from.as_deref().unwrap_or_default())
    }

    /// Returns the first recipient. It is empty if there is none.
    pub(crate) fn recipient(&self) -> NamedAddress {
        NamedAddress::from_display(self.header.recipients().next().unwrap_or_default())
    }

    /// Returns the tags.
    pub(crate) fn tags(&self) -> impl Iterator<Item = &str> {
        self.header.tags.as_deref().unwrap_or_default().split(',').map(str::trim).filter(|tag| !tag.is_empty())
    }

    /// Returns the time at which the provider would send the message.
    pub(crate) fn scheduled(&self) -> Option<String> {
        let mut fields = RawFields::new(&self.source);
        let (_, value) = fields.find(|(name, _)| name.eq_ignore_ascii_case(SCHEDULED_FIELD))?;
        Some(decode_short_field(value))
    }
}

fn without_brackets(mut header: HeaderSummary) -> HeaderSummary {
    let HeaderSummary { from, to, cc, bcc, reply_to, .. } = &mut header;
    for text in from.iter_mut().chain(to.iter_mut().flatten()).chain(cc).chain(bcc).chain(reply_to) {
        let address = NamedAddress::from_display(text);
        if address.name.is_empty() {
            *text = address.address;
        }
    }
    header
}
