//! Comparison with the crate `imap-codec`: every command that it can generate has the same meaning here. Commands of
//! extensions that are not supported are errors.

use std::collections::BTreeSet;

use arbitrary::{Arbitrary, Unstructured};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use imap_codec::CommandCodec;
use imap_codec::encode::Encoder as _;
use imap_codec::imap_types::IntoStatic as _;
use imap_codec::imap_types::command::{
    Command as TheirCommand, CommandBody, FetchModifier, SelectParameter, StoreModifier,
};
use imap_codec::imap_types::core::Charset;
use imap_codec::imap_types::datetime::NaiveDate;
use imap_codec::imap_types::extensions::binary::LiteralOrLiteral8;
use imap_codec::imap_types::extensions::sort::SortKey as TheirSortKey;
use imap_codec::imap_types::fetch::{MacroOrMessageDataItemNames, MessageDataItemName, Part, Section as TheirSection};
use imap_codec::imap_types::flag::{Flag as TheirFlag, StoreResponse, StoreType};
use imap_codec::imap_types::mailbox::{ListMailbox, Mailbox};
use imap_codec::imap_types::search::SearchKey as TheirKey;
use imap_codec::imap_types::sequence::{SeqOrUid, Sequence, SequenceSet as TheirSet};
use imap_codec::imap_types::status::StatusDataItemName;
use jiff::Timestamp;
use jiff::civil::Date;

use super::super::command::{
    BodyName, FetchItem, Flag, ListRequest, Search, SearchKey, Section, SectionText, SequenceSet, SetNumber,
    SortCriterion, SortKey,
};
use super::super::reader::tests::Cut;
use super::tests::parse_input;
use super::*;

/// The number of compared commands.
const COMMANDS: usize = 10_000;

#[test]
fn generated_commands_have_the_same_meaning() {
    let mut random = 1_u64;
    let mut names = BTreeSet::new();
    let mut count = 0;
    while count < COMMANDS {
        let bytes = random_bytes(&mut random);
        let Ok(theirs) = TheirCommand::arbitrary(&mut Unstructured::new(&bytes)) else { continue };
        let theirs = theirs.into_static();
        if theirs.tag.as_ref().len() > 100 {
            continue;
        }
        count += 1;
        let input = CommandCodec::default().encode(&theirs).dump();
        let shown = String::from_utf8_lossy(&input);
        let tag = theirs.tag.as_ref().to_owned();
        let expected = convert(&theirs.body);
        let parsed = parse_input(&input, Cut::Whole, false);
        match (&parsed, expected) {
            (Ok(request), Some(command)) => {
                names.insert(theirs.body.name());
                assert_eq!(*request, Request { tag, command }, "{shown:?}");
            }
            (Err(error), None) => assert_eq!(error.tag, Some(tag), "{shown:?}"),
            (parsed, expected) => panic!("{shown:?}: {parsed:?} instead of {expected:?}"),
        }
        assert_eq!(parse_input(&input, Cut::EveryOctet, false), parsed, "{shown:?}");
    }
    let names: Vec<_> = names.into_iter().collect();
    let expected = "APPEND AUTHENTICATE CAPABILITY CHECK CLOSE COPY CREATE DELETE ENABLE EXAMINE EXPUNGE FETCH GETQUOTA \
                    GETQUOTAROOT ID IDLE LIST LOGIN LOGOUT LSUB MOVE NAMESPACE NOOP RENAME SEARCH SELECT SORT STARTTLS \
                    STATUS STORE SUBSCRIBE THREAD UNSELECT UNSUBSCRIBE";
    assert_eq!(names.join(" "), expected, "every supported command was compared");
}

/// Returns bytes of which a random share is printable, so that more atoms are valid.
fn random_bytes(random: &mut u64) -> Vec<u8> {
    let mut next = || {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u8::try_from(*random >> 56).unwrap()
    };
    let printable = next();
    let length = 16 + usize::from(next());
    (0..length).map(|_| if next() < printable { b'!' + next() % 94 } else { next() }).collect()
}

