//! Known attacks on HTML sanitizers, and random sequences of HTML fragments. The output is parsed by the tokenizer of a
//! browser engine, and everything in it must be on the lists here, which are independent of the code. The browser tests
//! use the same file of attacks.

use std::cell::{Cell, RefCell};

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer};
use proptest::prelude::*;

use super::styles::ANY_URL;
use super::{TestParts, css_scanner};
use crate::{PreviewOptions, render_preview, sanitize};

const ACTIVE_HTML: &str = include_str!("active_html.txt");

/// Harmless elements, in the content.
const ELEMENTS: &str = "a abbr acronym address article aside b bdi bdo big blockquote br caption center cite code col \
    colgroup dd del details dfn dir div dl dt em fieldset figcaption figure font footer h1 h2 h3 h4 h5 h6 header hgroup hr i img \
    ins kbd label li main map mark menu nav nobr ol p picture pre q s samp section small span strike strong sub summary sup table tbody td \
    tfoot th thead time tr tt u ul var wbr";
const ATTRIBUTES: &str = "align alt background bgcolor border bordercolor cellpadding cellspacing clear color colspan \
    compact dir face frame height href hspace lang noshade nowrap rel reversed rowspan rules scope size span src start \
    style target title type valign value vspace width";

/// Additional elements and attributes of the preview: the document itself, and what its style sheets refer to.
const PREVIEW_ELEMENTS: &str = "html head meta style body area source";
const PREVIEW_ATTRIBUTES: &str = "aria-hidden aria-label charset class content coords data-blocked id link alink vlink \
    media name open role shape sizes srcset text usemap";

fn active_html_samples() -> impl Iterator<Item = String> {
    const PICTURES: [(char, char); 6] =
        [('␀', '\0'), ('␁', '\u{1}'), ('␉', '\t'), ('␊', '\n'), ('␌', '\u{c}'), ('␍', '\r')];
    let lines = ACTIVE_HTML.lines().filter(|line| !line.is_empty() && !line.starts_with("# "));
    lines.map(|line| {
        let decode = |c| PICTURES.iter().find(|&&(picture, _)| picture == c).map_or(c, |&(_, control)| control);
        line.chars().map(decode).collect()
    })
}

/// Checks every token of an output.
struct OutputChecker<'a> {
    is_preview: bool,
    source: &'a str,
    is_in_style: Cell<bool>,
    styles: RefCell<Vec<String>>,
    bodies: Cell<usize>,
}

impl OutputChecker<'_> {
    fn check(result: &str, is_preview: bool, source: &str) {
        let checker = OutputChecker {
            is_preview,
            source,
            is_in_style: Cell::new(false),
            styles: RefCell::default(),
            bodies: Cell::new(0),
        };
        let tokenizer = Tokenizer::new(checker, <_>::default());
        let queue = BufferQueue::default();
        queue.push_back(StrTendril::from_slice(result));
        let _ = tokenizer.feed(&queue);
        tokenizer.end();
        assert_eq!(tokenizer.sink.bodies.get(), usize::from(is_preview), "{source}\n{result}");
        for sheet in tokenizer.sink.styles.into_inner() {
            assert!(!sheet.to_ascii_lowercase().contains("expression("), "{source}\n{sheet}");
            assert!(!css_scanner::loaded_urls(&sheet).iter().any(|url| url == ANY_URL), "{source}\n{sheet}");
        }
    }

    fn is_listed(&self, name: &str, list: &str, more: &str) -> bool {
        list.split(' ').chain(more.split(' ').filter(|_| self.is_preview)).any(|known| known == name)
    }

    fn attribute(&self, element: &str, name: &str, value: &str) {
        let source = self.source;
        assert!(self.is_listed(name, ATTRIBUTES, PREVIEW_ATTRIBUTES), "{source}\n{element} {name}={value}");
        // Removes at least the characters that a browser ignores in a URL.
        let bare: String = value.chars().filter(|&c| c > ' ').collect::<String>().to_ascii_lowercase();
        let schemes: &[&str] = match name {
            "href" => &["http:", "https:", "mailto:", "tel:"],
            "src" | "background" => &["http:", "https:", "data:image/"],
            _ => &[""],
        };
        assert!(schemes.iter().any(|scheme| bare.starts_with(scheme)), "{source}\n{element} {name}={value}");
        if name == "srcset" {
            assert!(!bare.contains("script:") && !bare.contains("data:text"), "{source}\n{value}");
        }
        if name == "style" {
            let harmful: &[&str] = if self.is_preview {
                &["url(\"javascript", "url(\"data:text", "expression(", "binding", "behavior"]
            } else {
                &["url(", "expression(", "position:fixed", "@", "\\", "binding", "behavior", "{", "<", "var("]
            };
            let value = value.to_ascii_lowercase();
            assert!(!harmful.iter().any(|harmful| value.contains(harmful)), "{source}\n{value}");
        }
    }
}

