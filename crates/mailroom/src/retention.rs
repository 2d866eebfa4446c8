//! Retention: deletes messages that are too old, in batches.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use restante_mail::message::Summary;
use restante_store::{Age, AgeRange, CopyKey, MailboxPolicies, Result};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::run_to_completion::run_to_completion;
use crate::{DeletionCause, Mailroom};

/// How often the oldest messages and the number of messages are checked. A message is deleted at most about this late.
pub(crate) const ROUND_INTERVAL: Duration = Duration::from_secs(1);
/// The number of messages that are deleted at once. A store with one writer delays deliveries during a batch, so it is
/// small. The next batch follows after a pause of the same duration.
const BATCH_SIZE: usize = 100;
/// How long one round waits in total for subscribers, so that they get every event.
const MAX_SUBSCRIBER_WAIT: Duration = Duration::from_secs(1);
/// The number of batches after which a scan with policies lets the other scans continue.
const MAX_BATCHES_PER_SCAN: usize = 100;
/// How often a scan with policies starts again at the oldest message.
const SCAN_RESTART_INTERVAL: Duration = Duration::from_hours(1);
/// How often a lasting error is logged.
const LOG_INTERVAL: Duration = Duration::from_mins(1);

/// How long messages are kept.
struct Retention<'a> {
    /// The period of mailboxes without a policy. `None` means forever.
    period: Option<Duration>,
    /// Other periods for some mailboxes.
    policies: &'a MailboxPolicies,
}

impl Retention<'_> {
    fn has_policies(&self) -> bool {
        self.policies.iter().any(|policy| policy.retention.is_some())
    }

    /// Returns a scan for each period.
    fn scans(&self) -> Vec<Scan> {
        let periods = self.policies.iter().filter_map(|policy| policy.retention).chain(self.period);
        let periods: BTreeSet<Duration> = periods.filter(|period| !period.is_zero()).collect();
        periods
            .into_iter()
            .map(|period| Scan { period, last: None, started: Instant::now(), has_ended: false })
            .collect()
    }
}

/// Finds the messages that are older than a period. With policies, a round starts at the last message of the round before,
/// so that the messages of mailboxes with a longer period are not read in every round.
struct Scan {
    period: Duration,
    /// The last message that was checked.
    last: Option<Age>,
    started: Instant,
    /// Whether the last batch reached the newest message that is old enough.
    has_ended: bool,
}

impl Mailroom {
    /// Deletes messages that are older than `period` or the period of their mailbox, about a second after they expire, for
    /// as long as the future is polled. Returns at once if all messages are kept forever. With policies, the first scan after
    /// a start reads all messages that are old enough, and a message that arrives with an earlier time of receipt than others
    /// before it, for example because the clock was set back, can be deleted up to an hour later.
    pub async fn run_retention(&self, period: Option<Duration>) {
        let retention = Retention { period, policies: &self.settings.limits.policies };
        let scans = retention.scans();
        if scans.is_empty() {
            return;
        }
        let messages = RoundMessages {
            resumed: "retention works again",
            failed: "retention cannot delete expired messages, retrying every second",
        };
        let scans = Mutex::new(scans);
        let round = || async { self.expire(&retention, &mut scans.lock().await).await };
        run_every(ROUND_INTERVAL, messages, round).await;
    }

    /// Deletes the messages that are too old now.
    async fn expire(&self, retention: &Retention<'_>, scans: &mut [Scan]) -> Result<()> {
        let now = Timestamp::now();
        // A period that reaches before the first representable time deletes nothing.
        let deadline = |period: Duration| now.checked_sub(SignedDuration::try_from(period).ok()?).ok();
        if let (Some(journal), Some(deadline)) = (&self.journal, retention.period.and_then(deadline)) {
            journal.expire_before(deadline);
        }
        let (mut any_expired, mut wait_budget) = (false, MAX_SUBSCRIBER_WAIT);
        for scan in scans {
            let Some(deadline) = deadline(scan.period) else { continue };
            // Only a scan that has reached its end restarts, so that it always reaches the newest messages.
            if scan.has_ended && scan.started.elapsed() >= SCAN_RESTART_INTERVAL {
                *scan = Scan { last: None, started: Instant::now(), ..*scan };
            }
            let mut batches = 0;
            loop {
                let started = Instant::now();
                let batch = if retention.has_policies() {
                    self.expire_with_policies(retention, scan, deadline).await?
                } else {
                    self.expire_oldest(deadline).await?
                };
                if let Some(oldest) = batch.oldest {
                    any_expired = true;
                    let lag = deadline.duration_since(oldest);
                    self.inner.counters.set_retention_lag(lag.try_into().unwrap_or_default());
                }
                batches += 1;
                scan.has_ended = batch.is_last;
                // With policies, the other scans continue after some batches, and this one in the next round.
                if batch.is_last || retention.has_policies() && batches >= MAX_BATCHES_PER_SCAN {
                    break;
                }
                wait_budget = self.inner.hub.wait_for_subscribers(wait_budget).await;
                tokio::time::sleep(started.elapsed()).await;
            }
        }
        if !any_expired {
            self.inner.counters.set_retention_lag(Duration::ZERO);
        }
        self.inner.counters.set_retention_completed(Timestamp::now());
        Ok(())
    }

