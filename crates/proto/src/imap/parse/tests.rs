use std::num::NonZeroU32;

use jiff::civil::date;

use super::super::command::SetNumber::{Last, Number};
use super::super::command::{
    BodyName, FetchItem, Flag, ListRequest, ListReturn, ListSelection, Search, SearchKey, SearchReturn, Section,
    SectionText, SequenceSet, SortCriterion, SortKey,
};
use super::super::reader::tests::{Cut, read_all};
use super::super::reader::{Limits, Received};
use super::*;

const UNKNOWN: &str = "Unknown command";
const MISSING: &str = "An argument is missing";
const INVALID: &str = "Invalid date";
const TOO_MANY: &str = "Too many arguments";

/// Parses the only command in the input.
pub(in super::super) fn parse_input(input: &[u8], cut: Cut, is_utf8: bool) -> Result<Request, ParseError> {
    let limits = Limits { max_message_bytes: 1_000_000, is_authenticated: true };
    let received = read_all(input, limits, cut);
    match received.as_slice() {
        [.., Received::Command(command)] => parse(command, is_utf8),
        other => panic!("{:?}: {other:?}", String::from_utf8_lossy(input)),
    }
}

fn parse_line(line: &str) -> Result<Command, &'static str> {
    let request = parse_input(format!("a1 {line}\r\n").as_bytes(), Cut::Whole, false);
    assert_eq!(request.as_ref().map_or_else(|error| error.tag.as_deref(), |request| Some(&request.tag)), Some("a1"));
    request.map(|request| request.command).map_err(|error| error.reason)
}

fn check(table: &[(&str, Result<Command, &str>)]) {
    for (line, expected) in table {
        assert_eq!(&parse_line(line), expected, "{line}");
    }
}

fn check_errors(table: &[(&str, &str)]) {
    for (line, expected) in table {
        assert_eq!(parse_line(line), Err(*expected), "{line}");
    }
}

/// Parses a sequence set.
pub(in super::super) fn sequence_set(text: &str) -> SequenceSet {
    match parse_line(&format!("UID EXPUNGE {text}")) {
        Ok(Command::Expunge(Some(set))) => set,
        other => panic!("{other:?}"),
    }
}

fn number(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap()
}

fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}

fn keyword(keyword: &str) -> Flag {
    Flag::Keyword(keyword.to_owned())
}

#[test]
fn parses_commands_without_arguments() {
    check(&[
        ("CAPABILITY", Ok(Command::Capability)),
        ("capability", Ok(Command::Capability)),
        ("Noop ", Ok(Command::Noop)),
        ("NOOP  ", Ok(Command::Noop)),
        ("LOGOUT", Ok(Command::Logout)),
        ("STARTTLS", Ok(Command::StartTls)),
        ("NAMESPACE", Ok(Command::Namespace)),
        ("IDLE", Ok(Command::Idle)),
        ("CHECK", Ok(Command::Check)),
        ("CLOSE", Ok(Command::Close)),
        ("UNSELECT", Ok(Command::Unselect)),
        ("EXPUNGE", Ok(Command::Expunge(None))),
        ("UID EXPUNGE $", Ok(Command::Expunge(Some(SequenceSet::Saved)))),
        ("NOOP x", Err(TOO_MANY)),
        ("EXPUNGE 1:2", Err(TOO_MANY)),
        ("UID EXPUNGE", Err(MISSING)),
        ("UID NOOP", Err("Unknown UID command")),
        ("UID SELECT x", Err("Unknown UID command")),
        ("UID", Err(MISSING)),
        ("SETQUOTA x (STORAGE 1)", Err(UNKNOWN)),
        ("COMPRESS DEFLATE", Err(UNKNOWN)),
        ("X-UNKNOWN", Err(UNKNOWN)),
        ("", Err("The name of the command is missing or invalid")),
        (" NOOP", Err("The name of the command is missing or invalid")),
        ("NOOP\"", Err(TOO_MANY)),
    ]);
}

#[test]
fn invalid_tags_have_no_reply() {
    for line in ["", " ", "a1", "NOOP", "+ NOOP", "a+1 NOOP", "a(1 NOOP", "ä NOOP", " a1 NOOP", "\0 NOOP", "a\"1 NOOP"]
    {
        let error = parse_input(format!("{line}\r\n").as_bytes(), Cut::Whole, false).unwrap_err();
        assert_eq!(error.tag, None, "{line}");
    }
    let request = parse_input(b"[!.]#$ NOOP\n", Cut::Whole, false);
    assert_eq!(request, Ok(Request { tag: "[!.]#$".to_owned(), command: Command::Noop }));
}

