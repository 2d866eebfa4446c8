//! `restante codes` and `restante links`: print the one-time codes or the links of a message.

use std::time::{Duration, Instant};

use clap::Parser;
use restante_mail::terminal_text;
use serde::Deserialize;
use serde_json::Value;

use super::scope::{MessageArgs, Scope};
use super::wait_requests;
use crate::error::CommandError;
use crate::options::parse_duration;
use crate::output::{Column, Table, TextStyle};
use crate::server::{Server, decode};
use crate::{CommandContext, Task};

/// The longest wait that the server accepts in one request.
const MAX_WAIT: Duration = Duration::from_mins(10);
/// The number of recent messages that are searched for a code or link.
const MAX_SEARCHED_MESSAGES: usize = 1000;
const LATEST: &str = "latest";

/// What is extracted from a message.
#[derive(Clone, Debug)]
pub(super) enum ExtractKind {
    Codes,
    /// The links that contain this text in the URL or in the linked text; all if it is `None`.
    Links {
        containing: Option<String>,
    },
}

/// Prints the one-time codes of a message, most likely first.
#[derive(Parser)]
#[command(
    name = "codes",
    long_about = "Prints the one-time codes of a message, most likely first. In a pipe, it prints only the best code: \
        CODE=$(restante codes ann --wait 30s). With --wait or --after, it uses the newest message that has a code, among the \
        last 1000. Without a mailbox, it uses all mail."
)]
pub(super) struct Codes {
    #[command(flatten)]
    message: MessageArgs,
    /// How long to wait for a message with a code
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with_all = ["id", "message"])]
    wait: Option<Duration>,
    /// Only messages after the one with this id
    #[arg(long, value_name = "ID", conflicts_with_all = ["id", "message"])]
    after: Option<u64>,
}

impl Task for Codes {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        run(context, &ExtractKind::Codes, &self.message, self.wait, self.after)
    }
}

/// Prints the links of a message.
#[derive(Parser)]
#[command(
    name = "links",
    long_about = "Prints the links of a message. In a pipe, each line is one URL. With --wait or --after, it uses the newest \
        message that has a link, among the last 1000. Without a mailbox, it uses all mail."
)]
pub(super) struct Links {
    #[command(flatten)]
    message: MessageArgs,
    /// How long to wait for a message with a link
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with_all = ["id", "message"])]
    wait: Option<Duration>,
    /// Only messages after the one with this id
    #[arg(long, value_name = "ID", conflicts_with_all = ["id", "message"])]
    after: Option<u64>,
    /// Only links with this text in the URL or in the linked text
    #[arg(long = "match", value_name = "TEXT")]
    containing: Option<String>,
}

impl Task for Links {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let kind = ExtractKind::Links { containing: self.containing.clone() };
        run(context, &kind, &self.message, self.wait, self.after)
    }
}

/// Prints the codes or links of the selected message, or of the newest one that has any.
fn run(
    context: &mut CommandContext<'_>,
    kind: &ExtractKind,
    message: &MessageArgs,
    wait: Option<Duration>,
    after: Option<u64>,
) -> Result<(), CommandError> {
    let (scope, wait) = (message.scope(), wait.unwrap_or_default());
    if wait.is_zero() && after.is_none() {
        return print(context, kind, &scope, message.id());
    }
    let id = wait_for_match(&context.server, kind, &scope, wait, after)?;
    print(context, kind, &scope, &id)
}

