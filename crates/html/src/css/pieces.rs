//! CSS cut into pieces, after the tokenizer of CSS Syntax (section 4): as far as needed to know words from strings,
//! comments and addresses, whatever they are escaped like. Linear, and nothing is nested.

/// A piece of a style sheet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Comment,
    /// A name, a number with its unit, or a name behind `#`, which a parenthesis does not make to a function; as written.
    Word(&'a str),
    /// A name and the parenthesis behind it, without that.
    Function(&'a str),
    /// A name behind `@`, as written and without it.
    AtWord(&'a str),
    /// A string with its quotes.
    Text(&'a str),
    /// What stands in `url()`, without quotes, as written.
    Url(&'a str),
    /// A single character, a run of whitespace, or `<!--`.
    Other(&'a str),
}

/// The pieces of a style sheet in order.
#[derive(Clone)]
pub(super) struct Pieces<'a> {
    rest: &'a str,
}

impl<'a> Pieces<'a> {
    pub(super) fn new(css: &'a str) -> Self {
        Self { rest: css }
    }

    fn cut(&mut self, len: usize) -> &'a str {
        let (head, tail) = self.rest.split_at(len);
        self.rest = tail;
        head
    }

    fn skip_whitespace(&mut self) {
        self.rest = self.rest.trim_start_matches(is_whitespace);
    }

    /// Cuts off what is before the first of the characters that is not escaped; all of it, if there is none.
    fn cut_before(&mut self, ends: &[char]) -> &'a str {
        let mut end = 0;
        while let Some(len) = self.rest[end..].find(|c| c == '\\' || ends.contains(&c)) {
            end += len;
            if !self.rest[end..].starts_with('\\') {
                return self.cut(end);
            }
            // A line break ends nothing here when it is escaped, or ends an escape itself.
            end += escape(&self.rest[end..]).map_or(2, |(_, len)| len);
        }
        self.cut(self.rest.len())
    }

    /// A string, from its quote on. A line break that is not escaped ends it too.
    fn string(&mut self) -> &'a str {
        let whole = self.rest;
        let quote = if self.cut(1) == "'" { '\'' } else { '"' };
        self.cut_before(&[quote, '\n', '\r', '\u{c}']);
        if self.rest.starts_with(quote) {
            self.cut(1);
        }
        &whole[..whole.len() - self.rest.len()]
    }

    /// The inside of `url()`, from behind the parenthesis on.
    fn url(&mut self) -> &'a str {
        self.skip_whitespace();
        let is_quoted = self.rest.starts_with(['"', '\'']);
        let inside = if is_quoted { unquoted(self.string()) } else { "" };
        let bare = self.cut_before(&[')']);
        if !self.rest.is_empty() {
            self.cut(1);
        }
        if is_quoted { inside } else { bare.trim_end_matches(is_whitespace) }
    }

    /// How long the word at the start is.
    fn word_len(&self) -> usize {
        let mut len = 0;
        while let Some(c) = self.rest[len..].chars().next() {
            len += match c {
                '\\' => match escape(&self.rest[len..]) {
                    Some((_, escape)) => escape,
                    None => break,
                },
                c if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') || !c.is_ascii() => c.len_utf8(),
                _ => break,
            };
        }
        len
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        let first = self.rest.chars().next()?;
        if let Some(comment) = self.rest.strip_prefix("/*") {
            self.rest = comment.split_once("*/").map_or("", |(_, rest)| rest);
            return Some(Piece::Comment);
        }
        // The dashes belong to it, not to a word behind them.
        if self.rest.starts_with("<!--") {
            return Some(Piece::Other(self.cut("<!--".len())));
        }
        if matches!(first, '"' | '\'') {
            return Some(Piece::Text(self.string()));
        }
        if is_whitespace(first) {
            let len = self.rest.find(|c| !is_whitespace(c)).unwrap_or(self.rest.len());
            return Some(Piece::Other(self.cut(len)));
        }
        if first == '@' {
            let sign = self.cut(1);
            let len = self.word_len();
            return Some(if len == 0 { Piece::Other(sign) } else { Piece::AtWord(self.cut(len)) });
        }
        if first == '#' {
            let hash = Self { rest: &self.rest[1..] }.word_len();
            let piece = self.cut(1 + hash);
            return Some(if hash == 0 { Piece::Other(piece) } else { Piece::Word(piece) });
        }
        let len = self.word_len();
        if len == 0 {
            return Some(Piece::Other(self.cut(first.len_utf8())));
        }
        let word = self.cut(len);
        if !self.rest.starts_with('(') {
            return Some(Piece::Word(word));
        }
        self.cut(1);
        let is_url = unescaped(word).eq_ignore_ascii_case("url");
        Some(if is_url { Piece::Url(self.url()) } else { Piece::Function(word) })
    }
}

