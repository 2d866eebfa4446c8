//! Measurements, which print rates: `cargo test --release -p restante-store -- --ignored --nocapture rates`.

use std::time::{Duration, Instant};

use bytes::Bytes;
use jiff::Timestamp;
use restante_mail::details::{DetailFields, Details};
use restante_mail::message::{Flags, Headline};
use restante_mail::tags::Tags;

use super::*;
use crate::NewCopy;
use crate::tests::conformance::name;

const DURATION: Duration = Duration::from_secs(4);
const SESSIONS: usize = 50;
const MAILBOXES: usize = 1000;

/// Returns a message of 1 KiB as a client sends it.
fn typical_message(number: usize) -> NewMessage {
    let mailbox = name(&format!("mailbox-{}", number % MAILBOXES));
    let recipients = [format!("{mailbox}@example.org")];
    let details = Details::new(&DetailFields {
        sender: "orders@shop.example.org",
        helo: "app-7.internal.example.org",
        ip: Some([192, 0, 2, 7].into()),
        host: "mail.test",
        snippet: "Thank you for your order. It will be delivered within three days. Your order number is 4711.",
        recipients: &recipients,
        ..DetailFields::default()
    });
    NewMessage {
        received: Timestamp::now(),
        headline: Headline::new(
            "Shop <orders@shop.example.org>",
            ["<bob@example.org>"],
            "Your order 4711 is confirmed",
        ),
        body: Bytes::from_static(&[b'x'; 1024]),
        copies: vec![NewCopy {
            mailbox,
            seen: false,
            flags: Flags::default(),
            tags: Tags::default(),
            details,
            trace: None,
        }],
    }
}

/// Runs `call` in a number of tasks. Prints the calls per second.
async fn print_rate<F>(title: &str, sessions: usize, call: impl Fn(usize) -> F + Clone + Send + 'static)
where
    F: Future<Output = ()> + Send,
{
    let (start, mut tasks) = (Instant::now(), JoinSet::new());
    for session in 0..sessions {
        let call = call.clone();
        tasks.spawn(async move {
            let mut count = 0_usize;
            while start.elapsed() < DURATION {
                call(session + sessions * count).await;
                count += 1;
            }
            count
        });
    }
    let count: usize = tasks.join_all().await.iter().sum();
    println!("{title}: {} per second", count as u128 * 1000 / start.elapsed().as_millis());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures"]
async fn rate_of_appends() {
    let Some(address) = address() else { return };
    let store = Arc::new(open(&address, Limits::default()).await);
    for sessions in [SESSIONS, 1] {
        let store = store.clone();
        let append = move |number| {
            let store = store.clone();
            async move { drop(store.append(typical_message(number)).await.unwrap()) }
        };
        print_rate(&format!("messages of {sessions} sessions"), sessions, append).await;
    }
}

/// Queries of all mail, and the same queries of a mailbox that contains all mail.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures"]
async fn rate_of_queries() {
    let Some(address) = address() else { return };
    let settings = Settings { schema: fresh_schema(), cache_bytes: 256 << 20, ..Settings::default() };
    let store = Arc::new(PostgresStore::open(&address, settings).await.unwrap());
    let mut writers = JoinSet::new();
    for number in 0..20_000 {
        let store = store.clone();
        writers.spawn(async move { store.append(typical_message(number * MAILBOXES)).await.unwrap().stored.remove(0) });
    }
    let copies = Arc::new(writers.join_all().await);
    let page = Page { limit: Some(50), ..Page::ALL };
    for _ in 0..3 {
        let given = (store.clone(), copies.clone());
        let list = move |_| {
            let (store, copies) = given.clone();
            async move { assert_eq!(store.list(&copies[0].mailbox, page).await.unwrap().messages.len(), 50) }
        };
        print_rate("lists of a mailbox", 4, list).await;
        let given = store.clone();
        let list = move |_| {
            let store = given.clone();
            async move { assert_eq!(store.messages(None, page).await.unwrap().messages.len(), 50) }
        };
        print_rate("lists of all mail", 4, list).await;
        // The first numbers are of queries that read the database, the second ones of queries that use the cache.
        let given = (store.clone(), copies.clone());
        let find = move |number: usize| {
            let (store, copies) = given.clone();
            async move {
                let copy = &copies[number % copies.len()];
                let found = reader::find(&store.database, &copy.mailbox, MessageSelector::Id(copy.id)).await;
                assert!(found.unwrap().is_some());
            }
        };
        print_rate("copies", 4, find).await;
        let given = (store.clone(), copies.clone());
        let find = move |number: usize| {
            let (store, copies) = given.clone();
            async move {
                let selector = MessageSelector::Id(copies[number % copies.len()].message);
                assert!(reader::find_message(&store.database, selector).await.unwrap().is_some());
            }
        };
        print_rate("messages", 4, find).await;
        let given = (store.clone(), copies.clone());
        let find = move |number: usize| {
            let (store, copies) = given.clone();
            async move {
                let copy = &copies[number % 100];
                assert!(store.find(&copy.mailbox, MessageSelector::Id(copy.id)).await.unwrap().is_some());
            }
        };
        print_rate("cached copies", SESSIONS, find).await;
        let given = (store.clone(), copies.clone());
        let find = move |number: usize| {
            let (store, copies) = given.clone();
            async move {
                let selector = MessageSelector::Id(copies[number % 100].message);
                assert!(store.find_message(selector).await.unwrap().is_some());
            }
        };
        print_rate("cached messages", SESSIONS, find).await;
    }
}
