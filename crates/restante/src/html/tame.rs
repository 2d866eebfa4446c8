//! The first step for the HTML of a mail: the same content as markup that is small enough, nested properly, and built of
//! known elements only. It is one linear pass with a bounded stack. What a parser does with broken markup (moving
//! content out of tables, opening lost formatting again and again) takes time that grows with the square of the mail,
//! and a sender decides how broken it is; behind this pass nothing is broken. Whether a value is harmless is not asked
//! here.

use restante_mail::mime::tags::{Attributes, Token, Tokens, attribute};

use super::elements::{Kind, element, is_void};
use super::policy::is_known_attribute;

/// How much of a mail's HTML is looked at, and how much of it is left at most, but for the last piece.
pub(super) const MAX_BYTES: usize = 2 << 20;
/// How many elements the result has at most, but for a few.
pub(super) const MAX_ELEMENTS: usize = 50_000;
/// How deep elements are nested in the result; tags of deeper ones are left out.
pub(super) const MAX_DEPTH: usize = 200;
/// A longer value is left out with its attribute, unless it is an image.
const MAX_VALUE: usize = 16 * 1024;
/// How often formatting goes on behind the end of a block in a mail; how much of it at once, and how much of that may be
/// the same (HTML Standard, section 13.2.4.3); and how long such a tag may be.
const MAX_REOPENED: usize = 1000;
const MAX_LOST: usize = 8;
const MAX_SAME: usize = 3;
const MAX_REOPENED_TAG: usize = 256;

/// How many characters of a text may make the serializer look ahead to the end of it. Then a comment ends the text,
/// which the sanitiser leaves out.
const MAX_COSTLY: usize = 500;

/// The parts of a mail's HTML.
#[derive(Debug, Default)]
pub(super) struct Tamed {
    /// The content of the body.
    pub(super) markup: String,
    /// The attributes of the body.
    pub(super) body: String,
    /// The style sheets.
    pub(super) sheets: Vec<Sheet>,
    /// Whether something is missing at the end.
    pub(super) is_cut: bool,
}

/// A style sheet of the mail: for which media it is, and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sheet {
    pub(super) media: String,
    pub(super) css: String,
}

/// Makes the HTML of a mail fit for a parser.
pub(super) fn tame(html: &str) -> Tamed {
    let end = html.floor_char_boundary(MAX_BYTES);
    let mut tamer = Tamer::default();
    tamer.tamed.is_cut = end < html.len();
    for token in Tokens::new(&html[..end]) {
        if tamer.elements >= MAX_ELEMENTS || tamer.tamed.markup.len() > MAX_BYTES {
            tamer.tamed.is_cut = true;
            break;
        }
        match token {
            Token::Text(text) => tamer.text(text),
            Token::Open(name, attributes) => tamer.start_tag(name, attributes),
            Token::Raw(text) => tamer.raw(text),
            Token::Close(name) => tamer.end_tag(name),
        }
    }
    tamer.tamed.is_cut |= tamer.tamed.markup.len() > MAX_BYTES;
    tamer.close_down_to(0);
    tamer.tamed
}

/// An element that is open.
#[derive(Debug, Clone)]
struct Open {
    name: &'static str,
    kind: Kind,
    /// The start tag, where it may be needed once more.
    tag: Option<Box<str>>,
    /// Its end tag came while a block in it was open; it ends with that block.
    has_ended: bool,
}

/// What the next raw text is good for.
#[derive(Debug, Default)]
enum Raw {
    #[default]
    Nothing,
    Text,
    Style(String),
}

#[derive(Default)]
struct Tamer {
    tamed: Tamed,
    stack: Vec<Open>,
    elements: usize,
    /// Formatting that ended with a block and goes on with the next words.
    lost: Vec<Open>,
    reopened: usize,
    /// How many tags were left out because they were too deep and wait for their end tags.
    too_deep: usize,
    /// How many costly characters were written since the last comment.
    costly: usize,
    raw: Raw,
    has_body: bool,
}

