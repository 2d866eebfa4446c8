//! Processing of styles: for the preview, URLs are rewritten and legacy script features are replaced; for other pages,
//! an allow-list of properties is applied. `tokens` splits CSS into tokens.

mod declarations;
pub(super) mod tokens;

use std::fmt::Write as _;

use cssparser::Token;
use tokens::Tokens;

pub(super) use declarations::filter_declarations;

/// Names that made styles run code in obsolete browsers.
const LEGACY_SCRIPT_NAMES: [&str; 4] = ["expression", "behavior", "-ms-behavior", "-moz-binding"];

/// Functions that interpret a string argument as a URL (CSS Images, sections 2.2 to 2.5; CSS Values, section 4.5).
const LOADING_FUNCTIONS: [&str; 6] =
    ["image", "image-set", "-webkit-image-set", "cross-fade", "-webkit-cross-fade", "src"];

/// Replaces removed text, so that its neighbors do not join to one word. The first space may end an escape, so there
/// are two.
const SEPARATOR: &str = "  ";

/// The maximum depth of nested brackets. Everything after a deeper bracket is removed. Browsers parse brackets
/// recursively, and some thousands overflow their stack.
const MAX_BRACKET_DEPTH: usize = 100;

/// Replaces a name or a function that is not allowed.
const REPLACEMENT_NAME: &str = "x-disarmed";

/// Rewrites a style sheet or declarations: removes imports, empties comments, and replaces each URL by the result of
/// `rewrite_url`. A URL for which it returns `None` is removed.
pub(super) fn rewrite_css(css: &str, rewrite_url: &mut dyn FnMut(&str) -> Option<String>) -> String {
    let mut sheet = Rewriter {
        css: String::with_capacity(css.len()),
        is_after_replacement: false,
        rewrite_url,
        open_brackets: Vec::new(),
    };
    let mut tokens = Tokens::new(css);
    while sheet.open_brackets.len() <= MAX_BRACKET_DEPTH
        && let Some((token, source)) = tokens.next()
    {
        if matches!(&token, Token::AtKeyword(name) if name.eq_ignore_ascii_case("import")) {
            skip_statement(&mut tokens);
            sheet.push_comment();
        } else {
            sheet.push(&token, source);
        }
    }
    // Regardless of the tokens, the output must not end the element that contains it.
    sheet.css.replace("</", "<\\/")
}

/// The style sheet that was written so far.
struct Rewriter<'a> {
    css: String,
    /// Whether `css` ends with text that is not in the source.
    is_after_replacement: bool,
    rewrite_url: &'a mut dyn FnMut(&str) -> Option<String>,
    /// For each open bracket, the only bracket that closes it (CSS Syntax, section 5.4.8), and whether a string inside
    /// of it is a URL.
    open_brackets: Vec<(&'static str, bool)>,
}

