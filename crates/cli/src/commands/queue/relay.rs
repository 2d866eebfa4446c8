//! What `restante relay` prints of the relay.

use std::borrow::Cow;
use std::io;

use restante_api_types::{RelayEntry, RelayTarget};
use restante_mail::terminal_text;
use serde::Deserialize;
use serde_json::Value;

use super::{QueueKind, TargetRow, display_time, print_fields, print_target_rows, separator};
use crate::CommandContext;
use crate::error::CommandError;
use crate::output::{Column, Table, TextStyle};
use crate::server::decode;

pub(super) const RELAY: QueueKind = QueueKind {
    group: "relay",
    about: "Shows relay targets, and shows and changes the relay queue",
    path: "relay",
    commands: &[
        (
            "targets",
            "NAME, SERVER, STATE, QUEUED, SENDING, DELIVERED, FAILED, CANCELLED, the ALLOWED recipients, and the last ERROR. A \
             target that cannot be reached is paused.",
        ),
        (
            "list",
            "ID, DATE, STATE, TARGET, MESSAGE, the recipients separated by commas, the number of attempts, and the last reply.",
        ),
        (
            "show",
            "its fields, its recipients with their replies, and the transcript of its last attempt. In the transcript, C is \
             this server and S is the target.",
        ),
        ("retry", "The message is not sent again to recipients for which it was accepted."),
        ("cancel", "A message that is being sent may still be accepted."),
    ],
    no_targets: "The server has no relay targets: set relay.targets.",
    print_targets,
    print_entries: |context, entries| Ok(print_entries(context, &decode::<Vec<RelayEntry<'static>>>(entries)?)?),
    print_entry,
};

/// A line of a transcript.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Line {
    after_millis: u64,
    from: String,
    text: String,
}

/// Prints entries as a table.
pub(in super::super) fn print_entries(context: &mut CommandContext<'_>, entries: &[RelayEntry<'_>]) -> io::Result<()> {
    let mut table = Table::new([
        Column::new("ID").styled(TextStyle::Id),
        Column::new("WHEN").styled(TextStyle::Faint),
        Column::new("STATE"),
        Column::new("TARGET"),
        Column::new("MESSAGE").styled(TextStyle::Id),
        Column::new("TO").shrinkable(),
        Column::new("TRIES").right_aligned().styled(TextStyle::Faint),
        Column::new("REPLY").shrinkable(),
    ]);
    for entry in entries {
        let recipients: Vec<&str> = entry.recipients.iter().map(|recipient| &*recipient.address).collect();
        table.add_row([
            entry.id.to_string(),
            display_time(context, &entry.progress.created),
            entry.progress.state.name().to_owned(),
            entry.target.to_string(),
            entry.message.to_string(),
            recipients.join(separator(context)),
            entry.progress.attempts.to_string(),
            entry.progress.last_reply.to_string(),
        ]);
    }
    context.style.write_table(context.out, &table)
}

fn print_targets(context: &mut CommandContext<'_>, targets: &Value) -> Result<(), CommandError> {
    let separator = separator(context);
    let row = |target: RelayTarget<'static>| {
        let host = if target.host.contains(':') { format!("[{}]", target.host) } else { target.host.into_owned() };
        TargetRow {
            name: target.name.into_owned(),
            address: format!("{host}:{}", target.port),
            state: target.state.name(),
            entries: target.entries,
            rules: target.allowed.join(separator),
            error: target.last_error.map(Cow::into_owned),
        }
    };
    let targets: Vec<RelayTarget<'static>> = decode(targets)?;
    Ok(print_target_rows(context, ["SERVER", "ALLOWED"], targets.into_iter().map(row))?)
}

/// Prints an entry with its recipients and the transcript of its last attempt.
fn print_entry(context: &mut CommandContext<'_>, document: &Value) -> Result<(), CommandError> {
    let entry: RelayEntry<'static> = decode(document)?;
    let origin = match &entry.by {
        Some(name) => format!("{} by {name}", entry.origin.name()),
        None => entry.origin.name().to_owned(),
    };
    let fields: [(&str, &str); 7] = [
        ("Entry", &entry.id),
        ("State", entry.progress.state.name()),
        ("Message", &entry.message),
        ("Mailbox", &entry.mailbox),
        ("Target", &entry.target),
        ("Origin", &origin),
        ("Sender", if entry.sender.is_empty() { "<>" } else { &entry.sender }),
    ];
    print_fields(context, &fields, &entry.progress)?;
    if !entry.recipients.is_empty() {
        writeln!(context.out)?;
        let columns = [Column::new("RECIPIENT").shrinkable(), Column::new("STATE"), Column::new("REPLY").shrinkable()];
        let mut table = Table::new(columns);
        for to in entry.recipients {
            table.add_row([to.address.into_owned(), to.state.name().to_owned(), to.reply.into_owned()]);
        }
        context.style.write_table(context.out, &table)?;
    }
    let transcript: Vec<Line> = decode(&document["transcript"])?;
    if !transcript.is_empty() {
        writeln!(context.out)?;
    }
    for Line { after_millis, from, text } in transcript {
        let side = if from == "client" { "C" } else { "S" };
        let time = format!("{:4}.{:03}", after_millis / 1000, after_millis % 1000);
        let time = context.style.paint(TextStyle::Faint, &time);
        writeln!(context.out, "{time} {side}: {}", terminal_text::escape_line(&text))?;
    }
    Ok(())
}
