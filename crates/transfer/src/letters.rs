//! Reads the files of an import, on a thread of its own and a bounded number of bytes ahead of the store. What a mail
//! says about itself is not looked at here.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::console::size;
use super::mbox::Mbox;
use super::walk::{Holds, Item, Walk};

/// Mail that was read and is not stored yet, in units of KiB. A larger mail waits until it is alone.
const AHEAD: u32 = 16 * 1024;
/// Messages that were read and not taken yet.
const QUEUE: usize = 256;

/// A mail and where it comes from.
#[derive(Debug)]
pub(super) struct Letter {
    /// The file it is from, and where in it.
    pub(super) origin: String,
    /// The mail.
    pub(super) source: Vec<u8>,
    /// The time that the file gives.
    pub(super) file_time: Option<Timestamp>,
    /// The time that stands in front of the mail in an mbox.
    pub(super) postmark: Option<Timestamp>,
    /// Whether somebody has read it.
    pub(super) seen: bool,
    /// The mailbox that the place of the file suggests.
    pub(super) place: Option<String>,
    /// Whether the place knows better than the mail itself.
    pub(super) place_first: bool,
}

/// What the reader has to tell.
#[derive(Debug)]
pub(super) enum News {
    /// A mail, and its share of the memory for mail that is under way.
    Letter(Letter, OwnedSemaphorePermit),
    /// A mail or a file that cannot be taken, in a sentence.
    Problem(String),
    /// All is read; so many files were passed over.
    End {
        /// Files that are no mail.
        ignored: u64,
    },
}

/// Starts to read everything that the walk finds. Mails of more than `limit` bytes are problems.
pub(super) fn read(walk: Walk, limit: usize) -> Receiver<News> {
    let (sender, receiver) = channel(QUEUE);
    let runtime = Handle::current();
    tokio::task::spawn_blocking(move || {
        let reader = Reader { sender, runtime, limit, room: Arc::new(Semaphore::new(AHEAD as usize)) };
        // Whoever stops listening has seen enough.
        let _ = reader.all(walk);
    });
    receiver
}

/// Nobody listens any more.
struct Gone;

struct Reader {
    sender: Sender<News>,
    runtime: Handle,
    limit: usize,
    room: Arc<Semaphore>,
}

impl Reader {
    fn all(&self, mut walk: Walk) -> Result<(), Gone> {
        for item in walk.by_ref() {
            match item {
                Ok(item) => self.item(&item)?,
                Err(problem) => self.tell(News::Problem(problem))?,
            }
        }
        self.tell(News::End { ignored: walk.ignored() })
    }

    fn item(&self, item: &Item) -> Result<(), Gone> {
        let (input, file_time): (Box<dyn Read>, _) = if item.path == Path::new("-") {
            (Box::new(io::stdin()), None)
        } else {
            match File::open(&item.path) {
                Ok(file) => {
                    let modified = file.metadata().and_then(|found| found.modified()).ok();
                    (Box::new(file), modified.and_then(|time| Timestamp::try_from(time).ok()))
                }
                Err(error) => return self.problem(item, &error.to_string()),
            }
        };
        let mut input = BufReader::with_capacity(64 * 1024, input);
        match item.holds {
            Holds::One => self.one(item, input, file_time),
            Holds::Many => self.many(item, input, file_time),
            Holds::Unknown => match input.fill_buf() {
                Ok(bytes) if bytes.starts_with(b"From ") => self.many(item, input, file_time),
                Ok(_) => self.one(&Item { place: None, ..item.clone() }, input, file_time),
                Err(error) => self.problem(item, &error.to_string()),
            },
        }
    }

    fn one(&self, item: &Item, input: impl Read, file_time: Option<Timestamp>) -> Result<(), Gone> {
        let mut source = Vec::new();
        if let Err(error) = input.take(self.limit as u64 + 1).read_to_end(&mut source) {
            return self.problem(item, &error.to_string());
        }
        if source.is_empty() {
            return self.problem(item, "is empty");
        }
        if source.len() > self.limit {
            return self.problem(item, &self.too_large());
        }
        self.letter(item, item.path.display().to_string(), source, file_time, None)
    }

    fn many(&self, item: &Item, input: impl BufRead, file_time: Option<Timestamp>) -> Result<(), Gone> {
        let mut mbox = Mbox::new(input, self.limit);
        for number in 1_u64.. {
            let origin = || format!("{}, message {number}", item.path.display());
            match mbox.next() {
                Ok(Some(entry)) => match entry.source {
                    Some(source) if source.is_empty() => self.tell(News::Problem(format!("{}: is empty", origin())))?,
                    Some(source) => self.letter(item, origin(), source, file_time, entry.date)?,
                    None => self.tell(News::Problem(format!("{}: {}", origin(), self.too_large())))?,
                },
                Ok(None) => break,
                Err(error) => return self.problem(item, &error.to_string()),
            }
        }
        Ok(())
    }

    fn letter(
        &self,
        item: &Item,
        origin: String,
        source: Vec<u8>,
        file_time: Option<Timestamp>,
        postmark: Option<Timestamp>,
    ) -> Result<(), Gone> {
        let kib = u32::try_from(source.len() / 1024).unwrap_or(AHEAD).clamp(1, AHEAD);
        let room = self.runtime.block_on(self.room.clone().acquire_many_owned(kib)).map_err(|_| Gone)?;
        let Item { place, place_first, seen, .. } = item.clone();
        self.tell(News::Letter(Letter { origin, source, file_time, postmark, seen, place, place_first }, room))
    }

    fn problem(&self, item: &Item, what: &str) -> Result<(), Gone> {
        self.tell(News::Problem(format!("{}: {what}", item.path.display())))
    }

    fn too_large(&self) -> String {
        format!("is larger than {} (smtp.maxmessagebytes can allow more)", size(self.limit as u64))
    }

    fn tell(&self, news: News) -> Result<(), Gone> {
        self.sender.blocking_send(news).map_err(|_| Gone)
    }
}
