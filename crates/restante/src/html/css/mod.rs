//! The styles of a mail: with addresses replaced and old tricks disarmed for the preview, and by an allow-list of
//! properties for somebody else's page. `pieces` knows what CSS is written like.

mod pieces;
mod strict;

use pieces::{Piece, Pieces, unescaped};

pub(super) use strict::strict;

/// Words that once made a style run code, in browsers that nobody should have any more.
const DISARMED: [&str; 4] = ["expression", "behavior", "-ms-behavior", "-moz-binding"];

/// The style sheet or declarations without comments and imports. Each address of a `url()` is replaced by what the
/// function makes of it; one that it makes nothing of is gone.
pub(super) fn rewritten(css: &str, address: &mut dyn FnMut(&str) -> Option<String>) -> String {
    let mut result = String::with_capacity(css.len());
    let mut pieces = Pieces::new(css);
    while let Some(piece) = pieces.next() {
        match piece {
            Piece::Comment => result.push(' '),
            Piece::Url(raw) => match address(&unescaped(raw)) {
                Some(url) => push_url(&mut result, &url),
                None => result.push_str("none"),
            },
            Piece::Word(word) if DISARMED.contains(&unescaped(word).to_ascii_lowercase().as_str()) => {
                result.push_str("x-disarmed");
            }
            Piece::AtWord(word) if unescaped(word).eq_ignore_ascii_case("import") => skip_statement(&mut pieces),
            Piece::AtWord(word) => {
                result.push('@');
                result.push_str(word);
            }
            Piece::Word(raw) | Piece::Text(raw) | Piece::Other(raw) => result.push_str(raw),
        }
    }
    // Whatever the pieces were, they do not end the element that they stand in.
    result.replace("</", "<\\/")
}

/// Skips to behind the end of a statement that has no block, or to before a brace that should not be there.
fn skip_statement(pieces: &mut Pieces<'_>) {
    loop {
        let mut ahead = pieces.clone();
        match ahead.next() {
            Some(Piece::Other("{" | "}")) | None => return,
            Some(Piece::Other(";")) => {
                *pieces = ahead;
                return;
            }
            Some(_) => *pieces = ahead,
        }
    }
}

/// Writes an address as a quoted string, in which only these characters mean something.
fn push_url(css: &mut String, url: &str) {
    css.push_str("url(\"");
    for c in url.chars() {
        match c {
            '"' => css.push_str("\\22 "),
            '\\' => css.push_str("\\5c "),
            '<' => css.push_str("\\3c "),
            '>' => css.push_str("\\3e "),
            c if c.is_control() => {}
            c => css.push(c),
        }
    }
    css.push_str("\")");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Addresses in capitals, and none for those that have an `x`.
    fn shout(css: &str) -> String {
        rewritten(css, &mut |url| (!url.contains('x')).then(|| url.to_uppercase()))
    }

    #[test]
    fn addresses_are_replaced() {
        let table = [
            ("a{color:red}", "a{color:red}"),
            ("a{b:url(c)}", "a{b:url(\"C\")}"),
            ("a{b:URL( 'c d' ) e}", "a{b:url(\"C D\") e}"),
            ("a{b:url(\"c\\\"d\\5c\")}", "a{b:url(\"C\\22 D\\5c \")}"),
            ("a{b:u\\72 l(c)}", "a{b:url(\"C\")}"),
            ("a{b:\\75\\72\\6c(c)}", "a{b:url(\"C\")}"),
            ("a{b:url(x) c url(y)}", "a{b:none c url(\"Y\")}"),
            ("a{b:url(c</style>)}", "a{b:url(\"C\\3c /STYLE\\3e \")}"),
            ("url(never closed", "url(\"NEVER CLOSED\")"),
            ("url('never closed", "url(\"NEVER CLOSED\")"),
            ("a{b:'url(c)' /* url(d) */ my-url(e)}", "a{b:'url(c)'   my-url(e)}"),
            ("a::before{content:'\\'url(c)'}", "a::before{content:'\\'url(c)'}"),
            ("@media (width<=9px){a{b:url(c)}}", "@media (width<=9px){a{b:url(\"C\")}}"),
        ];
        for (css, result) in table {
            assert_eq!(shout(css), result, "{css}");
        }
    }

    #[test]
    fn tricks_are_disarmed() {
        let table = [
            ("@import 'a;b';c{}", "c{}"),
            ("@IMPORT url(a;b) screen;c{}", "c{}"),
            ("@\\69mport url(a);c{}", "c{}"),
            ("@import/**/\"a\"", ""),
            ("@import {a}b{}", "{a}b{}"),
            ("@imports;a{}", "@imports;a{}"),
            ("a{width:expression(alert(1))}", "a{width:x-disarmed(alert(1))}"),
            ("a{width:expr/**/ession(alert(1))}", "a{width:expr ession(alert(1))}"),
            ("a{width:e\\78pression(alert(1));BEHAVIOR:url(x)}", "a{width:x-disarmed(alert(1));x-disarmed:none}"),
            ("<@import a;/style><b>", "<\\/style><b>"),
            ("a{content:'</style>'}", "a{content:'<\\/style>'}"),
            ("/* never closed </style", " "),
        ];
        for (css, result) in table {
            assert_eq!(shout(css), result, "{css}");
        }
    }
}
