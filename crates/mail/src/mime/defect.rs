//! What is wrong with a mail, said in words that a reader of the web page understands. A defect is a note beside what
//! could be read; it never stops anything.

/// How many defects are kept for one mail; a hostile mail could hold one per byte.
const MAX_DEFECTS: usize = 100;

/// One thing in a mail that is not as the standards say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defect {
    /// The kind of defect, one of the constants of this type.
    pub name: &'static str,
    /// What was found and what was made of it.
    pub detail: String,
    /// Whether something of the mail may be missing or wrong in what is shown.
    pub severe: bool,
}

impl Defect {
    /// Base64 with foreign characters or lines, or an incomplete end.
    pub const BASE64: &'static str = "Malformed Base64";
    /// Quoted-printable with an escape that is none.
    pub const QUOTED_PRINTABLE: &'static str = "Malformed Quoted-Printable";
    /// Uuencode without its first or last line, or with lines that are too short.
    pub const UUENCODE: &'static str = "Malformed Uuencode";
    /// A Content-Disposition that names none.
    pub const DISPOSITION: &'static str = "Malformed Content-Disposition";
    /// A header line that is no field, or a header without its end.
    pub const HEADER: &'static str = "Malformed Header";
    /// A Content-Type that names no type.
    pub const CONTENT_TYPE: &'static str = "Malformed Content-Type";
    /// A multipart whose boundary is not declared, never occurs or is never closed.
    pub const BOUNDARY: &'static str = "Missing Boundary";
    /// A Content-Transfer-Encoding that is not known.
    pub const ENCODING: &'static str = "Content Encoding";
    /// Text that its declared charset cannot decode, or a charset that is not known.
    pub const CHARSET: &'static str = "Character Set Conversion";
    /// The plain text was made from the HTML.
    pub const TEXT_FROM_HTML: &'static str = "Plain Text from HTML";
    /// The mail is deeper, longer or has more parts than is looked at.
    pub const LIMIT: &'static str = "Limit Exceeded";
}

/// A bounded list of defects.
#[derive(Debug, Clone, Default)]
pub(super) struct Defects(Vec<Defect>);

impl Defects {
    /// Notes something that loses nothing.
    pub(super) fn add_minor(&mut self, name: &'static str, detail: impl Into<String>) {
        self.push(name, detail.into(), false);
    }

    /// Notes something by which content may be missing or wrong.
    pub(super) fn add_severe(&mut self, name: &'static str, detail: impl Into<String>) {
        self.push(name, detail.into(), true);
    }

    pub(super) fn into_vec(self) -> Vec<Defect> {
        self.0
    }

    fn push(&mut self, name: &'static str, detail: String, severe: bool) {
        let defect = Defect { name, detail, severe };
        // What is said once need not be said for every part.
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