impl TokenSink for OutputChecker<'_> {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        match token {
            Token::TagToken(tag) => {
                let name = &*tag.name;
                assert!(self.is_listed(name, ELEMENTS, PREVIEW_ELEMENTS), "{}\n{name}", self.source);
                for attribute in &tag.attrs {
                    self.attribute(name, &attribute.name.local, &attribute.value);
                }
                let is_body = name == "body" && tag.kind == TagKind::StartTag;
                self.bodies.set(self.bodies.get() + usize::from(is_body));
                self.is_in_style.set(name == "style" && tag.kind == TagKind::StartTag);
                if self.is_in_style.get() {
                    self.styles.borrow_mut().push(String::new());
                    return TokenSinkResult::RawData(RawKind::Rawtext);
                }
            }
            Token::CharacterTokens(text) if self.is_in_style.get() => {
                self.styles.borrow_mut().iter_mut().next_back().unwrap().push_str(&text);
            }
            Token::CommentToken(comment) => panic!("{}\n{comment}", self.source),
            Token::DoctypeToken(_) => assert!(self.is_preview, "{}", self.source),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

/// Processes the HTML in all ways and checks the results.
fn check_html(html: &str) {
    let strict = sanitize(html, &TestParts);
    OutputChecker::check(&strict, false, html);
    assert_eq!(sanitize(&strict, &TestParts), strict, "{html}");
    for remote in [false, true] {
        let document = render_preview(html, &TestParts, PreviewOptions { allow_remote: remote, scheme: None });
        OutputChecker::check(&document, true, html);
    }
}

#[test]
fn removes_active_content() {
    assert!(active_html_samples().count() >= 120);
    for sample in active_html_samples() {
        check_html(&sample);
        // Inside of other markup, and in an attribute.
        check_html(&format!("<table><tr><td><b><p>{sample}</p></table>"));
        check_html(&format!("<a title='{sample}'>"));
    }
}

#[test]
fn removes_truncated_active_content() {
    for sample in active_html_samples() {
        for (at, _) in sample.char_indices().step_by(13) {
            check_html(&sample[..at]);
        }
    }
}

#[test]
fn checker_detects_active_content() {
    let harmful = [
        "<script>",
        "<p onclick=x>",
        "<a href=javascript:x>",
        "<a href=' java\nscript:x'>",
        "<img src=data:text/html,x>",
        "<p style='position:fixed'>",
        "<p style='background:url(x)'>",
        "<!-- x -->",
        "<svg>",
    ];
    for html in harmful {
        let outcome = std::panic::catch_unwind(|| OutputChecker::check(html, false, html));
        assert!(outcome.is_err(), "{html}");
    }
}

/// Fragments that are significant to a parser.
fn fragment() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "<p>",
        "</p>",
        "<b>",
        "</b>",
        "<i id=x>",
        "</i>",
        "<a href=http://x>",
        "<a href=javascript:x>",
        "</a>",
        "<div>",
        "</div>",
        "<span>",
        "</span>",
        "<table>",
        "</table>",
        "<tr>",
        "<td>",
        "</td>",
        "<th>",
        "<tbody>",
        "<caption>",
        "<col>",
        "<colgroup>",
        "</tr>",
        "<ul>",
        "</ul>",
        "<li>",
        "<dl>",
        "<dt>",
        "<dd>",
        "<h1>",
        "</h2>",
        "<pre>",
        "\n",
        "<nobr>",
        "<font color=x>",
        "</font>",
        "<hr>",
        "<br>",
        "</br>",
        "<img src=x onerror=y>",
        "<img src=cid:known@x>",
        "<svg>",
        "</svg>",
        "<math>",
        "<mtext>",
        "<mglyph>",
        "<style>",
        "</style>",
        "<title>",
        "</title>",
        "<script>",
        "</script>",
        "<template>",
        "</template>",
        "<select>",
        "<option>",
        "</select>",
        "<textarea>",
        "</textarea>",
        "<noscript>",
        "</noscript>",
        "<plaintext>",
        "<xmp>",
        "<iframe>",
        "<form>",
        "</form>",
        "<button>",
        "<body bgcolor=x>",
        "<head>",
        "<html>",
        "</body>",
        "<frameset>",
        "<!--",
        "-->",
        "<![CDATA[",
        "]]>",
        "<!doctype x>",
        "<?x",
        "<",
        ">",
        "\"",
        "'",
        "=",
        "/",
        " ",
        "x",
        "\0",
        "\r",
        "&lt;",
        "&amp;",
        "&#60;",
        "&#13;",
        "&",
        ";",
        "&nbsp;",
        "é",
        "<p title=\"",
        "<p title='",
        " style='color:red;position:fixed'",
        "url(",
        ")",
        "@import ",
        "/*",
        "*/",
        "{",
        "}",
        "\\",
        "<center>",
        "</center>",
        "<blockquote>",
        "<address>",
        "<details>",
        "<summary>",
        "<map>",
        "<area>",
        "<picture>",
        "<source>",
        "<section>",
        "</section>",
        "<label>",
        "<fieldset>",
    ])
}

proptest! {
    #[test]
    fn removes_active_content_of_any_fragments(fragments in prop::collection::vec(fragment(), 0..30)) {
        check_html(&fragments.concat());
    }
}
