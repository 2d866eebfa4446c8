//! The rendering of ordinary messages: in the preview, and sanitized for another page.

use super::TestParts;
use crate::{ColorScheme, PreviewOptions, remote_hosts, render_preview, sanitize};

const WITHOUT_REMOTE: PreviewOptions = PreviewOptions { allow_remote: false, scheme: None };
const WITH_REMOTE: PreviewOptions = PreviewOptions { allow_remote: true, scheme: None };

/// Returns the body of the preview.
fn body(html: &str, options: PreviewOptions) -> String {
    let document = render_preview(html, &TestParts, options);
    let (_, body) = document.split_once("</head>").unwrap();
    body.strip_suffix("</html>").unwrap().to_owned()
}

/// Returns the content of the body of the preview.
fn content(html: &str, options: PreviewOptions) -> String {
    let body = body(html, options);
    body.strip_prefix("<body>").unwrap().strip_suffix("</body>").unwrap().to_owned()
}

#[test]
fn renders_a_complete_document() {
    let document = render_preview("<p>Hi", &TestParts, WITHOUT_REMOTE);
    assert!(document.starts_with("<!doctype html><html><head><meta charset=\"utf-8\">"), "{document}");
    assert!(document.contains("<meta name=\"referrer\" content=\"no-referrer\">"), "{document}");
    assert!(document.ends_with("</style></head><body><p>Hi</p></body></html>"), "{document}");
    let table = [
        ("", Some(ColorScheme::Dark), "invert(1)"),
        ("<style>@media (prefers-color-scheme:dark){}</style>", Some(ColorScheme::Dark), ":root{color-scheme:dark}"),
        ("", Some(ColorScheme::Light), ":root{color-scheme:light}"),
        ("", None, ":root{color-scheme:light}"),
        ("<style>@media (prefers-color-scheme:dark){}</style>", None, ":root{color-scheme:light dark}"),
    ];
    for (html, scheme, rule) in table {
        assert!(
            render_preview(html, &TestParts, PreviewOptions { allow_remote: false, scheme }).contains(rule),
            "{html} {scheme:?}"
        );
    }
}

#[test]
fn preview_keeps_style_sheets() {
    let html = "<head><style type=text/css media='screen and (max-width:600px)'>.a{color:red}</style></head>\
        <body>x<style>@import 'http://x/y';.b{background:url(cid:known@x),url(http://y/z)}</style>\
        <style media='&quot;'>.c{}</style>";
    let document = render_preview(html, &TestParts, WITHOUT_REMOTE);
    assert!(document.contains("<style media=\"screen and (max-width:600px)\">.a{color:red}</style>"), "{document}");
    let without_remote = "<style media=\"\">/**/.b{background:url(\"https://parts.example/1\"),none}</style></head>";
    assert!(document.contains(without_remote), "{document}");
    let with_remote =
        "<style media=\"\">/**/.b{background:url(\"https://parts.example/1\"),url(\"http://y/z\")}</style></head>";
    assert!(render_preview(html, &TestParts, WITH_REMOTE).contains(with_remote));
}

#[test]
fn preview_keeps_body_attributes() {
    let html =
        "<body bgcolor=#fff text=black link=red background=http://x/y onload=alert(1) style='margin:0;color:red'>x";
    let start = "<body bgcolor=\"#fff\" text=\"black\" link=\"red\"";
    let end = " style=\"margin:0;color:red\">x</body>";
    assert_eq!(body(html, WITHOUT_REMOTE), format!("{start}{end}"));
    assert_eq!(body(html, WITH_REMOTE), format!("{start} background=\"http://x/y\"{end}"));
}

#[test]
fn preview_keeps_presentation() {
    let unchanged = [
        "<table width=\"600\" cellpadding=\"0\" bgcolor=\"#eee\" align=\"center\"><tbody><tr><td valign=\"top\" class=\"a\" id=\"b\">x</td></tr></tbody></table>",
        "<center><font color=\"red\" face=\"Arial\" size=\"2\">x</font></center>",
        "<map name=\"m\"><area shape=\"rect\" coords=\"0,0,9,9\"></map><img usemap=\"#m\" alt=\"x\">",
        "<div style=\"position:absolute;left:-9px\">x</div>",
        "<ol start=\"3\" type=\"a\"><li value=\"4\">x</li></ol>",
        "<pre>\n\na\n  b</pre>",
    ];
    for html in unchanged {
        assert_eq!(content(html, WITHOUT_REMOTE), html);
    }
}

