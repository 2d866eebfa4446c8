//! HTML of a sender as a document that a browser shows. It is the HTML as it was sent, except for what would make a browser
//! contact other hosts or leave the page without a click. Scripts stay: the content security policy of the response forbids
//! them.

use restante_mail::mime::html_tokens::{Attributes, Token, Tokens};
use restante_mail::mime::references::{ReferenceContext, resolve};

/// Values of `http-equiv` with which the document leaves the page, contacts hosts or sets cookies.
const REMOVED_DIRECTIVES: [&str; 4] = ["refresh", "x-dns-prefetch-control", "set-cookie", "link"];
/// Relations of a `link` for which browsers contact a host only to load something, which the policy forbids. For others, such
/// as `preconnect`, they contact it before anything of it is needed. No policy prevents that.
const KEPT_RELATIONS: [&str; 6] = ["alternate", "author", "canonical", "icon", "shortcut", "stylesheet"];

/// The elements that can act on their own. Browsers connect to the host of a frame before they apply the policy.
const ACTIVE_ELEMENTS: [&str; 5] = ["meta", "link", "base", "iframe", "frame"];
/// The element that replaces them. It is obsolete and has no effect. It has no content, and may be in the head.
const INERT_ELEMENT: &str = "basefont";

/// Returns the HTML without elements that act on their own. The content of an `iframe`, which is meant for browsers without
/// frames, becomes visible.
///
/// Browsers find other tags than the tokenizer in some places: inside of `svg` and `math`, a `style` or `title` contains
/// tags, and there are CDATA sections; a `select` ignores the tags of raw text elements. So an element is renamed wherever
/// its name follows a `<`, also in comments, texts and attributes, unless it is a tag without such an effect. A tag has the
/// same attributes in all contexts. Nothing is removed, because the text on both sides could become a tag.
pub fn disarm(html: &str) -> String {
    let mut harmless = Tokens::without_scripts(html)
        .filter_map(|token| match token {
            Token::StartTag(name, attributes) if !acts(name, attributes) => Some(offset(html, name)),
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

/// Returns the position of a slice of the text in the text.
pub fn offset(text: &str, slice: &str) -> usize {
    slice.as_ptr().addr() - text.as_ptr().addr()
}

/// Returns whether the element acts on its own. Attributes that are repeated count, although they have no effect in the
/// document: browsers also scan the text of the document for what they will need.
fn acts(name: &str, attributes: &str) -> bool {
    let values = |wanted: &'static str| {
        let found = Attributes::new(attributes).filter(move |(name, _)| name.eq_ignore_ascii_case(wanted));
        found.map(|(_, raw)| resolve(raw, ReferenceContext::Attribute))
    };
    let is_listed = |list: &[&str], word: &str| list.iter().any(|listed| listed.eq_ignore_ascii_case(word));
    if name.eq_ignore_ascii_case("meta") {
        values("http-equiv").any(|directive| is_listed(&REMOVED_DIRECTIVES, directive.trim()))
    } else if name.eq_ignore_ascii_case("link") {
        values("rel").any(|rel| !rel.split_ascii_whitespace().all(|word| is_listed(&KEPT_RELATIONS, word)))
    } else {
        active_element(name).is_some()
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
            unchanged("<link rel=stylesheet href=//x><link href=//x><link rel='Shortcut ICON' rel=alternate>"),
            ("<link rel=x rel=preconnect href=//x>", "<basefont rel=x rel=preconnect href=//x>"),
            ("<link rel=icon rel=preconnect href=//x>", "<basefont rel=icon rel=preconnect href=//x>"),
            ("<link rel=&Tab;preconnect href=//x>", "<basefont rel=&Tab;preconnect href=//x>"),
            ("<link rel='icon&#9;preconnect' href=//x>", "<basefont rel='icon&#9;preconnect' href=//x>"),
            ("<link rel=unknown href=//x>", "<basefont rel=unknown href=//x>"),
            ("<meta http-equiv=x http-equiv=refresh>", "<basefont http-equiv=x http-equiv=refresh>"),
            ("<iframe src=//x>a</iframe>b", "<basefont src=//x>a</iframe>b"),
            ("<IFRAME/SrcDoc='&lt;base&gt;'>", "<basefont/SrcDoc='&lt;base&gt;'>"),
            ("<frameset><frame src=//x></frameset>", "<frameset><basefont src=//x></frameset>"),
            ("<noscript>a<noscript><base>b</noscript>", "<noscript>a<noscript><basefont>b</noscript>"),
            ("a<base", "a<basefont"),
            // Nothing is joined to a new tag.
            ("<<base>base href=//x>", "<<basefont>base href=//x>"),
            ("<<base>meta http-equiv=refresh>", "<<basefont>meta http-equiv=refresh>"),
        ];
        for (html, expected) in table {
            assert_eq!(disarm(html), expected, "{html}");
        }
        let many = "<base>".repeat(100_000) + &"<noscript>".repeat(100_000);
        assert_eq!(disarm(&many).matches("<basefont>").count(), 100_000);
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
                ("<iframe src=//x></iframe>", "<basefont src=//x></iframe>"),
            ] {
                let expected = context.replace("TAG", renamed);
                assert_eq!(disarm(&context.replace("TAG", tag)), expected, "{context}");
            }
        }
    }
}
