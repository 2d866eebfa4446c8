use proptest::prelude::*;

use super::*;

/// Returns the features that a document uses, with the numbers of uses here and in Mailpit, and the lines.
fn uses(html: &str) -> Vec<String> {
    let mut uses: Vec<_> = check(html)
        .usages
        .iter()
        .map(|usage| format!("{} {} {} {:?}", usage.feature.slug, usage.count, usage.mailpit_count, usage.lines))
        .collect();
    uses.sort();
    uses
}

#[test]
fn finds_features_of_html() {
    let table: [(&str, &[&str]); 16] = [
        ("Hello", &[]),
        ("a\n<hr>\n<hr>", &["html-hr 2 2 [2, 3]"]),
        ("<!DOCTYPE html>\n<body>a</BODY>", &["html-body 1 1 [1]", "html-doctype 1 0 [1]"]),
        ("<a href='#b'>c</a>", &["html-anchor-links 1 1 [1]"]),
        ("<a href=mailto:a@example.com>c</a>", &["html-mailto-links 1 0 [1]"]),
        ("<input type=hidden><input type=TEXT>", &["html-input-hidden 1 1 [1]", "html-input-text 1 0 [1]"]),
        ("<button type=submit>", &["html-button-submit 1 1 [1]"]),
        ("<map></map><i usemap>", &["html-image-maps 1 1 [1]"]),
        ("<video></video><main></main><nav></nav>", &["html-semantics 2 2 [1]", "html-video 1 1 [1]"]),
        ("<i lang=en width=1>", &["css-width 0 1 []", "html-lang 1 0 [1]", "html-width 1 0 [1]"]),
        ("<i bgcolor=a></i><b BGCOLOR=b>", &["css-background-color 0 1 []"]),
        ("<script>a</script><script type='application/json'></script>", &["html-script 1 1 [1]"]),
        ("<img src=a.gif>", &["html-img 1 0 [1]", "image-gif 1 1 [1]"]),
        ("<img src='https://example.com/a.WEBP?b'>", &["html-img 1 0 [1]", "image-webp 1 0 [1]"]),
        ("<img src='data:image/png;base64,a'><img src=png>", &["html-img 2 0 [1]", "image-base64 1 1 [1]"]),
        ("<!-- <hr> --><textarea><hr></textarea>", &["html-textarea 1 1 [1]"]),
    ];
    for (html, expected) in table {
        assert_eq!(uses(html), expected, "{html}");
    }
}

#[test]
fn finds_features_of_style_attributes() {
    let table: [(&str, &[&str]); 15] = [
        ("margin:0", &["css-margin 1 1 [1]"]),
        ("MARGIN : 0 ; margin-top:0", &["css-margin 1 1 [1]"]),
        ("margin-top:0", &["css-margin 1 0 [1]"]),
        ("ignore-transform: a", &[]),
        ("margin-inline-end: 0", &["css-margin-inline-start-end 1 1 [1]"]),
        ("display: flex", &["css-display 1 1 [1]", "css-display-flex 1 1 [1]"]),
        ("display: flexing", &["css-display 1 1 [1]"]),
        ("color:a!important", &["css-important 1 1 [1]"]),
        ("color:a!important-stuff", &[]),
        (
            "color: rgb(1,2,3); border:1em solid rgba(1,2,3,4)",
            &["css-border 1 1 [1]", "css-rgb 1 1 [1]", "css-rgba 1 1 [1]", "css-unit-em 1 0 [1]"],
        ),
        ("width:calc(1rem + 2rem)", &["css-unit-calc 1 1 [1]", "css-unit-rem 2 2 [1]", "css-width 1 1 [1]"]),
        ("color:var(--a);--a:red", &["css-variables 1 0 [1]"]),
        (
            "background:url(a;b) repeating-linear-gradient(a)",
            &["css-background 1 1 [1]", "css-linear-gradient 1 0 [1]"],
        ),
        ("font-weight:&#105;nitial", &["css-font-weight 1 1 [1]", "css-unit-initial 1 1 [1]"]),
        ("color:'margin:0'/*padding:0*/", &[]),
    ];
    for (style, expected) in table {
        assert_eq!(uses(&format!("<i style=\"{style}\">")), expected, "{style}");
    }
    assert_eq!(uses("<i\nstyle='color:a;\n\nopacity:0'>"), ["css-opacity 1 1 [4]"]);
    assert_eq!(uses("<i\nstyle='color:&#97;;\n\nopacity:0'>"), ["css-opacity 1 1 [2]"]);
}