/// The inside of a string, as written. The quote at its end may be missing.
pub(super) fn unquoted(string: &str) -> &str {
    let (quote, inside) = string.split_at(1);
    inside.strip_suffix(quote).unwrap_or(inside)
}

/// What is meant by a word, or by the inside of a string.
pub(super) fn unescaped(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        let (c, len) = escape(&rest[at..]).unwrap_or((None, 2));
        text.extend(c);
        rest = rest.get(at + len..).unwrap_or_default();
    }
    text.push_str(rest);
    text
}

/// The character that the escape at the start stands for (none at the end of the text), and the length of the escape.
/// A backslash at the end of a line is not one.
fn escape(text: &str) -> Option<(Option<char>, usize)> {
    let behind = &text[1..];
    let digits = behind.bytes().take(6).take_while(u8::is_ascii_hexdigit).count();
    if digits > 0 {
        let c = u32::from_str_radix(&behind[..digits], 16).ok().and_then(char::from_u32);
        let blank = usize::from(behind[digits..].starts_with(is_whitespace));
        return Some((Some(c.filter(|&c| c != '\0').unwrap_or('\u{fffd}')), 1 + digits + blank));
    }
    match behind.chars().next() {
        Some('\n' | '\r' | '\u{c}') => None,
        Some(c) => Some((Some(c), 1 + c.len_utf8())),
        None => Some((None, 1)),
    }
}

fn is_whitespace(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_css() {
        let shown = |css: &str| -> String {
            let piece = |piece| match piece {
                Piece::Comment => "#".to_owned(),
                Piece::Word(word) => format!("[{word}]"),
                Piece::Function(name) => format!("{name}<"),
                Piece::AtWord(word) => format!("@[{word}]"),
                Piece::Text(text) => format!("<{text}>"),
                Piece::Url(url) => format!("url<{url}>"),
                Piece::Other(other) => other.to_owned(),
            };
            Pieces::new(css).map(piece).collect()
        };
        let table = [
            ("a.b{c:1px}", "[a].[b]{[c]:[1px]}"),
            ("/* a */b/**/c/*", "#[b]#[c]#"),
            ("'a\\'b' \"c\"'d\ne", "<'a\\'b'> <\"c\"><'d>\n[e]"),
            ("@media é", "@[media] [é]"),
            ("@ \\\n", "@ \\\n"),
            ("url( a ) Url('b') url() url", "url<a> url<b> url<> [url]"),
            ("u\\72 l(a)", "url<a>"),
            ("a(b) a (b) my-url(c)", "a<[b]) [a] ([b]) my-url<[c])"),
            ("'\\75\nb'c'\\\nd'", "<'\\75\nb'>[c]<'\\\nd'>"),
            ("<!--url(a) b-->url(c)", "<!--url<a> [b--]>url<c>"),
            ("#a(b) # #url(c)", "[#a]([b]) # [#url]([c])"),
            ("a\\", "[a\\]"),
        ];
        for (css, pieces) in table {
            assert_eq!(shown(css), pieces, "{css}");
        }
    }

    #[test]
    fn escapes_are_resolved() {
        let table = [
            ("abc", "abc"),
            ("\\61 b\\000063 d", "abcd"),
            ("\\\"\\\\", "\"\\"),
            ("a\\\nb", "ab"),
            ("\\0 \\110000 \\d800", "\u{fffd}\u{fffd}\u{fffd}"),
            ("\\", ""),
            ("\\é", "é"),
        ];
        for (raw, text) in table {
            assert_eq!(unescaped(raw), text, "{raw}");
        }
    }
}