/// Returns the command as ours. Returns `None` if it is not supported.
fn convert(body: &CommandBody<'_>) -> Option<Command> {
    Some(match body {
        CommandBody::Capability => Command::Capability,
        CommandBody::Noop => Command::Noop,
        CommandBody::Logout => Command::Logout,
        CommandBody::StartTLS => Command::StartTls,
        CommandBody::Authenticate { mechanism, initial_response } => {
            let encoded =
                |response: &[u8]| if response.is_empty() { "=".to_owned() } else { STANDARD.encode(response) };
            Command::Authenticate {
                mechanism: mechanism.to_string().to_uppercase(),
                initial_response: initial_response.as_ref().map(|response| Secret::new(encoded(response.declassify()))),
            }
        }
        CommandBody::Login { username, password } => Command::Login {
            user: lossy(username.as_ref()),
            password: Secret::new(lossy(password.declassify().as_ref())),
        },
        CommandBody::Select { mailbox, parameters } => select(mailbox, false, parameters)?,
        CommandBody::Examine { mailbox, parameters } => select(mailbox, true, parameters)?,
        CommandBody::Unselect => Command::Unselect,
        CommandBody::Create { mailbox } => Command::Create(name(mailbox)?),
        CommandBody::Delete { mailbox } => Command::Delete(name(mailbox)?),
        CommandBody::Rename { from, to } => Command::Rename { from: name(from)?, to: name(to)? },
        CommandBody::Subscribe { mailbox } => Command::Subscribe(name(mailbox)?),
        CommandBody::Unsubscribe { mailbox } => Command::Unsubscribe(name(mailbox)?),
        CommandBody::List { reference, mailbox_wildcard } => Command::List(ListRequest {
            reference: name(reference)?,
            patterns: vec![pattern(mailbox_wildcard)?],
            ..ListRequest::default()
        }),
        CommandBody::Lsub { reference, mailbox_wildcard } => {
            Command::Lsub { reference: name(reference)?, pattern: pattern(mailbox_wildcard)? }
        }
        CommandBody::Status { mailbox, item_names } => {
            let items: Vec<_> = item_names.iter().map(status_item).collect::<Option<_>>()?;
            Command::Status { mailbox: name(mailbox)?, items: non_empty(items)? }
        }
        CommandBody::Append { mailbox, flags, date, message } => Command::Append(Append {
            mailbox: name(mailbox)?,
            flags: flags.iter().map(flag).collect(),
            received: match date {
                Some(date) => Some(Timestamp::from_second(date.as_ref().timestamp()).ok()?),
                None => None,
            },
            message: match message {
                LiteralOrLiteral8::Literal(literal) => literal.as_ref().to_vec().into(),
                LiteralOrLiteral8::Literal8(literal) => literal.data.to_vec().into(),
            },
        }),
        CommandBody::Check => Command::Check,
        CommandBody::Close => Command::Close,
        CommandBody::Expunge => Command::Expunge(None),
        CommandBody::ExpungeUid { sequence_set } => Command::Expunge(Some(set(sequence_set))),
        CommandBody::Search { charset, criteria, uid } => {
            Command::Search(search(charset.as_ref(), criteria.as_ref(), *uid)?)
        }
        CommandBody::Sort { sort_criteria, charset, search_criteria, uid } => Command::Sort {
            criteria: sort_criteria
                .as_ref()
                .iter()
                .map(|criterion| Some(SortCriterion { key: sort_key(&criterion.key)?, is_reverse: criterion.reverse }))
                .collect::<Option<Vec<_>>>()
                .filter(|criteria| criteria.len() <= 20)?,
            search: search(Some(charset), search_criteria.as_ref(), *uid)?,
        },
        CommandBody::Thread { algorithm, charset, search_criteria, uid } => Command::Thread {
            algorithm: algorithm.to_string().to_uppercase(),
            search: search(Some(charset), search_criteria.as_ref(), *uid)?,
        },
        CommandBody::Fetch { sequence_set, macro_or_item_names, uid, modifiers } => Command::Fetch {
            set: set(sequence_set),
            is_uid: *uid,
            items: fetch_items(macro_or_item_names)?,
            changed_since: match modifiers.as_slice() {
                [] => None,
                [FetchModifier::ChangedSince(mod_seq)] => Some(mod_seq.get()),
                _ => return None,
            },
        },
        CommandBody::Store { sequence_set, kind, response, flags, uid, modifiers } => Command::Store {
            set: set(sequence_set),
            is_uid: *uid,
            operation: match kind {
                StoreType::Replace => StoreOperation::Replace,
                StoreType::Add => StoreOperation::Add,
                StoreType::Remove => StoreOperation::Remove,
            },
            is_silent: matches!(response, StoreResponse::Silent),
            flags: flags.iter().map(flag).collect(),
            unchanged_since: match modifiers.as_slice() {
                [] => None,
                [StoreModifier::UnchangedSince(mod_seq)] => Some(*mod_seq),
                _ => return None,
            },
        },
        CommandBody::Copy { sequence_set, mailbox, uid } => {
            Command::Copy { set: set(sequence_set), is_uid: *uid, mailbox: name(mailbox)?, is_move: false }
        }
        CommandBody::Move { sequence_set, mailbox, uid } => {
            Command::Copy { set: set(sequence_set), is_uid: *uid, mailbox: name(mailbox)?, is_move: true }
        }
        CommandBody::Idle => Command::Idle,
        CommandBody::Enable { capabilities } => {
            let upper = |capability: &dyn ToString| capability.to_string().to_uppercase();
            Command::Enable(capabilities.as_ref().iter().map(|capability| upper(capability)).collect())
        }
        CommandBody::GetQuota { root } => Command::GetQuota(mailbox_name(root.as_ref(), false).ok()?),
        CommandBody::GetQuotaRoot { mailbox } => Command::GetQuotaRoot(name(mailbox)?),
        CommandBody::Id { parameters } => {
            (parameters.as_ref().map_or(0, Vec::len) <= MAX_ID_PARAMETERS).then_some(Command::Id)?
        }
        CommandBody::Namespace => Command::Namespace,
        CommandBody::Compress { .. }
        | CommandBody::SetQuota { .. }
        | CommandBody::SetMetadata { .. }
        | CommandBody::GetMetadata { .. } => return None,
    })
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn non_empty<T>(items: Vec<T>) -> Option<Vec<T>> {
    (!items.is_empty()).then_some(items)
}

fn name(mailbox: &Mailbox<'_>) -> Option<String> {
    match mailbox {
        Mailbox::Inbox => Some("INBOX".to_owned()),
        Mailbox::Other(other) => mailbox_name(other.inner().as_ref(), false).ok(),
    }
}

fn pattern(pattern: &ListMailbox<'_>) -> Option<String> {
    match pattern {
        ListMailbox::Token(token) => mailbox_name(token.as_ref(), false).ok(),
        ListMailbox::String(string) => mailbox_name(string.as_ref(), false).ok(),
    }
}

fn select(mailbox: &Mailbox<'_>, is_read_only: bool, parameters: &[SelectParameter]) -> Option<Command> {
    let condstore = match parameters {
        [] => false,
        [SelectParameter::CondStore] => true,
        _ => return None,
    };
    Some(Command::Select { mailbox: name(mailbox)?, is_read_only, condstore })
}

fn status_item(item: &StatusDataItemName) -> Option<StatusItem> {
    Some(match item {
        StatusDataItemName::Messages => StatusItem::Messages,
        StatusDataItemName::Recent => StatusItem::Recent,
        StatusDataItemName::UidNext => StatusItem::UidNext,
        StatusDataItemName::UidValidity => StatusItem::UidValidity,
        StatusDataItemName::Unseen => StatusItem::Unseen,
        StatusDataItemName::Deleted => StatusItem::Deleted,
        StatusDataItemName::DeletedStorage => return None,
        StatusDataItemName::Size => StatusItem::Size,
        StatusDataItemName::HighestModSeq => StatusItem::HighestModSeq,
    })
}

fn flag(flag: &TheirFlag<'_>) -> Flag {
    match flag {
        TheirFlag::Answered => Flag::Answered,
        TheirFlag::Deleted => Flag::Deleted,
        TheirFlag::Draft => Flag::Draft,
        TheirFlag::Flagged => Flag::Flagged,
        TheirFlag::Seen => Flag::Seen,
        TheirFlag::Extension(_) => Flag::System,
        TheirFlag::Keyword(keyword) => Flag::Keyword(keyword.as_ref().to_owned()),
    }
}

fn set(set: &TheirSet) -> SequenceSet {
    let number = |number: &SeqOrUid| match number {
        SeqOrUid::Value(value) => SetNumber::Number(*value),
        SeqOrUid::Asterisk => SetNumber::Last,
    };
    let range = |sequence: &Sequence| match sequence {
        Sequence::Single(single) => (number(single), number(single)),
        Sequence::Range(from, to) => (number(from), number(to)),
    };
    SequenceSet::Ranges(set.0.as_ref().iter().map(range).collect())
}

fn search(charset: Option<&Charset<'_>>, keys: &[TheirKey<'_>], is_uid: bool) -> Option<Search> {
    let charset = match charset {
        Some(charset) => {
            Some(charset.as_ref()).filter(|charset| !charset.contains(char::is_control))?.to_uppercase().into()
        }
        None => None,
    };
    Some(Search { is_uid, charset, key: and(keys), returns: None })
}

