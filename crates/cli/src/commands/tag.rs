//! `restante tag`: prints or changes the tags of a message.

use clap::Parser;
use restante_mail::tags::Tags;
use restante_mail::terminal_text;
use serde_json::{Value, json};

use super::entry::{Entry, parse_tag};
use super::parse_segment;
use crate::error::CommandError;
use crate::server::decode;
use crate::{CommandContext, Task};

/// Prints or sets the tags of a message.
#[derive(Parser)]
#[command(
    name = "tag",
    long_about = "Sets the tags of a message, in all its mailboxes. Other tags are removed, unless --add or --remove is \
        given. Without tags, it prints the tags of the message, one per line. A tag has letters, digits, spaces and the \
        characters - _ . @ $, and case does not matter. With --json, it prints the message."
)]
pub(super) struct Tag {
    /// The id of a message, or latest
    #[arg(value_parser = parse_segment)]
    id: String,
    /// The tags
    #[arg(value_name = "TAG", value_parser = parse_tag)]
    tags: Vec<String>,
    /// Keeps the other tags
    #[arg(long, requires = "tags", conflicts_with = "remove")]
    add: bool,
    /// Removes these tags, and keeps the others
    #[arg(long, requires = "tags")]
    remove: bool,
    /// Removes all tags
    #[arg(long, conflicts_with_all = ["tags", "add", "remove"])]
    clear: bool,
}

impl Task for Tag {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let response = if self.clear || !(self.is_query() || self.add || self.remove) {
            set_tags(context, &self.id, &collect(&self.tags)?)?
        } else {
            let message = context.server.get(&["api", "v2", "messages", &self.id], &[])?;
            self.change_tags(context, message)?
        };
        if context.json {
            return Ok(context.style.write_json(context.out, &response)?);
        }
        self.print(context, &response)
    }
}

impl Tag {
    /// Returns true if the tags are only printed.
    fn is_query(&self) -> bool {
        self.tags.is_empty() && !self.clear
    }

    /// Adds or removes tags. Returns the message after the change.
    fn change_tags(&self, context: &CommandContext<'_>, message: Value) -> Result<Value, CommandError> {
        // The id in the response is not `latest`, so this message is changed even if a newer one has arrived.
        let Entry { id, tags: current, .. } = decode(&message)?;
        if self.add {
            set_tags(context, &id, &collect(current.iter().chain(&self.tags))?)
        } else if self.remove {
            let removed = collect(&self.tags)?;
            set_tags(context, &id, &collect(current.iter().filter(|tag| !removed.contains(tag)))?)
        } else {
            Ok(message)
        }
    }

    fn print(&self, context: &mut CommandContext<'_>, message: &Value) -> Result<(), CommandError> {
        // A token that may not read messages gets no message.
        if message.is_string() {
            return Ok(());
        }
        let Entry { id, tags, .. } = decode(message)?;
        let id = terminal_text::escape_line(&id);
        let tags: Vec<String> = tags.iter().map(|tag| terminal_text::escape_line(tag)).collect();
        if self.is_query() {
            for tag in &tags {
                writeln!(context.out, "{tag}")?;
            }
        } else if context.style.is_terminal() {
            match tags.as_slice() {
                [] => writeln!(context.out, "Message {id} has no tags.")?,
                tags => writeln!(context.out, "Message {id} has the tags: {}.", tags.join(", "))?,
            }
        }
        if self.is_query() && tags.is_empty() {
            return Err(CommandError::not_found(format!("Message {id} has no tags.")));
        }
        Ok(())
    }
}

fn collect<'a>(tags: impl IntoIterator<Item = &'a String>) -> Result<Tags, CommandError> {
    let tags = Tags::new(tags.into_iter().map(String::as_str));
    tags.map_err(|error| CommandError::Usage(format!("The tags cannot be set: {error}.")))
}

fn set_tags(context: &CommandContext<'_>, id: &str, tags: &Tags) -> Result<Value, CommandError> {
    context.server.patch(&["api", "v2", "messages", id], &json!({ "tags": tags.iter().collect::<Vec<_>>() }))
}
