//! A file that is read again when it has changed. It is looked at when somebody asks, at most once a second, and away from
//! the network threads. What cannot be used does not replace what can.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use aws_lc_rs::digest::{SHA256, digest};
use tokio::task::spawn_blocking;

/// How long a look is good for.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// A file that was written so shortly before it was read may have been written again without a trace: clocks of file
/// systems are coarse.
const MTIME_GRANULARITY: Duration = Duration::from_secs(2);
/// The largest file.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// What is made of a file, and the file.
pub(crate) struct ReloadingFile<T> {
    source: Source<T>,
    state: Mutex<State<T>>,
    /// Held by the one that looks: of two looks the later one has the last word.
    check_lock: Mutex<()>,
}

/// Where it comes from.
#[derive(Clone)]
pub(crate) struct Source<T> {
    /// The file.
    pub(crate) path: PathBuf,
    /// What it is called in the log.
    pub(crate) description: &'static str,
    /// What becomes of its content; the error is told after the path.
    pub(crate) parse: fn(&[u8]) -> Result<T, String>,
    /// What stands in for a file that is not there; without it, that is an error.
    pub(crate) default_if_absent: Option<fn() -> T>,
}

struct State<T> {
    current: Arc<T>,
    content_hash: [u8; 32],
    /// None when the file has to be read whatever it looks like.
    stamp: Option<Stamp>,
    checked_at: Instant,
}

/// By what it is seen that a file has changed; none when there is no file.
type Stamp = Option<(SystemTime, u64, u64)>;

/// What a file was when it was read.
struct ReadResult<T> {
    value: Result<T, String>,
    content_hash: [u8; 32],
    stamp: Option<Stamp>,
}

impl<T: Send + Sync + 'static> ReloadingFile<T> {
    /// Reads a file for the first time. The error is a sentence for the operator.
    pub(crate) fn open(source: Source<T>) -> Result<Arc<Self>, String> {
        let ReadResult { value, content_hash: content, stamp } = source.read();
        let value = value.map_err(|problem| format!("{}: {problem}", source.path.display()))?;
        let state = State { current: Arc::new(value), content_hash: content, stamp, checked_at: Instant::now() };
        Ok(Arc::new(Self { source, state: Mutex::new(state), check_lock: Mutex::default() }))
    }

    /// What the file says, as of a second ago at the most.
    pub(crate) async fn current(self: &Arc<Self>) -> Arc<T> {
        let is_due = {
            let mut state = self.state();
            let is_due = state.checked_at.elapsed() >= CHECK_INTERVAL;
            if is_due {
                // Whoever comes meanwhile does not look as well.
                state.checked_at = Instant::now();
            }
            is_due
        };
        if is_due {
            self.check(false).await;
        }
        self.state().current.clone()
    }

    /// Looks at the file now, and reads it whatever it looks like.
    pub(crate) async fn reload(self: &Arc<Self>) {
        self.check(true).await;
    }

    async fn check(self: &Arc<Self>, in_any_case: bool) {
        let this = self.clone();
        let looked = spawn_blocking(move || this.check_blocking(in_any_case)).await;
        if let Err(error) = looked {
            tracing::error!(%error, "a file could not be looked at by a fault of the server");
        }
    }

    fn check_blocking(&self, in_any_case: bool) {
        let Source { path, description: what, .. } = &self.source;
        let _look = self.check_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.state().stamp;
        if !in_any_case && known.is_some() && known == Some(stamp(fs::metadata(path).ok().as_ref())) {
            return;
        }
        let ReadResult { value, content_hash: content, stamp } = self.source.read();
        let mut state = self.state();
        state.stamp = stamp;
        if content == state.content_hash {
            return;
        }
        // What cannot be used is told of once, not at every look.
        state.content_hash = content;
        match value {
            Ok(value) => {
                state.current = Arc::new(value);
                tracing::info!(path = %path.display(), "{what} read again");
            }
            Err(problem) => {
                tracing::error!(path = %path.display(), problem, "{what} cannot be used: those from before still count");
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
            (Ok((content, _)), _) if content.len() as u64 > MAX_FILE_BYTES => ReadResult {
                value: Err("is larger than any sensible one".to_owned()),
                content_hash: [2; 32],
                stamp: None,
            },
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
    Some((metadata.modified().ok()?, metadata.len(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;
    use restante_testdir::TestDir;

    fn number(content: &[u8]) -> Result<u32, String> {
        str::from_utf8(content).ok().and_then(|text| text.trim().parse().ok()).ok_or("is no number".to_owned())
    }

    /// A file about which a look is never fresh.
    async fn look(watched: &Arc<ReloadingFile<u32>>) -> u32 {
        watched.check(false).await;
        *watched.state().current
    }

    #[tokio::test]
    async fn what_has_changed_is_read_again_and_what_is_broken_is_not() {
        let dir = TestDir::new();
        let path = dir.path().join("file");
        let source =
            |absent| Source { path: path.clone(), description: "numbers", parse: number, default_if_absent: absent };
        assert!(ReloadingFile::open(source(None)).err().is_some_and(|problem| problem.contains("cannot be read")));
        let watched = ReloadingFile::open(source(Some(|| 0))).unwrap();
        assert_eq!(look(&watched).await, 0);
        for (content, expected) in [("1", 1), ("2", 2), ("no number", 2), ("3", 3)] {
            fs::write(&path, content).unwrap();
            assert_eq!(look(&watched).await, expected, "{content}");
        }
        fs::remove_file(&path).unwrap();
        assert_eq!(look(&watched).await, 0);
        fs::write(&path, vec![b'1'; 5 << 20]).unwrap();
        assert_eq!(look(&watched).await, 0);
    }

    /// Held while the number two is not to be understood yet, and whether somebody tries to.
    static GATE: Mutex<()> = Mutex::new(());
    static IS_TRIED: AtomicBool = AtomicBool::new(false);

    fn slow_number(content: &[u8]) -> Result<u32, String> {
        let number = number(content)?;
        if number == 2 {
            IS_TRIED.store(true, Ordering::SeqCst);
            drop(GATE.lock());
        }
        Ok(number)
    }

    #[test]
    fn a_slow_look_does_not_undo_a_later_one() {
        let dir = TestDir::new();
        let path = dir.path().join("file");
        fs::write(&path, "1").unwrap();
        let source = Source { path: path.clone(), description: "numbers", parse: slow_number, default_if_absent: None };
        let watched = &ReloadingFile::open(source).unwrap();
        let gate = GATE.lock().unwrap();
        fs::write(&path, "2").unwrap();
        thread::scope(|scope| {
            scope.spawn(|| watched.check_blocking(false));
            while !IS_TRIED.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            fs::write(&path, "3").unwrap();
            let later = scope.spawn(|| watched.check_blocking(true));
            // Time enough for it to come to its end, if it could.
            thread::sleep(Duration::from_millis(50));
            assert!(!later.is_finished());
            drop(gate);
        });
        assert_eq!(*watched.state().current, 3);
    }

    #[tokio::test]
    async fn a_file_that_is_needed_stays_when_it_is_gone() {
        let dir = TestDir::new();
        let path = dir.path().join("file");
        fs::write(&path, "7").unwrap();
        let watched = ReloadingFile::open(Source {
            path: path.clone(),
            description: "numbers",
            parse: number,
            default_if_absent: None,
        })
        .unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(look(&watched).await, 7);
        fs::write(&path, "8").unwrap();
        watched.reload().await;
        assert_eq!(*watched.current().await, 8);
    }
}
