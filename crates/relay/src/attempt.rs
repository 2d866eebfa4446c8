//! The new state of an entry after an attempt to send it. Pure functions.

use std::time::Duration;

use jiff::Timestamp;
use restante_journal::TranscriptLines;
use restante_queue::{Attempt, AttemptOutcome, Contact, EntryState};
use restante_store::StoreError;
use restante_worker::RetryDelay;

use crate::entry::{Content, Entry, RecipientState};
use crate::session::{ConnectError, RecipientOutcome, Transaction};

/// The delay before an entry that was not accepted is sent again.
const RETRY_DELAY: RetryDelay = RetryDelay { first: Duration::from_secs(10), max: Duration::from_mins(15) };
/// The reply of recipients that the target does not allow.
pub(crate) const NOT_ALLOWED: &str = "the relay target does not allow this recipient";

/// Returns the result of a transaction with the waiting recipients.
pub(crate) fn completed(entry: &Entry, transaction: Transaction, now: Timestamp, jitter: u8) -> Attempt {
    let mut content = entry.content.clone();
    let waiting = content.recipients.iter_mut().filter(|recipient| recipient.state == RecipientState::Waiting);
    for (recipient, result) in waiting.zip(transaction.recipients) {
        recipient.state = match result.outcome {
            RecipientOutcome::Accepted => RecipientState::Delivered,
            RecipientOutcome::Temporary => RecipientState::Waiting,
            RecipientOutcome::Permanent => RecipientState::Failed,
        };
        recipient.reply = result.reply;
    }
    let contact = if transaction.is_target_failure {
        Contact::Failed { error: transaction.reply.clone(), retry_after: None }
    } else {
        Contact::Reached
    };
    Attempt { outcome: outcome(entry, content, transaction.reply, &transaction.transcript, now, jitter), contact }
}

/// Returns the result of an attempt without a session.
pub(crate) fn unreachable(entry: &Entry, error: ConnectError, now: Timestamp, jitter: u8) -> Attempt {
    let content = with_reply(entry, RecipientState::Waiting, &error.text);
    let contact = Contact::Failed { error: error.text.clone(), retry_after: None };
    Attempt { outcome: outcome(entry, content, error.text, &error.transcript, now, jitter), contact }
}

/// Returns the result of an entry that cannot be sent now for a reason that does not concern the target.
pub(crate) fn deferred(entry: &Entry, reason: &str, now: Timestamp, jitter: u8) -> Attempt {
    let content = with_reply(entry, RecipientState::Waiting, reason);
    let outcome = outcome(entry, content, reason.to_owned(), &TranscriptLines::default(), now, jitter);
    Attempt { outcome, contact: Contact::None }
}

/// Returns an entry whose waiting recipients have failed if they are not allowed.
pub(crate) fn refuse_recipients(entry: &Entry, is_allowed: impl Fn(&str) -> bool) -> Entry {
    let mut entry = entry.clone();
    for recipient in &mut entry.content.recipients {
        if recipient.state == RecipientState::Waiting && !is_allowed(&recipient.address) {
            recipient.state = RecipientState::Failed;
            NOT_ALLOWED.clone_into(&mut recipient.reply);
        }
    }
    entry
}

/// Returns the result of an entry that cannot be sent at all.
pub(crate) fn failed(entry: &Entry, reason: &str, now: Timestamp) -> Attempt {
    let content = with_reply(entry, RecipientState::Failed, reason);
    let outcome = outcome(entry, content, reason.to_owned(), &TranscriptLines::default(), now, 0);
    Attempt { outcome, contact: Contact::None }
}

/// Returns the result of an entry whose payload cannot be read.
pub(crate) fn unreadable(queued: &restante_queue::Entry, error: &StoreError, now: Timestamp) -> Attempt {
    let (payload, reply, log, at) = (queued.payload.clone(), error.to_string(), Vec::new(), now);
    let outcome = AttemptOutcome::Attempted { state: EntryState::Failed, next_attempt: None, at, payload, reply, log };
    Attempt { outcome, contact: Contact::None }
}

/// Returns the content of an entry. The waiting recipients get this state and reply.
fn with_reply(entry: &Entry, state: RecipientState, reply: &str) -> Content {
    let mut content = entry.content.clone();
    for recipient in content.recipients.iter_mut().filter(|recipient| recipient.state == RecipientState::Waiting) {
        recipient.state = state;
        reply.clone_into(&mut recipient.reply);
    }
    content
}

fn outcome(
    entry: &Entry,
    mut content: Content,
    reply: String,
    transcript: &TranscriptLines,
    now: Timestamp,
    jitter: u8,
) -> AttemptOutcome {
    let delay = RETRY_DELAY.after(entry.attempts.saturating_add(1), jitter);
    let next_attempt = now.checked_add(delay).ok().filter(|next| *next < entry.expires);
    if next_attempt.is_none() {
        // There is no time for another attempt.
        content.replace_state(RecipientState::Waiting, RecipientState::Failed);
    }
    let has = |state| content.recipients.iter().any(|recipient| recipient.state == state);
    let state = if has(RecipientState::Waiting) {
        EntryState::Queued
    } else if has(RecipientState::Failed) {
        EntryState::Failed
    } else {
        EntryState::Delivered
    };
    let next_attempt = next_attempt.filter(|_| state == EntryState::Queued);
    let (payload, log) = (content.encode(), transcript.as_bytes().to_vec());
    AttemptOutcome::Attempted { state, next_attempt, at: now, payload, reply, log }
}

#[cfg(test)]
mod tests {
    use restante_queue::EntryId;

    use super::*;
    use crate::entry::{EntryRecipient, Origin};
    use crate::session::RecipientResult;

