//! Delivery through the mailroom: checks, mailboxes, trace header, storing, events and retention.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use restante_mail::address::{Address, Alphabet};
use restante_mail::envelope::{Envelope, Peer, Recipient, RecipientRefusal, Refusal, SenderRefusal};
use restante_mail::message::{Headline, Summary};
use restante_mail::naming::{MailboxName, NameError, Naming};
use restante_mailroom::events::{Event, Lagged};
use restante_mailroom::hooks::{Extensions, HookPoint, Hooks, IncomingMessage, Observer, Verdict};
use restante_mailroom::policy::Policy;
use restante_mailroom::{Counts, DeletionCause, DeliveryOutcome, Mailroom, Settings};
use restante_store::Limits;
use restante_store::memory::MemoryStore;
use restante_store::{MessageSelector, Page};
use tokio::time::timeout;

fn address(text: &str) -> Address {
    Address::parse(text, Alphabet::Ascii).unwrap()
}

fn envelope(from: &str, to: &[&str]) -> Envelope {
    Envelope {
        peer: Peer { ip: Some([192, 0, 2, 7].into()), helo: "client.test".into() },
        from: (!from.is_empty()).then(|| address(from)),
        recipients: to.iter().map(|to| Recipient::new(address(to), Naming::Local).unwrap()).collect(),
    }
}

fn settings() -> Settings {
    Settings { domain: "mx.test".into(), naming: Naming::Local, policy: Policy::default(), history: 3 }
}

fn room(settings: Settings, limits: Limits, script: Option<Arc<Script>>) -> Mailroom {
    let extensions = script.map(|script| Extensions {
        hooks: Some(script.clone()),
        node_observers: vec![script],
        ..Extensions::default()
    });
    Mailroom::new(settings, Arc::new(MemoryStore::new(limits)), extensions.unwrap_or_default())
}

async fn stored(room: &Mailroom, envelope: &Envelope, body: &'static str) -> Vec<Summary> {
    match room.deliver(envelope, Bytes::from(body)).await.unwrap() {
        DeliveryOutcome::Stored(copies) => copies,
        DeliveryOutcome::Discarded => panic!("discarded"),
    }
}

async fn listed(room: &Mailroom, mailbox: &str) -> Vec<Summary> {
    room.list(&room.mailbox(mailbox).unwrap(), Page::ALL).await.unwrap().messages
}

/// Longer than any step of these tests.
const LONG: Duration = Duration::from_mins(1);

const MAIL: &str = "From: Ann <ann@x.org>\r\nTo: bob@x.org\r\nSubject: Hello\r\n\r\nHi\r\n";

#[tokio::test]
async fn a_mail_is_stamped_for_its_mailbox_and_otherwise_untouched() {
    let room = room(settings(), Limits::default(), None);
    let copies = stored(&room, &envelope("ann@x.org", &["Bob+tag@x.org"]), MAIL).await;
    let [summary] = copies.as_slice() else { panic!("{copies:?}") };
    assert_eq!((summary.headline.from(), summary.headline.subject()), ("Ann <ann@x.org>", "Hello"));
    assert_eq!(summary.headline.to().collect::<Vec<_>>(), ["<bob@x.org>"]);

    let source = room.source(&summary.mailbox, summary.id).await.unwrap().unwrap();
    assert_eq!(source.body, MAIL);
    assert_eq!(summary.size, source.len() as u64);
    let trace = String::from_utf8(source.trace.to_vec()).unwrap();
    let (fixed, date) = trace.split_once("; ").unwrap();
    assert_eq!(fixed, "Return-Path: <ann@x.org>\r\nReceived: from client.test ([192.0.2.7]) by mx.test\r\n  for <bob>");
    let date = date.strip_suffix("\r\n").unwrap();
    assert_eq!((date.len(), &date[date.len() - 6..]), ("Sun, 15 Nov 2026 02:55:19 +0000".len(), " +0000"));
}

#[tokio::test]
async fn the_envelope_stands_in_for_missing_headers() {
    let room = room(settings(), Limits::default(), None);
    let copies = stored(&room, &envelope("", &["a@x.org", "b@y.org"]), "\r\nno header\r\n").await;
    let headline = &copies[0].headline;
    assert_eq!((headline.from(), headline.subject()), ("<>", ""));
    assert_eq!(headline.to().collect::<Vec<_>>(), ["<a@x.org>", "<b@y.org>"]);
}

