//! What a store in PostgreSQL promises, with a real server.

use std::sync::atomic::{AtomicU32, Ordering};

use restante_testpg::Postgres;

use super::*;
use crate::conformance;

/// A database for all tests of this program, in which each has schemas of its own; none where PostgreSQL is not installed.
pub(crate) fn address() -> Option<Address> {
    Postgres::shared().map(|server| server.url().parse().expect("a URL of our own"))
}

/// A name that no other test has.
pub(crate) fn fresh_schema() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

async fn open(address: &Address, limits: Limits) -> PostgresStore {
    let settings = Settings { limits, schema: fresh_schema(), ..Settings::default() };
    PostgresStore::open(address, settings).await.expect("the database is there")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn passes_the_conformance_suite() {
    let Some(address) = address() else { return };
    conformance::run(|limits| open(&address, limits)).await;
}
