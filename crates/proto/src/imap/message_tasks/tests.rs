use std::sync::Arc;

use jiff::Timestamp;
use restante_mail::message::{Flags, Marks, MessageId};

use crate::imap::task::BATCH_BYTES;
use crate::imap::{Action, Listed, ListedMessage, Mailbox, Operation, Outcome, Refusal, Session, Settings};

/// Messages of this size are copied one after the other.
const LARGE: u64 = BATCH_BYTES;

/// Returns a session that has selected a mailbox with messages of these sizes, all of them marked as deleted. Their ids and
/// UIDs are 1, 2 and so on.
fn select(sizes: impl IntoIterator<Item = u64>) -> Session {
    let settings =
        Settings { domain: "mx.test".to_owned(), starttls: false, max_bad_commands: 0, max_message_bytes: 1000 };
    let mut session = Session::new(Arc::new(settings), false);
    assert!(matches!(session.step(b"a LOGIN bob x\r\n"), (_, Action::LogIn(_))));
    session.logged_in(Ok(()));
    let message = |(uid, size): (u32, u64)| ListedMessage {
        id: MessageId::from(u64::from(uid)),
        uid,
        received: Timestamp::UNIX_EPOCH,
        size,
        marks: Marks { flags: Flags::DELETED, ..Marks::default() },
    };
    let listing = Listed { messages: Arc::new((1..).zip(sizes).map(message).collect()), ..Listed::default() };
    let opened = Outcome::Opened(Mailbox { uid_validity: 7, has_sticky_uids: true, listing, ..Mailbox::default() });
    execute(&mut session, "SELECT INBOX", [Ok(opened)]);
    session
}

/// Sends a command and passes the results of its operations. Returns the operations and the replies.
fn execute(
    session: &mut Session,
    command: &str,
    results: impl IntoIterator<Item = Result<Outcome, Refusal>>,
) -> (Vec<Operation>, String) {
    session.replies().clear();
    let (mut operations, mut results) = (Vec::new(), results.into_iter());
    let line = format!("a {command}\r\n");
    let mut input = line.as_bytes();
    loop {
        let (consumed, action) = session.step(input);
        input = &input[consumed..];
        match action {
            Action::Perform(operation) => {
                operations.push(operation);
                session.completed(results.next().expect("a result for each operation"));
            }
            Action::Read => break,
            action => panic!("{action:?}"),
        }
    }
    assert!(results.next().is_none(), "an operation for each result");
    (operations, String::from_utf8(std::mem::take(session.replies())).unwrap())
}

fn ids(ids: impl IntoIterator<Item = u64>) -> Vec<MessageId> {
    ids.into_iter().map(MessageId::from).collect()
}

/// Returns the result of copying messages. The copies have these UIDs, which are their ids too.
#[expect(clippy::unnecessary_wraps, reason = "it is one of the results of operations")]
fn copied(uids: impl IntoIterator<Item = u32>) -> Result<Outcome, Refusal> {
    let uids: Vec<Option<u32>> = uids.into_iter().map(Some).collect();
    let ids = ids(uids.iter().flatten().map(|&uid| u64::from(uid)));
    Ok(Outcome::Copied { uid_validity: 9, uids, ids })
}

fn full() -> Result<Outcome, Refusal> {
    Err(Refusal::Limit("There is no space left".to_owned()))
}

fn copy(messages: impl IntoIterator<Item = u64>, bytes: u64, all_messages: u64, all_bytes: u64) -> Operation {
    let mailbox = "Archive".to_owned();
    Operation::Copy { ids: ids(messages), bytes, mailbox, is_move: false, all_messages, all_bytes }
}

#[test]
fn copy_has_several_operations_and_one_result() {
    let mut session = select([10; 1200]);
    let results = [copied(2001..=2500), copied(2501..=3000), copied(3001..=3200)];
    let (operations, replies) = execute(&mut session, "COPY 1:* Archive", results);
    let expected = [
        copy(1..=500, 5000, 1200, 12_000),
        copy(501..=1000, 5000, 1200, 12_000),
        copy(1001..=1200, 2000, 1200, 12_000),
    ];
    assert_eq!(operations, expected);
    assert_eq!(replies, "a OK [COPYUID 9 1:1200 2001:3200] COPY completed\r\n");
}

