//! `restante delete` and `restante purge`: delete messages.

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command};
use serde_json::{Value, json};

use super::{arg_text, mailbox_arg, parse_segment};
use crate::error::CommandError;
use crate::output::count_with_noun;
use crate::{CommandContext, Task};

/// The maximum number of ids in one request. The server accepts about fifty thousand.
const MAX_IDS_PER_REQUEST: usize = 10_000;

pub(super) fn delete_command() -> Command {
    Command::new("delete").about("Deletes messages of a mailbox").arg(mailbox_arg()).arg(
        Arg::new("ids")
            .value_name("ID")
            .required(true)
            .num_args(1..)
            .value_parser(parse_segment)
            .help("The ids of the messages"),
    )
}

pub(super) fn parse_delete(matches: &ArgMatches) -> Box<dyn Task> {
    let ids = matches.get_many::<String>("ids").into_iter().flatten().cloned().collect();
    Box::new(Delete { mailbox: arg_text(matches, "mailbox"), ids })
}

pub(super) fn purge_command() -> Command {
    Command::new("purge")
        .about("Deletes all messages of a mailbox, or of all mailboxes")
        .arg(mailbox_arg().required(false))
        .arg(Arg::new("all").long("all").action(ArgAction::SetTrue).help("Deletes all messages on the server"))
        .group(ArgGroup::new("target").args(["mailbox", "all"]).required(true))
}

pub(super) fn parse_purge(matches: &ArgMatches) -> Box<dyn Task> {
    Box::new(Purge { mailbox: matches.get_one("mailbox").cloned() })
}

struct Delete {
    mailbox: String,
    ids: Vec<String>,
}

impl Task for Delete {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        // `latest` could be another message by the time of the request.
        if self.ids.iter().any(|id| id == "latest") {
            return Err(CommandError::Usage("The command delete takes message ids, not latest.".to_owned()));
        }
        let mut ids: Vec<&String> = self.ids.iter().collect();
        ids.sort_unstable();
        ids.dedup();
        let mut deleted = 0;
        for ids in ids.chunks(MAX_IDS_PER_REQUEST) {
            let path = &["api", "v2", "mailbox", &self.mailbox, "delete"];
            deleted += deleted_count(&context.server.post(path, &json!({ "ids": ids }))?);
        }
        print_deleted(context, deleted)?;
        let missing = u64::try_from(ids.len()).unwrap_or(u64::MAX).saturating_sub(deleted);
        match missing {
            0 => Ok(()),
            1 => Err(CommandError::not_found("One of the messages does not exist.")),
            many => Err(CommandError::not_found(format!("{many} of the messages do not exist."))),
        }
    }
}

struct Purge {
    /// `None` means all mailboxes.
    mailbox: Option<String>,
}

impl Task for Purge {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let Some(mailbox) = &self.mailbox else {
            let response = context.server.delete(&["api", "v2", "mailboxes"])?;
            return print_deleted(context, deleted_count(&response));
        };
        let response = context.server.delete(&["api", "v1", "mailbox", mailbox])?;
        if context.json {
            context.style.write_json(context.out, &response)?;
        } else if context.style.is_terminal() {
            writeln!(context.out, "Purged.")?;
        }
        Ok(())
    }
}

fn deleted_count(response: &Value) -> u64 {
    response["deleted"].as_u64().unwrap_or_default()
}

/// Prints how many messages were deleted, on a terminal or as JSON.
fn print_deleted(context: &mut CommandContext<'_>, deleted: u64) -> Result<(), CommandError> {
    if context.json {
        context.style.write_json(context.out, &json!({ "deleted": deleted }))?;
    } else if context.style.is_terminal() {
        writeln!(context.out, "Deleted {}.", count_with_noun(deleted, "message"))?;
    }
    Ok(())
}