#[tokio::test]
async fn the_same_mailbox_twice_gets_one_copy() {
    let room = room(settings(), Limits::default(), None);
    let to = ["bob@x.org", "BOB@y.org", "bob+x@z.org", "ann@x.org"];
    assert_eq!(stored(&room, &envelope("a@x.org", &to), MAIL).await.len(), 2);
    assert_eq!(listed(&room, "bob").await.len(), 1);
    assert_eq!(listed(&room, "ann").await.len(), 1);
}

#[tokio::test]
async fn discarded_mail_is_accepted_and_not_kept() {
    let policy = Policy { discard_domains: ["drop.test"].into_iter().collect(), ..Policy::default() };
    let room = room(Settings { policy, ..settings() }, Limits::default(), None);
    let outcome = room.deliver(&envelope("a@x.org", &["b@drop.test"]), Bytes::from(MAIL)).await.unwrap();
    assert_eq!(outcome, DeliveryOutcome::Discarded);
    let copies = stored(&room, &envelope("a@x.org", &["b@drop.test", "c@x.org"]), MAIL).await;
    assert_eq!(copies.iter().map(|copy| copy.mailbox.as_str()).collect::<Vec<_>>(), ["c"]);
}

#[tokio::test]
async fn a_recipient_that_needs_quotes_is_refused() {
    let room = room(settings(), Limits::default(), None);
    let answer = room.check_recipient(&envelope("a@x.org", &[]), address("\"a b\"@x.org"), |_| true).await;
    assert_eq!(answer, Err(RecipientRefusal::UnusableName(NameError::NeedsQuotes)));
}

#[tokio::test]
async fn every_cause_of_deletion_is_an_event() {
    let room = room(settings(), Limits { messages_per_mailbox: 2, bytes: 0 }, None);
    let mut events = room.subscribe(None, None);
    let mut copies = Vec::new();
    for _ in 0..3 {
        copies.extend(stored(&room, &envelope("a@x.org", &["bob@x.org"]), MAIL).await);
    }
    let bob = room.mailbox("bob").unwrap();
    assert!(room.remove(&bob, copies[1].id).await.unwrap());
    assert!(!room.remove(&bob, copies[1].id).await.unwrap());
    assert_eq!(room.purge(&bob).await.unwrap(), 1);
    let [first, second, third] = copies.try_into().unwrap();
    let expected = [
        Event::Stored(first.clone()),
        Event::Stored(second.clone()),
        Event::Stored(third.clone()),
        Event::Deleted(first),
        Event::Deleted(second),
        Event::Deleted(third),
    ];
    for event in expected {
        let told = timeout(LONG, events.next()).await.expect("an event is told").unwrap();
        assert_eq!(*told.event(), event);
    }
    assert!(events.try_next().unwrap().is_none());
}

#[tokio::test]
async fn everything_is_counted() {
    let policy = Policy { discard_domains: ["drop.test"].into_iter().collect(), ..Policy::default() };
    let room = room(Settings { policy, ..settings() }, Limits { messages_per_mailbox: 1, bytes: 0 }, None);
    assert_eq!(room.counts(), Counts::default());
    room.deliver(&envelope("a@x.org", &["b@drop.test"]), Bytes::from(MAIL)).await.unwrap();
    stored(&room, &envelope("a@x.org", &["bob@x.org", "eve@x.org"]), MAIL).await;
    stored(&room, &envelope("a@x.org", &["bob@x.org"]), MAIL).await;
    room.purge(&room.mailbox("bob").unwrap()).await.unwrap();
    let counts = room.counts();
    assert_eq!((counts.received, counts.received_bytes), (3, 3 * MAIL.len() as u64));
    assert_eq!((counts.stored, counts.discarded), (3, 1));
    let deleted = DeletionCause::ALL.map(|cause| (cause, counts.deleted_by(cause)));
    let expected = [
        (DeletionCause::Request, 1),
        (DeletionCause::Collected, 0),
        (DeletionCause::Age, 0),
        (DeletionCause::Limit, 1),
    ];
    assert_eq!(deleted, expected);
    assert_eq!(counts.retention_completed, None, "retention does not run");
}

#[tokio::test]
async fn history_holds_the_last_ones_that_are_still_there() {
    let room = room(settings(), Limits::default(), None);
    let mut copies = Vec::new();
    for _ in 0..5 {
        copies.extend(stored(&room, &envelope("a@x.org", &["bob@x.org"]), MAIL).await);
    }
    room.remove(&copies[3].mailbox, copies[3].id).await.unwrap();
    let mut events = room.subscribe(None, None);
    for expected in [&copies[2], &copies[4]] {
        assert_eq!(*events.try_next().unwrap().unwrap().event(), Event::Stored(expected.clone()));
    }
    assert!(events.try_next().unwrap().is_none());
}

