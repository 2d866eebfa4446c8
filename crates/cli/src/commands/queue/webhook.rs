//! What `restante webhook` prints of webhooks.

use std::borrow::Cow;

use restante_api_types::{WebhookEntry, WebhookFilter, WebhookTarget};
use serde_json::Value;

use super::{QueueKind, TargetRow, display_time, print_fields, print_target_rows, separator};
use crate::CommandContext;
use crate::error::CommandError;
use crate::output::{Column, Table, TextStyle};
use crate::server::decode;

pub(super) const WEBHOOK: QueueKind = QueueKind {
    group: "webhook",
    about: "Shows and pauses webhook targets, and shows and changes the webhook queue",
    path: "webhooks",
    commands: &[
        (
            "targets",
            "NAME, URL, STATE, QUEUED, SENDING, DELIVERED, FAILED, CANCELLED, the FILTERS, and the last ERROR. Of a URL, only \
             scheme, host and port are shown: the rest may be a secret.",
        ),
        ("list", "ID, DATE, STATE, TARGET, EVENT, MESSAGE, MAILBOX, the number of attempts, and the last reply."),
        ("show", "its fields, and the body of its request, unless the event was delivered."),
        ("retry", "Delivered events, and failed or cancelled ones above 16 KiB, cannot be sent again."),
        ("cancel", "An event that is being sent may still be accepted."),
        ("pause", ""),
        ("resume", ""),
    ],
    no_targets: "The server has no webhook targets: set webhook.urls.",
    print_targets,
    print_entries,
    print_entry,
};

fn print_targets(context: &mut CommandContext<'_>, targets: &Value) -> Result<(), CommandError> {
    let separator = separator(context);
    let row = |target: WebhookTarget<'static>| TargetRow {
        name: target.name.into_owned(),
        address: target.url.into_owned(),
        state: target.state.name(),
        entries: target.entries,
        rules: target.filters.iter().map(filter_text).collect::<Vec<_>>().join(separator),
        error: target.last_error.map(Cow::into_owned),
    };
    let targets: Vec<WebhookTarget<'static>> = decode(targets)?;
    Ok(print_target_rows(context, ["URL", "FILTERS"], targets.into_iter().map(row))?)
}

/// Returns a filter as in the settings.
fn filter_text(filter: &WebhookFilter<'_>) -> String {
    let events: Vec<&str> = filter.events.iter().map(|event| event.name()).collect();
    let events = format!("events={}", events.join("|"));
    if filter.mailboxes.is_empty() { events } else { format!("{events} mailboxes={}", filter.mailboxes.join("|")) }
}

fn print_entries(context: &mut CommandContext<'_>, entries: &Value) -> Result<(), CommandError> {
    let mut table = Table::new([
        Column::new("ID").styled(TextStyle::Id),
        Column::new("WHEN").styled(TextStyle::Faint),
        Column::new("STATE"),
        Column::new("TARGET"),
        Column::new("EVENT"),
        Column::new("MESSAGE").styled(TextStyle::Id),
        Column::new("MAILBOX").shrinkable(),
        Column::new("TRIES").right_aligned().styled(TextStyle::Faint),
        Column::new("REPLY").shrinkable(),
    ]);
    for entry in decode::<Vec<WebhookEntry<'static>>>(entries)? {
        table.add_row([
            entry.id.into_owned(),
            display_time(context, &entry.progress.created),
            entry.progress.state.name().to_owned(),
            entry.target.into_owned(),
            entry.event.name().to_owned(),
            entry.message.into_owned(),
            entry.mailbox.into_owned(),
            entry.progress.attempts.to_string(),
            entry.progress.last_reply.into_owned(),
        ]);
    }
    Ok(context.style.write_table(context.out, &table)?)
}

/// Prints an entry with its payload.
fn print_entry(context: &mut CommandContext<'_>, document: &Value) -> Result<(), CommandError> {
    let entry: WebhookEntry<'static> = decode(document)?;
    let fields: [(&str, &str); 7] = [
        ("Entry", &entry.id),
        ("State", entry.progress.state.name()),
        ("Event", entry.event.name()),
        ("Message", &entry.message),
        ("Mailbox", &entry.mailbox),
        ("Target", &entry.target),
        ("Webhook id", &entry.webhook_id),
    ];
    print_fields(context, &fields, &entry.progress)?;
    if let Some(payload) = document["payload"].as_str() {
        writeln!(context.out)?;
        // It is JSON. Other text is printed as a JSON string.
        let payload = serde_json::from_str(payload).unwrap_or_else(|_| Value::from(payload));
        context.style.write_json(context.out, &payload)?;
    }
    Ok(())
}