#[test]
fn parses_login_commands() {
    let login = |user: &str, password| Ok(Command::Login { user: user.to_owned(), password: Secret::new(password) });
    let authenticate = |mechanism: &str, response: Option<&str>| {
        let initial_response = response.map(Secret::new);
        Ok(Command::Authenticate { mechanism: mechanism.to_owned(), initial_response })
    };
    check(&[
        ("LOGIN james secret", login("james", "secret")),
        ("login \"james\" \"a \\\"b\\\\ ü\"", login("james", "a \"b\\ ü")),
        ("LOGIN jürgen@x.test pass]word", login("jürgen@x.test", "pass]word")),
        ("LOGIN \"\" \"\"", login("", "")),
        ("LOGIN \"\\\"\" x", login("\"", "x")),
        ("LOGIN {5}\r\njames {6+}\r\nse\r\net", login("james", "se\r\net")),
        ("LOGIN {2}\r\n{3 {0}\r\n", login("{3", "")),
        ("LOGIN {5+}\r\njames \"secret\" ", login("james", "secret")),
        ("LOGIN james", Err(MISSING)),
        ("LOGIN", Err(MISSING)),
        ("LOGIN a b c", Err(TOO_MANY)),
        ("LOGIN  a b", Err("An argument is missing or invalid")),
        ("LOGIN a (b)", Err("An argument is missing or invalid")),
        ("LOGIN\"a\" b", Err("A space is missing")),
        ("LOGIN \"a\"b", Err("A space is missing")),
        ("LOGIN a \"b", Err("A quotation mark is missing")),
        ("LOGIN a \"b\rc\"", Err("Invalid character in a quoted string")),
        ("LOGIN a \"b\0c\"", Err("Invalid character in a quoted string")),
        ("LOGIN a \"{1}\r\nb\"", Err("Invalid character in a quoted string")),
        ("LOGIN a \"\\b\"", Err("Invalid character after a backslash in a quoted string")),
        ("LOGIN a {1}\r\n\0", Err("NUL in a literal")),
        ("LOGIN a ~{1}\r\nb", Err(TOO_MANY)),
        ("AUTHENTICATE PLAIN", authenticate("PLAIN", None)),
        ("AUTHENTICATE plain AGEAYg==", authenticate("PLAIN", Some("AGEAYg=="))),
        ("AUTHENTICATE XOAUTH2 =", authenticate("XOAUTH2", Some("="))),
        ("AUTHENTICATE PLAIN *", Err("The initial response is not base64")),
        ("AUTHENTICATE", Err(MISSING)),
        ("ID NIL", Ok(Command::Id)),
        ("ID (\"name\" \"x\" \"version\" nil)", Ok(Command::Id)),
        ("ID ({4}\r\nname {0}\r\n)", Ok(Command::Id)),
        ("ID ()", Ok(Command::Id)),
        ("ID (\"name\")", Err("A parameter of ID has no value")),
        ("ID (NIL NIL)", Err("An argument is missing or invalid")),
        ("ID", Err(MISSING)),
        ("ENABLE condstore UTF8=ACCEPT", Ok(Command::Enable(texts(["CONDSTORE", "UTF8=ACCEPT"])))),
        ("ENABLE", Err(MISSING)),
    ]);
}

