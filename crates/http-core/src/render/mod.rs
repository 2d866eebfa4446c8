//! Rendered responses about one message, and the keys of the response cache. A response is rendered within the memory
//! budget, outside of the network threads if the message is large, and then cached. The handlers decide what it
//! contains.
//!
//! - `file`: attachments and parts as files; `document`: files as documents of a browser
//! - `archive`: all attachments of a message as one file

mod archive;
mod document;
pub mod file;

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::thread::available_parallelism;

use axum::http::HeaderValue;
use axum::response::Response;
use bytes::Bytes;
use parking_lot::Mutex;
use restante_cache::Cache;
use restante_http_connection::memory::{MemoryPermit, ResponseBudget, SMALL_BYTES};
use restante_http_connection::work::WorkPermit;
use restante_mail::message::{MessageId, Source, Summary};
use restante_mail::mime::Mime;
use restante_mail::naming::{MailboxName, Project};
use restante_mailroom::Mailroom;
use tokio::sync::Semaphore;

use crate::response::etag::{EntityTags, IfNoneMatch};
use crate::response::problem::Problem;
use crate::response::success;

/// The maximum number of concurrent expensive tasks, on any number of processors: rendering the worst message takes
/// about twenty times its size in memory.
const MAX_WORK_PERMITS: usize = 4;
/// The number of messages that are read without a work permit. Each of them can have many copies.
pub const MAX_MESSAGES_WITHOUT_PERMIT: usize = 200;
/// Messages up to this size are rendered with HTML on the network thread. Sanitizing or checking HTML can take a microsecond per
/// byte, far longer than writing JSON.
const MAX_INLINE_HTML_BYTES: usize = 512;
/// Messages up to this size are searched for extracts on the network thread.
const MAX_INLINE_EXTRACT_BYTES: usize = 4 * 1024;

/// The key of a cached response.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CacheKey {
    /// The newest messages of all mailboxes, or of one.
    List {
        /// The names of the API and of the list.
        name: &'static str,
        /// The home of the client, to which names of mailboxes are relative.
        home: Option<Project>,
        /// The mailbox, or `None` for all.
        mailbox: Option<MailboxName>,
        /// The maximum number of messages.
        limit: usize,
    },
    /// Something about all copies of a message.
    Message {
        /// The names of the API and of the form.
        name: &'static str,
        /// The id of the message.
        id: MessageId,
    },
    /// A representation of a copy of a message.
    Copy {
        /// The mailbox that contains it.
        mailbox: MailboxName,
        /// Its id.
        id: MessageId,
        /// The representation.
        representation: Representation,
    },
}

/// A representation of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Representation {
    name: &'static str,
    parameter: Option<Arc<str>>,
    work: Work,
    has_read_mark: bool,
    /// Whether the name of the mailbox is relative to the home of the client.
    is_relative: bool,
}

/// The kind of work that rendering a representation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Work {
    /// Writing the content of a message.
    Write,
    /// Searching or decoding the content of a message.
    Extract,
    /// Sanitizing or checking HTML.
    Html,
    /// Decoding an image.
    Image,
}

impl Work {
    /// Returns the message size up to which this is done on the network thread.
    fn max_inline_bytes(self) -> usize {
        match self {
            Self::Write => SMALL_BYTES,
            Self::Extract => MAX_INLINE_EXTRACT_BYTES,
            Self::Html => MAX_INLINE_HTML_BYTES,
            Self::Image => 0,
        }
    }
}

impl Hash for Representation {
    /// The other fields depend on the name.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.name, &self.parameter, self.is_relative).hash(state);
    }
}

impl Representation {
    /// Creates a representation with the names of its API and its form. It depends on nothing but the source of the message.
    pub const fn new(name: &'static str, work: Work) -> Self {
        Self { name, parameter: None, work, has_read_mark: false, is_relative: false }
    }

    /// Returns the representation with this parameter.
    #[must_use]
    pub fn with_parameter(self, parameter: impl Into<Arc<str>>) -> Self {
        Self { parameter: Some(parameter.into()), ..self }
    }

    /// Returns the representation with the read mark of the copy.
    #[must_use]
    pub const fn with_read_mark(mut self) -> Self {
        self.has_read_mark = true;
        self
    }

