//! Conversations with a mailbox that another client changes at the same time.

use std::fmt::Write as _;
use std::sync::Arc;

use jiff::Timestamp;
use restante_mail::message::{Flags, Marks, MessageId};
use restante_mail::tags::{MAX_TAGS, Tags};

use crate::imap::{
    Action, Listed, ListedMessage, Mailbox, Operation, Outcome, Properties, Session, Settings, Update, Updated,
};

/// A session and the mailbox that it has selected. The UIDs are 1, 2, 3 and so on, and the ids have the same numbers.
struct Conversation {
    session: Session,
    mailbox: FakeMailbox,
    /// Called before an update is made.
    other_client: fn(&mut FakeMailbox, &[Update]),
}

#[derive(Default)]
struct FakeMailbox {
    messages: Vec<Marks>,
    last_modseq: u64,
    /// The updates that the session has requested.
    updates: Vec<Update>,
}

impl FakeMailbox {
    fn message(&mut self, id: MessageId) -> &mut Marks {
        &mut self.messages[usize::try_from(id.number()).unwrap() - 1]
    }

    /// Changes the flags of a message, and gives it a new MODSEQ.
    fn set_flags(&mut self, id: MessageId, flags: Flags) {
        self.last_modseq += 1;
        let modseq = self.last_modseq;
        let message = self.message(id);
        (message.flags, message.modseq) = (flags, modseq);
    }

    fn update(&mut self, Update { id, seen, flags, tags, if_modseq }: Update) -> Updated {
        if self.message(id).modseq != if_modseq {
            return Updated::Conflict;
        }
        let before = self.message(id).clone();
        self.last_modseq += 1;
        let after = Marks {
            seen: seen.unwrap_or(before.seen),
            flags: flags.unwrap_or(before.flags),
            tags: tags.unwrap_or(before.tags),
            modseq: self.last_modseq,
        };
        *self.message(id) = after.clone();
        Updated::Done(after)
    }

    fn perform(&mut self, operation: Operation) -> Outcome {
        match operation {
            Operation::Open { .. } => Outcome::Opened(Mailbox { listing: self.listing(), ..Mailbox::default() }),
            Operation::Update(updates) => {
                self.updates.extend(updates.iter().cloned());
                Outcome::Updated(updates.into_iter().map(|update| self.update(update)).collect())
            }
            Operation::Properties(ids) => {
                let mut properties =
                    |id| Properties { message: id, marks: self.message(id).clone(), preview: String::new() };
                Outcome::Properties(ids.into_iter().map(|id| Some(properties(id))).collect())
            }
            Operation::Sources { ids, .. } => Outcome::Sources(vec![Some("Subject: x\r\n\r\n".into()); ids.len()]),
            other => panic!("{other:?}"),
        }
    }

    fn listing(&self) -> Listed {
        let messages = (1..).zip(&self.messages).map(|(uid, marks)| ListedMessage {
            id: u64::from(uid).into(),
            uid,
            received: Timestamp::UNIX_EPOCH,
            size: 16,
            marks: marks.clone(),
        });
        let next_uid = u32::try_from(self.messages.len()).unwrap() + 1;
        Listed {
            next_uid,
            highest_modseq: self.last_modseq,
            first_recent_uid: u32::MAX,
            messages: Arc::new(messages.collect()),
        }
    }
}

impl Conversation {
    /// Logs in and selects a mailbox with these messages. Their MODSEQs are 1, 2, 3 and so on.
    fn new(messages: impl IntoIterator<Item = Marks>) -> Self {
        let messages = (1..).zip(messages).map(|(modseq, marks)| Marks { modseq, ..marks }).collect::<Vec<_>>();
        let settings =
            Settings { domain: "mx.test".to_owned(), starttls: false, max_bad_commands: 0, max_message_bytes: 1000 };
        let mut conversation = Self {
            session: Session::new(Arc::new(settings), false),
            mailbox: FakeMailbox { last_modseq: messages.len() as u64, messages, ..FakeMailbox::default() },
            other_client: |_, _| {},
        };
        conversation.send("LOGIN ann x");
        conversation.send("SELECT INBOX");
        conversation
    }

