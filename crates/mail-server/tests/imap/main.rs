//! A model-based test of IMAP: parallel sessions of one mailbox, and random operations of them and of other clients. A simple
//! model of what each client knows checks sequence numbers, UIDs, flags and MODSEQ after each command.
//!
//! All stores run the same walks, with the seeds from 0 on. `PROPTEST_CASES` sets their number, as in other random tests.
#![cfg(unix)]

mod client;
mod command;
mod contents;
mod node;
mod random;
mod session;
mod view;
mod walk;

use std::env;
use std::sync::Arc;

use restante_store::disk::{self, DiskStore};
use restante_store::memory::MemoryStore;
use restante_store::postgres::{self, PostgresStore};
use restante_store::{Limits, Store};
use restante_testdir::TestDir;
use restante_testpg::Postgres;
use restante_teststore::SharedStore;

use node::TestNode;
use walk::{CAP, RandomWalk};

const ROUNDS: usize = 300;
const DEFAULT_WALKS: u64 = 2;

fn limits() -> Limits {
    Limits { messages_per_mailbox: CAP, ..Limits::default() }
}

fn seeds() -> std::ops::Range<u64> {
    let walks = env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok());
    0..walks.unwrap_or(DEFAULT_WALKS)
}

/// Starts a node with this store.
async fn node(store: impl Store + 'static) -> TestNode {
    TestNode::start(Arc::new(store), limits(), None).await
}

async fn run(seed: u64, nodes: Vec<TestNode>) {
    RandomWalk::start(seed, nodes).await.run(ROUNDS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sessions_agree_with_a_store_in_memory() {
    for seed in seeds() {
        run(seed, vec![node(MemoryStore::new(limits())).await]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sessions_agree_with_a_store_on_disk() {
    for seed in seeds() {
        let dir = TestDir::new();
        let settings = disk::Settings { limits: limits(), ..disk::Settings::default() };
        run(seed, vec![node(DiskStore::open(dir.path(), settings).unwrap()).await]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sessions_agree_with_a_store_in_postgres() {
    let Some(server) = Postgres::shared() else { return };
    for seed in seeds() {
        run(seed, vec![node(open_postgres(server, &format!("single_{seed}")).await).await]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sessions_on_two_nodes_agree_with_a_store_in_postgres() {
    let Some(server) = Postgres::shared() else { return };
    for seed in seeds() {
        let schema = format!("shared_{seed}");
        let first = node(open_postgres(server, &schema).await).await;
        let second = node(open_postgres(server, &schema).await).await;
        run(seed, vec![first, second]).await;
    }
}

/// The nodes get some changes late, and some not at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sessions_on_nodes_with_late_changes_agree_with_their_store() {
    for seed in seeds() {
        let store = SharedStore::new(limits());
        let mut nodes = Vec::new();
        for _ in 0..2 {
            let node = store.node().await;
            nodes.push(TestNode::start(node.clone(), limits(), Some(node)).await);
        }
        run(seed, nodes).await;
    }
}

async fn open_postgres(server: &Postgres, schema: &str) -> PostgresStore {
    let settings = postgres::Settings { limits: limits(), schema: schema.to_owned(), ..postgres::Settings::default() };
    PostgresStore::open(&server.url().parse().unwrap(), settings).await.unwrap()
}