/// Returns the id of the newest message with a match, and waits for one if necessary. Several messages may arrive during one
/// wait, and the newest of them may have no match.
fn wait_for_match(
    server: &Server,
    kind: &ExtractKind,
    scope: &Scope,
    wait: Duration,
    after: Option<u64>,
) -> Result<String, CommandError> {
    let deadline = Instant::now() + wait;
    let mut last = after.unwrap_or_default();
    loop {
        let ids = scope.newest_ids(server, MAX_SEARCHED_MESSAGES, last)?;
        for id in ids.iter().rev().map(u64::to_string) {
            if kind.has_match(server, scope, &id)? {
                return Ok(id);
            }
        }
        last = ids.last().copied().unwrap_or(last);
        let time_left = deadline.saturating_duration_since(Instant::now());
        if time_left.is_zero() {
            return Err(CommandError::not_found(format!("No message with {} arrived in time.", kind.name())));
        }
        wait_requests::wait_for_more(server, scope, last, time_left.min(MAX_WAIT))?;
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
    #[serde(default, rename = "where")]
    place: String,
    #[serde(default)]
    origin: Option<String>,
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

    fn fetch(&self, server: &Server, scope: &Scope, id: &str) -> Result<Value, CommandError> {
        server.get(&scope.extract_path(id, self.name()), &[])
    }

    /// Returns true if a message has a match. A message that was deleted in the meantime has none.
    fn has_match(&self, server: &Server, scope: &Scope, id: &str) -> Result<bool, CommandError> {
        match self.fetch(server, scope, id) {
            Ok(response) => Ok(!self.matching(&response).is_empty()),
            Err(CommandError::NotFound(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the matching entries of a response.
    fn matching(&self, response: &Value) -> Vec<Value> {
        let all = response[self.name()].as_array().cloned().unwrap_or_default();
        let Self::Links { containing: Some(containing) } = self else { return all };
        let containing = containing.to_lowercase();
        let contains = |link: &Value, field: &str| {
            link[field].as_str().is_some_and(|text| text.to_lowercase().contains(&containing))
        };
        all.into_iter().filter(|link| ["href", "text", "image-alt"].iter().any(|field| contains(link, field))).collect()
    }
}

/// Prints the codes or links of a message.
pub(super) fn print(
    context: &mut CommandContext<'_>,
    kind: &ExtractKind,
    scope: &Scope,
    id: &str,
) -> Result<(), CommandError> {
    let mut response = kind.fetch(&context.server, scope, id)?;
    let found = Value::Array(kind.matching(&response));
    if context.json {
        response[kind.name()] = found.clone();
        context.style.write_json(context.out, &response)?;
    } else {
        match kind {
            ExtractKind::Codes => print_codes(context, decode(&found)?)?,
            ExtractKind::Links { .. } => print_links(context, decode(&found)?)?,
        }
    }
    if found.as_array().is_some_and(Vec::is_empty) {
        let which = if id == LATEST { "The newest message".to_owned() } else { format!("Message {id}") };
        let what = if matches!(kind, ExtractKind::Links { containing: Some(_) }) { "such links" } else { kind.name() };
        return Err(CommandError::not_found(format!("{which} has no {what}.")));
    }
    Ok(())
}

fn print_codes(context: &mut CommandContext<'_>, codes: Vec<Code>) -> std::io::Result<()> {
    if !context.style.is_terminal() {
        return codes
            .first()
            .map_or(Ok(()), |best| writeln!(context.out, "{}", terminal_text::escape_line(&best.text)));
    }
    if codes.is_empty() {
        return Ok(());
    }
    let mut table = Table::new([
        Column::new("CODE").styled(TextStyle::Hit),
        Column::new("SCORE").right_aligned().styled(TextStyle::Faint),
        Column::new("CONTEXT").shrinkable(),
    ]);
    for Code { text, score, before, after, place, origin } in codes {
        let context_text = match (place.as_str(), origin) {
            ("header", Some(origin)) => format!("OTP-Token for {origin}"),
            ("header", None) => "OTP-Token".to_owned(),
            _ => format!("{before} {text} {after}").trim().to_owned(),
        };
        table.add_row([text, format!("{score:.2}"), context_text]);
    }
    context.style.write_table(context.out, &table)
}

fn print_links(context: &mut CommandContext<'_>, links: Vec<Link>) -> std::io::Result<()> {
    let is_terminal = context.style.is_terminal();
    for Link { href, text, image_alt } in links {
        // URLs are printed for copying, so they are never truncated.
        writeln!(context.out, "{}", context.style.paint(TextStyle::Id, &terminal_text::escape_line(&href)))?;
        let linked_text = if text.is_empty() { image_alt.unwrap_or_default() } else { text };
        if is_terminal && !linked_text.is_empty() && linked_text != href {
            writeln!(
                context.out,
                "    {}",
                context.style.paint(TextStyle::Faint, &terminal_text::escape_line(&linked_text))
            )?;
        }
    }
    Ok(())
}
