//! The tags of a message: short labels that senders, rules and users give it.

use std::fmt;
use std::sync::Arc;

/// The maximum number of tags of one message.
pub const MAX_TAGS: usize = 20;

/// The maximum number of characters of one tag.
pub const MAX_TAG_CHARS: usize = 64;

/// A set of tags, in the order in which they were added. Tags that differ only in case are equal; the first spelling
/// is kept. Cheap to clone.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Tags {
    /// The tags, each followed by a line feed. `None` if there are no tags.
    text: Option<Arc<str>>,
}

/// The reason why a text is not a tag, or why there are too many.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TagError {
    /// The tag is empty or blank.
    #[error("a tag must not be empty")]
    Empty,
    /// The tag is longer than [`MAX_TAG_CHARS`].
    #[error("a tag has at most {max} characters", max = MAX_TAG_CHARS)]
    TooLong,
    /// The tag contains this character.
    #[error("a tag must not contain {0:?}; letters, digits, spaces and the characters - _ . @ $ are allowed")]
    Character(char),
    /// There are more than [`MAX_TAGS`] tags.
    #[error("a message has at most {max} tags", max = MAX_TAGS)]
    TooMany,
}

impl Tags {
    /// Creates a set of tags. Fails if one of them is invalid.
    pub fn new<'a>(tags: impl IntoIterator<Item = &'a str>) -> Result<Self, TagError> {
        let mut builder = TagsBuilder::default();
        for tag in tags {
            builder.add(tag)?;
        }
        Ok(builder.finish())
    }

    /// Creates a set of the valid tags among these, and ignores the others. At most [`MAX_TAGS`] are kept.
    pub fn from_valid<'a>(tags: impl IntoIterator<Item = &'a str>) -> Self {
        let mut builder = TagsBuilder::default();
        for tag in tags {
            if builder.add(tag) == Err(TagError::TooMany) {
                break;
            }
        }
        builder.finish()
    }

    /// Creates a set from the form that [`Tags::encoded`] returns.
    pub fn from_encoded(text: &str) -> Self {
        Self { text: (!text.is_empty()).then(|| text.into()) }
    }

    /// Returns the tags as one text, in which each ends in a line feed.
    pub fn encoded(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// Returns the tags.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.encoded().split_terminator('\n')
    }

    /// Returns whether there are no tags.
    pub fn is_empty(&self) -> bool {
        self.text.is_none()
    }

    /// Returns whether this tag is in the set, in any case.
    pub fn contains(&self, tag: &str) -> bool {
        contains(self.encoded(), tag)
    }

    /// Returns the tags of both sets. Tags of `other` above the limit are dropped.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        if other.is_empty() || self == other {
            return self.clone();
        }
        Self::from_valid(self.iter().chain(other.iter()))
    }
}

impl fmt::Debug for Tags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[derive(Default)]
struct TagsBuilder {
    text: String,
    count: usize,
}

impl TagsBuilder {
    fn add(&mut self, tag: &str) -> Result<(), TagError> {
        let tag = tag.trim();
        validate(tag)?;
        if contains(&self.text, tag) {
            return Ok(());
        }
        if self.count == MAX_TAGS {
            return Err(TagError::TooMany);
        }
        self.count += 1;
        self.text.push_str(tag);
        self.text.push('\n');
        Ok(())
    }

    fn finish(self) -> Tags {
        Tags::from_encoded(&self.text)
    }
}

/// Checks a tag without spaces at its ends.
pub fn validate(tag: &str) -> Result<(), TagError> {
    if tag.is_empty() {
        return Err(TagError::Empty);
    }
    if tag.chars().count() > MAX_TAG_CHARS {
        return Err(TagError::TooLong);
    }
    match tag.chars().find(|c| !is_allowed(*c)) {
        Some(c) => Err(TagError::Character(c)),
        None => Ok(()),
    }
}

/// Returns whether a tag can contain this character. `$` is the first character of keywords of IMAP, such as `$Forwarded`.
pub fn is_allowed(c: char) -> bool {
    c.is_alphanumeric() || " -_.@$".contains(c)
}

fn contains(encoded: &str, tag: &str) -> bool {
    let mut tags = encoded.split_terminator('\n');
    tags.any(|known| known == tag || known.to_lowercase() == tag.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_trimmed_and_unique_in_any_case() {
        let tags = Tags::new([" Billing ", "run 7", "billing", "Größe", "GRÖSSE", "größe"]).unwrap();
        assert_eq!(tags.iter().collect::<Vec<_>>(), ["Billing", "run 7", "Größe", "GRÖSSE"]);
        assert!(tags.contains("BILLING") && tags.contains("RUN 7") && !tags.contains("run"));
        assert_eq!(Tags::from_encoded(tags.encoded()), tags);
        assert_eq!(Tags::new([]).unwrap(), Tags::default());
        assert_eq!(validate("$MDN-Sent_1.0 @b"), Ok(()));
    }

    #[test]
    fn invalid_tags_are_refused_or_ignored() {
        let long = "x".repeat(MAX_TAG_CHARS + 1);
        let table = [
            ("", TagError::Empty),
            (" ", TagError::Empty),
            (long.as_str(), TagError::TooLong),
            ("a,b", TagError::Character(',')),
            ("a\nb", TagError::Character('\n')),
            ("<b>", TagError::Character('<')),
            ("a+b", TagError::Character('+')),
        ];
        for (tag, error) in table {
            assert_eq!(Tags::new(["ok", tag]), Err(error), "{tag:?}");
            assert_eq!(Tags::from_valid(["ok", tag, "last"]), Tags::new(["ok", "last"]).unwrap(), "{tag:?}");
        }
        let many: Vec<String> = (0..=MAX_TAGS).map(|number| number.to_string()).collect();
        assert_eq!(Tags::new(many.iter().map(String::as_str)), Err(TagError::TooMany));
        assert_eq!(Tags::from_valid(many.iter().map(String::as_str)).iter().count(), MAX_TAGS);
    }

    #[test]
    fn union_keeps_the_order() {
        let [one, two] = [["a", "b"], ["B", "c"]].map(|tags| Tags::new(tags).unwrap());
        assert_eq!(one.union(&two).iter().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(one.union(&Tags::default()), one);
        assert_eq!(Tags::default().union(&one), one);
    }
}