    const START: Timestamp = Timestamp::UNIX_EPOCH;

    fn entry(addresses: &[&str], attempts: u32) -> Entry {
        let recipient = |address: &&str| EntryRecipient::new((*address).to_owned());
        let recipients = addresses.iter().map(recipient).collect();
        let content = Content { copy: 1, sender: "ann@x.org".to_owned(), recipients, origin: Origin::Forward };
        let queued = restante_queue::Entry {
            id: EntryId(1),
            message: 1.into(),
            mailbox: "james".to_owned().into(),
            target: "main".to_owned(),
            key: None,
            payload: content.encode(),
            created: START,
            expires: START + Duration::from_hours(1),
            state: EntryState::Sending,
            attempts,
            next_attempt: None,
            last_attempt: None,
            last_reply: String::new(),
            claim: 0,
        };
        Entry::decode(queued).unwrap()
    }

    fn transaction(results: &[(RecipientOutcome, &str)]) -> Transaction {
        let result = |(outcome, reply): &(RecipientOutcome, &str)| RecipientResult {
            outcome: *outcome,
            reply: (*reply).to_owned(),
        };
        Transaction {
            recipients: results.iter().map(result).collect(),
            reply: "the last reply".to_owned(),
            is_reusable: true,
            is_target_failure: false,
            transcript: TranscriptLines::default(),
        }
    }

    /// Describes an outcome as `state next-attempt-in-seconds | recipient states`.
    fn describe(attempt: &Attempt, now: Timestamp) -> String {
        let AttemptOutcome::Attempted { state, next_attempt, payload, .. } = &attempt.outcome else {
            return "released".to_owned();
        };
        let content: Content = serde_json::from_slice(payload).unwrap();
        let next = next_attempt.map_or("-".to_owned(), |next| next.duration_since(now).as_secs().to_string());
        let recipients: Vec<String> = content
            .recipients
            .iter()
            .map(|recipient| format!("{} {} {:?}", recipient.address, recipient.state.name(), recipient.reply))
            .collect();
        format!("{} {next} | {}", state.name(), recipients.join(", "))
    }

    #[test]
    fn entry_waits_for_recipients_that_were_refused_temporarily() {
        use RecipientOutcome::{Accepted, Permanent, Temporary};
        let table: [(&[(RecipientOutcome, &str)], &str); 5] = [
            (&[(Accepted, "250")], r#"delivered - | a@x delivered "250""#),
            (&[(Temporary, "450")], r#"queued 10 | a@x waiting "450""#),
            (&[(Permanent, "550")], r#"failed - | a@x failed "550""#),
            (
                &[(Accepted, "250"), (Temporary, "450"), (Permanent, "550")],
                r#"queued 10 | a@x delivered "250", b@x waiting "450", c@x failed "550""#,
            ),
            (&[(Accepted, "250"), (Permanent, "550")], r#"failed - | a@x delivered "250", b@x failed "550""#),
        ];
        for (results, expected) in table {
            let entry = entry(&["a@x", "b@x", "c@x"][..results.len()], 0);
            assert_eq!(describe(&completed(&entry, transaction(results), START, 0), START), expected);
        }
    }

    #[test]
    fn delivered_recipients_are_not_sent_again() {
        let mut entry = entry(&["a@x", "b@x", "c@x"], 1);
        entry.content.recipients[1].state = RecipientState::Delivered;
        assert_eq!(entry.content.waiting().collect::<Vec<_>>(), ["a@x", "c@x"]);
        let results = [(RecipientOutcome::Accepted, "250 a"), (RecipientOutcome::Permanent, "550 c")];
        assert_eq!(
            describe(&completed(&entry, transaction(&results), START, 0), START),
            r#"failed - | a@x delivered "250 a", b@x delivered "", c@x failed "550 c""#
        );
    }

    #[test]
    fn recipients_that_are_not_allowed_any_more_fail() {
        let entry = refuse_recipients(&entry(&["a@x", "b@y"], 0), |address| address.ends_with("@x"));
        assert_eq!(entry.content.waiting().collect::<Vec<_>>(), ["a@x"]);
        let results = [(RecipientOutcome::Accepted, "250 a")];
        assert_eq!(
            describe(&completed(&entry, transaction(&results), START, 0), START),
            format!(r#"failed - | a@x delivered "250 a", b@y failed "{NOT_ALLOWED}""#)
        );
    }

    #[test]
    fn attempts_end_when_the_entry_expires() {
        let refused = || ConnectError { text: "refused".to_owned(), transcript: TranscriptLines::default() };
        let table = [
            (0, 0, r#"queued 10 | a@x waiting "refused""#),
            (3, 0, r#"queued 80 | a@x waiting "refused""#),
            (3, 3500, r#"queued 80 | a@x waiting "refused""#),
            (3, 3520, r#"failed - | a@x failed "refused""#),
            (50, 0, r#"queued 900 | a@x waiting "refused""#),
        ];
        for (attempts, second, expected) in table {
            let now = START + Duration::from_secs(second);
            let attempt = unreachable(&entry(&["a@x"], attempts), refused(), now, 0);
            assert!(matches!(attempt.contact, Contact::Failed { .. }));
            assert_eq!(describe(&attempt, now), expected);
        }
        let attempt = deferred(&entry(&["a@x"], 0), "damaged", START, 0);
        assert!(matches!(attempt.contact, Contact::None));
        assert_eq!(describe(&attempt, START), r#"queued 10 | a@x waiting "damaged""#);
        let attempt = failed(&entry(&["a@x"], 0), "the message was deleted", START);
        assert_eq!(describe(&attempt, START), r#"failed - | a@x failed "the message was deleted""#);
    }
}
