//! Relay: sends stored messages to other mail servers. A message is *released* by a request, or *forwarded* by a rule.
//! Nothing is sent unless a target is configured and its list of allowed recipients permits it.
//!
//! Data flows in one direction. [`Relay::release`] and the `forwarder`, which applies the rules to new messages, add
//! entries to the queue (`restante_queue`). The senders of each target claim entries and send them with the `transport`
//! over a `session`, and the `recorder` writes the results. The queue is the only state that survives a restart; an entry
//! refers to a stored message, whose source is read when it is sent.
//!
//! Delivery is at least once: an entry that was sent, but whose result could not be recorded, is sent again.

mod attempt;
mod background;
mod counts;
mod delivery_load;
mod entry;
mod forwarder;
mod message;
mod recipients;
mod recorder;
mod relay;
mod release;
mod rules;
mod session;
mod settings;
mod shared;
#[cfg(test)]
mod tests;
mod transport;

pub use counts::{Counts, TargetCounts};
pub use entry::{Content, Entry, EntryRecipient, MAX_FINISHED, Origin, QUEUE, RecipientState};
pub use recipients::RecipientPatterns;
pub use relay::{Relay, TargetStatus};
pub use release::{MAX_RECIPIENTS, ReleaseError, ReleaseRequest};
pub use restante_queue::{EntryFilter, EntryId, EntryState, Selection};
pub use settings::{ForwardRule, Login, Mechanism, Password, Settings, Target, TargetTls, Verification};