    /// Sends a command with the tag `a`, and returns the replies.
    fn send(&mut self, command: &str) -> String {
        let input = format!("a {command}\r\n");
        let (mut start, mut replies) = (0, Vec::new());
        loop {
            let (consumed, action) = self.session.step(&input.as_bytes()[start..]);
            start += consumed;
            replies.append(self.session.replies());
            match action {
                Action::Read => return String::from_utf8(replies).unwrap(),
                Action::Write => {}
                Action::LogIn(_) => self.session.logged_in(Ok(())),
                Action::Perform(operation) => {
                    if let Operation::Update(updates) = &operation {
                        (self.other_client)(&mut self.mailbox, updates);
                    }
                    let outcome = self.mailbox.perform(operation);
                    self.session.completed(Ok(outcome));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// Sends a command, and returns its last reply without the tag.
    fn completion(&mut self, command: &str) -> String {
        let replies = self.send(command);
        replies.lines().last().unwrap().strip_prefix("a ").unwrap().to_owned()
    }
}

fn unchanged_messages(count: usize) -> impl Iterator<Item = Marks> {
    (0..count).map(|_| Marks::default())
}

fn tags(text: &str) -> Tags {
    Tags::new(text.split_whitespace()).unwrap()
}

#[test]
fn updates_contain_only_what_changes() {
    let kept = Update { id: 1.into(), seen: None, flags: None, tags: None, if_modseq: 1 };
    let seen = |seen| Update { seen: Some(seen), ..kept.clone() };
    let table = [
        (r"STORE 1 +FLAGS (\Seen \Flagged x)", vec![kept.clone()]),
        (r"STORE 1 FLAGS (Y \Flagged \Seen X)", vec![kept.clone()]),
        (r"STORE 1 -FLAGS (\Deleted z)", vec![kept.clone()]),
        (r"STORE 1 -FLAGS (\Seen)", vec![seen(false)]),
        (
            r"STORE 1 +FLAGS (\Deleted)",
            vec![Update { flags: Some(Flags::FLAGGED.union(Flags::DELETED)), ..kept.clone() }],
        ),
        (r"STORE 1 +FLAGS (\Seen z)", vec![Update { tags: Some(tags("x y z")), ..kept.clone() }]),
        (r"STORE 1 FLAGS (x y)", vec![Update { flags: Some(Flags::default()), ..seen(false) }]),
        (r"STORE 1 FLAGS (\Seen \Flagged y)", vec![Update { tags: Some(tags("y")), ..kept.clone() }]),
        (r"STORE 1:2 +FLAGS (\Seen)", vec![kept.clone(), Update { id: 2.into(), if_modseq: 2, ..seen(true) }]),
        (r"FETCH 1:2 (BODY[TEXT])", vec![Update { id: 2.into(), if_modseq: 2, ..seen(true) }]),
    ];
    for (command, expected) in table {
        let first = Marks { seen: true, flags: Flags::FLAGGED, tags: tags("x y"), modseq: 1 };
        let mut conversation = Conversation::new([first, Marks::default()]);
        assert!(conversation.completion(command).starts_with("OK "), "{command}");
        assert_eq!(conversation.mailbox.updates, expected, "{command}");
    }
}

#[test]
fn keywords_that_do_not_fit_are_refused() {
    let full =
        Tags::new((0..MAX_TAGS).map(|number| format!("t{number}")).collect::<Vec<_>>().iter().map(String::as_str));
    let full = Marks { tags: full.unwrap(), ..Marks::default() };
    let mut conversation = Conversation::new([full.clone(), Marks::default()]);
    assert_eq!(
        conversation.send(r"STORE 1:2 +FLAGS.SILENT (\Seen new)"),
        "a NO [LIMIT] A message has at most 20 keywords, some were not changed\r\n"
    );
    let [first, second] = &conversation.mailbox.messages[..] else { panic!() };
    assert_eq!((first.seen, &first.tags), (false, &full.tags));
    assert_eq!((second.seen, &second.tags), (true, &tags("new")));
    for command in [r"STORE 1 +FLAGS (\Seen T3)", "STORE 1 -FLAGS (t3)", "STORE 1 +FLAGS (new)"] {
        assert_eq!(conversation.completion(command), "OK STORE completed", "{command}");
    }
    assert!(conversation.mailbox.messages[0].tags.contains("new"));
}

/// Another client changes a message of each batch once.
#[test]
fn long_change_continues_while_it_progresses() {
    let mut conversation = Conversation::new(unchanged_messages(20_000));
    conversation.other_client = |mailbox, updates| {
        let last = updates.last().unwrap().id;
        if mailbox.message(last).flags == Flags::default() {
            mailbox.set_flags(last, Flags::FLAGGED);
        }
    };
    assert_eq!(conversation.completion(r"STORE 1:* +FLAGS.SILENT (\Seen)"), "OK STORE completed");
    let messages = &conversation.mailbox.messages;
    assert!(messages.iter().all(|message| message.seen));
    let flagged = messages.iter().filter(|message| message.flags == Flags::FLAGGED).count();
    assert!(flagged > 20, "{flagged}");
}

#[test]
fn message_that_always_changes_is_given_up() {
    let mut conversation = Conversation::new(unchanged_messages(2));
    conversation.other_client = |mailbox, _| mailbox.set_flags(1.into(), Flags::FLAGGED);
    assert_eq!(
        conversation.completion(r"STORE 1:2 +FLAGS.SILENT (\Seen)"),
        "NO [INUSE] Other clients change these messages, try again later"
    );
    let seen = conversation.mailbox.messages.iter().map(|message| message.seen);
    assert_eq!(seen.collect::<Vec<_>>(), [false, true]);
}

/// The session knows MODSEQ 1. Another client has set it to 3.
#[test]
fn unchangedsince_is_compared_with_the_current_modseq() {
    let table = [
        (0, "OK [MODIFIED 1] Some messages were changed by other clients", Flags::FLAGGED),
        (1, "OK [MODIFIED 1] Some messages were changed by other clients", Flags::FLAGGED),
        (2, "OK [MODIFIED 1] Some messages were changed by other clients", Flags::FLAGGED),
        (3, "OK STORE completed", Flags::FLAGGED.union(Flags::DELETED)),
        (100, "OK STORE completed", Flags::FLAGGED.union(Flags::DELETED)),
    ];
    for (limit, expected, flags) in table {
        let mut conversation = Conversation::new(unchanged_messages(2));
        conversation.mailbox.set_flags(1.into(), Flags::FLAGGED);
        let command = format!(r"STORE 1 (UNCHANGEDSINCE {limit}) +FLAGS.SILENT (\Deleted)");
        assert_eq!(conversation.completion(&command), expected, "{command}");
        assert_eq!(conversation.mailbox.messages[0].flags, flags, "{command}");
    }
}

/// The session does not know the keywords of the last message.
#[test]
fn unknown_keywords_are_kept() {
    let tagged = |number| Marks { tags: tags(&format!("keyword{number}")), ..Marks::default() };
    let count = super::MAX_KEYWORD_SETS;
    let mut conversation = Conversation::new((1..=count).map(tagged));
    let last = conversation.mailbox.messages[count - 1].tags.clone();
    let refused = format!("NO [LIMIT] A session knows at most {count} sets of keywords, some were not changed");
    let table = [
        (r"+FLAGS (\Seen)", "OK STORE completed"),
        (r"FLAGS (\Deleted)", "OK STORE completed"),
        (r"-FLAGS (\Deleted)", "OK STORE completed"),
        ("+FLAGS (new)", &refused),
        (r"-FLAGS (\Seen other)", &refused),
        ("FLAGS (new)", &refused),
    ];
    for (change, expected) in table {
        assert_eq!(conversation.completion(&format!("STORE {count} {change}")), expected, "{change}");
        assert_eq!(conversation.mailbox.messages[count - 1].tags, last, "{change}");
    }
    // The first message gets a further set.
    assert_eq!(conversation.completion("STORE 1 +FLAGS (other)"), "OK STORE completed");
    assert_eq!(conversation.completion("STORE 1 -FLAGS (other)"), refused);
    assert_eq!(conversation.mailbox.messages[0].tags, tags("keyword1 other"));
}

#[test]
fn list_bytes_include_the_keywords() {
    let list_bytes = |keyword_count: usize| {
        let keywords = (0..keyword_count).fold(String::new(), |mut text, number| {
            let _ = write!(text, "a-long-keyword-with-number-{number} ");
            text
        });
        Conversation::new([Marks { tags: tags(&keywords), ..Marks::default() }]).session.list_bytes()
    };
    let text_bytes = "a-long-keyword-with-number-".len() * MAX_TAGS;
    assert!(list_bytes(MAX_TAGS) > list_bytes(0) + 2 * text_bytes);
}
