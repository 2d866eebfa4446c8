//! Waiting for messages, and deleting all of them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use restante_mail::address::{Address, Alphabet};
use restante_mail::envelope::{Envelope, Peer, Recipient};
use restante_mail::message::MessageId;
use restante_mail::naming::{MailboxName, Naming};
use restante_store::Limits;
use restante_store::memory::MemoryStore;
use tokio::time::timeout;

use crate::events::Event;
use crate::hooks::Extensions;
use crate::{ArrivalSource, Arrivals, DeliveryOutcome, MailboxPage, Mailroom, Settings};

const LONG: Duration = Duration::from_mins(10);

fn mailroom() -> Arc<Mailroom> {
    let settings = Settings { history: 10, ..Settings::default() };
    Arc::new(Mailroom::new(settings, Arc::new(MemoryStore::new(Limits::default())), Extensions::default()))
}

fn mailbox(name: &str) -> MailboxName {
    name.to_owned().into()
}

async fn deliver(mailroom: &Mailroom, to: &str) -> MessageId {
    let address = Address::parse(&format!("{to}@x.org"), Alphabet::Ascii).unwrap();
    let envelope = Envelope {
        peer: Peer { ip: None, helo: "test".to_owned() },
        login: None,
        key: None,
        listener: None,
        from: None,
        recipients: vec![Recipient::new(address, Naming::Local).unwrap()],
    };
    match mailroom.deliver(&envelope, Bytes::from_static(b"Subject: Hello\r\n\r\n")).await.unwrap() {
        DeliveryOutcome::Stored(copies) => copies[0].id,
        outcome => panic!("{outcome:?}"),
    }
}

async fn next(arrivals: &mut Arrivals) -> Option<MessageId> {
    arrivals.next().await.unwrap().map(|message| message.id())
}

#[tokio::test(start_paused = true)]
async fn existing_messages_come_before_new_ones() {
    let mailroom = mailroom();
    let mut existing = Vec::new();
    for _ in 0..250 {
        existing.push(deliver(&mailroom, "ann").await);
    }
    let mut arrivals = mailroom.arrivals(ArrivalSource::Mailbox(mailbox("ann")), existing[1], LONG);
    for id in &existing[2..] {
        assert_eq!(next(&mut arrivals).await, Some(*id));
    }
    let waiting = tokio::spawn(async move { (next(&mut arrivals).await, next(&mut arrivals).await) });
    tokio::task::yield_now().await;
    deliver(&mailroom, "bob").await;
    let (one, two) = (deliver(&mailroom, "ann").await, deliver(&mailroom, "ann").await);
    assert_eq!(waiting.await.unwrap(), (Some(one), Some(two)));
}

#[tokio::test(start_paused = true)]
async fn messages_of_all_mailboxes_can_be_awaited() {
    let mailroom = mailroom();
    let existing = deliver(&mailroom, "ann").await;
    let mut arrivals = mailroom.arrivals(ArrivalSource::All(None), MessageId::ZERO, LONG);
    assert_eq!(next(&mut arrivals).await, Some(existing));
    let waiting = tokio::spawn(async move { (next(&mut arrivals).await, next(&mut arrivals).await) });
    tokio::task::yield_now().await;
    let (one, two) = (deliver(&mailroom, "bob").await, deliver(&mailroom, "ann").await);
    assert_eq!(waiting.await.unwrap(), (Some(one), Some(two)));
}

