//! Export of a store to files, and import of files into a store.
//!
//! - `request`: what to export or import
//! - `export`, `output`: reads a store and writes files
//! - `file_walker`, `message_reader`, `import`: finds files, reads them, and stores the messages, many at a time
//! - `mailpit_database`: reads the messages of a Mailpit database
//! - `trace`, `mbox`, `from_line`, `names`: formats of files and file names
//! - `console`: progress bar and messages
//!
//! The caller opens the store and handles signals.

mod console;
mod export;
mod file_walker;
mod from_line;
mod import;
mod mailpit_database;
mod mbox;
mod message_reader;
mod names;
mod output;
mod request;
#[cfg(test)]
mod tests;
mod trace;

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use restante_mail::naming::{MailboxName, Naming};
use restante_store::Store;
use tokio::sync::watch;

use console::{Console, format_messages, format_period, format_size, format_thousands};
use export::ExportCounts;
use file_walker::FileWalker;
use import::{ImportOptions, ImportOutcome};

pub use mailpit_database::{is_sqlite, mailpit_table_prefix};
pub use request::{ExportFormat, ExportRequest, ImportFormat, ImportRequest};

/// The maximum size of an imported message, unless the server accepts larger ones.
const MAX_MESSAGE_BYTES: usize = 64 << 20;
/// The exit code for a command that cannot be executed as given.
const USAGE_EXIT_CODE: u8 = 2;
/// The exit code after Ctrl-C, as in shells.
pub const INTERRUPTED_EXIT_CODE: u8 = 130;

/// The reason why nothing was exported or imported, as a sentence for the operator.
#[derive(Debug)]
pub struct TransferError {
    /// The reason.
    pub message: String,
    /// The exit code.
    pub exit_code: u8,
}

impl TransferError {
    /// Creates an error for a command that cannot be executed as given.
    pub fn usage(text: impl Into<String>) -> Self {
        Self { message: text.into(), exit_code: USAGE_EXIT_CODE }
    }

    /// Creates an error for a command that failed, but may succeed later.
    pub fn failed(text: &impl ToString) -> Self {
        Self { message: text.to_string(), exit_code: 1 }
    }
}

/// Returns the mailboxes that a request names. An empty list means all mailboxes.
pub fn requested_mailboxes(request: &ExportRequest, naming: Naming) -> Result<Vec<MailboxName>, TransferError> {
    let mailboxes: Result<Vec<_>, _> = request.mailboxes.iter().map(|name| parse_mailbox(naming, name)).collect();
    let mut mailboxes = mailboxes?;
    mailboxes.sort();
    mailboxes.dedup();
    Ok(mailboxes)
}

/// Writes messages of the store to files, until all are written or `stop` becomes true. Reports progress and problems
/// on standard error.
pub async fn export(
    store: &dyn Store,
    mailboxes: &[MailboxName],
    request: &ExportRequest,
    stop: watch::Receiver<bool>,
) -> Result<ExitCode, TransferError> {
    let mut output = output::open(request).map_err(TransferError::usage)?;
    let mut console = Console::stderr();
    let out = request.out.display();
    let (status, code) = match export::export(store, mailboxes, &mut *output, &mut console, &stop).await {
        Ok(ExportCounts { mailboxes, messages: count, bytes }) => {
            let plural = if mailboxes == 1 { "mailbox" } else { "mailboxes" };
            let (count, mailboxes, bytes) = (format_messages(count), format_thousands(mailboxes), format_size(bytes));
            let status = format!("exported {count} of {mailboxes} {plural} ({bytes}) to {out}");
            (status, u8::from(console.problem_count() > 0))
        }
        // The reader of the pipe has closed it and needs no more output.
        Err(export::ExportError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            return Ok(ExitCode::SUCCESS);
        }
        Err(error) => {
            drop(output);
            let leftovers = output::describe_leftovers(&request.out);
            match error {
                export::ExportError::Interrupted => (format!("interrupted: {leftovers}"), INTERRUPTED_EXIT_CODE),
                export::ExportError::Output(error) => (format!("cannot write to {out}: {error}; {leftovers}"), 1),
                export::ExportError::Store(error) => (format!("{error}; {leftovers}"), 1),
            }
        }
    };
    console.finish(&[status]);
    Ok(ExitCode::from(code))
}

