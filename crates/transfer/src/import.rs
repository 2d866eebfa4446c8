//! Import of messages into a store: determines mailbox, received time and trace lines. Many appends run concurrently,
//! so that they share a commit. Their order is kept, because it becomes the order of the mailbox.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{FuturesOrdered, StreamExt as _};
use jiff::{SignedDuration, Timestamp};
use restante_mail::address::{Address, Alphabet};
use restante_mail::details::{DetailFields, Details};
use restante_mail::message::{Flags, Headline};
use restante_mail::mime::summarize;
use restante_mail::naming::{MailboxName, Naming};
use restante_mail::tags::Tags;
use restante_store::{Appended, NewCopy, NewMessage, Store, StoreError};
use tokio::sync::mpsc::Receiver;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::console::{Console, Progress};
use super::message_reader::{InputMessage, ReaderEvent};
use super::trace::Trace;

/// The number of bytes in which a header field is searched for.
const MAX_HEADER_BYTES: usize = 64 * 1024;
/// The maximum number of concurrent appends.
const MAX_CONCURRENT_APPENDS: usize = 256;

/// The options of an import.
#[derive(Clone, Debug)]
pub(super) struct ImportOptions {
    /// The rule that maps names to mailboxes.
    pub(super) naming: Naming,
    /// The mailbox for all messages.
    pub(super) mailbox: Option<MailboxName>,
    /// Whether all messages count as received now.
    pub(super) received_now: bool,
    /// The retention period of the server.
    pub(super) retention: Option<Duration>,
    /// The number of bytes to read. Zero if unknown.
    pub(super) total: u64,
}

/// The result of an import.
#[derive(Debug, Default)]
pub(super) struct ImportOutcome {
    pub(super) messages: u64,
    pub(super) bytes: u64,
    /// The number of messages that were evicted because of the cap per mailbox.
    pub(super) evicted: u64,
    /// The number of messages that are already older than the retention period.
    pub(super) expired: u64,
    /// The number of files that are not messages.
    pub(super) ignored: u64,
    /// The reason why the import ended early.
    pub(super) error: Option<ImportError>,
}

/// The reason why an import ended early. The messages counted until then are stored.
#[derive(Debug)]
pub(super) enum ImportError {
    /// The operator interrupted it.
    Interrupted,
    /// The store rejects messages.
    Store(StoreError),
}

/// Imports all messages of the reader.
pub(super) async fn import(
    store: &Arc<dyn Store>,
    options: &ImportOptions,
    mut events: Receiver<ReaderEvent>,
    console: &mut Console,
    mut stop: watch::Receiver<bool>,
) -> ImportOutcome {
    let mut run = ImportRun {
        options,
        console,
        imported: ImportOutcome::default(),
        appends: FuturesOrdered::new(),
        bytes_read: 0,
    };
    while run.imported.error.is_none() {
        let next = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => {
                run.imported.error = Some(ImportError::Interrupted);
                break;
            }
            next = events.recv() => next,
            // The reader waits for permits that these appends hold, so do not wait for the reader alone.
            Some(outcome) = run.appends.next() => {
                run.record_outcome(outcome);
                continue;
            }
        };
        match next {
            Some(ReaderEvent::Message(input, permit)) => run.store_message(store, input, permit).await,
            Some(ReaderEvent::Problem(problem)) => run.console.report_problem(&problem),
            Some(ReaderEvent::End { ignored }) => run.imported.ignored = ignored,
            None => break,
        }
    }
    // Wakes the reader if it waits for the queue.
    drop(events);
    while let Some(outcome) = run.appends.next().await {
        run.record_outcome(outcome);
    }
    run.imported
}

/// The result of an append, and the values needed to count it.
struct AppendOutcome {
    appended: Result<Appended, StoreError>,
    bytes: u64,
    expired: bool,
}

/// An import in progress.
struct ImportRun<'a> {
    options: &'a ImportOptions,
    console: &'a mut Console,
    imported: ImportOutcome,
    /// They are first polled, and their results returned, in the order in which they were added. The store commits many
    /// appends at once, but assigns ids in the order in which it receives them.
    appends: FuturesOrdered<BoxFuture<'static, AppendOutcome>>,
    /// The number of bytes that were read.
    bytes_read: u64,
}

