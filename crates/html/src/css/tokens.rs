//! The tokens of a style sheet (CSS Syntax, section 4), produced by the tokenizer of `cssparser`.

use cssparser::{CowRcStr, ParseError, Parser, Token};

/// An iterator over the tokens of a style sheet, each with its source text. The concatenated source texts are the style
/// sheet.
///
/// The tokens are not nested: those in a block follow the token that opens it. So nesting does not use the stack.
///
/// `url("…")` is an `UnquotedUrl` like `url(…)`. Its source text is the whole function.
#[derive(Clone)]
pub struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    /// Starts at the beginning of a style sheet.
    pub fn new(css: &'a str) -> Self {
        Self { rest: css }
    }

    /// Returns the text after the last token.
    pub fn rest(&self) -> &'a str {
        self.rest
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = (Token<'a>, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        // A parser skips the content of a block unless it is parsed recursively, so each token gets a new parser.
        let mut parser = Parser::new(self.rest);
        let mut token = parser.next_including_whitespace_and_comments().ok()?.clone();
        if let Token::Function(name) = &token
            && name.eq_ignore_ascii_case("url")
        {
            token = Token::UnquotedUrl(parse_quoted_url(&mut parser));
        }
        let (source, rest) = self.rest.split_at(parser.position().byte_index());
        self.rest = rest;
        Some((token, source))
    }
}

/// Parses the content of `url("…")`, after its opening parenthesis. Modifiers after the string are skipped.
fn parse_quoted_url<'a>(parser: &mut Parser<'a>) -> CowRcStr<'a> {
    let mut url = CowRcStr::from("");
    // The result is an error if there are modifiers. They are skipped anyway.
    let _ = parser.parse_nested_block(|inside| {
        if let Ok(Token::QuotedString(string) | Token::BadString(string)) = inside.next() {
            url = string.clone();
        }
        Ok::<_, ParseError<()>>(())
    });
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_concatenate_to_the_style_sheet() {
        let sources = |css| Tokens::new(css).map(|(_, source)| source).collect::<Vec<_>>().join("|");
        let table = [
            ("td#a{b:-1.50px}", "td|#a|{|b|:|-1.50px|}"),
            ("a(b[c{/*d*/", "a(|b|[|c|{|/*d*/"),
            ("url( 'a)' b(c) ) URL(d e)f", "url( 'a)' b(c) )| |URL(d e)|f"),
            ("u\\72l(a)'b\nc", "u\\72l(a)|'b|\n|c"),
            ("url('a' (", "url('a' ("),
            ("1url(a) <!--\0-->", "1url|(|a|)| |<!--|\0--|>"),
            ("\\", "\\"),
        ];
        for (css, result) in table {
            assert_eq!(sources(css), result, "{css}");
        }
    }

    #[test]
    fn parses_urls() {
        let url = |css| match Tokens::new(css).next() {
            Some((Token::UnquotedUrl(url), _)) => url.to_string(),
            other => panic!("{css}: {other:?}"),
        };
        let table = [
            ("url( a )", "a"),
            ("url()", ""),
            ("\\75\\72\\6c(a\\29 b)", "a)b"),
            ("Url( 'a b' )", "a b"),
            ("url('a\\'\\62\\\nc' d('e'))", "a'bc"),
            ("url('a\nb)", "a"),
            ("url(\"\\0\\d800\\110000", "\u{fffd}\u{fffd}\u{fffd}"),
            ("url(''{)})", ""),
        ];
        for (css, result) in table {
            assert_eq!(url(css), result, "{css}");
        }
    }
}
