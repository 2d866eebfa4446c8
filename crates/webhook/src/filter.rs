//! The filter of a target: which events are sent to it.

use restante_mail::patterns::Patterns;

use crate::{EventKind, Target};

/// The filter of one entry of the settings.
#[derive(Clone, Debug)]
pub struct Filter {
    /// Empty for all events.
    events: Vec<EventKind>,
    /// Empty for all mailboxes.
    mailboxes: Patterns,
}

impl Filter {
    pub(crate) fn new(target: &Target) -> Self {
        Self { events: target.events.clone(), mailboxes: target.mailboxes.iter().collect() }
    }

    /// Returns the events that are sent.
    pub fn events(&self) -> impl Iterator<Item = EventKind> {
        EventKind::ALL.into_iter().filter(|event| self.is_sent(*event))
    }

    /// Returns the patterns of the mailboxes whose events are sent. There are none for all mailboxes.
    pub fn mailboxes(&self) -> impl Iterator<Item = String> {
        self.mailboxes.entries()
    }

    /// Returns whether `event` in `mailbox` is sent.
    pub(crate) fn matches(&self, event: EventKind, mailbox: &str) -> bool {
        self.is_sent(event) && (self.mailboxes.is_empty() || self.mailboxes.matches(mailbox))
    }

    fn is_sent(&self, event: EventKind) -> bool {
        self.events.is_empty() || self.events.contains(&event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use EventKind::{Deleted, Stored};

    #[test]
    fn filter_matches_events_and_mailboxes() {
        let any: &[EventKind] = &[];
        let table = [
            (any, "", Stored, "james", true),
            (any, "", Deleted, "james", true),
            (&[Stored], "", Deleted, "james", false),
            (&[Stored, Deleted], "", Deleted, "james", true),
            (any, "ci-* qa?", Stored, "ci-17", true),
            (any, "ci-* qa?", Stored, "qa1", true),
            (any, "ci-* qa?", Stored, "qa10", false),
            (any, "CI-*", Stored, "ci-17", true),
            (&[Deleted], "ci-*", Stored, "ci-17", false),
        ];
        for (events, mailboxes, event, mailbox, expected) in table {
            let target = Target {
                url: String::new(),
                events: events.to_vec(),
                mailboxes: mailboxes.split_whitespace().map(str::to_owned).collect(),
            };
            assert_eq!(Filter::new(&target).matches(event, mailbox), expected, "{target:?} {event:?} {mailbox}");
        }
    }
}
