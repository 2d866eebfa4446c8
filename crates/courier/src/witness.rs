//! Who sees whether a request went over a new connection or over one that was kept from an earlier request. A kept one may
//! have been closed by the other side in the very moment it is used again, which says nothing about the other side.

use std::cell::Cell;

use ureq::Error;
use ureq::unversioned::transport::{ConnectionDetails, Connector, Transport};

thread_local! {
    /// Connections are made by the thread that sends the request.
    static CONNECTED: Cell<bool> = const { Cell::new(false) };
}

/// The end of the chain that makes connections: it changes nothing, and remembers that it was asked.
#[derive(Debug)]
pub(crate) struct Witness;

impl<In: Transport> Connector<In> for Witness {
    type Out = In;

    fn connect(&self, _: &ConnectionDetails<'_>, chained: Option<In>) -> Result<Option<In>, Error> {
        CONNECTED.set(true);
        Ok(chained)
    }
}

/// Does something, and says whether a connection was made for it by this thread.
pub(crate) fn watched<T>(work: impl FnOnce() -> T) -> (T, bool) {
    CONNECTED.set(false);
    let done = work();
    (done, CONNECTED.get())
}
