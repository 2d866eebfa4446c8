//! Patterns with wildcards that match domains and mailbox names.

use crate::naming::{MailboxName, Project, lowercase_nfc};

/// A list of patterns. A pattern can contain the wildcards `*` (any sequence of characters) and `?` (any one
/// character). Patterns are compared like domains and mailbox names: case-insensitively, in NFC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patterns(Vec<Vec<char>>);

impl<S: AsRef<str>> FromIterator<S> for Patterns {
    fn from_iter<T: IntoIterator<Item = S>>(entries: T) -> Self {
        Self(entries.into_iter().map(|entry| canonical_chars(entry.as_ref())).collect())
    }
}

impl Patterns {
    /// Returns whether any pattern of the list matches the text. Does not allocate if the text is ASCII.
    pub fn matches(&self, text: &str) -> bool {
        self.position(text, |_, _| ()).is_some()
    }

    /// Returns whether any pattern of the list matches a mailbox. A folder matches if its owner does.
    pub fn match_mailbox(&self, mailbox: &MailboxName) -> bool {
        self.matches(mailbox.owner_name())
    }

    /// Returns what the wildcards of the first matching pattern match, in their order and in canonical form. Each pattern
    /// returns as many texts as the one with the fewest wildcards.
    pub fn captures(&self, text: &str) -> Option<Vec<String>> {
        let mut starts = Vec::new();
        let matching = self.position(text, |pattern, start| {
            starts.truncate(pattern);
            starts.push(start);
        })?;
        let text = canonical_chars(text);
        let parts = self.0[matching].iter().zip(starts.windows(2));
        let captured = parts.filter(|(c, _)| is_wildcard(**c)).map(|(_, span)| text[span[0]..span[1]].iter().collect());
        Some(captured.take(self.capture_count()).collect())
    }

    /// Returns the number of texts that [`Self::captures`] returns.
    pub fn capture_count(&self) -> usize {
        self.0.iter().map(|pattern| pattern.iter().filter(|c| is_wildcard(**c)).count()).min().unwrap_or(0)
    }

    /// Returns the index of the first pattern that matches the text. Calls `record` as [`wildcard_match`] does.
    fn position(&self, text: &str, mut record: impl FnMut(usize, usize)) -> Option<usize> {
        if text.is_ascii() {
            let (bytes, to_char) = (text.as_bytes(), |byte: u8| char::from(byte.to_ascii_lowercase()));
            return self.0.iter().position(|pattern| wildcard_match(pattern, bytes, to_char, &mut record));
        }
        let chars = if self.0.is_empty() { Vec::new() } else { canonical_chars(text) };
        self.0.iter().position(|pattern| wildcard_match(pattern, &chars, |c| c, &mut record))
    }

    /// Returns whether the list is empty. An empty list matches nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the prefixes of all texts that can match: for each pattern, the characters before its first wildcard.
    /// The result is sorted and omits prefixes that start with another prefix.
    pub fn prefixes(&self) -> Vec<String> {
        let before_wildcard = |entry: &Vec<char>| entry.iter().take_while(|c| !is_wildcard(**c)).collect();
        let mut prefixes: Vec<String> = self.0.iter().map(before_wildcard).collect();
        prefixes.sort_unstable();
        prefixes.dedup_by(|later, earlier| later.starts_with(earlier.as_str()));
        prefixes
    }

    /// Returns the project that all patterns are in, if there is one: each begins with its name and a colon.
    pub fn project(&self) -> Option<Project> {
        let mut projects = self.entries().map(|entry| MailboxName::from(entry).project());
        let first = projects.next()??;
        projects.all(|other| other.as_ref() == Some(&first)).then_some(first)
    }

    /// Returns whether one of the patterns matches all mailboxes of a project.
    pub fn covers_project(&self, project: &Project) -> bool {
        let whole = format!("{}*", project.prefix());
        self.entries().any(|entry| entry == "*" || entry == whole)
    }

    /// Returns the patterns in the form in which they are compared.
    pub fn entries(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|entry| entry.iter().collect())
    }
}

fn canonical_chars(text: &str) -> Vec<char> {
    lowercase_nfc(text).chars().collect()
}

fn is_wildcard(c: char) -> bool {
    matches!(c, '*' | '?')
}

