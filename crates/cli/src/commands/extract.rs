//! `restante codes` and `restante links`: what a test wants of a mail.

use std::time::{Duration, Instant};

use clap::{Arg, ArgMatches, Command};
use restante_mail::terminal_text;
use serde::Deserialize;
use serde_json::Value;

use super::message::{self, Message};
use super::waiting::{self, after_arg};
use super::{id_arg, mailbox_arg, text};
use crate::failure::Failure;
use crate::options::duration_arg;
use crate::screen::{Column, Style, Table};
use crate::server::{Question, Server, shaped};
use crate::{Session, Task};

/// The most that the server waits for mail at once.
const LONGEST_WAIT: Duration = Duration::from_mins(10);
/// How many messages, the newest ones, are looked at where several may have what is wanted.
const LOOKED_AT: usize = 1000;
const LATEST: &str = "latest";

/// What is taken out of a mail.
#[derive(Clone, Debug)]
pub(super) enum Kind {
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
    waiting(command, "Waits so long for a message with a code, when there is none yet")
}

pub(super) fn links_command() -> Command {
    let command = Command::new("links").about("Prints the links of a message").long_about(
        "Prints the links of a message. In a pipe each line is one address. With --wait or --after it is the newest \
             message that has a link, among the last 1000.",
    );
    waiting(command, "Waits so long for a message with a link, when there is none yet").arg(
        Arg::new("match")
            .long("match")
            .value_name("TEXT")
            .help("Only links with this in the address or in their words"),
    )
}

fn waiting(command: Command, wait: &'static str) -> Command {
    command
        .arg(mailbox_arg())
        .arg(id_arg().conflicts_with_all(["wait", "after"]))
        .arg(duration_arg("wait", wait))
        .arg(after_arg())
}

pub(super) fn parse_codes(matches: &ArgMatches) -> Box<dyn Task> {
    Box::new(Extract::parse(matches, Kind::Codes))
}

pub(super) fn parse_links(matches: &ArgMatches) -> Box<dyn Task> {
    let containing = matches.get_one::<String>("match").cloned();
    Box::new(Extract::parse(matches, Kind::Links { containing }))
}

struct Extract {
    kind: Kind,
    mailbox: String,
    id: String,
    wait: Duration,
    after: Option<u64>,
}

impl Extract {
    fn parse(matches: &ArgMatches, kind: Kind) -> Self {
        Self {
            kind,
            mailbox: text(matches, "mailbox"),
            id: text(matches, "id"),
            wait: matches.get_one("wait").copied().unwrap_or_default(),
            after: matches.get_one("after").copied(),
        }
    }

    /// The newest message that has what is wanted, as soon as there is one. Whatever comes meanwhile may be several messages,
    /// and the newest of them may be one without.
    fn awaited(&self, server: &Server) -> Result<String, Failure> {
        let deadline = Instant::now() + self.wait;
        let mut last = self.after.unwrap_or_default();
        loop {
            let ids = self.behind(server, last)?;
            for id in ids.iter().rev().map(u64::to_string) {
                if self.is_in(server, &id)? {
                    return Ok(id);
                }
            }
            last = ids.last().copied().unwrap_or(last);
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Failure::nothing(format!("No message with {} came in time.", self.kind.name())));
            }
            waiting::more(server, &self.mailbox, last, left.min(LONGEST_WAIT))?;
        }
    }

    /// The ids of the newest messages behind this one, ascending.
    fn behind(&self, server: &Server, last: u64) -> Result<Vec<u64>, Failure> {
        let newest: Vec<Message> = shaped(&Value::Array(message::list(server, &self.mailbox, Some(LOOKED_AT))?))?;
        Ok(newest.iter().filter_map(|message| message.id.parse().ok()).filter(|id| *id > last).collect())
    }

    /// Whether a message has what is wanted. One that was deleted meanwhile has not.
    fn is_in(&self, server: &Server, id: &str) -> Result<bool, Failure> {
        match self.kind.ask(server, &self.mailbox, id) {
            Ok(answer) => Ok(!self.kind.found(&answer).is_empty()),
            Err(Failure::Nothing(_)) => Ok(false),
            Err(failure) => Err(failure),
        }
    }
}

