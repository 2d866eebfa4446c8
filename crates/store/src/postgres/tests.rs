//! What a store in PostgreSQL promises, with a real server.

use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::conformance;

fn address() -> Option<Address> {
    std::env::var("TEST_PG").ok().map(|url| url.parse().unwrap())
}

async fn open(limits: Limits) -> PostgresStore {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let schema = format!("s{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    PostgresStore::open(&address().unwrap(), Settings { limits, schema, ..Settings::default() }).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn passes_the_conformance_suite() {
    if address().is_none() {
        return;
    }
    conformance::run(open).await;
}