/// Returns whether the pattern matches the whole text. Backtracks only to the last `*`, so the cost is at most the
/// product of both lengths. Calls `record` with each index of the pattern and the position in the text where its match
/// starts, and at the end with both lengths. A call voids earlier ones with the same or a larger index.
fn wildcard_match<T: Copy>(
    pattern: &[char],
    text: &[T],
    to_char: impl Fn(T) -> char,
    mut record: impl FnMut(usize, usize),
) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut retry = None;
    while t < text.len() {
        record(p, t);
        match pattern.get(p) {
            Some('*') if pattern[p + 1..].contains(&'*') => {
                retry = Some((p, t));
                p += 1;
            }
            // What follows the last `*` can only match the end of the text.
            Some('*') => {
                retry = None;
                p += 1;
                t = t.max(text.len().saturating_sub(pattern.len() - p));
            }
            Some(c) if *c == '?' || *c == to_char(text[t]) => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((star, from)) = retry else { return false };
                retry = Some((star, from + 1));
                p = star + 1;
                t = from + 1;
            }
        }
    }
    (p..=pattern.len()).for_each(|index| record(index, t));
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_wildcards() {
        let table = [
            ("example.org", "EXAMPLE.org", true),
            ("example.org", "example.orga", false),
            ("*", "", true),
            ("*", "anything", true),
            ("*.org", "a.b.org", true),
            ("*.org", "org", false),
            ("mail?.org", "mail1.org", true),
            ("mail?.org", "mail.org", false),
            ("*a*b*c", "xxaxxbxxbxxc", true),
            ("*a*b*c", "xxaxxbxxbxx", false),
            ("", "x", false),
            ("bücher.example", "BU\u{308}CHER.example", true),
            ("r?t.example", "röt.example", true),
        ];
        for (pattern, text, expected) in table {
            assert_eq!(Patterns::from_iter([pattern]).matches(text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn captures_what_wildcards_match() {
        type Row = (&'static [&'static str], &'static str, Option<&'static [&'static str]>);
        let table: [Row; 10] = [
            (&["*-ci"], "Shop-CI", Some(&["shop"])),
            (&["*-*-ci"], "a-b-c-ci", Some(&["a", "b-c"])),
            (&["?*"], "abc", Some(&["a", "bc"])),
            (&["*a*b*"], "xxaxxb", Some(&["xx", "xx", ""])),
            (&["*"], "", Some(&[""])),
            (&["shop"], "SHOP", Some(&[])),
            (&["shop"], "shop2", None),
            (&["x*y*", "*-?", "*"], "a-b", Some(&["a"])),
            (&["*@b*cher"], "JO\u{308}@bücher", Some(&["jö", "ü"])),
            (&[], "a", None),
        ];
        for (patterns, text, expected) in table {
            let patterns = Patterns::from_iter(patterns);
            let captures = patterns.captures(text);
            assert_eq!(captures, expected.map(|texts| texts.iter().map(ToString::to_string).collect()), "{text}");
            assert_eq!(patterns.matches(text), captures.is_some(), "{text}");
            assert!(captures.is_none_or(|captures| captures.len() == patterns.capture_count()), "{text}");
        }
    }

    #[test]
    fn prefixes_cover_all_matching_texts() {
        let table: [(&[&str], &[&str]); 5] = [
            (&[], &[]),
            (&["CI-*", "ann", "ci-nightly-*", "anna"], &["ann", "ci-"]),
            (&["qa?", "ci-*", "qa-x*y"], &["ci-", "qa"]),
            (&["ci-*", "*-ci"], &[""]),
            (&["BU\u{308}*"], &["bü"]),
        ];
        for (patterns, expected) in table {
            assert_eq!(Patterns::from_iter(patterns).prefixes(), expected, "{patterns:?}");
        }
    }

    #[test]
    fn finds_the_project_of_patterns() {
        // The patterns, their project, and whether they match all of its mailboxes.
        let table: [(&[&str], Option<&str>, bool); 7] = [
            (&["shop:*"], Some("shop"), true),
            (&["shop:*", "SHOP:bob"], Some("shop"), true),
            (&["shop:bob*"], Some("shop"), false),
            (&["shop:*", "acme:*"], None, true),
            (&["shop:*", "bob"], None, true),
            (&["*"], None, true),
            (&["s*:bob"], None, false),
        ];
        let shop = "shop".parse().unwrap();
        for (patterns, project, covers) in table {
            let list = Patterns::from_iter(patterns);
            assert_eq!(list.project().as_ref().map(Project::as_str), project, "{patterns:?}");
            assert_eq!(list.covers_project(&shop), covers, "{patterns:?}");
        }
    }

    #[test]
    fn entries_are_in_canonical_form() {
        let entries: Vec<String> = Patterns::from_iter(["Example.ORG", "*.deny.com"]).entries().collect();
        assert_eq!(entries, ["example.org", "*.deny.com"]);
    }

    /// The definition of the wildcards.
    fn matches_by_definition(pattern: &str, text: &str) -> bool {
        let without_first = |text: &str| text.chars().next().map(|c| text[c.len_utf8()..].to_owned());
        let Some(rest) = without_first(pattern) else { return text.is_empty() };
        match (pattern.chars().next(), without_first(text)) {
            (Some('*'), after) => {
                matches_by_definition(&rest, text) || after.is_some_and(|text| matches_by_definition(pattern, &text))
            }
            (Some(c), Some(after)) => (c == '?' || text.starts_with(c)) && matches_by_definition(&rest, &after),
            (_, None) | (None, _) => false,
        }
    }

    proptest::proptest! {
        #[test]
        fn captures_complete_the_pattern(pattern in "[ab*?]{0,8}|[aü*]{0,6}", text in "[ab]{0,12}|[aü]{0,8}") {
            let patterns = Patterns::from_iter([&pattern]);
            proptest::prop_assert_eq!(patterns.matches(&text), matches_by_definition(&pattern, &text));
            if let Some(captures) = patterns.captures(&text) {
                let mut captures = captures.into_iter();
                let complete = |c: char| if is_wildcard(c) { captures.next().unwrap() } else { c.to_string() };
                proptest::prop_assert_eq!(pattern.chars().map(complete).collect::<String>(), text);
            }
        }
    }
}
