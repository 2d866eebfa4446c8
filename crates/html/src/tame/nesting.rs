//! Which elements are open, and what a tag does to them: missing and crossed end tags, tables, and formatting that goes on
//! behind the end of a block.

use super::super::elements::{Kind, element, is_void};
use super::{MAX_DEPTH, Tamer};

/// How often formatting goes on behind the end of a block in a mail; how much of it at once, and how much of that may be
/// the same (HTML Standard, section 13.2.4.3); and how long such a tag may be.
const MAX_REOPENED: usize = 1000;
const MAX_LOST: usize = 8;
const MAX_SAME: usize = 3;
const MAX_REOPENED_TAG: usize = 256;

/// An element that is open.
#[derive(Debug, Clone)]
pub(super) struct Open {
    name: &'static str,
    kind: Kind,
    /// The start tag, where it may be needed once more.
    tag: Option<Box<str>>,
    /// Its end tag came while a block in it was open; it ends with that block.
    has_ended: bool,
}

impl Tamer {
    /// Ends what an element of this kind cannot stand in. False if there is no place for it.
    pub(super) fn make_room(&mut self, name: &'static str, kind: Kind) -> bool {
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
    pub(super) fn enter_table_part(&mut self, kind: Kind) -> bool {
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
    pub(super) fn leave_scaffold(&mut self) {
        if self.stack.last().is_some_and(|open| open.kind.is_scaffold()) {
            self.enter_table_part(Kind::Cell);
            self.push("td", Kind::Cell, "<td>".to_owned());
        }
    }

    pub(super) fn end_tag(&mut self, name: &str) {
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

    pub(super) fn reopen_lost(&mut self) {
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
    pub(super) fn close_down_to(&mut self, depth: usize) {
        while self.stack.len() > depth || self.stack.last().is_some_and(|open| open.has_ended) {
            let Some(open) = self.stack.pop() else { return };
            self.tamed.markup.push_str("</");
            self.tamed.markup.push_str(open.name);
            self.tamed.markup.push('>');
        }
    }

    pub(super) fn push(&mut self, name: &'static str, kind: Kind, tag: String) {
        self.elements += 1;
        self.tamed.markup.push_str(&tag);
        if !is_void(name) {
            let may_be_lost = kind == Kind::Formatting && tag.len() <= MAX_REOPENED_TAG;
            let tag = may_be_lost.then(|| tag.into_boxed_str());
            self.stack.push(Open { name, kind, tag, has_ended: false });
        }
    }
}
