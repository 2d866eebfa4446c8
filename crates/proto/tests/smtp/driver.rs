//! A driver without a socket: it feeds a session, completes its actions from simple lists, and keeps the delivered
//! messages.

use std::sync::Arc;

use restante_mail::address::Address;
use restante_mail::envelope::{Envelope, Recipient, RecipientRefusal, RefusalReason, SenderRefusal};
use restante_mail::naming::Naming;
use restante_proto::Speaker;
use restante_proto::smtp::{Action, LoginRefusal, OptionalCommand, Proof, Protocol, Session, Settings};

/// The lists that decide the results of actions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policy {
    /// User names and passwords. Without any, every login is accepted.
    pub(crate) credentials: Vec<(String, String)>,
    pub(crate) reject_domains: Vec<String>,
    pub(crate) reject_origin_domains: Vec<String>,
    /// The reply codes of simulated failures, by the names of their triggers.
    pub(crate) chaos: Vec<(String, u16)>,
}

impl Policy {
    fn chaos(&self, trigger: &str) -> Option<u16> {
        self.chaos.iter().find(|(name, _)| name == trigger).map(|(_, code)| *code)
    }
}

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
    pub(crate) delivered: Vec<(Envelope, Vec<u8>)>,
    pub(crate) needs: Needs,
    policy: Policy,
    unread: Vec<u8>,
}

pub(crate) fn default_settings() -> Settings {
    Settings {
        domain: "mx.test".to_owned(),
        protocol: Protocol::Smtp,
        listener: None,
        max_message_bytes: 10_240_000,
        max_recipients: 200,
        max_bad_commands: 20,
        starttls: false,
        require_starttls: false,
        require_auth: false,
        cram_md5: true,
        strict: false,
        disabled_commands: Vec::new(),
    }
}

impl Driver {
    /// Creates a session with the settings of a script.
    pub(crate) fn with_settings(settings: &[(String, String)]) -> Self {
        let (mut session, mut policy) = (default_settings(), Policy::default());
        for (name, value) in settings {
            let number = || value.parse().expect("the setting is a number");
            let list = || value.split(',').map(str::to_owned).collect();
            match name.as_str() {
                "smtp.maxmessagebytes" => session.max_message_bytes = number(),
                "smtp.maxrecipients" => session.max_recipients = number(),
                "smtp.maxbadcommands" => session.max_bad_commands = number(),
                "smtp.strict" => session.strict = value == "true",
                "smtp.disabledcommands" => {
                    let command = |name: &str| match name {
                        "HELP" => OptionalCommand::Help,
                        "VRFY" => OptionalCommand::Vrfy,
                        _ => panic!("unknown command {name}"),
                    };
                    session.disabled_commands = value.split(',').map(command).collect();
                }
                "smtp.requireauth" => session.require_auth = value == "true",
                "smtp.requirestarttls" => session.require_starttls = value == "true",
                "smtp.tlsenabled" => session.starttls = value == "true",
                // The certificate has no effect without a socket.
                "smtp.tlscert" => {}
                "lmtp" => session.protocol = if value == "true" { Protocol::Lmtp } else { Protocol::Smtp },
                "smtp.rejectdomains" => policy.reject_domains = list(),
                "smtp.rejectorigindomains" => policy.reject_origin_domains = list(),
                "chaos.triggers" => policy.chaos = value.split(',').filter_map(certain_trigger).collect(),
                "smtp.credentials" => {
                    let pair = |pair: &str| pair.split_once(':').map(|(user, password)| (user.into(), password.into()));
                    policy.credentials = value.split(',').map(|text| pair(text).expect("user:password")).collect();
                }
                _ => panic!("unknown setting {name}"),
            }
        }
        Self::new(session, policy)
    }

    pub(crate) fn new(settings: Settings, policy: Policy) -> Self {
        let mut session = Session::new(Arc::new(settings), None, false);
        session.greet();
        Self { session, delivered: Vec::new(), needs: Needs::Input, policy, unread: Vec::new() }
    }

