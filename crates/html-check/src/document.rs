//! The tree of the elements of a document. It follows the HTML standard for well-formed documents: implied elements
//! (`html`, `head`, `body`, `tbody`, `tr`) and implied end tags. Misnested formatting is not repaired. One pass with a
//! bounded stack builds it.

use std::borrow::Cow;

use restante_mail::mime::html_tokens::{Attributes, Token, Tokens, find_attribute};
use restante_mail::mime::references::{ReferenceContext, resolve};

use crate::element_names::{closes_paragraph, is_metadata, is_scope, is_table_part, is_void};

/// The maximum number of elements.
pub(crate) const MAX_ELEMENTS: usize = 50_000;
/// The maximum number of tags. Tags that add no element are compared with the open elements, too.
const MAX_TAGS: usize = 2 * MAX_ELEMENTS;
/// The maximum nesting depth. Deeper elements become children of the deepest one.
const MAX_DEPTH: usize = 256;

/// The index of an element in a document.
pub(crate) type ElementId = usize;

/// The elements that every document has.
pub(crate) const HEAD: ElementId = 1;
const BODY: ElementId = 2;

/// An element.
#[derive(Debug)]
pub(crate) struct Element<'a> {
    /// The name in lower case.
    pub(crate) name: Cow<'a, str>,
    /// The source text of the attributes.
    pub(crate) attributes: &'a str,
    /// The source text of the name, or empty if the element is implied.
    pub(crate) tag: &'a str,
    /// The content, if it is raw text.
    pub(crate) raw_text: &'a str,
    pub(crate) id: Cow<'a, str>,
    pub(crate) class: Cow<'a, str>,
    pub(crate) parent: Option<ElementId>,
    pub(crate) previous: Option<ElementId>,
    /// Whether an element follows with the same parent.
    pub(crate) has_next: bool,
    last_child: Option<ElementId>,
}

/// The elements of a document, in document order.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    pub(crate) elements: Vec<Element<'a>>,
    /// Whether the rest of the document was left out.
    pub(crate) is_truncated: bool,
}

impl<'a> Document<'a> {
    /// Parses a document.
    pub(crate) fn parse(html: &'a str) -> Self {
        let mut builder = Builder::new();
        let mut tags = 0;
        for token in Tokens::new(html) {
            tags += usize::from(matches!(token, Token::StartTag(..) | Token::EndTag(_)));
            if builder.document.elements.len() >= MAX_ELEMENTS || tags > MAX_TAGS {
                builder.document.is_truncated = true;
                break;
            }
            match token {
                Token::Text(text) => builder.text(text),
                Token::StartTag(name, attributes) => builder.start_tag(name, attributes),
                Token::RawText(text) => builder.raw_text(text),
                Token::EndTag(name) => builder.end_tag(&lowercase(name)),
            }
        }
        builder.document
    }

    /// Returns whether the element is in the head.
    pub(crate) fn is_in_head(&self, id: ElementId) -> bool {
        id == HEAD || self.elements[id].parent == Some(HEAD)
    }
}

struct Builder<'a> {
    document: Document<'a>,
    /// The open elements inside of the body.
    open: Vec<ElementId>,
    /// Whether the body has begun.
    is_in_body: bool,
    /// The element whose raw text follows.
    raw_element: Option<ElementId>,
}

impl<'a> Builder<'a> {
    fn new() -> Self {
        let document = Document { elements: Vec::new(), is_truncated: false };
        let mut builder = Self { document, open: Vec::new(), is_in_body: false, raw_element: None };
        let html = builder.add("html".into(), "", "", None);
        builder.add("head".into(), "", "", Some(html));
        builder.add("body".into(), "", "", Some(html));
        builder
    }

    fn text(&mut self, text: &str) {
        if !text.bytes().all(|b| b.is_ascii_whitespace()) {
            self.is_in_body = true;
        }
    }

    fn raw_text(&mut self, text: &'a str) {
        if let Some(id) = self.raw_element.take() {
            self.document.elements[id].raw_text = text;
        }
    }

    fn start_tag(&mut self, tag: &'a str, attributes: &'a str) {
        self.raw_element = None;
        let name = match lowercase(tag) {
            name if name == "image" && !self.is_in_foreign_content() => "img".into(),
            name => name,
        };
        match &*name {
            "html" => return self.set_attributes(0, tag, attributes),
            "head" => return self.set_attributes(HEAD, tag, attributes),
            "body" => {
                self.is_in_body = true;
                return self.set_attributes(BODY, tag, attributes);
            }
            _ => {}
        }
        if !self.is_in_body && is_metadata(&name) {
            self.raw_element = Some(self.add(name, tag, attributes, Some(HEAD)));
            return;
        }
        self.is_in_body = true;
        if !self.close_for(&name) {
            return;
        }
        let is_leaf = is_void(&name) || (attributes.ends_with('/') && (name == "svg" || self.is_in_foreign_content()));
        let parent = self.parent();
        let id = self.add(name, tag, attributes, Some(parent));
        self.raw_element = Some(id);
        if !is_leaf {
            self.push(id);
        }
    }

