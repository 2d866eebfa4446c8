//! Rendered responses about one message, and the keys of the response cache. A response is rendered outside of the network threads
//! if the message is large, within the memory budget, and cached. The handlers decide what it contains.

use std::sync::Arc;

use axum::http::HeaderValue;
use axum::response::Response;
use bytes::Bytes;
use restante_html::PreviewOptions;
use restante_http_connection::memory::{MemoryPermit, SMALL_BYTES};
use restante_mail::message::{MessageId, Summary};
use restante_mail::mime::Mime;
use restante_mail::naming::MailboxName;

use crate::response::etag::{EntityTags, Extract, IfNoneMatch};
use crate::response::problem::Problem;
use crate::response::success;
use crate::state::Server;

/// Up to so many bytes of mail are made into a form with its HTML where the request is answered. Making HTML harmless can
/// take a microsecond for each byte, far longer than writing JSON.
const MAX_INLINE_HTML_BYTES: usize = 512;
/// Up to so many bytes of mail are searched where the request is answered.
const MAX_INLINE_EXTRACT_BYTES: usize = 4 * 1024;

/// What an answer that is worth remembering is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CacheKey {
    /// The listing of a whole mailbox.
    Listing(MailboxName),
    /// A message.
    Message {
        /// The mailbox that holds it.
        mailbox: MailboxName,
        /// Its id.
        id: MessageId,
        /// What is told about it.
        representation: Representation,
    },
}

/// What is told about a message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Representation {
    /// The JSON of the REST API, version 1, with links that start with this.
    Rest(Arc<str>),
    /// The JSON of Inbucket's page.
    Compat,
    /// The JSON of our page.
    Details,
    /// The document for a frame.
    Preview(PreviewOptions),
    /// What was found in it.
    Extract(Extract),
}

impl Representation {
    /// Up to how many bytes of mail it is quickly made.
    fn max_inline_bytes(&self) -> usize {
        match self {
            Self::Rest(_) => SMALL_BYTES,
            Self::Compat | Self::Details | Self::Preview(_) => MAX_INLINE_HTML_BYTES,
            Self::Extract(_) => MAX_INLINE_EXTRACT_BYTES,
        }
    }

    /// The tag by which a client knows it.
    pub(crate) fn etag(&self, tags: &EntityTags, of: &Summary) -> HeaderValue {
        match self {
            Self::Rest(_) => tags.message(of.id, of.seen),
            Self::Compat => tags.compat(of.id, of.seen),
            Self::Details => tags.details(of.id, of.seen),
            Self::Preview(shown) => tags.preview(of.id, *shown),
            Self::Extract(what) => tags.extract(of.id, *what),
        }
    }

    /// What it depends on beside the mail itself.
    fn cache_version(&self, of: &Summary) -> u64 {
        match self {
            Self::Rest(_) | Self::Compat | Self::Details => of.seen.into(),
            Self::Preview(_) | Self::Extract(_) => 0,
        }
    }
}

impl Server {
    /// What is told about a message in JSON, unless the client has it already.
    pub(crate) async fn json_response<W>(
        &self,
        of: &Summary,
        known: &IfNoneMatch,
        form: Representation,
        write: W,
    ) -> Result<Response, Problem>
    where
        W: Fn(&Summary, &Mime) -> Result<Bytes, Problem> + Clone + Send + 'static,
    {
        let tag = form.etag(&self.etags, of);
        if known.matches(&tag) {
            return Ok(success::not_modified(success::JSON, tag));
        }
        Ok(success::json(self.render(of, form, write).await?, tag))
    }

    /// What is told about a message, remembered or written now.
    pub(crate) async fn render<W>(&self, of: &Summary, form: Representation, write: W) -> Result<Bytes, Problem>
    where
        W: Fn(&Summary, &Mime) -> Result<Bytes, Problem> + Clone + Send + 'static,
    {
        let (state, quick) = (form.cache_version(of), form.max_inline_bytes());
        let key = CacheKey::Message { mailbox: of.mailbox.clone(), id: of.id, representation: form };
        if let Some(body) = self.response_cache.get(&key, state) {
            return Ok(body);
        }
        let (key, write) = (&key, &write);
        let make = |allowance: MemoryPermit| async move {
            let turn = self.work_permit(source_length(of), quick).await?;
            // Whoever had the turn before may have asked for the same.
            if let Some(body) = self.response_cache.get(key, state) {
                return Ok(body);
            }
            let source = self.mailroom.source(&of.mailbox, of.id).await?.ok_or(Problem::NoSuchMessage)?;
            let (summary, write, answers, key) = (of.clone(), write.clone(), self.response_cache.clone(), key.clone());
            // It is remembered as part of the work: the next one comes when that is done, also when this client has left.
            let work = move || {
                let body = allowance.charge(write(&summary, &Mime::parse(source.to_bytes()))?)?;
                answers.insert(key, state, body.clone());
                Ok::<_, Problem>(body)
            };
            turn.run(work).await?
        };
        self.within_budget(make).await
    }
}

/// The length of a message's source.
pub(crate) fn source_length(of: &Summary) -> usize {
    of.size.try_into().unwrap_or(usize::MAX)
}