impl ImportRun<'_> {
    async fn store_message(&mut self, store: &Arc<dyn Store>, input: InputMessage, permit: OwnedSemaphorePermit) {
        let now = Timestamp::now();
        self.bytes_read += input.source.len() as u64;
        let message = match self.options.new_message(input, now) {
            Ok(message) => message,
            Err(problem) => return self.console.report_problem(&problem),
        };
        if self.appends.len() >= MAX_CONCURRENT_APPENDS
            && let Some(outcome) = self.appends.next().await
        {
            self.record_outcome(outcome);
        }
        let expired = self.options.is_expired(message.received, now);
        let store = store.clone();
        let append = async move {
            let bytes = (message.body.len()
                + message.copies.iter().map(|copy| copy.trace(message.received).len()).sum::<usize>())
                as u64;
            let appended = store.append(message).await;
            drop(permit);
            AppendOutcome { appended, bytes, expired }
        };
        self.appends.push_back(append.boxed());
    }

    fn record_outcome(&mut self, AppendOutcome { appended, bytes, expired }: AppendOutcome) {
        match appended {
            Ok(appended) => {
                self.imported.messages += 1;
                self.imported.bytes += bytes;
                self.imported.evicted += appended.evicted.len() as u64;
                // Evicted messages are not counted as expired too.
                let expired_evictions =
                    appended.evicted.iter().filter(|copy| self.options.is_expired(copy.received, Timestamp::now()));
                let expired = self.imported.expired + u64::from(expired);
                self.imported.expired = expired.saturating_sub(expired_evictions.count() as u64);
            }
            // A store that rejects one append will reject the next as well. The first reason is reported.
            Err(error) => _ = self.imported.error.get_or_insert(ImportError::Store(error)),
        }
        let ImportOutcome { messages, .. } = self.imported;
        self.console.show_progress(Progress { messages, done: self.bytes_read, total: self.options.total });
    }
}

impl ImportOptions {
    /// Creates the message for the store, or returns the reason why it cannot be imported.
    fn new_message(&self, input: InputMessage, now: Timestamp) -> Result<NewMessage, String> {
        let trace = if input.known.is_some() { None } else { Trace::parse(&input.source) };
        let targets = self.targets(&input, trace.as_ref())?;
        let received = if self.received_now { now } else { received_time(&input, trace.as_ref()).unwrap_or(now) };
        let length = trace.as_ref().map_or(0, |trace| trace.len);
        let (header, preview) = summarize(&input.source[length..]);
        let sender = match (trace, &input.known) {
            (Some(trace), _) => trace.return_path.unwrap_or_default().to_owned(),
            (None, Some(_)) => return_path(&input.source),
            (None, None) => String::new(),
        };
        let seen = input.seen;
        let known = input.known.unwrap_or_default();
        let tags = match known.tags.as_slice() {
            [] => Tags::from_valid(header.tags.iter().flat_map(|value| value.split(','))),
            tags => Tags::from_valid(tags.iter().map(String::as_str)),
        };
        // The details know if the headline is made of the envelope, which is known only from a database.
        let is_known = !known.recipients.is_empty();
        let details = |recipients: &[String]| {
            Details::new(&DetailFields {
                sender: &sender,
                login: known.login.as_deref(),
                lacks_from: is_known && header.from.is_none(),
                lacks_to: is_known && header.to.is_none(),
                recipients,
                ..DetailFields::of_source(&header, &preview)
            })
        };
        let details: Vec<Details> = targets.iter().map(|(_, recipients)| details(recipients)).collect();
        let from = header.from.unwrap_or_else(|| format!("<{sender}>"));
        let to = header.to.unwrap_or_else(|| {
            let names = targets.iter().flat_map(|(mailbox, recipients)| match recipients.as_slice() {
                [] => vec![format!("<{mailbox}>")],
                recipients => recipients.iter().map(|recipient| format!("<{recipient}>")).collect(),
            });
            names.collect()
        });
        let headline = Headline::new(&from, to.iter().map(String::as_str), &header.subject);
        let mut body = Bytes::from(input.source);
        let trace = body.split_to(length);
        // A time in the future would prolong the retention of the message and increase all later ids.
        let received = received.clamp(Timestamp::UNIX_EPOCH, now);
        let copies = targets.into_iter().zip(details).map(|((mailbox, _), details)| NewCopy {
            mailbox,
            seen,
            flags: Flags::default(),
            tags: tags.clone(),
            details,
            trace: Some(trace.clone()),
        });
        let copies = copies.collect();
        Ok(NewMessage { received, headline, body, copies })
    }

