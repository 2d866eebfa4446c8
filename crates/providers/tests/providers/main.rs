//! Tests of the APIs of mail providers in the whole service, in-process over a memory store.

mod conversations;
mod limits;
#[path = "../../../http/tests/support/mod.rs"]
mod support;
