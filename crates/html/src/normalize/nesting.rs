//! The stack of open elements, and the effect of tags on it: missing and misnested end tags, tables, and formatting
//! that continues after the end of a block.

use super::super::elements::{ElementKind, find_element, is_void};
use super::{MAX_DEPTH, Normalizer};

/// Limits on reopened formatting: how often per message, how many elements at once, how many equal ones of these (HTML
/// Standard, section 13.2.4.3), and the maximum length of such a tag.
const MAX_REOPENED: usize = 1000;
const MAX_PENDING_FORMATTING: usize = 8;
const MAX_SAME_FORMATTING: usize = 3;
const MAX_REOPENED_TAG_BYTES: usize = 256;

/// An open element.
#[derive(Debug, Clone)]
pub(super) struct OpenElement {
    name: &'static str,
    kind: ElementKind,
    /// The start tag, if the element may be reopened.
    tag: Option<Box<str>>,
    /// Whether its end tag occurred while a block inside of it was open. The element ends with that block.
    has_ended: bool,
}

impl Normalizer {
    /// Closes elements that cannot contain an element of this kind. Returns false if the element must be dropped.
    pub(super) fn prepare_for(&mut self, name: &'static str, kind: ElementKind) -> bool {
        let is_between_cells = self.stack.last().is_some_and(|open| open.kind.is_table_structure());
        if is_between_cells {
            // Between the cells of a table, only visible content gets a cell.
            if name != "img" && kind != ElementKind::Table {
                return false;
            }
            self.ensure_cell();
        }
        if !kind.is_inline() {
            self.end_innermost(|open| open.kind == ElementKind::Paragraph, |open| open.kind.is_boundary());
        }
        match kind {
            ElementKind::Item => self.end_sibling_item(name),
            ElementKind::Heading if self.stack.last().is_some_and(|open| open.kind == ElementKind::Heading) => {
                self.close_down_to(self.stack.len() - 1);
            }
            ElementKind::Formatting if matches!(name, "a" | "nobr") => {
                self.end_innermost(|open| open.name == name, |open| open.kind.is_boundary());
                self.pending_formatting.retain(|open| open.name != name);
                self.reopen_formatting();
            }
            ElementKind::Formatting | ElementKind::Inline | ElementKind::Void | ElementKind::Break => {
                self.reopen_formatting();
            }
            ElementKind::Table => self.pending_formatting.clear(),
            _ => {}
        }
        true
    }

    fn end_sibling_item(&mut self, name: &str) {
        let is_sibling = |open: &OpenElement| open.kind == ElementKind::Item && (open.name == "li") == (name == "li");
        let is_boundary = |open: &OpenElement| !open.kind.is_inline() && !matches!(open.name, "address" | "div" | "p");
        self.end_innermost(is_sibling, is_boundary);
    }

    /// Closes the innermost element that satisfies `is_wanted`, unless an element that satisfies `is_boundary` is
    /// further inside.
    fn end_innermost(&mut self, is_wanted: impl Fn(&OpenElement) -> bool, is_boundary: impl Fn(&OpenElement) -> bool) {
        for at in (0..self.stack.len()).rev() {
            if is_wanted(&self.stack[at]) {
                return self.close_keeping_formatting(at);
            } else if is_boundary(&self.stack[at]) {
                return;
            }
        }
    }

    /// Closes elements of the innermost table so that a table element can start. Returns false if there is no table.
    pub(super) fn enter_table_part(&mut self, kind: ElementKind) -> bool {
        let Some(table) = self.stack.iter().rposition(|open| open.kind == ElementKind::Table) else { return false };
        let find_parent = |kind| self.stack[table..].iter().position(|open| open.kind == kind).map(|at| table + at);
        let parent = match kind {
            ElementKind::Cell => find_parent(ElementKind::Row).or(find_parent(ElementKind::Rows)),
            ElementKind::Row => find_parent(ElementKind::Rows),
            ElementKind::Column => find_parent(ElementKind::Column),
            _ => None,
        };
        self.close_down_to(parent.unwrap_or(table) + 1);
        self.pending_formatting.clear();
        if kind == ElementKind::Cell && self.stack.last().is_some_and(|open| open.kind != ElementKind::Row) {
            self.push_element("tr", ElementKind::Row, "<tr>".to_owned());
        }
        true
    }

