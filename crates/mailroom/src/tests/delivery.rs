//! Delivery through the mailroom: checks, mailboxes, trace header, storing, events and retention.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use restante_mail::address::{Address, Alphabet};
use restante_mail::envelope::{Envelope, Peer, Recipient, RecipientRefusal, Refusal, SenderRefusal};
use restante_mail::message::{Headline, Summary};
use restante_mail::naming::{MailboxName, NameError, Naming};
use restante_store::memory::MemoryStore;
use restante_store::{Limits, MailboxPolicy};
use restante_store::{MessageSelector, Page};
use tokio::time::timeout;

use crate::events::{Event, Lagged, MessageCopies};
use crate::hooks::{Extensions, HookPoint, Hooks, IncomingMessage, Observer, Verdict};
use crate::policy::Policy;
use crate::{Counts, DeletionCause, DeliveryOutcome, Mailroom, Settings, WriteAccess};

fn address(text: &str) -> Address {
    Address::parse(text, Alphabet::Ascii).unwrap()
}

pub(crate) fn envelope(from: &str, to: &[&str]) -> Envelope {
    Envelope {
        peer: Peer { ip: Some([192, 0, 2, 7].into()), helo: "client.test".into() },
        login: None,
        key: None,
        listener: None,
        from: (!from.is_empty()).then(|| address(from)),
        recipients: to.iter().map(|to| Recipient::new(address(to), Naming::Local).unwrap()).collect(),
    }
}

pub(crate) fn settings() -> Settings {
    Settings { domain: "mx.test".into(), history: 3, ..Settings::default() }
}

pub(crate) fn mailroom(settings: Settings, limits: Limits, fake_script: Option<Arc<FakeScript>>) -> Mailroom {
    let extensions = fake_script.map(|fake_script| Extensions {
        hooks: Some(fake_script.clone()),
        node_observers: vec![fake_script],
        ..Extensions::default()
    });
    Mailroom::new(settings, Arc::new(MemoryStore::new(limits)), extensions.unwrap_or_default())
}

pub(crate) async fn deliver_stored(mailroom: &Mailroom, envelope: &Envelope, body: &'static str) -> Vec<Summary> {
    match mailroom.deliver(envelope, Bytes::from(body)).await.unwrap() {
        DeliveryOutcome::Stored(copies) => copies,
        outcome => panic!("{outcome:?}"),
    }
}

async fn list_mailbox(mailroom: &Mailroom, mailbox: &str) -> Vec<Summary> {
    mailroom.list(&mailroom.mailbox(mailbox).unwrap(), Page::ALL).await.unwrap().messages
}

/// Longer than any step of these tests.
const LONG: Duration = Duration::from_mins(1);

const MAIL: &str = "From: Ann <ann@x.org>\r\nTo: bob@x.org\r\nSubject: Hello\r\n\r\nHi\r\n";

#[tokio::test]
async fn message_gets_a_trace_header_and_is_otherwise_unchanged() {
    let mailroom = mailroom(settings(), Limits::default(), None);
    let copies = deliver_stored(&mailroom, &envelope("ann@x.org", &["Bob+tag@x.org"]), MAIL).await;
    let [summary] = copies.as_slice() else { panic!("{copies:?}") };
    assert_eq!((summary.headline.from(), summary.headline.subject()), ("Ann <ann@x.org>", "Hello"));
    assert_eq!(summary.headline.to().collect::<Vec<_>>(), ["<bob@x.org>"]);

    let source = mailroom.source(&summary.mailbox, summary.id).await.unwrap().unwrap();
    assert_eq!(source.body, MAIL);
    assert_eq!(summary.size, source.len() as u64);
    let trace = String::from_utf8(source.trace.to_vec()).unwrap();
    let (fixed, date) = trace.split_once("; ").unwrap();
    assert_eq!(fixed, "Return-Path: <ann@x.org>\r\nReceived: from client.test ([192.0.2.7]) by mx.test\r\n  for <bob>");
    let date = date.strip_suffix("\r\n").unwrap();
    assert_eq!((date.len(), &date[date.len() - 6..]), ("Sun, 15 Nov 2026 02:55:19 +0000".len(), " +0000"));
}

