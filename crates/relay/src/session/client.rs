//! Commands and replies over a recorded stream, each with a time limit. `mail-send` reads the replies and encodes the
//! content.

use std::io::ErrorKind;
use std::time::Duration;

use mail_send::{Error, SmtpClient};
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

use super::recorder::{Recorder, WriteMode, status_of, truncate};
use super::stream::RecordedStream;

/// The maximum length of the text of a reply, in characters.
const MAX_REPLY_CHARS: usize = 500;
/// The rate at which a server has to read the content of a message, in bytes per second.
const MIN_CONTENT_RATE: u64 = 16 * 1024;

/// The time limit for the reply to the content, as a multiple of the timeout. A server that accepts a message after the
/// client has given up gets it again with the next attempt, so the client waits longer than for other replies (RFC 5321
/// section 4.5.3.2.6).
const CONTENT_REPLY_TIMEOUTS: u32 = 10;

/// A client of an SMTP server.
pub(super) struct Client {
    smtp: SmtpClient<RecordedStream>,
}

/// A reply of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    /// The code of three digits.
    pub(super) code: u16,
    /// The lines, separated by line breaks.
    pub(super) lines: String,
}

impl Reply {
    /// Returns whether the command succeeded.
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.code)
    }

    /// Returns the code and the text of all lines as one line of limited length.
    pub(super) fn text(&self) -> String {
        let mut lines = self.lines.lines();
        let mut text = lines.next().unwrap_or_default().replacen('-', " ", usize::from(self.lines.contains('\n')));
        for line in lines {
            text.push(' ');
            text.push_str(line.get(4..).unwrap_or_default());
        }
        truncate(text.trim_end(), MAX_REPLY_CHARS).to_owned()
    }

    /// Returns the code, with the enhanced status code if there is one.
    pub(super) fn status(&self) -> String {
        status_of(self.lines.lines().next().unwrap_or_default()).replacen('-', " ", 1)
    }

    /// Returns the text of each line after the first one, without the code.
    pub(super) fn further_lines(&self) -> impl Iterator<Item = &str> {
        self.lines.lines().skip(1).map(|line| line.get(4..).unwrap_or_default())
    }
}

impl Client {
    /// Creates a client without a connection. `timeout` is the time limit for each reply.
    pub(super) fn new(timeout: Duration) -> Self {
        Self { smtp: SmtpClient { stream: RecordedStream::new(), timeout } }
    }

    pub(super) fn stream(&mut self) -> &mut RecordedStream {
        &mut self.smtp.stream
    }

    pub(super) fn recorder(&mut self) -> &mut Recorder {
        &mut self.smtp.stream.recorder
    }

    pub(super) fn timeout(&self) -> Duration {
        self.smtp.timeout
    }

    /// Sends a command, without its line break, and reads the reply. The error is a clause for the operator.
    pub(super) async fn command(&mut self, command: &str) -> Result<Reply, String> {
        self.write(&format!("{command}\r\n")).await?;
        self.read_reply().await
    }

    /// Sends commands with their line breaks, without reading the replies.
    pub(super) async fn write(&mut self, commands: &str) -> Result<(), String> {
        let stream = &mut self.smtp.stream;
        let write = async {
            stream.write_all(commands.as_bytes()).await?;
            stream.flush().await
        };
        match timeout(self.smtp.timeout, write).await {
            Ok(result) => result.map_err(|error| describe(Error::Io(error))),
            Err(_) => Err(describe(Error::Timeout)),
        }
    }

    /// Reads a reply.
    pub(super) async fn read_reply(&mut self) -> Result<Reply, String> {
        self.read_reply_within(self.smtp.timeout).await
    }

    async fn read_reply_within(&mut self, limit: Duration) -> Result<Reply, String> {
        self.recorder().start_reply();
        let response = timeout(limit, self.smtp.read()).await.unwrap_or(Err(Error::Timeout));
        let code = response.map_err(describe)?.code;
        Ok(Reply { code, lines: self.recorder().take_reply() })
    }

    /// Sends the content of a message, whose lines end in CRLF, and reads the reply.
    pub(super) async fn send_content(&mut self, data: &[u8]) -> Result<Reply, String> {
        self.recorder().add_note(&format!("{} bytes", data.len()));
        self.recorder().set_write_mode(WriteMode::Content);
        let limit = self.smtp.timeout.saturating_add(Duration::from_secs(data.len() as u64 / MIN_CONTENT_RATE));
        let write = async {
            // The library doubles dots after line breaks only, and always adds a line break.
            if data.starts_with(b".") {
                self.smtp.stream.write_all(b".").await?;
            }
            self.smtp.write_message(data.strip_suffix(b"\r\n").unwrap_or(data)).await
        };
        let written = timeout(limit, write).await;
        self.recorder().set_write_mode(WriteMode::Commands);
        match written {
            Ok(result) => result.map_err(|error| describe(Error::Io(error)))?,
            Err(_) => return Err("the server did not read the message in time".to_owned()),
        }
        self.read_reply_within(self.smtp.timeout.saturating_mul(CONTENT_REPLY_TIMEOUTS)).await
    }

    /// Closes the connection.
    pub(super) async fn close(&mut self) {
        // The connection is dropped after this, so errors do not matter.
        let _ = self.smtp.stream.shutdown().await;
    }
}

fn describe(error: Error) -> String {
    match error {
        Error::Io(error) if error.kind() == ErrorKind::InvalidData => error.to_string(),
        Error::Io(error)
            if matches!(
                error.kind(),
                ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
            ) =>
        {
            "the server closed the connection".to_owned()
        }
        Error::Io(error) => format!("the connection failed: {error}"),
        Error::Timeout => "the server did not reply in time".to_owned(),
        // The only other error of the functions that are used here.
        _ => "the server sent a reply that is too long or not valid".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_replies() {
        let reply = |lines: &str| Reply { code: 550, lines: lines.to_owned() };
        assert_eq!(reply("550 5.7.606 no").text(), "550 5.7.606 no");
        assert_eq!(reply("550-5.1.1 one\n550-\n550 two").text(), "550 5.1.1 one  two");
        assert_eq!(reply("550").text(), "550");
        assert_eq!(reply("550-5.1.1 one\n550 two").status(), "550 5.1.1");
        assert_eq!(reply(&"ä".repeat(9000)).text().chars().count(), 500);
        assert_eq!(
            reply("250-mx\n250-SIZE 1\n250 äHELP\n25").further_lines().collect::<Vec<_>>(),
            ["SIZE 1", "äHELP", ""]
        );
    }
}
