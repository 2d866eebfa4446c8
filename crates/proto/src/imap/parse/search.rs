//! Parses SEARCH, SORT and THREAD.

use super::super::command::{Command, Flag, Search, SearchKey, SearchReturn, SortCriterion, SortKey};
use super::tokens::{Parsed, Parser};

/// The maximum depth of NOT, OR and parentheses.
const MAX_DEPTH: usize = 20;
/// The maximum number of search keys.
const MAX_KEYS: usize = 1_000;
/// The maximum number of sort criteria.
const MAX_CRITERIA: usize = 20;

impl Parser<'_> {
    pub(super) fn search(&mut self, is_uid: bool) -> Parsed<Search> {
        let returns = self.returns()?;
        let mut charset = None;
        if self.take_text("CHARSET ") {
            charset = Some(self.charset()?);
            self.space()?;
        }
        Ok(Search { is_uid, charset, key: self.keys(0)?, returns })
    }

    pub(super) fn sort(&mut self, is_uid: bool) -> Parsed<Command> {
        let criteria = self.list(Self::criterion)?;
        if criteria.len() > MAX_CRITERIA {
            return Err("Too many sort criteria");
        }
        self.space()?;
        Ok(Command::Sort { criteria, search: self.charset_and_keys(is_uid)? })
    }

    pub(super) fn thread(&mut self, is_uid: bool) -> Parsed<Command> {
        let algorithm = self.word()?;
        self.space()?;
        Ok(Command::Thread { algorithm, search: self.charset_and_keys(is_uid)? })
    }

    fn charset_and_keys(&mut self, is_uid: bool) -> Parsed<Search> {
        let charset = Some(self.charset()?);
        self.space()?;
        Ok(Search { is_uid, charset, key: self.keys(0)?, returns: None })
    }

    fn charset(&mut self) -> Parsed<String> {
        let charset = self.text()?;
        if charset.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') {
            Ok(charset.to_ascii_uppercase())
        } else {
            Err("Invalid charset")
        }
    }

    /// Parses RETURN and its options, if it is there.
    fn returns(&mut self) -> Parsed<Option<Vec<SearchReturn>>> {
        if !self.take_text("RETURN ") {
            return Ok(None);
        }
        let mut returns = Vec::new();
        if !self.take_text("()") {
            self.list(|parser| {
                let option = match parser.word()?.as_str() {
                    "MIN" => SearchReturn::Min,
                    "MAX" => SearchReturn::Max,
                    "ALL" => SearchReturn::All,
                    "COUNT" => SearchReturn::Count,
                    "SAVE" => SearchReturn::Save,
                    _ => return Err("Unknown result option"),
                };
                if !returns.contains(&option) {
                    returns.push(option);
                }
                Ok(())
            })?;
        }
        self.space()?;
        Ok(Some(returns))
    }

    fn criterion(&mut self) -> Parsed<SortCriterion> {
        let is_reverse = self.take_text("REVERSE ");
        // Other servers accept repetitions, and the tests of a client send them.
        while self.take_text("REVERSE ") {}
        let key = match self.word()?.as_str() {
            "ARRIVAL" => SortKey::Arrival,
            "CC" => SortKey::Cc,
            "DATE" => SortKey::Date,
            "FROM" => SortKey::From,
            "SIZE" => SortKey::Size,
            "SUBJECT" => SortKey::Subject,
            "TO" => SortKey::To,
            _ => return Err("Unknown sort criterion"),
        };
        Ok(SortCriterion { key, is_reverse })
    }

    /// Parses keys that are separated by spaces.
    fn keys(&mut self, depth: usize) -> Parsed<SearchKey> {
        let first = self.key(depth)?;
        if !self.take_separator() {
            return Ok(first);
        }
        let mut keys = vec![first];
        loop {
            keys.push(self.key(depth)?);
            if !self.take_separator() {
                return Ok(SearchKey::And(keys));
            }
        }
    }

    fn key(&mut self, depth: usize) -> Parsed<SearchKey> {
        self.search_keys += 1;
        if self.search_keys > MAX_KEYS {
            return Err("Too many search keys");
        }
        if depth > MAX_DEPTH {
            return Err("Too many nested search keys");
        }
        match self.peek() {
            Some(b'(') => {
                self.open()?;
                let keys = self.keys(depth + 1)?;
                self.close()?;
                Ok(keys)
            }
            Some(b'0'..=b'9' | b'*' | b'$') => self.sequence_set().map(SearchKey::Sequence),
            _ => {
                let name = self.word().map_err(|_| "A search key is missing or invalid")?;
                match simple_key(&name) {
                    Some(key) => Ok(key),
                    None => self.key_with_arguments(&name, depth),
                }
            }
        }
    }

    fn key_with_arguments(&mut self, name: &str, depth: usize) -> Parsed<SearchKey> {
        let separator = self.space();
        let key = match name {
            "NOT" => self.key(depth + 1).map(negated),
            "OR" => self.or(depth + 1),
            "KEYWORD" => self.keyword(),
            "UNKEYWORD" => self.keyword().map(negated),
            "UID" => self.sequence_set().map(SearchKey::Uid),
            "FROM" => self.field("From"),
            "TO" => self.field("To"),
            "CC" => self.field("Cc"),
            "BCC" => self.field("Bcc"),
            "SUBJECT" => self.field("Subject"),
            "HEADER" => self.header(),
            "BODY" => self.search_text().map(SearchKey::Body),
            "TEXT" => self.search_text().map(SearchKey::Text),
            "BEFORE" => self.date().map(SearchKey::Before),
            "ON" => self.date().map(SearchKey::On),
            "SINCE" => self.date().map(SearchKey::Since),
            "SENTBEFORE" => self.date().map(SearchKey::SentBefore),
            "SENTON" => self.date().map(SearchKey::SentOn),
            "SENTSINCE" => self.date().map(SearchKey::SentSince),
            "LARGER" => self.number().map(SearchKey::Larger),
            "SMALLER" => self.number().map(SearchKey::Smaller),
            "OLDER" => self.nonzero().map(SearchKey::Older),
            "YOUNGER" => self.nonzero().map(SearchKey::Younger),
            "MODSEQ" => self.mod_seq(),
            "EMAILID" => self.text().map(SearchKey::EmailId),
            "THREADID" => self.text().map(SearchKey::ThreadId),
            _ => return Err("Unknown search key"),
        };
        separator.and(key)
    }

    fn or(&mut self, depth: usize) -> Parsed<SearchKey> {
        let first = self.key(depth)?;
        self.space()?;
        Ok(SearchKey::Or(Box::new(first), Box::new(self.key(depth)?)))
    }

    /// Parses the argument of KEYWORD. It is never a system flag.
    fn keyword(&mut self) -> Parsed<SearchKey> {
        Ok(SearchKey::Flag(Flag::Keyword(self.atom()?.to_owned())))
    }

    fn field(&mut self, name: &str) -> Parsed<SearchKey> {
        Ok(SearchKey::Header { field: name.to_owned(), text: self.search_text()? })
    }

    fn header(&mut self) -> Parsed<SearchKey> {
        let field = self.text()?;
        self.space()?;
        Ok(SearchKey::Header { field, text: self.search_text()? })
    }

    fn search_text(&mut self) -> Parsed<Vec<u8>> {
        self.astring().map(std::borrow::Cow::into_owned)
    }

    /// Parses the arguments of MODSEQ. The name and the type of an entry are ignored (RFC 7162 section 3.1.5).
    fn mod_seq(&mut self) -> Parsed<SearchKey> {
        if self.peek() == Some(b'"') {
            self.string()?;
            self.space()?;
            if !matches!(self.word()?.as_str(), "PRIV" | "SHARED" | "ALL") {
                return Err("Unknown type of an entry");
            }
            self.space()?;
        }
        self.number().map(SearchKey::ModSeq)
    }
}

