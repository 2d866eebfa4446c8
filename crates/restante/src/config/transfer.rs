//! What the command line asks of an export or import, as values. How the flags are spelt is known to `cli`.

use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::PossibleValue;

/// `restante export`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
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
pub struct Import {
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

impl ValueEnum for ExportFormat {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Maildir, Self::Eml, Self::Mbox]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Self::Maildir => {
                PossibleValue::new("maildir").help("OUT/MAILBOX/{cur,new,tmp}: bytes, times and read marks")
            }
            Self::Eml => PossibleValue::new("eml").help("OUT/MAILBOX/ID.eml: bytes and times"),
            Self::Mbox => {
                PossibleValue::new("mbox").help("OUT/MAILBOX.mbox, or one file when OUT ends in .mbox or is -")
            }
        })
    }
}

impl ValueEnum for ImportFormat {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Auto, Self::Maildir, Self::Eml, Self::Mbox, Self::Inbucket]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Self::Auto => {
                PossibleValue::new("auto").help("Maildirs, .eml, .mbox and .raw files, wherever they are below PATH")
            }
            Self::Maildir => PossibleValue::new("maildir").help("Maildirs only"),
            Self::Eml => PossibleValue::new("eml").help("Every file is one message"),
            Self::Mbox => PossibleValue::new("mbox").help("Every file is an mbox"),
            Self::Inbucket => PossibleValue::new("inbucket").help("The folder of an Inbucket file store"),
        })
    }
}
