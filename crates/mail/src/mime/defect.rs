//! Defects of a message, described for readers of the web page. A defect never stops parsing.

use serde::Serialize;

/// The maximum number of defects per message. A hostile message could contain one per byte.
const MAX_DEFECTS: usize = 100;

/// A deviation of a message from the standards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Defect {
    /// The kind of defect, one of the constants of this type.
    pub name: &'static str,
    /// What was found, and how it was interpreted.
    pub detail: String,
    /// Whether content may be missing or wrong in the view.
    pub severe: bool,
}

impl Defect {
    /// Base64 with invalid characters or lines, or with an incomplete end.
    pub const BASE64: &'static str = "Malformed Base64";
    /// Quoted-printable with an invalid escape.
    pub const QUOTED_PRINTABLE: &'static str = "Malformed Quoted-Printable";
    /// Uuencode without its first or last line, or with lines that are too short.
    pub const UUENCODE: &'static str = "Malformed Uuencode";
    /// A Content-Disposition without a valid disposition.
    pub const DISPOSITION: &'static str = "Malformed Content-Disposition";
    /// A header line that is not a field, or a header without an end.
    pub const HEADER: &'static str = "Malformed Header";
    /// A Content-Type without a valid type.
    pub const CONTENT_TYPE: &'static str = "Malformed Content-Type";
    /// A multipart whose boundary is not declared, never occurs or is never closed.
    pub const BOUNDARY: &'static str = "Missing Boundary";
    /// An unknown Content-Transfer-Encoding.
    pub const ENCODING: &'static str = "Content Encoding";
    /// Text that is invalid in its declared charset, or an unknown charset.
    pub const CHARSET: &'static str = "Character Set Conversion";
    /// A header field OTP-Token that is ignored, or that other programs ignore.
    pub const OTP_TOKEN: &'static str = "Malformed OTP-Token";
    /// The body does not contain the code of the header field OTP-Token.
    pub const OTP_TOKEN_TEXT: &'static str = "OTP-Token Not in Text";
    /// The plain text was converted from the HTML.
    pub const TEXT_FROM_HTML: &'static str = "Plain Text from HTML";
    /// The message is deeper, longer or has more parts than the parser supports.
    pub const LIMIT: &'static str = "Limit Exceeded";
}

/// A bounded list of defects.
#[derive(Debug, Clone, Default)]
pub(super) struct Defects(Vec<Defect>);

impl Defects {
    /// Adds a defect that does not affect the content.
    pub(super) fn add_minor(&mut self, name: &'static str, detail: impl Into<String>) {
        self.push(name, detail.into(), false);
    }

    /// Adds a defect because of which content may be missing or wrong.
    pub(super) fn add_severe(&mut self, name: &'static str, detail: impl Into<String>) {
        self.push(name, detail.into(), true);
    }

    pub(super) fn into_vec(self) -> Vec<Defect> {
        self.0
    }

    fn push(&mut self, name: &'static str, detail: String, severe: bool) {
        let defect = Defect { name, detail, severe };
        // The same defect is not repeated for every part.
        if self.0.len() < MAX_DEFECTS && !self.0.contains(&defect) {
            self.0.push(defect);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_duplicate_defects() {
        let mut defects = Defects::default();
        defects.add_minor(Defect::HEADER, "same");
        defects.add_minor(Defect::HEADER, "same");
        assert_eq!(defects.into_vec().len(), 1);
    }

    #[test]
    fn limits_the_number_of_defects() {
        let mut defects = Defects::default();
        for n in 0..10_000 {
            defects.add_minor(Defect::HEADER, format!("line {n}"));
        }
        assert_eq!(defects.into_vec().len(), MAX_DEFECTS);
    }
}