#[test]
fn finds_features_of_style_sheets() {
    let table: [(&str, &str, &[&str]); 15] = [
        ("i{opacity:0}", "<i></i><b></b><i>", &["css-opacity 2 2 [2]", "css-selector-type 1 0 [2]"]),
        ("u{opacity:0}", "<i>", &["css-selector-type 1 0 [2]"]),
        (
            ".a{opacity:0}\n.a{opacity:1}",
            "<i class='b a'>",
            &["css-opacity 1 1 [2, 3]", "css-selector-class 2 0 [2, 3]"],
        ),
        (
            "i:hover{opacity:0}",
            "<i>",
            &["css-opacity 1 0 [2]", "css-pseudo-class-hover 1 1 [2]", "css-selector-type 1 0 [2]"],
        ),
        ("#a::AFTER{}", "", &["css-pseudo-element-after 1 1 [2]", "css-selector-id 1 0 [2]"]),
        (
            "@media (min-width:0){i{opacity:0}}",
            "<i>",
            &["css-at-media 1 1 [2]", "css-opacity 1 0 [2]", "css-selector-type 1 0 [2]"],
        ),
        ("@media screen and (orientation:a){}", "", &["css-at-media 1 0 [2]", "css-at-media-orientation 1 0 [2]"]),
        (
            "@font-face {opacity:0}i{opacity:0}",
            "<i>",
            &["css-at-font-face 1 1 [2]", "css-opacity 1 1 [2]", "css-selector-type 1 0 [2]"],
        ),
        (
            "@import 'a';i{opacity:0}",
            "<i>",
            &["css-at-import 1 1 [2]", "css-opacity 1 1 [2]", "css-selector-type 1 0 [2]"],
        ),
        ("@-webkit-keyframes a{from{opacity:0}}", "", &["css-at-keyframes 1 0 [2]"]),
        ("/*a*/@charset 'a';", "", &["css-comments 1 0 [2]"]),
        ("i{b{opacity:0}}", "", &["css-nesting 1 0 [2]", "css-selector-type 1 0 [2]"]),
        (
            "a:not(b:focus){}",
            "",
            &["css-pseudo-class-focus 1 1 [2]", "css-pseudo-class-not 1 1 [2]", "css-selector-type 1 0 [2]"],
        ),
        (
            "i{opacity:0}",
            "<i style='color:a!important'>",
            &["css-important 1 0 [2]", "css-opacity 1 1 [2]", "css-selector-type 1 0 [2]"],
        ),
        ("i{width:5px}", "<i>", &["css-selector-type 1 0 [2]", "css-unit-px 1 0 [2]", "css-width 1 2 [2]"]),
    ];
    for (css, html, expected) in table {
        let mut expected: Vec<String> = expected.iter().map(|&line| line.to_owned()).collect();
        expected.push("html-style 1 1 [1]".to_owned());
        expected.sort();
        assert_eq!(uses(&format!("<style>\n{css}</style>{html}")), expected, "{css}");
    }
}

/// A rule applies to an element once, even if several of its selectors match.
#[test]
fn counts_a_rule_once_per_element() {
    let table = [
        ("p{width:1rem}", "css-unit-rem 1 1 [1]"),
        ("p,.x{width:1rem}", "css-unit-rem 1 1 [1]"),
        (".x{width:1rem}", "css-unit-rem 1 1 [1]"),
        ("p,p,#y,.x{width:1rem 1rem}", "css-unit-rem 2 2 [1]"),
        ("p:hover,.x{width:1rem}", "css-unit-rem 1 1 [1]"),
        ("p,.x:hover{width:1rem}", "css-unit-rem 1 1 [1]"),
        ("p:hover,.x:hover{width:1rem}", "css-unit-rem 1 0 [1]"),
        ("p{width:1rem}.x{width:1rem}", "css-unit-rem 2 2 [1]"),
    ];
    for (css, expected) in table {
        let uses = uses(&format!("<style>{css}</style><p class='x x' id=y>"));
        assert_eq!(
            uses.iter().find(|line| line.starts_with("css-unit-rem")).map_or("", |line| line),
            expected,
            "{css}"
        );
    }
}

