//! The HTML of a message as a document of its own. It is the HTML as it was sent, except for what would make a browser
//! contact other hosts or leave the page without a click, and for the links to images of the message. Scripts stay: the
//! content security policy of the response forbids them.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;

use restante_html::InlineParts;
use restante_mail::mime::Mime;
use restante_mail::mime::html_tokens::{Attributes, Token, Tokens, find_attribute};
use restante_mail::mime::references::{ReferenceContext, resolve};

use crate::dialects::mailpit::content::{Files, part_ids};

/// The maximum number of bytes that links to parts add to the document. The other links stay as they were sent.
const MAX_ADDED_BYTES: usize = 32 * 1024 * 1024;

/// Values of `http-equiv` with which the document leaves the page, contacts hosts or sets cookies.
const REMOVED_DIRECTIVES: [&str; 4] = ["refresh", "x-dns-prefetch-control", "set-cookie", "link"];
/// Relations for which browsers contact a host before anything of it is needed. No policy prevents all of them.
const REMOVED_RELATIONS: [&str; 7] =
    ["dns-prefetch", "preconnect", "prefetch", "prerender", "preload", "modulepreload", "next"];

/// The attributes of links that open in a new window.
const NEW_WINDOW: &str = " target=\"_blank\" rel=\"noreferrer noopener\"";

/// The elements that can act on their own.
const ACTIVE_ELEMENTS: [&str; 3] = ["meta", "link", "base"];
/// The element that replaces them. It is obsolete and has no effect. Like them it has no content, and may be in the head.
const INERT_ELEMENT: &str = "basefont";
/// The attribute that contains the document of a frame. In its value, `&lt;` starts a tag. Policies for frames do not apply
/// to it.
const FRAME_DOCUMENT: &str = "srcdoc";
/// The end of the name that replaces it. There is no such attribute.
const INERT_SUFFIX: &str = "-inert";

/// Returns the HTML without elements that act on their own, and without documents in attributes. If `opens_windows`, all
/// links open in a new window.
///
/// Browsers find other tags than the tokenizer in some places: inside of `svg` and `math`, a `style` or `title` contains
/// tags, and there are CDATA sections; a `select` ignores the tags of raw text elements. So an element is renamed wherever
/// its name follows a `<`, also in comments, texts and attributes, unless it is a tag without such an effect. A tag has the
/// same attributes in all contexts. Nothing is removed, because the text on both sides could become a tag.
pub(crate) fn disarm(html: &str, opens_windows: bool) -> String {
    let html = if opens_windows { Cow::Owned(open_new_windows(html)) } else { Cow::Borrowed(html) };
    let mut harmless = Tokens::without_scripts(&html)
        .filter_map(|token| match token {
            Token::StartTag(name, attributes) if !acts(name, attributes) => Some(offset(&html, name)),
            _ => None,
        })
        .peekable();
    let mut out = String::with_capacity(html.len());
    let mut copied = 0;
    for (at, _) in html.match_indices('<') {
        let start = at + 1;
        let Some(name) = active_element(&html[start..]) else { continue };
        while harmless.next_if(|harmless| *harmless < start).is_some() {}
        if harmless.peek() != Some(&start) {
            out.push_str(&html[copied..start]);
            out.push_str(INERT_ELEMENT);
            copied = start + name.len();
        }
    }
    out.push_str(&html[copied..]);
    rename_frame_documents(&out)
}

/// Returns the HTML with another name for [`FRAME_DOCUMENT`]. For the reason that [`disarm`] gives, the name is replaced
/// wherever an equals sign follows it. Without one, the attribute has no value. Parameters of URLs keep their name: no
/// attribute starts after `?`, `&` or `;`.
fn rename_frame_documents(html: &str) -> String {
    let mut out = String::with_capacity(html.len());
    let mut copied = 0;
    for (at, _) in html.match_indices('=') {
        let before = html.as_bytes()[..at].trim_ascii_end();
        let Some((start, name)) = before.split_last_chunk::<{ FRAME_DOCUMENT.len() }>() else { continue };
        if name.eq_ignore_ascii_case(FRAME_DOCUMENT.as_bytes()) && !matches!(start.last(), Some(b'?' | b'&' | b';')) {
            out.push_str(&html[copied..before.len()]);
            out.push_str(INERT_SUFFIX);
            copied = before.len();
        }
    }
    out.push_str(&html[copied..]);
    out
}

/// Returns the name of the active element whose tag continues with this text after its `<`.
fn active_element(text: &str) -> Option<&'static str> {
    ACTIVE_ELEMENTS.into_iter().find(|name| {
        let is_named = text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        let ends = |byte: u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>');
        is_named && text.as_bytes().get(name.len()).copied().is_none_or(ends)
    })
}

