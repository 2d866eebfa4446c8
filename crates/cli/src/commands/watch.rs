//! `restante watch`: prints messages as they arrive.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use clap::{Parser, value_parser};
use jiff::tz::TimeZone;
use restante_mail::terminal_text;
use serde_json::Value;

use super::entry::{self, Entry, EntryFilter};
use super::scope::Scope;
use super::{parse_segment, wait_requests};
use crate::error::CommandError;
use crate::event_stream::{self, StreamItem};
use crate::options::parse_duration;
use crate::output::{Column, OutputStyle, Table, TextStyle, count_with_noun};
use crate::server::decode;
use crate::{CommandContext, Task, print_note};

/// The columns on a terminal: those before the subject.
const ID_WIDTH: usize = 16;
const TIME_WIDTH: usize = 8;

/// Prints messages as they arrive.
#[derive(Parser)]
#[command(
    name = "watch",
    long_about = "Prints messages as they arrive, until Ctrl-C. Messages that already exist are not printed. A message with \
        several recipients is printed once. If the connection is lost, the command connects again, and prints what arrived \
        in the meantime. In a pipe, the columns are separated by tabs, as in `restante list`: ID, DATE, FROM, MAILBOXES, \
        SUBJECT, the number of attachments, and TAGS. With --json, each line is one JSON object."
)]
pub(super) struct Watch {
    /// Only this mailbox, as a name or an address
    #[arg(long, value_parser = parse_segment)]
    mailbox: Option<String>,
    #[command(flatten)]
    filter: EntryFilter,
    /// Ends after N messages
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Ends after this time [default: unlimited]
    #[arg(id = "watch-timeout", long = "timeout", value_name = "TIME", value_parser = parse_duration)]
    timeout: Option<Duration>,
}

impl Task for Watch {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let deadline = self.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        // A new subscriber also gets recent messages. Those that exist now are skipped.
        let mut skipped_up_to = newest_id(context)?;
        if self.filter.query.is_some() {
            // An invalid query is reported now, not with the first message.
            self.matches_query(context, skipped_up_to)?;
        }
        let items =
            event_stream::subscribe(context.server.clone(), &Scope::new(self.mailbox.as_deref()).events_path())?;
        let time_zone = TimeZone::system();
        let mut newest = skipped_up_to;
        let mut count = 0;
        loop {
            let Some(item) = next_item(&items, deadline)? else { return self.timeout_result(count) };
            let message = match item {
                StreamItem::Connected => {
                    print_header(context)?;
                    continue;
                }
                StreamItem::Stored(mut event) => event["message"].take(),
                StreamItem::Gap => {
                    print_note("The server reports that events are missing: some messages may not be listed.");
                    // The recent messages follow again.
                    skipped_up_to = newest;
                    continue;
                }
                StreamItem::Lost(reason) => {
                    print_note(&format!("{reason} Trying again."));
                    continue;
                }
                StreamItem::Restored => {
                    print_note("Connected again.");
                    continue;
                }
                StreamItem::Failed(error) => return Err(error),
            };
            let entry: Entry = decode(&message)?;
            let id = entry.id.parse().unwrap_or(u64::MAX);
            if id <= skipped_up_to {
                continue;
            }
            newest = newest.max(id);
            if !entry.has_tags(&self.filter.tags) {
                continue;
            }
            match self.retry_query(context, id, deadline)? {
                Some(true) => {}
                Some(false) => continue,
                None => return self.timeout_result(count),
            }
            print_message(context, &entry, &message, &time_zone)?;
            count += 1;
            if self.count == Some(count) {
                return Ok(());
            }
        }
    }

    fn runs_until_interrupt(&self) -> bool {
        true
    }
}

impl Watch {
    /// Returns true if the message matches the query, which only the server can evaluate.
    fn matches_query(&self, context: &CommandContext<'_>, id: u64) -> Result<bool, CommandError> {
        let Some(query) = &self.filter.query else { return Ok(true) };
        let first = wait_requests::first_match(&context.server, query, id.saturating_sub(1))?;
        Ok(first == Some(id))
    }