#[test]
fn parses_commands_of_mailboxes() {
    let select = |mailbox: &str, is_read_only, condstore| {
        Ok(Command::Select { mailbox: mailbox.to_owned(), is_read_only, condstore })
    };
    let create = |mailbox: &str| Ok(Command::Create(mailbox.to_owned()));
    check(&[
        ("SELECT inbox", select("INBOX", false, false)),
        ("SELECT \"Inbox\"", select("INBOX", false, false)),
        ("EXAMINE iNbOx/Sub/inbox", select("INBOX/Sub/inbox", true, false)),
        ("SELECT inbox2", select("inbox2", false, false)),
        ("SELECT Entw&APw-rfe (condstore)", select("Entwürfe", false, true)),
        ("SELECT Entwürfe", select("Entwürfe", false, false)),
        ("SELECT \"R&D [x]\"", select("R&D [x]", false, false)),
        ("SELECT R&-D", select("R&D", false, false)),
        ("SELECT {5}\r\nInbox", select("INBOX", false, false)),
        ("SELECT x (QRESYNC (1 2))", Err("The parameter is not supported")),
        ("SELECT x (CONDSTORE QRESYNC (1 2))", Err("A closing parenthesis is missing")),
        ("SELECT \"a\tb\"", Err("The name of the mailbox contains a control character")),
        ("SELECT a%b", Err(TOO_MANY)),
        ("SELECT", Err(MISSING)),
        ("CREATE x/", create("x/")),
        ("CREATE Sent (USE (\\Sent \\Drafts))", create("Sent")),
        ("CREATE x (OTHER)", Err("The parameter is not supported")),
        ("DELETE x", Ok(Command::Delete("x".to_owned()))),
        ("RENAME a INBOX/b", Ok(Command::Rename { from: "a".to_owned(), to: "INBOX/b".to_owned() })),
        ("SUBSCRIBE x", Ok(Command::Subscribe("x".to_owned()))),
        ("UNSUBSCRIBE \"x y\"", Ok(Command::Unsubscribe("x y".to_owned()))),
        ("GETQUOTA \"\"", Ok(Command::GetQuota(String::new()))),
        ("GETQUOTAROOT inbox", Ok(Command::GetQuotaRoot("INBOX".to_owned()))),
    ]);
    let name = |name: &str| mailbox_name(name.as_bytes(), true).unwrap();
    assert_eq!([name("R&-D"), name("Größe"), name("inbox")], ["R&-D", "Größe", "INBOX"], "UTF-8 only");
    assert!(mailbox_name(b"\xff", false).is_err());
}

#[test]
fn parses_status_and_list() {
    let every_item = [
        ("MESSAGES", StatusItem::Messages),
        ("RECENT", StatusItem::Recent),
        ("UIDNEXT", StatusItem::UidNext),
        ("UIDVALIDITY", StatusItem::UidValidity),
        ("UNSEEN", StatusItem::Unseen),
        ("DELETED", StatusItem::Deleted),
        ("SIZE", StatusItem::Size),
        ("HIGHESTMODSEQ", StatusItem::HighestModSeq),
        ("APPENDLIMIT", StatusItem::AppendLimit),
        ("MAILBOXID", StatusItem::MailboxId),
    ];
    let names = every_item.map(|(name, _)| name).join(" ");
    let status = Command::Status { mailbox: "INBOX".to_owned(), items: every_item.map(|(_, item)| item).to_vec() };
    let list = |reference: &str, pattern: &str| ListRequest {
        reference: reference.to_owned(),
        patterns: texts([pattern]),
        ..ListRequest::default()
    };
    let extended = |request: ListRequest| Ok(Command::List(ListRequest { is_extended: true, ..request }));
    let lsub = Command::Lsub { reference: String::new(), pattern: "*".to_owned() };
    check(&[
        (&format!("STATUS INBOX ({names})"), Ok(status.clone())),
        (&format!("status inbox ({})", names.to_lowercase()), Ok(status)),
        ("STATUS INBOX (X)", Err("Unknown item of STATUS")),
        ("STATUS INBOX ()", Err("An atom is missing or invalid")),
        ("STATUS INBOX MESSAGES", Err("A list in parentheses is missing")),
        ("STATUS INBOX", Err(MISSING)),
        ("LSUB \"\" *", Ok(lsub)),
        ("LIST \"\" \"\"", Ok(Command::List(list("", "")))),
        ("LIST \"\" inbox", Ok(Command::List(list("", "INBOX")))),
        ("LIST x %/inb*]", Ok(Command::List(list("x", "%/inb*]")))),
        ("LIST \"\" \"Entw&APw-%\"", Ok(Command::List(list("", "Entwü%")))),
        ("LIST \"\" (a \"b c\")", extended(ListRequest { patterns: texts(["a", "b c"]), ..list("", "") })),
        ("LIST () \"\" *", extended(list("", "*"))),
        ("LIST \"\" * RETURN ()", extended(list("", "*"))),
        (
            "LIST (SUBSCRIBED RECURSIVEMATCH) \"\" * RETURN (CHILDREN STATUS (SIZE UNSEEN) SPECIAL-USE)",
            extended(ListRequest {
                select: vec![ListSelection::Subscribed, ListSelection::RecursiveMatch],
                returns: vec![
                    ListReturn::Children,
                    ListReturn::Status(vec![StatusItem::Size, StatusItem::Unseen]),
                    ListReturn::SpecialUse,
                ],
                ..list("", "*")
            }),
        ),
        (
            "LIST (special-use REMOTE remote) \"\" * return (subscribed)",
            extended(ListRequest {
                select: vec![ListSelection::SpecialUse, ListSelection::Remote],
                returns: vec![ListReturn::Subscribed],
                ..list("", "*")
            }),
        ),
        ("LIST (RECURSIVEMATCH REMOTE) \"\" *", Err("RECURSIVEMATCH needs another selection option")),
        ("LIST (X) \"\" *", Err("Unknown selection option of LIST")),
        ("LIST \"\" * RETURN (MYRIGHTS)", Err("Unknown return option of LIST")),
        ("LIST \"\" * RETURN", Err(TOO_MANY)),
        ("LIST \"\" ()", Err("An argument is missing or invalid")),
        ("LIST \"\"", Err(MISSING)),
        (&format!("LIST \"\" ({}x)", "x ".repeat(100)), Err("Too many patterns")),
    ]);
}

