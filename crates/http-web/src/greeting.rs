//! The greeting on the empty inbox and on `/send`: built-in HTML, or a file of the operator. The page waits for it, so
//! reading the file has a timeout.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use parking_lot::Mutex;
use restante_http_connection::work::WorkPermit;
use restante_http_core::response::problem::Problem;
use restante_http_core::response::success;
use restante_logging::LogThrottle;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The path of the handler.
pub(crate) const GREETING_PATH: &str = "/serve/greeting";

/// The maximum number of bytes that are read from the file.
const MAX_BYTES: u64 = 1 << 20;
/// The time to read the file, including the wait for the permit.
const READ_TIMEOUT: Duration = Duration::from_secs(3);
const BUILT_IN: &str = include_str!("greeting.html");

/// The web interface shows the greeting under its own policy. A browser that opens it directly shows it without scripts and
/// forms, and with an opaque origin.
const CONTENT_POLICY: HeaderValue = HeaderValue::from_static(
    "sandbox; default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'; frame-ancestors 'none'",
);

/// The greeting, from a file or built in.
pub(crate) struct Greeting {
    /// The file of the operator, if configured.
    file: Option<PathBuf>,
    /// Only one request at a time reads the file: a file system that hangs blocks one thread, not all of them.
    read_permit: Arc<Semaphore>,
    /// The last content of the file. Responses share it while it does not change.
    cached: Mutex<Option<Bytes>>,
    log_throttle: LogThrottle,
}

impl Greeting {
    /// Creates a greeting from this file, or the built-in one.
    pub(crate) fn new(file: Option<PathBuf>) -> Self {
        Self {
            file,
            read_permit: Arc::new(Semaphore::new(1)),
            cached: Mutex::default(),
            log_throttle: LogThrottle::default(),
        }
    }

    /// Returns the current content of the file, or the last one if reading takes too long.
    async fn text(self: &Arc<Self>) -> Result<Bytes, Problem> {
        let Some(path) = &self.file else { return Ok(BUILT_IN.into()) };
        let read = async {
            let (this, path) = (self.clone(), path.clone());
            WorkPermit::acquire(&self.read_permit).await?.run(move || this.read_file(&path)).await
        };
        if let Ok(text) = timeout(READ_TIMEOUT, read).await {
            return Ok(text?);
        }
        if self.log_throttle.should_log() {
            tracing::warn!(path = %path.display(), "reading the greeting file takes too long, serving its last content");
        }
        let last = self.cached.lock();
        Ok(last.clone().unwrap_or(BUILT_IN.into()))
    }

    /// Returns the current content of the file. If it cannot be read, logs that once and returns the built-in greeting.
    fn read_file(&self, path: &Path) -> Bytes {
        let read = read(path);
        let mut last = self.cached.lock();
        match read {
            Ok(text) => match &*last {
                Some(unchanged) if *unchanged == text => unchanged.clone(),
                _ => last.insert(text.into()).clone(),
            },
            Err(error) => {
                // A file that was missing from the start is reported when the server starts.
                if last.take().is_some() {
                    let path = path.display();
                    tracing::warn!(%error, %path, "cannot read the greeting file any more, serving the built-in greeting");
                }
                BUILT_IN.into()
            }
        }
    }
}

/// Returns the greeting.
pub(crate) async fn greeting(Extension(greeting): Extension<Arc<Greeting>>) -> Result<Response, Problem> {
    let mut response = Response::new(Body::from(greeting.text().await?));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, success::HTML);
    headers.insert(header::CONTENT_SECURITY_POLICY, CONTENT_POLICY);
    headers.insert(header::REFERRER_POLICY, success::NO_REFERRER);
    headers.insert(header::CACHE_CONTROL, success::NO_CACHE);
    Ok(response)
}

/// Returns the text of a file, with invalid UTF-8 replaced. A pipe is not opened, because that would wait for a writer.
fn read(path: &Path) -> io::Result<String> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut content = Vec::new();
    File::open(path)?.take(MAX_BYTES).read_to_end(&mut content)?;
    Ok(String::from_utf8_lossy(&content).into_owned())
}

#[cfg(test)]
mod tests {
    use restante_testdir::TestDir;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn slow_file_is_not_waited_for() {
        let dir = TestDir::new();
        let path = dir.path().join("greeting.html");
        let greeting = Arc::new(Greeting::new(Some(path.clone())));
        for (content, expected) in [("", BUILT_IN), ("<p>Grüße", "<p>Grüße")] {
            if !content.is_empty() {
                fs::write(&path, content).unwrap();
                assert_eq!(greeting.text().await.unwrap(), content);
            }
            let _hanging = greeting.read_permit.acquire().await.unwrap();
            for _ in 0..3 {
                let text = timeout(Duration::from_mins(1), greeting.text()).await.expect("a response");
                assert_eq!(text.unwrap(), expected);
            }
        }
    }
}