    /// Deletes the oldest messages of all mailboxes.
    async fn expire_oldest(&self, deadline: Timestamp) -> Result<Batch> {
        let inner = self.inner.clone();
        let operation = async move {
            let removed = inner.store.expire(deadline, BATCH_SIZE).await?;
            let oldest = removed.first().map(|oldest| oldest.received);
            let is_last = removed.len() < BATCH_SIZE;
            inner.publish_deleted(DeletionCause::Age, removed);
            Ok(Batch { oldest, is_last })
        };
        run_to_completion(operation).await
    }

    /// Checks the next messages of a scan, and deletes those in mailboxes with its period.
    async fn expire_with_policies(
        &self,
        retention: &Retention<'_>,
        scan: &mut Scan,
        deadline: Timestamp,
    ) -> Result<Batch> {
        let range = AgeRange { after: scan.last, before: Some(deadline) };
        let checked = self.inner.store.oldest(range, BATCH_SIZE).await?;
        let is_expired =
            |copy: &&Summary| retention.policies.retention(&copy.mailbox, retention.period) == Some(scan.period);
        let expired: Vec<&Summary> = checked.iter().filter(is_expired).collect();
        self.remove_copies(expired.iter().map(|copy| CopyKey::from(*copy)).collect(), DeletionCause::Age).await?;
        scan.last = checked.last().map(Age::from).or(scan.last);
        Ok(Batch { oldest: expired.first().map(|oldest| oldest.received), is_last: checked.len() < BATCH_SIZE })
    }
}

/// The result of a batch.
struct Batch {
    /// The time of receipt of the oldest message that was deleted.
    oldest: Option<Timestamp>,
    /// Whether no message is left that is too old.
    is_last: bool,
}

/// What is logged about rounds that fail.
pub(crate) struct RoundMessages {
    /// After the first round that succeeds again.
    pub(crate) resumed: &'static str,
    pub(crate) failed: &'static str,
}

/// Runs a round of deletions at this interval, for as long as the future is polled.
pub(crate) async fn run_every<R: Future<Output = Result<()>>>(
    interval: Duration,
    messages: RoundMessages,
    round: impl Fn() -> R,
) {
    let mut reminder = ErrorReminder::default();
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match round().await {
            Ok(()) if reminder.clear() => tracing::info!("{}", messages.resumed),
            Err(error) if reminder.is_log_due(Instant::now()) => tracing::error!(%error, "{}", messages.failed),
            Ok(()) | Err(_) => {}
        }
    }
}

/// When a store error was last logged, until the store works again.
#[derive(Default)]
struct ErrorReminder(Option<Instant>);

impl ErrorReminder {
    /// Returns whether an error should be logged now: the first one, and then once per [`LOG_INTERVAL`].
    fn is_log_due(&mut self, now: Instant) -> bool {
        if self.0.is_some_and(|logged| now.duration_since(logged) < LOG_INTERVAL) {
            return false;
        }
        self.0 = Some(now);
        true
    }

