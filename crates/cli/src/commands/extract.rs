//! `restante codes` and `restante links`: what a test wants of a mail.

use std::time::{Duration, Instant};

use clap::{Arg, ArgMatches, Command};
use restante_mail::terminal_text;
use serde::Deserialize;
use serde_json::Value;

use super::message::{self, Message};
use super::wait_requests::{self, after_arg};
use super::{arg_text, id_arg, mailbox_arg};
use crate::error::CommandError;
use crate::options::duration_arg;
use crate::output::{Column, Table, TextStyle};
use crate::server::{ApiRequest, Server, decode};
use crate::{CommandContext, Task};

/// The most that the server waits for mail at once.
const MAX_WAIT: Duration = Duration::from_mins(10);
/// How many messages, the newest ones, are looked at where several may have what is wanted.
const MAX_SEARCHED_MESSAGES: usize = 1000;
const LATEST: &str = "latest";

/// What is taken out of a mail.
#[derive(Clone, Debug)]
pub(super) enum ExtractKind {
    Codes,
    /// Those with this text in their address or in the words that are linked, or all.
    Links {
        containing: Option<String>,
    },
}

pub(super) fn codes_command() -> Command {
    let command =
        Command::new("codes").about("Prints the one-time codes of a message, the likeliest first").long_about(
            "Prints the one-time codes of a message, the likeliest first. In a pipe it is the best code alone: \
             CODE=$(restante codes ann --wait 30s). With --wait or --after it is the newest message that has a code, \
             among the last 1000.",
        );
    with_wait_args(command, "Waits so long for a message with a code, when there is none yet")
}

pub(super) fn links_command() -> Command {
    let command = Command::new("links").about("Prints the links of a message").long_about(
        "Prints the links of a message. In a pipe each line is one address. With --wait or --after it is the newest \
             message that has a link, among the last 1000.",
    );
    with_wait_args(command, "Waits so long for a message with a link, when there is none yet").arg(
        Arg::new("match")
            .long("match")
            .value_name("TEXT")
            .help("Only links with this in the address or in their words"),
    )
}

fn with_wait_args(command: Command, wait: &'static str) -> Command {
    command
        .arg(mailbox_arg())
        .arg(id_arg().conflicts_with_all(["wait", "after"]))
        .arg(duration_arg("wait", wait))
        .arg(after_arg())
}

pub(super) fn parse_codes(matches: &ArgMatches) -> Box<dyn Task> {
    Box::new(Extract::parse(matches, ExtractKind::Codes))
}

pub(super) fn parse_links(matches: &ArgMatches) -> Box<dyn Task> {
    let containing = matches.get_one::<String>("match").cloned();
    Box::new(Extract::parse(matches, ExtractKind::Links { containing }))
}

struct Extract {
    kind: ExtractKind,
    mailbox: String,
    id: String,
    wait: Duration,
    after: Option<u64>,
}

impl Extract {
    fn parse(matches: &ArgMatches, kind: ExtractKind) -> Self {
        Self {
            kind,
            mailbox: arg_text(matches, "mailbox"),
            id: arg_text(matches, "id"),
            wait: matches.get_one("wait").copied().unwrap_or_default(),
            after: matches.get_one("after").copied(),
        }
    }

    /// The newest message that has what is wanted, as soon as there is one. Whatever comes meanwhile may be several messages,
    /// and the newest of them may be one without.
    fn wait_for_message(&self, server: &Server) -> Result<String, CommandError> {
        let deadline = Instant::now() + self.wait;
        let mut last = self.after.unwrap_or_default();
        loop {
            let ids = self.ids_after(server, last)?;
            for id in ids.iter().rev().map(u64::to_string) {
                if self.has_match(server, &id)? {
                    return Ok(id);
                }
            }
            last = ids.last().copied().unwrap_or(last);
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(CommandError::not_found(format!("No message with {} came in time.", self.kind.name())));
            }
            wait_requests::wait_for_more(server, &self.mailbox, last, left.min(MAX_WAIT))?;
        }
    }

    /// The ids of the newest messages behind this one, ascending.
    fn ids_after(&self, server: &Server, last: u64) -> Result<Vec<u64>, CommandError> {
        let newest: Vec<Message> =
            decode(&Value::Array(message::list(server, &self.mailbox, Some(MAX_SEARCHED_MESSAGES))?))?;
        Ok(newest.iter().filter_map(|message| message.id.parse().ok()).filter(|id| *id > last).collect())
    }

    /// Whether a message has what is wanted. One that was deleted meanwhile has not.
    fn has_match(&self, server: &Server, id: &str) -> Result<bool, CommandError> {
        match self.kind.fetch(server, &self.mailbox, id) {
            Ok(answer) => Ok(!self.kind.matching(&answer).is_empty()),
            Err(CommandError::NotFound(_)) => Ok(false),
            Err(failure) => Err(failure),
        }
    }
}

