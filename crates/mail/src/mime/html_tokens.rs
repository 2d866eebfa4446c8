//! A linear scanner for the tags and texts of an HTML document. It follows the tokenizer of the HTML standard closely
//! enough to find the tags that a browser finds (comments, quoted attributes, raw text). It builds no tree.

use memchr::memmem;

/// A token of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'a> {
    /// Text between tags. Character references are not resolved.
    Text(&'a str),
    /// A start tag: its name and its attributes, as written.
    StartTag(&'a str, &'a str),
    /// The content of a raw text element, which contains no tags. It follows the start tag.
    RawText(&'a str),
    /// The name of an end tag, as written.
    EndTag(&'a str),
}

/// An iterator over the tokens of a document.
pub struct Tokens<'a> {
    rest: &'a str,
    /// The content of the raw text element whose start tag was returned last.
    raw: Option<&'a str>,
    /// Whether `noscript` is a raw text element.
    has_scripts: bool,
}

impl<'a> Tokens<'a> {
    /// Starts at the beginning of a document.
    pub fn new(html: &'a str) -> Self {
        Self { rest: html, raw: None, has_scripts: true }
    }

    /// Starts at the beginning of a document without scripts, in which `noscript` contains markup.
    pub fn without_scripts(html: &'a str) -> Self {
        Self { has_scripts: false, ..Self::new(html) }
    }

    /// Removes the first `len` bytes from the rest of the document and returns them.
    fn advance(&mut self, len: usize) -> &'a str {
        let (head, tail) = self.rest.split_at_checked(len).unwrap_or((self.rest, ""));
        self.rest = tail;
        head
    }

    /// Skips to the position after the next occurrence of `end`, or to the end of the document.
    fn skip_past(&mut self, end: &str) {
        let len = memmem::find(self.rest.as_bytes(), end.as_bytes()).map_or(self.rest.len(), |at| at + end.len());
        self.advance(len);
    }

    fn skip_comment(&mut self) {
        self.advance("<!--".len());
        for empty in [">", "->"] {
            if self.rest.starts_with(empty) {
                self.advance(empty.len());
                return;
            }
        }
        loop {
            self.skip_past("--");
            // Only the last two dashes of `--->` end the comment.
            self.rest = self.rest.trim_start_matches('-');
            if self.rest.is_empty() || self.rest.starts_with('>') || self.rest.starts_with("!>") {
                return self.skip_past(">");
            }
        }
    }

    /// Removes and returns the content of a raw text element, up to its end tag.
    fn take_raw_text(&mut self, name: &str) -> &'a str {
        let end = memmem::find_iter(self.rest.as_bytes(), b"</").find(|&at| {
            let tag = &self.rest[at + 2..];
            let is_named = tag.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name));
            is_named && tag[name.len()..].bytes().next().is_none_or(ends_tag_name)
        });
        self.advance(end.unwrap_or(self.rest.len()))
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        if let Some(raw) = self.raw.take() {
            return Some(Token::RawText(raw));
        }
        loop {
            let bytes = self.rest.as_bytes();
            let first = *bytes.first()?;
            if first != b'<' {
                let len = memchr::memchr(b'<', bytes).unwrap_or(bytes.len());
                return Some(Token::Text(self.advance(len)));
            }
            let second = bytes.get(1).copied().unwrap_or_default();
            let third = bytes.get(2).copied().unwrap_or_default();
            if second.is_ascii_alphabetic() {
                let (name, attributes) = self.read_tag(1);
                if is_raw_text_element(name) && (self.has_scripts || !name.eq_ignore_ascii_case("noscript")) {
                    self.raw = Some(self.take_raw_text(name));
                }
                return Some(Token::StartTag(name, attributes));
            } else if second == b'/' && third.is_ascii_alphabetic() {
                return Some(Token::EndTag(self.read_tag(2).0));
            } else if bytes.starts_with(b"<!--") {
                self.skip_comment();
            } else if matches!(second, b'!' | b'?' | b'/') {
                self.skip_past(">");
            } else {
                return Some(Token::Text(self.advance(1)));
            }
        }
    }
}

impl<'a> Tokens<'a> {
    /// Reads a tag whose name starts at `start`. Returns its name and its attributes.
    fn read_tag(&mut self, start: usize) -> (&'a str, &'a str) {
        let bytes = self.rest.as_bytes();
        let name_end = bytes[start..].iter().position(|&b| ends_tag_name(b)).map_or(bytes.len(), |len| start + len);
        let mut attributes = Attributes::new(&self.rest[name_end..]);
        for _ in &mut attributes {}
        let end = name_end + attributes.pos;
        let tag = self.advance((end + 1).min(bytes.len()));
        (&tag[start..name_end], &tag[name_end..end])
    }
}

/// Returns the value of the attribute of this name. Character references are not resolved.
pub fn find_attribute<'a>(attributes: &'a str, name: &str) -> Option<&'a str> {
    let found = Attributes::new(attributes).find(|(found, _)| found.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value)
}

/// An iterator over the attributes of a tag, as names and values, up to the `>` that ends the tag.
pub struct Attributes<'a> {
    text: &'a str,
    pos: usize,
}

impl<'a> Attributes<'a> {
    /// Starts after the name of a tag.
    pub fn new(text: &'a str) -> Self {
        Self { text, pos: 0 }
    }