    /// Opens a cell for content between the cells of a table. A parser would move it before the table.
    pub(super) fn ensure_cell(&mut self) {
        if self.stack.last().is_some_and(|open| open.kind.is_table_structure()) {
            self.enter_table_part(ElementKind::Cell);
            self.push_element("td", ElementKind::Cell, "<td>".to_owned());
        }
    }

    pub(super) fn end_tag(&mut self, name: &str) {
        let Some((name, kind)) = find_element(name) else { return };
        if is_void(name) {
            return;
        }
        if self.too_deep > 0 {
            self.too_deep -= 1;
            return;
        }
        let is_same = |open: &OpenElement| match kind {
            ElementKind::Heading => open.kind == ElementKind::Heading,
            _ => open.name == name && !open.has_ended,
        };
        if let Some(at) = self.pending_formatting.iter().rposition(is_same) {
            self.pending_formatting.remove(at);
            return;
        }
        let is_table_tag = kind.is_table_part() || kind == ElementKind::Table;
        let mut is_block_open = false;
        for at in (0..self.stack.len()).rev() {
            let open = &self.stack[at];
            if is_same(open) {
                match kind {
                    ElementKind::Inline if is_block_open => {}
                    ElementKind::Formatting if is_block_open => self.stack[at].has_ended = true,
                    _ if is_table_tag => {
                        self.close_down_to(at);
                        self.pending_formatting.clear();
                    }
                    _ => self.close_keeping_formatting(at),
                }
                return;
            }
            if open.kind == ElementKind::Table || (!is_table_tag && open.kind.is_boundary()) {
                return;
            }
            is_block_open |= !open.kind.is_inline();
        }
    }

    /// Closes the element at this depth and all elements inside of it. Formatting inside of it continues afterwards.
    fn close_keeping_formatting(&mut self, depth: usize) {
        for open in &self.stack[depth + 1..] {
            let continues = open.kind == ElementKind::Formatting && !open.has_ended && open.tag.is_some();
            let same = self.pending_formatting.iter().filter(|pending| pending.tag == open.tag).count();
            if continues && same < MAX_SAME_FORMATTING && self.pending_formatting.len() < MAX_PENDING_FORMATTING {
                self.pending_formatting.push(open.clone());
            }
        }
        self.close_down_to(depth);
    }

    pub(super) fn reopen_formatting(&mut self) {
        for open in std::mem::take(&mut self.pending_formatting) {
            if let Some(tag) = open.tag
                && self.stack.len() < MAX_DEPTH
                && self.reopened_count < MAX_REOPENED
            {
                self.reopened_count += 1;
                self.push_element(open.name, open.kind, tag.into());
            }
        }
    }

    /// Closes elements until `depth` are open, and then all elements whose end tag was already seen.
    pub(super) fn close_down_to(&mut self, depth: usize) {
        while self.stack.len() > depth || self.stack.last().is_some_and(|open| open.has_ended) {
            let Some(open) = self.stack.pop() else { return };
            self.output.markup.push_str("</");
            self.output.markup.push_str(open.name);
            self.output.markup.push('>');
        }
    }

    pub(super) fn push_element(&mut self, name: &'static str, kind: ElementKind, tag: String) {
        self.element_count += 1;
        self.output.markup.push_str(&tag);
        if !is_void(name) {
            let may_reopen = kind == ElementKind::Formatting && tag.len() <= MAX_REOPENED_TAG_BYTES;
            let tag = may_reopen.then(|| tag.into_boxed_str());
            self.stack.push(OpenElement { name, kind, tag, has_ended: false });
        }
    }
}
