//! The `durable-reference` command: an SMTP server that does the least a durable store must do, for comparison with
//! servers that do more. A message is appended to one file, which is synced, and has one row per recipient in SQLite,
//! which is synced by its commit. Only then it is acknowledged. Messages that wait at the same time share both syncs.
//! Nothing is parsed, and nothing can be read.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::thread;

use clap::Args;
use memchr::memmem;
use rusqlite::{Connection as Database, params};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::ctrl_c;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::Verdict;
use crate::connection::Connection;
use crate::error::Error;
use crate::measure::{Sample, ratio, to_f64};
use crate::message::END_OF_DATA;
use crate::report::{Report, Row};

/// The maximum number of messages that wait to be stored.
const MAX_WAITING: usize = 256;
/// The size of a read.
const READ_BYTES: usize = 16 * 1024;
const MAX_LINE_BYTES: usize = 1024;
const MAX_MESSAGE_BYTES: usize = 64 << 20;
const MAX_RECIPIENTS: usize = 100;

/// Options of the `durable-reference` command.
#[derive(Args)]
pub(crate) struct Options {
    /// The address to listen on.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:2600")]
    listen: String,
    /// The directory of the store, which must not contain one.
    #[arg(long)]
    dir: PathBuf,
}

/// Runs the `durable-reference` command until it is interrupted or terminated.
pub(crate) async fn run(options: &Options, json: bool) -> Result<Verdict, Error> {
    let store = Store::create(&options.dir)?;
    let (queue, waiting) = mpsc::channel(MAX_WAITING);
    let writer = thread::spawn(move || store.run(waiting));
    let starting = |error| Error::Io("listening", error);
    let listener = TcpListener::bind(&options.listen).await.map_err(starting)?;
    let mut terminated = signal(SignalKind::terminate()).map_err(starting)?;
    eprintln!("restante-bench: listening on {}", listener.local_addr().map_err(starting)?);
    let mut sessions = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted.map_err(starting)?;
                // An error ends the session only.
                sessions.spawn(serve(stream, queue.clone()));
            }
            Some(_) = sessions.join_next(), if !sessions.is_empty() => {}
            _ = ctrl_c() => break,
            _ = terminated.recv() => break,
        }
    }
    sessions.shutdown().await;
    drop(queue);
    let (messages, groups) = writer.join().map_err(|_| Error::Usage("the writer has panicked".to_owned()))??;
    let sample = Sample::read(std::process::id())?;
    let row = Row::default()
        .with("messages", messages)
        .with_rounded("per_group", ratio(to_f64(messages), to_f64(groups)), 1)
        .with_rounded("cpu_s_per_1000", ratio(sample.cpu_seconds * 1000.0, to_f64(messages)), 4);
    Report::new(json).row(&row);
    Ok(Verdict::Clean)
}

/// A received message, and where to send that it is on disk.
struct Message {
    recipients: Vec<String>,
    /// As it was sent, without the end-of-data line.
    content: Vec<u8>,
    stored: oneshot::Sender<()>,
}

/// Runs one session until QUIT or the end of the connection.
async fn serve(stream: TcpStream, queue: Sender<Message>) -> Result<(), Error> {
    stream.set_nodelay(true).map_err(|error| Error::Io("accepting", error))?;
    let mut connection = Connection::new(stream, READ_BYTES);
    let mut replies = b"220 durable-reference\r\n".to_vec();
    let mut recipients = Vec::new();
    loop {
        // The replies to pipelined commands are sent together.
        if connection.is_empty() {
            connection.write(&std::mem::take(&mut replies)).await?;
        }
        let line_end = |bytes: &[u8]| Ok(memchr::memchr(b'\n', bytes).map(|newline| ((), newline + 1)));
        let ((), line) = connection.read(MAX_LINE_BYTES, line_end).await?;
        let verb = line.get(..4).unwrap_or_default().to_ascii_uppercase();
        let reply: &[u8] = match &verb[..] {
            b"EHLO" => b"250-durable-reference\r\n250 PIPELINING\r\n",
            b"HELO" | b"NOOP" => b"250 OK\r\n",
            b"MAIL" | b"RSET" => {
                recipients.clear();
                b"250 OK\r\n"
            }
            b"RCPT" if recipients.len() < MAX_RECIPIENTS => {
                recipients.push(mailbox(line));
                b"250 OK\r\n"
            }
            b"DATA" if !recipients.is_empty() => {
                replies.extend_from_slice(b"354 go ahead\r\n");
                connection.write(&std::mem::take(&mut replies)).await?;
                let content = read_content(&mut connection).await?;
                let (stored, is_stored) = oneshot::channel();
                let message = Message { recipients: std::mem::take(&mut recipients), content, stored };
                let is_stored = queue.send(message).await.is_ok() && is_stored.await.is_ok();
                if is_stored { b"250 stored\r\n" } else { b"451 not stored\r\n" }
            }
            b"QUIT" => {
                replies.extend_from_slice(b"221 bye\r\n");
                return connection.write(&replies).await;
            }
            _ => b"503 unexpected command\r\n",
        };
        replies.extend_from_slice(reply);
    }
}

