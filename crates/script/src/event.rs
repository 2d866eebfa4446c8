//! The five events that a script can have a function for.

use std::fmt;

/// An event that a script can take part in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// A sender was named.
    MailFrom,
    /// A recipient was named.
    RcptTo,
    /// A message is about to be stored.
    BeforeStored,
    /// A message was stored.
    AfterStored,
    /// A message was deleted.
    AfterDeleted,
}

impl Event {
    /// Every event.
    pub const ALL: [Self; 5] =
        [Self::MailFrom, Self::RcptTo, Self::BeforeStored, Self::AfterStored, Self::AfterDeleted];

    /// The name that scripts define its function under.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MailFrom => "before.mail_from_accepted",
            Self::RcptTo => "before.rcpt_to_accepted",
            Self::BeforeStored => "before.message_stored",
            Self::AfterStored => "after.message_stored",
            Self::AfterDeleted => "after.message_deleted",
        }
    }

    /// Whether somebody waits for what the script says.
    pub const fn is_before(self) -> bool {
        matches!(self, Self::MailFrom | Self::RcptTo | Self::BeforeStored)
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