#[tokio::test]
async fn envelope_replaces_missing_headers() {
    let mailroom = mailroom(settings(), Limits::default(), None);
    let copies = deliver_stored(&mailroom, &envelope("", &["a@x.org", "b@y.org"]), "\r\nno header\r\n").await;
    let headline = &copies[0].headline;
    assert_eq!((headline.from(), headline.subject()), ("<>", ""));
    assert_eq!(headline.to().collect::<Vec<_>>(), ["<a@x.org>", "<b@y.org>"]);
}

#[tokio::test]
async fn repeated_mailbox_gets_one_copy() {
    let mailroom = mailroom(settings(), Limits::default(), None);
    let to = ["bob@x.org", "BOB@y.org", "bob+x@z.org", "ann@x.org"];
    assert_eq!(deliver_stored(&mailroom, &envelope("a@x.org", &to), MAIL).await.len(), 2);
    assert_eq!(list_mailbox(&mailroom, "bob").await.len(), 1);
    assert_eq!(list_mailbox(&mailroom, "ann").await.len(), 1);
}

#[tokio::test]
async fn discarded_message_is_accepted_and_not_stored() {
    let policy = Policy { discard_domains: ["drop.test"].into_iter().collect(), ..Policy::default() };
    let mailroom = mailroom(Settings { policy, ..settings() }, Limits::default(), None);
    let outcome = mailroom.deliver(&envelope("a@x.org", &["b@drop.test"]), Bytes::from(MAIL)).await.unwrap();
    assert_eq!(outcome, DeliveryOutcome::Discarded);
    let copies = deliver_stored(&mailroom, &envelope("a@x.org", &["b@drop.test", "c@x.org"]), MAIL).await;
    assert_eq!(copies.iter().map(|copy| copy.mailbox.as_str()).collect::<Vec<_>>(), ["c"]);
}

#[tokio::test]
async fn message_too_large_for_one_of_its_mailboxes_is_not_stored() {
    let policy = MailboxPolicy { mailboxes: ["b?b"].into_iter().collect(), ..MailboxPolicy::default() };
    let policies = [1000, 2000].map(|bytes| MailboxPolicy { bytes: Some(bytes), ..policy.clone() });
    let limits = Limits { policies: policies.into_iter().collect(), ..Limits::default() };
    let mailroom = mailroom(Settings { limits: limits.clone(), ..settings() }, limits, None);
    let both = envelope("a@x.org", &["ann@x.org", "bob@x.org"]);
    let outcome = mailroom.deliver(&both, Bytes::from(vec![b'x'; 990])).await.unwrap();
    assert_eq!(outcome, DeliveryOutcome::TooLarge { max_bytes: 1000 }, "the trace counts too");
    assert!(list_mailbox(&mailroom, "ann").await.is_empty(), "it is stored in all mailboxes or in none");
    for size in [500, 600] {
        mailroom.deliver(&both, Bytes::from(vec![b'x'; size])).await.unwrap();
    }
    assert_eq!(list_mailbox(&mailroom, "ann").await.len(), 2);
    assert_eq!(list_mailbox(&mailroom, "bob").await.len(), 1);
}

#[tokio::test]
async fn recipient_that_needs_quotes_is_refused() {
    let mailroom = mailroom(settings(), Limits::default(), None);
    let result =
        mailroom.check_recipient(&envelope("a@x.org", &[]), address("\"a b\"@x.org"), WriteAccess::default()).await;
    assert_eq!(result, Err(RecipientRefusal::UnusableName(NameError::NeedsQuotes)));
}

#[tokio::test]
async fn every_deletion_is_published() {
    let mailroom = mailroom(settings(), Limits { messages_per_mailbox: 2, ..Limits::default() }, None);
    let mut events = mailroom.subscribe(None, None);
    let mut copies = Vec::new();
    for _ in 0..3 {
        copies.extend(deliver_stored(&mailroom, &envelope("a@x.org", &["bob@x.org"]), MAIL).await);
    }
    let bob = mailroom.mailbox("bob").unwrap();
    assert!(mailroom.remove(&bob, copies[1].id).await.unwrap());
    assert!(!mailroom.remove(&bob, copies[1].id).await.unwrap());
    assert_eq!(mailroom.purge(&bob).await.unwrap(), 1);
    let [first, second, third] = copies.try_into().unwrap();
    let expected = [
        Event::Stored(first.clone(), MessageCopies::default()),
        Event::Stored(second.clone(), MessageCopies::default()),
        Event::Stored(third.clone(), MessageCopies::default()),
        Event::Deleted(first),
        Event::Deleted(second),
        Event::Deleted(third),
    ];
    for event in expected {
        let published = timeout(LONG, events.next()).await.expect("an event is published").unwrap();
        assert_eq!(*published.event(), event);
    }
    assert!(events.try_next().unwrap().is_none());
}

