//! `restante search`: prints the messages that match a query, of all mailboxes or of one.

use std::io;

use clap::Parser;
use restante_api_types::{ExcerptPart, FoundMessage};
use restante_mail::terminal_text;
use serde_json::json;

use super::{limit_parser, message};
use crate::error::CommandError;
use crate::output::{Column, OutputStyle, Table, TextStyle, display_width, truncate};
use crate::server::{ListedItems, PagedList, decode};
use crate::{CommandContext, Task, print_note};

const MATCHES: PagedList<'_> =
    PagedList { path: &["api", "v2", "search"], member: "messages", cursor: "before", page_size: 200 };

/// Searches all mailboxes, or one.
#[derive(Parser)]
#[command(
    name = "search",
    long_about = "Searches all mailboxes, or one. The newest message comes first. A message must contain all words and \
        \"phrases\" of the query. Fields such as from:ann restrict a term: from, to, cc, subject, body, filename, mailbox, \
        tag, header:Name=value, has:attachment, is:unseen, before, after, larger, smaller. A - excludes a term, and `or` \
        separates alternatives. Quote the query, or put -- before a query that begins with a dash. In a pipe, the columns \
        are separated by tabs: MAILBOX, ID, DATE, FROM and SUBJECT."
)]
pub(super) struct Search {
    /// The query
    #[arg(required = true)]
    query: Vec<String>,
    /// Only this mailbox
    #[arg(long)]
    mailbox: Option<String>,
    /// The maximum number of messages
    #[arg(long, value_name = "N", value_parser = limit_parser(), default_value = "50")]
    limit: usize,
}

impl Task for Search {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let mut conditions = vec![("q", self.query.join(" "))];
        conditions.extend(self.mailbox.iter().map(|mailbox| ("mailbox", mailbox.clone())));
        let ListedItems { items, next, is_complete } = context.server.list(&MATCHES, &conditions, self.limit)?;
        let response = json!({ "messages": items, "next": next, "complete": is_complete });
        let found: Vec<FoundMessage<'static>> = decode(&response["messages"])?;
        if context.json {
            context.style.write_json(context.out, &response)?;
        } else if !found.is_empty() {
            print_matches(context, &found)?;
        }
        if !is_complete {
            print_note("The search index is not up to date: newer messages may be missing.");
        }
        if found.is_empty() { Err(CommandError::not_found("No message matches.")) } else { Ok(()) }
    }
}

fn print_matches(context: &mut CommandContext<'_>, found: &[FoundMessage<'static>]) -> io::Result<()> {
    let mut table = Table::new([
        Column::new("MAILBOX").shrinkable(),
        Column::new("ID").styled(TextStyle::Id),
        Column::new("WHEN").styled(TextStyle::Faint),
        Column::new("FROM").shrinkable(),
        Column::new("SUBJECT").shrinkable(),
    ]);
    for FoundMessage { record, .. } in found {
        let when = message::display_date(record, context);
        let [mailbox, id, from, subject] =
            [&record.mailbox, &record.id, &record.from, &record.subject].map(ToString::to_string);
        table.add_row([mailbox, id, when, from, subject]);
    }
    let lines = table.lines(&context.style);
    let Some(width) = context.style.width() else {
        return context.style.write_table(context.out, &table);
    };
    // The first line is the header, then there is one line for each message.
    let (head, rows) = lines.split_at(lines.len().min(1));
    for line in head {
        writeln!(context.out, "{}", line.trim_end())?;
    }
    for (line, FoundMessage { excerpt, .. }) in rows.iter().zip(found) {
        writeln!(context.out, "{}", line.trim_end())?;
        let excerpt = highlight(&context.style, excerpt, width.saturating_sub(4));
        if !excerpt.is_empty() {
            writeln!(context.out, "    {excerpt}")?;
        }
    }
    Ok(())
}

/// Returns an excerpt as one line of at most `width_left` cells, with its matches highlighted.
fn highlight(style: &OutputStyle, excerpt: &[ExcerptPart<'_>], mut width_left: usize) -> String {
    let mut line = String::new();
    for ExcerptPart { text, hit } in excerpt {
        let text: String = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
        let truncated = truncate(&terminal_text::escape_line(&text), width_left);
        width_left = width_left.saturating_sub(display_width(&truncated));
        line.push_str(&style.paint(if *hit { TextStyle::Hit } else { TextStyle::Faint }, &truncated));
    }
    line
}
