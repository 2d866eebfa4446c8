//! Conversion of plain text to HTML: all text is escaped, and URLs become links. `restante_extract` finds the URLs.

use restante_extract::TextUrl;

use super::TRUNCATION_NOTE;
use super::escape::push_escaped;
use super::normalize::MAX_HTML_BYTES;

/// Converts plain text to escaped HTML with links for http, https and mailto URLs. Line breaks are kept; a page
/// displays them with `white-space: pre-wrap`. Long text is truncated, because a link takes up to ten times the space
/// of its URL.
pub fn linkify(text: &str) -> String {
    let text_in_limit = &text[..text.floor_char_boundary(MAX_HTML_BYTES)];
    let mut html = String::with_capacity(text_in_limit.len() + text_in_limit.len() / 8);
    let mut is_truncated = text_in_limit.len() < text.len();
    let mut rest = text_in_limit;
    while let Some(found) = TextUrl::find_first(rest) {
        if html.len() > MAX_HTML_BYTES {
            is_truncated = true;
            rest = "";
            break;
        }
        push_escaped(&mut html, &rest[..found.start]);
        let (url, tail) = rest[found.start..].split_at(found.len);
        if found.is_link {
            html.push_str("<a href=\"");
            push_escaped(&mut html, url);
            html.push_str("\" target=\"_blank\" rel=\"noopener noreferrer\">");
            push_escaped(&mut html, url);
            html.push_str("</a>");
        } else {
            push_escaped(&mut html, url);
        }
        rest = tail;
    }
    push_escaped(&mut html, rest);
    if is_truncated {
        html.push_str(TRUNCATION_NOTE);
    }
    html
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the result with each link as `[url]`.
    fn bracket_links(text: &str) -> String {
        let html = linkify(text);
        let mut result = String::new();
        let mut rest = html.as_str();
        while let Some((before, link)) = rest.split_once("<a href=\"") {
            let (href, tail) = link.split_once("\" target=\"_blank\" rel=\"noopener noreferrer\">").unwrap();
            let (label, tail) = tail.split_once("</a>").unwrap();
            assert_eq!(href, label);
            result.extend([before, "[", href, "]"]);
            rest = tail;
        }
        result + rest
    }

    #[test]
    fn converts_urls_to_links() {
        let table = [
            ("", ""),
            ("no link: here", "no link: here"),
            ("http://x", "[http://x]"),
            ("See https://example.org/a?b=c&d=e#f.", "See [https://example.org/a?b=c&amp;d=e#f]."),
            ("HTTPS://Example.ORG/", "[HTTPS://Example.ORG/]"),
            ("(http://x/a_(b))", "([http://x/a_(b)])"),
            ("[http://x/a], {http://y}!", "[[http://x/a]], {[http://y]}!"),
            ("<http://x/a>", "&lt;[http://x/a]&gt;"),
            ("\"http://x/a\"'http://y/a'", "&quot;[http://x/a]&quot;&#39;[http://y/a]&#39;"),
            ("http://[::1]:9000/x", "[http://[::1]:9000/x]"),
            ("mailto:jane@example.org, then", "[mailto:jane@example.org], then"),
            ("http://bücher.example/ä と https://例え.jp/。次", "[http://bücher.example/ä] と [https://例え.jp/]。次"),
            ("javascript:alert(1) data:text/html,x ftp://x", "javascript:alert(1) data:text/html,x ftp://x"),
            ("xhttp://x é-http://x", "xhttp://x é-http://x"),
            ("http:// http:/x http:x https://. mailto: mailto:@", "http:// http:/x http:x https://. mailto: mailto:@"),
            ("http://x/&lt;", "[http://x/&amp;lt];"),
            ("http://x\nhttp://y", "[http://x]\n[http://y]"),
            ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
            ("http://x/'onmouseover='alert(1)", "[http://x/&#39;onmouseover=&#39;alert(1)]"),
        ];
        for (text, html) in table {
            assert_eq!(bracket_links(text), html, "{text}");
        }
    }

    #[test]
    fn limits_growth_of_hostile_texts() {
        const SIZE: usize = 500_000;
        for piece in
            ["http://", "http://x", "(((((", "http://x ", "mailto:a)", ":", "http://x)", "&", "https://a..... "]
        {
            let text = piece.repeat(SIZE / piece.len());
            assert!(linkify(&text).len() <= 10 * text.len(), "{piece}");
        }
    }

    #[test]
    fn truncates_long_texts() {
        for (piece, growth) in [("http://x ", 1), ("x ", 1), ("é", 1), ("\"", 6)] {
            let html = linkify(&piece.repeat((9 << 20) / piece.len()));
            assert!(
                html.len() <= growth * MAX_HTML_BYTES + 200 && html.ends_with(TRUNCATION_NOTE),
                "{piece} {}",
                html.len()
            );
        }
        let short = "x".repeat(MAX_HTML_BYTES);
        assert_eq!(linkify(&short), short);
    }

    #[test]
    fn conversion_is_linear() {
        for (piece, end) in
            [(":", "x"), ("http:", "x"), ("http://", "x"), ("http://x.", ""), ("mailto:a:", "."), ("//", ":")]
        {
            let text = piece.repeat((1 << 19) / piece.len()) + end;
            assert!(linkify(&text).len() <= 20 * text.len(), "{piece}");
        }
    }

    proptest! {
        #[test]
        fn output_contains_no_markup_except_links(text in "(https?://|mailto:|[a-c<>&\"'().:/ é\u{3042}\n]){0,40}") {
            prop_assert!(!bracket_links(&text).contains(['<', '>', '"', '\'']));
        }
    }
}