    /// Advances to the first byte that satisfies `ends`. Returns the skipped text.
    fn take_until(&mut self, ends: impl Fn(u8) -> bool) -> &'a str {
        let start = self.pos;
        let len = self.text.as_bytes()[start..].iter().position(|&b| ends(b));
        self.pos = len.map_or(self.text.len(), |len| start + len);
        &self.text[start..self.pos]
    }

    fn skip_whitespace(&mut self) {
        self.take_until(|b| !b.is_ascii_whitespace());
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.pos).copied()
    }

    /// Reads a value after the equals sign. Quotes are special only at the start of a value.
    fn read_value(&mut self) -> &'a str {
        match self.peek() {
            Some(quote @ (b'"' | b'\'')) => {
                self.pos += 1;
                let value = self.take_until(|b| b == quote);
                self.pos = (self.pos + 1).min(self.text.len());
                value
            }
            _ => self.take_until(|b| b.is_ascii_whitespace() || b == b'>'),
        }
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        self.take_until(|b| !b.is_ascii_whitespace() && b != b'/');
        if self.peek()? == b'>' {
            return None;
        }
        let start = self.pos;
        // An equals sign at the start of a name is part of the name.
        self.pos += usize::from(self.peek() == Some(b'='));
        self.take_until(|b| b.is_ascii_whitespace() || matches!(b, b'/' | b'>' | b'='));
        let name = &self.text[start..self.pos];
        self.skip_whitespace();
        if self.peek() != Some(b'=') {
            return Some((name, ""));
        }
        self.pos += 1;
        self.skip_whitespace();
        Some((name, self.read_value()))
    }
}

/// Returns whether the byte ends the name of a tag.
fn ends_tag_name(b: u8) -> bool {
    b.is_ascii_whitespace() || matches!(b, b'/' | b'>')
}

/// Returns whether the content of the element is not markup, or is not displayed.
fn is_raw_text_element(name: &str) -> bool {
    ["script", "style", "textarea", "title", "iframe", "noembed", "noframes", "noscript", "xmp"]
        .iter()
        .any(|raw| raw.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format_tokens(html: &str) -> String {
        let token = |token| match token {
            Token::Text(text) => format!("[{text}]"),
            Token::StartTag(name, _) => format!("<{name}>"),
            Token::RawText(text) => format!("({text})"),
            Token::EndTag(name) => format!("</{name}>"),
        };
        Tokens::new(html).map(token).collect()
    }

    #[test]
    fn scans_tokens() {
        let table = [
            ("a<b>c</b>d", "[a]<b>[c]</b>[d]"),
            ("<a href=\"x>y\" title='>'>z", "<a>[z]"),
            ("<a href=x\"y>z", "<a>[z]"),
            ("<a \"x>y\">z", "<a>[y\">z]"),
            ("<br/><img src=x/>z", "<br><img>[z]"),
            ("<!-- <b> -->x", "[x]"),
            ("<!--><b>x", "<b>[x]"),
            ("<!---><b>x", "<b>[x]"),
            ("<!-- a --!><b>x", "<b>[x]"),
            ("<!-- a ---><b>x", "<b>[x]"),
            ("<!-- a -----x- -- > ---!><b>x", "<b>[x]"),
            ("<!doctype html><?x?></ >x", "[x]"),
            ("<script>if (a<b) '</div>'</SCRIPT>x", "<script>(if (a<b) '</div>')</SCRIPT>[x]"),
            ("<style>a</styles></style/>x", "<style>(a</styles>)</style>[x]"),
            ("<style>never closed <b>", "<style>(never closed <b>)"),
            ("<title></title>", "<title>()</title>"),
            ("1 < 2 <3", "[1 ][<][ 2 ][<][3]"),
            ("<a never closed", "<a>"),
            ("<!-- never closed", ""),
            ("<a é=ü>x", "<a>[x]"),
            ("é<é>", "[é][<][é>]"),
        ];
        for (html, tokens) in table {
            assert_eq!(format_tokens(html), tokens, "{html}");
        }
    }

    #[test]
    fn finds_attributes() {
        let table = [
            (" href=\"x y\" b", Some("x y")),
            (" a b='>' HREF = x/y", Some("x/y")),
            (" a=b/href='x'", None),
            (" xhref=1", None),
            (" =href=1", None),
            (" href", Some("")),
            (" href=\"never closed", Some("never closed")),
        ];
        for (attributes, value) in table {
            assert_eq!(find_attribute(attributes, "href"), value, "{attributes}");
        }
    }

    /// A quadratic algorithm needs minutes for these documents, a linear one a moment.
    #[test]
    fn scanning_is_linear() {
        // The start, the repeated piece and the end.
        let families = [
            ("<!--", "-", "x"),
            ("<!--", "--", "x-->"),
            ("<!--", "->", ""),
            ("<!--", "--!", "x"),
            ("", "<!--", ""),
            ("", "<!-", ""),
            ("", "<!", ""),
            ("", "<?", "x"),
            ("", "</", "x"),
            ("", "<", ""),
            ("", "<![CDATA[", "]]"),
            ("<style>", "</style", "x"),
            ("<style>", "</", "x"),
            ("", "<title></title", "x"),
            ("", "<a ", "x"),
            ("", "<a b='", "x"),
            ("", "<a b=\"'", "x"),
            ("<a ", "b=c ", ""),
            ("<a ", "=", ""),
            ("<a ", "/", "x"),
            ("<a b", " ", "x"),
            ("<a b=", " ", "x"),
            ("<a b='", "\"", ""),
            ("<", "a", ""),
        ];
        for (start, piece, end) in families {
            let html = format!("{start}{}{end}", piece.repeat((1 << 19) / piece.len()));
            let mut seen = 0;
            for token in Tokens::new(&html) {
                seen += match token {
                    Token::Text(text) | Token::RawText(text) | Token::EndTag(text) => text.len(),
                    Token::StartTag(name, attributes) => name.len() + attributes.len(),
                };
            }
            assert!(seen <= html.len(), "{start} {piece} {end}");
        }
    }
}
