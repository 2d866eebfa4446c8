//! A driver without a socket: it feeds a session, completes its actions from a list of messages, and deletes from it.

use std::sync::Arc;

use md5::{Digest as _, Md5};
use restante_mail::message::{MessageId, Source};
use restante_mail::naming::Naming;
use restante_proto::Speaker;
use restante_proto::pop3::{Action, Maildrop, Proof, Refusal, Session, Settings};

/// The timestamp in the greeting.
pub(crate) const TIMESTAMP: &str = "<1896.697170952@mx.test>";
/// The header that a delivery adds to a message.
pub(crate) const TRACE: &str =
    "Return-Path: <>\r\nReceived: from client.test ([192.0.2.1]) by mx.test\r\n  for <james>; today\r\n";

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
    /// The mailbox `james`. Every other mailbox is empty.
    pub(crate) messages: Vec<(MessageId, Source)>,
    pub(crate) needs: Needs,
    /// User names and passwords. Without any, every login is accepted.
    pub(crate) credentials: Vec<(String, String)>,
    unread: Vec<u8>,
    replies: Vec<u8>,
    delivered: u64,
}

pub(crate) fn default_settings() -> Settings {
    Settings { domain: "mx.test".to_owned(), stls: false, max_bad_commands: 20 }
}

impl Driver {
    /// Creates a session with the settings of a script.
    pub(crate) fn with_settings(settings: &[(String, String)]) -> Self {
        let (mut session, mut credentials) = (default_settings(), Vec::new());
        for (name, value) in settings {
            match name.as_str() {
                "pop3.maxbadcommands" => session.max_bad_commands = value.parse().expect("the setting is a number"),
                "pop3.tlsenabled" => session.stls = value == "true",
                // The certificate has no effect without a socket.
                "pop3.tlscert" => {}
                "pop3.credentials" => {
                    let pair = |pair: &str| pair.split_once(':').map(|(user, password)| (user.into(), password.into()));
                    credentials = value.split(',').map(|text| pair(text).expect("user:password")).collect();
                }
                _ => panic!("unknown setting {name}"),
            }
        }
        Self { credentials, ..Self::new(session) }
    }

    pub(crate) fn new(settings: Settings) -> Self {
        let mut session = Session::new(Arc::new(settings), TIMESTAMP.to_owned(), false);
        session.greet();
        Self {
            session,
            messages: Vec::new(),
            needs: Needs::Input,
            credentials: Vec::new(),
            unread: Vec::new(),
            replies: Vec::new(),
            delivered: 0,
        }
    }

    /// Adds a message to the mailbox.
    pub(crate) fn deliver(&mut self, body: &[u8]) {
        self.delivered += 1;
        let source = Source { trace: TRACE.as_bytes().into(), body: body.to_vec().into() };
        self.messages.push((MessageId::from(1000 + self.delivered), source));
    }

    /// Deletes the message that was delivered as number `number`.
    pub(crate) fn remove(&mut self, number: u64) {
        self.messages.retain(|(id, _)| *id != MessageId::from(1000 + number));
    }

    /// Passes input to the session and performs its actions, until it needs more.
    pub(crate) fn feed(&mut self, input: &[u8]) {
        self.unread.extend_from_slice(input);
        loop {
            let before = self.unread.len();
            let (consumed, action) = self.session.step(&self.unread);
            assert!(consumed <= before, "consumed {consumed} of {before}");
            self.unread.drain(..consumed);
            assert!(self.session.replies().len() < 80_000, "{} octets of replies", self.session.replies().len());
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
                Action::Open { mailbox, user, proof } => {
                    let result = self.open(&mailbox, &user, &proof);
                    self.session.opened(result);
                }
                Action::Fetch(id) => {
                    let message = self.messages.iter().find(|(other, _)| *other == id);
                    self.session.fetched(Ok(message.map(|(_, source)| source.clone())));
                }
                Action::Delete(ids) => {
                    assert!(!ids.is_empty());
                    self.messages.retain(|(id, _)| !ids.contains(id));
                    self.session.deleted(Ok(()));
                }
            }
        }
    }

    /// Returns the transcript lines since the last call, with their side.
    pub(crate) fn take_transcript(&mut self) -> Vec<(Speaker, String)> {
        let transcript = self.session.transcript().expect("a transcript is recorded");
        for line in transcript.lines() {
            let is_error = line.speaker == Speaker::Server && line.text.starts_with("-ERR");
            assert_eq!(line.is_refusal, is_error, "{}", line.text);
        }
        let lines = transcript.lines().map(|line| (line.speaker, line.text.to_owned())).collect();
        transcript.clear();
        lines
    }

    /// Returns the replies since the last call.
    pub(crate) fn replies(&mut self) -> Vec<u8> {
        self.replies.append(self.session.replies());
        std::mem::take(&mut self.replies)
    }

    fn open(&self, mailbox: &str, user: &str, proof: &Proof) -> Result<Maildrop, Refusal> {
        let matches = |password: &str| match proof {
            Proof::Password(secret) | Proof::Bearer(secret) => secret.expose() == password,
            Proof::Apop { timestamp, digest } => *digest == apop_digest(timestamp, password),
        };
        let known = self.credentials.iter().any(|(name, password)| name == user && matches(password));
        if !known && !self.credentials.is_empty() {
            return Err(Refusal::WrongCredentials);
        }
        let name = Naming::Local.parse_mailbox(mailbox).map_err(|error| Refusal::InvalidName(error.to_string()))?;
        let messages = self.messages.iter().filter(|_| name.as_str() == "james");
        Ok(messages.map(|(id, source)| (*id, source.len() as u64)).collect())
    }
}

/// Returns the digest of RFC 1939 section 7.
pub(crate) fn apop_digest(timestamp: &str, password: &str) -> [u8; 16] {
    Md5::new().chain_update(timestamp).chain_update(password).finalize().into()
}

#[test]
fn apop_digest_matches_the_rfc_example() {
    let digest = u128::from_be_bytes(apop_digest("<1896.697170952@dbc.mtview.ca.us>", "tanstaaf"));
    assert_eq!(format!("{digest:032x}"), "c4c9334bac560ecc979e58001b3e22fb");
}
