//! The allowed HTML elements, and their nesting rules. Tags of other elements are removed, their content is kept.

use std::collections::HashMap;
use std::sync::LazyLock;

use ElementKind::{
    Block, Break, Caption, Cell, Column, Formatting, Heading, Inline, Item, Paragraph, Row, Rows, Rule, Table, Void,
};

/// The behavior of an element if tags around it are missing or misnested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ElementKind {
    /// An inline element that ends at its end tag.
    Inline,
    /// An inline element that continues after the end of the block that it was opened in.
    Formatting,
    /// An inline element without content.
    Void,
    /// `br`: like `Void`, but dropped between the cells of a table.
    Break,
    /// A block element. It ends an open paragraph.
    Block,
    /// A block element that ends at the start of the next paragraph or block.
    Paragraph,
    /// A block element that ends another heading.
    Heading,
    /// A block element that ends its sibling: items of lists and definition lists.
    Item,
    /// `hr`: a block element without content.
    Rule,
    /// `table`.
    Table,
    /// `caption`.
    Caption,
    /// `colgroup` and `col`.
    Column,
    /// `thead`, `tbody` and `tfoot`.
    Rows,
    /// `tr`.
    Row,
    /// `td` and `th`.
    Cell,
}

impl ElementKind {
    /// Returns whether end tags and implied ends inside of this element have no effect outside of it.
    pub(super) fn is_boundary(self) -> bool {
        matches!(self, Table | Caption | Cell)
    }

    /// Returns whether this is a table element that only contains other table elements.
    pub(super) fn is_table_structure(self) -> bool {
        matches!(self, Table | Column | Rows | Row)
    }

    /// Returns whether this element is only allowed in a table.
    pub(super) fn is_table_part(self) -> bool {
        matches!(self, Caption | Column | Rows | Row | Cell)
    }

    /// Returns whether this is an inline element.
    pub(super) fn is_inline(self) -> bool {
        matches!(self, Inline | Formatting | Void | Break)
    }
}

/// Finds an element by its name, ignoring case.
pub(super) fn find_element(name: &str) -> Option<(&'static str, ElementKind)> {
    // Hostile messages contain many long names. No allowed element has one.
    if name.len() > 10 {
        return None;
    }
    KINDS.get_key_value(&*name.to_ascii_lowercase()).map(|(name, kind)| (*name, *kind))
}

/// Returns the names of all allowed elements.
pub(super) fn element_names() -> impl Iterator<Item = &'static str> {
    KINDS.keys().copied()
}

/// Returns whether the element has no content and no end tag.
pub(super) fn is_void(name: &str) -> bool {
    matches!(name, "area" | "br" | "col" | "hr" | "img" | "source" | "wbr")
}

/// The allowed elements by kind. Names are separated by spaces.
const ELEMENTS: [(ElementKind, &str); 15] = [
    (Formatting, "a b big code em font i nobr s small strike strong tt u"),
    (Inline, "abbr acronym bdi bdo cite del dfn ins kbd label map mark picture q samp span sub sup time var"),
    (
        Block,
        "\
        address article aside blockquote center details dir div dl fieldset figcaption figure footer header \
        hgroup main menu nav ol pre section summary ul",
    ),
    (Void, "area img source wbr"),
    (Break, "br"),
    (Caption, "caption"),
    (Column, "col colgroup"),
    (Item, "dd dt li"),
    (Heading, "h1 h2 h3 h4 h5 h6"),
    (Rule, "hr"),
    (Paragraph, "p"),
    (Table, "table"),
    (Rows, "tbody tfoot thead"),
    (Cell, "td th"),
    (Row, "tr"),
];

static KINDS: LazyLock<HashMap<&str, ElementKind>> =
    LazyLock::new(|| ELEMENTS.iter().flat_map(|(kind, names)| names.split(' ').map(|name| (name, *kind))).collect());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_elements() {
        assert_eq!(find_element("TaBLe"), Some(("table", Table)));
        for name in ["script", "style", "svg", "math", "iframe", "select", "template", "", "blockquotes", "o:p", "é"] {
            assert_eq!(find_element(name), None, "{name}");
        }
    }
}