impl Rewriter<'_> {
    fn push(&mut self, token: &Token<'_>, source: &str) {
        match token {
            Token::Comment(_) => self.push_comment(),
            Token::UnquotedUrl(url) | Token::BadUrl(url) => self.push_url(url),
            Token::QuotedString(text) | Token::BadString(text) if self.expects_url() => self.push_url(text),
            Token::Function(name) => self.push_function(name, source),
            Token::Ident(name) if is_legacy_script_name(name) => self.push_replacement(REPLACEMENT_NAME),
            _ => {
                match source {
                    "(" => self.open_brackets.push((")", self.expects_url())),
                    "[" => self.open_brackets.push(("]", self.expects_url())),
                    "{" => self.open_brackets.push(("}", self.expects_url())),
                    // Without the space, the final escape of "</" would include the next word.
                    "/" if self.css.ends_with('<') => self.css.push(' '),
                    _ => drop(self.open_brackets.pop_if(|(closing, _)| source == *closing)),
                }
                self.push_source(source);
            }
        }
    }

    /// Writes an empty comment. It separates its neighbors without a space, which would be significant in a selector.
    fn push_comment(&mut self) {
        if self.css.ends_with('<') {
            self.css.push(' ');
        }
        self.css.push_str("/**/");
    }

    fn expects_url(&self) -> bool {
        self.open_brackets.last().is_some_and(|&(_, is_loading)| is_loading)
    }

    /// Writes a function up to its parenthesis. Where URLs are expected, a function that could turn other strings into
    /// URLs, such as `var()`, is replaced.
    fn push_function(&mut self, name: &str, source: &str) {
        let name = name.to_ascii_lowercase();
        let is_inside = self.expects_url();
        let is_loading = LOADING_FUNCTIONS.contains(&name.as_str());
        let is_plain = name.ends_with("-gradient") || matches!(name.as_str(), "rgb" | "rgba" | "hsl" | "hsla" | "type");
        if is_legacy_script_name(&name) || (is_inside && !is_loading && !is_plain) {
            self.push_replacement(REPLACEMENT_NAME);
            self.css.push('(');
        } else {
            self.push_source(source);
        }
        self.open_brackets.push((")", is_loading || (is_inside && name != "type")));
    }

    fn push_url(&mut self, url: &str) {
        match (self.rewrite_url)(url) {
            Some(new_url) => {
                self.push_replacement("url");
                push_quoted_url(&mut self.css, &new_url);
            }
            None => self.push_replacement("none"),
        }
    }

    /// Writes the source of a token. It does not join with a replacement before it.
    fn push_source(&mut self, source: &str) {
        if self.is_after_replacement && source.starts_with(|c| c == '(' || is_name_char(c)) {
            self.separate();
        }
        self.css.push_str(source);
        self.is_after_replacement = false;
    }

    /// Writes a word that is not in the source. It does not join with the word before it.
    fn push_replacement(&mut self, word: &str) {
        self.separate();
        self.css.push_str(word);
        self.is_after_replacement = true;
    }

    /// Ends the last word, if there is one.
    fn separate(&mut self) {
        if self.css.ends_with(is_name_char) {
            self.css.push_str(SEPARATOR);
        }
    }
}

/// Returns whether the character can occur in a name or can start an escape in a name. NUL counts as U+FFFD (CSS
/// Syntax, section 3.3).
fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '\\' | '\0') || !c.is_ascii()
}

