//! A cache of parsed messages for requests that wait for a message that matches a query. All requests that wait in a
//! mailbox check the same message when it arrives, so it is parsed once. They have their own permit: parsing for them
//! does not delay requests that read messages.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use restante_http_connection::memory::SMALL_BYTES;
use restante_http_connection::work::WorkPermit;
use restante_mail::message::{MessageId, Source, Summary};
use restante_mail::mime::Mime;
use restante_mail::naming::MailboxName;
use restante_search::{Contents, Query};
use tokio::sync::Semaphore;

use crate::render::source_length;
use crate::response::problem::Problem;

/// The maximum number of messages in the cache, and the maximum size of their searchable contents without the newest
/// one.
const MAX_ENTRIES: usize = 256;
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// A cache of parsed messages. See the module documentation. Cheap to clone.
#[derive(Clone)]
pub struct ParsedMailCache {
    entries: Arc<Mutex<Entries>>,
    /// A single permit, so that no other task parses the same message at the same time.
    permits: Arc<Semaphore>,
}

/// The most recently parsed messages, the newest last.
#[derive(Default)]
struct Entries {
    messages: VecDeque<(MailboxName, MessageId, Arc<Contents>)>,
    bytes: usize,
}

impl ParsedMailCache {
    /// Creates an empty cache.
    pub(crate) fn new() -> Self {
        Self { entries: Arc::default(), permits: Arc::new(Semaphore::new(1)) }
    }

    /// Returns whether a message matches a query. `source` is polled only if the message is not in the cache. A message
    /// without a source does not exist any more and does not match.
    pub async fn match_message(
        &self,
        query: &Arc<Query>,
        summary: &Summary,
        source: impl Future<Output = Result<Option<Source>, Problem>>,
    ) -> Result<bool, Problem> {
        let Some(contents) = self.contents(summary, source).await? else { return Ok(false) };
        let work = self.work_permit(contents.bytes()).await?;
        let (query, summary) = (query.clone(), summary.clone());
        Ok(work.run(move || query.matches_contents(&summary, &contents)).await?)
    }

    async fn contents(
        &self,
        summary: &Summary,
        source: impl Future<Output = Result<Option<Source>, Problem>>,
    ) -> Result<Option<Arc<Contents>>, Problem> {
        if let Some(contents) = self.entries.lock().find(summary) {
            return Ok(Some(contents));
        }
        let work = self.work_permit(source_length(summary)).await?;
        // While this task waited, another one may have parsed the same message.
        if let Some(contents) = self.entries.lock().find(summary) {
            return Ok(Some(contents));
        }
        let Some(source) = source.await? else { return Ok(None) };
        let (this, summary) = (self.clone(), summary.clone());
        // Stored in the cache as part of the work, so that tasks waiting for the permit find it even if this client has
        // disconnected.
        let parse = move || {
            let contents = Arc::new(Contents::new(&summary, &Mime::parse(source.to_bytes())));
            this.entries.lock().insert(&summary, contents.clone());
            contents
        };
        Ok(Some(work.run(parse).await?))
    }

    /// Acquires a permit to process this number of bytes. There is no timeout, because the request waits anyway.
    async fn work_permit(&self, bytes: usize) -> Result<WorkPermit, Problem> {
        if bytes <= SMALL_BYTES {
            Ok(WorkPermit::Inline)
        } else {
            Ok(WorkPermit::acquire_without_timeout(&self.permits).await?)
        }
    }
}

impl Entries {
    fn find(&self, summary: &Summary) -> Option<Arc<Contents>> {
        let mut latest_first = self.messages.iter().rev();
        let found = latest_first.find(|(mailbox, id, _)| *id == summary.id && *mailbox == summary.mailbox);
        found.map(|(_, _, contents)| contents.clone())
    }

    fn insert(&mut self, summary: &Summary, contents: Arc<Contents>) {
        self.bytes += contents.bytes();
        self.messages.push_back((summary.mailbox.clone(), summary.id, contents));
        while self.messages.len() > 1
            && (self.messages.len() > MAX_ENTRIES || self.bytes > MAX_BYTES)
            && let Some((_, _, evicted)) = self.messages.pop_front()
        {
            self.bytes -= evicted.bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::Bytes;
    use jiff::Timestamp;
    use restante_mail::details::Details;
    use restante_mail::message::{Flags, Headline};
    use restante_mail::naming::Naming;
    use restante_mail::tags::Tags;
    use tokio::task::JoinSet;

    use super::*;

    fn summary(id: u64, size: usize) -> Summary {
        Summary {
            mailbox: Naming::Local.parse_mailbox("ann").unwrap(),
            id: id.into(),
            headline: Headline::new("", [], ""),
            received: Timestamp::UNIX_EPOCH,
            size: size.try_into().unwrap(),
            seen: false,
            flags: Flags::default(),
            modseq: 1,
            message: id.into(),
            number: 1,
            tags: Tags::default(),
            details: Details::default(),
        }
    }

    #[tokio::test]
    async fn message_is_parsed_once() {
        let cache = ParsedMailCache::new();
        for (id, message) in
            [(1, "\r\nneedle\r\n".to_owned()), (2, format!("\r\nneedle {}\r\n", "hay ".repeat(SMALL_BYTES)))]
        {
            let fetched = Arc::new(AtomicUsize::new(0));
            let (summary, message) = (summary(id, message.len()), Bytes::from(message));
            let mut tasks = JoinSet::new();
            for (text, expected) in [("body:needle", true), ("body:pin", false)].repeat(30) {
                let query = Arc::new(Query::parse(text, Timestamp::UNIX_EPOCH).unwrap());
                let (cache, summary) = (cache.clone(), summary.clone());
                let (fetched, source) = (fetched.clone(), Source { trace: Bytes::new(), body: message.clone() });
                tasks.spawn(async move {
                    let source = async {
                        fetched.fetch_add(1, Ordering::Relaxed);
                        Ok(Some(source))
                    };
                    let found = cache.match_message(&query, &summary, source).await.unwrap();
                    assert_eq!(found, expected, "{text}");
                });
            }
            tasks.join_all().await;
            assert_eq!(fetched.load(Ordering::Relaxed), 1, "message {id}");
        }
    }

    #[tokio::test]
    async fn deleted_message_does_not_match() {
        let query = Arc::new(Query::parse("body:x", Timestamp::UNIX_EPOCH).unwrap());
        let found = ParsedMailCache::new().match_message(&query, &summary(1, 1), async { Ok(None) }).await;
        assert!(!found.unwrap());
    }

    #[test]
    fn cache_is_bounded() {
        let mut entries = Entries::default();
        let contents = |text: &str| {
            let mime = Mime::parse(Bytes::from(format!("\r\n{text}\r\n")));
            Arc::new(Contents::new(&summary(0, 0), &mime))
        };
        let (small, large) = (contents("word"), contents(&"word ".repeat(SMALL_BYTES)));
        for id in 0..1000 {
            let summary = summary(id, 0);
            entries.insert(&summary, if id < 500 { small.clone() } else { large.clone() });
            assert!(entries.find(&summary).is_some(), "the newest entry is kept");
            assert!(entries.messages.len() <= MAX_ENTRIES && entries.bytes <= MAX_BYTES);
            assert_eq!(entries.bytes, entries.messages.iter().map(|(_, _, contents)| contents.bytes()).sum::<usize>());
        }
        assert!(entries.find(&summary(0, 0)).is_none());
    }
}
