//! `restante relay show`: shows an entry of the relay queue, with the transcript of its last attempt.

use std::io;

use clap::{ArgMatches, Command};
use restante_api_types::RelayEntry;
use restante_mail::terminal_text;
use serde::Deserialize;
use serde_json::Value;

use super::super::arg_text;
use super::{entry_path, ids_arg};
use crate::error::CommandError;
use crate::output::{Column, Table, TextStyle};
use crate::server::{ApiRequest, decode};
use crate::{CommandContext, Task};

pub(super) fn command() -> Command {
    Command::new("show")
        .about("Shows an entry of the relay queue, with the transcript of its last attempt")
        .long_about(
            "Shows an entry of the relay queue: its fields, its recipients with their replies, and the transcript of its \
             last attempt. In the transcript, C is this server and S is the target.",
        )
        .arg(ids_arg().required(true))
}

pub(super) fn parse(matches: &ArgMatches) -> Box<dyn Task> {
    Box::new(Show { id: arg_text(matches, "ids") })
}

struct Show {
    id: String,
}

/// A line of a transcript.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Line {
    after_millis: u64,
    from: String,
    text: String,
}

impl Task for Show {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let response: Value =
            context.server.get(ApiRequest { path: &entry_path(&self.id), ..ApiRequest::default() })?;
        if context.json {
            return Ok(context.style.write_json(context.out, &response)?);
        }
        print_fields(context, &decode(&response)?)?;
        let transcript: Vec<Line> = decode(&response["transcript"])?;
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
}

fn print_fields(context: &mut CommandContext<'_>, entry: &RelayEntry<'_>) -> io::Result<()> {
    let origin = match &entry.by {
        Some(name) => format!("{} by {name}", entry.origin.name()),
        None => entry.origin.name().to_owned(),
    };
    let attempts = entry.attempts.to_string();
    let fields: [(&str, &str); 12] = [
        ("Entry", &entry.id),
        ("State", entry.state.name()),
        ("Message", &entry.message),
        ("Mailbox", &entry.mailbox),
        ("Target", &entry.target),
        ("Origin", &origin),
        ("Sender", if entry.sender.is_empty() { "<>" } else { &entry.sender }),
        ("Created", &entry.created),
        ("Expires", &entry.expires),
        ("Attempts", &attempts),
        ("Last attempt", entry.last_attempt.as_deref().unwrap_or_default()),
        ("Next attempt", entry.next_attempt.as_deref().unwrap_or_default()),
    ];
    for (name, value) in fields.into_iter().chain([("Last reply", &*entry.last_reply)]) {
        if !value.is_empty() {
            let name = context.style.paint(TextStyle::Head, &format!("{name}:"));
            writeln!(context.out, "{name} {}", terminal_text::escape_line(value))?;
        }
    }
    if entry.recipients.is_empty() {
        return Ok(());
    }
    writeln!(context.out)?;
    let mut table =
        Table::new([Column::new("RECIPIENT").shrinkable(), Column::new("STATE"), Column::new("REPLY").shrinkable()]);
    for recipient in &entry.recipients {
        table.add_row([recipient.address.to_string(), recipient.state.name().to_owned(), recipient.reply.to_string()]);
    }
    context.style.write_table(context.out, &table)
}
