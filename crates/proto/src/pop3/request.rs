//! The parameters of RETR, TOP, LIST and UIDL, which states and replies share.

/// A message that is being fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FetchRequest {
    pub(super) number: u64,
    pub(super) extent: Extent,
}

/// The part of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    Whole,
    /// The header and this many lines after it.
    Top(u64),
}

/// The value that is listed after the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Sizes,
    Ids,
}
