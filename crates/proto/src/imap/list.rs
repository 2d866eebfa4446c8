//! LIST, LSUB and NAMESPACE. A mailbox that exists only because others are below it is listed too, but cannot be
//! selected.

use std::collections::{BTreeMap, VecDeque};
use std::io::Write as _;

use super::command::{ListRequest, ListReturn, ListSelection, StatusItem};
use super::mailbox_tasks::write_status;
use super::reply::write_mailbox;
use super::task::{Completion, Context, Step, Task};
use super::{Folder, Operation, Outcome};

/// The character between the levels of a name.
pub const SEPARATOR: char = '/';
/// The start of the names of mailboxes that are not those of the login.
pub const OTHER_USERS: &str = "Other Users/";
/// The maximum length of all patterns of a command together.
const MAX_PATTERN_BYTES: usize = 2000;

/// LIST, LSUB or NAMESPACE.
#[derive(Debug)]
pub(super) struct ListTask {
    kind: Kind,
    /// The mailboxes whose lines are left, with the text of the line.
    lines: Option<VecDeque<(String, Vec<u8>, bool)>>,
    /// The mailbox whose numbers are requested.
    status_of: Option<String>,
}

#[derive(Debug)]
enum Kind {
    List(ListRequest),
    Lsub(Vec<String>),
    Namespaces,
}

impl ListTask {
    pub(super) fn list(request: ListRequest) -> Self {
        Self::new(Kind::List(request))
    }

    pub(super) fn lsub(reference: &str, pattern: &str) -> Self {
        Self::new(Kind::Lsub(vec![format!("{reference}{pattern}")]))
    }

    pub(super) fn namespaces() -> Self {
        Self::new(Kind::Namespaces)
    }

    fn new(kind: Kind) -> Self {
        Self { kind, lines: None, status_of: None }
    }

    fn status_items(&self) -> Option<&Vec<StatusItem>> {
        let Kind::List(request) = &self.kind else { return None };
        request.returns.iter().find_map(|item| match item {
            ListReturn::Status(items) => Some(items),
            _ => None,
        })
    }

    fn name(&self) -> &'static str {
        match self.kind {
            Kind::List(_) => "LIST completed",
            Kind::Lsub(_) => "LSUB completed",
            Kind::Namespaces => "NAMESPACE completed",
        }
    }
}

impl Task for ListTask {
    fn advance(&mut self, context: &mut Context<'_>, outcome: Option<Outcome>) -> Step {
        let is_utf8 = context.enabled.has_utf8_names();
        match (&self.kind, outcome) {
            (Kind::List(request), None) if self.lines.is_none() => {
                if request.patterns.iter().all(String::is_empty) {
                    context.out.extend_from_slice(b"* LIST (\\Noselect) \"/\" \"\"\r\n");
                    return Step::Done(Completion::ok(self.name()));
                }
                if request.patterns.iter().map(String::len).sum::<usize>() > MAX_PATTERN_BYTES {
                    return Step::Done(Completion::no("[LIMIT] ", "The patterns are too long"));
                }
                return Step::Perform(Operation::List);
            }
            (_, None) if self.lines.is_none() => return Step::Perform(Operation::List),
            (Kind::Namespaces, Some(Outcome::Folders(folders))) => {
                let has_others = folders.iter().any(|folder| folder.name.starts_with(OTHER_USERS));
                let others: &[u8] = if has_others { b"((\"Other Users/\" \"/\"))" } else { b"NIL" };
                context.out.extend_from_slice(b"* NAMESPACE ((\"\" \"/\")) ");
                context.out.extend_from_slice(others);
                context.out.extend_from_slice(b" NIL\r\n");
                return Step::Done(Completion::ok(self.name()));
            }
            (Kind::List(request), Some(Outcome::Folders(folders))) => {
                self.lines = Some(list_lines(request, &tree(folders), is_utf8));
            }
            (Kind::Lsub(patterns), Some(Outcome::Folders(folders))) => {
                self.lines = Some(lsub_lines(patterns, &tree(folders), is_utf8));
            }
            (_, Some(Outcome::Status(status))) => {
                if let (Some(name), Some(items)) = (self.status_of.take(), self.status_items()) {
                    write_status(context.out, &name, items, &status, context.settings, is_utf8);
                }
            }
            _ => {}
        }
        while let Some((name, line, is_selectable)) = self.lines.as_mut().and_then(VecDeque::pop_front) {
            context.out.extend_from_slice(&line);
            if let Some(items) = self.status_items().filter(|_| is_selectable) {
                let operation = Operation::Status { mailbox: name.clone(), items: items.clone() };
                self.status_of = Some(name);
                return Step::Perform(operation);
            }
            if context.is_full() {
                return Step::Write;
            }
        }
        Step::Done(Completion::ok(self.name()))
    }
}

/// The mailboxes by name, with all parents.
type Tree = BTreeMap<String, Folder>;

fn tree(folders: Vec<Folder>) -> Tree {
    let mut tree = Tree::new();
    for folder in folders {
        for (end, _) in folder.name.match_indices(SEPARATOR) {
            let name = &folder.name[..end];
            tree.entry(name.to_owned()).or_insert_with(|| Folder { name: name.to_owned(), ..Folder::default() });
        }
        tree.insert(folder.name.clone(), folder);
    }
    tree
}

/// Returns the mailboxes below this one.
fn below<'a>(tree: &'a Tree, name: &str) -> impl Iterator<Item = &'a Folder> {
    let prefix = format!("{name}{SEPARATOR}");
    tree.range(prefix.clone()..).map(|(_, folder)| folder).take_while(move |folder| folder.name.starts_with(&prefix))
}

