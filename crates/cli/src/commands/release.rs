//! `restante release`: sends a message to other mail servers, through a relay target of the server.

use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use restante_api_types::{QueueEntryState, RelayEntry};
use serde_json::{Map, Value};

use super::parse_segment;
use super::queue::relay::print_entries;
use crate::error::CommandError;
use crate::options::parse_duration;
use crate::server::{Server, decode};
use crate::{CommandContext, Task};

/// How long `--wait` waits by default.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// The pauses between requests for the state of the entry. They double up to the maximum.
const MIN_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// Sends a message to other mail servers.
#[derive(Parser)]
#[command(
    name = "release",
    long_about = "Sends a message through a relay target of the server. It prints the entry of the relay queue, as `restante \
        relay list` does. With --wait, it waits until the message was sent, and fails if a recipient was refused.",
    after_help = "Exit codes: 0 success, 1 no such message, or with --wait not sent in time or refused, 2 wrong usage, 3 \
        server not reachable, 4 credentials or recipients refused, 5 error of the server or of this machine."
)]
pub(super) struct Release {
    /// The id of a message, or latest
    #[arg(value_parser = parse_segment)]
    id: String,
    /// A recipient; may be repeated [default: the recipients of the envelope]
    #[arg(long = "to", value_name = "ADDRESS")]
    recipients: Vec<String>,
    /// The relay target [default: the only one]
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// Waits until the message was sent
    #[arg(long)]
    wait: bool,
    /// How long to wait [default: 30s]
    #[arg(
        id = "wait-timeout", long = "timeout", value_name = "TIME", value_parser = parse_duration, requires = "wait"
    )]
    timeout: Option<Duration>,
}

impl Task for Release {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let mut body = Map::new();
        if let Some(target) = &self.target {
            body.insert("target".to_owned(), target.as_str().into());
        }
        if !self.recipients.is_empty() {
            body.insert("to".to_owned(), self.recipients.clone().into());
        }
        let path = &["api", "v2", "messages", &self.id, "release"];
        let mut document = context.server.post(path, &Value::Object(body))?;
        if self.wait {
            let id = decode::<RelayEntry<'static>>(&document)?.id;
            document = wait_until_final(&context.server, &id, self.timeout.unwrap_or(DEFAULT_TIMEOUT))?;
        }
        let entry: RelayEntry<'static> = decode(&document)?;
        if context.json {
            context.style.write_json(context.out, &document)?;
        } else {
            print_entries(context, std::slice::from_ref(&entry))?;
        }
        if self.wait { sent_result(&entry) } else { Ok(()) }
    }
}

/// Requests an entry until its state is final, or until the time limit. Returns its last state.
fn wait_until_final(server: &Server, id: &str, timeout: Duration) -> Result<Value, CommandError> {
    let (started, mut pause) = (Instant::now(), MIN_PAUSE);
    loop {
        let document = server.get(&["api", "v2", "relay", "entries", id], &[])?;
        let remaining = timeout.saturating_sub(started.elapsed());
        if decode::<RelayEntry<'static>>(&document)?.progress.state.is_final() || remaining.is_zero() {
            return Ok(document);
        }
        thread::sleep(pause.min(remaining));
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

/// Returns an error unless the message was sent to all recipients.
fn sent_result(entry: &RelayEntry<'_>) -> Result<(), CommandError> {
    let reason = match entry.progress.state {
        QueueEntryState::Delivered => return Ok(()),
        QueueEntryState::Failed => "The message was not delivered to all recipients",
        QueueEntryState::Cancelled => "The entry was cancelled",
        QueueEntryState::Queued | QueueEntryState::Sending => {
            "The message was not sent in time, and is still in the queue"
        }
    };
    Err(CommandError::not_found(match &*entry.progress.last_reply {
        "" => format!("{reason}."),
        reply => format!("{reason}: {reply}"),
    }))
}