#[test]
fn parses_append() {
    let append = |flags: Vec<Flag>, second: Option<i64>, message: &'static [u8]| {
        let received = second.map(|second| jiff::Timestamp::from_second(second).unwrap());
        Ok(Command::Append(Append { mailbox: "INBOX".to_owned(), flags, received, message: message.into() }))
    };
    check(&[
        ("APPEND inbox {3}\r\nabc", append(vec![], None, b"abc")),
        ("APPEND {5}\r\nInbox {3+}\r\n\0\r\n", append(vec![], None, b"\0\r\n")),
        ("APPEND inbox ~{3}\r\na\0c", append(vec![], None, b"a\0c")),
        ("APPEND inbox UTF8 (~{3+}\r\na\0c) ", append(vec![], None, b"a\0c")),
        ("APPEND inbox () {0}\r\n", append(vec![], None, b"")),
        (
            "APPEND inbox (\\Seen $Forwarded \\recent) \" 1-Jan-2026 01:00:00 +0100\" {1}\r\nx",
            append(vec![Flag::Seen, keyword("$Forwarded"), Flag::System], Some(1_767_225_600), b"x"),
        ),
        ("APPEND inbox \"31-dec-2025 19:30:60 -0430\" {1}\r\nx", append(vec![], Some(1_767_225_659), b"x")),
        ("APPEND inbox \"1-Jan-0001 00:00:00 +0000\" {1}\r\nx", append(vec![], Some(-62_135_596_800), b"x")),
        ("APPEND inbox \"30-Feb-2026 00:00:00 +0000\" {1}\r\nx", Err(INVALID)),
        ("APPEND inbox \"1-Jan-2026 24:00:00 +0000\" {1}\r\nx", Err(INVALID)),
        ("APPEND inbox \"1-Jan-2026 00:00:00 0000\" {1}\r\nx", Err(INVALID)),
        ("APPEND inbox \"1-Jan-2026 00:00:00 +00é0\" {1}\r\nx", Err(INVALID)),
        ("APPEND inbox \"1-Jan-2026\" {1}\r\nx", Err(INVALID)),
        ("APPEND inbox \"text\"", Err(INVALID)),
        ("APPEND inbox (\\*) {1}\r\nx", Err("Invalid flag")),
        ("APPEND inbox UTF8 (~{1}\r\nx", Err("A closing parenthesis is missing")),
        ("APPEND inbox CATENATE (TEXT {1}\r\nx)", Err("A literal is missing")),
        ("APPEND inbox {1}\r\nx {1}\r\ny", Err("APPEND takes one message")),
        ("APPEND inbox text", Err("A literal is missing")),
        ("APPEND {5}\r\nInbox", Err(MISSING)),
        ("APPEND inbox", Err(MISSING)),
    ]);
}