#[test]
fn counts_elements() {
    let table = [
        ("", 1),
        ("<p>a<b>c</b>", 2),
        ("<style></style><p>", 1),
        ("<script></script><p>", 2),
        ("<html><head><meta><title></title></head><body><p></body>", 3),
        ("<table><tr><td></table>", 4),
    ];
    for (html, elements) in table {
        assert_eq!(check(html).elements, elements, "{html}");
    }
}

#[test]
fn calculates_scores() {
    let feature = features().iter().find(|feature| feature.slug == "html-hr").expect("the table has it");
    let score = feature.score();
    assert!((score.supported + score.partial + score.unsupported - 100.0).abs() < 0.01, "{score:?}");

    // Half of the elements are scripts, which no client supports.
    let report = check("<script></script><p>");
    assert_eq!(report.score(), Score { supported: 50.0, partial: 0.0, unsupported: 50.0 });
    assert_eq!(report.usages[0].feature.slug, "html-script");

    // More uses than elements count once for each element.
    let report = check(&format!("<style>{}</style><p>", ":hover{}".repeat(100)));
    let score = report.score();
    assert!(score.supported >= 0.0 && score.unsupported <= 100.0, "{score:?}");

    let harmless = check("Hello").score();
    assert_eq!(harmless, Score { supported: 100.0, partial: 0.0, unsupported: 0.0 });
}

#[test]
fn summarizes_clients() {
    let report = check("<i style='display:grid'><hr>");
    let clients = report.clients();
    let outlook = clients.iter().find(|c| (c.family, c.platform) == ("outlook", "windows")).expect("it was tested");
    assert!(outlook.unsupported >= 1, "{outlook:?}");
    assert!(clients.is_sorted_by_key(|c| std::cmp::Reverse((c.unsupported, c.partial))));
    assert_eq!(check("").clients(), []);
}

/// Without limits, each of these takes minutes.
#[test]
fn work_is_bounded() {
    let rules = |count: usize| "b b b b x b{opacity:0}".repeat(count);
    let documents = [
        format!("<style>{}</style>{}", rules(30_000), "<b>".repeat(40_000)),
        format!("<style>b{{{}}}</style>{}", "opacity:0;".repeat(50_000), "<b>".repeat(40_000)),
        format!("<style>{}</style>{}", "b~i{opacity:0}".repeat(1000), "<i></i>".repeat(40_000)),
        format!(
            "<style>{}</style>{}",
            ".a.b{opacity:0}".repeat(1000),
            format!("<b class='a {}'>", "c ".repeat(1000)).repeat(500)
        ),
        format!("<style>{}", "@media all{".repeat(100_000)),
        format!("<style>{}", "a:not(".repeat(100_000)),
        format!("<style>{}", "i[".repeat(100_000)),
        format!("<i style='{}'>", "{".repeat(1_000_000)),
        format!("<style>{}a{}", " ".repeat(1_000_000), "@x".repeat(500_000)),
        format!("<style>{}a{}", " ".repeat(1_000_000), "/**/".repeat(250_000)),
        format!("{}{}", "<b>".repeat(256), "</x>".repeat(500_000)),
        format!("{}{}", "<b>".repeat(256), "<td>".repeat(500_000)),
        "<table><td>".repeat(100_000),
        "<svg>".repeat(300_000),
        "\n".repeat(3_000_000),
    ];
    for html in documents {
        let report = check(&html);
        assert!(report.usages.iter().all(|usage| usage.lines.len() <= check::MAX_LINES));
    }
    assert!(check(&"x".repeat(check::MAX_HTML_BYTES + 1)).is_truncated);
}

