//! The commands `export` and `import`: opens the store, runs the transfer on its own runtime, and stops it at a signal.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use restante_mail::terminal_text;
use restante_settings::Config;
use restante_store::Store;
use restante_store::disk::DiskStore;
use restante_store::postgres::Access;
use restante_transfer::{ExportRequest, INTERRUPTED_EXIT_CODE, ImportRequest, ImportSettings, TransferError};
use tokio::sync::watch;

use crate::exit::Exit;
use crate::process::Signals;
use crate::storage::{self, OpenError};

/// The cache size of an export in bytes. It reads every message only once.
const EXPORT_CACHE_BYTES: usize = 4 << 20;

/// Exports messages of the store to files.
pub fn export(config: &Config, request: &ExportRequest) -> ExitCode {
    finish(run(async |stop| {
        let mailboxes = restante_transfer::requested_mailboxes(request, config.mailbox_naming)?;
        let store = open_read_only(config).await?;
        restante_transfer::export(&*store, &mailboxes, request, stop).await
    }))
}

/// Imports messages from files into the store.
pub fn import(config: &Config, request: &ImportRequest) -> ExitCode {
    finish(run(async |stop| {
        let mailbox = restante_transfer::requested_mailbox(request, config.mailbox_naming)?;
        if config.storage.database.is_none() {
            data_dir(config)?;
        }
        let store = storage::open(&config.storage).await.map_err(|error| open_error(&error))?.store;
        let settings = ImportSettings {
            naming: config.mailbox_naming,
            retention: config.storage.retention_period,
            max_message_bytes: config.smtp.max_message_bytes,
        };
        Ok(restante_transfer::import(&store, mailbox, request, settings, stop).await)
    }))
}

fn open_error(error: &OpenError) -> TransferError {
    if error.is_permanent() { TransferError::usage(error.to_string()) } else { TransferError::failed(error) }
}

fn finish(outcome: Result<ExitCode, TransferError>) -> ExitCode {
    outcome.unwrap_or_else(|error| Exit::error(&terminal_text::escape_line(&error.message), error.exit_code).print())
}

/// Runs a transfer on its own runtime. The value of its argument becomes true at the first signal.
fn run(
    work: impl AsyncFnOnce(watch::Receiver<bool>) -> Result<ExitCode, TransferError>,
) -> Result<ExitCode, TransferError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| TransferError::failed(&format!("cannot start the runtime: {error}")))?;
    let outcome = runtime.block_on(async {
        let mut signals = Signals::listen().map_err(|error| TransferError::failed(&error))?;
        let (stop_sender, stop) = watch::channel(false);
        tokio::spawn(async move {
            signals.next().await;
            stop_sender.send_replace(true);
            // The second signal exits at once. The data directory is consistent at any time.
            signals.next().await;
            std::process::exit(i32::from(INTERRUPTED_EXIT_CODE));
        });
        work(stop).await
    });
    // A thread that reads standard input cannot be stopped.
    runtime.shutdown_background();
    outcome
}

/// Opens the store for reading. A server may use it at the same time.
async fn open_read_only(config: &Config) -> Result<Arc<dyn Store>, TransferError> {
    if config.storage.database.is_some() {
        return Ok(storage::open_with_access(&config.storage, Access::ReadOnly)
            .await
            .map_err(|error| open_error(&error))?
            .store);
    }
    let opened = DiskStore::open_read_only(data_dir(config)?, EXPORT_CACHE_BYTES);
    Ok(Arc::new(opened.map_err(|error| open_error(&OpenError::Directory(error)))?))
}

fn data_dir(config: &Config) -> Result<&Path, TransferError> {
    config.storage.path.as_deref().ok_or_else(|| {
        TransferError::usage("there is no data directory or database: set --data DIR, storage.path or storage.url")
    })
}
