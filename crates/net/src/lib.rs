//! Listeners, accepting within limits, TLS, and shutdown. This crate contains no mail or HTTP protocol; the
//! caller passes the listeners and the [`Shutdown`] to each server.

mod accept;
mod address;
mod admission_control;
mod budget;
mod counters;
mod deadline;
mod limits;
mod line_stream;
mod listener;
mod readiness;
mod shutdown;
mod stream;
mod tls;

pub use accept::accept;
pub use address::ListenAddr;
pub use admission_control::{AdmissionControl, ProxyHeaderOutcome};
pub use budget::{Budget, Reservation};
pub use counters::ConnectionCounters;
pub use deadline::Deadline;
pub use limits::{Admission, ClientLimits, ClientSlot, ConnectionLimits, TooMany};
pub use line_stream::{LineStream, ReadOutcome};
pub use listener::{Listener, bind};
pub use readiness::{NotReady, Readiness};
pub use restante_mail::network::Network;
pub use shutdown::{SHUTDOWN_GRACE_PERIOD, Shutdown, ShutdownTrigger};
pub use stream::{Stream, TlsInfo};
pub use tls::{AcceptedStream, Certificate, Tls};
