//! Finds the files of an import, in a fixed order: by name, with digits compared as numbers. Only folders are read
//! here.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::names::{decode_mailbox_name, natural_order};
use super::request::ImportFormat;

/// The maximum depth of nested folders. A deeper one is a loop or a mistake.
const MAX_FOLDER_DEPTH: usize = 32;

/// A file that contains messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct InputFile {
    /// The path. `-` is standard input.
    pub(super) path: PathBuf,
    /// The content of the file.
    pub(super) content: FileContent,
    /// The mailbox that the path suggests. With [`FileContent::Unknown`] it applies only if the file is an mbox.
    pub(super) suggested_mailbox: Option<String>,
    /// Whether the suggested mailbox takes precedence over that in the trace of the message.
    pub(super) prefers_suggested_mailbox: bool,
    /// Whether the message is marked as read.
    pub(super) seen: bool,
}

/// The content of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum FileContent {
    /// One message.
    SingleMessage,
    /// An mbox.
    Mbox,
    /// The SQLite file of Mailpit.
    MailpitDatabase,
    /// Determined by the first bytes.
    #[default]
    Unknown,
}

/// An iterator over the files below the paths of an import.
#[derive(Debug)]
pub(super) struct FileWalker {
    format: ImportFormat,
    /// The remaining steps. The next one is the last element.
    steps: Vec<Step>,
    /// The number of files that are not messages.
    ignored: u64,
}

#[derive(Debug)]
enum Step {
    Argument(PathBuf),
    File(InputFile),
    Folder {
        path: PathBuf,
        depth: usize,
        /// The mailbox of the Maildir that contains this folder.
        inherited: Option<String>,
    },
    Problem(String),
}

impl FileWalker {
    pub(super) fn new(format: ImportFormat, paths: &[PathBuf]) -> Self {
        Self { format, steps: paths.iter().rev().cloned().map(Step::Argument).collect(), ignored: 0 }
    }

    /// Returns the number of files that were ignored because nothing indicates that they are messages.
    pub(super) fn ignored(&self) -> u64 {
        self.ignored
    }

    fn classify_argument(&self, path: PathBuf) -> Step {
        let content = match (self.format, extension(&path)) {
            (ImportFormat::Mbox, _) | (ImportFormat::Auto, Some("mbox" | "mbx")) => FileContent::Mbox,
            (ImportFormat::Mailpit, _) => FileContent::MailpitDatabase,
            (ImportFormat::Auto, extension) if extension != Some("eml") => FileContent::Unknown,
            _ => FileContent::SingleMessage,
        };
        if path == Path::new("-") {
            return Step::File(InputFile { path, content, ..InputFile::default() });
        }
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() => Step::Folder { path, depth: 0, inherited: None },
            Ok(found) => {
                // An mbox is named after its mailbox. A single message is not, and its folder was not given. The name
                // of a pipe is chosen by a shell.
                let is_named_after_mailbox = found.is_file() && content != FileContent::SingleMessage;
                let suggested_mailbox = if is_named_after_mailbox { mailbox_of_mbox_file(&path) } else { None };
                Step::File(InputFile { path, content, suggested_mailbox, ..InputFile::default() })
            }
            Err(error) => Step::Problem(format!("{}: {error}", path.display())),
        }
    }

    fn expand_folder(&mut self, path: &Path, depth: usize, inherited: Option<String>) -> io::Result<()> {
        let entries = read_entries(path)?;
        let is_folder =
            |name: &str| entries.iter().any(|entry| entry.kind == EntryKind::Folder && entry.name == OsStr::new(name));
        let allows_maildir = matches!(self.format, ImportFormat::Auto | ImportFormat::Maildir | ImportFormat::Eml);
        let steps = if allows_maildir && is_folder("cur") && is_folder("new") {
            self.expand_maildir(path, depth, inherited, &entries)?
        } else {
            entries.iter().filter_map(|entry| self.classify_entry(path, depth, inherited.as_deref(), entry)).collect()
        };
        self.steps.extend(steps.into_iter().rev());
        Ok(())
    }

    /// Expands a Maildir: the messages of `new` and `cur` in one order, then all other entries, which belong to the
    /// same mailbox.
    fn expand_maildir(
        &mut self,
        path: &Path,
        depth: usize,
        name: Option<String>,
        entries: &[FolderEntry],
    ) -> io::Result<Vec<Step>> {
        let suggested_mailbox = name.or_else(|| mailbox_of_folder(path));
        let mut messages = Vec::new();
        for folder in ["new", "cur"] {
            let folder = path.join(folder);
            let found = self::read_entries(&folder)?.into_iter().filter(|entry| !entry.is_hidden());
            messages.extend(found.map(|entry| (folder.join(&entry.name), entry)));
        }
        messages.sort_by(|(_, a), (_, b)| natural_order(a.name.as_encoded_bytes(), b.name.as_encoded_bytes()));
        let mut steps = Vec::with_capacity(messages.len());
        for (path, entry) in messages {
            let suggested_mailbox = suggested_mailbox.clone();
            match entry.kind {
                EntryKind::File => {
                    let seen = is_seen(&entry.name);
                    steps.push(Step::File(InputFile {
                        path,
                        content: FileContent::SingleMessage,
                        suggested_mailbox,
                        prefers_suggested_mailbox: true,
                        seen,
                    }));
                }
                EntryKind::Folder => steps.push(Step::Folder { path, depth: depth + 1, inherited: suggested_mailbox }),
                EntryKind::Link => steps.push(symlink_problem(&path)),
                EntryKind::Other => self.ignored += 1,
            }
        }
        for entry in entries {
            match entry.name.to_str() {
                Some("cur" | "new") => {}
                // Files in `tmp` were never delivered.
                Some("tmp") if entry.kind == EntryKind::Folder => {
                    self.ignored += self::read_entries(&path.join("tmp"))?.len() as u64;
                }
                _ => steps.extend(self.classify_entry(path, depth, suggested_mailbox.as_deref(), entry)),
            }
        }
        Ok(steps)
    }

    /// Returns the step for an entry of a folder. Inside of a Maildir, messages without another mailbox belong to that
    /// of the Maildir.
    fn classify_entry(
        &mut self,
        folder: &Path,
        depth: usize,
        inherited: Option<&str>,
        entry: &FolderEntry,
    ) -> Option<Step> {
        let path = folder.join(&entry.name);
        // Hidden entries are ignored, except subfolders of Maildir++, whose names start with a dot.
        if entry.is_hidden() && !(entry.kind == EntryKind::Folder && path.join("cur").is_dir()) {
            return None;
        }
        match entry.kind {
            EntryKind::File => {}
            EntryKind::Folder => {
                let inherited = inherited.map(str::to_owned);
                return Some(Step::Folder { path, depth: depth + 1, inherited });
            }
            EntryKind::Link => return Some(symlink_problem(&path)),
            EntryKind::Other => {
                self.ignored += 1;
                return None;
            }
        }
        let single = |suggested_mailbox| Some((FileContent::SingleMessage, suggested_mailbox));
        let found = match (self.format, extension(&path)) {
            (ImportFormat::Auto | ImportFormat::Inbucket, Some("raw")) => single(None),
            (ImportFormat::Auto, Some("eml")) | (ImportFormat::Eml, _) => {
                single(inherited.map(str::to_owned).or_else(|| mailbox_of_folder(folder)))
            }
            (ImportFormat::Auto, Some("mbox" | "mbx")) | (ImportFormat::Mbox, _) => {
                Some((FileContent::Mbox, mailbox_of_mbox_file(&path)))
            }
            _ => None,
        };
        let Some((content, suggested_mailbox)) = found else {
            // The index of an Inbucket mailbox is expected, but not needed.
            self.ignored += u64::from(entry.name != OsStr::new("index.gob"));
            return None;
        };
        Some(Step::File(InputFile { path, content, suggested_mailbox, ..InputFile::default() }))
    }
}

