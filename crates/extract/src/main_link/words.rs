//! The words that speak for and against a link, in the languages of most messages. They are in `words.txt`.

use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// From this character on, scripts write words without spaces.
const FIRST_UNSPACED_CHAR: char = '\u{2e80}';
/// A text with more words is a sentence or a headline, not the text of a button.
const MAX_ACTION_WORDS: usize = 14;
/// In a longer text the action has to be among the first words.
const MAX_SHORT_WORDS: usize = 5;

/// How strongly a text asks the reader to follow the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// It is a step of a procedure: confirming, resetting, accepting.
    Strong,
    /// It shows something: viewing, opening, tracking.
    Weak,
}

/// Social networks and app stores. Messages link to them without asking to.
#[rustfmt::skip] // Several hosts per line.
pub(super) const SOCIAL_HOSTS: [&str; 22] = [
    "facebook.com", "fb.com", "fb.me", "twitter.com", "x.com", "t.co", "instagram.com", "linkedin.com", "youtube.com",
    "youtu.be", "tiktok.com", "pinterest.com", "threads.net", "bsky.app", "mastodon.social", "xing.com", "vk.com",
    "wa.me", "t.me", "apps.apple.com", "itunes.apple.com", "play.google.com",
];

/// The lists of words. Its head describes the format.
const LISTS: &str = include_str!("words.txt");

/// A list of words, folded once.
struct WordList(LazyLock<Vec<String>>);

/// The words of actions.
static STRONG_WORDS: WordList = WordList(LazyLock::new(|| fold_entries("[strong]")));
static WEAK_WORDS: WordList = WordList(LazyLock::new(|| fold_entries("[weak]")));
/// The words that exclude a link.
static EXCLUDED_WORDS: WordList = WordList(LazyLock::new(|| fold_entries("[excluded]")));
/// The words of texts such as "click here": a text of only these says nothing about the link.
static GENERIC_WORDS: WordList = WordList(LazyLock::new(|| fold_entries("[generic]")));
/// The first words of headlines, which ask or explain and do not ask to follow the link.
static HEADLINE_WORDS: WordList = WordList(LazyLock::new(|| fold_entries("[headlines]")));

/// A text in lower case without accents. Its words are separated by one space, and there is a space before the first and
/// after the last one.
pub(super) struct FoldedText(String);

impl FoldedText {
    pub(super) fn new(text: &str) -> Self {
        Self(fold(text))
    }

    /// Returns whether there is no word in the text.
    pub(super) fn is_empty(&self) -> bool {
        self.0.trim().is_empty()
    }

    /// Returns whether the text contains a word that excludes the link.
    pub(super) fn is_excluded(&self) -> bool {
        EXCLUDED_WORDS.is_in(&self.0)
    }

    /// Returns whether the text consists only of words such as "here".
    pub(super) fn is_generic(&self) -> bool {
        let is_generic = |word: &str| GENERIC_WORDS.0.iter().any(|generic| generic.trim() == word);
        self.0.split_whitespace().all(is_generic)
    }

    /// Returns what the text asks the reader to do.
    pub(super) fn action(&self) -> Option<Action> {
        let words = self.0.split_whitespace().count();
        if words > MAX_ACTION_WORDS || HEADLINE_WORDS.starts(&self.0) {
            return None;
        }
        // The text up to the end of the last word that counts.
        let end = self.0.match_indices(' ').nth(MAX_SHORT_WORDS).filter(|_| words > MAX_SHORT_WORDS + 3);
        let start = end.map_or(self.0.as_str(), |(at, _)| &self.0[..=at]);
        if STRONG_WORDS.is_in(start) {
            Some(Action::Strong)
        } else if WEAK_WORDS.is_in(start) {
            Some(Action::Weak)
        } else {
            None
        }
    }
}

impl WordList {
    fn is_in(&self, folded: &str) -> bool {
        self.0.iter().any(|entry| folded.contains(entry.as_str()))
    }

    fn starts(&self, folded: &str) -> bool {
        self.0.iter().any(|entry| folded.starts_with(entry.as_str()))
    }
}

/// Folds the entries of the list with this name. A space before an entry makes it match only at the start of a word.
fn fold_entries(name: &str) -> Vec<String> {
    let fold_entry = |entry: &str| {
        let folded = fold(entry);
        let folded = if entry.ends_with('.') { folded.as_str() } else { folded.trim_end() };
        let is_unspaced = entry.starts_with(|c| c >= FIRST_UNSPACED_CHAR);
        if is_unspaced { folded.trim().to_owned() } else { folded.to_owned() }
    };
    let lines = LISTS.lines().skip_while(|line| *line != name).skip(1).take_while(|line| !line.starts_with('['));
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.flat_map(|line| line.split(", ")).map(fold_entry).collect()
}

fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len() + 2);
    folded.push(' ');
    for c in text.nfkd().filter(|c| !is_combining_mark(*c)).flat_map(char::to_lowercase) {
        if c.is_alphanumeric() {
            folded.push(c);
        } else if !folded.ends_with(' ') {
            folded.push(' ');
        }
    }
    if !folded.ends_with(' ') {
        folded.push(' ');
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_texts() {
        let table = [
            ("", " "),
            ("Confirm!", " confirm "),
            ("  E-Mail  bestätigen » ", " e mail bestatigen "),
            ("Réinitialiser", " reinitialiser "),
            ("ログイン", " ロクイン "),
        ];
        for (text, folded) in table {
            assert_eq!(fold(text), folded, "{text}");
        }
    }

    #[test]
    fn finds_actions() {
        let table = [
            ("Confirm your e-mail address", Some(Action::Strong)),
            ("Passwort zurücksetzen", Some(Action::Strong)),
            ("ログインする", Some(Action::Strong)),
            ("이메일 인증하기", Some(Action::Strong)),
            ("View order", Some(Action::Weak)),
            ("Suivre mon colis", Some(Action::Weak)),
            ("Click here to confirm your subscription to our weekly letter", Some(Action::Strong)),
            ("How to reset your sleep schedule", None),
            ("The committee that wrote this long report will meet again to approve it", None),
            ("Our blog", None),
            ("unconfirmed", None),
            ("Payment terms", None),
        ];
        for (text, action) in table {
            assert_eq!(FoldedText::new(text).action(), action, "{text}");
        }
    }

    #[test]
    fn generic_and_excluded_texts() {
        for text in ["here", "Click here", "hier klicken", "ici", "こちら", "this link", ""] {
            assert!(FoldedText::new(text).is_generic(), "{text}");
        }
        for text in [
            "Unsubscribe",
            "E-Mail abmelden",
            "Se désinscrire",
            "View in browser",
            "AGB",
            "取消订阅",
            "개인정보 처리방침",
        ] {
            assert!(FoldedText::new(text).is_excluded(), "{text}");
        }
        for text in ["Confirm", "View report", "Opening hours", "Agbar"] {
            assert!(!FoldedText::new(text).is_generic() && !FoldedText::new(text).is_excluded(), "{text}");
        }
    }

    #[test]
    fn lists_have_no_blank_entries() {
        for list in [&STRONG_WORDS, &WEAK_WORDS, &EXCLUDED_WORDS, &GENERIC_WORDS, &HEADLINE_WORDS] {
            assert!(!list.0.is_empty());
            assert!(list.0.iter().all(|entry| !entry.trim().is_empty()));
        }
    }
}
