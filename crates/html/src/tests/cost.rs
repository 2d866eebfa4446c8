//! The cost of hostile messages: the size of the result is linear in the size of the message. An HTML parser alone
//! multiplies some of these inputs until it runs out of memory or time.

use super::TestParts;
use crate::normalize::normalize;
use crate::{PreviewOptions, remote_hosts, render_preview, sanitize};

/// Large enough to detect a multiplication in an unoptimized build.
const SIZE: usize = 10_000;

/// The start and the repeated fragment.
const FAMILIES: &[(&str, &str)] = &[
    ("", "<div>"),
    ("", "<b><p>x"),
    ("", "<p><b>x"),
    ("", "<b><i>x</b></i>"),
    ("", "<b><div></b>"),
    ("<p><font size=1><font size=2><font size=3><font size=4><font size=5><font size=6>", "<p>x"),
    ("", "<div><font style='color:red;background:white'>x</div>"),
    ("<table>", "x<i>"),
    ("<table>", "<td>"),
    ("", "<table>x"),
    ("", "<table><tr><td>"),
    ("", "<a href=http://x>"),
    ("", "<a href=http://x><div>"),
    ("", "<nobr>"),
    ("", "<ul><li>"),
    ("", "<dl><dd><dt>"),
    ("", "<h1><h2>"),
    ("", "<select><option>"),
    ("", "<svg><math><mtext>"),
    ("", "<template>"),
    ("", "<plaintext>"),
    ("", "<textarea>"),
    ("", "<textarea></textare"),
    ("", "<style>a{}</style>"),
    ("<style>", "</"),
    ("<style>", "url(cid:"),
    ("<style>", "@import "),
    ("<style>", "/*/"),
    ("<style>", "(\\"),
    ("", "<!-->"),
    ("", "<!--"),
    ("<!--", "--"),
    ("<!--x", "--!-"),
    ("", "<![CDATA["),
    ("", "<!doctype>"),
    ("", "\0"),
    ("", "<"),
    ("", "&"),
    ("", "&a"),
    ("", "\u{a0}"),
    ("<b ", "class=x "),
    ("<b ", "\" "),
    ("<b ", "="),
    ("<b class='", "\""),
    ("<b class=", " "),
    ("", "<b class='"),
    ("", "<!"),
    ("", "<!--->"),
    ("<!--", "->"),
    ("&", "a"),
    ("&#", "1"),
    ("<style>", "'"),
    ("", "<img src=http://x.y>"),
    ("<img src='data:image/png,", "&"),
    ("", "<body bgcolor=x>"),
];

#[test]
fn output_size_is_linear() {
    for (start, fragment) in FAMILIES {
        let html = format!("{start}{}", fragment.repeat(SIZE / fragment.len()));
        // Links get longer tags, and every element gets an end tag.
        let max_bytes = 10 * html.len() + 1000;
        assert!(sanitize(&html, &TestParts).len() <= max_bytes, "{start} {fragment}");
        assert!(
            render_preview(&html, &TestParts, PreviewOptions { allow_remote: true, scheme: None }).len() <= max_bytes,
            "{start} {fragment}"
        );
        assert!(remote_hosts(&html, &TestParts).len() <= 1, "{start} {fragment}");
    }
}

/// The first step is fast enough for input that would take minutes in a quadratic algorithm.
#[test]
fn normalization_is_linear() {
    for (start, fragment) in FAMILIES {
        let html = format!("{start}{}x", fragment.repeat((1 << 18) / fragment.len()));
        assert!(normalize(&html).markup.len() <= 10 * html.len(), "{start} {fragment}");
    }
}

#[test]
fn truncated_output_ends_with_a_note() {
    let note = "too large to display.</p>";
    let short = format!("<p>{}</p>", "x".repeat(1 << 20));
    assert_eq!(sanitize(&short, &TestParts), short);
    for html in ["x".repeat(3 << 20), "<br>".repeat(60_000), "<td>".repeat(600_000)] {
        assert!(sanitize(&html, &TestParts).ends_with(note), "{}", &html[..10]);
        assert!(
            render_preview(&html, &TestParts, PreviewOptions::default()).ends_with(&format!("{note}</body></html>")),
            "{}",
            &html[..10]
        );
    }
}
