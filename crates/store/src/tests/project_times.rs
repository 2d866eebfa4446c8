//! A measurement of the queries of one project in a store with many others, which prints times:
//! `cargo test --release -p restante-store -- --ignored --nocapture times_of_project_queries`. The variable `MESSAGES` sets
//! the number of messages.

use std::env;
use std::sync::Arc;
use std::time::{Duration, Instant};

use restante_testdir::TestDir;
use restante_testpg::Postgres;
use tokio::sync::Semaphore;

use super::conformance::{message, project};
use crate::disk::{self, DiskStore, Durability};
use crate::postgres::{self, PostgresStore};
use crate::{Page, Store};

const PROJECTS: usize = 100;
const MAILBOXES_PER_PROJECT: usize = 100;
const SESSIONS: u32 = 200;
const RUNS: usize = 101;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures"]
async fn times_of_project_queries() {
    let messages = env::var("MESSAGES").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let dir = TestDir::new();
    let settings = disk::Settings { durability: Durability::Relaxed, ..disk::Settings::default() };
    measure("disk", messages, Arc::new(DiskStore::open(dir.path(), settings).unwrap())).await;
    let Some(server) = Postgres::shared() else { return };
    let settings = postgres::Settings { schema: "project_times".to_owned(), ..postgres::Settings::default() };
    let store = PostgresStore::open(&server.url().parse().unwrap(), settings).await.unwrap();
    measure("PostgreSQL", messages, Arc::new(store)).await;
}

async fn measure(title: &str, messages: usize, store: Arc<impl Store>) {
    let sessions = Arc::new(Semaphore::new(SESSIONS as usize));
    for number in 0..messages {
        let (store, permit) = (store.clone(), sessions.clone().acquire_owned().await.unwrap());
        tokio::spawn(async move {
            let mailbox = format!("p{}:{}", number % PROJECTS, number / PROJECTS % MAILBOXES_PER_PROJECT);
            store.append(message(0, &[&mailbox], &[b'x'; 200])).await.unwrap();
            drop(permit);
        });
    }
    drop(sessions.acquire_many(SESSIONS).await.unwrap());
    assert_eq!(store.usage().await.unwrap().messages, messages as u64);
    println!("{title}: {messages} messages in {PROJECTS} projects");
    let one = project("p7");
    let first = Page { limit: Some(50), ..Page::ALL };
    print_time("first page of a project", async || drop(store.messages(Some(&one), first).await.unwrap())).await;
    print_time("first page of all mail", async || drop(store.messages(None, first).await.unwrap())).await;
    print_time("overview of a project", async || drop(store.overview(Some(&one)).await.unwrap())).await;
    print_time("list of projects", async || drop(store.projects(None, PROJECTS).await.unwrap())).await;
}

/// Prints the median and the maximum of some runs after the first one, and the first one.
async fn print_time(title: &str, query: impl AsyncFn()) {
    let mut times: Vec<Duration> = Vec::with_capacity(RUNS + 1);
    for _ in 0..=RUNS {
        let start = Instant::now();
        query().await;
        times.push(start.elapsed());
    }
    let first = times.remove(0);
    times.sort_unstable();
    println!("  {title}: {:?}, at most {:?}; first {first:?}", times[RUNS / 2], times[RUNS - 1]);
}
