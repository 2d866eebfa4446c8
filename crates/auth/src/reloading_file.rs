//! A file that is reloaded when it has changed. It is checked when its value is requested, at most once a second, on a
//! blocking thread. Invalid content does not replace the last valid one.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use restante_platform::{FileId, file_id};
use ring::digest::{SHA256, digest};
use tokio::task::spawn_blocking;

/// The minimum time between two checks.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// A file that was written this shortly before it was read may have changed again without a new modification time: the
/// clocks of file systems are coarse.
const MTIME_GRANULARITY: Duration = Duration::from_secs(2);
/// The maximum size of a file in bytes.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// A file and the value parsed from it.
pub(crate) struct ReloadingFile<T> {
    source: Source<T>,
    state: Mutex<State<T>>,
    /// Held during a check, so that the result of the later of two checks is kept.
    check_lock: Mutex<()>,
}

/// A function that is called with a value.
pub(crate) type OnLoad<T> = Box<dyn Fn(&T) + Send + Sync>;

/// The file and its parser.
pub(crate) struct Source<T> {
    /// The path of the file.
    pub(crate) path: PathBuf,
    /// The name of the content in the log.
    pub(crate) description: &'static str,
    /// Parses the content. The error is appended to the path.
    pub(crate) parse: fn(&[u8]) -> Result<T, String>,
    /// The value if the file does not exist. If `None`, a missing file is an error.
    pub(crate) default_if_absent: Option<fn() -> T>,
    /// Called with each value that is used from now on, so that it can log warnings.
    pub(crate) on_load: Option<OnLoad<T>>,
}

struct State<T> {
    current: Arc<T>,
    content_hash: [u8; 32],
    /// `None` if the file has to be read at the next check in any case.
    stamp: Option<Stamp>,
    checked_at: Instant,
}

/// What is compared to detect a change; `None` if the file does not exist.
type Stamp = Option<(SystemTime, u64, FileId)>;

/// The result of reading the file.
struct ReadResult<T> {
    value: Result<T, String>,
    /// The SHA-256 digest of the content. States without content have fixed values, which no file has in practice.
    content_hash: [u8; 32],
    stamp: Option<Stamp>,
}

impl<T: Send + Sync + 'static> ReloadingFile<T> {
    /// Loads the file. The error is a sentence for the operator.
    pub(crate) fn open(source: Source<T>) -> Result<Arc<Self>, String> {
        let ReadResult { value, content_hash, stamp } = source.read();
        let value = value.map_err(|message| format!("{}: {message}", source.path.display()))?;
        source.on_load.iter().for_each(|on_load| on_load(&value));
        let state = State { current: Arc::new(value), content_hash, stamp, checked_at: Instant::now() };
        Ok(Arc::new(Self { source, state: Mutex::new(state), check_lock: Mutex::default() }))
    }

    /// Returns the current value. It is at most one second old.
    pub(crate) async fn current(self: &Arc<Self>) -> Arc<T> {
        let is_due = {
            let mut state = self.state.lock();
            let is_due = state.checked_at.elapsed() >= CHECK_INTERVAL;
            if is_due {
                // Concurrent callers skip the check.
                state.checked_at = Instant::now();
            }
            is_due
        };
        if is_due {
            self.check(false).await;
        }
        self.state.lock().current.clone()
    }

    /// Reloads the file, even if it looks unchanged.
    pub(crate) async fn reload(self: &Arc<Self>) {
        self.check(true).await;
    }

    async fn check(self: &Arc<Self>, force: bool) {
        let this = self.clone();
        let checked = spawn_blocking(move || this.check_blocking(force)).await;
        if let Err(error) = checked {
            tracing::error!(%error, "internal error while checking a file for changes");
        }
    }

    fn check_blocking(&self, force: bool) {
        let Source { path, description, .. } = &self.source;
        let _lock = self.check_lock.lock();
        let last_stamp = self.state.lock().stamp;
        if !force && last_stamp.is_some() && last_stamp == Some(stamp(fs::metadata(path).ok().as_ref())) {
            return;
        }
        let ReadResult { value, content_hash, stamp } = self.source.read();
        let mut state = self.state.lock();
        state.stamp = stamp;
        if content_hash == state.content_hash {
            return;
        }
        // Invalid content is logged once, not at every check.
        state.content_hash = content_hash;
        match value {
            Ok(value) => {
                let value = Arc::new(value);
                state.current = value.clone();
                drop(state);
                tracing::info!(path = %path.display(), "reloaded {description}");
                self.source.on_load.iter().for_each(|on_load| on_load(&value));
            }
            Err(message) => {
                let path = path.display();
                tracing::error!(%path, error = message, "cannot reload {description}, still using the previous ones");
            }
        }
    }
}