#[test]
fn preview_rewrites_urls() {
    let link = |href: &str| format!("<a href=\"{href}\" target=\"_blank\" rel=\"noopener noreferrer nofollow\">x</a>");
    let table = [
        ("<a href=https://x/?a&amp;b>x</a>", link("https://x/?a&amp;b"), link("https://x/?a&amp;b")),
        ("<a href=mailto:a@b target=_top>x</a>", link("mailto:a@b"), link("mailto:a@b")),
        ("<a href='//x/y'>x</a>", link("https://x/y"), link("https://x/y")),
        ("<a href='#top'>x</a>", "<a>x</a>".into(), "<a>x</a>".into()),
        ("<a href='/api/v1'>x</a>", "<a>x</a>".into(), "<a>x</a>".into()),
        (
            "<img src=http://x/y.png width=9 alt=a>",
            "<img data-blocked=\"\" width=\"9\" alt=\"a\">".into(),
            "<img src=\"http://x/y.png\" width=\"9\" alt=\"a\">".into(),
        ),
        ("<img src=//x/y>", "<img data-blocked=\"\">".into(), "<img src=\"https://x/y\">".into()),
        (
            "<img src=cid:known@x>",
            "<img src=\"https://parts.example/1\">".into(),
            "<img src=\"https://parts.example/1\">".into(),
        ),
        ("<img src=cid:other>", "<img>".into(), "<img>".into()),
        ("<img src=relative.png>", "<img>".into(), "<img>".into()),
        (
            "<img src='data:image/png;base64,AAAA'>",
            "<img src=\"data:image/png;base64,AAAA\">".into(),
            "<img src=\"data:image/png;base64,AAAA\">".into(),
        ),
        (
            "<picture><source srcset='http://x/a 1x, //y/b, c 2x, http://z/d,e 3x' type=image/webp><img></picture>",
            "<picture><source type=\"image/webp\"><img></picture>".into(),
            "<picture><source srcset=\"http://x/a 1x, https://y/b, http://z/d,e 3x\" type=\"image/webp\"><img></picture>"
                .into(),
        ),
        (
            "<p style='background:url(http://x/y)'>a</p>",
            "<p style=\"background:none\">a</p>".into(),
            "<p style=\"background:url(&quot;http://x/y&quot;)\">a</p>".into(),
        ),
    ];
    for (html, without_remote, with_remote) in table {
        assert_eq!(content(html, WITHOUT_REMOTE), without_remote, "{html}");
        assert_eq!(content(html, WITH_REMOTE), with_remote, "{html}");
    }
}

#[test]
fn sanitize_removes_styles_and_names() {
    let table = [
        ("<p class=a id=b style='color:red;position:fixed'>x", "<p style=\"color:red\">x</p>"),
        ("<style>p{}</style><p style='position:fixed'>x", "<p>x</p>"),
        ("<img src=http://x/y alt=a>", "<img src=\"http://x/y\" alt=\"a\">"),
        ("<img src=cid:known@x srcset='http://x/y'>", "<img src=\"https://parts.example/1\">"),
        (
            "<a name=x href='tel:1'>y</a>",
            "<a href=\"tel:1\" target=\"_blank\" rel=\"noopener noreferrer nofollow\">y</a>",
        ),
        (
            "<table background=//x/y><td>a",
            "<table background=\"https://x/y\"><tbody><tr><td>a</td></tr></tbody></table>",
        ),
        ("<form action=x><input value=y><select><option>a</select><button>b</button></form>", "ab"),
        ("a&nbsp;&copy;&#13;b", "a&nbsp;©\nb"),
    ];
    for (html, result) in table {
        assert_eq!(sanitize(html, &TestParts), result, "{html}");
    }
}

#[test]
fn lists_remote_hosts() {
    let html = "<body background=http://b.example/x><style>@font-face{src:url(//f.example/y)}</style>\
        <img src='https://I.example:8080/1'><img src=http://i.example/2><img srcset='http://s.example/3 2x'>\
        <p style='background:url(\"http://c.example\")'><a href=http://link.example>x</a><img src=cid:known@x>\
        <img src=data:image/png,x><img src='http://['>";
    assert_eq!(remote_hosts(html, &TestParts), ["b.example", "c.example", "f.example", "i.example", "s.example"]);
    assert_eq!(remote_hosts("no HTML", &TestParts), [""; 0]);
    let many: Vec<_> = (0..200).map(|n| format!("<img src=http://h{n}.example>")).collect();
    assert_eq!(remote_hosts(&many.concat(), &TestParts).len(), 50);
}
