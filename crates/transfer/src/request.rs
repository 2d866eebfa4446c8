//! What to export or import. The command line parser fills these in.

use std::path::PathBuf;

/// `restante export`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportRequest {
    /// The form to write; none means what the name of `out` suggests.
    pub format: Option<ExportFormat>,
    /// The mailboxes to write, as names or addresses; none means all.
    pub mailboxes: Vec<String>,
    /// The folder or file to make, or `-` for standard output.
    pub out: PathBuf,
}

/// The forms that mail is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// A Maildir for each mailbox.
    Maildir,
    /// A folder of plain files for each mailbox.
    Eml,
    /// A file for each mailbox, or one for all of them.
    Mbox,
}

/// `restante import`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportRequest {
    /// The form to expect.
    pub format: ImportFormat,
    /// The mailbox for everything, as a name or an address; none means that names and contents tell.
    pub mailbox: Option<String>,
    /// Whether everything counts as received now.
    pub received_now: bool,
    /// Where the mail is: files, folders, or `-` for standard input.
    pub paths: Vec<PathBuf>,
}

/// The forms that mail is read in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportFormat {
    /// Whatever names and contents tell.
    Auto,
    /// Maildirs.
    Maildir,
    /// A mail in each file.
    Eml,
    /// Many mails in each file.
    Mbox,
    /// The tree of an Inbucket `file` store.
    Inbucket,
}