impl Tamer {
    fn text(&mut self, text: &str) {
        if !text.bytes().all(|b| b.is_ascii_whitespace()) {
            self.leave_scaffold();
            self.reopen_lost();
        }
        self.push_text(text);
    }

    /// Writes text. What is no reference but looks like one is written as one: so the limit on the size of the result
    /// limits the work of a parser too.
    fn push_text(&mut self, text: &str) {
        let mut rest = text;
        while let Some(at) = rest.find(|c| matches!(c, '<' | '\0') || is_costly(c)) {
            self.tamed.markup.push_str(&rest[..at]);
            rest = &rest[at..];
            let Some(c) = rest.chars().next() else { return };
            rest = &rest[c.len_utf8()..];
            if is_costly(c) {
                self.divide_text();
            }
            match c {
                '<' => self.tamed.markup.push_str("&lt;"),
                '\0' => {}
                '&' if !rest.starts_with(|c: char| c == '#' || c.is_ascii_alphanumeric()) => {
                    self.tamed.markup.push_str("&amp;");
                }
                c => self.tamed.markup.push(c),
            }
            if self.tamed.markup.len() > MAX_BYTES {
                return;
            }
        }
        self.tamed.markup.push_str(rest);
    }

    /// Ends the text that the parser has collected, when enough costly characters are in it.
    fn divide_text(&mut self) {
        if self.costly == MAX_COSTLY {
            self.costly = 0;
            self.tamed.markup.push_str("<!---->");
        }
        self.costly += 1;
    }

    fn raw(&mut self, text: &str) {
        match std::mem::take(&mut self.raw) {
            Raw::Nothing => {}
            Raw::Text => self.text(text),
            Raw::Style(media) => {
                let css = text.replace("\r\n", "\n").replace('\r', "\n").replace('\0', "");
                self.tamed.sheets.push(Sheet { media, css });
            }
        }
    }

    fn start_tag(&mut self, name: &str, attributes: &str) {
        let Some((name, kind)) = element(name) else { return self.other_start_tag(name, attributes) };
        if kind.is_table_part() {
            if !self.enter_table_part(kind) {
                return;
            }
        } else if !self.make_room(name, kind) {
            return;
        }
        if self.stack.len() >= MAX_DEPTH && !is_void(name) {
            self.too_deep += 1;
            return;
        }
        let mut tag = format!("<{name}");
        push_attributes(&mut tag, attributes);
        tag.push('>');
        self.push(name, kind, tag);
    }

    /// The tags that leave something although they name no element of ours.
    fn other_start_tag(&mut self, name: &str, attributes: &str) {
        if name.eq_ignore_ascii_case("body") && !self.has_body {
            self.has_body = true;
            push_attributes(&mut self.tamed.body, attributes);
        } else if name.eq_ignore_ascii_case("style") {
            let media = attribute(attributes, "media").unwrap_or_default();
            self.raw = Raw::Style(media.to_owned());
        } else if name.eq_ignore_ascii_case("textarea") || name.eq_ignore_ascii_case("xmp") {
            self.raw = Raw::Text;
        }
    }

    /// Ends what an element of this kind cannot stand in. False if there is no place for it.
    fn make_room(&mut self, name: &'static str, kind: Kind) -> bool {
        let is_in_scaffold = self.stack.last().is_some_and(|open| open.kind.is_scaffold());
        if is_in_scaffold {
            // Between the cells of a table only what is seen gets a cell of its own.
            if name != "img" && kind != Kind::Table {
                return false;
            }
            self.leave_scaffold();
        }
        if !kind.is_inline() {
            self.end_open(|open| open.kind == Kind::Paragraph, |open| open.kind.is_boundary());
        }
        match kind {
            Kind::Item => self.end_sibling_item(name),
            Kind::Heading if self.stack.last().is_some_and(|open| open.kind == Kind::Heading) => {
                self.close_down_to(self.stack.len() - 1);
            }
            Kind::Formatting if matches!(name, "a" | "nobr") => {
                self.end_open(|open| open.name == name, |open| open.kind.is_boundary());
                self.lost.retain(|open| open.name != name);
                self.reopen_lost();
            }
            Kind::Formatting | Kind::Inline | Kind::Void | Kind::Break => self.reopen_lost(),
            Kind::Table => self.lost.clear(),
            _ => {}
        }
        true
    }

