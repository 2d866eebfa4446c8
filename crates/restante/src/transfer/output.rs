//! The forms that an export writes: Maildirs, folders of plain files, and mbox files. Whoever looks meanwhile, or after an
//! export that was cut short, sees whole files only: each is written under another name and then renamed.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use restante_mail::message::{Source, Summary};
use restante_mail::naming::MailboxName;

use super::mbox;
use super::names::FileNames;
use super::request::{Export, ExportFormat};
use super::trace::Trace;

/// Takes the mail of an export, mailbox by mailbox.
pub(super) trait Output {
    /// What follows belongs to this mailbox.
    fn begin(&mut self, mailbox: &MailboxName) -> io::Result<()>;

    /// Writes a message.
    fn write(&mut self, message: &Summary, source: &Source) -> io::Result<()>;

    /// Completes what is still open; without it, that is gone.
    fn finish(&mut self) -> io::Result<()>;
}

/// Makes what the request asks for. The error is a sentence for the operator.
pub(super) fn open(request: &Export) -> Result<Box<dyn Output>, String> {
    let out = &request.out;
    let (stdout, one_file) = (out == Path::new("-"), out.extension().is_some_and(|extension| extension == "mbox"));
    let suggested = if stdout || one_file { ExportFormat::Mbox } else { ExportFormat::Maildir };
    match request.format.unwrap_or(suggested) {
        ExportFormat::Mbox if stdout => Ok(Box::new(Stream(BufWriter::new(io::stdout())))),
        ExportFormat::Mbox if one_file => {
            let file = MboxFile::create(out).map_err(|error| format!("cannot write {}: {error}", out.display()))?;
            Ok(Box::new(file))
        }
        _ if stdout => Err("only mbox can be written to standard output".to_owned()),
        format => {
            let (root, names) = (empty_folder(out)?, FileNames::default());
            Ok(match format {
                ExportFormat::Mbox => Box::new(MboxFiles { root, names, open: None }),
                ExportFormat::Maildir => Box::new(Maildirs { folder: root.clone(), root, names }),
                ExportFormat::Eml => Box::new(EmlFolders { folder: root.clone(), root, names }),
            })
        }
    }
}

/// A folder with nothing in it, so that nothing is overwritten and no two exports are mixed.
fn empty_folder(path: &Path) -> Result<PathBuf, String> {
    let shown = path.display();
    make_folder(path).map_err(|error| format!("cannot make the folder {shown}: {error}"))?;
    let mut entries = fs::read_dir(path).map_err(|error| format!("cannot read the folder {shown}: {error}"))?;
    if entries.next().is_some() {
        return Err(format!("{shown} is not empty; name a folder that is, or that does not exist yet"));
    }
    Ok(path.to_owned())
}

/// `MAILBOX/{cur,new,tmp}`.
struct Maildirs {
    root: PathBuf,
    names: FileNames,
    /// The Maildir of the mailbox.
    folder: PathBuf,
}

impl Output for Maildirs {
    fn begin(&mut self, mailbox: &MailboxName) -> io::Result<()> {
        self.folder = self.root.join(self.names.name(mailbox));
        ["cur", "new", "tmp"].iter().try_for_each(|name| make_folder(&self.folder.join(name)))
    }

    fn write(&mut self, message: &Summary, source: &Source) -> io::Result<()> {
        // An id is a microsecond, and unique; seconds in front are what other programs expect.
        let id = message.id.number();
        let name = format!("{}.M{:06}.restante", id / 1_000_000, id % 1_000_000);
        let place = if message.seen { format!("cur/{name}:2,S") } else { format!("new/{name}") };
        write_file(&self.folder.join("tmp").join(name), &self.folder.join(place), message, source)
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// `MAILBOX/ID.eml`.
struct EmlFolders {
    root: PathBuf,
    names: FileNames,
    /// The folder of the mailbox.
    folder: PathBuf,
}

impl Output for EmlFolders {
    fn begin(&mut self, mailbox: &MailboxName) -> io::Result<()> {
        self.folder = self.root.join(self.names.name(mailbox));
        make_folder(&self.folder)
    }

    fn write(&mut self, message: &Summary, source: &Source) -> io::Result<()> {
        let partial = self.folder.join(format!(".{}.part", message.id));
        write_file(&partial, &self.folder.join(format!("{}.eml", message.id)), message, source)
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// `MAILBOX.mbox`.
struct MboxFiles {
    root: PathBuf,
    names: FileNames,
    open: Option<MboxFile>,
}

impl Output for MboxFiles {
    fn begin(&mut self, mailbox: &MailboxName) -> io::Result<()> {
        self.finish()?;
        let path = self.root.join(format!("{}.mbox", self.names.name(mailbox)));
        self.open = Some(MboxFile::create(&path)?);
        Ok(())
    }

    fn write(&mut self, message: &Summary, source: &Source) -> io::Result<()> {
        self.open.as_mut().map_or(Ok(()), |file| file.write(message, source))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.open.take().map_or(Ok(()), |mut file| file.finish())
    }
}

/// One file, which gets its name when it is complete; dropped before that, it is removed.
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
        Ok(Self { file: BufWriter::new(create_file(&partial)?), partial, path: path.to_owned() })
    }
}

impl Output for MboxFile {
    fn begin(&mut self, _: &MailboxName) -> io::Result<()> {
        Ok(())
    }

    fn write(&mut self, message: &Summary, source: &Source) -> io::Result<()> {
        write_mbox(&mut self.file, message, source)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        fs::rename(&self.partial, &self.path)
    }
}

impl Drop for MboxFile {
    fn drop(&mut self) {
        // After a good end there is nothing left to remove.
        let _ = fs::remove_file(&self.partial);
    }
}

/// Standard output.
struct Stream(BufWriter<io::Stdout>);

impl Output for Stream {
    fn begin(&mut self, _: &MailboxName) -> io::Result<()> {
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
    let sender = Trace::of(&source.trace).and_then(|trace| trace.return_path).unwrap_or_default();
    mbox::write(out, sender, message.received, &source.to_bytes())
}

/// Writes a message byte for byte, with the time of its arrival as that of the file.
fn write_file(partial: &Path, path: &Path, message: &Summary, source: &Source) -> io::Result<()> {
    let written = create_file(partial).and_then(|mut file| {
        file.write_all(&source.trace)?;
        file.write_all(&source.body)?;
        file.set_modified(SystemTime::from(message.received))?;
        fs::rename(partial, path)
    });
    if written.is_err() {
        // It is of no use to anybody, and the error tells more than a second one could.
        let _ = fs::remove_file(partial);
    }
    written
}

/// Mail is private: only its owner may read what is written.
fn create_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}
