//! The preview: a mail's HTML as a document of its own, for a sandboxed frame. It looks like the mail; what it must not
//! load is left out here already, and forbidden once more by the policy that the answer is sent with.

use std::fmt::Write as _;

use super::dress::Dresser;
use super::escape::push_escaped;
use super::policy::PREVIEW;
use super::tame::{Sheet, Tamed, tame};
use super::{CUT_NOTE, Inline, Scheme, Shown};

/// How a mail looks that says nothing about it. A picture that is not loaded leaves a box of its size, unless the mail's
/// own styles have another idea of it.
const BASE_STYLE: &str = "body{margin:8px;font-family:system-ui,sans-serif;overflow-wrap:break-word}\
    img{max-width:100%}\
    :where(img[data-blocked]){display:inline-block;overflow:hidden;font:12px/1.4 system-ui,sans-serif;color:#767676}\
    img[data-blocked]{outline:1px dashed #8888;outline-offset:-1px;min-width:1px;min-height:1px}";

/// How a mail looks in the dark that was made for white paper only: turned round as a whole, as mail programs do it, and
/// pictures turned back. Text in the colours of the dark would be white on the white that the mail asks for.
const TURNED_STYLE: &str = "html{background:#fff;filter:invert(1) hue-rotate(180deg)}\
    img:not([data-blocked]),[background]{filter:invert(1) hue-rotate(180deg)}";

/// A whole document to be shown in a sandboxed frame: keeps style sheets and inline styles; nothing active survives.
pub fn preview(html: &str, inline: &dyn Inline, shown: Shown) -> String {
    let tamed = tame(html);
    let dressed = Dressed::new(&tamed, &mut Dresser::preview(inline, shown.remote));
    let knows_the_dark = dressed.sheets.iter().any(|sheet| sheet.css.contains("color-scheme"));
    let (scheme, turned) = match shown.scheme {
        Some(Scheme::Dark) if knows_the_dark => ("dark", ""),
        Some(Scheme::Dark) => ("light", TURNED_STYLE),
        None if knows_the_dark => ("light dark", ""),
        Some(Scheme::Light) | None => ("light", ""),
    };
    let mut document = format!(
        "<!doctype html><html><head><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
        <meta name=\"color-scheme\" content=\"{scheme}\">\
        <style>:root{{color-scheme:{scheme}}}{BASE_STYLE}{turned}</style>"
    );
    for Sheet { media, css } in &dressed.sheets {
        document.push_str("<style media=\"");
        push_escaped(&mut document, media);
        // Writing to a string does not fail.
        let _ = write!(document, "\">{css}</style>");
    }
    let Dressed { body, content, .. } = dressed;
    let note = if tamed.is_cut { CUT_NOTE } else { "" };
    let _ = write!(document, "</head><body{body}>{content}{note}</body></html>");
    document
}

/// The hosts that the HTML would load something from that the mail does not bring along (images, srcset, backgrounds,
/// url() in CSS, fonts), sorted, without doubles, at most 50.
pub fn remote_hosts(html: &str, inline: &dyn Inline) -> Vec<String> {
    let mut dresser = Dresser::preview(inline, true);
    Dressed::new(&tame(html), &mut dresser);
    dresser.hosts.into_iter().collect()
}

/// A mail's HTML, ready to be put together.
struct Dressed {
    /// The attributes of the body.
    body: String,
    content: String,
    sheets: Vec<Sheet>,
}

impl Dressed {
    fn new(tamed: &Tamed, dresser: &mut Dresser<'_>) -> Self {
        // The attributes of a body are judged like those of any block.
        let block = PREVIEW.clean(&format!("<div{}></div>", tamed.body)).to_string();
        let block = dresser.dress(&block);
        let body = block.strip_prefix("<div").and_then(|block| block.strip_suffix("></div>")).unwrap_or_default();
        let content = dresser.dress(&PREVIEW.clean(&tamed.markup).to_string());
        let sheets = tamed.sheets.iter().filter(|sheet| sheet.media.chars().all(is_of_media_query));
        let sheets = sheets.map(|sheet| Sheet { media: sheet.media.clone(), css: dresser.style(&sheet.css) });
        Self { body: body.to_owned(), content, sheets: sheets.collect() }
    }
}

/// Whether media queries are written with this character. What they are not written with needs no guess.
fn is_of_media_query(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, ' ' | '(' | ')' | ':' | ',' | '-' | '.' | '/' | '<' | '>' | '=')
}