    fn end_tag(&mut self, name: &str) {
        self.raw_element = None;
        self.close(|open| open == name, |open| is_scope(open) && !is_table_part(name) && name != "table");
    }

    /// Closes the open elements that a start tag ends, and adds the elements that it implies. Returns false if the tag
    /// is to be ignored.
    fn close_for(&mut self, name: &str) -> bool {
        if is_table_part(name) {
            return self.enter_table_part(name);
        }
        if closes_paragraph(name) {
            self.close(|open| open == "p", |open| is_scope(open) || open == "button");
        }
        match name {
            "li" => self.close(|open| open == "li", |open| is_scope(open) || matches!(open, "ul" | "ol")),
            "dd" | "dt" => self.close(|open| matches!(open, "dd" | "dt"), |open| is_scope(open) || open == "dl"),
            "option" => self.close(|open| open == "option", |open| is_scope(open) || open == "select"),
            "a" => self.close(|open| open == "a", is_scope),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                let is_heading = |open: &str| {
                    open.len() == 2 && open.starts_with('h') && open.ends_with(|c: char| c.is_ascii_digit())
                };
                if self.open.last().is_some_and(|&id| is_heading(&self.document.elements[id].name)) {
                    self.open.pop();
                }
            }
            _ => {}
        }
        true
    }

    /// Closes the open elements down to the parent of a part of a table, and adds implied parts. Returns false outside
    /// of a table.
    fn enter_table_part(&mut self, name: &str) -> bool {
        let is_table = |id: &ElementId| self.document.elements[*id].name == "table";
        let Some(table) = self.open.iter().rposition(is_table) else { return false };
        let parents: &[&str] = match name {
            "td" | "th" => &["tr"],
            "tr" => &["tbody", "thead", "tfoot"],
            "col" => &["colgroup"],
            _ => &[],
        };
        let parent = self.open[table + 1..]
            .iter()
            .position(|&id| parents.contains(&&*self.document.elements[id].name))
            .map(|at| table + 1 + at);
        match (name, parent) {
            (_, Some(parent)) => self.open.truncate(parent + 1),
            ("td" | "th", None) => {
                if !self.enter_table_part("tr") {
                    return false;
                }
                self.imply("tr");
            }
            ("tr", None) => {
                self.open.truncate(table + 1);
                self.imply("tbody");
            }
            ("col", None) => {
                self.open.truncate(table + 1);
                self.imply("colgroup");
            }
            _ => self.open.truncate(table + 1),
        }
        true
    }

    fn imply(&mut self, name: &'static str) {
        let parent = self.parent();
        let id = self.add(name.into(), "", "", Some(parent));
        self.push(id);
    }

    /// Closes the innermost open element that `is_target` accepts, unless there is a boundary inside of it.
    fn close(&mut self, is_target: impl Fn(&str) -> bool, is_boundary: impl Fn(&str) -> bool) {
        for at in (0..self.open.len()).rev() {
            let name = &*self.document.elements[self.open[at]].name;
            if is_target(name) {
                return self.open.truncate(at);
            }
            if is_boundary(name) {
                return;
            }
        }
    }

    fn parent(&self) -> ElementId {
        self.open.last().copied().unwrap_or(BODY)
    }

    fn push(&mut self, id: ElementId) {
        if self.open.len() < MAX_DEPTH {
            self.open.push(id);
        }
    }

    fn is_in_foreign_content(&self) -> bool {
        self.open.iter().any(|&id| matches!(&*self.document.elements[id].name, "svg" | "math"))
    }

    fn add(&mut self, name: Cow<'a, str>, tag: &'a str, attributes: &'a str, parent: Option<ElementId>) -> ElementId {
        let id = self.document.elements.len();
        let previous = parent.and_then(|parent| self.document.elements[parent].last_child.replace(id));
        if let Some(previous) = previous {
            self.document.elements[previous].has_next = true;
        }
        self.document.elements.push(Element {
            name,
            attributes,
            tag,
            raw_text: "",
            id: attribute_value(attributes, "id"),
            class: attribute_value(attributes, "class"),
            parent,
            previous,
            has_next: false,
            last_child: None,
        });
        id
    }

    /// Sets the attributes of an element that exists from the start. Only the first tag counts.
    fn set_attributes(&mut self, id: ElementId, tag: &'a str, attributes: &'a str) {
        let element = &mut self.document.elements[id];
        if element.tag.is_empty() {
            element.tag = tag;
            element.attributes = attributes;
            element.id = attribute_value(attributes, "id");
            element.class = attribute_value(attributes, "class");
        }
    }
}

