//! `restante relay targets`: lists the relay targets of a server.

use clap::{ArgMatches, Command};
use restante_api_types::{RelayEntryCounts, RelayTarget};
use serde_json::Value;

use crate::error::CommandError;
use crate::output::{Column, Table, TextStyle};
use crate::server::{ApiRequest, decode};
use crate::{CommandContext, Task};

pub(super) fn command() -> Command {
    Command::new("targets").about("Lists the relay targets of a server").long_about(
        "Lists the relay targets of a server, with the number of entries in each state. In a pipe, the columns are \
         separated by tabs: NAME, SERVER, STATE, QUEUED, SENDING, DELIVERED, FAILED, CANCELLED, the ALLOWED recipients, and \
         the last ERROR. A target that cannot be reached is paused.",
    )
}

pub(super) fn parse(_: &ArgMatches) -> Box<dyn Task> {
    Box::new(ListTargets)
}

struct ListTargets;

impl Task for ListTargets {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let path = &["api", "v2", "relay"];
        let response: Value = context.server.get(ApiRequest { path, ..ApiRequest::default() })?;
        let targets: Vec<RelayTarget<'static>> = decode(&response["targets"])?;
        if context.json {
            context.style.write_json(context.out, &response)?;
        } else if !targets.is_empty() {
            print_targets(context, &targets)?;
        }
        if targets.is_empty() {
            return Err(CommandError::not_found("The server has no relay targets: set relay.targets."));
        }
        Ok(())
    }
}

fn print_targets(context: &mut CommandContext<'_>, targets: &[RelayTarget<'_>]) -> std::io::Result<()> {
    let mut table = Table::new([
        Column::new("NAME").styled(TextStyle::Id),
        Column::new("SERVER").shrinkable(),
        Column::new("STATE"),
        Column::new("QUEUED").right_aligned(),
        Column::new("SENDING").right_aligned(),
        Column::new("DELIVERED").right_aligned(),
        Column::new("FAILED").right_aligned(),
        Column::new("CANCELLED").right_aligned(),
        Column::new("ALLOWED").shrinkable(),
        Column::new("ERROR").shrinkable(),
    ]);
    let separator = if context.style.is_terminal() { ", " } else { "," };
    for target in targets {
        let RelayEntryCounts { queued, sending, delivered, failed, cancelled } = target.entries;
        let host = if target.host.contains(':') { format!("[{}]", target.host) } else { target.host.to_string() };
        table.add_row([
            target.name.to_string(),
            format!("{host}:{}", target.port),
            target.state.name().to_owned(),
            queued.to_string(),
            sending.to_string(),
            delivered.to_string(),
            failed.to_string(),
            cancelled.to_string(),
            target.allowed.join(separator),
            target.last_error.as_deref().unwrap_or_default().to_owned(),
        ]);
    }
    context.style.write_table(context.out, &table)
}
