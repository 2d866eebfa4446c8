//! `restante delete` and `restante purge`: mail that is no longer wanted.

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command};
use serde_json::{Value, json};

use super::{arg_text, mailbox_arg, parse_segment};
use crate::error::CommandError;
use crate::output::count_with_noun;
use crate::{CommandContext, Task};

/// How many messages are named in one request; the server takes some fifty thousand.
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
        .arg(Arg::new("all").long("all").action(ArgAction::SetTrue).help("Deletes everything that the server holds"))
        .group(ArgGroup::new("what").args(["mailbox", "all"]).required(true))
}

pub(super) fn parse_purge(matches: &ArgMatches) -> Box<dyn Task> {
    Box::new(Purge { mailbox: matches.get_one("mailbox").cloned() })
}

struct Delete {
    mailbox: String,
    ids: Vec<String>,
}

impl Task for Delete {
    fn run(&self, session: &mut CommandContext<'_>) -> Result<(), CommandError> {
        // It could be another message by then.
        if self.ids.iter().any(|id| id == "latest") {
            return Err(CommandError::Usage("Messages are deleted by their ids; latest is none.".to_owned()));
        }
        let mut ids: Vec<&String> = self.ids.iter().collect();
        ids.sort_unstable();
        ids.dedup();
        let mut deleted = 0;
        for ids in ids.chunks(MAX_IDS_PER_REQUEST) {
            let path = &["api", "v2", "mailbox", &self.mailbox, "delete"];
            deleted += deleted_count(&session.server.post(path, &json!({ "ids": ids }))?);
        }
        print_deleted(session, deleted)?;
        let missing = u64::try_from(ids.len()).unwrap_or(u64::MAX).saturating_sub(deleted);
        match missing {
            0 => Ok(()),
            1 => Err(CommandError::not_found("One of the messages is not there.")),
            many => Err(CommandError::not_found(format!("{many} of the messages are not there."))),
        }
    }
}

struct Purge {
    /// All mailboxes when there is none.
    mailbox: Option<String>,
}

impl Task for Purge {
    fn run(&self, session: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let Some(mailbox) = &self.mailbox else {
            let answer = session.server.delete(&["api", "v2", "mailboxes"])?;
            return print_deleted(session, deleted_count(&answer));
        };
        let answer = session.server.delete(&["api", "v1", "mailbox", mailbox])?;
        if session.json {
            session.style.write_json(session.out, &answer)?;
        } else if session.style.is_terminal() {
            writeln!(session.out, "Purged.")?;
        }
        Ok(())
    }
}

fn deleted_count(answer: &Value) -> u64 {
    answer["deleted"].as_u64().unwrap_or_default()
}

/// How many were deleted. A script asks for that with `--json`, or not at all.
fn print_deleted(session: &mut CommandContext<'_>, deleted: u64) -> Result<(), CommandError> {
    if session.json {
        session.style.write_json(session.out, &json!({ "deleted": deleted }))?;
    } else if session.style.is_terminal() {
        writeln!(session.out, "Deleted {}.", count_with_noun(deleted, "message"))?;
    }
    Ok(())
}
