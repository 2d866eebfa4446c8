//! The disk journal: one file in the data directory, written by a background thread.
//!
//! Chunks wait in memory until the thread has written them. Its low priority leaves the processors to the delivery of
//! messages. Queries read both the file and the queue. If the size limit of the journal is not above that of the queue,
//! only the oldest chunks are ever evicted; with a larger limit, queued chunks are lost if they arrive faster than they
//! can be written. The journal can be lost: an unusable file is replaced by a new one.

mod file;
mod read;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use restante_sqlite::has_space_beside_messages;

use super::write_queue::{MAX_QUEUED_BYTES, WriteJob, WriteQueue};
use super::writer::{Storage, WriterThread};
use super::{Journal, SessionIdGenerator};
use file::JournalFile;
use read::FileReader;

/// The name of the file.
const FILE_NAME: &str = "sessions.db";

/// Opens the journal of a data directory with a size limit. The file is opened by the writer thread, so that the caller does
/// not wait for it.
pub fn open(directory: &Path, max_bytes: usize) -> io::Result<Journal> {
    let (path, session_ids) = (directory.join(FILE_NAME), Arc::new(SessionIdGenerator::new(1)));
    let queue = Arc::new(WriteQueue::new(max_bytes, MAX_QUEUED_BYTES));
    let (file_path, ids) = (path.clone(), session_ids.clone());
    let writer = WriterThread::start(queue.clone(), move || {
        let file = JournalFile::open(&file_path)?;
        ids.advance_to(file.last_session());
        Ok(FileStorage { path: file_path, file, has_space: true })
    })?;
    Ok(Journal { session_ids, queue, storage: Some((Box::new(FileReader { path }), writer)) })
}

/// The file, as the writer thread uses it.
struct FileStorage {
    path: PathBuf,
    file: JournalFile,
    /// Whether there was enough free disk space for the last write.
    has_space: bool,
}

impl Storage for FileStorage {
    const RETRY_DELAY: Duration = Duration::from_secs(10);

    fn write(&mut self, job: &WriteJob) -> Result<(), String> {
        self.has_space = self.path.parent().is_none_or(has_space_beside_messages);
        // Old chunks are deleted in any case.
        let chunks = if self.has_space { &job.batch.chunks[..] } else { &[] };
        let written = self.file.write(chunks, job.clear_first, job.deadline, job.max_bytes);
        written.map_err(|error| error.to_string())?;
        if chunks.len() == job.batch.chunks.len() { Ok(()) } else { Err("too little free disk space".to_owned()) }
    }

    /// Retrying does not repair a damaged file, so it is opened again, which replaces it.
    fn repair(&mut self) {
        if !self.has_space {
            return;
        }
        match JournalFile::reopen(&self.path) {
            Ok(file) => self.file = file,
            Err(error) => tracing::debug!(error, "cannot open the file of session transcripts"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use jiff::Timestamp;

    use super::*;
    use crate::tests::conformance::{self, chunk, mail_chunk};
    use crate::{Chunk, SessionPage};
    use restante_testdir::TestDir;

    #[tokio::test]
    async fn passes_conformance_suite() {
        let dirs = RefCell::new(Vec::new());
        conformance::run(async |max_bytes| {
            let dir = TestDir::new();
            let journal = open(dir.path(), max_bytes).unwrap();
            dirs.borrow_mut().push(dir);
            journal
        })
        .await;
    }

    #[tokio::test]
    async fn keeps_transcripts() {
        let dir = TestDir::new();
        conformance::keeps_transcripts_across_restarts(async || open(dir.path(), 1 << 20).unwrap()).await;
        let mode = fs::metadata(dir.path().join(FILE_NAME)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "only the owner can read it");
    }

    #[tokio::test]
    async fn reads_long_session() {
        let dir = TestDir::new();
        conformance::long_session_is_read_after_restart(async || open(dir.path(), 1 << 20).unwrap()).await;
    }

    #[tokio::test]
    async fn ids_ascend_across_restart_when_clock_is_set_back() {
        let dir = TestDir::new();
        let journal = open(dir.path(), 1 << 20).unwrap();
        let last = journal.start_session(Timestamp::MAX);
        journal.append(Chunk { session: last, ..chunk(1, 0, "head") });
        drop(journal);
        let journal = open(dir.path(), 1 << 20).unwrap();
        assert!(journal.session(last).await.unwrap().is_some(), "the file is open by now");
        assert!(journal.start_session(Timestamp::UNIX_EPOCH) > last);
    }

    #[tokio::test]
    async fn size_limit_applies_to_the_file() {
        let dir = TestDir::new();
        for round in 0..5 {
            let journal = open(dir.path(), 50_000).unwrap();
            for session in 1..=60 {
                journal.append(mail_chunk(100 * round + session, 1, "bob", 1000 * round + 10 * session));
            }
        }
        let journal = open(dir.path(), 50_000).unwrap();
        let page = SessionPage { before: None, refused_only: false, limit: 1000 };
        let remaining: Vec<u64> =
            journal.sessions(page).await.unwrap().iter().map(|transcript| transcript.session.number()).collect();
        assert!((20..100).contains(&remaining.len()), "{}", remaining.len());
        assert_eq!(remaining[0], 460);
    }

    #[tokio::test]
    async fn replaces_damaged_file() {
        let damages: [fn(&Path); 2] = [
            |path| fs::write(path, "this is not a database").unwrap(),
            |path| {
                let mut bytes = fs::read(path).unwrap();
                bytes[4096..].fill(0xff);
                fs::write(path, bytes).unwrap();
            },
        ];
        for damage in damages {
            let dir = TestDir::new();
            let open = || open(dir.path(), 1 << 20).unwrap();
            open().append(chunk(1, 0, "lost"));
            damage(&dir.path().join(FILE_NAME));
            open().append(chunk(2, 0, "kept"));
            let journal = open();
            assert_eq!(journal.session(1.into()).await.unwrap(), None);
            assert!(journal.session(2.into()).await.unwrap().is_some());
        }
    }

    #[tokio::test]
    async fn keeps_transcripts_in_memory_if_file_cannot_be_opened() {
        let dir = TestDir::new();
        fs::create_dir(dir.path().join(FILE_NAME)).unwrap();
        let journal = open(dir.path(), 1 << 20).unwrap();
        journal.append(mail_chunk(1, 1, "bob", 7));
        assert!(journal.session(1.into()).await.unwrap().is_some());
        assert!(journal.find_by_message(&"bob".to_owned().into(), 7.into()).await.unwrap().is_some());
    }
}