fn negated(key: SearchKey) -> SearchKey {
    SearchKey::Not(Box::new(key))
}

/// Returns the key with this name, if it has no arguments.
fn simple_key(name: &str) -> Option<SearchKey> {
    Some(match name {
        "ALL" => SearchKey::All,
        "ANSWERED" => SearchKey::Flag(Flag::Answered),
        "DELETED" => SearchKey::Flag(Flag::Deleted),
        "DRAFT" => SearchKey::Flag(Flag::Draft),
        "FLAGGED" => SearchKey::Flag(Flag::Flagged),
        "SEEN" => SearchKey::Flag(Flag::Seen),
        "UNANSWERED" => negated(SearchKey::Flag(Flag::Answered)),
        "UNDELETED" => negated(SearchKey::Flag(Flag::Deleted)),
        "UNDRAFT" => negated(SearchKey::Flag(Flag::Draft)),
        "UNFLAGGED" => negated(SearchKey::Flag(Flag::Flagged)),
        "UNSEEN" => negated(SearchKey::Flag(Flag::Seen)),
        "RECENT" => SearchKey::Recent,
        "OLD" => negated(SearchKey::Recent),
        "NEW" => SearchKey::And(vec![SearchKey::Recent, negated(SearchKey::Flag(Flag::Seen))]),
        _ => return None,
    })
}