fn list_lines(request: &ListRequest, tree: &Tree, is_utf8: bool) -> VecDeque<(String, Vec<u8>, bool)> {
    let patterns: Vec<String> =
        request.patterns.iter().map(|pattern| format!("{}{pattern}", request.reference)).collect();
    let selects = |selection| request.select.contains(&selection);
    let only_subscribed = selects(ListSelection::Subscribed);
    let shows_subscribed = only_subscribed || request.returns.contains(&ListReturn::Subscribed);
    let mut lines = VecDeque::new();
    for folder in tree.values().filter(|folder| matches_any(&patterns, &folder.name)) {
        let has_subscribed_child = only_subscribed
            && selects(ListSelection::RecursiveMatch)
            && below(tree, &folder.name).any(|child| child.is_subscribed);
        let is_selected = (!only_subscribed || folder.is_subscribed || has_subscribed_child)
            && (!selects(ListSelection::SpecialUse) || folder.special_use.is_some());
        if !is_selected {
            continue;
        }
        let mut attributes: Vec<&str> = Vec::new();
        if !folder.is_selectable {
            attributes.push(if request.is_extended { "\\NonExistent" } else { "\\Noselect" });
        }
        let has_children = below(tree, &folder.name).next().is_some();
        attributes.push(if has_children { "\\HasChildren" } else { "\\HasNoChildren" });
        attributes.extend(folder.special_use);
        if shows_subscribed && folder.is_subscribed {
            attributes.push("\\Subscribed");
        }
        let mut line = line("LIST", &attributes, &folder.name, is_utf8);
        if has_subscribed_child {
            line.extend_from_slice(b" (\"CHILDINFO\" (\"SUBSCRIBED\"))");
        }
        line.extend_from_slice(b"\r\n");
        lines.push_back((folder.name.clone(), line, folder.is_selectable));
    }
    lines
}

fn lsub_lines(patterns: &[String], tree: &Tree, is_utf8: bool) -> VecDeque<(String, Vec<u8>, bool)> {
    let mut lines = VecDeque::new();
    for folder in tree.values().filter(|folder| matches_any(patterns, &folder.name)) {
        // RFC 3501 section 6.3.9: a parent is listed if a pattern with % hides its subscribed children.
        let has_hidden_child =
            || below(tree, &folder.name).any(|child| child.is_subscribed && !matches_any(patterns, &child.name));
        if !folder.is_subscribed && !has_hidden_child() {
            continue;
        }
        let attributes: &[&str] = if folder.is_subscribed && folder.is_selectable { &[] } else { &["\\Noselect"] };
        let mut line = line("LSUB", attributes, &folder.name, is_utf8);
        line.extend_from_slice(b"\r\n");
        lines.push_back((folder.name.clone(), line, folder.is_selectable));
    }
    lines
}

fn line(name: &str, attributes: &[&str], mailbox: &str, is_utf8: bool) -> Vec<u8> {
    let mut line = Vec::new();
    let _ = write!(line, "* {name} ({}) \"{SEPARATOR}\" ", attributes.join(" "));
    write_mailbox(&mut line, mailbox, is_utf8);
    line
}

fn matches_any(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern.as_bytes(), name.as_bytes()))
}

/// Returns whether a name matches a pattern: `*` stands for any text, `%` for any text without a separator. `INBOX`
/// matches in any case of letters.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let is_equal = |a: u8, b: u8| if name == b"INBOX" { a.eq_ignore_ascii_case(&b) } else { a == b };
    let (mut at, mut position) = (0, 0);
    // Where to continue if a later octet does not match: after the wildcard, and one octet further in the name.
    let mut star = None::<(usize, usize)>;
    let mut percent = None::<(usize, usize)>;
    loop {
        match (pattern.get(at), name.get(position)) {
            (None, None) => return true,
            (Some(b'*'), _) => {
                at += 1;
                (star, percent) = (Some((at, position)), None);
            }
            (Some(b'%'), _) => {
                at += 1;
                percent = Some((at, position));
            }
            (Some(&expected), Some(&actual)) if is_equal(expected, actual) => {
                at += 1;
                position += 1;
            }
            _ => {
                let next = |(after, end): (usize, usize)| (end < name.len()).then_some((after, end + 1));
                let is_within_level = |&(_, end): &(usize, usize)| name.get(end) != Some(&b'/');
                percent = percent.filter(is_within_level).and_then(next);
                if percent.is_none() {
                    star = star.and_then(next);
                }
                let Some((after, end)) = percent.or(star) else { return false };
                (at, position) = (after, end);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_patterns() {
        let table = [
            ("*", "INBOX", true),
            ("*", "a/b", true),
            ("%", "a", true),
            ("%", "a/b", false),
            ("%/%", "a/b", true),
            ("a/%", "a/b", true),
            ("a/%", "a/b/c", false),
            ("a*", "a/b/c", true),
            ("*c", "a/b/c", true),
            ("%*c", "a/b/c", true),
            ("*%b", "a/b", true),
            ("%b*", "ab/b", true),
            ("*a%b", "xa/ab", true),
            ("inbox", "INBOX", true),
            ("In%", "INBOX", true),
            ("a", "A", false),
            ("", "a", false),
            ("a%", "a", true),
            ("%%", "ab", true),
            ("%/b", "a/c/b", false),
            ("*/b", "a/c/b", true),
        ];
        for (pattern, name, expected) in table {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn pattern_with_many_wildcards_is_fast() {
        let pattern = "%*a".repeat(600);
        assert!(!matches(pattern.as_bytes(), "a/".repeat(250).as_bytes()));
    }
}
