//! Parses a complete command. The error says what is wrong with it, for a reply BAD. Whether a command is allowed in a
//! state is up to the session.

#[cfg(test)]
mod codec_tests;
mod fetch;
mod list;
#[cfg(test)]
mod random_tests;
mod search;
#[cfg(test)]
mod tests;
mod tokens;

use crate::Secret;

use super::command::{Append, Command, Request, StatusItem, StoreOperation};
use super::reader::{CommandText, split_tag};
use super::utf7;
use tokens::{Parsed, Parser};

#[cfg(test)]
pub(super) use tests::sequence_set;

/// The maximum number of parameters of ID (RFC 2971 section 3.3).
const MAX_ID_PARAMETERS: usize = 30;

/// The maximum number of items of STATUS. There are fewer different ones.
const MAX_STATUS_ITEMS: usize = 20;

/// The reason why a command is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ParseError {
    /// The tag, if it is valid.
    pub(super) tag: Option<String>,
    /// What is wrong, as a short text for a reply.
    pub(super) reason: &'static str,
}

/// Parses a command. Names of mailboxes are UTF-8 if `is_utf8`, and otherwise modified UTF-7 or UTF-8.
pub(super) fn parse(command: &CommandText, is_utf8: bool) -> Result<Request, ParseError> {
    let Some((tag, rest)) = split_tag(&command.text) else {
        return Err(ParseError { tag: None, reason: "A command starts with a tag, a space and its name" });
    };
    let mut parser = Parser::new(command, command.text.len() - rest.len(), is_utf8);
    match parser.command().and_then(|command| parser.end().map(|()| command)) {
        Ok(command) => Ok(Request { tag: tag.to_owned(), command }),
        Err(reason) => Err(ParseError { tag: Some(tag.to_owned()), reason }),
    }
}

/// Decodes the name of a mailbox, or a pattern of names. `INBOX` as the first component is in upper case.
fn mailbox_name(name: &[u8], is_utf8: bool) -> Parsed<String> {
    let name = std::str::from_utf8(name).map_err(|_| "The name of the mailbox is not UTF-8")?;
    let decoded = if is_utf8 || !name.is_ascii() { None } else { utf7::decode(name) };
    let mut name = decoded.unwrap_or_else(|| name.to_owned());
    if name.contains(|c: char| c.is_control()) {
        return Err("The name of the mailbox contains a control character");
    }
    let first = name.split_once('/').map_or(name.len(), |(first, _)| first.len());
    if name[..first].eq_ignore_ascii_case("INBOX") {
        name.replace_range(..first, "INBOX");
    }
    Ok(name)
}

