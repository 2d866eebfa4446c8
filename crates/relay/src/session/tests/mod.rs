//! Conversations with a scripted server.

mod hostile;
mod login;
mod messages;
mod server;
mod tls;

use std::time::Duration;

use restante_journal::{Side, TranscriptLines};

use self::server::Server;
use super::{ConnectError, Connector, Session};
use crate::recipients::RecipientPatterns;
use crate::settings::{Target, TargetTls, Verification};

/// The start of a session without extensions.
const OPENING: &str = "S: 220 mx.test ESMTP\nC: EHLO relay.test\nS: 250 mx.test\n";

/// Returns a target without TLS and credentials.
pub(crate) fn test_target() -> Target {
    Target {
        name: "test".to_owned(),
        host: "127.0.0.1".to_owned(),
        port: 25,
        tls: TargetTls::None,
        verification: Verification::System,
        login: None,
        timeout: Duration::from_mins(2),
        connections: 1,
        return_path: None,
        from: None,
        allowed: RecipientPatterns::default(),
        blocked: RecipientPatterns::default(),
    }
}

/// Opens a session to a server.
async fn connect(server: &Server, target: Target) -> Result<Session, ConnectError> {
    let target = Target { port: server.port, ..target };
    Connector::new("relay.test".to_owned(), true).connect(&target).await
}

/// Returns the lines of a conversation in the syntax of a script, without notes.
fn conversation(transcript: &TranscriptLines) -> String {
    let lines = transcript.iter().filter(|line| !line.text.starts_with('('));
    lines.flat_map(|line| [if line.side == Side::Client { "C: " } else { "S: " }, line.text, "\n"]).collect()
}