#[tokio::test]
async fn a_listener_that_sleeps_loses_events_and_delays_nobody() {
    let room = room(settings(), Limits { messages_per_mailbox: 1, bytes: 0 }, None);
    let mut sleeper = room.subscribe(None, None);
    for _ in 0..10_000 {
        stored(&room, &envelope("a@x.org", &["bob@x.org"]), MAIL).await;
    }
    assert_eq!(sleeper.next().await.unwrap_err(), Lagged);
}

#[tokio::test]
async fn old_mail_goes_by_itself() {
    let room = Arc::new(room(settings(), Limits::default(), None));
    stored(&room, &envelope("a@x.org", &["bob@x.org"]), MAIL).await;
    let retention = tokio::spawn({
        let room = room.clone();
        async move { room.run_retention(Duration::from_millis(1)).await }
    });
    let bob = room.mailbox("bob").unwrap();
    let is_gone = async {
        while room.find(&bob, MessageSelector::Latest).await.unwrap().is_some() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(LONG, is_gone).await.expect("it goes");
    retention.abort();
    let counts = room.counts();
    assert_eq!(counts.deleted_by(DeletionCause::Age), 1);
    assert!(counts.retention_lag < LONG, "{counts:?}");
}

/// A fake script: returns fixed decisions and records its calls.
#[derive(Default)]
struct Script {
    sender: Option<Verdict>,
    recipient: Option<Verdict>,
    change: Option<fn(&mut IncomingMessage)>,
    heard: Mutex<Vec<String>>,
}

#[async_trait]
impl Hooks for Script {
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
        self.heard.lock().unwrap().push(format!("recipient {candidate}"));
        self.recipient.clone().unwrap_or(Verdict::Defer)
    }

    async fn before_message_stored(&self, message: &IncomingMessage) -> Option<IncomingMessage> {
        let mut changed = message.clone();
        self.change?(&mut changed);
        Some(changed)
    }
}

impl Observer for Script {
    fn message_stored(&self, summary: &Summary) {
        self.heard.lock().unwrap().push(format!("stored {}", summary.mailbox));
    }

    fn message_deleted(&self, summary: &Summary) {
        self.heard.lock().unwrap().push(format!("deleted {}", summary.mailbox));
    }
}

#[tokio::test]
async fn hooks_overrule_the_policy() {
    let strict =
        Policy { default_accept: false, reject_origin_domains: ["x.org"].into_iter().collect(), ..Policy::default() };
    let later = Refusal::new(451, "later");
    let by_policy = (Err(SenderRefusal::Policy), Err(RecipientRefusal::Policy));
    let by_hook = (Err(SenderRefusal::Hook(later.clone())), Err(RecipientRefusal::Hook(later.clone())));
    let table = [
        (None, by_policy.clone()),
        (Some(Verdict::Defer), by_policy),
        (Some(Verdict::Allow), (Ok(()), Ok(()))),
        (Some(Verdict::Deny(later)), by_hook),
    ];
    for (verdict, expected) in table {
        let hooks = Script { sender: verdict.clone(), recipient: verdict, ..Script::default() };
        let room = room(Settings { policy: strict.clone(), ..settings() }, Limits::default(), Some(Arc::new(hooks)));
        let envelope = envelope("a@x.org", &[]);
        let sender = room.check_sender(&envelope).await;
        let recipient = room.check_recipient(&envelope, address("b@y.org"), |_| true).await;
        assert_eq!((sender, recipient.map(|_| ())), expected);
    }
}