#[tokio::test]
async fn counts_deliveries_and_deletions() {
    let policy = Policy { discard_domains: ["drop.test"].into_iter().collect(), ..Policy::default() };
    let mailroom =
        mailroom(Settings { policy, ..settings() }, Limits { messages_per_mailbox: 1, ..Limits::default() }, None);
    assert_eq!(mailroom.counts(), Counts::default());
    mailroom.deliver(&envelope("a@x.org", &["b@drop.test"]), Bytes::from(MAIL)).await.unwrap();
    deliver_stored(&mailroom, &envelope("a@x.org", &["bob@x.org", "eve@x.org"]), MAIL).await;
    deliver_stored(&mailroom, &envelope("a@x.org", &["bob@x.org"]), MAIL).await;
    mailroom.purge(&mailroom.mailbox("bob").unwrap()).await.unwrap();
    let counts = mailroom.counts();
    assert_eq!((counts.received, counts.received_bytes), (3, 3 * MAIL.len() as u64));
    assert_eq!((counts.stored, counts.discarded), (3, 1));
    let deleted = DeletionCause::ALL.map(|cause| (cause, counts.deleted_by(cause)));
    let expected = [
        (DeletionCause::Request, 1),
        (DeletionCause::Collected, 0),
        (DeletionCause::Expunged, 0),
        (DeletionCause::Age, 0),
        (DeletionCause::Limit, 1),
    ];
    assert_eq!(deleted, expected);
    assert_eq!(counts.retention_completed, None, "retention does not run");
}

#[tokio::test]
async fn history_has_the_last_messages_that_still_exist() {
    let mailroom = mailroom(settings(), Limits::default(), None);
    let mut copies = Vec::new();
    for _ in 0..5 {
        copies.extend(deliver_stored(&mailroom, &envelope("a@x.org", &["bob@x.org"]), MAIL).await);
    }
    mailroom.remove(&copies[3].mailbox, copies[3].id).await.unwrap();
    let mut events = mailroom.subscribe(None, None);
    for expected in [&copies[2], &copies[4]] {
        assert_eq!(
            *events.try_next().unwrap().unwrap().event(),
            Event::Stored(expected.clone(), MessageCopies::default())
        );
    }
    assert!(events.try_next().unwrap().is_none());
}

#[tokio::test]
async fn idle_subscriber_lags_and_does_not_delay_deliveries() {
    let mailroom = mailroom(settings(), Limits { messages_per_mailbox: 1, ..Limits::default() }, None);
    let mut idle_subscriber = mailroom.subscribe(None, None);
    for _ in 0..10_000 {
        deliver_stored(&mailroom, &envelope("a@x.org", &["bob@x.org"]), MAIL).await;
    }
    assert_eq!(idle_subscriber.next().await.unwrap_err(), Lagged);
}

