//! The commands: which are allowed in which state, and what they start.

use restante_mail::message::Flags;
use restante_mail::tags::Tags;

use crate::Secret;
use crate::line::LineReader;
use crate::sasl::{self, Credentials, Exchange, Mechanism, Proof};

use super::command::{Command, FetchItem, Flag, Request, Search, StatusItem};
use super::fetch::FetchTask;
use super::find::{FindTask, Form};
use super::flags::{Change, StoreTask};
use super::list::ListTask;
use super::mailbox_tasks::{ChangeTask, CreateTask, QuotaTask, SelectTask, StatusTask};
use super::message_tasks::{AppendTask, CopyTask, ExpungeTask};
use super::session::{Session, State, Work};
use super::task::{Completion, Task};
use super::{Action, Operation, reply};

/// The capabilities before and after the login, apart from those of authentication.
const COMMON_CAPABILITIES: &str = "IMAP4rev1 IMAP4rev2 LITERAL+ SASL-IR ID ENABLE";
const CAPABILITIES: &str = "IDLE NAMESPACE UIDPLUS MOVE UNSELECT CHILDREN SPECIAL-USE STATUS=SIZE UTF8=ACCEPT CONDSTORE ESEARCH \
                            SEARCHRES LIST-EXTENDED LIST-STATUS WITHIN SORT THREAD=REFERENCES QUOTA QUOTA=RES-STORAGE \
                            QUOTA=RES-MESSAGE OBJECTID PREVIEW BINARY";

impl Session {
    /// Returns the capabilities in the current state.
    pub(super) fn capabilities(&self) -> String {
        if self.is_logged_in {
            return format!("{COMMON_CAPABILITIES} {CAPABILITIES} APPENDLIMIT={}", self.settings.max_message_bytes);
        }
        let starttls = if self.settings.starttls && !self.is_tls { " STARTTLS" } else { "" };
        format!("{COMMON_CAPABILITIES}{starttls} AUTH=PLAIN AUTH=LOGIN AUTH=XOAUTH2 AUTH=OAUTHBEARER")
    }

