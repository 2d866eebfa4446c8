//! Splits a query into tokens: parentheses, `or`, minus signs, and terms. A term is a field, a text and an optional
//! star. The lexer does not know the fields.

use super::QueryError;

/// A token, and the byte where it starts.
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

/// A term as written: `field:text`, `field:"text"*`, `text`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RawTerm<'a> {
    /// The name before the colon; empty if there is none.
    pub(super) field: &'a str,
    /// The text between the colon and the opening quotation mark, as in `header:X-Foo="a b"`.
    pub(super) before_quote: &'a str,
    /// The text without quotation marks.
    pub(super) text: &'a str,
    /// The byte where the text starts.
    pub(super) text_offset: usize,
    /// True if a star follows.
    pub(super) has_star: bool,
    /// True if the text is in quotation marks.
    pub(super) is_quoted: bool,
}

/// An iterator over the tokens of a query.
pub(super) struct Lexer<'a> {
    text: &'a str,
    offset: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, offset: 0 }
    }

    /// Returns the next token, or `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Token<'a>>, QueryError> {
        self.offset += self.rest().len() - self.rest().trim_start().len();
        let offset = self.offset;
        let Some(first) = self.rest().chars().next() else { return Ok(None) };
        let kind = match first {
            '(' => self.single_char(TokenKind::Open),
            ')' => self.single_char(TokenKind::Close),
            // A minus sign that stands alone is punctuation.
            '-' if self.rest()[1..].starts_with(|c: char| !c.is_whitespace() && c != ')') => {
                self.single_char(TokenKind::Minus)
            }
            _ => self.read_term()?,
        };
        Ok(Some(Token { offset, kind }))
    }

    fn rest(&self) -> &'a str {
        &self.text[self.offset..]
    }

    fn single_char(&mut self, kind: TokenKind<'a>) -> TokenKind<'a> {
        self.offset += 1;
        kind
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
        let (text, has_star) = text.strip_suffix('*').map_or((text, false), |text| (text, true));
        let text_offset = self.offset - text.len() - usize::from(has_star);
        if let Some(star_offset) = text.find('*') {
            let message = "* is allowed only at the end of a word";
            return Err(QueryError::new(self.text, text_offset + star_offset, message));
        }
        Ok(TokenKind::Term(RawTerm { field, before_quote: "", text, text_offset, has_star, is_quoted: false }))
    }

    /// Reads up to a character that cannot be in a term without quotation marks.
    fn read_bare(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '"' | '(' | ')')).unwrap_or(rest.len());
        self.offset += end;
        &rest[..end]
    }

    /// Reads a term after its opening quotation mark.
    fn read_quoted(&mut self, head: &'a str, quoted: &'a str) -> Result<RawTerm<'a>, QueryError> {
        let quote_offset = self.offset;
        let (field, before_quote) = split_field(head);
        if !before_quote.is_empty() && (field.is_empty() || !before_quote.ends_with('=')) {
            return Err(QueryError::new(
                self.text,
                quote_offset,
                "a space is missing before the opening quotation mark",
            ));
        }
        let Some(length) = quoted.find('"') else {
            return Err(QueryError::new(self.text, quote_offset, "this quotation mark is never closed"));
        };
        self.offset += length + 2;
        let has_star = self.rest().starts_with('*');
        self.offset += usize::from(has_star);
        if self.rest().starts_with(|c: char| !c.is_whitespace() && c != ')') {
            return Err(QueryError::new(self.text, self.offset, "a space is missing after the closing quotation mark"));
        }
        Ok(RawTerm {
            field,
            before_quote,
            text: &quoted[..length],
            text_offset: quote_offset + 1,
            has_star,
            is_quoted: true,
        })
    }
}

/// Splits at the first colon, if a field name precedes it. Times and URLs have no field.
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
