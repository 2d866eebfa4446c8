//! What can be asked for of messages, in words that states, answers and replies share.

/// What is wanted of a message that is being fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FetchRequest {
    pub(super) number: u64,
    pub(super) extent: Extent,
}

/// How much of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    Whole,
    /// The header and so many lines behind it.
    Top(u64),
}

/// What is listed behind the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Sizes,
    Ids,
}
