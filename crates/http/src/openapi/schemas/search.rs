//! What a search finds.

use utoipa::ToSchema;

use crate::openapi::schemas::MessageRecord;

/// Messages that a search has found, the newest first.
#[derive(ToSchema)]
pub(in crate::openapi) struct Found {
    messages: Vec<FoundMessage>,
    /// What to give as `before` to get those that follow; null when these were the last ones.
    #[schema(required)]
    next: Option<String>,
    /// Whether everything that was stored before the question was looked at.
    complete: bool,
}

/// A message that a search has found.
#[derive(ToSchema)]
pub(in crate::openapi) struct FoundMessage {
    #[serde(flatten)]
    record: MessageRecord,
    /// Some words of the message around what was looked for, piece by piece.
    snippet: Vec<Piece>,
}

/// A piece of a text.
#[derive(ToSchema)]
pub(in crate::openapi) struct Piece {
    text: String,
    /// Whether this is what was looked for.
    hit: bool,
}
