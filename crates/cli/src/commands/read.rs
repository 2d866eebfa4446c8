//! `restante get` and `restante source`: print one message, for people or byte for byte.

use std::io::{Read as _, Write};

use clap::Parser;
use restante_mail::terminal_text;
use serde::Deserialize;

use super::scope::{MessageArgs, Scope};
use crate::error::CommandError;
use crate::output::{Column, Table, TextStyle, format_size};
use crate::server::{Server, decode};
use crate::{CommandContext, Task};

/// The header fields that are shown by default, in this order.
const DEFAULT_HEADERS: &[&str] = &["From", "Reply-To", "To", "Cc", "Date", "Subject"];

/// Shows a message: header, text and attachments.
#[derive(Parser)]
#[command(
    name = "get",
    long_about = "Shows a message: the most important header fields, the text, and the list of attachments. Without a \
        mailbox, it shows the newest message of all mail, or that of --message. With --json, it prints the whole message \
        as returned by the REST API, with its HTML and all header fields."
)]
pub(super) struct Get {
    #[command(flatten)]
    message: MessageArgs,
    /// Shows all header fields
    #[arg(long)]
    headers: bool,
}

/// The copy of a message in a mailbox.
#[derive(Deserialize)]
struct MessageCopy {
    mailbox: String,
    id: String,
}

/// The fields of `/api/v2/mailbox/{name}/{id}` that are shown.
#[derive(Deserialize)]
struct Details {
    text: String,
    headers: Vec<Field>,
    attachments: Vec<Attachment>,
}

#[derive(Deserialize)]
struct Field {
    name: String,
    value: String,
    #[serde(default)]
    decoded: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Attachment {
    index: u64,
    filename: String,
    content_type: String,
    size: u64,
}

impl Task for Get {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let version = if context.json { "v1" } else { "v2" };
        let MessageCopy { mailbox, id } = self.find_copy(&context.server)?;
        let response = context.server.get(&["api", version, "mailbox", &mailbox, &id], &[])?;
        if context.json {
            return Ok(context.style.write_json(context.out, &response)?);
        }
        let details: Details = decode(&response)?;
        for field in self.selected_fields(&details.headers) {
            let name = context.style.paint(TextStyle::Head, &format!("{}:", terminal_text::escape_line(&field.name)));
            let value = terminal_text::escape_line(field.decoded.as_ref().unwrap_or(&field.value));
            writeln!(context.out, "{name} {value}")?;
        }
        writeln!(context.out, "\n{}", terminal_text::escape_text(&details.text.replace("\r\n", "\n")).trim_end())?;
        if details.attachments.is_empty() {
            return Ok(());
        }
        writeln!(context.out)?;
        let mut table = Table::new([
            Column::new("").right_aligned().styled(TextStyle::Id),
            Column::new("ATTACHMENT").shrinkable(),
            Column::new("TYPE").shrinkable(),
            Column::new("SIZE").right_aligned(),
        ]);
        for Attachment { index, filename, content_type, size: bytes } in details.attachments {
            table.add_row([index.to_string(), filename, content_type, format_size(bytes)]);
        }
        Ok(context.style.write_table(context.out, &table)?)
    }
}

impl Get {
    /// Returns the copy of the message that is shown: that of the mailbox, or the first one.
    fn find_copy(&self, server: &Server) -> Result<MessageCopy, CommandError> {
        if let Scope::Mailbox(mailbox) = self.message.scope() {
            return Ok(MessageCopy { mailbox, id: self.message.id().to_owned() });
        }
        decode(&server.get(&["api", "v2", "messages", self.message.id()], &[])?["copies"][0])
    }

    fn selected_fields<'a>(&self, fields: &'a [Field]) -> Vec<&'a Field> {
        if self.headers {
            return fields.iter().collect();
        }
        let named = |name: &'static str| fields.iter().filter(move |field| field.name.eq_ignore_ascii_case(name));
        DEFAULT_HEADERS.iter().flat_map(|name| named(name)).collect()
    }
}

/// Prints the source of a message.
#[derive(Parser)]
#[command(
    name = "source",
    long_about = "Prints the source of a message. In a pipe or a file, it is unchanged. On a terminal, control characters \
        are escaped. Without a mailbox, it prints the newest message of all mail, or that of --message."
)]
pub(super) struct Source {
    #[command(flatten)]
    message: MessageArgs,
}

impl Task for Source {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let scope = self.message.scope();
        let mut download = context.server.download(&scope.source_path(self.message.id()))?;
        let is_terminal = context.style.is_terminal();
        let mut chunk = vec![0; 64 * 1024];
        // An incomplete character or line end, whose rest is in the next chunk.
        let mut rest: Vec<u8> = Vec::new();
        loop {
            let length = download.read(&mut chunk).map_err(|error| {
                CommandError::Unreachable(format!("The download of the message was interrupted: {error}."))
            })?;
            if length == 0 {
                break;
            }
            if is_terminal {
                rest.extend_from_slice(&chunk[..length]);
                let end = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                write_lines(context.out, &rest.drain(..end).collect::<Vec<_>>())?;
            } else {
                context.out.write_all(&chunk[..length])?;
            }
        }
        Ok(write_lines(context.out, &rest)?)
    }
}

fn write_lines(out: &mut dyn Write, lines: &[u8]) -> std::io::Result<()> {
    out.write_all(terminal_text::escape_text(&String::from_utf8_lossy(lines).replace("\r\n", "\n")).as_bytes())
}
