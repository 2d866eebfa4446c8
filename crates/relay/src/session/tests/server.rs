//! An SMTP server that follows a script.

use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// A server for one connection.
pub(super) struct Server {
    pub(super) port: u16,
    task: JoinHandle<()>,
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Server {
    /// Starts a server with this script. Its lines are:
    ///
    /// - `C: TEXT`: the client sends exactly this line.
    /// - `S: TEXT`: the server sends this line. Consecutive lines are sent at once.
    /// - `WAIT SECONDS`: the server waits.
    /// - `TLS`: the server accepts TLS. The handshake may fail.
    /// - `ENDLESS TEXT`: the server repeats this text until the client closes the connection.
    /// - `SLOW TEXT`: the same, with delays.
    /// - `INCOMPLETE TEXT`: the server sends this text.
    ///
    /// These texts are sent without a line break, and may contain `\r` and `\n`. At the end the server closes the connection.
    pub(super) async fn start(script: &str, tls: Option<ServerConfig>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (script, tls) = (script.to_owned(), tls.map(|config| TlsAcceptor::from(Arc::new(config))));
        let task = tokio::spawn(async move { follow(&script, listener.accept().await.unwrap().0, tls).await });
        Self { port, task }
    }

    /// Checks that the client has followed the script to its end.
    pub(super) async fn finish(self) {
        self.task.await.unwrap();
    }
}

async fn follow(script: &str, stream: TcpStream, tls: Option<TlsAcceptor>) {
    let mut stream: BufReader<Box<dyn Stream>> = BufReader::new(Box::new(stream));
    let mut replies = String::new();
    for step in script.lines() {
        if let Some(reply) = step.strip_prefix("S: ") {
            replies.push_str(reply);
            replies.push_str("\r\n");
            continue;
        }
        stream.write_all(std::mem::take(&mut replies).as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        if let Some(expected) = step.strip_prefix("C: ").or(step.strip_prefix("C:")) {
            let mut line = String::new();
            stream.read_line(&mut line).await.unwrap();
            assert_eq!(line.strip_suffix("\r\n"), Some(expected), "in {script}");
        } else if let Some(text) = step.strip_prefix("ENDLESS ") {
            let text = unescape(text);
            while stream.write_all(text.as_bytes()).await.is_ok() {}
        } else if let Some(text) = step.strip_prefix("SLOW ") {
            let text = unescape(text);
            while stream.write_all(text.as_bytes()).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        } else if let Some(text) = step.strip_prefix("INCOMPLETE ") {
            stream.write_all(unescape(text).as_bytes()).await.unwrap();
        } else if let Some(seconds) = step.strip_prefix("WAIT ") {
            tokio::time::sleep(Duration::from_secs(seconds.parse().unwrap())).await;
        } else if step == "TLS" {
            let acceptor = tls.as_ref().expect("a configuration of TLS");
            match acceptor.accept(stream.into_inner()).await {
                Ok(encrypted) => stream = BufReader::new(Box::new(encrypted)),
                Err(_) => return,
            }
        } else {
            panic!("unknown step {step:?}");
        }
    }
    // The client may have closed the connection.
    let _ = stream.write_all(replies.as_bytes()).await;
    let _ = stream.shutdown().await;
}

fn unescape(text: &str) -> String {
    text.replace("\\r", "\r").replace("\\n", "\n")
}
