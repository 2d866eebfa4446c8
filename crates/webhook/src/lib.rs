//! Webhooks: tells other programs by HTTP of mail that was stored or deleted, without ever delaying a delivery.

mod counts;
mod filter;
mod key;
mod line;
mod notice;
mod pace;
mod place;
mod seldom;
mod settings;
mod verdict;

pub use counts::Counts;
pub use key::Key;
pub use settings::{Event, Settings, Target};
