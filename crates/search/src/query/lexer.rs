//! A question in pieces: parentheses, `or`, minus signs, and terms, each of which is a field, a text and maybe a star. What a field
//! means is not known here.

use super::QueryError;

/// A piece, and the byte it starts at.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) at: usize,
    pub(super) piece: Piece<'a>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Open,
    Close,
    Or,
    Minus,
    Term(RawTerm<'a>),
}

/// A term as it is written: `field:text`, `field:"text"*`, `text`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RawTerm<'a> {
    /// What stands before the colon; empty when there is none.
    pub(super) field: &'a str,
    /// What stands between the colon and a text in quotes, as in `header:X-Foo="a b"`.
    pub(super) lead: &'a str,
    /// The text, without its quotes.
    pub(super) text: &'a str,
    /// Where the text starts.
    pub(super) text_at: usize,
    /// Whether a star follows.
    pub(super) star: bool,
    /// Whether it is in quotes.
    pub(super) quoted: bool,
}

/// The pieces of a question, in order.
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The next piece, if there is one.
    pub(super) fn next(&mut self) -> Result<Option<Token<'a>>, QueryError> {
        self.at += self.rest().len() - self.rest().trim_start().len();
        let at = self.at;
        let Some(first) = self.rest().chars().next() else { return Ok(None) };
        let piece = match first {
            '(' => self.sign(Piece::Open),
            ')' => self.sign(Piece::Close),
            // A minus sign that stands alone is punctuation.
            '-' if self.rest()[1..].starts_with(|c: char| !c.is_whitespace() && c != ')') => self.sign(Piece::Minus),
            _ => self.term()?,
        };
        Ok(Some(Token { at, piece }))
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn sign(&mut self, piece: Piece<'a>) -> Piece<'a> {
        self.at += 1;
        piece
    }

    fn term(&mut self) -> Result<Piece<'a>, QueryError> {
        let head = self.bare();
        if let Some(quoted) = self.rest().strip_prefix('"') {
            return self.quoted(head, quoted).map(Piece::Term);
        }
        if head.eq_ignore_ascii_case("or") {
            return Ok(Piece::Or);
        }
        let (field, text) = split_field(head);
        let (text, star) = text.strip_suffix('*').map_or((text, false), |text| (text, true));
        let text_at = self.at - text.len() - usize::from(star);
        if let Some(place) = text.find('*') {
            let problem = "a * can only stand at the end of a word";
            return Err(QueryError::new(self.text, text_at + place, problem));
        }
        Ok(Piece::Term(RawTerm { field, lead: "", text, text_at, star, quoted: false }))
    }

    /// Everything up to what cannot be in a term without quotes.
    fn bare(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '"' | '(' | ')')).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// A term whose text is in quotes, of which the first was seen.
    fn quoted(&mut self, head: &'a str, quoted: &'a str) -> Result<RawTerm<'a>, QueryError> {
        let quote_at = self.at;
        let (field, lead) = split_field(head);
        if !lead.is_empty() && (field.is_empty() || !lead.ends_with('=')) {
            return Err(QueryError::new(self.text, quote_at, "a blank is missing before the quotation"));
        }
        let Some(length) = quoted.find('"') else {
            return Err(QueryError::new(self.text, quote_at, "this quotation is never closed"));
        };
        self.at += length + 2;
        let star = self.rest().starts_with('*');
        self.at += usize::from(star);
        if self.rest().starts_with(|c: char| !c.is_whitespace() && c != ')') {
            return Err(QueryError::new(self.text, self.at, "a blank is missing behind the quotation"));
        }
        Ok(RawTerm { field, lead, text: &quoted[..length], text_at: quote_at + 1, star, quoted: true })
    }
}

/// What stands before the first colon, if that could be the name of a field, and what stands behind it. Times and addresses of
/// the web are no fields.
fn split_field(text: &str) -> (&str, &str) {
    match text.split_once(':') {
        Some((field, value))
            if !field.is_empty() && field.bytes().all(|b| b.is_ascii_alphabetic()) && !value.starts_with("//") =>
        {
            (field, value)
        }
        _ => ("", text),
    }
}