/// Returns the value of an attribute, or an empty text.
fn attribute_value<'a>(attributes: &'a str, name: &str) -> Cow<'a, str> {
    find_attribute(attributes, name).map(resolved).unwrap_or_default()
}

/// Returns a text as written if it contains no character references.
pub(crate) fn resolved(value: &str) -> Cow<'_, str> {
    if value.contains('&') { resolve(value, ReferenceContext::Attribute).into() } else { value.into() }
}

/// Returns the attributes of an element with names in lower case. Values are as written.
pub(crate) fn attributes<'a>(element: &Element<'a>) -> impl Iterator<Item = (Cow<'a, str>, &'a str)> + use<'a> {
    Attributes::new(element.attributes).map(|(name, value)| (lowercase(name), value))
}

pub(crate) fn lowercase(name: &str) -> Cow<'_, str> {
    if name.bytes().any(|b| b.is_ascii_uppercase()) { name.to_ascii_lowercase().into() } else { name.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the children of an element as text, with their children in parentheses.
    fn outline(document: &Document<'_>, parent: ElementId) -> String {
        let is_child = |id: &ElementId| document.elements[*id].parent == Some(parent);
        let describe = |id: ElementId| match outline(document, id) {
            children if children.is_empty() => document.elements[id].name.to_string(),
            children => format!("{}({children})", document.elements[id].name),
        };
        (0..document.elements.len()).filter(is_child).map(describe).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn builds_trees() {
        let table = [
            ("x", ""),
            ("<p>a<p>b", "p p"),
            ("<P>a</P><div><p>a</div><b>", "p div(p) b"),
            ("<title>a</title><style>p{}</style><p><style>a{}</style>", "title style|p(style)"),
            ("<html><head><meta></head><body><br></body></html>", "meta|br"),
            ("<ul><li>a<li>b<ul><li>c</ul></ul>", "ul(li li(ul(li)))"),
            ("<dl><dt>a<dd>b", "dl(dt dd)"),
            ("<table><tr><td>a<td>b<tr><td>c</table><p>", "table(tbody(tr(td td) tr(td))) p"),
            ("<table><td><table><td></table></div>x<b></b></table>", "table(tbody(tr(td(table(tbody(tr(td))) b))))"),
            ("<table><thead><tr><th></thead><tbody><tr><td>", "table(thead(tr(th)) tbody(tr(td)))"),
            ("<table><col><tr>", "table(colgroup(col) tbody(tr))"),
            ("<td>a</td><p>", "p"),
            ("<svg><path/><path/></svg><p/><i>", "svg(path path) p(i)"),
            ("<image><svg><image/></svg>", "img svg(image)"),
            ("<a>b<a>c", "a a"),
            ("<h1>a<h2>b", "h1 h2"),
            ("<div><span></div></span><i>", "div(span) i"),
        ];
        for (html, tree) in table {
            let (head, body) = tree.split_once('|').unwrap_or(("", tree));
            let document = Document::parse(html);
            assert_eq!(
                (outline(&document, HEAD), outline(&document, BODY)),
                (head.to_owned(), body.to_owned()),
                "{html}"
            );
        }
    }

    #[test]
    fn keeps_attributes_and_raw_text() {
        let document = Document::parse("<BODY CLASS='a &amp; b' id=x><body class=c><style>p{}</style>");
        let (body, style) = (&document.elements[BODY], &document.elements[3]);
        assert_eq!((&*body.class, &*body.id, body.tag), ("a & b", "x", "BODY"));
        assert_eq!((&*style.name, style.raw_text, document.is_in_head(3)), ("style", "p{}", false));
    }

    #[test]
    fn limits_elements_tags_and_depth() {
        let html = "<br>".repeat(MAX_ELEMENTS);
        let document = Document::parse(&html);
        assert!(document.is_truncated && document.elements.len() == MAX_ELEMENTS);
        let html = "<div>".repeat(40_000);
        let document = Document::parse(&html);
        assert!(!document.is_truncated && document.elements.len() == 40_003);
        // Neither tag adds an element.
        for tag in ["</x>", "<td>"] {
            assert!(!Document::parse(&tag.repeat(MAX_TAGS)).is_truncated, "{tag}");
            assert!(Document::parse(&tag.repeat(MAX_TAGS + 1)).is_truncated, "{tag}");
        }
    }
}
