//! The words that describe numbers. They are in `vocabulary.txt`, by language.

/// The table of words. Its head describes the format.
pub(super) const TABLE: &str = include_str!("vocabulary.txt");

/// The meaning of a word for the numbers near it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Sense {
    /// The number is a one-time code.
    Code,
    /// Signing in, confirming, resetting: actions that codes are used for.
    Action,
    /// The reader should use the number for something.
    Use,
    /// The number is of another kind: an order, a phone number, a place.
    Other,
    /// The number is a promotion code, which everyone gets.
    Promo,
    /// The code expires.
    Expiry,
    /// The code is a former one.
    Former,
    /// The preceding code is no longer valid.
    Revoked,
    /// The code must be kept secret.
    Secret,
    /// The footer of a message starts here.
    Footer,
    /// The unit that the preceding number counts.
    Unit,
}

/// Returns the words of the table with their meanings. An underscore at the end of a word is a space.
pub(super) fn words() -> impl Iterator<Item = (Sense, String)> {
    TABLE.lines().filter_map(parse_line).flat_map(|(sense, words)| {
        let words = words.split(", ");
        words
            .map(move |word| (sense, word.strip_suffix('_').map_or_else(|| word.to_owned(), |word| format!("{word} "))))
    })
}

/// Returns the meaning and the words of a line. Returns `None` for the name of a language, and for a comment.
pub(super) fn parse_line(line: &str) -> Option<(Sense, &str)> {
    let (name, words) = line.split_once(": ")?;
    let sense = match name {
        "code" => Sense::Code,
        "action" => Sense::Action,
        "use" => Sense::Use,
        "other" => Sense::Other,
        "promo" => Sense::Promo,
        "expiry" => Sense::Expiry,
        "former" => Sense::Former,
        "revoked" => Sense::Revoked,
        "secret" => Sense::Secret,
        "footer" => Sense::Footer,
        "unit" => Sense::Unit,
        _ => return None,
    };
    Some((sense, words))
}
