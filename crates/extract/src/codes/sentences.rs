//! Sentence ends, and the distances within which words belong together.

/// The maximum distance between a label and its number, in bytes.
pub(super) const MAX_LABEL_DISTANCE: usize = 24;
/// The maximum distance at which a word of the same line counts, in bytes.
pub(super) const MAX_WORD_DISTANCE: usize = 120;

/// Returns whether the text contains the end of a sentence.
pub(super) fn contains_sentence_end(text: &str) -> bool {
    first_sentence(text).len() < text.len()
}

/// Returns the text up to the end of its first sentence.
pub(super) fn first_sentence(text: &str) -> &str {
    let ends = [". ", "! ", "? ", "。", "！", "？", "।"].iter().filter_map(|end| text.find(end));
    &text[..ends.min().unwrap_or(text.len())]
}
