//! `restante wait`: waits until messages arrive, or checks that none arrive.

use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use serde_json::{Value, json};

use super::extract::{self, ExtractKind};
use super::scope::Scope;
use super::wait_requests::{self, after_arg, milliseconds};
use super::{entry, mailbox_arg, message};
use crate::error::CommandError;
use crate::options::duration_arg;
use crate::server::{ApiRequest, decode, json_body, status_error};
use crate::{CommandContext, Task};

/// The default time limit.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) fn command() -> Command {
    Command::new("wait")
        .about("Waits until messages arrive, or checks that none arrive")
        .long_about(
            "Waits until a mailbox, or the server if no mailbox is given, contains matching messages, and lists them. \
             Existing messages count too, unless --after is given. With --none, it succeeds if no matching message \
             exists or arrives within the time limit.",
        )
        .arg(mailbox_arg().required(false).help("The mailbox, as a name or an address [default: all mail]"))
        .arg(duration_arg("wait-timeout", "How long to wait, at most 10m [default: 30s]").long("timeout"))
        .arg(after_arg())
        .arg(
            Arg::new("count")
                .long("count")
                .value_name("N")
                .value_parser(value_parser!(u32).range(1..=1000))
                .help("The number of messages to wait for [default: 1]"),
        )
        .arg(
            Arg::new("match")
                .long("match")
                .visible_alias("query")
                .short('q')
                .value_name("QUERY")
                .allow_hyphen_values(true)
                .help("Only messages that match this search query"),
        )
        .arg(
            Arg::new("none")
                .long("none")
                .action(ArgAction::SetTrue)
                .conflicts_with_all(["count", "codes", "links"])
                .help("Succeeds if no matching message exists or arrives"),
        )
        .arg(
            Arg::new("codes")
                .long("codes")
                .action(ArgAction::SetTrue)
                .conflicts_with("links")
                .help("Prints the one-time codes of the newest matching message instead"),
        )
        .arg(
            Arg::new("links")
                .long("links")
                .action(ArgAction::SetTrue)
                .help("Prints the links of the newest matching message instead"),
        )
}

pub(super) fn parse(matches: &ArgMatches) -> Box<dyn Task> {
    let flag = |name: &str| matches.get_flag(name);
    Box::new(Wait {
        scope: Scope::parse(matches),
        timeout: matches.get_one("wait-timeout").copied().unwrap_or(DEFAULT_TIMEOUT),
        after: matches.get_one::<u64>("after").map(ToString::to_string),
        count: matches.get_one::<u32>("count").map(ToString::to_string),
        query: matches.get_one("match").cloned(),
        none: flag("none"),
        extract: if flag("codes") {
            Some(ExtractKind::Codes)
        } else {
            flag("links").then_some(ExtractKind::Links { containing: None })
        },
    })
}

struct Wait {
    scope: Scope,
    timeout: Duration,
    after: Option<String>,
    count: Option<String>,
    query: Option<String>,
    none: bool,
    extract: Option<ExtractKind>,
}

impl Task for Wait {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let timeout = milliseconds(self.timeout);
        let mut parameters = vec![("timeout", timeout.as_str())];
        let given = [("after", &self.after), ("count", &self.count), ("match", &self.query)];
        parameters.extend(given.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?))));
        if self.none {
            parameters.push(("expect", "none"));
        }
        let path = &self.scope.wait_path();
        let request = ApiRequest { path, parameters: &parameters, wait: self.timeout };
        let response = context.server.send("GET", request, None)?;
        match response.status {
            // No message arrived, as expected.
            204 => {
                if context.json {
                    context.style.write_json(context.out, &json!({ "messages": [] }))?;
                }
                Ok(())
            }
            // Too few messages in time, or an unexpected one. The response lists the messages, so they are printed too.
            408 | 409 => {
                let document: Option<Value> = serde_json::from_slice(&response.body).ok();
                if let Some(document) = document.filter(|document| document["messages"].is_array()) {
                    self.print_messages(context, &document)?;
                }
                Err(status_error(response.status, &response.body))
            }
            _ => {
                let found = json_body(&response)?;
                let Some(kind) = &self.extract else { return self.print_messages(context, &found) };
                match wait_requests::newest_match(&context.server, &self.scope, self.query.as_deref(), &found)? {
                    Some(id) => extract::print(context, kind, &self.scope, &id),
                    None => self.print_messages(context, &found),
                }
            }
        }
    }
}

impl Wait {
    fn print_messages(&self, context: &mut CommandContext<'_>, found: &Value) -> Result<(), CommandError> {
        if context.json {
            return Ok(context.style.write_json(context.out, found)?);
        }
        let messages = &found["messages"];
        if self.extract.is_some() || messages.as_array().is_some_and(Vec::is_empty) {
            return Ok(());
        }
        match self.scope {
            Scope::All => entry::print_table(context, &decode::<Vec<_>>(messages)?)?,
            Scope::Mailbox(_) => message::print_table(context, &decode::<Vec<_>>(messages)?)?,
        }
        Ok(())
    }
}
