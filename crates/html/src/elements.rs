//! The allowed HTML elements, and their nesting rules. Tags of other elements are removed, their content is kept.

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
    let name = name.to_ascii_lowercase();
    let at = ELEMENTS.binary_search_by_key(&name.as_str(), |&(known, _)| known).ok()?;
    Some(ELEMENTS[at])
}

/// Returns whether the element has no content and no end tag.
pub(super) fn is_void(name: &str) -> bool {
    matches!(name, "area" | "br" | "col" | "hr" | "img" | "source" | "wbr")
}

/// Sorted by name.
pub(super) static ELEMENTS: &[(&str, ElementKind)] = &[
    ("a", Formatting),
    ("abbr", Inline),
    ("acronym", Inline),
    ("address", Block),
    ("area", Void),
    ("article", Block),
    ("aside", Block),
    ("b", Formatting),
    ("bdi", Inline),
    ("bdo", Inline),
    ("big", Formatting),
    ("blockquote", Block),
    ("br", Break),
    ("caption", Caption),
    ("center", Block),
    ("cite", Inline),
    ("code", Formatting),
    ("col", Column),
    ("colgroup", Column),
    ("dd", Item),
    ("del", Inline),
    ("details", Block),
    ("dfn", Inline),
    ("dir", Block),
    ("div", Block),
    ("dl", Block),
    ("dt", Item),
    ("em", Formatting),
    ("fieldset", Block),
    ("figcaption", Block),
    ("figure", Block),
    ("font", Formatting),
    ("footer", Block),
    ("h1", Heading),
    ("h2", Heading),
    ("h3", Heading),
    ("h4", Heading),
    ("h5", Heading),
    ("h6", Heading),
    ("header", Block),
    ("hgroup", Block),
    ("hr", Rule),
    ("i", Formatting),
    ("img", Void),
    ("ins", Inline),
    ("kbd", Inline),
    ("label", Inline),
    ("li", Item),
    ("main", Block),
    ("map", Inline),
    ("mark", Inline),
    ("menu", Block),
    ("nav", Block),
    ("nobr", Formatting),
    ("ol", Block),
    ("p", Paragraph),
    ("picture", Inline),
    ("pre", Block),
    ("q", Inline),
    ("s", Formatting),
    ("samp", Inline),
    ("section", Block),
    ("small", Formatting),
    ("source", Void),
    ("span", Inline),
    ("strike", Formatting),
    ("strong", Formatting),
    ("sub", Inline),
    ("summary", Block),
    ("sup", Inline),
    ("table", Table),
    ("tbody", Rows),
    ("td", Cell),
    ("tfoot", Rows),
    ("th", Cell),
    ("thead", Rows),
    ("time", Inline),
    ("tr", Row),
    ("tt", Formatting),
    ("u", Formatting),
    ("ul", Block),
    ("var", Inline),
    ("wbr", Void),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_elements() {
        assert!(ELEMENTS.is_sorted_by_key(|&(name, _)| name));
        assert_eq!(find_element("TaBLe"), Some(("table", Table)));
        for name in ["script", "style", "svg", "math", "iframe", "select", "template", "", "blockquotes", "o:p", "é"] {
            assert_eq!(find_element(name), None, "{name}");
        }
    }
}
