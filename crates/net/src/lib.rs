//! Sockets: binding them, accepting from them within limits, TLS over them, and the end of it all. No protocol is
//! known here; each server gets its listeners and its [`Shutdown`] from outside.

mod accept;
mod address;
mod budget;
mod gate;
mod limits;
mod listener;
mod network;
mod patience;
mod readiness;
mod shutdown;
mod stream;
mod tally;
mod tls;
mod wire;

pub use accept::accept;
pub use address::ListenAddr;
pub use budget::{Budget, Reservation};
pub use gate::{Gate, Header};
pub use limits::{Admission, Clients, Limits, Place, TooMany};
pub use listener::{Listener, bind};
pub use network::Network;
pub use patience::Patience;
pub use readiness::{NotReady, Readiness};
pub use shutdown::{GRACE, Shutdown, ShutdownTrigger};
pub use stream::{Agreed, Stream};
pub use tally::Tally;
pub use tls::{Certificate, Opening, Tls};
pub use wire::{Heard, Wire};