#[tokio::test]
async fn a_recipient_is_checked_by_name_then_permission_then_hook_then_policy() {
    let strict = Policy { reject_domains: ["closed.org"].into_iter().collect(), ..Policy::default() };
    let later = Refusal::new(451, "later");
    let (unusable, usable) = ("\"a b\"@closed.org", "Bob+tag@closed.org");
    let denies = Some(Verdict::Deny(later.clone()));
    let needs_quotes = RecipientRefusal::UnusableName(NameError::NeedsQuotes);
    // The candidate, whether it is permitted, the decision of the hook, the result, and whether the hook is called.
    let table = [
        (unusable, false, denies.clone(), Err(needs_quotes), false),
        (usable, false, denies.clone(), Err(RecipientRefusal::NotPermitted), false),
        (usable, false, Some(Verdict::Allow), Err(RecipientRefusal::NotPermitted), false),
        (usable, true, denies, Err(RecipientRefusal::Hook(later)), true),
        (usable, true, Some(Verdict::Defer), Err(RecipientRefusal::Policy), true),
        (usable, true, Some(Verdict::Allow), Ok("bob"), true),
        (usable, true, None, Err(RecipientRefusal::Policy), false),
    ];
    for (candidate, permitted, verdict, expected, asked) in table {
        let about = format!("{candidate} {permitted} {verdict:?}");
        let hooks = Arc::new(Script { recipient: verdict, ..Script::default() });
        let room = room(Settings { policy: strict.clone(), ..settings() }, Limits::default(), Some(hooks.clone()));
        let is_permitted = |mailbox: &MailboxName| {
            assert_eq!(mailbox.as_str(), "bob", "{about}");
            permitted
        };
        let answer = room.check_recipient(&envelope("a@x.org", &[]), address(candidate), is_permitted).await;
        if let Ok(recipient) = &answer {
            assert_eq!(recipient.address, address(candidate));
        }
        let mailbox = answer.map(|recipient| recipient.mailbox.to_string());
        assert_eq!(mailbox, expected.map(str::to_owned), "{about}");
        let heard = hooks.heard.lock().unwrap().clone();
        assert_eq!(heard, Vec::from_iter(asked.then(|| format!("recipient {candidate}"))), "{about}");
    }
}

#[tokio::test]
async fn mail_goes_to_the_mailboxes_that_the_envelope_names() {
    let room = room(settings(), Limits::default(), None);
    let mut envelope = envelope("a@x.org", &["bob@x.org"]);
    envelope.recipients[0].mailbox = Naming::Full.parse_mailbox("bob@x.org").unwrap();
    let copies = stored(&room, &envelope, MAIL).await;
    assert_eq!(copies.iter().map(|copy| copy.mailbox.as_str()).collect::<Vec<_>>(), ["bob@x.org"]);
}

#[tokio::test]
async fn hooks_reroute_rename_and_hear_of_it() {
    let change: fn(&mut IncomingMessage) = |message| {
        let other = Naming::Local.parse_mailbox("other").unwrap();
        message.mailboxes = vec![other.clone(), other];
        message.headline = Headline::new("", [], "changed");
    };
    let hooks = Arc::new(Script { change: Some(change), ..Script::default() });
    let room = room(settings(), Limits::default(), Some(hooks.clone()));
    let copies = stored(&room, &envelope("a@x.org", &["bob@x.org"]), MAIL).await;
    assert!(listed(&room, "bob").await.is_empty());
    assert_eq!(
        copies.iter().map(|copy| (copy.mailbox.as_str(), copy.headline.subject())).collect::<Vec<_>>(),
        [("other", "changed")]
    );
    room.purge(&copies[0].mailbox).await.unwrap();
    assert_eq!(*hooks.heard.lock().unwrap(), ["stored other", "deleted other"]);
}

#[tokio::test]
async fn many_messages_are_deleted_in_steps_and_each_is_told() {
    let script = Arc::new(Script::default());
    let room = room(settings(), Limits::default(), Some(script.clone()));
    let mut copies = Vec::new();
    for _ in 0..1100 {
        copies.extend(stored(&room, &envelope("ann@x.org", &["bob@x.org"]), MAIL).await);
    }
    let (kept, gone) = (copies.remove(500), copies.remove(0));
    assert!(room.remove(&gone.mailbox, gone.id).await.unwrap());
    script.heard.lock().unwrap().clear();
    let ids = std::iter::once(gone.id).chain(copies.iter().map(|copy| copy.id)).collect();
    assert_eq!(room.remove_all(&gone.mailbox, ids, DeletionCause::Collected).await.unwrap(), 1098);
    assert_eq!(listed(&room, "bob").await, [kept]);
    assert_eq!(script.heard.lock().unwrap().len(), 1098);
}

#[tokio::test]
async fn a_hook_that_takes_all_destinations_discards() {
    let hooks = Script { change: Some(|message| message.mailboxes.clear()), ..Script::default() };
    let room = room(settings(), Limits::default(), Some(Arc::new(hooks)));
    let outcome = room.deliver(&envelope("a@x.org", &["bob@x.org"]), Bytes::from(MAIL)).await.unwrap();
    assert_eq!(outcome, DeliveryOutcome::Discarded);
}
