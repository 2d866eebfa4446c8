//! What hostile mail costs: whatever is repeated, the result stays about as small as the mail was. A parser that is left
//! alone with these multiplies some of them until memory or patience ends, so these tests would not come back.

use super::Parts;
use crate::normalize::normalize;
use crate::{PreviewOptions, remote_hosts, render_preview, sanitize};

/// Enough for a multiplication to be noticed, in a build that is not optimised.
const SIZE: usize = 10_000;

/// What is written once, and what is repeated behind it.
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
fn nothing_is_multiplied() {
    for (start, piece) in FAMILIES {
        let html = format!("{start}{}", piece.repeat(SIZE / piece.len()));
        // The tags of each link get longer, and each element gets its end tag.
        let most = 10 * html.len() + 1000;
        assert!(sanitize(&html, &Parts).len() <= most, "{start} {piece}");
        assert!(
            render_preview(&html, &Parts, PreviewOptions { allow_remote: true, scheme: None }).len() <= most,
            "{start} {piece}"
        );
        assert!(remote_hosts(&html, &Parts).len() <= 1, "{start} {piece}");
    }
}

/// The first step alone is quick enough to be given so much that a search from each place of it would take minutes.
#[test]
fn nothing_is_searched_over_and_over() {
    for (start, piece) in FAMILIES {
        let html = format!("{start}{}x", piece.repeat((1 << 18) / piece.len()));
        assert!(normalize(&html).markup.len() <= 10 * html.len(), "{start} {piece}");
    }
}

#[test]
fn what_is_cut_says_so() {
    let note = "too much to be shown.</p>";
    let whole = format!("<p>{}</p>", "x".repeat(1 << 20));
    assert_eq!(sanitize(&whole, &Parts), whole);
    for html in ["x".repeat(3 << 20), "<br>".repeat(60_000), "<td>".repeat(600_000)] {
        assert!(sanitize(&html, &Parts).ends_with(note), "{}", &html[..10]);
        assert!(
            render_preview(&html, &Parts, PreviewOptions::default()).ends_with(&format!("{note}</body></html>")),
            "{}",
            &html[..10]
        );
    }
}