    fn end_sibling_item(&mut self, name: &str) {
        let is_sibling = |open: &Open| open.kind == Kind::Item && (open.name == "li") == (name == "li");
        let is_end = |open: &Open| !open.kind.is_inline() && !matches!(open.name, "address" | "div" | "p");
        self.end_open(is_sibling, is_end);
    }

    /// Ends the innermost element that is looked for, unless something that bounds the search is further inside.
    fn end_open(&mut self, is_wanted: impl Fn(&Open) -> bool, is_end: impl Fn(&Open) -> bool) {
        for at in (0..self.stack.len()).rev() {
            if is_wanted(&self.stack[at]) {
                return self.close_keeping_format(at);
            } else if is_end(&self.stack[at]) {
                return;
            }
        }
    }

    /// Ends what is open in the innermost table so that a part of it can start. False if there is no table.
    fn enter_table_part(&mut self, kind: Kind) -> bool {
        let Some(table) = self.stack.iter().rposition(|open| open.kind == Kind::Table) else { return false };
        let holder = |kind| self.stack[table..].iter().position(|open| open.kind == kind).map(|at| table + at);
        let keep = match kind {
            Kind::Cell => holder(Kind::Row).or(holder(Kind::Rows)),
            Kind::Row => holder(Kind::Rows),
            Kind::Column => holder(Kind::Column),
            _ => None,
        };
        self.close_down_to(keep.unwrap_or(table) + 1);
        self.lost.clear();
        if kind == Kind::Cell && self.stack.last().is_some_and(|open| open.kind != Kind::Row) {
            self.push("tr", Kind::Row, "<tr>".to_owned());
        }
        true
    }

    /// Opens a cell for content that stands between the cells of a table. A parser would move it before the table.
    fn leave_scaffold(&mut self) {
        if self.stack.last().is_some_and(|open| open.kind.is_scaffold()) {
            self.enter_table_part(Kind::Cell);
            self.push("td", Kind::Cell, "<td>".to_owned());
        }
    }

    fn end_tag(&mut self, name: &str) {
        let Some((name, kind)) = element(name) else { return };
        if is_void(name) {
            return;
        }
        if self.too_deep > 0 {
            self.too_deep -= 1;
            return;
        }
        let is_same = |open: &Open| match kind {
            Kind::Heading => open.kind == Kind::Heading,
            _ => open.name == name && !open.has_ended,
        };
        if let Some(at) = self.lost.iter().rposition(is_same) {
            self.lost.remove(at);
            return;
        }
        let is_of_table = kind.is_table_part() || kind == Kind::Table;
        let mut is_block_open = false;
        for at in (0..self.stack.len()).rev() {
            let open = &self.stack[at];
            if is_same(open) {
                match kind {
                    Kind::Inline if is_block_open => {}
                    Kind::Formatting if is_block_open => self.stack[at].has_ended = true,
                    _ if is_of_table => {
                        self.close_down_to(at);
                        self.lost.clear();
                    }
                    _ => self.close_keeping_format(at),
                }
                return;
            }
            if open.kind == Kind::Table || (!is_of_table && open.kind.is_boundary()) {
                return;
            }
            is_block_open |= !open.kind.is_inline();
        }
    }

    /// Closes the element at this depth and all in it; formatting in it goes on behind it.
    fn close_keeping_format(&mut self, depth: usize) {
        for open in &self.stack[depth + 1..] {
            let goes_on = open.kind == Kind::Formatting && !open.has_ended && open.tag.is_some();
            let same = self.lost.iter().filter(|lost| lost.tag == open.tag).count();
            if goes_on && same < MAX_SAME && self.lost.len() < MAX_LOST {
                self.lost.push(open.clone());
            }
        }
        self.close_down_to(depth);
    }