#[test]
fn operation_has_no_further_message_above_the_limit_of_bytes() {
    let mut session = select([LARGE - 1, 5, 6, LARGE]);
    let results = [copied([11, 12]), copied([13, 14])];
    let (operations, _) = execute(&mut session, "COPY 1:4 Archive", results);
    let all = 2 * LARGE + 10;
    assert_eq!(operations, [copy(1..=2, LARGE + 4, 4, all), copy(3..=4, LARGE + 6, 4, all)]);
}

/// RFC 3501 section 6.4.7.
#[test]
fn copy_that_fails_leaves_no_copies() {
    let mut session = select([LARGE; 3]);
    for removed in [Ok(Outcome::Done), Err(Refusal::Unavailable)] {
        let results = [copied([11]), copied([12]), full(), removed];
        let (operations, replies) = execute(&mut session, "COPY 1:3 Archive", results);
        assert_eq!(operations[3], Operation::RemoveCopies { ids: ids([11, 12]), mailbox: "Archive".to_owned() });
        assert_eq!(replies, "a NO [LIMIT] There is no space left\r\n");
    }
    let (operations, replies) = execute(&mut session, "COPY 1:3 Archive", [full()]);
    assert_eq!(operations.len(), 1, "there are no copies");
    assert_eq!(replies, "a NO [LIMIT] There is no space left\r\n");
}

/// RFC 6851 section 3.3: messages are moved or stay, and the replies say which ones.
#[test]
fn move_that_fails_reports_the_moved_messages() {
    let mut session = select([LARGE; 3]);
    let (operations, replies) = execute(&mut session, "MOVE 1:3 Archive", [copied([11]), full()]);
    assert!(operations.iter().all(|operation| matches!(operation, Operation::Copy { is_move: true, .. })));
    assert_eq!(replies, "* OK [COPYUID 9 1 11] Copied\r\n* 1 EXPUNGE\r\na NO [LIMIT] There is no space left\r\n");
    let (_, replies) = execute(&mut session, "MOVE 1:2 Archive", [full()]);
    assert_eq!(replies, "a NO [LIMIT] There is no space left\r\n");
    let (_, replies) = execute(&mut session, "UID MOVE 2:3 Archive", [copied([12]), copied([13])]);
    let expected = "* OK [COPYUID 9 2:3 12:13] Copied\r\n* 1 EXPUNGE\r\n* 1 EXPUNGE\r\na OK MOVE completed\r\n";
    assert_eq!(replies, expected);
}

#[test]
fn messages_that_no_longer_exist_are_not_copied() {
    let mut session = select([10; 3]);
    let some = Outcome::Copied { uid_validity: 9, uids: vec![Some(11), None, Some(12)], ids: ids([11, 12]) };
    let (_, replies) = execute(&mut session, "COPY 1:3 Archive", [Ok(some)]);
    assert_eq!(replies, "a OK [COPYUID 9 1,3 11:12] COPY completed\r\n");
    let none = Outcome::Copied { uid_validity: 9, uids: vec![None; 3], ids: Vec::new() };
    let (_, replies) = execute(&mut session, "MOVE 1:3 Archive", [Ok(none)]);
    assert_eq!(replies, "a NO [EXPUNGEISSUED] The messages no longer exist\r\n");
}

/// Another client has removed `\Deleted` of the second message.
#[test]
fn expunge_announces_only_what_was_removed() {
    let mut session = select([10; 3]);
    let (operations, replies) = execute(&mut session, "EXPUNGE", [Ok(Outcome::Removed(ids([1, 3])))]);
    assert_eq!(operations, [Operation::Remove(ids([3, 2, 1]))]);
    assert_eq!(replies, "* 1 EXPUNGE\r\n* 2 EXPUNGE\r\na OK EXPUNGE completed\r\n");
}