#[tokio::test]
async fn retention_deletes_expired_messages() {
    let mailroom = Arc::new(mailroom(settings(), Limits::default(), None));
    deliver_stored(&mailroom, &envelope("a@x.org", &["bob@x.org"]), MAIL).await;
    let retention = tokio::spawn({
        let mailroom = mailroom.clone();
        async move { mailroom.run_retention(Some(Duration::from_millis(1))).await }
    });
    let bob = mailroom.mailbox("bob").unwrap();
    let is_gone = async {
        while mailroom.find(&bob, MessageSelector::Latest).await.unwrap().is_some() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(LONG, is_gone).await.expect("the message is deleted");
    retention.abort();
    let counts = mailroom.counts();
    assert_eq!(counts.deleted_by(DeletionCause::Age), 1);
    assert!(counts.retention_lag < LONG, "{counts:?}");
}

/// A fake script: returns fixed decisions and records its calls.
#[derive(Default)]
pub(crate) struct FakeScript {
    pub(crate) sender: Option<Verdict>,
    pub(crate) recipient: Option<Verdict>,
    pub(crate) change: Option<fn(&mut IncomingMessage)>,
    pub(crate) calls: Mutex<Vec<String>>,
}

#[async_trait]
impl Hooks for FakeScript {
    fn has_hook(&self, point: HookPoint) -> bool {
        match point {
            HookPoint::MailFrom => self.sender.is_some(),
            HookPoint::RcptTo => self.recipient.is_some(),
            HookPoint::MessageStored => self.change.is_some(),
        }
    }

    async fn before_mail_from_accepted(&self, _: &Envelope) -> Verdict {
        self.sender.clone().unwrap_or(Verdict::Defer)
    }

    async fn before_rcpt_to_accepted(&self, _: &Envelope, candidate: &Address) -> Verdict {
        self.calls.lock().unwrap().push(format!("recipient {candidate}"));
        self.recipient.clone().unwrap_or(Verdict::Defer)
    }

    async fn before_message_stored(&self, message: &IncomingMessage) -> Option<IncomingMessage> {
        let mut changed = message.clone();
        self.change?(&mut changed);
        Some(changed)
    }
}

impl Observer for FakeScript {
    fn message_stored(&self, summary: &Summary) {
        self.calls.lock().unwrap().push(format!("stored {}", summary.mailbox));
    }

    fn message_deleted(&self, summary: &Summary) {
        self.calls.lock().unwrap().push(format!("deleted {}", summary.mailbox));
    }
}

#[tokio::test]
async fn hooks_overrule_the_policy() {
    let strict_policy =
        Policy { default_accept: false, reject_origin_domains: ["x.org"].into_iter().collect(), ..Policy::default() };
    let try_later = Refusal::new(451, "later");
    let by_policy = (Err(SenderRefusal::Policy), Err(RecipientRefusal::Policy));
    let by_hook = (Err(SenderRefusal::Hook(try_later.clone())), Err(RecipientRefusal::Hook(try_later.clone())));
    let table = [
        (None, by_policy.clone()),
        (Some(Verdict::Defer), by_policy),
        (Some(Verdict::Allow), (Ok(()), Ok(()))),
        (Some(Verdict::Deny(try_later)), by_hook),
    ];
    for (verdict, expected) in table {
        let hooks = FakeScript { sender: verdict.clone(), recipient: verdict, ..FakeScript::default() };
        let mailroom = mailroom(
            Settings { policy: strict_policy.clone(), ..settings() },
            Limits::default(),
            Some(Arc::new(hooks)),
        );
        let envelope = envelope("a@x.org", &[]);
        let sender = mailroom.check_sender(&envelope).await;
        let recipient = mailroom.check_recipient(&envelope, address("b@y.org"), WriteAccess::default()).await;
        assert_eq!((sender, recipient.map(|_| ())), expected);
    }
}

#[tokio::test]
async fn recipient_is_checked_by_name_then_permission_then_hook_then_policy() {
    let strict_policy = Policy { reject_domains: ["closed.org"].into_iter().collect(), ..Policy::default() };
    let try_later = Refusal::new(451, "later");
    let (unusable, usable) = ("\"a b\"@closed.org", "Bob+tag@closed.org");
    let deny = Some(Verdict::Deny(try_later.clone()));
    let needs_quotes = RecipientRefusal::UnusableName(NameError::NeedsQuotes);
    // The candidate, whether it is permitted, the decision of the hook, the result, and whether the hook is called.
    let table = [
        (unusable, false, deny.clone(), Err(needs_quotes), false),
        (usable, false, deny.clone(), Err(RecipientRefusal::NotPermitted), false),
        (usable, false, Some(Verdict::Allow), Err(RecipientRefusal::NotPermitted), false),
        (usable, true, deny, Err(RecipientRefusal::Hook(try_later)), true),
        (usable, true, Some(Verdict::Defer), Err(RecipientRefusal::Policy), true),
        (usable, true, Some(Verdict::Allow), Ok("bob"), true),
        (usable, true, None, Err(RecipientRefusal::Policy), false),
    ];
    for (candidate, permitted, verdict, expected, is_called) in table {
        let case = format!("{candidate} {permitted} {verdict:?}");
        let hooks = Arc::new(FakeScript { recipient: verdict, ..FakeScript::default() });
        let mailroom =
            mailroom(Settings { policy: strict_policy.clone(), ..settings() }, Limits::default(), Some(hooks.clone()));
        let is_permitted = |mailbox: &MailboxName| {
            assert_eq!(mailbox.as_str(), "bob", "{case}");
            permitted
        };
        let access = WriteAccess { home: None, is_permitted: Some(&is_permitted) };
        let result = mailroom.check_recipient(&envelope("a@x.org", &[]), address(candidate), access).await;
        if let Ok(recipient) = &result {
            assert_eq!(recipient.address, address(candidate));
        }
        let mailbox = result.map(|recipient| recipient.mailbox.to_string());
        assert_eq!(mailbox, expected.map(str::to_owned), "{case}");
        let calls = hooks.calls.lock().unwrap().clone();
        assert_eq!(calls, Vec::from_iter(is_called.then(|| format!("recipient {candidate}"))), "{case}");
    }
}

#[tokio::test]
async fn client_with_a_home_delivers_into_its_home() {
    let (mailroom, shop) = (mailroom(settings(), Limits::default(), None), "shop".parse().unwrap());
    for (permitted, expected) in [("shop:bob", Ok("shop:bob")), ("bob", Err(RecipientRefusal::NotPermitted))] {
        let is_permitted = |mailbox: &MailboxName| mailbox.as_str() == permitted;
        let access = WriteAccess { home: Some(&shop), is_permitted: Some(&is_permitted) };
        let result = mailroom.check_recipient(&envelope("a@x.org", &[]), address("Bob@x.org"), access).await;
        assert_eq!(result.map(|recipient| recipient.mailbox.to_string()), expected.map(str::to_owned));
    }
}

#[tokio::test]
async fn message_is_stored_in_the_mailboxes_of_the_envelope() {
    let mailroom = mailroom(settings(), Limits::default(), None);
    let mut envelope = envelope("a@x.org", &["bob@x.org"]);
    envelope.recipients[0].mailbox = Naming::Full.parse_mailbox("bob@x.org").unwrap();
    let copies = deliver_stored(&mailroom, &envelope, MAIL).await;
    assert_eq!(copies.iter().map(|copy| copy.mailbox.as_str()).collect::<Vec<_>>(), ["bob@x.org"]);
}

#[tokio::test]
async fn hooks_change_mailboxes_and_headline_and_are_notified() {
    let change: fn(&mut IncomingMessage) = |message| {
        let other = Naming::Local.parse_mailbox("other").unwrap();
        message.mailboxes = vec![other.clone(), other];
        message.headline = Headline::new("", [], "changed");
    };
    let hooks = Arc::new(FakeScript { change: Some(change), ..FakeScript::default() });
    let mailroom = mailroom(settings(), Limits::default(), Some(hooks.clone()));
    let copies = deliver_stored(&mailroom, &envelope("a@x.org", &["bob@x.org"]), MAIL).await;
    assert!(list_mailbox(&mailroom, "bob").await.is_empty());
    assert_eq!(
        copies.iter().map(|copy| (copy.mailbox.as_str(), copy.headline.subject())).collect::<Vec<_>>(),
        [("other", "changed")]
    );
    mailroom.purge(&copies[0].mailbox).await.unwrap();
    assert_eq!(*hooks.calls.lock().unwrap(), ["stored other", "deleted other"]);
}

#[tokio::test]
async fn many_messages_are_deleted_in_batches_and_each_is_published() {
    let fake_script = Arc::new(FakeScript::default());
    let mailroom = mailroom(settings(), Limits::default(), Some(fake_script.clone()));
    let mut copies = Vec::new();
    for _ in 0..1100 {
        copies.extend(deliver_stored(&mailroom, &envelope("ann@x.org", &["bob@x.org"]), MAIL).await);
    }
    let (kept_copy, deleted_copy) = (copies.remove(500), copies.remove(0));
    assert!(mailroom.remove(&deleted_copy.mailbox, deleted_copy.id).await.unwrap());
    fake_script.calls.lock().unwrap().clear();
    let ids = std::iter::once(deleted_copy.id).chain(copies.iter().map(|copy| copy.id)).collect();
    assert_eq!(mailroom.remove_all(&deleted_copy.mailbox, ids, DeletionCause::Collected).await.unwrap(), 1098);
    assert_eq!(list_mailbox(&mailroom, "bob").await, [kept_copy]);
    assert_eq!(fake_script.calls.lock().unwrap().len(), 1098);
}

#[tokio::test]
async fn hook_that_removes_all_mailboxes_discards() {
    let hooks = FakeScript { change: Some(|message| message.mailboxes.clear()), ..FakeScript::default() };
    let mailroom = mailroom(settings(), Limits::default(), Some(Arc::new(hooks)));
    let outcome = mailroom.deliver(&envelope("a@x.org", &["bob@x.org"]), Bytes::from(MAIL)).await.unwrap();
    assert_eq!(outcome, DeliveryOutcome::Discarded);
}