#[test]
fn parses_sequence_sets() {
    let one = |number| Number(NonZeroU32::new(number).unwrap());
    let table = [
        ("1", vec![(one(1), one(1))]),
        ("1,3:2,*", vec![(one(1), one(1)), (one(3), one(2)), (Last, Last)]),
        ("*:4294967295", vec![(Last, one(u32::MAX))]),
    ];
    for (text, expected) in table {
        assert_eq!(sequence_set(text), SequenceSet::Ranges(expected), "{text}");
    }
    for text in ["0", "1:0", "4294967296", "1,", ",1", "1::2", "-1", "x", "1:", ":1", "99999999999999999999"] {
        assert_eq!(parse_line(&format!("UID EXPUNGE {text}")), Err("Invalid sequence set"), "{text}");
    }
    check_errors(&[("UID EXPUNGE $,1", TOO_MANY), ("UID EXPUNGE 1:2:3", TOO_MANY), ("UID EXPUNGE 1 2", TOO_MANY)]);
}

#[test]
fn parses_fetch() {
    let set = || sequence_set("1:*");
    let fetch = |items: Vec<FetchItem>| Ok(Command::Fetch { set: set(), is_uid: false, items, changed_since: None });
    let body = |part: &[u32], text, partial, is_peek| {
        let section = Section { part: part.iter().map(|part| number(*part)).collect(), text };
        FetchItem::Body { name: BodyName::Body, section, partial, is_peek }
    };
    let old =
        |name, text, is_peek| FetchItem::Body { name, section: Section { part: vec![], text }, partial: None, is_peek };
    let macro_items = || {
        let envelope = FetchItem::Envelope;
        vec![
            FetchItem::Flags,
            FetchItem::InternalDate,
            FetchItem::Size,
            envelope,
            FetchItem::Structure { is_extended: false },
        ]
    };
    let binary = |part, is_peek| FetchItem::Binary { part, partial: Some((0, number(9))), is_peek };
    check(&[
        ("FETCH 1:* FULL", fetch(macro_items())),
        ("FETCH 1:* all", fetch(macro_items()[..4].to_vec())),
        ("FETCH 1:* FAST", fetch(macro_items()[..3].to_vec())),
        ("FETCH 1:* (UID flags INTERNALDATE)", fetch(vec![FetchItem::Uid, FetchItem::Flags, FetchItem::InternalDate])),
        (
            "FETCH 1:* (BODY BODYSTRUCTURE MODSEQ EMAILID THREADID)",
            fetch(vec![
                FetchItem::Structure { is_extended: false },
                FetchItem::Structure { is_extended: true },
                FetchItem::ModSeq,
                FetchItem::EmailId,
                FetchItem::ThreadId,
            ]),
        ),
        (
            "FETCH 1:* (RFC822 RFC822.HEADER RFC822.TEXT RFC822.SIZE)",
            fetch(vec![
                old(BodyName::Rfc822, SectionText::All, false),
                old(BodyName::Rfc822Header, SectionText::Header, true),
                old(BodyName::Rfc822Text, SectionText::Text, false),
                FetchItem::Size,
            ]),
        ),
        ("FETCH 1:* BODY[]", fetch(vec![body(&[], SectionText::All, None, false)])),
        ("FETCH 1:* body[]<0.5>", fetch(vec![body(&[], SectionText::All, Some((0, number(5))), false)])),
        ("FETCH 1:* BODY.PEEK[1.22]", fetch(vec![body(&[1, 22], SectionText::All, None, true)])),
        ("FETCH 1:* BODY.PEEK[1.2.MIME]", fetch(vec![body(&[1, 2], SectionText::Mime, None, true)])),
        ("FETCH 1:* BODY[3.header]", fetch(vec![body(&[3], SectionText::Header, None, false)])),
        ("FETCH 1:* BODY[TEXT]", fetch(vec![body(&[], SectionText::Text, None, false)])),
        (
            "FETCH 1:* BODY.PEEK[HEADER.FIELDS (\"Date\" from)]",
            fetch(vec![body(&[], SectionText::HeaderFields(texts(["Date", "from"])), None, true)]),
        ),
        (
            "FETCH 1:* (BODY[1.HEADER.FIELDS.NOT ({2}\r\nTo)]<1.2>)",
            fetch(vec![body(&[1], SectionText::HeaderFieldsNot(texts(["To"])), Some((1, number(2))), false)]),
        ),
        (
            "FETCH 1:* (BINARY[]<0.9> BINARY.PEEK[1.2]<0.9> BINARY.SIZE[3])",
            fetch(vec![
                binary(vec![], false),
                binary(vec![number(1), number(2)], true),
                FetchItem::BinarySize(vec![number(3)]),
            ]),
        ),
        ("FETCH 1:* (PREVIEW (LAZY) UID)", fetch(vec![FetchItem::Preview, FetchItem::Uid])),
        ("FETCH 1:* PREVIEW", fetch(vec![FetchItem::Preview])),
        (
            "UID FETCH 1:* preview (lazy) (CHANGEDSINCE 18446744073709551615)",
            Ok(Command::Fetch {
                set: set(),
                is_uid: true,
                items: vec![FetchItem::Preview],
                changed_since: Some(u64::MAX),
            }),
        ),
    ]);
    check_errors(&[
        ("FETCH 1:*", MISSING),
        ("FETCH 1:* ()", "Unknown item of FETCH"),
        ("FETCH 1:* X", "Unknown item of FETCH"),
        ("FETCH 1:* (UID", MISSING),
        ("FETCH 1:* (UIDFLAGS)", "Unknown item of FETCH"),
        ("FETCH 1:* UID FLAGS", TOO_MANY),
        ("FETCH 1:* BODY.PEEK", "A section is missing"),
        ("FETCH 1:* BODY[", "Invalid section"),
        ("FETCH 1:* BODY[1.]", "Invalid section"),
        ("FETCH 1:* BODY[0]", "A number must not be 0"),
        ("FETCH 1:* BODY[MIME]", "Unknown section"),
        ("FETCH 1:* BODY[X]", "Unknown section"),
        ("FETCH 1:* BODY[HEADER", "The end of a section is missing"),
        ("FETCH 1:* BODY[HEADER.FIELDS]", "A space is missing"),
        ("FETCH 1:* BODY[HEADER.FIELDS ()]", "An argument is missing or invalid"),
        ("FETCH 1:* BODY[HEADER.FIELDS (\"a b\")]", "Invalid name of a header field"),
        ("FETCH 1:* BODY[HEADER.FIELDS ({2}\r\n\r\n)]", "Invalid name of a header field"),
        ("FETCH 1:* BODY[]<0>", "The number of octets is missing"),
        ("FETCH 1:* BODY[]<0.0>", "A number must not be 0"),
        ("FETCH 1:* BODY[]<0.5", "The end of a range is missing"),
        ("FETCH 1:* BINARY[TEXT]", "The end of a section is missing"),
        ("FETCH 1:* UID (CHANGEDSINCE 1 VANISHED)", "A closing parenthesis is missing"),
        ("FETCH 1:* UID (VANISHED)", "The modifier of FETCH is not supported"),
        ("FETCH x UID", "Invalid sequence set"),
        (&format!("FETCH 1 (UID{})", " UID".repeat(200)), "Too many items of FETCH"),
    ]);
}