#[tokio::test(start_paused = true)]
async fn old_messages_of_all_mailboxes_are_skipped() {
    let mailroom = mailroom();
    let mut existing = Vec::new();
    for number in 0..10_150 {
        existing.push(deliver(&mailroom, &format!("box{}", number % 30)).await);
    }
    let newest = &existing[150..];
    let table = [
        (MessageId::ZERO, newest),
        (existing[10], newest),
        (existing[149], newest),
        (existing[150], &newest[1..]),
        (existing[10_000], &existing[10_001..]),
        (existing[10_100], &existing[10_101..]),
    ];
    for (after, expected) in table {
        let mut arrivals = mailroom.arrivals(ArrivalSource::All(None), after, Duration::ZERO);
        let mut found = Vec::new();
        while let Some(id) = next(&mut arrivals).await {
            found.push(id);
        }
        assert!(found == expected, "{} messages after {after}", found.len());
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_waits_only_before_its_deadline() {
    let mailroom = mailroom();
    let existing = deliver(&mailroom, "ann").await;
    for (after, within, has_waited) in
        [(MessageId::ZERO, Duration::ZERO, false), (MessageId::ZERO, LONG, true), (existing, LONG, true)]
    {
        let mut arrivals = mailroom.arrivals(ArrivalSource::All(None), after, within);
        while next(&mut arrivals).await.is_some() {
            assert!(!arrivals.has_waited());
        }
        assert_eq!(arrivals.has_waited(), has_waited, "{after} {within:?}");
    }
    let mut slow = mailroom.arrivals(ArrivalSource::All(None), MessageId::ZERO, Duration::from_millis(100));
    assert_eq!(next(&mut slow).await, Some(existing));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(next(&mut slow).await, None);
    assert!(!slow.has_waited(), "the caller read the existing messages too slowly");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_lost_between_two_queries() {
    let mailroom = mailroom();
    let mut arrivals = mailroom.arrivals(ArrivalSource::Mailbox(mailbox("ann")), MessageId::ZERO, LONG);
    // A caller that is cancelled can continue later.
    assert!(timeout(Duration::from_secs(1), arrivals.next()).await.is_err());
    let one = deliver(&mailroom, "ann").await;
    let two = deliver(&mailroom, "ann").await;
    assert_eq!(next(&mut arrivals).await, Some(one));
    assert_eq!(next(&mut arrivals).await, Some(two));
    assert!(timeout(Duration::from_secs(1), arrivals.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn deadline_does_not_apply_to_existing_messages() {
    let mailroom = mailroom();
    let existing = deliver(&mailroom, "ann").await;
    let mut arrivals = mailroom.arrivals(ArrivalSource::Mailbox(mailbox("ann")), MessageId::ZERO, Duration::ZERO);
    assert_eq!(next(&mut arrivals).await, Some(existing));
    assert_eq!(next(&mut arrivals).await, None);
    let mut arrivals = mailroom.arrivals(ArrivalSource::Mailbox(mailbox("ann")), existing, LONG);
    assert_eq!(next(&mut arrivals).await, None);
}

#[tokio::test(start_paused = true)]
async fn messages_after_the_deadline_are_not_returned() {
    let mailroom = mailroom();
    let existing = deliver(&mailroom, "ann").await;
    let mut arrivals = mailroom.arrivals(ArrivalSource::Mailbox(mailbox("ann")), MessageId::ZERO, Duration::ZERO);
    assert_eq!(next(&mut arrivals).await, Some(existing));
    deliver(&mailroom, "ann").await;
    assert_eq!(next(&mut arrivals).await, None);
}

#[tokio::test(start_paused = true)]
async fn many_requests_get_their_messages() {
    let mailroom = mailroom();
    let requests: Vec<_> = (0..500)
        .map(|number| {
            let name = if number % 2 == 0 { "ann".to_owned() } else { format!("bob{number}") };
            let mut arrivals = mailroom.arrivals(ArrivalSource::Mailbox(mailbox(&name)), MessageId::ZERO, LONG);
            tokio::spawn(async move { arrivals.next().await.unwrap().map(|message| (name, message)) })
        })
        .collect();
    tokio::task::yield_now().await;
    deliver(&mailroom, "ann").await;
    for number in (1..500).step_by(2) {
        deliver(&mailroom, &format!("bob{number}")).await;
    }
    for request in requests {
        let (name, message) = request.await.unwrap().unwrap();
        assert_eq!(message.first().mailbox.as_str(), name);
    }
}

#[tokio::test]
async fn purge_deletes_the_selected_mailboxes() {
    let mailroom = mailroom();
    for number in 0..1200 {
        deliver(&mailroom, &format!("box{number}")).await;
        deliver(&mailroom, "box7").await;
    }
    deliver(&mailroom, "keep").await;
    let mut events = mailroom.subscribe(Some(mailbox("box8")), None);
    let deleted = mailroom.purge_mailboxes(String::new(), |mailbox| mailbox.as_str() != "keep").await.unwrap();
    assert_eq!(deleted, 2400);
    let left = mailroom.mailboxes(MailboxPage::ALL).await.unwrap();
    assert_eq!(left.iter().map(|state| state.name.as_str()).collect::<Vec<_>>(), ["keep"]);
    assert!(matches!(events.next().await.unwrap().event(), Event::Deleted(_)), "the deletion is published");
    assert_eq!(mailroom.purge_mailboxes(String::new(), |_| true).await.unwrap(), 1);
    assert_eq!(mailroom.purge_mailboxes(String::new(), |_| true).await.unwrap(), 0);
}