/// A quadratic algorithm needs minutes for these documents.
#[test]
fn parsing_is_linear() {
    // The start, the repeated piece and the end.
    let families = [
        ("<style>", "@x", "{}"),
        ("<style>", "@media ", "{}"),
        ("<style>", "@media/**/", "{}"),
        ("<style>@media ", "(a)", "{}"),
        ("<style>", "@media all{", ""),
        ("<style>", "@media all{}", ""),
        ("<style>", "/**/", "a{}"),
        ("<style>a", "/**/", "{}"),
        ("<style>a", " /**/", "{}"),
        ("<style>", "/*", ""),
        ("<style>", "<!--", ""),
        ("<style>", "<!-- ", "@x"),
        ("<style>", "a<!--", ""),
        ("<style>", "{", ""),
        ("<style>", "}", ""),
        ("<style>", "a{", ""),
        ("<style>", "a{}", ""),
        ("<style>", "a{b:c}", ""),
        ("<style>", ";", ""),
        ("<style>", "\"", ""),
        ("<style>", "\"\n", ""),
        ("<style>", "'a\\\n", ""),
        ("<style>", "\\", ""),
        ("<style>", "url(", ""),
        ("<style>", "url( '", ""),
        ("<style>", "url(a b", ""),
        ("<style>", "a(", "{}"),
        ("<style>", "a[", "{}"),
        ("<style>", "[a='b'", "{}"),
        ("<style>", "a:", "{}"),
        ("<style>", "a:not(", "{}"),
        ("<style>", "::a", "{}"),
        ("<style>", ".", "{}"),
        ("<style>", ".a", "{}"),
        ("<style>", "#a", "{}"),
        ("<style>", "a ", "{}"),
        ("<style>", "a>", "{}"),
        ("<style>", "a,", "{}"),
        ("<style>", " ", "{}"),
        ("<style>a{", "b:", "}"),
        ("<style>a{", "b:c;", "}"),
        ("<style>a{b:", "c ", "}"),
        ("<style>a{b:", "1px", "}"),
        ("<style>a{b:", "1e", "}"),
        ("<style>a{b:", "-", "}"),
        ("<style>a{b:", "!", "}"),
        ("<style>a{b:", "rgb(", "}"),
        ("<style>a{", "b{", "}"),
        ("<style>a{", "b{}", "}"),
        ("<style>a{", "/**/", "}"),
        ("", "<style>a{b:c}</style>", ""),
        ("", "<style>@media{", ""),
        ("<i style='", "b:c;", "'>"),
        ("<i style='", "b:&#99;", "'>"),
        ("<i style='b:\"", "&quot;", "'>"),
        ("", "<i style='b:c'>", ""),
        ("<i ", "style='b:c' ", ">"),
        ("<i ", "class=a ", ">"),
        ("<i class='", "a ", "'>"),
        ("<style>.a{b:c}</style><i class='", "a ", "'>"),
        ("<img src='", ".", "'>"),
        ("", "<html>", ""),
        ("", "<p>", ""),
        ("", "<li>", ""),
        ("", "</p>", ""),
    ];
    for (start, piece, end) in families {
        let pieces = (1 << 18) / piece.len();
        let report = check(&format!("{start}{}{end}", piece.repeat(pieces)));
        assert!(report.elements > 0, "{start}{piece}{end}");
    }
}

#[test]
fn features_of_declarations_are_work() {
    let elements = "<b>".repeat(40_000);
    let report = |declaration: &str| check(&format!("<style>b{{{}}}</style>{elements}", declaration.repeat(20)));
    assert!(!report("margin:0;").is_truncated);
    assert!(report("margin:1px 1em 1rem 1vw 1vh 1% rgb(0,0,0) calc(1);").is_truncated);
}

#[test]
fn counts_do_not_overflow() {
    let declarations = format!("width:{};", "1rem ".repeat(10_000)).repeat(40);
    let report = check(&format!("<style>b{{{declarations}}}</style>{}", "<b>".repeat(12_000)));
    assert!(!report.is_truncated);
    let usage = report.usages.iter().find(|usage| usage.feature.slug == "css-unit-rem").expect("it is used");
    assert_eq!((usage.count, usage.mailpit_count), (u32::MAX, u32::MAX));
}

#[test]
fn reports_what_was_left_out() {
    let table = [
        (format!("<style>{}a{{opacity:0}}</style>", "a,".repeat(30_000)), true),
        // The limit is for all style sheets together.
        (format!("<style>{}a{{opacity:0}}</style>", "a,".repeat(15_000)), false),
        (format!("<style>{}a{{opacity:0}}</style>", "a,".repeat(15_000)).repeat(2), true),
        (format!("<style>b{{width:{}}}</style>", "1px ".repeat(20_000)), true),
        (format!("<i style='{}'>", "a:b;".repeat(100_001)), true),
        (format!("<i style='{}'>", "a:b;".repeat(60_000)).repeat(2), false),
    ];
    for (html, is_truncated) in table {
        assert_eq!(check(&html).is_truncated, is_truncated, "{html:.40}");
    }
}

proptest! {
    #[test]
    fn accepts_every_input(html in "(<(p|td|tr|table|style|i style='|!--|/)|>|[ {}():;@.#*,'\"\\[\\]a-z0-9]|é|\n){0,200}") {
        check(&html);
    }
}
