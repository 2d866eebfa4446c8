//! What the disk store promises beyond the contract.

use std::sync::Mutex;

use super::*;
use crate::conformance;
use crate::testdir::TestDir;

#[tokio::test(flavor = "multi_thread")]
async fn passes_the_conformance_suite() {
    for durability in [Durability::Full, Durability::Relaxed] {
        let dirs = Mutex::new(Vec::new());
        conformance::run(|limits| {
            let dir = TestDir::new();
            let store = DiskStore::open(dir.path(), Settings { limits, durability, ..Settings::default() }).unwrap();
            dirs.lock().unwrap().push(dir);
            async move { store }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn passes_the_rules_for_restarts() {
    for durability in [Durability::Full, Durability::Relaxed] {
        conformance::run_durable(|dir, limits| {
            DiskStore::open(dir, Settings { limits, durability, ..Settings::default() }).unwrap()
        })
        .await;
    }
}
