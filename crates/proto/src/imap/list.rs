//! LIST, LSUB and NAMESPACE. A mailbox that exists only because others are below it is listed too, but cannot be
//! selected.

use std::collections::BTreeMap;
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

/// After this number of mailboxes other sessions continue.
const MAILBOXES_PER_STEP: usize = 500;

/// LIST, LSUB or NAMESPACE.
#[derive(Debug)]
pub(super) struct ListTask {
    kind: Kind,
    /// The patterns, with the reference before each.
    patterns: Vec<String>,
    tree: Tree,
    /// The names of the mailboxes that are left, once they are known.
    names: Option<std::vec::IntoIter<String>>,
    /// The mailbox whose numbers are requested.
    status_of: Option<String>,
}

#[derive(Debug)]
enum Kind {
    List(ListRequest),
    Lsub,
    Namespaces,
}

impl ListTask {
    pub(super) fn list(request: ListRequest) -> Self {
        let patterns = request.patterns.iter().map(|pattern| format!("{}{pattern}", request.reference)).collect();
        Self::new(Kind::List(request), patterns)
    }

    pub(super) fn lsub(reference: &str, pattern: &str) -> Self {
        Self::new(Kind::Lsub, vec![format!("{reference}{pattern}")])
    }

    pub(super) fn namespaces() -> Self {
        Self::new(Kind::Namespaces, Vec::new())
    }

    fn new(kind: Kind, patterns: Vec<String>) -> Self {
        Self { kind, patterns, tree: Tree::new(), names: None, status_of: None }
    }

    fn status_items(&self) -> Option<&Vec<StatusItem>> {
        let Kind::List(request) = &self.kind else { return None };
        request.returns.iter().find_map(|item| match item {
            ListReturn::Status(items) => Some(items),
            _ => None,
        })
    }

    /// Returns the step before the mailboxes are known.
    fn start(&self, out: &mut Vec<u8>) -> Step {
        if let Kind::List(request) = &self.kind
            && request.patterns.iter().all(String::is_empty)
        {
            out.extend_from_slice(b"* LIST (\\Noselect) \"/\" \"\"\r\n");
            return self.done();
        }
        if self.patterns.iter().map(String::len).sum::<usize>() > MAX_PATTERN_BYTES {
            return Step::Done(Completion::no("[LIMIT] ", "The patterns are too long"));
        }
        Step::Perform(Operation::List)
    }

    fn done(&self) -> Step {
        Step::Done(Completion::ok(match self.kind {
            Kind::List(_) => "LIST completed",
            Kind::Lsub => "LSUB completed",
            Kind::Namespaces => "NAMESPACE completed",
        }))
    }

    /// Writes the line of a mailbox, if the command selects it. Returns whether it did.
    fn write_mailbox(&self, out: &mut Vec<u8>, folder: &Folder, is_utf8: bool) -> bool {
        let line = match &self.kind {
            _ if !matches_any(&self.patterns, &folder.name) => None,
            Kind::List(request) => list_line(request, &self.tree, folder, is_utf8),
            Kind::Lsub => lsub_line(&self.patterns, &self.tree, folder, is_utf8),
            Kind::Namespaces => None,
        };
        out.extend(line.iter().flatten());
        line.is_some()
    }
}

impl Task for ListTask {
    fn advance(&mut self, context: &mut Context<'_>, outcome: Option<Outcome>) -> Step {
        let is_utf8 = context.enabled.has_utf8_names();
        match (&self.kind, outcome) {
            (Kind::Namespaces, Some(Outcome::Folders(folders))) => {
                let has_others = folders.iter().any(|folder| folder.name.starts_with(OTHER_USERS));
                let others: &[u8] = if has_others { b"((\"Other Users/\" \"/\"))" } else { b"NIL" };
                context.out.extend_from_slice(b"* NAMESPACE ((\"\" \"/\")) ");
                context.out.extend_from_slice(others);
                context.out.extend_from_slice(b" NIL\r\n");
                return self.done();
            }
            (_, Some(Outcome::Folders(folders))) => {
                self.tree = tree(folders);
                self.names = Some(self.tree.keys().cloned().collect::<Vec<_>>().into_iter());
            }
            (_, Some(Outcome::Status(status))) => {
                if let (Some(name), Some(items)) = (&self.status_of, self.status_items()) {
                    write_status(context.out, name, items, &status, context.settings, is_utf8);
                }
            }
            _ => {}
        }
        self.status_of = None;
        for _ in 0..MAILBOXES_PER_STEP {
            if context.is_full() {
                break;
            }
            let Some(names) = &mut self.names else { return self.start(context.out) };
            let Some(name) = names.next() else { return self.done() };
            let Some(folder) = self.tree.get(&name) else { continue };
            if self.write_mailbox(context.out, folder, is_utf8)
                && folder.is_selectable
                && let Some(items) = self.status_items()
            {
                let operation = Operation::Status { mailbox: name.clone(), items: items.clone() };
                self.status_of = Some(name);
                return Step::Perform(operation);
            }
        }
        Step::Write
    }