    /// Resets the state after a success. Returns true if errors were logged before.
    fn clear(&mut self) -> bool {
        self.0.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use restante_mail::details::Details;
    use restante_mail::message::{Flags, Headline};
    use restante_mail::patterns::Patterns;
    use restante_mail::tags::Tags;
    use restante_store::memory::MemoryStore;
    use restante_store::{Limits, MailboxPage, MailboxPolicy, NewCopy, NewMessage, Store as _};

    use super::*;
    use crate::Settings;
    use crate::hooks::Extensions;

    #[tokio::test]
    async fn retention_lag_is_reported_until_nothing_is_overdue() {
        let policies = MailboxPolicies::from_iter([policy("shop:*", Duration::ZERO)]);
        for policies in [MailboxPolicies::default(), policies] {
            let (store, mailroom) = mailroom();
            add(&store, 60, &["bob"]).await;
            let retention = Retention { period: Some(Duration::from_mins(10)), policies: &policies };
            let mut scans = retention.scans();
            mailroom.expire(&retention, &mut scans).await.unwrap();
            let counts = mailroom.counts();
            assert_eq!(counts.deleted_by(DeletionCause::Age), 1);
            assert_eq!(counts.retention_lag.as_secs() / 60, 50);
            assert!(counts.retention_completed.is_some());
            mailroom.expire(&retention, &mut scans).await.unwrap();
            assert_eq!(mailroom.counts().retention_lag, Duration::ZERO);
        }
    }

    #[tokio::test]
    async fn policies_change_the_retention_of_mailboxes() {
        let (store, mailroom) = mailroom();
        let policies = [("run-*:*", 10), ("shop:keep", 0), ("shop:*", 120), ("same:*", 60)];
        let policies = policies.map(|(pattern, minutes)| policy(pattern, Duration::from_mins(minutes)));
        // A policy without a period.
        let policies =
            policies.into_iter().chain([MailboxPolicy { retention: None, ..policy("cap:*", Duration::ZERO) }]);
        let policies = policies.collect();
        let retention = Retention { period: Some(Duration::from_hours(1)), policies: &policies };
        // More messages of another mailbox than are checked at once.
        for _ in 0..=BATCH_SIZE {
            add(&store, 90, &["shop:bob"]).await;
        }
        let names = ["bob", "cap:bob", "run-1:bob", "same:bob", "shop:bob", "shop:keep"];
        for minutes in [500, 90, 30, 5] {
            add(&store, minutes, &names).await;
        }
        let mut scans = retention.scans();
        assert_eq!(scans.iter().map(|scan| scan.period.as_secs() / 60).collect::<Vec<_>>(), [10, 60, 120]);
        mailroom.expire(&retention, &mut scans).await.unwrap();
        let expected = [2, 2, 1, 2, BATCH_SIZE as u64 + 4, 4];
        assert_eq!(counts(&store, &names).await, expected);
        assert_eq!(mailroom.counts().deleted_by(DeletionCause::Age), 2 + 2 + 3 + 2 + 1);

        // The next round continues at the last message that was checked.
        add(&store, 500, &["bob"]).await;
        add(&store, 29, &["run-1:bob"]).await;
        mailroom.expire(&retention, &mut scans).await.unwrap();
        assert_eq!(counts(&store, &names).await, [3, 2, 1, 2, expected[4], 4]);
        for scan in &mut scans {
            scan.started -= SCAN_RESTART_INTERVAL;
        }
        mailroom.expire(&retention, &mut scans).await.unwrap();
        assert_eq!(counts(&store, &names).await, expected);
    }

    #[tokio::test]
    async fn policies_apply_without_a_period_of_all_mailboxes() {
        let (store, mailroom) = mailroom();
        add(&store, 500, &["bob", "run-1:bob"]).await;
        let forever = MailboxPolicies::from_iter([policy("*", Duration::ZERO)]);
        assert!(Retention { period: None, policies: &forever }.scans().is_empty());
        let policies = MailboxPolicies::from_iter([policy("run-*:*", Duration::from_mins(10))]);
        let retention = Retention { period: None, policies: &policies };
        mailroom.expire(&retention, &mut retention.scans()).await.unwrap();
        assert_eq!(counts(&store, &["bob", "run-1:bob"]).await, [1, 0]);
    }

    fn mailroom() -> (Arc<MemoryStore>, Mailroom) {
        let store = Arc::new(MemoryStore::new(Limits::default()));
        (store.clone(), Mailroom::new(Settings::default(), store, Extensions::default()))
    }

    fn policy(pattern: &str, retention: Duration) -> MailboxPolicy {
        MailboxPolicy {
            mailboxes: Patterns::from_iter([pattern]),
            retention: Some(retention),
            ..MailboxPolicy::default()
        }
    }

    /// Adds a message that was received some minutes ago.
    async fn add(store: &MemoryStore, minutes: i64, mailboxes: &[&str]) {
        let received = Timestamp::now() - SignedDuration::from_mins(minutes);
        let copy = |mailbox: &&str| NewCopy {
            mailbox: (*mailbox).to_owned().into(),
            seen: false,
            flags: Flags::default(),
            tags: Tags::default(),
            details: Details::default(),
            trace: Some(Bytes::new()),
        };
        let copies = mailboxes.iter().map(copy).collect();
        let message = NewMessage { received, headline: Headline::new("", [], ""), body: Bytes::new(), copies };
        store.append(message).await.unwrap();
    }

    /// Returns the number of messages in each mailbox.
    async fn counts(store: &MemoryStore, mailboxes: &[&str]) -> Vec<u64> {
        let states = store.mailboxes(MailboxPage::ALL).await.unwrap();
        let count = |mailbox: &&str| {
            let state = states.iter().find(|state| state.name.as_str() == *mailbox);
            state.map_or(0, |state| state.messages)
        };
        mailboxes.iter().map(count).collect()
    }

    #[test]
    fn errors_are_logged_once_per_interval_until_cleared() {
        let start = Instant::now();
        let mut reminder = ErrorReminder::default();
        assert!(!reminder.clear());
        let logged: Vec<u64> =
            (0..150).filter(|second| reminder.is_log_due(start + Duration::from_secs(*second))).collect();
        assert_eq!(logged, [0, 60, 120]);
        assert!(reminder.clear());
        assert!(!reminder.clear());
        assert!(reminder.is_log_due(start + Duration::from_secs(151)), "a new error is logged at once");
    }
}