/// What to do before the server starts after an import from Mailpit, which is not limited by settings of the server.
const SERVER_LIMITS: &str = "the limits of the server apply when it starts: as mailpit it keeps the newest 500 messages, \
    so set MP_MAX_MESSAGES=0 to keep all; otherwise set storage.retentionperiod=0 and storage.mailboxmsgcap=0";

/// The settings of the server whose store is filled.
#[derive(Clone, Copy, Debug)]
pub struct ImportSettings {
    /// The rule that maps addresses to mailbox names.
    pub naming: Naming,
    /// The retention period of messages. `None` if they are kept forever.
    pub retention: Option<Duration>,
    /// The maximum size of a message that the server accepts, in bytes. Imported messages may be larger, up to a fixed
    /// limit.
    pub max_message_bytes: usize,
}

/// Returns the mailbox that a request names for all messages.
pub fn requested_mailbox(request: &ImportRequest, naming: Naming) -> Result<Option<MailboxName>, TransferError> {
    request.mailbox.as_deref().map(|name| parse_mailbox(naming, name)).transpose()
}

/// Stores the messages in the files of a request, until all are stored or `stop` becomes true. Reports progress and
/// problems on standard error.
pub async fn import(
    store: &Arc<dyn Store>,
    mailbox: Option<MailboxName>,
    request: &ImportRequest,
    settings: ImportSettings,
    stop: watch::Receiver<bool>,
) -> ExitCode {
    let ImportSettings { naming, retention, max_message_bytes } = settings;
    let mut console = Console::stderr();
    let total = if console.has_bar() { total_bytes(request) } else { 0 };
    let options = ImportOptions { naming, mailbox, received_now: request.received_now, retention, total };
    let limit = MAX_MESSAGE_BYTES.max(max_message_bytes);
    let walker = walk_files(request);
    let events = message_reader::spawn_reader(walker, request.tenant.clone(), limit);
    let imported = import::import(store, &options, events, &mut console, stop).await;
    let problems = console.problem_count();
    let mut lines = summary_lines(&imported, problems, retention);
    if request.has_mailpit_database() && imported.messages > 0 {
        lines.push(SERVER_LIMITS.to_owned());
    }
    console.finish(&lines);
    match imported.error {
        Some(import::ImportError::Interrupted) => ExitCode::from(INTERRUPTED_EXIT_CODE),
        Some(import::ImportError::Store(_)) => ExitCode::FAILURE,
        None => ExitCode::from(u8::from(problems > 0)),
    }
}

/// Returns the final report of an import.
fn summary_lines(imported: &ImportOutcome, problems: u64, retention: Option<Duration>) -> Vec<String> {
    let mut lines = Vec::new();
    match &imported.error {
        Some(import::ImportError::Interrupted) => lines.push("interrupted: the rest was not imported".to_owned()),
        Some(import::ImportError::Store(error)) => lines.push(format!("{error}; the rest was not imported")),
        None => {}
    }
    let mut counts = vec![format!("imported {} ({})", format_messages(imported.messages), format_size(imported.bytes))];
    if problems > 0 {
        counts.push(format!("{} could not be imported", format_thousands(problems)));
    }
    if imported.ignored > 0 {
        counts.push(format!("{} other files were ignored", format_thousands(imported.ignored)));
    }
    lines.push(counts.join(", "));
    if imported.evicted > 0 {
        let evicted = format_messages(imported.evicted);
        lines.push(format!(
            "{evicted} evicted because of the limits storage.mailboxmsgcap and storage.params; from a full mailbox, \
             those that were stored first"
        ));
    }
    if let (Some(period), 1..) = (retention, imported.expired) {
        let (expired, period) = (format_messages(imported.expired), format_period(period));
        let are = if imported.expired == 1 { "is" } else { "are" };
        lines.push(format!(
            "{expired} {are} older than the retention period of {period} and will be deleted when the server starts; \
             use --received-now to keep them"
        ));
    }
    lines
}

fn parse_mailbox(naming: Naming, name: &str) -> Result<MailboxName, TransferError> {
    naming.parse_mailbox(name).map_err(|error| TransferError::usage(format!("--mailbox {name}: {error}")))
}

/// Returns the total size of the files, for the progress bar.
fn total_bytes(request: &ImportRequest) -> u64 {
    walk_files(request).flatten().filter_map(|file| Some(file.path.metadata().ok()?.len())).sum()
}

fn walk_files(request: &ImportRequest) -> FileWalker {
    let (format, paths) = request.inputs();
    FileWalker::new(format, paths)
}