impl Task for Extract {
    fn run(&self, session: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let looks_for_itself = !self.wait.is_zero() || self.after.is_some();
        if looks_for_itself {
            let id = self.wait_for_message(&session.server)?;
            return print(session, &self.kind, &self.mailbox, &id);
        }
        print(session, &self.kind, &self.mailbox, &self.id)
    }
}

#[derive(Clone, Deserialize)]
struct Code {
    #[serde(rename = "code")]
    text: String,
    score: f64,
    #[serde(default)]
    before: String,
    #[serde(default)]
    after: String,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Link {
    href: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    image_alt: Option<String>,
}

impl ExtractKind {
    fn name(&self) -> &'static str {
        match self {
            Self::Codes => "codes",
            Self::Links { .. } => "links",
        }
    }

    fn fetch(&self, server: &Server, mailbox: &str, id: &str) -> Result<Value, CommandError> {
        server.get(ApiRequest { path: &["api", "v2", "mailbox", mailbox, id, self.name()], ..ApiRequest::default() })
    }

    /// What of an answer is wanted.
    fn matching(&self, answer: &Value) -> Vec<Value> {
        let all = answer[self.name()].as_array().cloned().unwrap_or_default();
        let Self::Links { containing: Some(containing) } = self else { return all };
        let wanted = containing.to_lowercase();
        let contains =
            |link: &Value, field: &str| link[field].as_str().is_some_and(|text| text.to_lowercase().contains(&wanted));
        all.into_iter().filter(|link| ["href", "text", "image-alt"].iter().any(|field| contains(link, field))).collect()
    }
}

/// Shows what is in a message.
pub(super) fn print(
    session: &mut CommandContext<'_>,
    kind: &ExtractKind,
    mailbox: &str,
    id: &str,
) -> Result<(), CommandError> {
    let mut answer = kind.fetch(&session.server, mailbox, id)?;
    let found = Value::Array(kind.matching(&answer));
    if session.json {
        answer[kind.name()] = found.clone();
        session.style.write_json(session.out, &answer)?;
    } else {
        match kind {
            ExtractKind::Codes => print_codes(session, decode(&found)?)?,
            ExtractKind::Links { .. } => print_links(session, decode(&found)?)?,
        }
    }
    if found.as_array().is_some_and(Vec::is_empty) {
        let which = if id == LATEST { "The newest message".to_owned() } else { format!("Message {id}") };
        let what = if matches!(kind, ExtractKind::Links { containing: Some(_) }) { "such links" } else { kind.name() };
        return Err(CommandError::not_found(format!("{which} has no {what}.")));
    }
    Ok(())
}

fn print_codes(session: &mut CommandContext<'_>, codes: Vec<Code>) -> std::io::Result<()> {
    if !session.style.is_terminal() {
        return codes
            .first()
            .map_or(Ok(()), |best| writeln!(session.out, "{}", terminal_text::escape_line(&best.text)));
    }
    if codes.is_empty() {
        return Ok(());
    }
    let mut table = Table::new([
        Column::new("CODE").styled(TextStyle::Hit),
        Column::new("SCORE").right_aligned().styled(TextStyle::Faint),
        Column::new("AROUND IT").shrinkable(),
    ]);
    for Code { text, score, before, after } in codes {
        let around = format!("{before} {text} {after}").trim().to_owned();
        table.add_row([text, format!("{score:.2}"), around]);
    }
    session.style.write_table(session.out, &table)
}

fn print_links(session: &mut CommandContext<'_>, links: Vec<Link>) -> std::io::Result<()> {
    let is_terminal = session.style.is_terminal();
    for Link { href, text, image_alt } in links {
        // Addresses are for copying, so they are never cut.
        writeln!(session.out, "{}", session.style.paint(TextStyle::Id, &terminal_text::escape_line(&href)))?;
        let words = if text.is_empty() { image_alt.unwrap_or_default() } else { text };
        if is_terminal && !words.is_empty() && words != href {
            writeln!(
                session.out,
                "    {}",
                session.style.paint(TextStyle::Faint, &terminal_text::escape_line(&words))
            )?;
        }
    }
    Ok(())
}