    /// Returns true if the message matches the query. Repeats the request after a temporary failure. Returns `None` at
    /// the deadline.
    fn retry_query(
        &self,
        context: &CommandContext<'_>,
        id: u64,
        deadline: Option<Instant>,
    ) -> Result<Option<bool>, CommandError> {
        let mut failures = 0;
        loop {
            match self.matches_query(context, id) {
                Err(error) if error.is_temporary() => {
                    if failures == 0 {
                        print_note(&format!("{error} Trying again."));
                    }
                }
                result => return result.map(Some),
            }
            let delay = event_stream::retry_delay(failures);
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(None);
            }
            thread::sleep(left.map_or(delay, |left| left.min(delay)));
            failures += 1;
        }
    }

    fn timeout_result(&self, arrived: u64) -> Result<(), CommandError> {
        match self.count {
            Some(count) => {
                let expected = count_with_noun(count, "message");
                Err(CommandError::not_found(format!("Only {arrived} of {expected} arrived in time.")))
            }
            None if arrived == 0 => Err(CommandError::not_found("No message arrived in time.")),
            None => Ok(()),
        }
    }
}

/// Returns the id of the newest message on the server, or 0.
fn newest_id(context: &CommandContext<'_>) -> Result<u64, CommandError> {
    Ok(Scope::All.newest_ids(&context.server, 1, 0)?.last().copied().unwrap_or_default())
}

/// Returns the next item, or `None` at the deadline.
fn next_item(items: &Receiver<StreamItem>, deadline: Option<Instant>) -> Result<Option<StreamItem>, CommandError> {
    let ended = || CommandError::Local("The events are not read any more.".to_owned());
    let Some(deadline) = deadline else { return items.recv().map(Some).map_err(|_| ended()) };
    match items.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        Ok(item) => Ok(Some(item)),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(RecvTimeoutError::Disconnected) => Err(ended()),
    }
}

fn print_header(context: &mut CommandContext<'_>) -> io::Result<()> {
    if !context.json && context.style.is_terminal() {
        context.style.write_table(context.out, &Table::new(columns(&context.style)))?;
        context.out.flush()?;
    }
    Ok(())
}

/// Prints the line of a message, and flushes it.
fn print_message(
    context: &mut CommandContext<'_>,
    entry: &Entry,
    message: &Value,
    time_zone: &TimeZone,
) -> io::Result<()> {
    let line = if context.json {
        terminal_text::escape_json(&message.to_string())
    } else if context.style.is_terminal() {
        terminal_line(&context.style, entry, time_zone)
    } else {
        let mut table = Table::new(entry::COLUMNS);
        table.add_row(entry.cells(entry.received.clone(), false));
        table.lines(&context.style).concat()
    };
    writeln!(context.out, "{}", line.trim_end())?;
    context.out.flush()
}

/// Returns a line in which only the subject has the rest of the width.
fn terminal_line(style: &OutputStyle, entry: &Entry, time_zone: &TimeZone) -> String {
    let time = entry.received_at().to_zoned(time_zone.clone()).strftime("%H:%M:%S").to_string();
    let mut subject = entry.subject.clone();
    if entry.attachments > 0 {
        subject = format!("{subject} ({})", count_with_noun(entry.attachments, "attachment"));
    }
    if !entry.tags.is_empty() {
        subject = format!("{subject} [{}]", entry.tags.join(", "));
    }
    let mut table = Table::new(columns(style));
    table.add_row([entry.id.clone(), time, entry.from.clone(), entry.mailboxes.join(", "), subject]);
    table.lines(style).pop().unwrap_or_default()
}

/// Returns the columns for a terminal. Their widths are fixed, because the next messages are not known yet.
fn columns(style: &OutputStyle) -> [Column; 5] {
    let rest = style.width().unwrap_or_default().saturating_sub(ID_WIDTH + TIME_WIDTH);
    [
        Column::new("ID").fixed(ID_WIDTH).styled(TextStyle::Id),
        Column::new("TIME").fixed(TIME_WIDTH).styled(TextStyle::Faint),
        Column::new("FROM").fixed(rest * 3 / 10),
        Column::new("MAILBOXES").fixed(rest / 5),
        Column::new("SUBJECT").shrinkable(),
    ]
}
