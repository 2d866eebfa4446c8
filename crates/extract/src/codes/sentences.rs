//! How far words belong together: within a sentence, and within so many bytes of it.

/// How many bytes a word may be away to be the label of a number.
pub(super) const MAX_LABEL_DISTANCE: usize = 24;
/// How far a word of the same line counts.
pub(super) const MAX_WORD_DISTANCE: usize = 120;

/// Whether a sentence ends in a text.
pub(super) fn contains_sentence_end(text: &str) -> bool {
    first_sentence(text).len() < text.len()
}

/// A text as far as its first sentence goes.
pub(super) fn first_sentence(text: &str) -> &str {
    let ends = [". ", "! ", "? ", "。", "！", "？", "।"].iter().filter_map(|end| text.find(end));
    &text[..ends.min().unwrap_or(text.len())]
}