fn is_legacy_script_name(name: &str) -> bool {
    LEGACY_SCRIPT_NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Skips to the end of a statement without a block, or to an unexpected brace.
fn skip_statement(tokens: &mut Tokens<'_>) {
    loop {
        let mut ahead = tokens.clone();
        match ahead.next() {
            Some((Token::CurlyBracketBlock | Token::CloseCurlyBracket, _)) | None => return,
            Some((Token::Semicolon, _)) => {
                *tokens = ahead;
                return;
            }
            Some(_) => *tokens = ahead,
        }
    }
}

/// Writes a URL as a quoted string in parentheses. Only these characters must be escaped there.
fn push_quoted_url(css: &mut String, url: &str) {
    css.push_str("(\"");
    for c in url.chars() {
        if matches!(c, '"' | '\\' | '<' | '>') || c.is_control() {
            // Writing to a string cannot fail.
            let _ = write!(css, "\\{:x} ", u32::from(c));
        } else {
            css.push(c);
        }
    }
    css.push_str("\")");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Converts URLs to upper case, and removes those that contain an `x`.
    fn rewrite_to_uppercase(css: &str) -> String {
        rewrite_css(css, &mut |url| (!url.contains('x')).then(|| url.to_uppercase()))
    }

    #[test]
    fn rewrites_urls() {
        let table = [
            ("a{color:red}", "a{color:red}"),
            ("a{b:url(c)}", "a{b:url(\"C\")}"),
            ("a{b:URL( 'c d' ) e}", "a{b:url(\"C D\") e}"),
            ("a{b:url(\"c\\\"d\\5c\")}", "a{b:url(\"C\\22 D\\5c \")}"),
            ("a{b:u\\72 l(c)}", "a{b:url(\"C\")}"),
            ("a{b:\\75\\72\\6c(c)}", "a{b:url(\"C\")}"),
            ("a{b:url(x) c url(y)}", "a{b:none c url(\"Y\")}"),
            ("a{b:url(c</style>)}", "a{b:url(\"C\\3c /STYLE\\3e \")}"),
            ("a{b:url(c\\c d\\a)}", "a{b:url(\"C\\c D\\a \")}"),
            ("url(never closed", "url(\"NEVER CLOSED\")"),
            ("url('never closed", "url(\"NEVER CLOSED\")"),
            ("a{b:'url(c)' /* url(d) */ my-url(e)}", "a{b:'url(c)' /**/ my-url(e)}"),
            ("a{b:image-set('c' 1x type('d'),\"x\" 2x) 'e'}", "a{b:image-set(url(\"C\") 1x type('d'),none 2x) 'e'}"),
            ("a{b:-WEBKIT-image-s\\65t((\"c\"),'x)", "a{b:-WEBKIT-image-s\\65t((url(\"C\")),none"),
            (
                "a{b:cross-fade(linear-gradient(red,'c'),'d')}",
                "a{b:cross-fade(linear-gradient(red,url(\"C\")),url(\"D\"))}",
            ),
            ("a{b:src('x') image('x')}", "a{b:src(none) image(none)}"),
            ("a{--b:'c';d:image-set(var(--b,'x') 1x)}", "a{--b:'c';d:image-set(x-disarmed(--b,none) 1x)}"),
            ("a{--b:image-set('x' 1x);c:type('d') e('f')}", "a{--b:image-set(none 1x);c:type('d') e('f')}"),
            ("a::before{content:'\\'url(c)'}", "a::before{content:'\\'url(c)'}"),
            ("td#a:nth-child(2n+1)>b.c{d:1#e .50em+1%}", "td#a:nth-child(2n+1)>b.c{d:1#e .50em+1%}"),
            ("a{b:#FFF \"c\" 'd' 1E3 +.5 U+26 \\65 f}", "a{b:#FFF \"c\" 'd' 1E3 +.5 U+26 \\65 f}"),
            ("a{b:url(c)d url(x)d url(x)(d) url(x)\0 url(x)#d}", "a{b:url(\"C\")d none  d none  (d) none  \0 none#d}"),
            ("a{b:url('c' d(e)) url(c d)}", "a{b:url(\"C\") url(\"C D\")}"),
            ("a{b:url('c\n d)}", "a{b:url(\"C\")}"),
            ("a{b:image-set('c\n1x)}", "a{b:image-set(url(\"C\")\n1x)}"),
            ("@media (width<=9px){a{b:url(c)}}", "@media (width<=9px){a{b:url(\"C\")}}"),
        ];
        for (css, result) in table {
            assert_eq!(rewrite_to_uppercase(css), result, "{css}");
        }
    }

    #[test]
    fn replaces_legacy_script_names() {
        let table = [
            ("@import 'a;b';c{}", "/**/c{}"),
            ("@IMPORT url(a;b) screen;c{}", "/**/c{}"),
            ("@\\69mport url(a);c{}", "/**/c{}"),
            ("@import/**/\"a\"", "/**/"),
            ("@import {a}b{}", "/**/{a}b{}"),
            ("@@import a;import 'b';c{}", "@/**/import 'b';c{}"),
            ("a{b:u@import a;rl(c)}", "a{b:u/**/rl(c)}"),
            ("a{b:\\75/**/rl(c)\\75 /**/rl(c)}", "a{b:\\75/**/rl(c)\\75 /**/rl(c)}"),
            ("/@import a;*b*/", "//**/*b*/"),
            ("@imports;a{}", "@imports;a{}"),
            ("a{width:expression(alert(1))}", "a{width:x-disarmed(alert(1))}"),
            ("a{width:expr/**/ession(alert(1))}", "a{width:expr/**/ession(alert(1))}"),
            ("a{width:e\\78pression(alert(1));BEHAVIOR:url(x)}", "a{width:x-disarmed(alert(1));x-disarmed:none}"),
            ("a{-moz-binding:url(x);\\2dmoz-binding:url(x)}", "a{x-disarmed:none;x-disarmed:none}"),
            ("<@import a;/style><b>", "< /**//style><b>"),
            ("</style>", "< /style>"),
            ("a{content:'</style>'}", "a{content:'<\\/style>'}"),
            ("/* never closed </style", "/**/"),
            (".a/* x */.b{}", ".a/**/.b{}"),
        ];
        for (css, result) in table {
            assert_eq!(rewrite_to_uppercase(css), result, "{css}");
        }
    }

    #[test]
    fn limits_bracket_depth() {
        for (opened, kept) in [("@media all{", 101), ("(", 101), ("-webkit-cross-fade(", 101)] {
            let css = format!("{}a", opened.repeat(60_000));
            assert_eq!(rewrite_to_uppercase(&css), opened.repeat(kept), "{opened}");
        }
        let flat = "a{b:c(d)}".repeat(1000);
        assert_eq!(rewrite_to_uppercase(&flat), flat);
    }
}