    /// A mailbox can be deleted before its numbers are read.
    fn continues_after_refusal(&self) -> bool {
        self.status_of.is_some()
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

/// Returns the line of a mailbox, unless the selection options leave it out.
fn list_line(request: &ListRequest, tree: &Tree, folder: &Folder, is_utf8: bool) -> Option<Vec<u8>> {
    let selects = |selection| request.select.contains(&selection);
    let only_subscribed = selects(ListSelection::Subscribed);
    let shows_subscribed = only_subscribed || request.returns.contains(&ListReturn::Subscribed);
    let has_subscribed_child = only_subscribed
        && selects(ListSelection::RecursiveMatch)
        && below(tree, &folder.name).any(|child| child.is_subscribed);
    // RFC 5258 section 3: a mailbox that does not exist is only listed for others below it or for its subscription.
    let has_children = below(tree, &folder.name).any(|child| child.is_selectable);
    let is_known = folder.is_selectable || has_children || only_subscribed;
    let is_selected = is_known
        && (!only_subscribed || folder.is_subscribed || has_subscribed_child)
        && (!selects(ListSelection::SpecialUse) || folder.special_use.is_some());
    if !is_selected {
        return None;
    }
    let mut attributes: Vec<&str> = Vec::new();
    if !folder.is_selectable {
        attributes.push(if request.is_extended { "\\NonExistent" } else { "\\Noselect" });
    }
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
    Some(line)
}

/// Returns the line of a mailbox that is subscribed, or of a parent: RFC 3501 section 6.3.9 lists it if a pattern with `%`
/// hides its subscribed children.
fn lsub_line(patterns: &[String], tree: &Tree, folder: &Folder, is_utf8: bool) -> Option<Vec<u8>> {
    let has_hidden_child =
        || below(tree, &folder.name).any(|child| child.is_subscribed && !matches_any(patterns, &child.name));
    if !folder.is_subscribed && !has_hidden_child() {
        return None;
    }
    let attributes: &[&str] = if folder.is_subscribed && folder.is_selectable { &[] } else { &["\\Noselect"] };
    let mut line = line("LSUB", attributes, &folder.name, is_utf8);
    line.extend_from_slice(b"\r\n");
    Some(line)
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
    let is_inbox = name == b"INBOX";
    // Whether the part of the name so far matches the first octets of the pattern, by their number.
    let mut reached = vec![false; pattern.len() + 1];
    let skip_wildcards = |reached: &mut [bool]| {
        for (at, octet) in pattern.iter().enumerate() {
            reached[at + 1] |= reached[at] && matches!(octet, b'*' | b'%');
        }
    };
    reached[0] = true;
    skip_wildcards(&mut reached);
    for octet in name {
        let mut next = vec![false; reached.len()];
        for (at, expected) in pattern.iter().enumerate().filter(|(at, _)| reached[*at]) {
            match expected {
                b'*' => next[at] = true,
                b'%' => next[at] |= *octet != b'/',
                _ if is_inbox => next[at + 1] |= expected.eq_ignore_ascii_case(octet),
                _ => next[at + 1] |= expected == octet,
            }
        }
        skip_wildcards(&mut next);
        reached = next;
    }
    reached[pattern.len()]
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
        for pattern in ["%*a".repeat(600), format!("*a%{}b", "a".repeat(1900))] {
            assert!(!matches(pattern.as_bytes(), "a/".repeat(250).as_bytes()));
            assert!(!matches(pattern.as_bytes(), "a".repeat(500).as_bytes()));
        }
    }
}
