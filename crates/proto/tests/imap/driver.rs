//! A driver without a socket: it feeds a session, performs its actions on an in-memory store, and reports the changes of
//! other clients.

use std::sync::Arc;

use restante_proto::imap::{Action, Change, Operation, Outcome, Refusal, Session, Settings};
use restante_proto::sasl::{Credentials, Proof};
use restante_proto::{Speaker, TranscriptScope};

use super::store::Store;

/// What the session needs to continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    Input,
    Tls,
    Close,
}

#[derive(Debug)]
pub(crate) struct Driver {
    pub(crate) session: Session,
    pub(crate) store: Store,
    pub(crate) needs: Needs,
    /// User names and passwords or tokens. Without any, every login is accepted.
    credentials: Vec<(String, String)>,
    /// Whether the session learns of changes only when the next operation is done.
    pub(crate) is_late: bool,
    /// The result of an operation or reservation, and how many come before it.
    pub(crate) refusal: Option<(usize, Refusal)>,
    selected: Option<String>,
    /// Whether the selected mailbox is open to read only.
    is_examined: bool,
    unread: Vec<u8>,
    replies: Vec<u8>,
}

pub(crate) fn default_settings() -> Settings {
    Settings { domain: "mx.test".to_owned(), starttls: false, max_bad_commands: 20, max_message_bytes: 10_240_000 }
}

impl Driver {
    /// Creates a session with the settings of a script.
    pub(crate) fn with_settings(settings: &[(String, String)]) -> Self {
        let (mut session, mut credentials) = (default_settings(), Vec::new());
        for (name, value) in settings {
            let number = || value.parse().expect("the setting is a number");
            match name.as_str() {
                "imap.maxbadcommands" => session.max_bad_commands = number(),
                "smtp.maxmessagebytes" => session.max_message_bytes = number(),
                "imap.tlsenabled" => session.starttls = value == "true",
                // The certificate has no effect without a socket.
                "imap.tlscert" => {}
                "imap.credentials" => {
                    let pair = |pair: &str| pair.split_once(':').map(|(user, password)| (user.into(), password.into()));
                    credentials = value.split(',').map(|text| pair(text).expect("user:password")).collect();
                }
                _ => panic!("unknown setting {name}"),
            }
        }
        Self { credentials, ..Self::new(session) }
    }

    pub(crate) fn new(settings: Settings) -> Self {
        let mut session = Session::new(Arc::new(settings), false);
        session.greet();
        session.start_recording(TranscriptScope::Everything);
        session.set_time("2024-02-01T10:00:00Z".parse().unwrap());
        Self {
            session,
            store: Store::new(),
            needs: Needs::Input,
            credentials: Vec::new(),
            is_late: false,
            refusal: None,
            selected: None,
            is_examined: false,
            unread: Vec::new(),
            replies: Vec::new(),
        }
    }

    /// Passes input to the session and performs its actions, until it needs more.
    pub(crate) fn feed(&mut self, input: &[u8]) {
        self.unread.extend_from_slice(input);
        loop {
            if !self.is_late {
                self.report_changes();
            }
            let before = self.unread.len();
            let (consumed, action) = self.session.step(&self.unread);
            assert!(consumed <= before, "consumed {consumed} of {before}");
            self.unread.drain(..consumed);
            assert!(self.session.replies().len() < 200_000, "{} octets of replies", self.session.replies().len());
            if !self.session.has_selected() {
                self.selected = None;
            }
            match action {
                Action::Read => {
                    assert!(self.unread.len() < 12_288, "{} octets are left unread", self.unread.len());
                    self.needs = Needs::Input;
                    return;
                }
                Action::Write => self.replies.append(self.session.replies()),
                Action::StartTls => {
                    assert!(self.unread.is_empty(), "input from before TLS survived");
                    self.needs = Needs::Tls;
                    return;
                }
                Action::Quit | Action::Close => {
                    self.needs = Needs::Close;
                    return;
                }
                Action::ReserveLiteral(_) => {
                    let is_reserved = self.take_refusal().is_none();
                    self.session.literal_reserved(is_reserved);
                }
                Action::LogIn(credentials) => {
                    let result = self.log_in(&credentials);
                    self.session.logged_in(result);
                }
                Action::Perform(operation) => {
                    let result = self.perform(operation);
                    self.is_late = false;
                    self.report_changes();
                    self.session.completed(result);
                }
            }
        }
    }

    /// Forgets the changes that the session has not got, so that it gets a complete list instead.
    pub(crate) fn miss_changes(&mut self) {
        self.store.changes.clear();
        if let Some(selected) = &self.selected {
            let listing = self.store.listing(selected);
            self.store.changes.push((selected.clone(), Change::Reloaded(listing)));
        }
    }

    /// Returns the transcript lines since the last call, with their side.
    pub(crate) fn take_transcript(&mut self) -> Vec<(Speaker, String)> {
        let transcript = self.session.transcript().expect("a transcript is recorded");
        let lines = transcript.lines().map(|line| (line.speaker, line.text.to_owned())).collect();
        transcript.clear();
        lines
    }

    /// Returns the replies since the last call.
    pub(crate) fn replies(&mut self) -> Vec<u8> {
        self.replies.append(self.session.replies());
        std::mem::take(&mut self.replies)
    }

    fn report_changes(&mut self) {
        let Some(selected) = self.selected.as_ref().filter(|_| self.session.has_selected()) else { return };
        for (mailbox, change) in std::mem::take(&mut self.store.changes) {
            if mailbox == *selected {
                self.session.changed(change);
            }
        }
        if !self.is_examined {
            self.store.listed(selected);
        }
    }

    fn perform(&mut self, operation: Operation) -> Result<Outcome, Refusal> {
        if let Some(refusal) = self.take_refusal() {
            return Err(refusal);
        }
        let Operation::Open { mailbox, is_read_only } = operation else {
            return self.store.perform(self.selected.as_deref(), operation);
        };
        let opened = self.store.open(&mailbox, is_read_only)?;
        (self.selected, self.is_examined) = (Some(mailbox), opened.is_read_only);
        self.store.changes.clear();
        Ok(Outcome::Opened(opened))
    }

    fn take_refusal(&mut self) -> Option<Refusal> {
        if let Some((before, _)) = &mut self.refusal
            && *before > 0
        {
            *before -= 1;
            return None;
        }
        self.refusal.take().map(|(_, refusal)| refusal)
    }

    fn log_in(&self, credentials: &Credentials) -> Result<(), Refusal> {
        let (Proof::Password(secret) | Proof::Bearer(secret)) = &credentials.proof;
        let is_known = |(user, password): &(String, String)| {
            let id = &credentials.authorization_id;
            *user == credentials.user && (id.is_empty() || id == user) && password == secret.expose()
        };
        let is_accepted = self.credentials.is_empty() || self.credentials.iter().any(is_known);
        if is_accepted { Ok(()) } else { Err(Refusal::WrongCredentials) }
    }
}
