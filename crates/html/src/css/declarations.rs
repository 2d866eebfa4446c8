//! Filtering of declarations for other pages: known properties with plain values. Nothing is loaded, and nothing can
//! leave its box to cover other content.

use std::collections::HashSet;
use std::sync::LazyLock;

use cssparser::Token;

use super::tokens::Tokens;

/// Returns the declarations of a `style` attribute that are harmless in any page.
pub(crate) fn filter_declarations(style: &str) -> String {
    let mut result = String::new();
    let mut declaration = Declaration::default();
    for (token, source) in Tokens::new(style) {
        if token == Token::Semicolon && declaration.depth == 0 {
            std::mem::take(&mut declaration).finish(&mut result);
        } else {
            declaration.add(&token, source);
        }
    }
    declaration.finish(&mut result);
    result
}

/// A declaration that is being parsed.
#[derive(Default)]
struct Declaration {
    /// Its property. Set at the colon.
    property: Option<String>,
    /// The text before the colon, then the text after it.
    text: String,
    depth: usize,
    is_rejected: bool,
}

impl Declaration {
    fn add(&mut self, token: &Token<'_>, source: &str) {
        if *token == Token::Colon && self.property.is_none() {
            self.property = Some(std::mem::take(&mut self.text).trim().to_ascii_lowercase());
            return;
        }
        // Plain values need no escapes, and an escape could hide something. A NUL is parsed as another character.
        self.is_rejected |= !matches!(token, Token::Comment(_)) && source.contains(['\\', '\0']);
        match token {
            Token::Ident(_)
            | Token::Hash(_)
            | Token::IDHash(_)
            | Token::Number { .. }
            | Token::Percentage { .. }
            | Token::Dimension { .. }
            | Token::WhiteSpace(_)
            | Token::Comma
            | Token::Delim('.' | '#' | '%' | '/' | '+' | '-' | '!' | '*') => {}
            Token::Function(name) => {
                self.is_rejected |= !is_harmless_function(name);
                self.depth += 1;
            }
            Token::ParenthesisBlock => self.depth += 1,
            Token::CloseParenthesis if self.depth > 0 => self.depth -= 1,
            Token::QuotedString(_) => {
                self.is_rejected |= source.contains('<') || !source[1..].ends_with(&source[..1]);
            }
            Token::Comment(_) => {
                self.text.push(' ');
                return;
            }
            _ => self.is_rejected = true,
        }
        self.text.push_str(source);
    }

    fn finish(self, result: &mut String) {
        let value = self.text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        let Some(property) = self.property else { return };
        let is_known = KNOWN_PROPERTIES.contains(property.as_str());
        // A negative margin could move content out of its box.
        let moves_out = property.starts_with("margin") && value.contains('-');
        if !is_known || value.is_empty() || self.is_rejected || self.depth > 0 || moves_out {
            return;
        }
        if !result.is_empty() {
            result.push(';');
        }
        result.push_str(&property);
        result.push(':');
        result.push_str(&value);
    }
}

fn is_harmless_function(name: &str) -> bool {
    ["rgb", "rgba", "hsl", "hsla"].iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// The allowed properties, separated by spaces.
const PROPERTIES: &str = "\
    background background-color border border-bottom border-bottom-color border-bottom-style border-bottom-width \
    border-collapse border-color border-left border-left-color border-left-style border-left-width border-radius \
    border-right border-right-color border-right-style border-right-width border-spacing border-style border-top \
    border-top-color border-top-style border-top-width border-width box-sizing caption-side clear color \
    direction display empty-cells float font font-family font-size font-style font-variant font-weight height \
    letter-spacing line-height list-style-position list-style-type margin margin-bottom margin-left margin-right \
    margin-top max-height max-width min-height min-width overflow overflow-wrap padding padding-bottom \
    padding-left padding-right padding-top table-layout text-align text-decoration text-transform vertical-align \
    white-space width word-break word-spacing word-wrap";

static KNOWN_PROPERTIES: LazyLock<HashSet<&str>> = LazyLock::new(|| PROPERTIES.split(' ').collect());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_declarations() {
        let table = [
            ("color:red", "color:red"),
            (" COLOR : Red ; ; width: 50% !important", "color:Red;width:50% !important"),
            ("font-family: 'A; B', serif; color: rgb(1, 2, 3)", "font-family:'A; B', serif;color:rgb(1, 2, 3)"),
            ("color:/* a;b */blue", "color:blue"),
            ("margin:0 auto; margin-top:-9px", "margin:0 auto"),
            ("position:fixed; z-index:9; opacity:0; color:red", "color:red"),
            ("background:url(http://x) red", ""),
            ("background:u\\72l(http://x)", ""),
            ("background:image-set('x' 1x); background:element(#x); width:calc(1px)", ""),
            ("width:expression(alert(1)); behavior:url(x); -moz-binding:url(x)", ""),
            ("--x:1; color:var(--x)", ""),
            ("color:red}b{color:blue", ""),
            ("color:rgb(1;color:blue", ""),
            ("color:red; font-family:'a\nb'; color:blue", "color:red"),
            ("font-family:'never closed", ""),
            ("co\\6cor:red; @import 'x'; color", ""),
            ("color:</style><script>", ""),
            ("width:5%; color:#FFF; font:12px/1.50 A,'b' ", "width:5%;color:#FFF;font:12px/1.50 A,'b'"),
            ("color:r\0ed; font-family:'\0'; color:\\d800; color:red\\", ""),
            ("color:red-->; color:<!--red; color:[red]; color:(red)", "color:(red)"),
            ("color:@red; color:URL(x y); color:url('x'; color:red)", ""),
            ("", ""),
        ];
        for (style, result) in table {
            assert_eq!(filter_declarations(style), result, "{style}");
            assert_eq!(filter_declarations(result), result, "{style}");
        }
    }
}
