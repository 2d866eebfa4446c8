//! Collection of codes: merges the same code of several sources, and converts weights to scores.

use std::collections::HashMap;

use super::otp_token::without_separators;
use super::{Code, CodeSource};

/// The maximum number of codes that are returned.
const MAX_CODES: usize = 20;
/// Candidates with a lower weight are dropped.
const MIN_WEIGHT: f64 = 0.06;
/// The weight of a code in a link. A reader who clicks the link does not need to enter it.
const LINK_WEIGHT: f64 = 0.2;
/// The bonus of a code that is also in the subject or in a link.
const REPEAT_BONUS: f64 = 0.05;

/// The findings in their order, and their indices by code. Codes that differ only in dashes are the same.
#[derive(Default)]
pub(super) struct Findings {
    index_by_code: HashMap<String, usize>,
    findings: Vec<Finding>,
}

/// A code at its occurrence with the highest weight.
struct Finding {
    code: Code,
    weight: f64,
    in_subject: bool,
    in_link: bool,
}

impl Findings {
    /// Adds a code of a text. `context` returns the words before and after it.
    pub(super) fn add(
        &mut self,
        code: &str,
        weight: f64,
        source: CodeSource,
        context: impl FnOnce() -> (String, String),
    ) {
        if weight < MIN_WEIGHT {
            return;
        }
        let finding = self.entry(code, source);
        finding.in_subject |= source == CodeSource::Subject;
        if weight > finding.weight {
            let (before, after) = context();
            finding.code = Code { code: code.to_owned(), score: 0.0, before, after, source, origin: None };
            finding.weight = weight;
        }
    }

    /// Adds a code of a link.
    pub(super) fn add_from_link(&mut self, code: &str, source: CodeSource) {
        self.add(code, LINK_WEIGHT, source, Default::default);
        self.entry(code, source).in_link = true;
    }

    /// Returns the code of the header, then the codes with their scores, the highest score first. Codes of equal score are
    /// in the order in which they were found. The code of the header is not repeated.
    pub(super) fn into_ranked(self, header_code: Option<Code>) -> Vec<Code> {
        let mut codes: Vec<Code> = self.findings.into_iter().map(Finding::into_code).collect();
        codes.sort_by(|left, right| right.score.total_cmp(&left.score));
        if let Some(header_code) = header_code {
            let repeated = without_separators(&header_code.code);
            codes.retain(|code| without_separators(&code.code) != repeated);
            codes.insert(0, header_code);
        }
        codes.truncate(MAX_CODES);
        codes
    }

    /// Returns the finding of a code. Creates an empty one if the code is new.
    fn entry(&mut self, code: &str, source: CodeSource) -> &mut Finding {
        let at = *self.index_by_code.entry(code.replace('-', "")).or_insert(self.findings.len());
        if at == self.findings.len() {
            let (before, after) = Default::default();
            let code = Code { code: code.to_owned(), score: 0.0, before, after, source, origin: None };
            self.findings.push(Finding { code, weight: 0.0, in_subject: false, in_link: false });
        }
        &mut self.findings[at]
    }
}

impl Finding {
    fn into_code(self) -> Code {
        let is_repeated =
            self.in_subject && self.code.source != CodeSource::Subject || self.in_link && self.weight > LINK_WEIGHT;
        Code { score: score(self.weight + if is_repeated { REPEAT_BONUS } else { 0.0 }), ..self.code }
    }
}

/// Converts a weight to a score between 0 and 1 with three digits. The score grows with the weight, more and more
/// slowly. 0.45 becomes 0.5.
fn score(weight: f64) -> f64 {
    const STEEPNESS: f64 = 1.54;
    let score = 1.0 - (-STEEPNESS * weight).exp();
    (score * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_the_same_code_of_several_sources() {
        let mut findings = Findings::default();
        let words = |word: &str| (word.to_owned(), String::new());
        findings.add("1111", 0.5, CodeSource::Text, || words("text"));
        findings.add("AB-CD1", 0.7, CodeSource::Text, || words("dash"));
        findings.add("ABCD1", 0.6, CodeSource::Html, || words("none"));
        findings.add("2222", 0.5, CodeSource::Subject, || words("subject"));
        findings.add("2222", 0.8, CodeSource::Html, || words("html"));
        findings.add("3333", MIN_WEIGHT / 2.0, CodeSource::Text, || words("too little"));
        findings.add_from_link("4444", CodeSource::Html);
        let found = findings.into_ranked(None);
        let ranked: Vec<_> = found.iter().map(|code| (code.code.as_str(), code.before.as_str(), code.source)).collect();
        let expected = [
            ("2222", "html", CodeSource::Html),
            ("AB-CD1", "dash", CodeSource::Text),
            ("1111", "text", CodeSource::Text),
            ("4444", "", CodeSource::Html),
        ];
        assert_eq!(ranked, expected);
        assert!(found[0].score > score(0.8), "it is in the subject as well");
    }

    #[test]
    fn scores_are_between_0_and_1() {
        let table = [(0.0, "0"), (0.45, "0.5"), (1.0, "0.786"), (100.0, "1")];
        for (weight, expected) in table {
            assert_eq!(score(weight).to_string(), expected);
        }
    }
}