fn and(keys: &[TheirKey<'_>]) -> SearchKey {
    match keys {
        [one] => key(one),
        keys => SearchKey::And(keys.iter().map(key).collect()),
    }
}

fn key(theirs: &TheirKey<'_>) -> SearchKey {
    let not = |key| SearchKey::Not(Box::new(key));
    let header = |field: &str, text: &[u8]| SearchKey::Header { field: field.to_owned(), text: text.to_vec() };
    match theirs {
        TheirKey::And(keys) => and(keys.as_ref()),
        TheirKey::SequenceSet(numbers) => SearchKey::Sequence(set(numbers)),
        TheirKey::All => SearchKey::All,
        TheirKey::Answered => SearchKey::Flag(Flag::Answered),
        TheirKey::Bcc(text) => header("Bcc", text.as_ref()),
        TheirKey::Before(day) => SearchKey::Before(date(day)),
        TheirKey::Body(text) => SearchKey::Body(text.as_ref().to_vec()),
        TheirKey::Cc(text) => header("Cc", text.as_ref()),
        TheirKey::Deleted => SearchKey::Flag(Flag::Deleted),
        TheirKey::Draft => SearchKey::Flag(Flag::Draft),
        TheirKey::Flagged => SearchKey::Flag(Flag::Flagged),
        TheirKey::From(text) => header("From", text.as_ref()),
        TheirKey::Header(field, text) => header(&lossy(field.as_ref()), text.as_ref()),
        TheirKey::Keyword(keyword) => SearchKey::Flag(Flag::Keyword(keyword.as_ref().to_owned())),
        TheirKey::Larger(size) => SearchKey::Larger((*size).into()),
        TheirKey::New => SearchKey::And(vec![SearchKey::Recent, not(SearchKey::Flag(Flag::Seen))]),
        TheirKey::Not(inner) => not(key(inner)),
        TheirKey::Old => not(SearchKey::Recent),
        TheirKey::Older(seconds) => SearchKey::Older(*seconds),
        TheirKey::On(day) => SearchKey::On(date(day)),
        TheirKey::Or(first, second) => SearchKey::Or(Box::new(key(first)), Box::new(key(second))),
        TheirKey::Recent => SearchKey::Recent,
        TheirKey::Seen => SearchKey::Flag(Flag::Seen),
        TheirKey::SentBefore(day) => SearchKey::SentBefore(date(day)),
        TheirKey::SentOn(day) => SearchKey::SentOn(date(day)),
        TheirKey::SentSince(day) => SearchKey::SentSince(date(day)),
        TheirKey::Since(day) => SearchKey::Since(date(day)),
        TheirKey::Smaller(size) => SearchKey::Smaller((*size).into()),
        TheirKey::Subject(text) => header("Subject", text.as_ref()),
        TheirKey::Text(text) => SearchKey::Text(text.as_ref().to_vec()),
        TheirKey::To(text) => header("To", text.as_ref()),
        TheirKey::Uid(numbers) => SearchKey::Uid(set(numbers)),
        TheirKey::Unanswered => not(SearchKey::Flag(Flag::Answered)),
        TheirKey::Undeleted => not(SearchKey::Flag(Flag::Deleted)),
        TheirKey::Undraft => not(SearchKey::Flag(Flag::Draft)),
        TheirKey::Unflagged => not(SearchKey::Flag(Flag::Flagged)),
        TheirKey::Unkeyword(keyword) => not(SearchKey::Flag(Flag::Keyword(keyword.as_ref().to_owned()))),
        TheirKey::Unseen => not(SearchKey::Flag(Flag::Seen)),
        TheirKey::Younger(seconds) => SearchKey::Younger(*seconds),
        TheirKey::ModSequence { modseq, .. } => SearchKey::ModSeq(*modseq),
    }
}

/// Converts a day by its text.
fn date(day: &NaiveDate) -> Date {
    day.as_ref().to_string().parse().unwrap()
}

fn sort_key(key: &TheirSortKey) -> Option<SortKey> {
    Some(match key {
        TheirSortKey::Arrival => SortKey::Arrival,
        TheirSortKey::Cc => SortKey::Cc,
        TheirSortKey::Date => SortKey::Date,
        TheirSortKey::From => SortKey::From,
        TheirSortKey::Size => SortKey::Size,
        TheirSortKey::Subject => SortKey::Subject,
        TheirSortKey::To => SortKey::To,
        _ => return None,
    })
}

fn fetch_items(items: &MacroOrMessageDataItemNames<'_>) -> Option<Vec<FetchItem>> {
    match items {
        MacroOrMessageDataItemNames::Macro(name) => name.expand().iter().map(fetch_item).collect(),
        MacroOrMessageDataItemNames::MessageDataItemNames(items) => {
            non_empty(items.iter().map(fetch_item).collect::<Option<_>>()?)
        }
    }
}

fn fetch_item(item: &MessageDataItemName<'_>) -> Option<FetchItem> {
    let old = |name, text, is_peek| FetchItem::Body {
        name,
        section: Section { part: Vec::new(), text },
        partial: None,
        is_peek,
    };
    Some(match item {
        MessageDataItemName::Body => FetchItem::Structure { is_extended: false },
        MessageDataItemName::BodyExt { section: their_section, partial, peek } => FetchItem::Body {
            name: BodyName::Body,
            section: match their_section {
                Some(their_section) => section(their_section)?,
                None => Section::default(),
            },
            partial: *partial,
            is_peek: *peek,
        },
        MessageDataItemName::BodyStructure => FetchItem::Structure { is_extended: true },
        MessageDataItemName::Envelope => FetchItem::Envelope,
        MessageDataItemName::Flags => FetchItem::Flags,
        MessageDataItemName::InternalDate => FetchItem::InternalDate,
        MessageDataItemName::Rfc822 => old(BodyName::Rfc822, SectionText::All, false),
        MessageDataItemName::Rfc822Header => old(BodyName::Rfc822Header, SectionText::Header, true),
        MessageDataItemName::Rfc822Size => FetchItem::Size,
        MessageDataItemName::Rfc822Text => old(BodyName::Rfc822Text, SectionText::Text, false),
        MessageDataItemName::Uid => FetchItem::Uid,
        MessageDataItemName::Binary { section, partial, peek } => {
            FetchItem::Binary { part: section.clone(), partial: *partial, is_peek: *peek }
        }
        MessageDataItemName::BinarySize { section } => FetchItem::BinarySize(section.clone()),
        MessageDataItemName::ModSeq => FetchItem::ModSeq,
    })
}

fn section(section: &TheirSection<'_>) -> Option<Section> {
    let numbers = |part: &Option<Part>| part.as_ref().map(|part| part.0.as_ref().to_vec()).unwrap_or_default();
    let with = |part: &Option<Part>, text| Section { part: numbers(part), text };
    // The names of header fields have a narrower alphabet than strings.
    let is_valid = |name: &String| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
    let fields = |fields: &[_]| {
        fields
            .iter()
            .map(|field: &imap_codec::imap_types::core::AString<'_>| Some(lossy(field.as_ref())).filter(is_valid))
            .collect::<Option<Vec<_>>>()
    };
    Some(match section {
        TheirSection::Part(part) => Section { part: part.0.as_ref().to_vec(), text: SectionText::All },
        TheirSection::Header(part) => with(part, SectionText::Header),
        TheirSection::HeaderFields(part, names) => with(part, SectionText::HeaderFields(fields(names.as_ref())?)),
        TheirSection::HeaderFieldsNot(part, names) => with(part, SectionText::HeaderFieldsNot(fields(names.as_ref())?)),
        TheirSection::Text(part) => with(part, SectionText::Text),
        TheirSection::Mime(part) => Section { part: part.0.as_ref().to_vec(), text: SectionText::Mime },
    })
}