    fn reopen_lost(&mut self) {
        for open in std::mem::take(&mut self.lost) {
            if let Some(tag) = open.tag
                && self.stack.len() < MAX_DEPTH
                && self.reopened < MAX_REOPENED
            {
                self.reopened += 1;
                self.push(open.name, open.kind, tag.into());
            }
        }
    }

    /// Closes elements until so many are open, and those that only waited for this.
    fn close_down_to(&mut self, depth: usize) {
        while self.stack.len() > depth || self.stack.last().is_some_and(|open| open.has_ended) {
            let Some(open) = self.stack.pop() else { return };
            self.tamed.markup.push_str("</");
            self.tamed.markup.push_str(open.name);
            self.tamed.markup.push('>');
        }
    }

    fn push(&mut self, name: &'static str, kind: Kind, tag: String) {
        self.elements += 1;
        self.tamed.markup.push_str(&tag);
        if !is_void(name) {
            let may_be_lost = kind == Kind::Formatting && tag.len() <= MAX_REOPENED_TAG;
            let tag = may_be_lost.then(|| tag.into_boxed_str());
            self.stack.push(Open { name, kind, tag, has_ended: false });
        }
    }
}

/// Writes the attributes that anybody may want, each once: of two with the same name the first counts.
fn push_attributes(tag: &mut String, attributes: &str) {
    let mut seen: Vec<String> = Vec::new();
    for (name, value) in Attributes::new(attributes) {
        let name = name.to_ascii_lowercase();
        if !is_known_attribute(&name) || seen.contains(&name) {
            continue;
        }
        if value.len() <= MAX_VALUE || (name == "src" && is_plain_data(value)) {
            tag.push(' ');
            tag.push_str(&name);
            tag.push_str("=\"");
            push_quotable(tag, value);
            tag.push('"');
        }
        seen.push(name);
    }
}

/// Whether the value is an address that holds its data itself, without anything that is costly in a long one.
fn is_plain_data(value: &str) -> bool {
    let scheme = value.trim_start().get(..5);
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:")) && !value.contains(is_costly)
}

/// Whether the serializer searches the rest of a text anew at this character: `&`, and what starts with the same byte as
/// a blank that does not break.
fn is_costly(c: char) -> bool {
    matches!(c, '&' | '\u{80}'..='\u{bf}')
}