impl Task for Extract {
    fn run(&self, session: &mut Session<'_>) -> Result<(), Failure> {
        let looks_for_itself = !self.wait.is_zero() || self.after.is_some();
        if looks_for_itself {
            let id = self.awaited(&session.server)?;
            return show(session, &self.kind, &self.mailbox, &id);
        }
        show(session, &self.kind, &self.mailbox, &self.id)
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

impl Kind {
    fn name(&self) -> &'static str {
        match self {
            Self::Codes => "codes",
            Self::Links { .. } => "links",
        }
    }

    fn ask(&self, server: &Server, mailbox: &str, id: &str) -> Result<Value, Failure> {
        server.get(Question { path: &["api", "v2", "mailbox", mailbox, id, self.name()], ..Question::default() })
    }

    /// What of an answer is wanted.
    fn found(&self, answer: &Value) -> Vec<Value> {
        let all = answer[self.name()].as_array().cloned().unwrap_or_default();
        let Self::Links { containing: Some(containing) } = self else { return all };
        let wanted = containing.to_lowercase();
        let contains =
            |link: &Value, field: &str| link[field].as_str().is_some_and(|text| text.to_lowercase().contains(&wanted));
        all.into_iter().filter(|link| ["href", "text", "image-alt"].iter().any(|field| contains(link, field))).collect()
    }
}

/// Shows what is in a message.
pub(super) fn show(session: &mut Session<'_>, kind: &Kind, mailbox: &str, id: &str) -> Result<(), Failure> {
    let mut answer = kind.ask(&session.server, mailbox, id)?;
    let found = Value::Array(kind.found(&answer));
    if session.json {
        answer[kind.name()] = found.clone();
        session.screen.json(session.out, &answer)?;
    } else {
        match kind {
            Kind::Codes => show_codes(session, shaped(&found)?)?,
            Kind::Links { .. } => show_links(session, shaped(&found)?)?,
        }
    }
    if found.as_array().is_some_and(Vec::is_empty) {
        let which = if id == LATEST { "The newest message".to_owned() } else { format!("Message {id}") };
        let what = if matches!(kind, Kind::Links { containing: Some(_) }) { "such links" } else { kind.name() };
        return Err(Failure::nothing(format!("{which} has no {what}.")));
    }
    Ok(())
}

fn show_codes(session: &mut Session<'_>, codes: Vec<Code>) -> std::io::Result<()> {
    if !session.screen.is_terminal() {
        return codes
            .first()
            .map_or(Ok(()), |best| writeln!(session.out, "{}", terminal_text::escape_line(&best.text)));
    }
    if codes.is_empty() {
        return Ok(());
    }
    let mut table = Table::new([
        Column::new("CODE").styled(Style::Hit),
        Column::new("SCORE").right().styled(Style::Faint),
        Column::new("AROUND IT").giving(),
    ]);
    for Code { text, score, before, after } in codes {
        let around = format!("{before} {text} {after}").trim().to_owned();
        table.row([text, format!("{score:.2}"), around]);
    }
    session.screen.table(session.out, &table)
}

fn show_links(session: &mut Session<'_>, links: Vec<Link>) -> std::io::Result<()> {
    let is_terminal = session.screen.is_terminal();
    for Link { href, text, image_alt } in links {
        // Addresses are for copying, so they are never cut.
        writeln!(session.out, "{}", session.screen.style(Style::Id, &terminal_text::escape_line(&href)))?;
        let words = if text.is_empty() { image_alt.unwrap_or_default() } else { text };
        if is_terminal && !words.is_empty() && words != href {
            writeln!(session.out, "    {}", session.screen.style(Style::Faint, &terminal_text::escape_line(&words)))?;
        }
    }
    Ok(())
}