impl<T> Source<T> {
    fn read(&self) -> ReadResult<T> {
        let read = || -> io::Result<(Vec<u8>, Metadata)> {
            let file = File::open(&self.path)?;
            let metadata = file.metadata()?;
            let mut content = Vec::new();
            file.take(MAX_FILE_BYTES + 1).read_to_end(&mut content)?;
            Ok((content, metadata))
        };
        match (read(), self.default_if_absent) {
            (Ok((content, _)), _) if content.len() as u64 > MAX_FILE_BYTES => {
                ReadResult { value: Err("is larger than 4 MiB".to_owned()), content_hash: [2; 32], stamp: None }
            }
            (Ok((content, metadata)), _) => {
                let is_settled =
                    metadata.modified().is_ok_and(|at| at.elapsed().is_ok_and(|since| since > MTIME_GRANULARITY));
                let stamp = is_settled.then(|| stamp(Some(&metadata)));
                let mut hash = [0; 32];
                hash.copy_from_slice(digest(&SHA256, &content).as_ref());
                ReadResult { value: (self.parse)(&content), content_hash: hash, stamp }
            }
            (Err(error), Some(absent)) if error.kind() == io::ErrorKind::NotFound => {
                ReadResult { value: Ok(absent()), content_hash: [0; 32], stamp: Some(None) }
            }
            (Err(error), _) => {
                ReadResult { value: Err(format!("cannot be read: {error}")), content_hash: [1; 32], stamp: None }
            }
        }
    }
}

fn stamp(metadata: Option<&Metadata>) -> Stamp {
    let metadata = metadata?;
    Some((metadata.modified().ok()?, metadata.len(), file_id(metadata)))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;
    use restante_testdir::TestDir;

    fn number(content: &[u8]) -> Result<u32, String> {
        str::from_utf8(content).ok().and_then(|text| text.trim().parse().ok()).ok_or("is not a number".to_owned())
    }

    /// Checks the file at once, and returns its value.
    async fn check(file: &Arc<ReloadingFile<u32>>) -> u32 {
        file.check(false).await;
        *file.state.lock().current
    }

    #[tokio::test]
    async fn reloads_changed_files_and_ignores_invalid_ones() {
        let dir = TestDir::new();
        let path = dir.path().join("file");
        let source = |absent| Source {
            path: path.clone(),
            description: "numbers",
            parse: number,
            default_if_absent: absent,
            on_load: None,
        };
        assert!(ReloadingFile::open(source(None)).err().is_some_and(|message| message.contains("cannot be read")));
        let file = ReloadingFile::open(source(Some(|| 0))).unwrap();
        assert_eq!(check(&file).await, 0);
        for (content, expected) in [("1", 1), ("2", 2), ("no number", 2), ("3", 3)] {
            fs::write(&path, content).unwrap();
            assert_eq!(check(&file).await, expected, "{content}");
        }
        fs::remove_file(&path).unwrap();
        assert_eq!(check(&file).await, 0);
        fs::write(&path, vec![b'1'; 5 << 20]).unwrap();
        assert_eq!(check(&file).await, 0);
    }

    /// The lock blocks the parsing of the number two. The flag says that it has begun.
    static GATE: Mutex<()> = Mutex::new(());
    static IS_PARSING: AtomicBool = AtomicBool::new(false);

    fn slow_number(content: &[u8]) -> Result<u32, String> {
        let number = number(content)?;
        if number == 2 {
            IS_PARSING.store(true, Ordering::SeqCst);
            drop(GATE.lock());
        }
        Ok(number)
    }

    #[test]
    fn slow_check_does_not_undo_a_later_one() {
        let dir = TestDir::new();
        let path = dir.path().join("file");
        fs::write(&path, "1").unwrap();
        let source = Source {
            path: path.clone(),
            description: "numbers",
            parse: slow_number,
            default_if_absent: None,
            on_load: None,
        };
        let file = &ReloadingFile::open(source).unwrap();
        let gate = GATE.lock();
        fs::write(&path, "2").unwrap();
        thread::scope(|scope| {
            scope.spawn(|| file.check_blocking(false));
            while !IS_PARSING.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            fs::write(&path, "3").unwrap();
            let second = scope.spawn(|| file.check_blocking(true));
            // Enough time to complete, if it could.
            thread::sleep(Duration::from_millis(50));
            assert!(!second.is_finished());
            drop(gate);
        });
        assert_eq!(*file.state.lock().current, 3);
    }

    #[tokio::test]
    async fn last_value_of_a_required_file_is_kept_after_deletion() {
        let dir = TestDir::new();
        let path = dir.path().join("file");
        fs::write(&path, "7").unwrap();
        let file = ReloadingFile::open(Source {
            path: path.clone(),
            description: "numbers",
            parse: number,
            default_if_absent: None,
            on_load: None,
        })
        .unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(check(&file).await, 7);
        fs::write(&path, "8").unwrap();
        file.reload().await;
        assert_eq!(*file.current().await, 8);
    }
}