/// Appends the value so that it can stand between quotes. Its references stay what they are.
fn push_quotable(tag: &mut String, value: &str) {
    for (n, piece) in value.split('"').enumerate() {
        if n > 0 {
            tag.push_str("&quot;");
        }
        tag.extend(piece.split('\0'));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_becomes_orderly() {
        let table = [
            ("a<b>c</b>d", "a<b>c</b>d"),
            ("a < b <", "a &lt; b &lt;"),
            ("& &amp;&#38 &;&", "&amp; &amp;&#38 &amp;;&amp;"),
            ("<B Class=x CLASS=y onclick=z>a", "<b class=\"x\">a</b>"),
            ("<a href='\"x\"'>y", "<a href=\"&quot;x&quot;\">y</a>"),
            ("x\0y<b cl\0ass=a>", "xy<b></b>"),
            ("«\u{a0}»", "«\u{a0}»"),
            // Missing and crossed end tags.
            ("<p>a<p>b", "<p>a</p><p>b</p>"),
            ("<ul><li>a<li>b</ul>c", "<ul><li>a</li><li>b</li></ul>c"),
            ("<ul><li>a<ul><li>b</ul>c", "<ul><li>a<ul><li>b</li></ul>c</li></ul>"),
            ("<dl><dt>a<dd>b<dt>c", "<dl><dt>a</dt><dd>b</dd><dt>c</dt></dl>"),
            ("<h1>a<h2>b</h1>c", "<h1>a</h1><h2>b</h2>c"),
            ("</div></p>a</b>", "a"),
            ("<b><i>a</b>b</i>c", "<b><i>a</i></b><i>b</i>c"),
            ("<p><b>a<p>b", "<p><b>a</b></p><p><b>b</b></p>"),
            ("<div><b>a</div>b</b>c", "<div><b>a</b></div><b>b</b>c"),
            ("<div><b>a</div></b>c", "<div><b>a</b></div>c"),
            ("<b><div>a</b>b</div>c", "<b><div>ab</div></b>c"),
            ("<span><div>a</span>b</div>c", "<span><div>ab</div>c</span>"),
            ("<a>x<a>y", "<a>x</a><a>y</a>"),
            ("<br></br><img>", "<br><img>"),
            // Tables.
            (
                "<table><tr><td>a<td>b<tr><th>c</table>d",
                "<table><tr><td>a</td><td>b</td></tr><tr><th>c</th></tr></table>d",
            ),
            ("<td>a</td><tr>b</tr>", "ab"),
            ("<table>a<tr><td>b", "<table><tr><td>a</td></tr><tr><td>b</td></tr></table>"),
            ("<table><div><tr><td>b</div>c", "<table><tr><td>bc</td></tr></table>"),
            ("<table><tr><table><tr><td>a", "<table><tr><td><table><tr><td>a</td></tr></table></td></tr></table>"),
            ("<table><td><b>a<td>b", "<table><tr><td><b>a</b></td><td>b</td></tr></table>"),
            ("<table><col><col><tbody><td>a", "<table><col><col><tbody><tr><td>a</td></tr></tbody></table>"),
            ("<table><td><p>a</table>b", "<table><tr><td><p>a</p></td></tr></table>b"),
            ("<div><table><td></div>a", "<div><table><tr><td>a</td></tr></table></div>"),
            // What is left out.
            ("<o:p>a</o:p><svg><g>b</svg>", "ab"),
            ("<script>a</script><title>b</title><noscript>c</noscript>d", "d"),
            ("<textarea>a<b></textarea>c", "a&lt;b>c"),
            ("<!--[if mso]><b>a</b><![endif]-->b<![if !mso]>c<![endif]>", "bc"),
            ("<![CDATA[a>b]]>", "b]]>"),
        ];
        for (html, markup) in table {
            assert_eq!(tame(html).markup, markup, "{html}");
        }
    }

    #[test]
    fn the_body_and_the_style_sheets_are_set_aside() {
        let tamed = tame(
            "<html><head><style media=print>a{}</style></head><body bgcolor=red onload=x><STYLE>b{}</style>c</body>",
        );
        let sheet = |media: &str, css: &str| Sheet { media: media.to_owned(), css: css.to_owned() };
        assert_eq!(tamed.sheets, [sheet("print", "a{}"), sheet("", "b{}")]);
        assert_eq!(tamed.body, " bgcolor=\"red\"");
        assert_eq!(tamed.markup, "c");
    }

    #[test]
    fn a_long_value_is_left_out_unless_it_is_an_image() {
        let long = "x".repeat(MAX_VALUE + 1);
        assert_eq!(tame(&format!("<img src=http:{long}>")).markup, "<img>");
        assert_eq!(tame(&format!("<img src=\" Data:{long}\">")).markup, format!("<img src=\" Data:{long}\">"));
    }

    #[test]
    fn long_runs_of_costly_characters_are_divided() {
        for (text, written) in [("&", "&amp;"), ("\u{a0}", "\u{a0}"), ("&nbsp", "&nbsp")] {
            let divided = format!("{}<!---->{written}", written.repeat(MAX_COSTLY));
            assert_eq!(tame(&text.repeat(MAX_COSTLY + 1)).markup, divided);
        }
        assert_eq!(tame(&format!("<img src='data:{}'>", "&".repeat(MAX_VALUE))).markup, "<img>");
    }

    #[test]
    fn what_is_too_much_is_cut() {
        assert!(!tame(&"x".repeat(MAX_BYTES)).is_cut);
        assert!(tame(&"é".repeat(MAX_BYTES)).is_cut);
        let many = tame(&"<br>".repeat(MAX_ELEMENTS + 1));
        assert!(many.is_cut && many.markup.len() == 4 * MAX_ELEMENTS);
        let deep = tame(&format!("{}x{}y", "<div>".repeat(300), "</div>".repeat(300)));
        assert!(!deep.is_cut && deep.markup.contains("<div>x</div>") && deep.markup.ends_with("</div>y"));
    }
}