impl Iterator for FileWalker {
    /// A file, or a sentence about a path that cannot be read.
    type Item = Result<InputFile, String>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.steps.pop()? {
                Step::Argument(path) => {
                    let step = self.classify_argument(path);
                    self.steps.push(step);
                }
                Step::File(file) => return Some(Ok(file)),
                Step::Problem(problem) => return Some(Err(problem)),
                Step::Folder { path, depth, .. } if depth > MAX_FOLDER_DEPTH => {
                    return Some(Err(format!("{}: is nested too deeply", path.display())));
                }
                Step::Folder { path, depth, inherited } => {
                    if let Err(error) = self.expand_folder(&path, depth, inherited) {
                        return Some(Err(format!("{}: {error}", path.display())));
                    }
                }
            }
        }
    }
}

/// An entry of a folder.
struct FolderEntry {
    name: OsString,
    kind: EntryKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EntryKind {
    File,
    Folder,
    Link,
    /// A pipe, a socket or a device. Opening one can block forever.
    Other,
}

impl FolderEntry {
    fn is_hidden(&self) -> bool {
        self.name.as_encoded_bytes().starts_with(b".")
    }
}

fn read_entries(folder: &Path) -> io::Result<Vec<FolderEntry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = match entry.file_type()? {
            kind if kind.is_file() => EntryKind::File,
            kind if kind.is_dir() => EntryKind::Folder,
            kind if kind.is_symlink() => EntryKind::Link,
            _ => EntryKind::Other,
        };
        entries.push(FolderEntry { name: entry.file_name(), kind });
    }
    entries.sort_by(|a, b| natural_order(a.name.as_encoded_bytes(), b.name.as_encoded_bytes()));
    Ok(entries)
}

/// Returns the problem for a symbolic link. Links could form loops, or lead to files that the operator did not mean.
fn symlink_problem(path: &Path) -> Step {
    Step::Problem(format!("{}: is a symbolic link; import what it points to", path.display()))
}

/// Returns whether the flags at the end of a Maildir file name contain `S` (seen).
fn is_seen(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    // Windows does not allow a colon in file names.
    name.rsplit_once(":2,").or_else(|| name.rsplit_once(";2,")).is_some_and(|(_, flags)| flags.contains('S'))
}

/// Returns the mailbox that a folder is named after. `.` and `..` are resolved to the name of the folder.
fn mailbox_of_folder(folder: &Path) -> Option<String> {
    let name = match folder.file_name() {
        Some(name) => name.to_owned(),
        None => fs::canonicalize(folder).ok()?.file_name()?.to_owned(),
    };
    decode_mailbox_name(name.to_str()?)
}

/// Returns the mailbox that an mbox is named after, as in `bob.mbox` and `/var/mail/bob`.
fn mailbox_of_mbox_file(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    decode_mailbox_name(name.strip_suffix(".mbox").or(name.strip_suffix(".mbx")).unwrap_or(name))
}

fn extension(path: &Path) -> Option<&str> {
    path.extension()?.to_str()
}
