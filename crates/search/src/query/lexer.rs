//! A question in pieces: parentheses, `or`, minus signs, and terms, each of which is a field, a text and maybe a star. What a field
//! means is not known here.

use super::QueryError;

/// A piece, and the byte it starts at.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) offset: usize,
    pub(super) kind: TokenKind<'a>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum TokenKind<'a> {
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
    pub(super) before_quote: &'a str,
    /// The text, without its quotes.
    pub(super) text: &'a str,
    /// Where the text starts.
    pub(super) text_offset: usize,
    /// Whether a star follows.
    pub(super) has_star: bool,
    /// Whether it is in quotes.
    pub(super) is_quoted: bool,
}

/// The pieces of a question, in order.
pub(super) struct Lexer<'a> {
    text: &'a str,
    offset: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, offset: 0 }
    }

    /// The next piece, if there is one.
    pub(super) fn next(&mut self) -> Result<Option<Token<'a>>, QueryError> {
        self.offset += self.rest().len() - self.rest().trim_start().len();
        let at = self.offset;
        let Some(first) = self.rest().chars().next() else { return Ok(None) };
        let piece = match first {
            '(' => self.single_char(TokenKind::Open),
            ')' => self.single_char(TokenKind::Close),
            // A minus sign that stands alone is punctuation.
            '-' if self.rest()[1..].starts_with(|c: char| !c.is_whitespace() && c != ')') => {
                self.single_char(TokenKind::Minus)
            }
            _ => self.read_term()?,
        };
        Ok(Some(Token { offset: at, kind: piece }))
    }

    fn rest(&self) -> &'a str {
        &self.text[self.offset..]
    }

    fn single_char(&mut self, piece: TokenKind<'a>) -> TokenKind<'a> {
        self.offset += 1;
        piece
    }

    fn read_term(&mut self) -> Result<TokenKind<'a>, QueryError> {
        let head = self.read_bare();
        if let Some(quoted) = self.rest().strip_prefix('"') {
            return self.read_quoted(head, quoted).map(TokenKind::Term);
        }
        if head.eq_ignore_ascii_case("or") {
            return Ok(TokenKind::Or);
        }
        let (field, text) = split_field(head);
        let (text, star) = text.strip_suffix('*').map_or((text, false), |text| (text, true));
        let text_at = self.offset - text.len() - usize::from(star);
        if let Some(place) = text.find('*') {
            let problem = "a * can only stand at the end of a word";
            return Err(QueryError::new(self.text, text_at + place, problem));
        }
        Ok(TokenKind::Term(RawTerm {
            field,
            before_quote: "",
            text,
            text_offset: text_at,
            has_star: star,
            is_quoted: false,
        }))
    }

    /// Everything up to what cannot be in a term without quotes.
    fn read_bare(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '"' | '(' | ')')).unwrap_or(rest.len());
        self.offset += end;
        &rest[..end]
    }

    /// A term whose text is in quotes, of which the first was seen.
    fn read_quoted(&mut self, head: &'a str, quoted: &'a str) -> Result<RawTerm<'a>, QueryError> {
        let quote_at = self.offset;
        let (field, lead) = split_field(head);
        if !lead.is_empty() && (field.is_empty() || !lead.ends_with('=')) {
            return Err(QueryError::new(self.text, quote_at, "a blank is missing before the quotation"));
        }
        let Some(length) = quoted.find('"') else {
            return Err(QueryError::new(self.text, quote_at, "this quotation is never closed"));
        };
        self.offset += length + 2;
        let star = self.rest().starts_with('*');
        self.offset += usize::from(star);
        if self.rest().starts_with(|c: char| !c.is_whitespace() && c != ')') {
            return Err(QueryError::new(self.text, self.offset, "a blank is missing behind the quotation"));
        }
        Ok(RawTerm {
            field,
            before_quote: lead,
            text: &quoted[..length],
            text_offset: quote_at + 1,
            has_star: star,
            is_quoted: true,
        })
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
