//! The URLs that the styles of a message load. The output is checked by the parser of a browser engine, and by an
//! independent scanner (`css_scanner`), because the code uses the tokenizer of that parser. Every URL that either of
//! them finds must have been rewritten. The list of functions here is independent of the code.

use cssparser::{ParseError, Parser, Token};
use proptest::prelude::*;

use super::{TestParts, css_scanner};
use crate::rewrite_urls::UrlRewriter;
use crate::url_target::UrlTarget;

/// Functions that load a URL in a string.
pub(super) const LOADING_FUNCTIONS: &str = "url src image image-set -webkit-image-set cross-fade -webkit-cross-fade";

/// Represents an import, and functions that can return any string of the message.
pub(super) const ANY_URL: &str = "//anything.example";

/// Returns everything that a style sheet could load, according to both checkers.
fn loaded_urls(css: &str) -> Vec<String> {
    let mut found = css_scanner::loaded_urls(css);
    collect(&mut Parser::new(css), false, &mut found);
    found
}

fn collect(parser: &mut Parser<'_>, is_loading: bool, found: &mut Vec<String>) {
    while let Ok(token) = parser.next().cloned() {
        let mut is_loading_inside = is_loading;
        match &token {
            Token::UnquotedUrl(url) | Token::BadUrl(url) => found.push(url.to_string()),
            Token::QuotedString(url) if is_loading => found.push(url.to_string()),
            Token::AtKeyword(name) if name.eq_ignore_ascii_case("import") => found.push(ANY_URL.to_owned()),
            Token::Function(name) => {
                let name = name.to_ascii_lowercase();
                if is_loading && matches!(name.as_str(), "var" | "attr" | "env" | "if") {
                    found.push(ANY_URL.to_owned());
                }
                is_loading_inside =
                    LOADING_FUNCTIONS.split(' ').any(|known| known == name) || (is_loading && name != "type");
            }
            Token::ParenthesisBlock | Token::SquareBracketBlock | Token::CurlyBracketBlock => {}
            _ => continue,
        }
        let is_block = matches!(
            token,
            Token::Function(_) | Token::ParenthesisBlock | Token::SquareBracketBlock | Token::CurlyBracketBlock
        );
        if is_block {
            let _ = parser.parse_nested_block(|inside| {
                collect(inside, is_loading_inside, found);
                Ok::<_, ParseError<()>>(())
            });
        }
    }
}

/// Checks that nothing remote is loaded if it is blocked, and that only reported hosts are used otherwise.
fn check_css(css: &str) {
    let without_remote = UrlRewriter::preview(&TestParts, false).rewrite_css(css);
    let foreign: Vec<_> =
        loaded_urls(&without_remote).into_iter().filter(|url| !url.contains("parts.example")).collect();
    assert!(foreign.is_empty(), "{css}\n{without_remote}\n{foreign:?}");

    let mut rewriter = UrlRewriter::preview(&TestParts, true);
    let with_remote = rewriter.rewrite_css(css);
    let hosts = loaded_urls(&with_remote).into_iter().filter_map(|url| UrlTarget::parse(&url)?.host());
    for host in hosts.filter(|host| host != "parts.example") {
        assert!(rewriter.hosts.contains(&host), "{css}\n{with_remote}\n{host}");
    }
}

#[test]
fn loads_only_rewritten_urls() {
    let table = [
        "a{b:url(//evil.example)}",
        "a{b:u@import a;rl(//evil.example)}",
        "a{b:u/**/rl(//evil.example)}",
        "a{b:\\75/**/rl(//evil.example)}",
        "a{b:\\75@import a;rl(//evil.example)}",
        "\"\\75\n\"@import '//evil.example';",
        "a{b:image-set(</type('//evil.example'))}",
        "a{b:u@import{;rl(//evil.example)}",
        "@@import a;import '//evil.example';",
        "@import a;@import '//evil.example';",
        "@/**/import '//evil.example';",
        "@im@import a;port '//evil.example';",
        "a{b:\"@import a;\" url(//evil.example)}",
        "a{b:image-set('//evil.example' 1x)}",
        "a{b:IMAGE-s\\65t(\"//evil.example\" type('image/png'))}",
        "a{b:-webkit-image-set(('//evil.example') 2x)}",
        "a{b:image-@import a;set('//evil.example' 1x)}",
        "a{b:cross-fade(image-set('//evil.example' 1x),red)}",
        "a{b:image-set(linear-gradient(red,blue) 1x,'//evil.example' 2x)}",
        "@font-face{src:src('//evil.example')}",
        "a{--b:'//evil.example';c:image-set(var(--b) 1x)}",
        "a{--b:'//evil.example';c:image-set(v\\61r(--b) 1x)}",
        "a{--b:url(//evil.example);c:var(--b)}",
        "a{--b:image-set('//evil.example' 1x);c:var(--b)}",
        "a{b:image-set(var(--c,'//evil.example') 1x)}",
        "a{b:image-set(\"//evil.example\n 1x)}",
        "a{b:image-set('//evil.example",
        "a{b:image-set('a'type('//evil.example'))}",
        "a{b:<!--url(//evil.example)-->}",
        "a{b:image-set({)'//evil.example'})}",
        "a{b:image-set([)'//evil.example'})}",
        "a{b:image-set(#type('//evil.example'))}",
        "a{b:image-set(1type('//evil.example') @type('//evil.example'))}",
        "a{b:url('//evil.example' c)}",
        "a{b:url(//evil.example c)}",
        "a{b:image-set(url(cid:known@x) 1x,'cid:known@x' 2x)}",
        "a{b:image-set(attr(c type(<url>)) 1x)}",
        "a{b:image-set(c\\\"'//evil.example' 1x)}",
        "a{b:\0url(//evil.example) u\0rl(//evil.example) url(\0//evil.example)}",
        "a{b:url(\\d800//evil.example) \\d800 url(//evil.example)}",
        "a{b:url('//evil.example' type('//evil.example') (]){)}",
        "a{b:url(url('//evil.example'))}",
        "a{b:url(c)url(//evil.example)}",
        "a{b:url(c)\\75rl(//evil.example)}",
        "a{b:-\\\nurl(//evil.example) @-\\\nimport '//evil.example'}",
        "a{b:\\75\r\nrl(//evil.example)}",
        "a{b:1url(//evil.example) 1e3url(//evil.example) 1%url(//evil.example)}",
        "a{b:c;}}@import '//evil.example';",
        "a{b:'c\n;}@import '//evil.example';",
    ];
    for css in table {
        check_css(css);
    }
}

