//! The commands of IMAP as values. The parser creates them.
//!
//! Names of mailboxes are decoded: they are Unicode, whatever encoding the client used. `INBOX` in any case of letters is
//! `INBOX`.

use std::num::NonZeroU32;

use bytes::Bytes;
use jiff::Timestamp;
use jiff::civil::Date;

use crate::Secret;

/// A command of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The tag, which the completion of the command repeats.
    pub tag: String,
    /// The command.
    pub command: Command,
}

/// A command without its tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// CAPABILITY.
    Capability,
    /// NOOP.
    Noop,
    /// LOGOUT.
    Logout,
    /// ID (RFC 2971), with or without parameters. They are not used.
    Id,
    /// STARTTLS.
    StartTls,
    /// AUTHENTICATE.
    Authenticate {
        /// The name of the mechanism, in upper case.
        mechanism: String,
        /// The initial response of RFC 4959, still in base64. `=` stands for an empty one.
        initial_response: Option<Secret>,
    },
    /// LOGIN.
    Login {
        /// The user name. Bytes that are not UTF-8 are replaced.
        user: String,
        /// The password.
        password: Secret,
    },
    /// ENABLE (RFC 5161), with the names of the extensions in upper case.
    Enable(Vec<String>),
    /// SELECT or EXAMINE.
    Select {
        /// The mailbox.
        mailbox: String,
        /// Whether the command is EXAMINE.
        is_read_only: bool,
        /// Whether the parameter CONDSTORE is present.
        condstore: bool,
    },
    /// CREATE, with the attribute of `USE` (RFC 6154), which is not used.
    Create(String),
    /// DELETE.
    Delete(String),
    /// RENAME.
    Rename {
        /// The mailbox.
        from: String,
        /// Its new name.
        to: String,
    },
    /// SUBSCRIBE.
    Subscribe(String),
    /// UNSUBSCRIBE.
    Unsubscribe(String),
    /// LIST.
    List(ListRequest),
    /// LSUB.
    Lsub {
        /// The reference name.
        reference: String,
        /// The pattern.
        pattern: String,
    },
    /// NAMESPACE.
    Namespace,
    /// STATUS.
    Status {
        /// The mailbox.
        mailbox: String,
        /// The requested values.
        items: Vec<StatusItem>,
    },
    /// APPEND of one message.
    Append(Append),
    /// IDLE.
    Idle,
    /// CHECK.
    Check,
    /// CLOSE.
    Close,
    /// UNSELECT.
    Unselect,
    /// EXPUNGE, or UID EXPUNGE with a set.
    Expunge(Option<SequenceSet>),
    /// SEARCH or UID SEARCH.
    Search(Search),
    /// SORT or UID SORT (RFC 5256).
    Sort {
        /// The order, at least one criterion.
        criteria: Vec<SortCriterion>,
        /// The messages.
        search: Search,
    },
    /// THREAD or UID THREAD (RFC 5256).
    Thread {
        /// The algorithm, in upper case.
        algorithm: String,
        /// The messages.
        search: Search,
    },
    /// FETCH or UID FETCH.
    Fetch {
        /// The messages.
        set: SequenceSet,
        /// Whether the numbers are UIDs.
        is_uid: bool,
        /// The requested values. Macros are expanded.
        items: Vec<FetchItem>,
        /// Only messages with a higher MODSEQ (RFC 7162).
        changed_since: Option<u64>,
    },
    /// STORE or UID STORE.
    Store {
        /// The messages.
        set: SequenceSet,
        /// Whether the numbers are UIDs.
        is_uid: bool,
        /// What is done with the flags.
        operation: StoreOperation,
        /// Whether the new flags are not reported (`.SILENT`).
        is_silent: bool,
        /// The flags.
        flags: Vec<Flag>,
        /// Only messages whose MODSEQ is not higher (RFC 7162).
        unchanged_since: Option<u64>,
    },
    /// COPY or UID COPY, MOVE or UID MOVE.
    Copy {
        /// The messages.
        set: SequenceSet,
        /// Whether the numbers are UIDs.
        is_uid: bool,
        /// The mailbox that gets the copies.
        mailbox: String,
        /// Whether the messages are removed from the selected mailbox (RFC 6851).
        is_move: bool,
    },
    /// GETQUOTA (RFC 9208), with the name of the quota root, which is that of its mailbox.
    GetQuota(String),
    /// GETQUOTAROOT, with the name of the mailbox.
    GetQuotaRoot(String),
}

