//! THREAD=REFERENCES (RFC 5256 section 3): the threads of messages, and their form in the reply.
//!
//! Nothing here recurses, and the time is `n log n`: a chain of replies can be as long as the mailbox.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use jiff::Timestamp;

use super::search::Known;
use super::sort::{folded_subject, sent_time};
use super::view::MessageView;
use super::write::write_number;

/// The maximum number of references of one message that are used: the last ones.
const MAX_REFERENCES: usize = 100;

/// The hash of a message id. Ids can be long.
type IdHash = u64;

/// The values of a message by which it is threaded.
#[derive(Clone, Debug)]
pub(super) struct ThreadEntry {
    /// The number in the reply.
    number: u32,
    sequence: u32,
    sent: Timestamp,
    message_id: Option<IdHash>,
    /// The ids of earlier messages in the thread, oldest first.
    references: Vec<IdHash>,
    subject: String,
    is_reply: bool,
}

impl ThreadEntry {
    /// Extracts the values. `view` can be a view of only the header. The reply has the UID if `is_uid` is set, otherwise the
    /// sequence number.
    pub(super) fn new(known: &impl Known, view: &MessageView, is_uid: bool) -> Self {
        let ids = |name| view.first_field(name).map(message_ids).unwrap_or_default();
        let mut references = ids("References");
        if references.is_empty() {
            references = ids("In-Reply-To");
            references.truncate(1);
        }
        references.drain(..references.len().saturating_sub(MAX_REFERENCES));
        let (subject, is_reply) = folded_subject(view);
        Self {
            number: if is_uid { known.uid() } else { known.sequence() },
            sequence: known.sequence(),
            sent: sent_time(known, view),
            message_id: ids("Message-ID").into_iter().next(),
            references,
            subject,
            is_reply,
        }
    }
}

/// Returns the hashes of the message ids in a field. Quotes that are not needed are removed, so that equal ids have one form.
fn message_ids(field: &[u8]) -> Vec<IdHash> {
    let mut ids = Vec::new();
    let mut rest = field;
    while let Some(start) = memchr::memchr(b'<', rest) {
        rest = &rest[start + 1..];
        let Some(end) = memchr::memchr(b'>', rest) else { break };
        let mut is_escaped = false;
        let kept = rest[..end].iter().filter(|&&byte| {
            is_escaped = byte == b'\\' && !is_escaped;
            !(is_escaped || byte == b'"' || byte.is_ascii_whitespace())
        });
        let id: Vec<u8> = kept.copied().collect();
        if !id.is_empty() {
            ids.push(hash(&id));
        }
        rest = &rest[end + 1..];
    }
    ids
}