    /// Returns the mailboxes of a message, each with the known recipients that have it.
    fn targets(
        &self,
        input: &InputMessage,
        trace: Option<&Trace<'_>>,
    ) -> Result<Vec<(MailboxName, Vec<String>)>, String> {
        let recipients = input.known.as_ref().map_or(&[][..], |known| &known.recipients);
        if recipients.is_empty() || self.mailbox.is_some() {
            return Ok(vec![(self.mailbox_for(input, trace)?, recipients.to_vec())]);
        }
        let mut targets: Vec<(MailboxName, Vec<String>)> = Vec::new();
        for address in recipients {
            // An address without a mailbox is left out, as at RCPT.
            let parsed = Address::parse(address, Alphabet::Utf8).ok();
            let Some(mailbox) = parsed.and_then(|address| self.naming.mailbox_for(&address).ok()) else { continue };
            match targets.iter_mut().find(|(name, _)| *name == mailbox) {
                Some((_, known)) if known.contains(address) => {}
                Some((_, known)) => known.push(address.clone()),
                None => targets.push((mailbox, vec![address.clone()])),
            }
        }
        if targets.is_empty() {
            return Err(format!("{}: its recipients have no mailbox; use --mailbox to set the mailbox", input.origin));
        }
        Ok(targets)
    }

    /// Returns the mailbox of the options. Otherwise returns the first valid one of the mailbox in the trace and the
    /// suggested mailbox. `prefers_suggested_mailbox` reverses that order, and so does a suggested mailbox that differs only by
    /// its project, or that is a folder: a trace has neither.
    fn mailbox_for(&self, input: &InputMessage, trace: Option<&Trace<'_>>) -> Result<MailboxName, String> {
        if let Some(mailbox) = &self.mailbox {
            return Ok(mailbox.clone());
        }
        let (suggested, trace) = (input.suggested_mailbox.as_deref(), trace.map(|trace| trace.mailbox));
        let adds_to_trace = |(suggested, trace): (&str, &str)| {
            let [Ok(suggested), Ok(trace)] = [suggested, trace].map(|name| self.naming.parse_mailbox(name)) else {
                return false;
            };
            suggested.folder().is_some()
                || (suggested.project().is_some() && suggested.without_project() == trace.as_str())
        };
        let prefers_suggested = input.prefers_suggested_mailbox || suggested.zip(trace).is_some_and(adds_to_trace);
        let candidates = if prefers_suggested { [suggested, trace] } else { [trace, suggested] };
        let mut names = candidates.into_iter().flatten().map(|name| (name, self.naming.parse_mailbox(name)));
        let mut reason = "its mailbox is unknown".to_owned();
        names
            .find_map(|(name, mailbox)| {
                mailbox.map_err(|error| reason = format!("{name:?} is not a valid mailbox name: {error}")).ok()
            })
            .ok_or_else(|| format!("{}: {reason}; use --mailbox to set the mailbox", input.origin))
    }

    fn is_expired(&self, received: Timestamp, now: Timestamp) -> bool {
        let period = self.retention.map(|period| SignedDuration::try_from(period).unwrap_or(SignedDuration::MAX));
        period.is_some_and(|period| now.duration_since(received) > period)
    }
}

/// Returns the address in the header field Return-Path, which another server has added.
fn return_path(source: &[u8]) -> String {
    const NAME: &[u8] = b"return-path:";
    let header = source[..source.len().min(MAX_HEADER_BYTES)].split(|byte| *byte == b'\n');
    let mut fields = header.take_while(|line| !line.trim_ascii().is_empty());
    let field = fields.find(|line| line.get(..NAME.len()).is_some_and(|name| name.eq_ignore_ascii_case(NAME)));
    let value = field.map(|line| String::from_utf8_lossy(&line[NAME.len()..]).into_owned()).unwrap_or_default();
    value.trim().trim_matches(['<', '>']).to_owned()
}

/// Returns the received time of a message. The trace has a precision of seconds. The modification time of an exported
/// file also has the fraction of the second.
fn received_time(input: &InputMessage, trace: Option<&Trace<'_>>) -> Option<Timestamp> {
    let header_time = trace.map(|trace| trace.received).or(input.from_line_time);
    match (header_time, input.file_time) {
        (Some(header_time), Some(file)) if file.as_second() == header_time.as_second() => Some(file),
        (header_time, file) => header_time.or(file),
    }
}