/// The message of APPEND.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    /// The mailbox.
    pub mailbox: String,
    /// The flags.
    pub flags: Vec<Flag>,
    /// The time of receipt.
    pub received: Option<Timestamp>,
    /// The message.
    pub message: Bytes,
}

/// The arguments of LIST.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListRequest {
    /// The reference name.
    pub reference: String,
    /// The patterns, at least one.
    pub patterns: Vec<String>,
    /// The selection options (RFC 5258).
    pub select: Vec<ListSelection>,
    /// The return options. Empty for plain LIST.
    pub returns: Vec<ListReturn>,
    /// Whether the client used a form of RFC 5258: a selection, several patterns or RETURN.
    pub is_extended: bool,
}

/// A selection option of LIST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListSelection {
    /// SUBSCRIBED.
    Subscribed,
    /// REMOTE. All mailboxes are local, so it selects the same.
    Remote,
    /// RECURSIVEMATCH.
    RecursiveMatch,
    /// SPECIAL-USE (RFC 6154).
    SpecialUse,
}

/// A return option of LIST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListReturn {
    /// SUBSCRIBED.
    Subscribed,
    /// CHILDREN.
    Children,
    /// SPECIAL-USE.
    SpecialUse,
    /// STATUS (RFC 5819), with the requested values.
    Status(Vec<StatusItem>),
}

/// A value of STATUS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusItem {
    /// MESSAGES.
    Messages,
    /// RECENT.
    Recent,
    /// UIDNEXT.
    UidNext,
    /// UIDVALIDITY.
    UidValidity,
    /// UNSEEN.
    Unseen,
    /// DELETED (RFC 9051).
    Deleted,
    /// SIZE (RFC 8438).
    Size,
    /// HIGHESTMODSEQ (RFC 7162).
    HighestModSeq,
    /// APPENDLIMIT (RFC 7889).
    AppendLimit,
    /// MAILBOXID (RFC 8474).
    MailboxId,
}

/// A set of sequence numbers or UIDs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SequenceSet {
    /// The ranges as sent, in which both ends are included and the first may be the greater one.
    Ranges(Vec<(SetNumber, SetNumber)>),
    /// `$`: the result of the last SEARCH with SAVE (RFC 5182).
    Saved,
}

/// A number in a [`SequenceSet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetNumber {
    /// A number.
    Number(NonZeroU32),
    /// `*`: the greatest number in use.
    Last,
}

/// A flag or keyword of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flag {
    /// `\Seen`.
    Seen,
    /// `\Answered`.
    Answered,
    /// `\Flagged`.
    Flagged,
    /// `\Deleted`.
    Deleted,
    /// `\Draft`.
    Draft,
    /// `\Recent` and unknown names that start with a backslash. They cannot be changed and are ignored.
    System,
    /// A keyword, as sent.
    Keyword(String),
}

/// What STORE does with the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreOperation {
    /// `FLAGS`: they replace the flags.
    Replace,
    /// `+FLAGS`: they are added.
    Add,
    /// `-FLAGS`: they are removed.
    Remove,
}

/// A value of FETCH.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchItem {
    /// UID.
    Uid,
    /// FLAGS.
    Flags,
    /// INTERNALDATE.
    InternalDate,
    /// RFC822.SIZE.
    Size,
    /// ENVELOPE.
    Envelope,
    /// BODY without a section, or BODYSTRUCTURE.
    Structure {
        /// Whether the extension data is included: BODYSTRUCTURE.
        is_extended: bool,
    },
    /// `BODY[...]`, `BODY.PEEK[...]`, and the old names RFC822, RFC822.HEADER and RFC822.TEXT.
    Body {
        /// The name of the reply.
        name: BodyName,
        /// The section.
        section: Section,
        /// The first octet and the maximum number of octets.
        partial: Option<(u32, NonZeroU32)>,
        /// Whether `\Seen` is not set.
        is_peek: bool,
    },
    /// `BINARY[...]` and `BINARY.PEEK[...]` (RFC 3516): the decoded content of a part.
    Binary {
        /// The numbers of the part. Empty for the message.
        part: Vec<NonZeroU32>,
        /// The first octet and the maximum number of octets.
        partial: Option<(u32, NonZeroU32)>,
        /// Whether `\Seen` is not set.
        is_peek: bool,
    },
    /// `BINARY.SIZE[...]`: the size of the decoded content of a part.
    BinarySize(Vec<NonZeroU32>),
    /// MODSEQ (RFC 7162).
    ModSeq,
    /// EMAILID (RFC 8474).
    EmailId,
    /// THREADID (RFC 8474).
    ThreadId,
    /// PREVIEW (RFC 8970).
    Preview,
}

