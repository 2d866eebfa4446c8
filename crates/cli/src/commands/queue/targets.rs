//! `restante relay targets` and `restante webhook targets`: list the targets of a server.

use clap::{ArgMatches, Command};

use super::QueueKind;
use crate::error::CommandError;
use crate::{CommandContext, Task};

pub(super) fn command(queue: &QueueKind) -> Command {
    let group = queue.group;
    Command::new("targets").about(format!("Lists the {group} targets of a server")).long_about(format!(
        "Lists the {group} targets of a server, with the number of entries in each state. In a pipe, the columns are \
         separated by tabs: {}",
        queue.help.targets
    ))
}

pub(super) fn parse(queue: &'static QueueKind, _: &ArgMatches) -> Box<dyn Task> {
    Box::new(ListTargets(queue))
}

struct ListTargets(&'static QueueKind);

impl Task for ListTargets {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let path = &["api", "v2", self.0.path];
        let response = context.server.get(path, &[])?;
        let is_empty = response["targets"].as_array().is_none_or(Vec::is_empty);
        if context.json {
            context.style.write_json(context.out, &response)?;
        } else if !is_empty {
            (self.0.print_targets)(context, &response["targets"])?;
        }
        if is_empty { Err(CommandError::not_found(self.0.no_targets)) } else { Ok(()) }
    }
}
