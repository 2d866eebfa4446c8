//! Reads the files of an import on a separate thread, with a limit on bytes that are read but not stored. The content
//! of messages is not parsed here.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::console::format_size;
use super::file_walker::{FileContent, FileWalker, InputFile};
use super::mailpit_database::{self, DatabaseMessage};
use super::mbox::MboxReader;

/// The maximum size of messages that are read but not stored yet, in KiB. A larger message waits until no other is
/// pending.
const MAX_UNSTORED_KIB: u32 = 16 * 1024;
/// The maximum number of messages in the queue.
const QUEUE_CAPACITY: usize = 256;

/// A message and its origin.
#[derive(Debug, Default)]
pub(super) struct InputMessage {
    /// The file, and the position in it, for error messages.
    pub(super) origin: String,
    /// The source of the message.
    pub(super) source: Vec<u8>,
    /// The modification time of the file.
    pub(super) file_time: Option<Timestamp>,
    /// The time in the `From ` line of an mbox.
    pub(super) from_line_time: Option<Timestamp>,
    /// Whether the message is marked as read.
    pub(super) seen: bool,
    /// The mailbox that the path of the file suggests.
    pub(super) suggested_mailbox: Option<String>,
    /// Whether the suggested mailbox takes precedence over that in the trace of the message.
    pub(super) prefers_suggested_mailbox: bool,
    /// What a database knows about the message. Then the source has no trace of ours.
    pub(super) known: Option<KnownDetails>,
}

/// What the database of another server knows about a message beside its source.
#[derive(Debug, Clone, Default)]
pub(super) struct KnownDetails {
    /// The addresses of the recipients.
    pub(super) recipients: Vec<String>,
    /// The tags.
    pub(super) tags: Vec<String>,
    /// The user name of the SMTP session.
    pub(super) login: Option<String>,
}

/// An event of the reader.
#[derive(Debug)]
pub(super) enum ReaderEvent {
    /// A message, and its permit of the memory budget.
    Message(InputMessage, OwnedSemaphorePermit),
    /// A message or a file that cannot be imported, as a sentence.
    Problem(String),
    /// Everything was read.
    End {
        /// The number of files that are not messages.
        ignored: u64,
    },
}

/// Starts a thread that reads all files of the walker. Of a Mailpit database only the messages of the tenant are read, if
/// one is given. Messages of more than `limit` bytes are reported as problems.
pub(super) fn spawn_reader(walker: FileWalker, tenant: Option<String>, limit: usize) -> Receiver<ReaderEvent> {
    let (sender, receiver) = channel(QUEUE_CAPACITY);
    let runtime = Handle::current();
    tokio::task::spawn_blocking(move || {
        let reader =
            Reader { sender, runtime, tenant, limit, budget: Arc::new(Semaphore::new(MAX_UNSTORED_KIB as usize)) };
        // An error means that the receiver needs no more messages.
        let _ = reader.read_all(walker);
    });
    receiver
}

/// The receiver was closed.
struct ReceiverClosed;

struct Reader {
    sender: Sender<ReaderEvent>,
    runtime: Handle,
    tenant: Option<String>,
    limit: usize,
    budget: Arc<Semaphore>,
}

impl Reader {
    fn read_all(&self, mut walker: FileWalker) -> Result<(), ReceiverClosed> {
        for file in walker.by_ref() {
            match file {
                Ok(file) => self.read_file(&file)?,
                Err(problem) => self.send(ReaderEvent::Problem(problem))?,
            }
        }
        self.send(ReaderEvent::End { ignored: walker.ignored() })
    }

    fn read_file(&self, file: &InputFile) -> Result<(), ReceiverClosed> {
        let (input, file_time): (Box<dyn Read>, _) = if file.path == Path::new("-") {
            (Box::new(io::stdin()), None)
        } else {
            match File::open(&file.path) {
                Ok(file) => {
                    let modified = file.metadata().and_then(|found| found.modified()).ok();
                    (Box::new(file), modified.and_then(|time| Timestamp::try_from(time).ok()))
                }
                Err(error) => return self.send_problem(file, &error.to_string()),
            }
        };
        let mut input = BufReader::with_capacity(64 * 1024, input);
        match file.content {
            FileContent::SingleMessage => self.read_single(file, input, file_time),
            FileContent::Mbox => self.read_mbox(file, input, file_time),
            FileContent::MailpitDatabase => self.read_mailpit(file),
            FileContent::Unknown => match input.fill_buf() {
                Ok(bytes) if bytes.starts_with(mailpit_database::SQLITE_MAGIC) => self.read_mailpit(file),
                Ok(bytes) if bytes.starts_with(b"From ") => self.read_mbox(file, input, file_time),
                Ok(_) => self.read_single(&InputFile { suggested_mailbox: None, ..file.clone() }, input, file_time),
                Err(error) => self.send_problem(file, &error.to_string()),
            },
        }
    }

