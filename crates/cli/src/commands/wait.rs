//! `restante wait`: ends when mail is there, or when none came.

use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use serde_json::{Value, json};

use super::extract::{self, ExtractKind};
use super::message::{self, Message};
use super::wait_requests::{self, after_arg, milliseconds};
use super::{arg_text, mailbox_arg};
use crate::error::CommandError;
use crate::options::duration_arg;
use crate::server::{ApiRequest, decode, json_body, status_error};
use crate::{CommandContext, Task};

/// How long mail is waited for when nothing is said.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) fn command() -> Command {
    Command::new("wait")
        .about("Waits until mail is there, or makes sure that none comes")
        .long_about(
            "Waits until a mailbox holds messages that match, and lists them; mail that was there before counts, unless \
             --after says otherwise. With --none it is a success when no such mail comes within the time.",
        )
        .arg(mailbox_arg())
        .arg(duration_arg("patience", "How long to wait, at most 10m [default: 30s]").long("timeout"))
        .arg(after_arg())
        .arg(
            Arg::new("count")
                .long("count")
                .value_name("N")
                .value_parser(value_parser!(u32).range(1..=1000))
                .help("Waits for so many messages [default: 1]"),
        )
        .arg(
            Arg::new("match")
                .long("match")
                .value_name("QUERY")
                .allow_hyphen_values(true)
                .help("Only messages that match, in the language of the search"),
        )
        .arg(
            Arg::new("none")
                .long("none")
                .action(ArgAction::SetTrue)
                .conflicts_with_all(["count", "codes", "links"])
                .help("Succeeds when no such message comes, or is there"),
        )
        .arg(
            Arg::new("codes")
                .long("codes")
                .action(ArgAction::SetTrue)
                .conflicts_with("links")
                .help("Prints the one-time codes of the newest message that matches instead"),
        )
        .arg(
            Arg::new("links")
                .long("links")
                .action(ArgAction::SetTrue)
                .help("Prints the links of the newest message that matches instead"),
        )
}

pub(super) fn parse(matches: &ArgMatches) -> Box<dyn Task> {
    let flag = |name: &str| matches.get_flag(name);
    Box::new(Wait {
        mailbox: arg_text(matches, "mailbox"),
        timeout: matches.get_one("patience").copied().unwrap_or(DEFAULT_TIMEOUT),
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
    mailbox: String,
    timeout: Duration,
    after: Option<String>,
    count: Option<String>,
    query: Option<String>,
    none: bool,
    extract: Option<ExtractKind>,
}

impl Task for Wait {
    fn run(&self, session: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let timeout = milliseconds(self.timeout);
        let mut parameters = vec![("timeout", timeout.as_str())];
        let given = [("after", &self.after), ("count", &self.count), ("match", &self.query)];
        parameters.extend(given.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?))));
        if self.none {
            parameters.push(("expect", "none"));
        }
        let path = &["api", "v2", "mailbox", &self.mailbox, "wait"];
        let question = ApiRequest { path, parameters: &parameters, wait: self.timeout };
        let answer = session.server.send("GET", question, None)?;
        match answer.status {
            // Nothing came, as it should be.
            204 => {
                if session.json {
                    session.style.write_json(session.out, &json!({ "messages": [] }))?;
                }
                Ok(())
            }
            // Too few in time, or one that should not be there: those are told all the same.
            408 | 409 => {
                let told: Option<Value> = serde_json::from_slice(&answer.body).ok();
                if let Some(told) = told.filter(|told| told["messages"].is_array()) {
                    self.print_messages(session, &told)?;
                }
                Err(status_error(answer.status, &answer.body))
            }
            _ => {
                let found = json_body(&answer)?;
                let Some(kind) = &self.extract else { return self.print_messages(session, &found) };
                match wait_requests::newest_match(&session.server, &self.mailbox, self.query.as_deref(), &found)? {
                    Some(id) => extract::print(session, kind, &self.mailbox, &id),
                    None => self.print_messages(session, &found),
                }
            }
        }
    }
}

impl Wait {
    fn print_messages(&self, session: &mut CommandContext<'_>, found: &Value) -> Result<(), CommandError> {
        if session.json {
            return Ok(session.style.write_json(session.out, found)?);
        }
        let messages: Vec<Message> = decode(&found["messages"])?;
        if !messages.is_empty() && self.extract.is_none() {
            message::print_table(session, &messages)?;
        }
        Ok(())
    }
}
