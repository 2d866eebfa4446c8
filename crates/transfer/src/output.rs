//! The output formats of an export: Maildirs, folders of plain files, and mbox files. Each file is written under a
//! temporary name and then renamed. So only complete files are visible, even during or after an interrupted export. At
//! the end of the export everything is synced to disk.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use restante_mail::mbox;
use restante_mail::message::{Source, Summary};
use restante_mail::naming::MailboxName;
use restante_platform::{FileSystem, private_dir, private_file};

use super::names::{self, FileNames};
use super::request::{ExportFormat, ExportRequest};
use super::trace::Trace;

/// Writes the messages of an export, mailbox by mailbox.
pub(super) trait Output {
    /// Starts a mailbox. The following messages belong to it.
    fn start_mailbox(&mut self, mailbox: &MailboxName) -> io::Result<()>;

    /// Writes a message.
    fn write(&mut self, message: &Summary, source: &Source) -> io::Result<()>;

    /// Completes open files and syncs everything to disk. Otherwise open files are removed, and the rest may not be on
    /// disk yet.
    fn finish(&mut self) -> io::Result<()>;
}

/// Opens the output of a request. The error is a sentence for the operator.
pub(super) fn open(request: &ExportRequest) -> Result<Box<dyn Output>, String> {
    let out = &request.out;
    let (stdout, one_file) = (out == Path::new("-"), out.extension().is_some_and(|extension| extension == "mbox"));
    let default_format = if stdout || one_file { ExportFormat::Mbox } else { ExportFormat::Maildir };
    match request.format.unwrap_or(default_format) {
        ExportFormat::Mbox if stdout => Ok(Box::new(StdoutMbox(BufWriter::new(io::stdout())))),
        ExportFormat::Mbox if one_file => {
            let file = MboxFiles::single(out).map_err(|error| format!("cannot write {}: {error}", out.display()))?;
            Ok(Box::new(file))
        }
        _ if stdout => Err("only mbox can be written to standard output".to_owned()),
        format => {
            let root = ExportRoot::create(out)?;
            let folder = out.clone();
            Ok(match format {
                ExportFormat::Mbox => Box::new(MboxFiles { root, open: None, is_single: false }),
                ExportFormat::Maildir | ExportFormat::Eml => {
                    Box::new(MessageFiles { root, folder, is_maildir: format == ExportFormat::Maildir })
                }
            })
        }
    }
}

/// Describes the leftovers of an incomplete export for the operator. The output must have been dropped.
pub(super) fn describe_leftovers(out: &Path) -> String {
    let displayed = out.display();
    match out.exists() {
        _ if out == Path::new("-") => "the output is incomplete".to_owned(),
        true => format!("{displayed} is incomplete"),
        false => format!("{displayed} was not created"),
    }
}

/// The folder that contains the export.
struct ExportRoot {
    path: PathBuf,
    names: FileNames,
    /// Synced as a whole at the end: syncing each of many small files makes an export at least ten times slower.
    file_system: FileSystem,
}

impl ExportRoot {
    /// Creates the folder, or accepts an empty one, so that nothing is overwritten and exports are not mixed.
    fn create(path: &Path) -> Result<Self, String> {
        let displayed = path.display();
        create_folder(path).map_err(|error| format!("cannot create the folder {displayed}: {error}"))?;
        let unreadable = |error| format!("cannot read the folder {displayed}: {error}");
        if fs::read_dir(path).map_err(unreadable)?.next().is_some() {
            return Err(format!("{displayed} is not empty; use an empty folder or one that does not exist"));
        }
        Self::new(path).map_err(unreadable)
    }

    fn new(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), names: FileNames::default(), file_system: FileSystem::containing(path)? })
    }

    /// Returns the path for a mailbox.
    fn path_for(&mut self, mailbox: &MailboxName, suffix: &str) -> PathBuf {
        self.path.join(format!("{}{suffix}", self.names.assign(mailbox)))
    }
}

/// A file for each message: `MAILBOX/{cur,new,tmp}` or `MAILBOX/ID.eml`.
struct MessageFiles {
    root: ExportRoot,
    /// The folder of the current mailbox.
    folder: PathBuf,
    is_maildir: bool,
}

impl Output for MessageFiles {
    fn start_mailbox(&mut self, mailbox: &MailboxName) -> io::Result<()> {
        self.folder = self.root.path_for(mailbox, "");
        let folders: &[&str] = if self.is_maildir { &["cur", "new", "tmp"] } else { &[""] };
        folders.iter().try_for_each(|name| create_folder(&self.folder.join(name)))
    }