    /// Returns the entity tag.
    pub fn etag(&self, etags: &EntityTags, summary: &Summary) -> HeaderValue {
        etags.of(&(self, summary.mailbox.is_relative(), summary.id, self.cache_version(summary)))
    }

    /// Returns the part of the state of the copy that this depends on.
    fn cache_version(&self, summary: &Summary) -> u64 {
        u64::from(self.has_read_mark && summary.seen)
    }
}

/// Writes a representation of a message.
type WriteMessage = dyn Fn(&Summary, &Mime) -> Result<Bytes, Problem> + Send + Sync;
/// Writes a response.
type WriteValue = dyn Fn() -> Result<Bytes, Problem> + Send + Sync;

/// Renders responses: from the cache, or within limits on memory and work.
pub struct Renderer {
    mailroom: Arc<Mailroom>,
    /// Rendered responses.
    pub cache: Arc<Cache<CacheKey, Bytes>>,
    /// The memory for responses.
    pub budget: ResponseBudget,
    /// The entity tags of responses.
    pub etags: EntityTags,
    /// Limits expensive work, and so the memory that it takes. A request that holds a scan permit must not wait for one of
    /// these: requests for long lists wait for a scan permit while they hold one.
    pub work_permits: Arc<Semaphore>,
    /// Limits the images that are decoded at the same time: this takes more memory than other work.
    image_permits: Arc<Semaphore>,
}

impl Renderer {
    pub(crate) fn new(mailroom: Arc<Mailroom>, cache_bytes: usize) -> Self {
        let work_permits = available_parallelism().map_or(1, usize::from).min(MAX_WORK_PERMITS);
        Self {
            mailroom,
            cache: Arc::new(Cache::new(cache_bytes)),
            budget: ResponseBudget::with_cache_bytes(cache_bytes),
            etags: EntityTags::new(),
            work_permits: Arc::new(Semaphore::new(work_permits)),
            image_permits: Arc::new(Semaphore::new(1)),
        }
    }

    /// Renders a response within the memory budget. If the budget is used up, waits for memory and calls `render`
    /// again.
    pub async fn within_budget<T, F>(&self, render: impl Fn(MemoryPermit) -> F) -> Result<T, Problem>
    where
        F: Future<Output = Result<T, Problem>>,
    {
        match render(MemoryPermit::OnDemand(self.budget.clone())).await {
            Err(Problem::OverBudget(over_budget)) => {
                render(MemoryPermit::Reserved(self.budget.reserve_for(over_budget).await?)).await
            }
            result => result,
        }
    }