#[test]
fn parses_store_and_copy() {
    let store = |operation, is_silent, flags: Vec<Flag>, unchanged_since| {
        Ok(Command::Store { set: SequenceSet::Saved, is_uid: false, operation, is_silent, flags, unchanged_since })
    };
    let copy =
        |is_uid, is_move| Ok(Command::Copy { set: SequenceSet::Saved, is_uid, mailbox: "INBOX/x".to_owned(), is_move });
    check(&[
        ("STORE $ FLAGS (\\Seen)", store(StoreOperation::Replace, false, vec![Flag::Seen], None)),
        ("STORE $ FLAGS ()", store(StoreOperation::Replace, false, vec![], None)),
        (
            "STORE $ +flags.silent \\answered NonJunk+x",
            store(StoreOperation::Add, true, vec![Flag::Answered, keyword("NonJunk+x")], None),
        ),
        (
            "STORE $ (unchangedsince 0) -FLAGS (\\Flagged \\Deleted \\Draft)",
            store(StoreOperation::Remove, false, vec![Flag::Flagged, Flag::Deleted, Flag::Draft], Some(0)),
        ),
        ("STORE $ +X (\\Seen)", Err("Unknown item of STORE")),
        ("STORE $ FLAGS", Err(MISSING)),
        ("STORE $ FLAGS (a]b)", Err("A space is missing")),
        ("STORE $ FLAGS (\"a\")", Err("Invalid flag")),
        ("STORE $ FLAGS (ä)", Err("Invalid flag")),
        ("STORE $ (X 1) FLAGS (x)", Err("The modifier of STORE is not supported")),
        ("COPY $ inbox/x", copy(false, false)),
        ("UID COPY $ inbox/x", copy(true, false)),
        ("MOVE $ inbox/x", copy(false, true)),
        ("UID MOVE $ inbox/x ", copy(true, true)),
        ("COPY $", Err(MISSING)),
    ]);
}

