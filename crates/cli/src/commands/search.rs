//! `restante search`: messages of all mailboxes, or of one, that match a query.

use std::io;

use clap::{Arg, ArgMatches, Command, value_parser};
use restante_api_types::{FoundMessage, SnippetFragment};
use restante_mail::terminal_text;
use serde_json::{Value, json};

use super::{arg_text, message};
use crate::error::CommandError;
use crate::output::{Column, OutputStyle, Table, TextStyle, display_width, truncate};
use crate::server::{ApiRequest, decode};
use crate::{CommandContext, Task, print_note};

/// The most messages that the server gives at once.
const PAGE_SIZE: usize = 200;

pub(super) fn command() -> Command {
    Command::new("search")
        .about("Searches all mailboxes, or one")
        .long_about(
            "Searches all mailboxes, or one; the newest message comes first. Words and \"phrases\" must all be there; \
             from: to: cc: subject: body: filename: mailbox: header:Name=value has:attachment is:unseen before: after: \
             larger: smaller: narrow it, - excludes, `or` is between alternatives. Quote the query, or put -- before one \
             that begins with a dash. In a pipe each line has MAILBOX, ID, DATE, FROM and SUBJECT, separated by tabs.",
        )
        .arg(Arg::new("query").value_name("QUERY").required(true).num_args(1..).help("What to look for"))
        .arg(Arg::new("mailbox").long("mailbox").value_name("MAILBOX").help("Only in this mailbox"))
        .arg(
            Arg::new("limit")
                .long("limit")
                .value_name("N")
                .value_parser(value_parser!(u32).range(1..))
                .default_value("50")
                .help("At most so many messages"),
        )
}

pub(super) fn parse(matches: &ArgMatches) -> Box<dyn Task> {
    let words: Vec<&str> = matches.get_many::<String>("query").into_iter().flatten().map(String::as_str).collect();
    let limit = matches.get_one::<u32>("limit").and_then(|limit| usize::try_from(*limit).ok());
    let mailbox = matches.get_one::<String>("mailbox").is_some().then(|| arg_text(matches, "mailbox"));
    Box::new(Search { query: words.join(" "), mailbox, limit: limit.unwrap_or(PAGE_SIZE) })
}

struct Search {
    query: String,
    mailbox: Option<String>,
    limit: usize,
}

impl Task for Search {
    fn run(&self, session: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let answer = self.fetch_pages(session)?;
        let found: Vec<FoundMessage<'static>> = decode(&answer["messages"])?;
        if session.json {
            session.style.write_json(session.out, &answer)?;
        } else if !found.is_empty() {
            print_matches(session, &found)?;
        }
        if answer["complete"] == false {
            print_note("The index has not taken in everything yet, so newer mail may be missing.");
        }
        if found.is_empty() { Err(CommandError::not_found("No message matches.")) } else { Ok(()) }
    }
}

impl Search {
    /// All pages up to the limit as one answer.
    fn fetch_pages(&self, session: &CommandContext<'_>) -> Result<Value, CommandError> {
        let mut found: Vec<Value> = Vec::new();
        let mut next = Value::Null;
        let mut complete = true;
        loop {
            let limit = (self.limit - found.len()).min(PAGE_SIZE).to_string();
            let mut parameters = vec![("q", self.query.as_str()), ("limit", &limit)];
            parameters.extend(self.mailbox.as_deref().map(|mailbox| ("mailbox", mailbox)));
            parameters.extend(next.as_str().map(|next| ("before", next)));
            let path = &["api", "v2", "search"];
            let mut page = session.server.get(ApiRequest { path, parameters: &parameters, ..ApiRequest::default() })?;
            complete &= page["complete"] != false;
            let before = found.len();
            if let Value::Array(messages) = page["messages"].take() {
                found.extend(messages);
            }
            next = page["next"].take();
            if next.is_null() || found.len() >= self.limit || found.len() == before {
                found.truncate(self.limit);
                return Ok(json!({ "messages": found, "next": next, "complete": complete }));
            }
        }
    }
}

fn print_matches(session: &mut CommandContext<'_>, found: &[FoundMessage<'static>]) -> io::Result<()> {
    let mut table = Table::new([
        Column::new("MAILBOX").shrinkable(),
        Column::new("ID").styled(TextStyle::Id),
        Column::new("WHEN").styled(TextStyle::Faint),
        Column::new("FROM").shrinkable(),
        Column::new("SUBJECT").shrinkable(),
    ]);
    for FoundMessage { record, .. } in found {
        let when = message::display_date(record, session);
        let [mailbox, id, from, subject] =
            [&record.mailbox, &record.id, &record.from, &record.subject].map(ToString::to_string);
        table.add_row([mailbox, id, when, from, subject]);
    }
    let lines = table.lines(&session.style);
    let Some(room) = session.style.width() else {
        return session.style.write_table(session.out, &table);
    };
    // The head comes first, then a line for each message.
    let (head, rows) = lines.split_at(lines.len().min(1));
    for line in head {
        writeln!(session.out, "{}", line.trim_end())?;
    }
    for (line, FoundMessage { snippet, .. }) in rows.iter().zip(found) {
        writeln!(session.out, "{}", line.trim_end())?;
        let snippet = highlight(&session.style, snippet, room.saturating_sub(4));
        if !snippet.is_empty() {
            writeln!(session.out, "    {snippet}")?;
        }
    }
    Ok(())
}

/// The text around what was found, in one line of so many cells.
fn highlight(screen: &OutputStyle, snippet: &[SnippetFragment<'_>], mut room: usize) -> String {
    let mut line = String::new();
    for SnippetFragment { text, hit } in snippet {
        let text: String = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
        let shown = truncate(&terminal_text::escape_line(&text), room);
        room = room.saturating_sub(display_width(&shown));
        line.push_str(&screen.paint(if *hit { TextStyle::Hit } else { TextStyle::Faint }, &shown));
    }
    line
}
