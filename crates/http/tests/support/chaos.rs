//! A server with simulated failures of SMTP.

use restante_mailroom::chaos::Chaos;

use super::*;

/// Creates a server with simulated failures of senders.
pub(crate) fn chaos_server() -> TestServer {
    let store = Arc::new(MemoryStore::new(Limits::default()));
    let mailroom = Mailroom::new(restante_mailroom::Settings::default(), store.clone(), Extensions::default());
    let mailroom = mailroom.with_chaos(Chaos::new("Sender:450:5".parse().unwrap()));
    TestServer { store, router: router(Arc::new(mailroom), Settings::default()) }
}