    fn read_single(
        &self,
        file: &InputFile,
        input: impl Read,
        file_time: Option<Timestamp>,
    ) -> Result<(), ReceiverClosed> {
        let mut source = Vec::new();
        if let Err(error) = input.take(self.limit as u64 + 1).read_to_end(&mut source) {
            return self.send_problem(file, &error.to_string());
        }
        if source.is_empty() {
            return self.send_problem(file, "is empty");
        }
        if source.len() > self.limit {
            return self.send_problem(file, &self.too_large());
        }
        self.send_file_message(file, file.path.display().to_string(), source, file_time, None)
    }

    fn read_mbox(
        &self,
        file: &InputFile,
        input: impl BufRead,
        file_time: Option<Timestamp>,
    ) -> Result<(), ReceiverClosed> {
        let mut mbox = MboxReader::new(input, self.limit);
        for number in 1_u64.. {
            let origin = || format!("{}, message {number}", file.path.display());
            match mbox.next() {
                Ok(Some(entry)) => match entry.source {
                    Some(source) if source.is_empty() => {
                        self.send(ReaderEvent::Problem(format!("{}: is empty", origin())))?;
                    }
                    Some(source) => self.send_file_message(file, origin(), source, file_time, entry.date)?,
                    None => self.send(ReaderEvent::Problem(format!("{}: {}", origin(), self.too_large())))?,
                },
                Ok(None) => break,
                Err(error) => return self.send_problem(file, &error.to_string()),
            }
        }
        Ok(())
    }

    fn read_mailpit(&self, file: &InputFile) -> Result<(), ReceiverClosed> {
        let path = file.path.display();
        let read = mailpit_database::read(&file.path, self.tenant.as_deref(), self.limit, |result| match result {
            Ok(message) => {
                let DatabaseMessage { id, source, received, seen, recipients, login, tags } = message;
                self.send_message(InputMessage {
                    origin: format!("{path}, message {id}"),
                    source,
                    file_time: received,
                    seen,
                    known: Some(KnownDetails { recipients, tags, login }),
                    ..InputMessage::default()
                })
            }
            Err(problem) => self.send(ReaderEvent::Problem(format!("{path}, {problem}"))),
        });
        read.unwrap_or_else(|error| self.send_problem(file, &error))
    }

    /// Sends a message of a file.
    fn send_file_message(
        &self,
        file: &InputFile,
        origin: String,
        source: Vec<u8>,
        file_time: Option<Timestamp>,
        from_line_time: Option<Timestamp>,
    ) -> Result<(), ReceiverClosed> {
        let InputFile { suggested_mailbox, prefers_suggested_mailbox, seen, .. } = file.clone();
        self.send_message(InputMessage {
            origin,
            source,
            file_time,
            from_line_time,
            seen,
            suggested_mailbox,
            prefers_suggested_mailbox,
            known: None,
        })
    }

    /// Sends a message when it fits into the memory budget.
    fn send_message(&self, message: InputMessage) -> Result<(), ReceiverClosed> {
        let kib = u32::try_from(message.source.len() / 1024).unwrap_or(MAX_UNSTORED_KIB).clamp(1, MAX_UNSTORED_KIB);
        let permit = self.runtime.block_on(self.budget.clone().acquire_many_owned(kib)).map_err(|_| ReceiverClosed)?;
        self.send(ReaderEvent::Message(message, permit))
    }

    fn send_problem(&self, file: &InputFile, problem: &str) -> Result<(), ReceiverClosed> {
        self.send(ReaderEvent::Problem(format!("{}: {problem}", file.path.display())))
    }

    fn too_large(&self) -> String {
        format!("is larger than {} (raise smtp.maxmessagebytes to allow more)", format_size(self.limit as u64))
    }

    fn send(&self, event: ReaderEvent) -> Result<(), ReceiverClosed> {
        self.sender.blocking_send(event).map_err(|_| ReceiverClosed)
    }
}