#[test]
fn parses_search_keys() {
    let not = |key| SearchKey::Not(Box::new(key));
    let flag = SearchKey::Flag;
    let header = |field: &str, text: &str| SearchKey::Header { field: field.to_owned(), text: text.into() };
    let day = date(1994, 2, 1);
    let table = [
        ("ALL", SearchKey::All),
        ("unseen", not(flag(Flag::Seen))),
        ("SEEN", flag(Flag::Seen)),
        ("ANSWERED", flag(Flag::Answered)),
        ("UNANSWERED", not(flag(Flag::Answered))),
        ("DELETED", flag(Flag::Deleted)),
        ("UNDELETED", not(flag(Flag::Deleted))),
        ("DRAFT", flag(Flag::Draft)),
        ("UNDRAFT", not(flag(Flag::Draft))),
        ("FLAGGED", flag(Flag::Flagged)),
        ("UNFLAGGED", not(flag(Flag::Flagged))),
        ("RECENT", SearchKey::Recent),
        ("OLD", not(SearchKey::Recent)),
        ("NEW", SearchKey::And(vec![SearchKey::Recent, not(flag(Flag::Seen))])),
        ("KEYWORD $Junk", flag(keyword("$Junk"))),
        ("UNKEYWORD Seen", not(flag(keyword("Seen")))),
        ("1:3", SearchKey::Sequence(sequence_set("1:3"))),
        ("*", SearchKey::Sequence(sequence_set("*"))),
        ("$", SearchKey::Sequence(SequenceSet::Saved)),
        ("UID 7,9", SearchKey::Uid(sequence_set("7,9"))),
        ("FROM x@y.test", header("From", "x@y.test")),
        ("TO \"a b\"", header("To", "a b")),
        ("CC {3}\r\nä!", header("Cc", "ä!")),
        ("BCC ü", header("Bcc", "ü")),
        ("SUBJECT \"\"", header("Subject", "")),
        ("HEADER Message-ID \"\"", header("Message-ID", "")),
        ("BODY x", SearchKey::Body(b"x".to_vec())),
        ("TEXT x", SearchKey::Text(b"x".to_vec())),
        ("BEFORE 1-Feb-1994", SearchKey::Before(day)),
        ("ON \"01-FEB-1994\"", SearchKey::On(day)),
        ("SINCE 01-feb-1994", SearchKey::Since(day)),
        ("SENTBEFORE 1-Feb-1994", SearchKey::SentBefore(day)),
        ("SENTON 1-Feb-1994", SearchKey::SentOn(day)),
        ("SENTSINCE 1-Feb-1994", SearchKey::SentSince(day)),
        ("LARGER 0", SearchKey::Larger(0)),
        ("SMALLER 5000000000", SearchKey::Smaller(5_000_000_000)),
        ("OLDER 1", SearchKey::Older(number(1))),
        ("YOUNGER 60", SearchKey::Younger(number(60))),
        ("MODSEQ 5", SearchKey::ModSeq(5)),
        ("MODSEQ \"/flags/\\\\draft\" all 5", SearchKey::ModSeq(5)),
        ("EMAILID M1", SearchKey::EmailId("M1".to_owned())),
        ("THREADID T1", SearchKey::ThreadId("T1".to_owned())),
        ("NOT NOT ALL", not(not(SearchKey::All))),
        ("OR SEEN NOT DRAFT", SearchKey::Or(Box::new(flag(Flag::Seen)), Box::new(not(flag(Flag::Draft))))),
        ("(SEEN)", flag(Flag::Seen)),
        (
            "SEEN (DRAFT ALL) ",
            SearchKey::And(vec![flag(Flag::Seen), SearchKey::And(vec![flag(Flag::Draft), SearchKey::All])]),
        ),
    ];
    for (text, key) in table {
        let search = Search { is_uid: false, charset: None, key, returns: None };
        assert_eq!(parse_line(&format!("SEARCH {text}")), Ok(Command::Search(search)), "{text}");
    }
    let nested = |depth| format!("SEARCH {}ALL", "NOT ".repeat(depth));
    assert!(parse_line(&nested(20)).is_ok());
    assert!(parse_line(&format!("SEARCH{}", " ALL".repeat(1_000))).is_ok());
    check_errors(&[
        ("SEARCH", MISSING),
        ("SEARCH X", "Unknown search key"),
        ("SEARCH ALL X 1", "Unknown search key"),
        ("SEARCH FROM", MISSING),
        ("SEARCH OR ALL", MISSING),
        ("SEARCH (ALL", "A closing parenthesis is missing"),
        ("SEARCH ()", "A search key is missing or invalid"),
        ("SEARCH ALL)", TOO_MANY),
        ("SEARCH SINCE 1-Foo-1994", "Invalid date"),
        ("SEARCH SINCE 1-Feb-94", "Invalid date"),
        ("SEARCH SINCE 29-Feb-2026", "Invalid date"),
        ("SEARCH LARGER x", "A number is missing or invalid"),
        ("SEARCH LARGER 99999999999999999999", "A number is out of range"),
        ("SEARCH MODSEQ \"/flags/x\" mine 5", "Unknown type of an entry"),
        (&nested(21), "Too many nested search keys"),
        (&format!("SEARCH {}ALL", "(".repeat(30_000)), "Too many nested search keys"),
        (&format!("SEARCH{}", " ALL".repeat(1_001)), "Too many search keys"),
    ]);
}

