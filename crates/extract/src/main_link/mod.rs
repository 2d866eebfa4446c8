//! The main link of a message: the one that the message asks to follow, such as the link to confirm an address or to
//! reset a password. Most messages with several similar links have none. A wrong main link does more harm than a missing
//! one, so a link has to be clearly better than all others.
//!
//! `words` has the words that speak for and against a link, `button` detects links that look like buttons.

mod button;
mod words;

use std::collections::{HashMap, HashSet};

use crate::link::{Link, LinkScheme, LinkSource};
use words::{Action, FoldedText};

pub(crate) use button::{ButtonStyle, is_button_tag};

/// A message with more links than this has no main link.
const MAX_CANDIDATES: usize = 200;
/// The maximum length of a link text that is examined, in bytes. A longer one is a paragraph.
const MAX_TEXT_BYTES: usize = 256;

/// A link that looks like a button.
const BUTTON_SCORE: i32 = 4;
/// A link with words such as "confirm", and one with words such as "view".
const STRONG_ACTION_SCORE: i32 = 4;
const WEAK_ACTION_SCORE: i32 = 3;
/// A URL with a word such as "verify".
const URL_ACTION_SCORE: i32 = 2;
/// A complete URL as the text of the link, which is for copying. Senders write few of them.
const SHOWN_URL_SCORE: i32 = 2;
/// The home page of a site is hardly ever what a message is about.
const HOME_PAGE_SCORE: i32 = -3;

/// The score that the only link of a message needs, and the best of several.
const MIN_SCORE_ALONE: i32 = 2;
const MIN_SCORE: i32 = 3;
/// The distance to the second-best link.
const MIN_MARGIN: i32 = 2;

/// What the surroundings of a link say about it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Evidence {
    /// Whether the link looks like a button.
    pub(crate) is_button: bool,
    /// The text around the link: of its block, or of its line.
    pub(crate) context: String,
    /// Whether the link is in the signature of a plain text.
    pub(crate) is_in_signature: bool,
}

/// Returns the index of the main link. `evidence` belongs to the links at the same indices.
pub(crate) fn choose(links: &[Link], evidence: &[Evidence]) -> Option<usize> {
    let list_links: HashSet<&str> =
        links.iter().filter(|link| link.source == LinkSource::Header).map(|link| link.href.as_str()).collect();
    let is_http = |link: &Link, source| link.source == source && link.kind == LinkScheme::Http;
    // The plain text repeats the links of the HTML.
    let has_html_links = links.iter().any(|link| is_http(link, LinkSource::Html));
    let source = if has_html_links { LinkSource::Html } else { LinkSource::Text };
    if links.iter().filter(|link| is_http(link, source)).count() > MAX_CANDIDATES {
        return None;
    }
    let mut targets = Targets::default();
    for (index, (link, evidence)) in links.iter().zip(evidence).enumerate() {
        if !is_http(link, source) || list_links.contains(link.href.as_str()) {
            continue;
        }
        if let Some(candidate) = Candidate::new(index, link, evidence) {
            targets.add(&link.href, candidate);
        }
    }
    targets.best()
}

/// A link that can be the main link.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    index: usize,
    score: i32,
    /// Whether the text of the link is its URL.
    is_shown_url: bool,
}

impl Candidate {
    /// Returns `None` if the link cannot be the main link.
    fn new(index: usize, link: &Link, evidence: &Evidence) -> Option<Self> {
        let url = Url::new(&link.href)?;
        let is_shown_url = link.source == LinkSource::Text || link.text.contains("://");
        let text = FoldedText::new(&link.text[..link.text.floor_char_boundary(MAX_TEXT_BYTES)]);
        let context = FoldedText::new(&evidence.context);
        // A text such as "here" says nothing itself. Then the sentence around it counts.
        let described = if is_shown_url || text.is_generic() { &context } else { &text };
        let is_excluded = evidence.is_in_signature || described.is_excluded() || url.is_excluded();
        let action = described.action();
        let is_social = url.is_social() && action.is_none();
        if is_excluded || is_social || (text.is_empty() && !evidence.is_button) {
            return None;
        }
        let score = [
            match action {
                Some(Action::Strong) => STRONG_ACTION_SCORE,
                Some(Action::Weak) => WEAK_ACTION_SCORE,
                None => 0,
            },
            if evidence.is_button { BUTTON_SCORE } else { 0 },
            if url.words().action() == Some(Action::Strong) { URL_ACTION_SCORE } else { 0 },
            if is_shown_url { SHOWN_URL_SCORE } else { 0 },
            if url.is_home_page() { HOME_PAGE_SCORE } else { 0 },
        ];
        let score = score.iter().sum();
        (score >= 0).then_some(Self { index, score, is_shown_url })
    }
}

/// The candidates by their URLs. A message can have several links to one URL, such as a button and the URL to copy.
#[derive(Default)]
struct Targets<'l> {
    candidates: Vec<Candidate>,
    by_url: HashMap<&'l str, usize>,
}

impl<'l> Targets<'l> {
    fn add(&mut self, href: &'l str, candidate: Candidate) {
        match self.by_url.get(href) {
            Some(&at) if self.candidates[at].score < candidate.score => self.candidates[at] = candidate,
            Some(_) => {}
            None => {
                self.by_url.insert(href, self.candidates.len());
                self.candidates.push(candidate);
            }
        }
    }

    /// Returns the index of the best link, if it is clearly the best.
    fn best(mut self) -> Option<usize> {
        // With tracking, the URL to copy can differ from that of the button.
        if self.candidates.iter().any(|candidate| !candidate.is_shown_url && candidate.score >= MIN_SCORE) {
            self.candidates.retain(|candidate| !candidate.is_shown_url);
        }
        self.candidates.sort_by_key(|candidate| -candidate.score);
        let is_main = match self.candidates.as_slice() {
            [] => false,
            [only] => only.score >= MIN_SCORE_ALONE,
            [best, second, ..] => best.score >= MIN_SCORE && best.score - second.score >= MIN_MARGIN,
        };
        self.candidates.first().filter(|_| is_main).map(|best| best.index)
    }
}

/// The parts of a URL that say something about its target.
struct Url<'l> {
    host: &'l str,
    /// The path and the query, without the first slash.
    path: &'l str,
    words: FoldedText,
}

impl<'l> Url<'l> {
    fn new(href: &'l str) -> Option<Self> {
        let (_, rest) = href.split_once("://")?;
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let host = authority.rsplit('@').next().unwrap_or_default().split(':').next().unwrap_or_default();
        let path = path.trim_start_matches('/');
        Some(Self { host, path, words: FoldedText::new(&path[..path.floor_char_boundary(MAX_TEXT_BYTES)]) })
    }

    fn words(&self) -> &FoldedText {
        &self.words
    }

    fn is_excluded(&self) -> bool {
        self.words.is_excluded()
    }

    fn is_home_page(&self) -> bool {
        self.path.is_empty()
    }

    /// Returns whether the host is a social network or an app store.
    fn is_social(&self) -> bool {
        words::SOCIAL_HOSTS.iter().any(|social| {
            let rest = self.host.len().checked_sub(social.len()).filter(|&at| self.host.is_char_boundary(at));
            rest.is_some_and(|at| {
                self.host[at..].eq_ignore_ascii_case(social) && (at == 0 || self.host[..at].ends_with('.'))
            })
        })
    }
}

#[cfg(test)]
mod tests;
