//! `restante tag`: prints or changes the tags of a message.

use clap::{Arg, ArgAction, ArgMatches, Command};
use restante_mail::tags::Tags;
use restante_mail::terminal_text;
use serde_json::{Value, json};

use super::entry::{Entry, parse_tag};
use super::{arg_text, parse_segment};
use crate::error::CommandError;
use crate::server::{ApiRequest, decode};
use crate::{CommandContext, Task};

pub(super) fn command() -> Command {
    let change = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).requires("tags").help(help)
    };
    Command::new("tag")
        .about("Prints or sets the tags of a message")
        .long_about(
            "Sets the tags of a message, in all its mailboxes. Other tags are removed, unless --add or --remove is \
             given. Without tags, it prints the tags of the message, one per line. A tag has letters, digits, spaces \
             and the characters - _ . @, and case does not matter. With --json, it prints the message.",
        )
        .arg(
            Arg::new("id")
                .value_name("ID")
                .required(true)
                .value_parser(parse_segment)
                .help("The id of a message, or latest"),
        )
        .arg(Arg::new("tags").value_name("TAG").num_args(1..).value_parser(parse_tag).help("The tags"))
        .arg(change("add", "Keeps the other tags").conflicts_with("remove"))
        .arg(change("remove", "Removes these tags, and keeps the others"))
        .arg(
            Arg::new("clear")
                .long("clear")
                .action(ArgAction::SetTrue)
                .conflicts_with_all(["tags", "add", "remove"])
                .help("Removes all tags"),
        )
}

pub(super) fn parse(matches: &ArgMatches) -> Box<dyn Task> {
    let tags: Vec<String> = matches.get_many("tags").into_iter().flatten().cloned().collect();
    let change = match (matches.get_flag("add"), matches.get_flag("remove"), matches.get_flag("clear")) {
        (true, ..) => Change::Add(tags),
        (_, true, _) => Change::Remove(tags),
        (.., true) => Change::Set(Vec::new()),
        _ if tags.is_empty() => Change::None,
        _ => Change::Set(tags),
    };
    Box::new(Tag { id: arg_text(matches, "id"), change })
}

/// What is done with the tags.
enum Change {
    /// They are only printed.
    None,
    Set(Vec<String>),
    Add(Vec<String>),
    Remove(Vec<String>),
}

struct Tag {
    id: String,
    change: Change,
}

impl Task for Tag {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let path = &["api", "v2", "messages", &self.id];
        let response = match &self.change {
            Change::Set(tags) => set_tags(context, &self.id, &collect(tags)?)?,
            Change::None | Change::Add(_) | Change::Remove(_) => {
                let message = context.server.get(ApiRequest { path, ..ApiRequest::default() })?;
                self.change_tags(context, message)?
            }
        };
        if context.json {
            return Ok(context.style.write_json(context.out, &response)?);
        }
        self.print(context, &response)
    }
}

impl Tag {
    /// Adds or removes tags. Returns the message after the change.
    fn change_tags(&self, context: &CommandContext<'_>, message: Value) -> Result<Value, CommandError> {
        // The id in the response is not `latest`, so this message is changed even if a newer one has arrived.
        let Entry { id, tags: current, .. } = decode(&message)?;
        match &self.change {
            Change::Add(tags) => set_tags(context, &id, &collect(current.iter().chain(tags))?),
            Change::Remove(tags) => {
                let removed = collect(tags)?;
                set_tags(context, &id, &collect(current.iter().filter(|tag| !removed.contains(tag)))?)
            }
            Change::None | Change::Set(_) => Ok(message),
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
        let is_query = matches!(self.change, Change::None);
        if is_query {
            for tag in &tags {
                writeln!(context.out, "{tag}")?;
            }
        } else if context.style.is_terminal() {
            match tags.as_slice() {
                [] => writeln!(context.out, "Message {id} has no tags.")?,
                tags => writeln!(context.out, "Message {id} has the tags: {}.", tags.join(", "))?,
            }
        }
        if is_query && tags.is_empty() {
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