    /// Executes a command, or starts its task.
    pub(super) fn dispatch(&mut self, request: Request) -> Option<Action> {
        let Request { tag, command } = request;
        if !matches!(command, Command::Fetch { .. }) {
            self.release_message();
        }
        let completion = match command {
            Command::Capability => {
                let capabilities = self.capabilities();
                self.untagged(format_args!("CAPABILITY {capabilities}"));
                Completion::ok("CAPABILITY completed")
            }
            Command::Noop => Completion::ok("NOOP completed"),
            Command::Id => {
                self.untagged(r#"ID ("name" "Restante")"#);
                Completion::ok("ID completed")
            }
            Command::Logout => {
                self.untagged("BYE Logging out");
                self.selected = None;
                self.complete(&tag, Completion::ok("LOGOUT completed"));
                self.state = State::LoggingOut;
                return None;
            }
            command if self.is_logged_in => return self.dispatch_logged_in(tag, command),
            Command::StartTls => return self.start_tls(&tag),
            Command::Login { user, password } => {
                let (authorization_id, proof) = (String::new(), Proof::Password(password));
                let credentials = Credentials { mechanism: Mechanism::Login, authorization_id, user, proof };
                return Some(self.log_in(tag, credentials, None));
            }
            Command::Authenticate { mechanism, initial_response } => {
                return self.authenticate(tag, &mechanism, initial_response.as_ref());
            }
            _ => Completion::bad(reply::LOGIN_FIRST),
        };
        self.complete(&tag, completion);
        None
    }

    fn dispatch_logged_in(&mut self, tag: String, command: Command) -> Option<Action> {
        let task: Box<dyn Task> = match command {
            Command::StartTls | Command::Login { .. } | Command::Authenticate { .. } => {
                return self.finish(&tag, Completion::bad(reply::LOGIN_TWICE));
            }
            Command::Enable(extensions) => return self.enable(&tag, &extensions),
            Command::Namespace => Box::new(ListTask::namespaces()),
            Command::List(request) => Box::new(ListTask::list(request)),
            Command::Lsub { reference, pattern } => Box::new(ListTask::lsub(&reference, &pattern)),
            Command::Select { mailbox, is_read_only, condstore } => {
                self.enabled.condstore |= condstore;
                // RFC 9051 section 7.1: only a mailbox that is closed by selecting another one is announced.
                if self.selected.is_some() && self.enabled.rev2 {
                    self.untagged("OK [CLOSED] The previous mailbox is closed");
                }
                self.deselect();
                Box::new(SelectTask::new(mailbox, is_read_only))
            }
            Command::Create(name) => Box::new(CreateTask::new(name)),
            Command::Delete(name) => Box::new(ChangeTask::new(Operation::Delete(name), "DELETE completed")),
            Command::Rename { from, to } => {
                Box::new(ChangeTask::new(Operation::Rename { from, to }, "RENAME completed"))
            }
            Command::Subscribe(mailbox) => {
                let operation = Operation::Subscribe { mailbox, is_subscribed: true };
                Box::new(ChangeTask::new(operation, "SUBSCRIBE completed"))
            }
            Command::Unsubscribe(mailbox) => {
                let operation = Operation::Subscribe { mailbox, is_subscribed: false };
                Box::new(ChangeTask::new(operation, "UNSUBSCRIBE completed"))
            }
            Command::Status { mailbox, items } => {
                self.enabled.condstore |= items.contains(&StatusItem::HighestModSeq);
                Box::new(StatusTask::new(mailbox, items))
            }
            Command::Append(append) => match AppendTask::new(append, self.settings.max_message_bytes) {
                Ok(task) => Box::new(task),
                Err(refusal) => return self.finish(&tag, reply::refusal(&refusal)),
            },
            Command::GetQuota(root) if root.is_empty() => {
                return self.finish(&tag, Completion::no("[NONEXISTENT] ", "There is no such quota root"));
            }
            Command::GetQuota(root) => Box::new(QuotaTask::new(root, false)),
            Command::GetQuotaRoot(mailbox) => Box::new(QuotaTask::new(mailbox, true)),
            Command::Idle => {
                self.last_view = None;
                // Some clients expect changes only after the continuation.
                self.queue(false, |out| reply::write_continuation(out, "idling"));
                self.state = State::Idling { tag, lines: LineReader::default() };
                return None;
            }
            command => return self.dispatch_selected(tag, command),
        };
        self.start(tag, true, task)
    }

    fn dispatch_selected(&mut self, tag: String, command: Command) -> Option<Action> {
        // RFC 3501 section 7.4.1.
        let may_renumber = !matches!(
            command,
            Command::Fetch { is_uid: false, .. }
                | Command::Store { is_uid: false, .. }
                | Command::Search(Search { is_uid: false, .. })
                | Command::Sort { search: Search { is_uid: false, .. }, .. }
                | Command::Thread { search: Search { is_uid: false, .. }, .. }
        );
        // A search finds the messages that have arrived since the last command.
        if matches!(command, Command::Search(_) | Command::Sort { .. } | Command::Thread { .. }) {
            self.announce(false);
        }
        match self.task_on_selected(&tag, command) {
            Ok(task) => self.start(tag, may_renumber, task),
            Err(completion) => {
                self.complete_work(&tag, may_renumber, completion);
                None
            }
        }
    }

    /// Returns the task of a command on the selected mailbox, or the reply to a command that is complete.
    fn task_on_selected(&mut self, tag: &str, command: Command) -> Result<Box<dyn Task>, Completion> {
        let Some(selected) = &self.selected else { return Err(Completion::bad(reply::SELECT_FIRST)) };
        let is_changing =
            matches!(command, Command::Expunge(_) | Command::Store { .. } | Command::Copy { is_move: true, .. });
        let is_read_only = selected.is_read_only;
        if is_changing && is_read_only {
            return Err(Completion::no("[READ-ONLY] ", reply::READ_ONLY));
        }
        let numbers = match &command {
            Command::Fetch { set, is_uid: false, .. }
            | Command::Store { set, is_uid: false, .. }
            | Command::Copy { set, is_uid: false, .. } => Some(set),
            _ => None,
        };
        if numbers.is_some_and(|set| selected.exceeds(set)) {
            return Err(Completion::bad(reply::BAD_SEQUENCE));
        }
        match command {
            Command::Check => Err(Completion::ok("CHECK completed")),
            Command::Close if !is_read_only => Ok(Box::new(ExpungeTask::closing(selected))),
            Command::Close | Command::Unselect => {
                self.deselect();
                Err(Completion::ok(if command == Command::Close { "CLOSE completed" } else { "UNSELECT completed" }))
            }
            Command::Expunge(set) => Ok(Box::new(ExpungeTask::new(selected, set.as_ref()))),
            Command::Fetch { set, is_uid, items, changed_since } => {
                self.enabled.condstore |= changed_since.is_some() || items.contains(&FetchItem::ModSeq);
                Ok(Box::new(FetchTask::new(selected, &set, is_uid, items, changed_since)))
            }
            Command::Store { set, is_uid, operation, is_silent, flags, unchanged_since } => {
                self.enabled.condstore |= unchanged_since.is_some();
                let change = Change { operation, marks: marks_of(&flags)?, is_uid, is_silent, unchanged_since };
                Ok(Box::new(StoreTask::new(selected, &set, change)))
            }
            Command::Copy { set, is_uid, mailbox, is_move } => {
                Ok(Box::new(CopyTask::new(selected, &set, is_uid, mailbox, is_move)))
            }
            // RFC 6855 section 3.
            Command::Search(Search { charset: Some(_), .. }) if self.enabled.utf8 => {
                Err(Completion::bad("Texts are UTF-8 after ENABLE UTF8=ACCEPT, so a charset is not allowed"))
            }
            Command::Search(search) => self.find(tag, Form::Search { returns: search.returns.clone() }, &search),
            Command::Sort { criteria, search } => self.find(tag, Form::Sort(criteria), &search),
            Command::Thread { algorithm, search } if algorithm == "REFERENCES" => self.find(tag, Form::Thread, &search),
            Command::Thread { .. } => Err(Completion::bad("Unknown threading algorithm; known is REFERENCES")),
            _ => Err(Completion::bad("Unknown command")),
        }
    }

    fn find(&mut self, tag: &str, form: Form, search: &Search) -> Result<Box<dyn Task>, Completion> {
        let Some(selected) = &mut self.selected else { return Err(Completion::bad(reply::SELECT_FIRST)) };
        let task = FindTask::new(selected, form, search, tag, self.now)?;
        self.enabled.condstore |= task.has_modseq;
        Ok(Box::new(task))
    }

    fn start(&mut self, tag: String, may_renumber: bool, task: Box<dyn Task>) -> Option<Action> {
        self.state = State::Working(Work { tag, task, may_renumber, is_waiting: false, result: None });
        None
    }

    fn finish(&mut self, tag: &str, completion: Completion) -> Option<Action> {
        self.complete(tag, completion);
        None
    }

    /// Closes the selected mailbox.
    fn deselect(&mut self) {
        self.selected = None;
        self.last_view = None;
    }

    fn enable(&mut self, tag: &str, extensions: &[String]) -> Option<Action> {
        let mut enabled = String::new();
        for extension in extensions {
            let is_enabled = match extension.as_str() {
                "CONDSTORE" => &mut self.enabled.condstore,
                "UTF8=ACCEPT" => &mut self.enabled.utf8,
                "IMAP4REV2" => &mut self.enabled.rev2,
                _ => continue,
            };
            if !std::mem::replace(is_enabled, true) {
                enabled.push(' ');
                enabled.push_str(if extension == "IMAP4REV2" { "IMAP4rev2" } else { extension });
            }
        }
        self.untagged(format_args!("ENABLED{enabled}"));
        self.finish(tag, Completion::ok("ENABLE completed"))
    }

    fn start_tls(&mut self, tag: &str) -> Option<Action> {
        if self.is_tls {
            return self.finish(tag, Completion::bad(reply::TLS_TWICE));
        }
        if !self.settings.starttls {
            return self.finish(tag, Completion::no("", reply::TLS_UNAVAILABLE));
        }
        self.complete(tag, Completion::ok("Begin TLS negotiation now"));
        self.state = State::StartingTls;
        None
    }

    fn authenticate(&mut self, tag: String, mechanism: &str, initial: Option<&Secret>) -> Option<Action> {
        let Some(mechanism) = Mechanism::parse(mechanism.as_bytes()) else {
            return self.finish(&tag, Completion::no("[CANNOT] ", reply::AUTH_UNKNOWN));
        };
        let step = Exchange::start(mechanism, initial.map(|text| text.expose().as_bytes()));
        self.after_exchange(tag, step)
    }

    pub(super) fn continue_authentication(&mut self, tag: String, exchange: Exchange, line: &[u8]) -> Option<Action> {
        let step = exchange.line(line);
        self.after_exchange(tag, step)
    }

    fn after_exchange(&mut self, tag: String, step: sasl::Step) -> Option<Action> {
        match step {
            sasl::Step::Challenge(exchange, challenge) => {
                self.queue(false, |out| reply::write_continuation(out, challenge));
                self.state = State::Authenticating { tag, exchange };
                None
            }
            sasl::Step::Credentials(credentials) => {
                let mechanism = credentials.mechanism;
                Some(self.log_in(tag, credentials, Some(mechanism)))
            }
            sasl::Step::Cancelled => self.finish(&tag, Completion::bad(reply::AUTH_CANCELLED)),
            sasl::Step::Malformed => self.finish(&tag, Completion::bad(reply::AUTH_MALFORMED)),
        }
    }

    fn log_in(&mut self, tag: String, credentials: Credentials, mechanism: Option<Mechanism>) -> Action {
        self.state = State::LoggingIn { tag, mechanism };
        Action::LogIn(credentials)
    }
}

/// Returns the flags of a command as the store has them.
pub(super) fn marks_of(flags: &[Flag]) -> Result<super::NewMarks, Completion> {
    let mut marks = super::NewMarks::default();
    let mut tags = Vec::new();
    for flag in flags {
        match flag {
            Flag::Seen => marks.seen = true,
            Flag::System => {}
            Flag::Keyword(keyword) => tags.push(super::keywords::tag_of_keyword(keyword)),
            system => marks.flags = marks.flags.union(flag_of(system)),
        }
    }
    marks.tags =
        Tags::new(tags.iter().map(String::as_str)).map_err(|error| Completion::no("[LIMIT] ", error.to_string()))?;
    Ok(marks)
}

/// Returns a system flag as the store has it. Empty for `\Seen` and keywords.
pub(super) fn flag_of(flag: &Flag) -> Flags {
    match flag {
        Flag::Answered => Flags::ANSWERED,
        Flag::Flagged => Flags::FLAGGED,
        Flag::Deleted => Flags::DELETED,
        Flag::Draft => Flags::DRAFT,
        Flag::Seen | Flag::System | Flag::Keyword(_) => Flags::default(),
    }
}