/// Returns the HTML with links that open in a new window.
fn open_new_windows(html: &str) -> String {
    let mut out = String::with_capacity(html.len());
    let mut copied = 0;
    for token in Tokens::without_scripts(html) {
        if let Token::StartTag(name, attributes) = token
            && name.eq_ignore_ascii_case("a")
        {
            let start = offset(html, attributes);
            out.push_str(&html[copied..start]);
            push_link_attributes(&mut out, attributes);
            copied = start + attributes.len();
        }
    }
    out.push_str(&html[copied..]);
    out
}

/// Returns the position of a slice of the text in the text.
fn offset(text: &str, slice: &str) -> usize {
    slice.as_ptr().addr() - text.as_ptr().addr()
}

/// Returns whether the element acts on its own.
fn acts(name: &str, attributes: &str) -> bool {
    let value = |name| find_attribute(attributes, name).map(|raw| resolve(raw, ReferenceContext::Attribute));
    let is_listed = |list: &[&str], word: &str| list.iter().any(|listed| listed.eq_ignore_ascii_case(word));
    if name.eq_ignore_ascii_case("meta") {
        value("http-equiv").is_some_and(|directive| is_listed(&REMOVED_DIRECTIVES, directive.trim()))
    } else if name.eq_ignore_ascii_case("link") {
        value("rel").is_some_and(|rel| rel.split_ascii_whitespace().any(|word| is_listed(&REMOVED_RELATIONS, word)))
    } else {
        name.eq_ignore_ascii_case("base")
    }
}

/// Appends the attributes of a link, with those of [`NEW_WINDOW`] instead of its own.
fn push_link_attributes(out: &mut String, attributes: &str) {
    for (name, value) in Attributes::new(attributes) {
        if name.eq_ignore_ascii_case("target") || name.eq_ignore_ascii_case("rel") {
            continue;
        }
        out.push(' ');
        out.push_str(name);
        out.push_str("=\"");
        // A value without quotes can contain both kinds of them.
        out.push_str(&value.replace('"', "&quot;"));
        out.push('"');
    }
    out.push_str(NEW_WINDOW);
}

/// Replaces the URLs of parts of the message in attributes: `="cid:…"`. With `in_styles`, also in styles: `url(cid:…)`.
pub(crate) fn link_parts(html: &str, parts: &dyn InlineParts, in_styles: bool) -> String {
    const SCHEME: &[u8] = b"cid:";
    let bytes = html.as_bytes();
    let mut out = String::with_capacity(html.len());
    // Text before `checked` contains no other URL, so that each character is examined once.
    let (mut copied, mut checked) = (0, 0);
    for (colon, _) in html.match_indices(':') {
        let Some(start) = (colon + 1).checked_sub(SCHEME.len()) else { continue };
        if start < checked
            || !bytes[start..=colon].eq_ignore_ascii_case(SCHEME)
            || !starts_url(&bytes[..start], in_styles)
        {
            continue;
        }
        let id_end = html[colon + 1..].find(ends_url).map_or(html.len(), |len| colon + 1 + len);
        checked = id_end;
        if let Some(url) = parts.url_by_content_id(&html[colon + 1..id_end]) {
            out.push_str(&html[copied..start]);
            out.push_str(&url);
            copied = id_end;
        }
    }
    out.push_str(&html[copied..]);
    out
}

/// Returns whether a URL can start after this text: after an equals sign, or in `url(`, with or without a quote.
fn starts_url(before: &[u8], in_styles: bool) -> bool {
    let before = before.strip_suffix(b"\"").or_else(|| before.strip_suffix(b"'")).unwrap_or(before);
    match before.last() {
        Some(b'=') => true,
        Some(b'(') => in_styles,
        _ => false,
    }
}

fn ends_url(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '>' | ';' | ')')
}

/// The links to the parts of a message in this API.
pub(crate) struct PartLinks {
    /// The ids of the parts by their Content-IDs, in lower case.
    parts: HashMap<String, String>,
    /// The URL of the parts, with a slash at the end.
    base: String,
    bytes_left: Cell<usize>,
}

impl PartLinks {
    /// Creates the links of a message. `base` is the URL of its parts, with a slash at the end.
    pub(crate) fn new(mime: &Mime, base: String) -> Self {
        let (Files { inline, attachments }, ids) = (Files::of(mime), part_ids(mime));
        let mut parts = HashMap::new();
        for index in inline.into_iter().chain(attachments) {
            if let Some(content_id) = &mime.parts()[index].content_id {
                parts.entry(content_id.to_lowercase()).or_insert_with(|| ids[index].clone());
            }
        }
        Self { parts, base, bytes_left: Cell::new(MAX_ADDED_BYTES) }
    }
}

