//! How far words belong together: within a sentence, and within so many bytes of it.

/// How many bytes a word may be away to be the label of a number.
pub(super) const LABEL: usize = 24;
/// How far a word of the same line counts.
pub(super) const REACH: usize = 120;

/// Whether a sentence ends in a text.
pub(super) fn ends_sentence(text: &str) -> bool {
    sentence(text).len() < text.len()
}

/// A text as far as its first sentence goes.
pub(super) fn sentence(text: &str) -> &str {
    let ends = [". ", "! ", "? ", "。", "！", "？", "।"].iter().filter_map(|end| text.find(end));
    &text[..ends.min().unwrap_or(text.len())]
}
