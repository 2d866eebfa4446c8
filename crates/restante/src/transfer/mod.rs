//! Mail in and out of a data directory or a database: `restante export` and `restante import`.
//!
//! The parts: `request` is what the command line asks for; `export` goes through a store and writes to an `output`;
//! `walk` finds files, `letters` reads them, `import` stores what they hold, many at once by `flight`. `trace`, `mbox`,
//! `postmark` and `names` know the shapes of bytes and names. `console` talks to the operator. Here they are put together.

mod console;
mod export;
mod flight;
mod import;
mod letters;
mod mbox;
mod names;
mod output;
mod postmark;
#[cfg(test)]
mod tests;
mod trace;
mod walk;

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use restante_client::plain;
use restante_mail::naming::{MailboxName, Naming};
use restante_store::Store;
use restante_store::disk::DiskStore;
use restante_store::postgres::Access;
use tokio::sync::watch;

use crate::config::{Config, Export, Import};
use crate::process::Signals;
use crate::storage::{self, OpenError};
use console::{Console, messages, period, size, thousands};
use export::Exported;
use import::{Imported, Rules};
use walk::Walk;

/// The largest message that is imported, unless the server itself takes larger ones.
const MAX_MESSAGE: usize = 64 << 20;
/// The exit code for a command that cannot be carried out as it was given.
const USAGE: u8 = 2;
/// The exit code after Ctrl-C, as shells have it.
const INTERRUPTED: u8 = 130;
/// What an export remembers of the database: it reads everything once.
const EXPORT_CACHE: usize = 4 << 20;

/// Writes mail of the store to files.
pub fn export(config: &Config, request: &Export) -> ExitCode {
    finish(run(async |stop| export_all(config, request, stop).await))
}

/// Takes mail from files into the store.
pub fn import(config: &Config, request: &Import) -> ExitCode {
    finish(run(async |stop| import_all(config, request, stop).await))
}

/// Why nothing was done; the text is a sentence for the operator.
struct Refused {
    text: String,
    code: u8,
}

impl Refused {
    fn usage(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: USAGE }
    }

    fn trouble(text: &impl ToString) -> Self {
        Self { text: text.to_string(), code: 1 }
    }
}

impl From<OpenError> for Refused {
    fn from(error: OpenError) -> Self {
        Self { text: error.to_string(), code: if error.is_permanent() { USAGE } else { 1 } }
    }
}

fn finish(outcome: Result<ExitCode, Refused>) -> ExitCode {
    outcome.unwrap_or_else(|refused| {
        // The exit code tells it too, when nobody reads this any more.
        let _ = writeln!(io::stderr(), "restante: {}", plain::line(&refused.text));
        ExitCode::from(refused.code)
    })
}

/// Runs a transfer on a runtime of its own, with a sign that says when somebody wants it to end.
fn run(work: impl AsyncFnOnce(watch::Receiver<bool>) -> Result<ExitCode, Refused>) -> Result<ExitCode, Refused> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Refused::trouble(&format!("cannot start the runtime: {error}")))?;
    let outcome = runtime.block_on(async {
        let mut signals = Signals::listen().map_err(|error| Refused::trouble(&error))?;
        let (sign, stop) = watch::channel(false);
        tokio::spawn(async move {
            signals.next().await;
            sign.send_replace(true);
            // Told twice, it does not wait for what is under way. A directory can be left at any moment.
            signals.next().await;
            std::process::exit(i32::from(INTERRUPTED));
        });
        work(stop).await
    });
    // A reader that waits for standard input does not hear that it is over.
    runtime.shutdown_background();
    outcome
}

async fn export_all(config: &Config, request: &Export, stop: watch::Receiver<bool>) -> Result<ExitCode, Refused> {
    let naming = config.mailbox_naming;
    let mailboxes: Result<Vec<_>, _> = request.mailboxes.iter().map(|name| mailbox(naming, name)).collect();
    let mut mailboxes = mailboxes?;
    mailboxes.sort();
    mailboxes.dedup();
    let store = open_to_read(config).await?;
    let mut output = output::open(request).map_err(Refused::usage)?;
    let mut console = Console::stderr();
    let out = request.out.display();
    let (told, code) = match export::export(&*store, &mailboxes, &mut *output, &mut console, &stop).await {
        Ok(Exported { mailboxes, messages: count, bytes }) => {
            let plural = if mailboxes == 1 { "mailbox" } else { "mailboxes" };
            let (count, mailboxes, bytes) = (messages(count), thousands(mailboxes), size(bytes));
            let told = format!("exported {count} of {mailboxes} {plural} ({bytes}) to {out}");
            (told, u8::from(console.problems() > 0))
        }
        // Whoever closed the pipe has seen enough.
        Err(export::Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            return Ok(ExitCode::SUCCESS);
        }
        Err(failure) => {
            drop(output);
            let remains = output::remains(&request.out);
            match failure {
                export::Failure::Interrupted => (format!("interrupted: {remains}"), INTERRUPTED),
                export::Failure::Output(error) => (format!("cannot write to {out}: {error}; {remains}"), 1),
                export::Failure::Store(error) => (format!("{error}; {remains}"), 1),
            }
        }
    };
    console.close(&[told]);
    Ok(ExitCode::from(code))
}