#[test]
fn parses_search_arguments() {
    let search = |is_uid, charset: Option<&str>, returns: Option<Vec<SearchReturn>>| {
        let charset = charset.map(str::to_owned);
        Search { is_uid, charset, key: SearchKey::All, returns }
    };
    let sort = |keys: &[(SortKey, bool)], search| {
        let criteria = keys.iter().map(|(key, is_reverse)| SortCriterion { key: *key, is_reverse: *is_reverse });
        Ok(Command::Sort { criteria: criteria.collect(), search })
    };
    let utf8 = Some("UTF-8");
    let every_return =
        [SearchReturn::Min, SearchReturn::Max, SearchReturn::All, SearchReturn::Count, SearchReturn::Save];
    let every_key = [SortKey::Cc, SortKey::Date, SortKey::From, SortKey::Size, SortKey::Subject, SortKey::To];
    let thread = |search| Ok(Command::Thread { algorithm: "REFERENCES".to_owned(), search });
    check(&[
        ("UID SEARCH CHARSET utf-8 ALL", Ok(Command::Search(search(true, utf8, None)))),
        ("SEARCH CHARSET \"US-ASCII\" ALL", Ok(Command::Search(search(false, Some("US-ASCII"), None)))),
        ("SEARCH RETURN () ALL", Ok(Command::Search(search(false, None, Some(vec![]))))),
        (
            "UID SEARCH RETURN (MIN max ALL COUNT SAVE MIN) CHARSET UTF-8 ALL",
            Ok(Command::Search(search(true, utf8, Some(every_return.to_vec())))),
        ),
        ("SEARCH RETURN (PARTIAL 1:2) ALL", Err("Unknown result option")),
        ("SEARCH RETURN (MIN)", Err(MISSING)),
        ("SEARCH CHARSET \"a\x01\" ALL", Err("Invalid charset")),
        ("SORT (REVERSE arrival) UTF-8 ALL", sort(&[(SortKey::Arrival, true)], search(false, utf8, None))),
        (
            "UID SORT (CC DATE FROM SIZE SUBJECT TO) UTF-8 ALL",
            sort(&every_key.map(|key| (key, false)), search(true, utf8, None)),
        ),
        ("SORT RETURN (COUNT) (CC) UTF-8 ALL", Err("A list in parentheses is missing")),
        ("SORT () UTF-8 ALL", Err("An atom is missing or invalid")),
        ("SORT (REVERSE Reverse REVERSE TO) UTF-8 ALL", sort(&[(SortKey::To, true)], search(false, utf8, None))),
        ("SORT (REVERSE) UTF-8 ALL", Err("Unknown sort criterion")),
        ("SORT (DISPLAYFROM) UTF-8 ALL", Err("Unknown sort criterion")),
        ("SORT (CC) UTF-8", Err(MISSING)),
        ("THREAD references utf-8 ALL", thread(search(false, utf8, None))),
        ("UID THREAD REFERENCES UTF-8 ALL", thread(search(true, utf8, None))),
        ("THREAD REFERENCES", Err(MISSING)),
    ]);
}