impl InlineParts for PartLinks {
    fn url_by_content_id(&self, content_id: &str) -> Option<String> {
        let url = format!("{}{}", self.base, self.parts.get(&content_id.to_lowercase())?);
        self.bytes_left.set(self.bytes_left.get().checked_sub(url.len())?);
        Some(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_that_act_on_their_own_are_renamed() {
        let unchanged = |html| (html, html);
        let table = [
            unchanged("<p>a</p>"),
            ("a<meta http-equiv=refresh content='0;url=//x'>b", "a<basefont http-equiv=refresh content='0;url=//x'>b"),
            ("<META\nHTTP-EQUIV=\" Refresh \" content=1 />", "<basefont\nHTTP-EQUIV=\" Refresh \" content=1 />"),
            ("<meta http-equiv='&#114;efresh' content=1>", "<basefont http-equiv='&#114;efresh' content=1>"),
            ("<meta/http-equiv=x-dns-prefetch-control>", "<basefont/http-equiv=x-dns-prefetch-control>"),
            unchanged("<meta charset=utf-8><meta http-equiv=content-type content=x>"),
            unchanged("<metadata><linked><baseline><meta-x><base-x>"),
            ("a<base href=//x>b<BASE target=_top>c", "a<basefont href=//x>b<basefont target=_top>c"),
            ("<link rel=preconnect href=//x>", "<basefont rel=preconnect href=//x>"),
            ("<link href=x rel='stylesheet PREFETCH'>", "<basefont href=x rel='stylesheet PREFETCH'>"),
            ("<link rel=next href=//x>", "<basefont rel=next href=//x>"),
            (
                "<meta http-equiv=Link content='<//x>; rel=prefetch'>",
                "<basefont http-equiv=Link content='<//x>; rel=prefetch'>",
            ),
            unchanged("<link rel=stylesheet href=//x>"),
            ("<noscript>a<noscript><base>b</noscript>", "<noscript>a<noscript><basefont>b</noscript>"),
            ("a<base", "a<basefont"),
            // Nothing is joined to a new tag.
            ("<<base>base href=//x>", "<<basefont>base href=//x>"),
            ("<<base>meta http-equiv=refresh>", "<<basefont>meta http-equiv=refresh>"),
        ];
        for (html, expected) in table {
            assert_eq!(disarm(html, false), expected, "{html}");
        }
        let many = "<base>".repeat(100_000) + &"<noscript>".repeat(100_000);
        assert_eq!(disarm(&many, false).matches("<basefont>").count(), 100_000);
    }

    /// Here browsers find tags that the tokenizer does not find.
    #[test]
    fn elements_are_renamed_in_all_contexts() {
        let contexts = [
            "<svg><style>TAG</style></svg>",
            "<svg><title>TAG</title></svg>",
            "<svg><desc><title>TAG</title></desc></svg>",
            "<svg><style><p title=\"</style>TAG\">TAG",
            "<svg><![CDATA[ > <!-- ]]>TAG-->",
            "<svg><![CDATA[ > <a title=\"]]>TAG\">",
            "<svg><![CDATA[ > <meta content=\"]]>TAG\">",
            "<math><annotation-xml encoding=text/html><style>TAG</style></annotation-xml></math>",
            "<math><mtext><mglyph><xmp>TAG</xmp></math>",
            "<select><xmp></select>TAG</xmp>",
            "<select><title></select>TAG</title>",
            "<script><!--<script></script>TAG--></script>TAG",
            "<!-- TAG --><textarea>TAG</textarea><a title='TAG'>TAG",
        ];
        for context in contexts {
            for (tag, renamed) in [
                ("<meta http-equiv=refresh>", "<basefont http-equiv=refresh>"),
                ("<base href=//x>", "<basefont href=//x>"),
                ("<LINK rel=preconnect href=//x>", "<basefont rel=preconnect href=//x>"),
            ] {
                let expected = context.replace("TAG", renamed);
                assert_eq!(disarm(&context.replace("TAG", tag), false), expected, "{context}");
                let opened = disarm(&context.replace("TAG", tag), true).to_lowercase();
                assert!(opened.contains(renamed) && !opened.contains(&tag.to_lowercase()), "{opened}");
            }
        }
    }

    #[test]
    fn documents_of_frames_are_renamed() {
        let unchanged = |html| (html, html);
        let table = [
            ("<iframe srcdoc=\"&lt;base&gt;\">", "<iframe srcdoc-inert=\"&lt;base&gt;\">"),
            ("<IFRAME/SrcDoc=x>", "<IFRAME/SrcDoc-inert=x>"),
            ("<iframe title=\"\"srcdoc=x>", "<iframe title=\"\"srcdoc-inert=x>"),
            ("<iframe\nSRCDOC \t\r\n\u{c}= 'x'>", "<iframe\nSRCDOC-inert \t\r\n\u{c}= 'x'>"),
            ("<iframe srcdoc=x srcdoc=y", "<iframe srcdoc-inert=x srcdoc-inert=y"),
            // The tokenizer finds no tag here.
            (
                "<svg><title><iframe title=\"</title>\" srcdoc=x></title>",
                "<svg><title><iframe title=\"</title>\" srcdoc-inert=x></title>",
            ),
            ("<select><xmp></select><iframe srcdoc=x>", "<select><xmp></select><iframe srcdoc-inert=x>"),
            ("<!-- <iframe srcdoc=x> -->", "<!-- <iframe srcdoc-inert=x> -->"),
            // In a document in a document.
            ("<iframe srcdoc='<iframe srcdoc=x>'>", "<iframe srcdoc-inert='<iframe srcdoc-inert=x>'>"),
            unchanged("<iframe srcdoc><p>The attribute srcdoc</p> = srcdoc"),
            unchanged("<iframe srcdoc\u{b}=x srcdoc\0=x srcdocs=x>"),
            unchanged("<a href=\"/?srcdoc=1&amp;srcdoc=2&srcdoc=3\">"),
            unchanged("=doc=éé=rcdoc="),
        ];
        for (html, expected) in table {
            assert_eq!(disarm(html, false), expected, "{html}");
        }
        // Takes very long if whitespace is examined more than once.
        let many = format!("srcdoc{}", " ".repeat(1_000_000)) + &"srcdoc =".repeat(100_000) + &" = ".repeat(300_000);
        assert_eq!(disarm(&many, true).matches(INERT_SUFFIX).count(), 100_000);
    }

    #[test]
    fn links_open_in_a_new_window() {
        let table = [
            (
                "<a href=\"x?a&amp;b\" target=_top>a</a>",
                "<a href=\"x?a&amp;b\" target=\"_blank\" rel=\"noreferrer noopener\">a</a>",
            ),
            (
                "<A REL=x HREF='a\"b' download>",
                "<A HREF=\"a&quot;b\" download=\"\" target=\"_blank\" rel=\"noreferrer noopener\">",
            ),
            ("<a href=x'\"= >", "<a href=\"x'&quot;=\" target=\"_blank\" rel=\"noreferrer noopener\">"),
            ("<a>", "<a target=\"_blank\" rel=\"noreferrer noopener\">"),
            ("<a href=x", "<a href=\"x\" target=\"_blank\" rel=\"noreferrer noopener\""),
            ("<abbr title=x>", "<abbr title=x>"),
        ];
        for (html, expected) in table {
            assert_eq!(disarm(html, true), expected, "{html}");
        }
    }

    /// Takes very long if every link is examined up to the end of the text.
    #[test]
    fn links_without_an_end_are_examined_once() {
        let html = "=cid:".repeat(400_000);
        let links = PartLinks::new(&Mime::parse("\r\n".into()), "/p/".to_owned());
        assert_eq!(link_parts(&html, &links, true), html);
    }

    #[test]
    fn parts_are_linked() {
        let source = "Content-Type: multipart/related; boundary=b\r\n\r\n--b\r\nContent-Type: text/html\r\n\r\nx\r\n\
            --b\r\nContent-Type: image/png\r\nContent-ID: <Logo@x>\r\n\r\nx\r\n--b--\r\n";
        let links = PartLinks::new(&Mime::parse(source.into()), "/p/".to_owned());
        let table = [
            ("<img src=\"cid:Logo@x\">", "<img src=\"/p/2\">"),
            ("<img src='CID:logo@X' alt=cid:logo@x><p>cid:logo@x", "<img src='/p/2' alt=/p/2><p>cid:logo@x"),
            ("<img src=\"cid:other@x\">", "<img src=\"cid:other@x\">"),
            ("<img src = \"cid:logo@x\">", "<img src = \"cid:logo@x\">"),
            ("<p style=\"background:url(cid:logo@x)\">", "<p style=\"background:url(cid:logo@x)\">"),
            ("<img src=\"acid:logo@x\">cid:", "<img src=\"acid:logo@x\">cid:"),
            ("=cid:logo@x", "=/p/2"),
            (":=cid:", ":=cid:"),
        ];
        for (html, expected) in table {
            assert_eq!(link_parts(html, &links, false), expected, "{html}");
        }
        assert_eq!(link_parts("url(cid:logo@x) url('cid:logo@x')", &links, true), "url(/p/2) url('/p/2')");
    }

    #[test]
    fn added_links_are_limited() {
        let source = "Content-Type: multipart/related; boundary=b\r\n\r\n--b\r\nContent-Type: image/png\r\nContent-ID: a\r\n\r\nx\r\n--b--\r\n";
        let links = PartLinks::new(&Mime::parse(source.into()), "/".repeat(MAX_ADDED_BYTES / 2));
        assert_eq!(link_parts("=cid:a =cid:a", &links, false).len(), MAX_ADDED_BYTES / 2 + "=1 =cid:a".len());
    }
}
