//! Requests for an export or an import, which are also the arguments of the commands.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use super::mailpit_database;

/// Exports the messages of a data directory or a database to Maildirs, .eml files or mbox files.
#[derive(Debug, Clone, PartialEq, Eq, Parser)]
#[command(
    name = "export",
    long_about = "Exports the messages of a data directory or a database to Maildirs, .eml files or mbox files. The server may \
        be running. Existing files are not overwritten."
)]
pub struct ExportRequest {
    /// The output format [default: mbox if OUT ends in .mbox or is -, otherwise maildir]
    #[arg(long)]
    pub format: Option<ExportFormat>,
    /// Only this mailbox, as a name or an address; may be repeated
    #[arg(id = "mailbox", long, value_name = "NAME")]
    pub mailboxes: Vec<String>,
    /// The directory or .mbox file to create, or - for standard output
    pub out: PathBuf,
}

/// The formats of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// OUT/MAILBOX/{cur,new,tmp}: source, times and read marks
    Maildir,
    /// OUT/MAILBOX/ID.eml: source and times
    Eml,
    /// OUT/MAILBOX.mbox, or one file if OUT ends in .mbox or is -
    Mbox,
}

/// Imports messages from Maildirs, .eml and mbox files, an Inbucket store or a Mailpit database into a data directory or a
/// database.
#[derive(Debug, Clone, PartialEq, Eq, Parser)]
#[command(
    name = "import",
    long_about = "Imports messages from Maildirs, .eml and mbox files, an Inbucket file store or a Mailpit database into a data \
        directory or a database. The directory is created if it does not exist. No server may be running on the directory."
)]
pub struct ImportRequest {
    /// The input format
    #[arg(long, default_value = "auto")]
    pub format: ImportFormat,
    /// The mailbox for all messages, as a name or an address; by default it is derived from file names and contents
    #[arg(long, value_name = "NAME")]
    pub mailbox: Option<String>,
    /// Treats all messages as received now, so that their retention starts again
    #[arg(long)]
    pub received_now: bool,
    /// The database of a Mailpit server, such as mailpit.db
    #[arg(long, value_name = "DATABASE", conflicts_with_all = ["paths", "format"])]
    pub from: Vec<PathBuf>,
    /// Imports only this tenant of the Mailpit database (MP_TENANT_ID); '' is the one without a name
    // An argument is not required if it conflicts with another one.
    #[arg(long, value_name = "NAME", requires = "from", conflicts_with = "paths")]
    pub tenant: Option<String>,
    /// A directory or a file with messages, or - for standard input
    #[arg(value_name = "PATH", required_unless_present = "from")]
    pub paths: Vec<PathBuf>,
}

impl ImportRequest {
    /// Returns the expected format, and the files and folders to import.
    pub(super) fn inputs(&self) -> (ImportFormat, &[PathBuf]) {
        if self.from.is_empty() { (self.format, &self.paths) } else { (ImportFormat::Mailpit, &self.from) }
    }

    /// Returns whether a database of Mailpit is imported: the format says so, or a file that is given begins like one.
    pub fn has_mailpit_database(&self) -> bool {
        match self.inputs() {
            (ImportFormat::Mailpit, _) => true,
            (ImportFormat::Auto, paths) => paths.iter().any(|path| mailpit_database::is_sqlite(path)),
            _ => false,
        }
    }
}

/// The formats of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ImportFormat {
    /// Maildirs and .eml, .mbox and .raw files, anywhere below PATH
    Auto,
    /// Maildirs only
    Maildir,
    /// Every file is one message
    Eml,
    /// Every file is an mbox
    Mbox,
    /// The directory of an Inbucket file store
    Inbucket,
    /// The database of Mailpit
    Mailpit,
}
