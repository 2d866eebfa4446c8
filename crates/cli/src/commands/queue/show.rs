//! `restante relay show` and `restante webhook show`: show an entry of a queue.

use clap::{ArgMatches, Command};

use super::super::arg_text;
use super::{QueueKind, ids_arg};
use crate::error::CommandError;
use crate::{CommandContext, Task};

pub(super) fn command(queue: &QueueKind) -> Command {
    Command::new("show")
        .about(format!("Shows an entry of the {} queue", queue.group))
        .long_about(format!("Shows an entry of the {} queue: {}", queue.group, queue.help.show))
        .arg(ids_arg().required(true))
}

pub(super) fn parse(queue: &'static QueueKind, matches: &ArgMatches) -> Box<dyn Task> {
    Box::new(Show { queue, id: arg_text(matches, "ids") })
}

struct Show {
    queue: &'static QueueKind,
    id: String,
}

impl Task for Show {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let path = &["api", "v2", self.queue.path, "entries", &self.id];
        let response = context.server.get(path, &[])?;
        if context.json {
            return Ok(context.style.write_json(context.out, &response)?);
        }
        (self.queue.print_entry)(context, &response)
    }
}
