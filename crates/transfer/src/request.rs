//! Requests for an export or an import. The command line parser creates them.

use std::path::PathBuf;

use super::mailpit_database;

/// `restante export`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportRequest {
    /// The format. If `None`, the name of `out` determines it.
    pub format: Option<ExportFormat>,
    /// The mailboxes to export, as names or addresses. Empty means all.
    pub mailboxes: Vec<String>,
    /// The folder or file to create, or `-` for standard output.
    pub out: PathBuf,
}

/// The formats of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// A Maildir for each mailbox.
    Maildir,
    /// A folder of plain files for each mailbox.
    Eml,
    /// An mbox for each mailbox, or one for all.
    Mbox,
}

/// `restante import`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportRequest {
    /// The expected format.
    pub format: ImportFormat,
    /// The mailbox for all messages, as a name or an address. If `None`, file names and contents determine the mailbox.
    pub mailbox: Option<String>,
    /// The tenant of a Mailpit database whose messages are imported. An empty name is the default tenant, `None` means all.
    pub tenant: Option<String>,
    /// Whether all messages count as received now.
    pub received_now: bool,
    /// The files and folders to import, or `-` for standard input.
    pub paths: Vec<PathBuf>,
}

impl ImportRequest {
    /// Returns whether a database of Mailpit is imported: the format says so, or a file that is given begins like one.
    pub fn has_mailpit_database(&self) -> bool {
        match self.format {
            ImportFormat::Mailpit => true,
            ImportFormat::Auto => self.paths.iter().any(|path| mailpit_database::is_sqlite(path)),
            _ => false,
        }
    }
}

/// The formats of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportFormat {
    /// Determined by file names and contents.
    Auto,
    /// Maildirs.
    Maildir,
    /// One message per file.
    Eml,
    /// Many messages per file.
    Mbox,
    /// The folder tree of an Inbucket `file` store.
    Inbucket,
    /// The SQLite file of Mailpit.
    Mailpit,
}