impl Parser<'_> {
    fn command(&mut self) -> Parsed<Command> {
        self.space()?;
        let word = self.word().map_err(|_| "The name of the command is missing or invalid")?;
        Ok(match word.as_str() {
            "CAPABILITY" => Command::Capability,
            "NOOP" => Command::Noop,
            "LOGOUT" => Command::Logout,
            "STARTTLS" => Command::StartTls,
            "NAMESPACE" => Command::Namespace,
            "IDLE" => Command::Idle,
            "CHECK" => Command::Check,
            "CLOSE" => Command::Close,
            "UNSELECT" => Command::Unselect,
            "EXPUNGE" => Command::Expunge(None),
            "UID" => return self.uid_command(),
            word => return self.command_with_arguments(word, false),
        })
    }

    fn uid_command(&mut self) -> Parsed<Command> {
        const UNKNOWN: &str = "Unknown UID command";
        self.space()?;
        let word = self.word().map_err(|_| UNKNOWN)?;
        match word.as_str() {
            "EXPUNGE" => {
                self.space()?;
                self.sequence_set().map(Some).map(Command::Expunge)
            }
            "FETCH" | "STORE" | "COPY" | "MOVE" | "SEARCH" | "SORT" | "THREAD" => {
                self.command_with_arguments(&word, true)
            }
            _ => Err(UNKNOWN),
        }
    }

    fn command_with_arguments(&mut self, command: &str, is_uid: bool) -> Parsed<Command> {
        let separator = self.space();
        let command = match command {
            "ID" => self.id(),
            "AUTHENTICATE" => self.authenticate(),
            "LOGIN" => self.login(),
            "ENABLE" => self.enable(),
            "SELECT" => self.select(false),
            "EXAMINE" => self.select(true),
            "CREATE" => self.create(),
            "DELETE" => self.mailbox().map(Command::Delete),
            "RENAME" => self.rename(),
            "SUBSCRIBE" => self.mailbox().map(Command::Subscribe),
            "UNSUBSCRIBE" => self.mailbox().map(Command::Unsubscribe),
            "LIST" => self.list_request().map(Command::List),
            "LSUB" => self.lsub(),
            "STATUS" => self.status(),
            "APPEND" => self.append().map(Command::Append),
            "GETQUOTA" => self.mailbox().map(Command::GetQuota),
            "GETQUOTAROOT" => self.mailbox().map(Command::GetQuotaRoot),
            "SEARCH" => self.search(is_uid).map(Command::Search),
            "SORT" => self.sort(is_uid),
            "THREAD" => self.thread(is_uid),
            "FETCH" => self.fetch(is_uid),
            "STORE" => self.store(is_uid),
            "COPY" => self.copy(is_uid, false),
            "MOVE" => self.copy(is_uid, true),
            _ => return Err("Unknown command"),
        };
        separator.and(command)
    }

    /// Parses the arguments of ID. They are checked and ignored.
    fn id(&mut self) -> Parsed<Command> {
        if self.take_text("NIL") || self.take_text("()") {
            return Ok(Command::Id);
        }
        let mut is_name = false;
        let parameters = self.list(|parser| {
            is_name = !is_name;
            if is_name || !parser.take_text("NIL") { parser.string().map(|_| ()) } else { Ok(()) }
        })?;
        match parameters.len() {
            length if length % 2 == 1 => Err("A parameter of ID has no value"),
            length if length / 2 > MAX_ID_PARAMETERS => Err("Too many parameters of ID"),
            _ => Ok(Command::Id),
        }
    }

    fn authenticate(&mut self) -> Parsed<Command> {
        let mechanism = self.word()?;
        let initial_response = if self.take_separator() { Some(Secret::new(self.initial_response()?)) } else { None };
        Ok(Command::Authenticate { mechanism, initial_response })
    }

    fn login(&mut self) -> Parsed<Command> {
        let user = self.text()?;
        self.space()?;
        Ok(Command::Login { user, password: Secret::new(self.text()?) })
    }

    fn enable(&mut self) -> Parsed<Command> {
        let mut extensions = vec![self.word()?];
        while self.take_separator() {
            extensions.push(self.word()?);
        }
        Ok(Command::Enable(extensions))
    }

    fn select(&mut self, is_read_only: bool) -> Parsed<Command> {
        let mailbox = self.mailbox()?;
        let condstore = self.take_text(" (");
        if condstore {
            if !self.take_text("CONDSTORE") {
                return Err("The parameter is not supported");
            }
            self.close()?;
        }
        Ok(Command::Select { mailbox, is_read_only, condstore })
    }

    fn create(&mut self) -> Parsed<Command> {
        let mailbox = self.mailbox()?;
        if self.take_text(" (") {
            if !self.take_text("USE ") {
                return Err("The parameter is not supported");
            }
            self.flags()?;
            self.close()?;
        }
        Ok(Command::Create(mailbox))
    }

    fn rename(&mut self) -> Parsed<Command> {
        let from = self.mailbox()?;
        self.space()?;
        Ok(Command::Rename { from, to: self.mailbox()? })
    }

    fn status(&mut self) -> Parsed<Command> {
        let mailbox = self.mailbox()?;
        self.space()?;
        Ok(Command::Status { mailbox, items: self.status_items()? })
    }

    fn status_items(&mut self) -> Parsed<Vec<StatusItem>> {
        let items = self.list(|parser| {
            Ok(match parser.word()?.as_str() {
                "MESSAGES" => StatusItem::Messages,
                "RECENT" => StatusItem::Recent,
                "UIDNEXT" => StatusItem::UidNext,
                "UIDVALIDITY" => StatusItem::UidValidity,
                "UNSEEN" => StatusItem::Unseen,
                "DELETED" => StatusItem::Deleted,
                "SIZE" => StatusItem::Size,
                "HIGHESTMODSEQ" => StatusItem::HighestModSeq,
                "APPENDLIMIT" => StatusItem::AppendLimit,
                "MAILBOXID" => StatusItem::MailboxId,
                _ => return Err("Unknown item of STATUS"),
            })
        })?;
        if items.len() > MAX_STATUS_ITEMS {
            return Err("Too many items of STATUS");
        }
        Ok(items)
    }

    fn append(&mut self) -> Parsed<Append> {
        let mailbox = self.mailbox()?;
        self.space()?;
        let mut flags = Vec::new();
        if self.peek() == Some(b'(') {
            flags = self.flags()?;
            self.space()?;
        }
        let mut received = None;
        if self.peek() == Some(b'"') {
            received = Some(self.date_time()?);
            self.space()?;
        }
        // RFC 6855 section 4.
        let has_parentheses = self.take_text("UTF8 (");
        let message = self.message()?;
        if has_parentheses {
            self.close()?;
        }
        if self.take_separator() {
            return Err("APPEND takes one message");
        }
        Ok(Append { mailbox, flags, received, message })
    }

    fn store(&mut self, is_uid: bool) -> Parsed<Command> {
        let set = self.sequence_set()?;
        self.space()?;
        let mut unchanged_since = None;
        if self.take(b'(') {
            if !self.take_text("UNCHANGEDSINCE ") {
                return Err("The modifier of STORE is not supported");
            }
            unchanged_since = Some(self.number()?);
            self.close()?;
            self.space()?;
        }
        let operation = if self.take(b'+') {
            StoreOperation::Add
        } else if self.take(b'-') {
            StoreOperation::Remove
        } else {
            StoreOperation::Replace
        };
        let is_silent = match self.item_name()?.as_str() {
            "FLAGS" => false,
            "FLAGS.SILENT" => true,
            _ => return Err("Unknown item of STORE"),
        };
        self.space()?;
        let mut flags = Vec::new();
        if self.peek() == Some(b'(') {
            flags = self.flags()?;
        } else {
            flags.push(self.flag()?);
            while self.take_separator() {
                flags.push(self.flag()?);
            }
        }
        Ok(Command::Store { set, is_uid, operation, is_silent, flags, unchanged_since })
    }

    fn copy(&mut self, is_uid: bool, is_move: bool) -> Parsed<Command> {
        let set = self.sequence_set()?;
        self.space()?;
        Ok(Command::Copy { set, is_uid, mailbox: self.mailbox()?, is_move })
    }
}