    /// Passes input to the session and performs its actions, until it needs more.
    pub(crate) fn feed(&mut self, input: &[u8]) {
        self.unread.extend_from_slice(input);
        loop {
            let before = self.unread.len();
            let (consumed, action) = self.session.step(&self.unread);
            assert!(consumed <= before, "consumed {consumed} of {before}");
            self.unread.drain(..consumed);
            match action {
                Action::Read => {
                    assert!(self.unread.len() < 12_288, "{} octets are left unread", self.unread.len());
                    self.needs = Needs::Input;
                    return;
                }
                Action::Write => {}
                Action::StartTls => {
                    assert!(self.unread.is_empty(), "input from before TLS survived");
                    self.needs = Needs::Tls;
                    return;
                }
                Action::Quit | Action::Close => {
                    self.needs = Needs::Close;
                    return;
                }
                Action::CheckSender => {
                    let from = self.session.envelope().expect("a transaction is in progress").from.as_ref();
                    let is_rejected = from.is_some_and(|from| has_domain(from, &self.policy.reject_origin_domains));
                    let refusal = if is_rejected { Some(SenderRefusal::Policy) } else { None };
                    let refusal = self.policy.chaos("Sender").map(SenderRefusal::Chaos).or(refusal);
                    self.session.sender_checked(refusal.map_or(Ok(()), Err));
                }
                Action::CheckRecipient(to) => {
                    let is_rejected = has_domain(&to, &self.policy.reject_domains);
                    let refusal = if is_rejected { Some(RecipientRefusal::Policy) } else { None };
                    let refusal = self.policy.chaos("Recipient").map(RecipientRefusal::Chaos).or(refusal);
                    self.session.recipient_checked(refusal.map_or_else(|| recipient(to), Err));
                }
                Action::CreateChallenge => self.session.challenge_created("<1.2@mx.test>".to_owned()),
                Action::Authenticate { user, proof } => {
                    let known = &self.policy.credentials;
                    let is_known = match proof {
                        Proof::Password(password) | Proof::Bearer(password) => {
                            known.contains(&(user, password.expose().to_owned()))
                        }
                        // Digests are tested in the `mail-server` crate.
                        Proof::CramMd5 { .. } => false,
                    };
                    let is_accepted = known.is_empty() || is_known;
                    let refusal = if is_accepted { None } else { Some(LoginRefusal::WrongCredentials) };
                    let refusal = self.policy.chaos("Authentication").map(LoginRefusal::Chaos).or(refusal);
                    self.session.authenticated(refusal.map_or(Ok(()), Err));
                }
                Action::Deliver { envelope, body } => {
                    assert!(!envelope.recipients.is_empty());
                    assert_eq!(body.capacity(), body.len());
                    self.delivered.push((envelope, body));
                    self.session.delivered(Ok(()));
                }
            }
        }
    }

    /// Returns the transcript lines since the last call, with their side.
    pub(crate) fn take_transcript(&mut self) -> Vec<(Speaker, String)> {
        let transcript = self.session.transcript().expect("a transcript is recorded");
        for line in transcript.lines() {
            let is_error = line.speaker == Speaker::Server && line.text.starts_with(['4', '5']);
            assert_eq!(line.is_refusal, is_error, "{}", line.text);
        }
        let lines = transcript.lines().map(|line| (line.speaker, line.text.to_owned())).collect();
        transcript.clear();
        lines
    }

    /// Returns the replies since the last call.
    pub(crate) fn replies(&mut self) -> String {
        let replies = std::mem::take(self.session.replies());
        String::from_utf8(replies).expect("replies are ASCII")
    }

    /// Returns the reasons of the refusals since the last call.
    pub(crate) fn refusals(&mut self) -> Vec<RefusalReason> {
        self.session.take_refusals().collect()
    }
}

/// Returns the recipient with its mailbox.
pub(crate) fn recipient(to: Address) -> Result<Recipient, RecipientRefusal> {
    Recipient::new(to, Naming::Local).map_err(RecipientRefusal::UnusableName)
}

fn has_domain(address: &Address, domains: &[String]) -> bool {
    domains.iter().any(|domain| domain.eq_ignore_ascii_case(address.domain()))
}

/// Parses `NAME:CODE:PROBABILITY`. Returns `None` for the probability 0. Others than 0 and 100 are not reproducible.
fn certain_trigger(text: &str) -> Option<(String, u16)> {
    let [name, code, probability] = text.split(':').collect::<Vec<_>>()[..] else { panic!("a trigger: {text}") };
    match probability {
        "0" => None,
        "100" => Some((name.to_owned(), code.parse().expect("a reply code"))),
        other => panic!("the probability {other} is not reproducible"),
    }
}
