//! The elements of HTML that a mail may be built of, and how each behaves among the others. What is not in this table
//! is not an element here: its tags vanish, its content stays.

use ElementKind::{
    Block, Break, Caption, Cell, Column, Formatting, Heading, Inline, Item, Paragraph, Row, Rows, Rule, Table, Void,
};

/// How an element behaves when tags around it are missing or crossed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ElementKind {
    /// Lives in a line, and ends where its end tag is.
    Inline,
    /// Lives in a line, and goes on behind the end of a block that it was opened in.
    Formatting,
    /// Lives in a line and has no content.
    Void,
    /// `br`: as `Void`, and good for nothing between the cells of a table.
    Break,
    /// Ends an open paragraph.
    Block,
    /// A block that ends when the next paragraph or block starts.
    Paragraph,
    /// A block that ends another heading.
    Heading,
    /// A block that ends its sibling: items of lists and of definitions.
    Item,
    /// `hr`: a block without content.
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
    /// Whether an end tag or an implied end inside this element means nothing outside of it.
    pub(super) fn is_boundary(self) -> bool {
        matches!(self, Table | Caption | Cell)
    }

    /// Whether this is a part of a table that only holds other parts of the table.
    pub(super) fn is_table_structure(self) -> bool {
        matches!(self, Table | Column | Rows | Row)
    }

    /// Whether this belongs to the inside of a table.
    pub(super) fn is_table_part(self) -> bool {
        matches!(self, Caption | Column | Rows | Row | Cell)
    }

    /// Whether the element lives in a line.
    pub(super) fn is_inline(self) -> bool {
        matches!(self, Inline | Formatting | Void | Break)
    }
}

/// The element of that name, in any case of letters.
pub(super) fn find_element(name: &str) -> Option<(&'static str, ElementKind)> {
    // Long names are many in hostile mail, and none of ours.
    if name.len() > 10 {
        return None;
    }
    let name = name.to_ascii_lowercase();
    let at = ELEMENTS.binary_search_by_key(&name.as_str(), |&(known, _)| known).ok()?;
    Some(ELEMENTS[at])
}

/// Whether the element has no content and no end tag.
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