    fn write(&mut self, message: &Summary, source: &Source) -> io::Result<()> {
        // An id is a unique time in microseconds. Other programs expect names that start with seconds.
        let id = message.id.number();
        let name = format!("{}.M{:06}.restante", id / 1_000_000, id % 1_000_000);
        let (partial, complete) = match (self.is_maildir, message.seen) {
            (false, _) => (format!(".{id}.part"), format!("{id}.eml")),
            (true, true) => (format!("tmp/{name}"), format!("cur/{name}{}", names::SEEN_SUFFIX)),
            (true, false) => (format!("tmp/{name}"), format!("new/{name}")),
        };
        write_file(&self.folder.join(partial), &self.folder.join(complete), message, source)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.root.file_system.sync()
    }
}

/// Mbox files: `MAILBOX.mbox`, or one for all mailboxes.
struct MboxFiles {
    root: ExportRoot,
    open: Option<MboxFile>,
    is_single: bool,
}

impl MboxFiles {
    /// Creates a single file for all mailboxes.
    fn single(path: &Path) -> io::Result<Self> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let root = ExportRoot::new(folder)?;
        Ok(Self { root, open: Some(MboxFile::create(path)?), is_single: true })
    }
}

impl Output for MboxFiles {
    fn start_mailbox(&mut self, mailbox: &MailboxName) -> io::Result<()> {
        if !self.is_single {
            self.open.take().map_or(Ok(()), MboxFile::close)?;
            self.open = Some(MboxFile::create(&self.root.path_for(mailbox, ".mbox"))?);
        }
        Ok(())
    }

    fn write(&mut self, message: &Summary, source: &Source) -> io::Result<()> {
        self.open.as_mut().map_or(Ok(()), |open| write_mbox(&mut open.file, message, source))
    }

    fn finish(&mut self) -> io::Result<()> {
        if let Some(mut open) = self.open.take() {
            if self.is_single {
                open.file.flush()?;
                open.file.get_ref().sync_all()?;
            }
            open.close()?;
        }
        self.root.file_system.sync()
    }
}

/// An mbox file that gets its name when it is complete. Dropping it before that removes the file.
struct MboxFile {
    file: BufWriter<File>,
    partial: PathBuf,
    path: PathBuf,
}

impl MboxFile {
    fn create(path: &Path) -> io::Result<Self> {
        if path.symlink_metadata().is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let mut partial = path.as_os_str().to_owned();
        partial.push(".part");
        let partial = PathBuf::from(partial);
        Ok(Self { file: BufWriter::new(create_partial(&partial)?), partial, path: path.to_owned() })
    }

    fn close(mut self) -> io::Result<()> {
        self.file.flush()?;
        fs::rename(&self.partial, &self.path)
    }
}

impl Drop for MboxFile {
    fn drop(&mut self) {
        // After a successful rename there is nothing to remove.
        let _ = fs::remove_file(&self.partial);
    }
}

/// An mbox on standard output.
struct StdoutMbox(BufWriter<io::Stdout>);

impl Output for StdoutMbox {
    fn start_mailbox(&mut self, _: &MailboxName) -> io::Result<()> {
        Ok(())
    }

    fn write(&mut self, message: &Summary, source: &Source) -> io::Result<()> {
        write_mbox(&mut self.0, message, source)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn write_mbox(out: &mut dyn Write, message: &Summary, source: &Source) -> io::Result<()> {
    let sender = Trace::parse(&source.trace).and_then(|trace| trace.return_path).unwrap_or_default();
    mbox::write_message(out, sender, message.received, &source.to_bytes())
}

/// Writes a message byte for byte. The modification time of the file is the received time.
fn write_file(partial: &Path, path: &Path, message: &Summary, source: &Source) -> io::Result<()> {
    let result = create_file(partial).and_then(|mut file| {
        file.write_all(&source.trace)?;
        file.write_all(&source.body)?;
        file.set_modified(SystemTime::from(message.received))?;
        fs::rename(partial, path)
    });
    if result.is_err() {
        // The partial file is useless. The first error is more helpful than that of the removal.
        let _ = fs::remove_file(partial);
    }
    result
}

/// Creates a file that is locked while it is written. An unlocked file of this name is a leftover of a killed export
/// and is replaced.
fn create_partial(path: &Path) -> io::Result<File> {
    let is_leftover = || {
        let is_file = path.symlink_metadata().is_ok_and(|found| found.is_file());
        is_file && File::open(path).is_ok_and(|file| file.try_lock().is_ok())
    };
    let file = match create_file(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if !is_leftover() {
                let problem = format!("{} exists; another export may be writing it", path.display());
                return Err(io::Error::new(error.kind(), problem));
            }
            fs::remove_file(path)?;
            create_file(path)
        }
        created => created,
    }?;
    // Without support for locks, leftovers must be removed manually.
    let _ = file.try_lock();
    Ok(file)
}

/// Creates a file that only its owner can read: messages are private.
fn create_file(path: &Path) -> io::Result<File> {
    private_file().write(true).create_new(true).open(path)
}

fn create_folder(path: &Path) -> io::Result<()> {
    private_dir().recursive(true).create(path)
}