/// The name of a section in a reply to FETCH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyName {
    /// `BODY[...]`.
    Body,
    /// `RFC822`.
    Rfc822,
    /// `RFC822.HEADER`.
    Rfc822Header,
    /// `RFC822.TEXT`.
    Rfc822Text,
}

/// A section of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// The numbers of the part. Empty for the message.
    pub part: Vec<NonZeroU32>,
    /// What of the part.
    pub text: SectionText,
}

/// What a [`Section`] contains of its part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SectionText {
    /// Everything: the message, or the content of the part.
    #[default]
    All,
    /// HEADER: the header of the message, or of the message in the part.
    Header,
    /// HEADER.FIELDS, with the names as sent.
    HeaderFields(Vec<String>),
    /// HEADER.FIELDS.NOT.
    HeaderFieldsNot(Vec<String>),
    /// TEXT: the body of the message, or of the message in the part.
    Text,
    /// MIME: the header of the part.
    Mime,
}

/// The arguments of SEARCH.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// Whether the results are UIDs.
    pub is_uid: bool,
    /// The charset, in upper case. Texts are UTF-8 if it is missing.
    pub charset: Option<String>,
    /// The messages. Texts are not decoded from the charset.
    pub key: SearchKey,
    /// The result options of ESEARCH (RFC 4731). `None` for the old form of the reply.
    pub returns: Option<Vec<SearchReturn>>,
}

/// A result option of SEARCH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchReturn {
    /// MIN.
    Min,
    /// MAX.
    Max,
    /// ALL.
    All,
    /// COUNT.
    Count,
    /// SAVE (RFC 5182).
    Save,
}

/// A search key. The system flags are [`SearchKey::Flag`]: `UNSEEN` is `Not(Flag(Seen))`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchKey {
    /// ALL.
    All,
    /// All of them.
    And(Vec<SearchKey>),
    /// OR.
    Or(Box<SearchKey>, Box<SearchKey>),
    /// NOT.
    Not(Box<SearchKey>),
    /// Sequence numbers.
    Sequence(SequenceSet),
    /// UID.
    Uid(SequenceSet),
    /// Messages with this flag or keyword.
    Flag(Flag),
    /// RECENT, and NEW without UNSEEN.
    Recent,
    /// HEADER, and FROM, TO, CC, BCC and SUBJECT. The text is empty if the field only has to exist.
    Header {
        /// The name of the field, as sent or in canonical form.
        field: String,
        /// The text.
        text: Vec<u8>,
    },
    /// BODY.
    Body(Vec<u8>),
    /// TEXT.
    Text(Vec<u8>),
    /// BEFORE: received before this day.
    Before(Date),
    /// ON.
    On(Date),
    /// SINCE.
    Since(Date),
    /// SENTBEFORE: the Date field is before this day.
    SentBefore(Date),
    /// SENTON.
    SentOn(Date),
    /// SENTSINCE.
    SentSince(Date),
    /// LARGER.
    Larger(u64),
    /// SMALLER.
    Smaller(u64),
    /// OLDER (RFC 5032): received at least so many seconds ago.
    Older(NonZeroU32),
    /// YOUNGER.
    Younger(NonZeroU32),
    /// MODSEQ (RFC 7162), without its optional names.
    ModSeq(u64),
    /// EMAILID (RFC 8474).
    EmailId(String),
    /// THREADID.
    ThreadId(String),
}

/// A criterion of SORT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortCriterion {
    /// The value that is compared.
    pub key: SortKey,
    /// Whether the order is descending.
    pub is_reverse: bool,
}

/// A value by which SORT compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortKey {
    /// ARRIVAL.
    Arrival,
    /// CC.
    Cc,
    /// DATE.
    Date,
    /// FROM.
    From,
    /// SIZE.
    Size,
    /// SUBJECT.
    Subject,
    /// TO.
    To,
}
