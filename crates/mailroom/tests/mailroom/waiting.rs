//! Waiting for messages, and deleting all of them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use restante_mail::address::{Address, Alphabet};
use restante_mail::envelope::{Envelope, Peer, Recipient};
use restante_mail::message::MessageId;
use restante_mail::naming::{MailboxName, Naming};
use restante_mailroom::events::Event;
use restante_mailroom::hooks::Extensions;
use restante_mailroom::{Arrivals, DeliveryOutcome, MailboxPage, Mailroom, Settings};
use restante_store::Limits;
use restante_store::memory::MemoryStore;
use tokio::time::timeout;

const LONG: Duration = Duration::from_mins(10);

fn room() -> Arc<Mailroom> {
    let settings = Settings { history: 10, ..Settings::default() };
    Arc::new(Mailroom::new(settings, Arc::new(MemoryStore::new(Limits::default())), Extensions::default()))
}

fn mailbox(name: &str) -> MailboxName {
    name.to_owned().into()
}

async fn deliver(room: &Mailroom, to: &str) -> MessageId {
    let address = Address::parse(&format!("{to}@x.org"), Alphabet::Ascii).unwrap();
    let envelope = Envelope {
        peer: Peer { ip: None, helo: "test".to_owned() },
        from: None,
        recipients: vec![Recipient::new(address, Naming::Local).unwrap()],
    };
    match room.deliver(&envelope, Bytes::from_static(b"Subject: Hello\r\n\r\n")).await.unwrap() {
        DeliveryOutcome::Stored(copies) => copies[0].id,
        DeliveryOutcome::Discarded => panic!("discarded"),
    }
}

async fn next(arrivals: &mut Arrivals) -> Option<MessageId> {
    arrivals.next().await.unwrap().map(|summary| summary.id)
}

#[tokio::test(start_paused = true)]
async fn what_is_there_comes_first_and_then_what_is_stored() {
    let room = room();
    let mut there = Vec::new();
    for _ in 0..250 {
        there.push(deliver(&room, "ann").await);
    }
    let mut arrivals = room.arrivals(&mailbox("ann"), there[1], LONG);
    for id in &there[2..] {
        assert_eq!(next(&mut arrivals).await, Some(*id));
    }
    let waiting = tokio::spawn(async move { (next(&mut arrivals).await, next(&mut arrivals).await) });
    tokio::task::yield_now().await;
    deliver(&room, "bob").await;
    let (one, two) = (deliver(&room, "ann").await, deliver(&room, "ann").await);
    assert_eq!(waiting.await.unwrap(), (Some(one), Some(two)));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_lost_between_two_looks() {
    let room = room();
    let mut arrivals = room.arrivals(&mailbox("ann"), MessageId::ZERO, LONG);
    // A caller that is cancelled can continue later.
    assert!(timeout(Duration::from_secs(1), arrivals.next()).await.is_err());
    let one = deliver(&room, "ann").await;
    let two = deliver(&room, "ann").await;
    assert_eq!(next(&mut arrivals).await, Some(one));
    assert_eq!(next(&mut arrivals).await, Some(two));
    assert!(timeout(Duration::from_secs(1), arrivals.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn the_time_is_over_for_what_comes_and_not_for_what_is_there() {
    let room = room();
    let there = deliver(&room, "ann").await;
    let mut arrivals = room.arrivals(&mailbox("ann"), MessageId::ZERO, Duration::ZERO);
    assert_eq!(next(&mut arrivals).await, Some(there));
    assert_eq!(next(&mut arrivals).await, None);
    let mut arrivals = room.arrivals(&mailbox("ann"), there, LONG);
    assert_eq!(next(&mut arrivals).await, None);
}

#[tokio::test(start_paused = true)]
async fn what_comes_behind_the_end_does_not_keep_anybody() {
    let room = room();
    let there = deliver(&room, "ann").await;
    let mut arrivals = room.arrivals(&mailbox("ann"), MessageId::ZERO, Duration::ZERO);
    assert_eq!(next(&mut arrivals).await, Some(there));
    deliver(&room, "ann").await;
    assert_eq!(next(&mut arrivals).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_crowd_gets_what_it_waits_for() {
    let room = room();
    let waiters: Vec<_> = (0..500)
        .map(|number| {
            let name = if number % 2 == 0 { "ann".to_owned() } else { format!("bob{number}") };
            let mut arrivals = room.arrivals(&mailbox(&name), MessageId::ZERO, LONG);
            tokio::spawn(async move { arrivals.next().await.unwrap().map(|summary| (name, summary)) })
        })
        .collect();
    tokio::task::yield_now().await;
    deliver(&room, "ann").await;
    for number in (1..500).step_by(2) {
        deliver(&room, &format!("bob{number}")).await;
    }
    for waiter in waiters {
        let (name, summary) = waiter.await.unwrap().unwrap();
        assert_eq!(summary.mailbox.as_str(), name);
    }
}

#[tokio::test]
async fn everything_is_deleted_where_it_may_be() {
    let room = room();
    for number in 0..1200 {
        deliver(&room, &format!("box{number}")).await;
        deliver(&room, "box7").await;
    }
    deliver(&room, "keep").await;
    let mut events = room.subscribe(Some(mailbox("box8")), None);
    let deleted = room.purge_everything(|mailbox| mailbox.as_str() != "keep").await.unwrap();
    assert_eq!(deleted, 2400);
    let left = room.mailboxes(MailboxPage::ALL).await.unwrap();
    assert_eq!(left.iter().map(|of| of.name.as_str()).collect::<Vec<_>>(), ["keep"]);
    assert!(matches!(events.next().await.unwrap().event(), Event::Deleted(_)), "everybody hears of it");
    assert_eq!(room.purge_everything(|_| true).await.unwrap(), 1);
    assert_eq!(room.purge_everything(|_| true).await.unwrap(), 0);
}