fn hash(id: &[u8]) -> IdHash {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

/// The threads of a set of messages.
#[derive(Clone, Debug)]
pub(super) struct Threads {
    /// The numbers of the messages in the reply.
    numbers: Vec<u32>,
    nodes: Vec<Node>,
    roots: Vec<usize>,
}

/// A message in a thread, or the place of one that is missing.
#[derive(Clone, Debug, Default)]
struct Node {
    /// The index of the message.
    entry: Option<usize>,
    parent: Option<usize>,
    children: Vec<usize>,
    /// Whether this is no root anymore, because its thread was merged into another one.
    is_merged: bool,
}

/// Threads messages by their references, and then by their subjects.
pub(super) fn thread(mut entries: Vec<ThreadEntry>) -> Threads {
    entries.sort_by_key(|entry| entry.sequence);
    let numbers = entries.iter().map(|entry| entry.number).collect();
    let mut threads = Threads { numbers, nodes: link(&entries), roots: Vec::new() };
    threads.prune();
    threads.sort(&entries);
    threads.merge_subjects(&entries);
    threads.sort(&entries);
    threads
}

/// Links messages to those that they reference (step 1). Messages that are referenced but missing get a node too. The first
/// nodes are those of the messages, in their order.
fn link(entries: &[ThreadEntry]) -> Vec<Node> {
    let mut nodes: Vec<Node> = (0..entries.len()).map(|index| Node { entry: Some(index), ..Node::default() }).collect();
    let mut by_id: HashMap<IdHash, usize> = HashMap::new();
    for (index, entry) in entries.iter().enumerate() {
        // Of messages with the same id, the first counts.
        if let Some(id) = entry.message_id {
            by_id.entry(id).or_insert(index);
        }
    }
    let mut references: Vec<Vec<usize>> = Vec::with_capacity(entries.len());
    for entry in entries {
        let node = |id| {
            *by_id.entry(id).or_insert_with(|| {
                nodes.push(Node::default());
                nodes.len() - 1
            })
        };
        references.push(entry.references.iter().copied().map(node).collect());
    }
    let mut roots = Roots((0..nodes.len()).collect());
    let mut set_parent = |nodes: &mut Vec<Node>, child: usize, parent: usize| {
        // Only a node without a parent is linked, so there is a loop only if it is the root of the new parent.
        if nodes[child].parent.is_none() && roots.find(parent) != child {
            nodes[child].parent = Some(parent);
            roots.0[child] = parent;
        }
    };
    // The last reference of a message is its parent, whatever other messages reference.
    for (index, references) in references.iter().enumerate() {
        if let Some(&last) = references.last() {
            set_parent(&mut nodes, index, last);
        }
    }
    for (index, references) in references.iter().enumerate() {
        for (&parent, &child) in references.iter().zip(references.iter().skip(1)) {
            // The references of a later message replace those that are found before it.
            if nodes[child].entry.is_none_or(|entry| entry < index) {
                set_parent(&mut nodes, child, parent);
            }
        }
    }
    nodes
}

/// Finds the root of a node. The path to it is compressed.
struct Roots(Vec<usize>);

impl Roots {
    fn find(&mut self, mut node: usize) -> usize {
        while self.0[node] != node {
            self.0[node] = self.0[self.0[node]];
            node = self.0[node];
        }
        node
    }
}

impl Threads {
    /// Finds the roots, and removes nodes without a message (steps 2 and 3). Such a node remains only as a root with several
    /// children.
    fn prune(&mut self) {
        // The closest node above that remains: one with a message, or the root.
        let mut above: Vec<Option<usize>> = self.nodes.iter().map(|node| node.parent).collect();
        for index in 0..self.nodes.len() {
            let mut path = Vec::new();
            let mut node = index;
            while let Some(parent) = above[node]
                && self.nodes[parent].entry.is_none()
                && above[parent].is_some()
            {
                path.push(node);
                node = parent;
            }
            // All nodes of the path are below the same remaining node.
            if let Some(target) = above[node] {
                for passed in path {
                    above[passed] = Some(target);
                }
            }
            if self.nodes[index].entry.is_some()
                && let Some(parent) = above[index]
            {
                self.nodes[parent].children.push(index);
            }
        }
        for (index, _) in above.iter().enumerate().filter(|(_, above)| above.is_none()) {
            match self.nodes[index] {
                Node { entry: None, ref children, .. } if children.len() < 2 => self.roots.extend(children.first()),
                _ => self.roots.push(index),
            }
        }
    }

    /// Sorts siblings by date and sequence number (steps 4 and 6). A node without a message has the date of its first child.
    fn sort(&mut self, entries: &[ThreadEntry]) {
        // Only roots have no message, so the children are compared by their own dates.
        let date = |entry: Option<usize>| entry.map(|entry| (entries[entry].sent, entries[entry].sequence));
        let dates: Vec<_> = self.nodes.iter().map(|node| date(node.entry)).collect();
        for node in &mut self.nodes {
            node.children.sort_by_key(|&child| dates[child]);
        }
        let nodes = &self.nodes;
        self.roots.sort_by_key(|&root| dates[root].or_else(|| dates[*nodes[root].children.first()?]));
    }

    /// Merges threads with the same subject (step 5).
    fn merge_subjects(&mut self, entries: &[ThreadEntry]) {
        let first =
            |nodes: &[Node], root: usize| nodes[root].entry.or_else(|| nodes[*nodes[root].children.first()?].entry);
        let is_reply = |node: &Node| node.entry.is_some_and(|entry| entries[entry].is_reply);
        let subject = |nodes: &[Node], root: usize| {
            let entry = first(nodes, root)?;
            Some(entries[entry].subject.as_str()).filter(|subject| !subject.is_empty())
        };
        let mut table: HashMap<&str, usize> = HashMap::new();
        for &root in &self.roots {
            let Some(subject) = subject(&self.nodes, root) else { continue };
            let other = table.entry(subject).or_insert(root);
            let (node, known) = (&self.nodes[root], &self.nodes[*other]);
            if known.entry.is_some() && (node.entry.is_none() || is_reply(known) && !is_reply(node)) {
                *other = root;
            }
        }
        for root in self.roots.clone() {
            if self.nodes[root].is_merged {
                continue;
            }
            let Some(subject) = subject(&self.nodes, root) else { continue };
            let Some(&other) = table.get(subject).filter(|other| **other != root) else { continue };
            self.nodes[root].is_merged = true;
            let (node, known) = (&self.nodes[root], &self.nodes[other]);
            if known.entry.is_none() {
                let children = if node.entry.is_some() { vec![root] } else { node.children.clone() };
                self.nodes[other].children.extend(children);
            } else if is_reply(node) && !is_reply(known) {
                self.nodes[other].children.push(root);
            } else {
                self.nodes[other].is_merged = true;
                let both = self.nodes.len();
                self.nodes.push(Node { children: vec![other, root], ..Node::default() });
                self.roots.push(both);
                table.insert(subject, both);
            }
        }
        let nodes = &self.nodes;
        self.roots.retain(|&root| !nodes[root].is_merged);
    }

    /// Writes the threads as the THREAD reply has them: `(1 2 (3)(4 5))(6)`. Writes nothing if there are none.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        /// What remains to be written, last first.
        enum Step {
            Node(usize),
            Text(u8),
        }
        let list = |node| [Step::Text(b')'), Step::Node(node), Step::Text(b'(')];
        let mut steps: Vec<Step> = self.roots.iter().rev().flat_map(|&root| list(root)).collect();
        while let Some(step) = steps.pop() {
            let node = match step {
                Step::Text(text) => {
                    out.push(text);
                    continue;
                }
                Step::Node(node) => &self.nodes[node],
            };
            if let Some(entry) = node.entry {
                write_number(out, self.numbers[entry].into());
                if !node.children.is_empty() {
                    out.push(b' ');
                }
            }
            match node.children[..] {
                [only] => steps.push(Step::Node(only)),
                _ => steps.extend(node.children.iter().rev().flat_map(|&child| list(child))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u32, id: &str, references: &str, subject: &str) -> ThreadEntry {
        let (subject, is_reply) = crate::imap::subject::base_subject(subject);
        ThreadEntry {
            number,
            sequence: number,
            sent: Timestamp::from_second(number.into()).unwrap(),
            message_id: message_ids(id.as_bytes()).pop(),
            references: message_ids(references.as_bytes()),
            subject: subject.to_lowercase(),
            is_reply,
        }
    }

    fn written(entries: Vec<ThreadEntry>) -> String {
        let mut out = Vec::new();
        thread(entries).write(&mut out);
        String::from_utf8(out).unwrap()
    }

    /// The result is that of Dovecot.
    #[test]
    fn threads_messages() {
        let table = [
            ("<a@x>", "", "Hello"),
            ("<b@x>", "<a@x>", "Re: Hello"),
            ("<c@x>", "<a@x> <b@x>", "Re: Hello"),
            ("<d@x>", "<a@x>", "Re: Hello"),
            ("<e@x>", "<missing@x>", "Other"),
            ("<f@x>", "<missing@x>", "Re: Other"),
            ("<g@x>", "", "Topic"),
            ("<h@x>", "", "Re: Topic"),
            ("<i@x>", "", "Topic"),
            ("<j@x>", "<gone@x> <gone2@x>", "Lost"),
            ("<k@x>", "<l@x>", "loop"),
            ("<l@x>", "<k@x>", "loop"),
            ("<a@x>", "", "dup"),
            ("", "<a@x>", "noid"),
            ("<\"q\"@x>", "", "quoted"),
            ("<r@x>", "<q@x>", "r"),
            ("<s@x>", "<p1@x> <p2@x> <t@x>", "s"),
            ("<t@x>", "<p2@x>", "t"),
            ("<u@x>", "<p1@x>", "u"),
            ("<v@x>", "", "Re: other"),
            ("<w@x>", "", ""),
            ("<x@x>", "", ""),
            ("<y@x>", "", "[list] Hello (fwd)"),
        ];
        let mut entries: Vec<_> = (1..)
            .zip(table)
            .map(|(number, (id, references, subject))| entry(number, id, references, subject))
            .collect();
        // The dates of two siblings are not in the order of their numbers.
        (entries[4].sent, entries[5].sent) = (entries[5].sent, entries[4].sent);
        assert_eq!(
            written(entries),
            "(1 (2 3)(4)(14)(23))((6)(5)(20))((7 8)(9))(10)(12 11)(13)(15 16)((18 17)(19))(21)(22)"
        );
        assert_eq!(written(Vec::new()), "");
    }

    #[test]
    fn only_later_messages_set_a_missing_parent() {
        // A message without references is not the reply that an earlier message makes it. A later message can do that.
        let before = vec![entry(1, "<y@x>", "<a@x> <x@x>", "y"), entry(2, "<x@x>", "", "x")];
        assert_eq!(written(before), "(2 1)");
        let after = vec![entry(1, "<x@x>", "", "x"), entry(2, "<y@x>", "<a@x> <x@x>", "y"), entry(3, "<a@x>", "", "a")];
        assert_eq!(written(after), "(3 1 2)");
    }

    #[test]
    fn long_chains_and_many_threads_are_fast() {
        let id = |number: u32| format!("<{number}@x>");
        let count = 100_000;
        let chain = |number: u32| entry(number, &id(number), &id(number - 1), "");
        let expected = (1..=count).map(|number| number.to_string()).collect::<Vec<_>>().join(" ");
        assert_eq!(written((1..=count).map(chain).collect()), format!("({expected})"));
        let count = 10_000;
        // Each message references a missing one that is below another missing one.
        let missing =
            |number: u32| entry(number, &id(number), &format!("{} {}", id(number + count), id(number + count + 1)), "");
        assert_eq!(written((1..=count).map(missing).collect()).matches('(').count(), count as usize + 1);
        let backwards = |number: u32| entry(number, &id(number), &id(number + 1), "same");
        assert!(written((1..=count).map(backwards).collect()).starts_with("(10000 9999 "));
        let same = |number: u32| entry(number, &id(number), "", "same");
        assert!(written((1..=count).map(same).collect()).starts_with("((1)(2)(3)"));
    }

    #[test]
    fn parses_message_ids() {
        let table: &[(&str, &[&str])] = &[
            ("<a@x> <b@y>", &["a@x", "b@y"]),
            ("Your message of Monday <a@x> (comment)", &["a@x"]),
            (r#"<"a\b"@x>"#, &["ab@x"]),
            ("<a\r\n @x>", &["a@x"]),
            ("<> <a", &[]),
        ];
        for (field, ids) in table {
            let expected: Vec<IdHash> = ids.iter().map(|id| hash(id.as_bytes())).collect();
            assert_eq!(message_ids(field.as_bytes()), expected, "{field}");
        }
    }
}