    /// Renders a value of about this size within the memory budget. `work` is the permit with which it was read, if there is
    /// one.
    pub async fn render_value<T: Send + Sync + 'static>(
        &self,
        value: T,
        size: usize,
        work: Option<WorkPermit>,
        write: fn(&T, usize) -> Result<Bytes, Problem>,
    ) -> Result<Bytes, Problem> {
        self.write_within_budget(size, work, Arc::new(move || write(&value, size))).await
    }

    /// Writes a response of about this size within the memory budget. It takes no type parameters, so that it is compiled
    /// once.
    async fn write_within_budget(
        &self,
        size: usize,
        work: Option<WorkPermit>,
        write: Arc<WriteValue>,
    ) -> Result<Bytes, Problem> {
        let (write, work) = (&write, &Mutex::new(work));
        let render = |memory: MemoryPermit| async move {
            let held = work.lock().take();
            let work = match held {
                Some(work) => work,
                None => self.work_permit(size).await?,
            };
            let write = write.clone();
            work.run(move || Ok::<_, Problem>(memory.charge(write()?)?)).await?
        };
        self.within_budget(render).await
    }

    /// Acquires a permit to process `size` bytes. A few bytes are processed on the network thread, without waiting. Load the
    /// data after this returns, so that it is not held in memory while waiting.
    pub async fn work_permit(&self, size: usize) -> Result<WorkPermit, Problem> {
        if size <= SMALL_BYTES {
            return Ok(WorkPermit::Inline);
        }
        Ok(WorkPermit::acquire(&self.work_permits).await?)
    }

    /// Acquires a permit to read and render a long list of messages, before they are in memory. A short list needs one only
    /// if it turns out to be large.
    pub async fn list_permit(&self, limit: usize) -> Result<Option<WorkPermit>, Problem> {
        if limit <= MAX_MESSAGES_WITHOUT_PERMIT {
            return Ok(None);
        }
        Ok(Some(WorkPermit::acquire(&self.work_permits).await?))
    }

    /// Returns a representation of a message as JSON, unless the client has it already.
    pub async fn json_response(
        &self,
        summary: &Summary,
        if_none_match: &IfNoneMatch,
        representation: Representation,
        write: impl Fn(&Summary, &Mime) -> Result<Bytes, Problem> + Send + Sync + 'static,
    ) -> Result<Response, Problem> {
        let tag = representation.etag(&self.etags, summary);
        success::json_unless_match(if_none_match, tag, self.render(summary, representation, write)).await
    }

    /// Returns the source of a message, unless the client has it already.
    pub async fn source_response(&self, summary: &Summary, if_none_match: &IfNoneMatch) -> Result<Response, Problem> {
        let tag = self.etags.of(&("source", summary.id));
        if if_none_match.matches(&tag) {
            return Ok(success::not_modified(success::PLAIN, tag));
        }
        // The store may delete the message before a slow client has read it, so its bytes are counted.
        let memory = self.budget.reserve(source_length(summary)).await?;
        let source = self.mailroom.source(&summary.mailbox, summary.id).await?.ok_or(Problem::NoSuchCopy)?;
        Ok(success::source(Source { body: memory.attach(source.body), ..source }, tag))
    }

    /// Returns a representation of a message, from the cache or rendered now.
    pub async fn render(
        &self,
        summary: &Summary,
        representation: Representation,
        write: impl Fn(&Summary, &Mime) -> Result<Bytes, Problem> + Send + Sync + 'static,
    ) -> Result<Bytes, Problem> {
        let version = representation.cache_version(summary);
        self.render_version(summary, representation, version, write).await
    }

    /// Returns a representation of a message, from the cache or rendered now. `version` identifies the state that it
    /// depends on, beside the source of the message.
    pub async fn render_version(
        &self,
        summary: &Summary,
        representation: Representation,
        version: u64,
        write: impl Fn(&Summary, &Mime) -> Result<Bytes, Problem> + Send + Sync + 'static,
    ) -> Result<Bytes, Problem> {
        let work = representation.work;
        let representation = Representation { is_relative: summary.mailbox.is_relative(), ..representation };
        let key = CacheKey::Copy { mailbox: summary.mailbox.clone(), id: summary.id, representation };
        if let Some(body) = self.cache.get(&key, version) {
            return Ok(body);
        }
        self.render_now(summary, work, key, version, Arc::new(write)).await
    }

    /// Renders a representation of a message and adds it to the cache. It takes no type parameters, so that it is compiled
    /// once.
    async fn render_now(
        &self,
        summary: &Summary,
        work: Work,
        key: CacheKey,
        version: u64,
        write: Arc<WriteMessage>,
    ) -> Result<Bytes, Problem> {
        let permits = match work {
            Work::Image => &self.image_permits,
            _ => &self.work_permits,
        };
        let (key, write) = (&key, &write);
        let render = |memory: MemoryPermit| async move {
            let work = if source_length(summary) <= work.max_inline_bytes() {
                WorkPermit::Inline
            } else {
                WorkPermit::acquire(permits).await?
            };
            // While this task waited, another one may have rendered the same.
            if let Some(body) = self.cache.get(key, version) {
                return Ok(body);
            }
            let source = self.mailroom.source(&summary.mailbox, summary.id).await?.ok_or(Problem::NoSuchCopy)?;
            let (summary, write, cache, key) = (summary.clone(), write.clone(), self.cache.clone(), key.clone());
            // Stored in the cache as part of the work, so that tasks waiting for the permit find it even if this client
            // has disconnected.
            let task = move || {
                let body = memory.charge(write(&summary, &Mime::parse(source.to_bytes()))?)?;
                cache.insert(key, version, body.clone());
                Ok::<_, Problem>(body)
            };
            work.run(task).await?
        };
        self.within_budget(render).await
    }
}

/// Returns the length of the source of a message.
pub fn source_length(summary: &Summary) -> usize {
    summary.size.try_into().unwrap_or(usize::MAX)
}
