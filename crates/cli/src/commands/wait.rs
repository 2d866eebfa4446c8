//! `restante wait`: waits until messages arrive, or checks that none arrive.

use std::time::Duration;

use clap::{Parser, value_parser};
use serde_json::{Value, json};

use super::extract::{self, ExtractKind};
use super::scope::Scope;
use super::wait_requests::{self, milliseconds};
use super::{entry, message, parse_segment};
use crate::error::CommandError;
use crate::options::parse_duration;
use crate::server::{ApiRequest, decode, json_body, status_error};
use crate::{CommandContext, Task};

/// The default time limit.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Waits until messages arrive, or checks that none arrive.
#[derive(Parser)]
#[command(
    name = "wait",
    long_about = "Waits until a mailbox, or the server if no mailbox is given, contains matching messages, and lists them. \
        Existing messages count too, unless --after is given. With --none, it succeeds if no matching message exists or \
        arrives within the time limit."
)]
pub(super) struct Wait {
    /// The mailbox, as a name or an address [default: all mail]
    #[arg(value_parser = parse_segment)]
    mailbox: Option<String>,
    /// How long to wait, at most 10m [default: 30s]
    #[arg(id = "wait-timeout", long = "timeout", value_name = "TIME", value_parser = parse_duration)]
    timeout: Option<Duration>,
    /// Only messages after the one with this id
    #[arg(long, value_name = "ID")]
    after: Option<u64>,
    /// The number of messages to wait for [default: 1]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1000))]
    count: Option<u32>,
    /// Only messages that match this search query
    #[arg(long = "match", visible_alias = "query", short = 'q', value_name = "QUERY", allow_hyphen_values = true)]
    query: Option<String>,
    /// Succeeds if no matching message exists or arrives
    #[arg(long, conflicts_with_all = ["count", "codes", "links"])]
    none: bool,
    /// Prints the one-time codes of the newest matching message instead
    #[arg(long, conflicts_with = "links")]
    codes: bool,
    /// Prints the links of the newest matching message instead
    #[arg(long)]
    links: bool,
}

impl Task for Wait {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let wait = self.timeout.unwrap_or(DEFAULT_TIMEOUT);
        let timeout = milliseconds(wait);
        let mut parameters = vec![("timeout", timeout.as_str())];
        let (after, count) = (self.after.map(|id| id.to_string()), self.count.map(|count| count.to_string()));
        let given = [("after", &after), ("count", &count), ("match", &self.query)];
        parameters.extend(given.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?))));
        if self.none {
            parameters.push(("expect", "none"));
        }
        let scope = Scope::new(self.mailbox.as_deref());
        let request = ApiRequest { path: &scope.wait_path(), parameters: &parameters, wait };
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
                let Some(kind) = self.extract() else { return self.print_messages(context, &found) };
                match wait_requests::newest_match(&context.server, &scope, self.query.as_deref(), &found)? {
                    Some(id) => extract::print(context, &kind, &scope, &id),
                    None => self.print_messages(context, &found),
                }
            }
        }
    }
}

impl Wait {
    /// Returns what is printed instead of the messages.
    fn extract(&self) -> Option<ExtractKind> {
        let links = self.links.then_some(ExtractKind::Links { containing: None });
        if self.codes { Some(ExtractKind::Codes) } else { links }
    }

    fn print_messages(&self, context: &mut CommandContext<'_>, found: &Value) -> Result<(), CommandError> {
        if context.json {
            return Ok(context.style.write_json(context.out, found)?);
        }
        let messages = &found["messages"];
        if self.extract().is_some() || messages.as_array().is_some_and(Vec::is_empty) {
            return Ok(());
        }
        match self.mailbox {
            None => entry::print_table(context, &decode::<Vec<_>>(messages)?)?,
            Some(_) => message::print_table(context, &decode::<Vec<_>>(messages)?)?,
        }
        Ok(())
    }
}