#[test]
fn reports_hosts_of_urls_in_strings() {
    let hosts_of = |css: &str| {
        let mut rewriter = UrlRewriter::preview(&TestParts, false);
        rewriter.rewrite_css(css);
        rewriter.hosts.into_iter().collect::<Vec<_>>()
    };
    let table = [
        ("a{b:image-set('//evil.example/a' 1x,\"http://evil2.example\" 2x)}", vec!["evil.example", "evil2.example"]),
        ("a{--b:image-set('//evil.example' 1x)}", vec!["evil.example"]),
        ("a{content:'http://evil.example';font-family:'//evil.example'}", vec![]),
    ];
    for (css, hosts) in table {
        assert_eq!(hosts_of(css), hosts, "{css}");
    }
}

#[test]
fn rewriting_is_linear() {
    let families = [
        ("", "@import ", "{"),
        ("@import ", "a ", "{"),
        ("", "@import;", "x"),
        ("", "/*", "x"),
        ("/*", "*", "x"),
        ("", "'", "x"),
        ("", "'\n", "x"),
        ("'", "\\'", "x"),
        ("", "url(", "x"),
        ("", "url('", "x"),
        ("url(", " ", "x"),
        ("", "image-set(", "'x'"),
        ("image-set(", "'x'", ""),
        ("", "var(image-set(", ")"),
        ("", "\\", "x"),
        ("", "\\61", "x"),
        ("", "\\d800 ", "("),
        ("", "url('x' ", ""),
        ("", "url('x'(", ""),
        ("", "url(x ", ""),
        ("", "@import}", ""),
        ("#", "\0", ""),
        ("1e", "9", ""),
        ("", "-", "("),
        ("", "</", "x"),
    ];
    for (start, fragment, end) in families {
        let css = format!("{start}{}{end}", fragment.repeat((1 << 18) / fragment.len()));
        let result = UrlRewriter::preview(&TestParts, true).rewrite_css(&css);
        assert!(result.len() <= 2 * css.len() + 10, "{start} {fragment} {end}");
    }
}

/// Runs on a stack that is too small for a parser that recurses into every block.
#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    let deep = || {
        for opening in ["(", "[", "{", "a(", "rgb(", "image-set(", "url(", "url('x'", "url('x'(", "@media{", "@import("]
        {
            let css = format!("color:{}", opening.repeat(100_000));
            let result = UrlRewriter::preview(&TestParts, true).rewrite_css(&css);
            assert!(result.len() <= 2 * css.len(), "{opening}");
            assert_eq!(crate::css::filter_declarations(&css), "", "{opening}");
        }
    };
    std::thread::Builder::new().stack_size(128 << 10).spawn(deep).unwrap().join().unwrap();
}

#[test]
fn checkers_find_urls() {
    for css in ["url(//evil.example)", "a{b:url('x')}", "@import 'x'", "a{b:image-set('x')}", "image-set(var(--x))"] {
        assert_eq!(loaded_urls(css).len(), 2, "{css}");
        assert_eq!(css_scanner::loaded_urls(css).len(), 1, "{css}");
    }
}

/// Fragments that are significant in CSS.
fn fragment() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "u",
        "rl(",
        "url(",
        "\\75",
        "//evil.example",
        "http://evil.example",
        "cid:known@x",
        "'",
        "\"",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ";",
        ":",
        ",",
        " ",
        "\n",
        "\\",
        "/",
        "*",
        "/*",
        "*/",
        "<",
        "!--",
        "-->",
        "@",
        "import",
        "@import",
        "a",
        "--b",
        "var(",
        "image-",
        "set(",
        "image-set(",
        "type(",
        "src(",
        "cross-fade(",
        "rgb(",
        "1",
        "-",
        "e",
        "+",
        ".",
        "#",
        "é",
    ])
}

proptest! {
    #[test]
    fn loads_only_rewritten_urls_of_any_fragments(fragments in prop::collection::vec(fragment(), 0..25)) {
        check_css(&fragments.concat());
    }
}