async fn import_all(config: &Config, request: &Import, stop: watch::Receiver<bool>) -> Result<ExitCode, Refused> {
    let naming = config.mailbox_naming;
    let wanted = request.mailbox.as_deref().map(|name| mailbox(naming, name)).transpose()?;
    if config.storage.database.is_none() {
        data_dir(config)?;
    }
    let store = storage::open(&config.storage).await?.store;
    let mut console = Console::stderr();
    let total = if console.has_bar() { total_bytes(request) } else { 0 };
    let retention = config.storage.retention_period;
    let rules = Rules { naming, mailbox: wanted, received_now: request.received_now, retention, total };
    let limit = MAX_MESSAGE.max(config.smtp.max_message_bytes);
    let news = letters::read(Walk::new(request.format, &request.paths), limit);
    let imported = import::import(&store, &rules, news, &mut console, stop).await;
    let problems = console.problems();
    console.close(&closing(&imported, problems, config));
    Ok(match imported.failure {
        Some(import::Failure::Interrupted) => ExitCode::from(INTERRUPTED),
        Some(import::Failure::Store(_)) => ExitCode::FAILURE,
        None => ExitCode::from(u8::from(problems > 0)),
    })
}

/// What an operator should know about an import that is over.
fn closing(imported: &Imported, problems: u64, config: &Config) -> Vec<String> {
    let mut lines = Vec::new();
    match &imported.failure {
        Some(import::Failure::Interrupted) => lines.push("interrupted: the rest was not imported".to_owned()),
        Some(import::Failure::Store(error)) => lines.push(format!("{error}; the rest was not imported")),
        None => {}
    }
    let mut counts = vec![format!("imported {} ({})", messages(imported.messages), size(imported.bytes))];
    if problems > 0 {
        counts.push(format!("{} could not be taken", thousands(problems)));
    }
    if imported.ignored > 0 {
        counts.push(format!("{} other files were left alone", thousands(imported.ignored)));
    }
    lines.push(counts.join(", "));
    if imported.evicted > 0 {
        let went = messages(imported.evicted);
        lines.push(format!(
            "{went} went to keep the limits, see storage.mailboxmsgcap and storage.params; of a mailbox that is full, \
             those that were in it first"
        ));
    }
    if let (Some(kept), 1..) = (config.storage.retention_period, imported.expired) {
        let (old, kept) = (messages(imported.expired), period(kept));
        let are = if imported.expired == 1 { "is" } else { "are" };
        lines.push(format!(
            "{old} {are} older than the retention period of {kept} and will go when the server starts; \
             --received-now keeps them"
        ));
    }
    lines
}

fn mailbox(naming: Naming, name: &str) -> Result<MailboxName, Refused> {
    naming.mailbox_named(name).map_err(|error| Refused::usage(format!("--mailbox {name}: {error}")))
}

/// A database is opened as for a server, beside which it is read; of a data directory nothing is touched.
async fn open_to_read(config: &Config) -> Result<Arc<dyn Store>, Refused> {
    if config.storage.database.is_some() {
        return Ok(storage::open_for(&config.storage, Access::Read).await?.store);
    }
    let opened = DiskStore::open_read_only(data_dir(config)?, EXPORT_CACHE);
    Ok(Arc::new(opened.map_err(OpenError::Directory)?))
}

fn data_dir(config: &Config) -> Result<&Path, Refused> {
    config.storage.path.as_deref().ok_or_else(|| {
        Refused::usage(
            "which data directory? Name it by --data DIR, or by storage.path in the configuration; or a database by storage.url",
        )
    })
}

/// What there is to read, for the bar.
fn total_bytes(request: &Import) -> u64 {
    let files = Walk::new(request.format, &request.paths).flatten();
    files.filter_map(|item| Some(item.path.metadata().ok()?.len())).sum()
}