/// Returns the part of a RCPT command between `<` and `@`.
fn mailbox(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(line);
    let address = line.split_once('<').map_or(&*line, |(_, address)| address);
    address.split(['@', '>']).next().unwrap_or_default().to_owned()
}

/// Reads a message up to its end-of-data line.
async fn read_content(connection: &mut Connection) -> Result<Vec<u8>, Error> {
    const END: &[u8] = b"\r\n.\r\n";
    let mut searched = 0_usize;
    let find_end = |bytes: &[u8]| {
        if bytes.starts_with(END_OF_DATA) {
            return Ok(Some((0, END_OF_DATA.len())));
        }
        let start = searched.saturating_sub(END.len());
        searched = bytes.len();
        Ok(memmem::find(&bytes[start..], END).map(|end| (start + end + b"\r\n".len(), start + end + END.len())))
    };
    let (length, bytes) = connection.read(MAX_MESSAGE_BYTES, find_end).await?;
    Ok(bytes[..length].to_vec())
}

/// The file with the messages and the database with their rows.
struct Store {
    file: File,
    database: Database,
    /// The length of the file.
    end: u64,
}

impl Store {
    fn create(dir: &Path) -> Result<Self, Error> {
        let creating = |error| Error::Io("creating the store", error);
        fs::create_dir_all(dir).map_err(creating)?;
        let file = File::create_new(dir.join("messages")).map_err(creating)?;
        let database = create_database(&dir.join("messages.db")).map_err(Error::Store)?;
        Ok(Self { file, database, end: 0 })
    }

    /// Stores messages until the queue is closed. Returns the number of messages and of groups.
    fn run(mut self, mut waiting: Receiver<Message>) -> Result<(u64, u64), Error> {
        let (mut messages, mut groups) = (0, 0);
        let mut group = Vec::new();
        while waiting.blocking_recv_many(&mut group, MAX_WAITING) > 0 {
            let contents: Vec<&[u8]> = group.iter().map(|message: &Message| &message.content[..]).collect();
            let written = self.file.write_all(&contents.concat()).and_then(|()| self.file.sync_data());
            written.map_err(|error| Error::Io("writing messages", error))?;
            self.insert_rows(&group).map_err(Error::Store)?;
            messages += group.len() as u64;
            groups += 1;
            for message in group.drain(..) {
                // The client may have disconnected.
                let _ = message.stored.send(());
            }
        }
        Ok((messages, groups))
    }

    fn insert_rows(&mut self, group: &[Message]) -> rusqlite::Result<()> {
        let transaction = self.database.transaction()?;
        for Message { recipients, content, .. } in group {
            for mailbox in recipients {
                let mut insert =
                    transaction.prepare_cached("INSERT INTO messages (mailbox, offset, length) VALUES (?1, ?2, ?3)")?;
                insert.execute(params![mailbox, self.end, content.len()])?;
            }
            self.end += content.len() as u64;
        }
        transaction.commit()
    }
}

fn create_database(path: &Path) -> rusqlite::Result<Database> {
    let database = Database::open(path)?;
    database.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; \
         CREATE TABLE messages (id INTEGER PRIMARY KEY, mailbox TEXT, offset INTEGER, length INTEGER);",
    )?;
    Ok(database)
}
