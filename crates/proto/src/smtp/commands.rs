//! The commands, in each state that accepts commands. Every function consumes the old state and sets a new one. It
//! returns an action if the driver has to do something.

use restante_mail::envelope::{Envelope, Peer};

use crate::transcript::TransactionStage;

use super::auth::{self, AuthStep};
use super::body::BodyBuffer;
use super::chunk::Chunk;
use super::command::{self, MailCommand, Verb};
use super::command_error::CommandError;
use super::data::DataReader;
use super::reply::ErrorReply;
use super::session::Session;
use super::state::{Client, Idle, State, Transaction};
use super::{Action, OptionalCommand, Protocol, Settings, reply};

impl Session {
    /// Executes one command.
    pub(super) fn execute(&mut self, idle: Idle, command: Result<(Verb, &[u8]), CommandError>) -> Option<Action> {
        let (verb, arguments) = match command {
            Ok(command) => command,
            Err(error) => return self.reject_and_stay(idle, &error),
        };
        let command = match verb {
            Verb::Help => Some(OptionalCommand::Help),
            Verb::Vrfy => Some(OptionalCommand::Vrfy),
            _ => None,
        };
        if command.is_some_and(|command| self.settings.disabled_commands.contains(&command)) {
            return self.reject_and_stay(idle, &CommandError::Bad(reply::NOT_IMPLEMENTED));
        }
        if self.requires_starttls()
            && let Verb::Mail | Verb::Rcpt | Verb::Data | Verb::Auth | Verb::Vrfy = verb
        {
            return self.reject_and_stay(idle, &CommandError::Refused(reply::STARTTLS_REQUIRED));
        }
        match verb {
            Verb::Helo | Verb::Ehlo | Verb::Lhlo => self.hello(idle, verb, arguments),
            Verb::Mail => self.mail(idle, arguments),
            Verb::Rcpt => self.rcpt(idle, arguments),
            Verb::Data => self.data(idle, arguments),
            Verb::Bdat => self.bdat(idle, arguments),
            Verb::Auth => self.auth(idle, arguments),
            Verb::StartTls => self.starttls(idle, arguments),
            Verb::Rset => self.rset(idle, arguments),
            Verb::Quit => self.quit(idle, arguments),
            Verb::Vrfy if arguments.is_empty() => self.reject_and_stay(idle, &CommandError::Bad(reply::SYNTAX_VRFY)),
            Verb::Vrfy => self.reply_and_stay(idle, reply::VERIFY),
            Verb::Noop => self.reply_and_stay(idle, reply::OK),
            Verb::Help => self.reply_and_stay(idle, reply::HELP),
            Verb::Expn | Verb::Turn | Verb::Send | Verb::Soml | Verb::Saml => {
                self.reject_and_stay(idle, &CommandError::Bad(reply::NOT_IMPLEMENTED))
            }
        }
    }

    /// Continues an AUTH exchange.
    pub(super) fn continue_auth(&mut self, client: Client, step: Result<AuthStep, CommandError>) -> Option<Action> {
        match step {
            Ok(AuthStep::Continue(exchange, challenge)) => {
                self.state = State::AuthExchange(client, exchange);
                self.reply_with(|out, _| reply::write_challenge(out, challenge));
                None
            }
            Ok(AuthStep::NeedChallenge) => {
                self.state = State::AwaitingChallenge(client);
                Some(Action::CreateChallenge)
            }
            Ok(AuthStep::Complete { user, proof, mechanism }) => {
                self.state = State::CheckingLogin { client, user: user.clone(), mechanism };
                Some(Action::Authenticate { user, proof })
            }
            Ok(AuthStep::Refused(refusal)) => {
                self.state = State::Idle(Idle::Ready(client));
                self.refuse_login(refusal);
                None
            }
            Err(error) => self.reject_and_stay(Idle::Ready(client), &error),
        }
    }

    /// Returns true if the client has to start TLS before a transaction or a login (RFC 3207 section 4).
    fn requires_starttls(&self) -> bool {
        let Settings { starttls, require_starttls, .. } = *self.settings;
        starttls && require_starttls && !self.is_tls
    }

    /// A greeting may come at any time and abandons the current transaction (RFC 5321 section 4.1.4). It does not undo
    /// a login (RFC 4954 section 4: there is no second AUTH in a session).
    fn hello(&mut self, idle: Idle, verb: Verb, arguments: &[u8]) -> Option<Action> {
        match (self.settings.protocol, verb) {
            (Protocol::Smtp, Verb::Lhlo) => return self.reject_and_stay(idle, &CommandError::Bad(reply::SMTP_ONLY)),
            (Protocol::Lmtp, Verb::Helo | Verb::Ehlo) => {
                return self.reject_and_stay(idle, &CommandError::Bad(reply::LMTP_ONLY));
            }
            _ => {}
        }
        let helo = match command::parse_helo_name(arguments, self.settings.strict) {
            Ok(name) => name,
            Err(error) => return self.reject_and_stay(idle, &error),
        };
        let starttls = self.settings.starttls && !self.is_tls;
        if verb == Verb::Helo {
            self.reply_with(|out, settings| reply::write_hello(out, &settings.domain, &helo));
        } else {
            self.reply_with(|out, settings| reply::write_extensions(out, settings, &helo, starttls));
        }
        let login = match idle {
            Idle::BeforeHello => None,
            Idle::Ready(client) => client.login,
            Idle::Mail(transaction) | Idle::Chunked(transaction, _) => {
                self.mark_stage(TransactionStage::Abandoned);
                transaction.envelope.login
            }
        };
        if self.recorder.is_recording() {
            self.helo = Some(helo.clone());
        }
        self.state = State::Idle(Idle::Ready(Client { peer: Peer { ip: self.ip, helo }, login }));
        None
    }

    fn mail(&mut self, idle: Idle, arguments: &[u8]) -> Option<Action> {
        let client = match idle {
            Idle::Ready(client) => client,
            Idle::BeforeHello => return self.reject_and_stay(idle, &CommandError::Bad(reply::HELLO_FIRST)),
            Idle::Mail(_) | Idle::Chunked(..) => {
                return self.reject_and_stay(idle, &CommandError::Bad(reply::MAIL_TWICE));
            }
        };
        if self.settings.require_auth && client.login.is_none() {
            return self.reject_and_stay(Idle::Ready(client), &CommandError::Refused(reply::AUTH_REQUIRED));
        }
        let parsed = match MailCommand::parse(arguments, self.settings.strict) {
            Ok(parsed) => parsed,
            Err(error) => return self.reject_and_stay(Idle::Ready(client), &error),
        };
        // RFC 1870 section 6.1: a message that is announced as too long need not be sent.
        let announced_size = match usize::try_from(parsed.parameters.size) {
            Ok(size) if size <= self.settings.max_message_bytes => size,
            _ => return self.reject_and_stay(Idle::Ready(client), &CommandError::Refused(reply::MESSAGE_TOO_LONG)),
        };
        self.mark_stage(TransactionStage::Started);
        self.record_parameters(parsed.parameter_text);
        self.state = State::CheckingSender(Transaction {
            envelope: Envelope {
                peer: client.peer,
                login: client.login,
                key: None,
                listener: self.settings.listener.clone(),
                from: parsed.from,
                recipients: Vec::new(),
            },
            announced_size,
            alphabet: parsed.parameters.alphabet,
        });
        Some(Action::CheckSender)
    }

    fn rcpt(&mut self, idle: Idle, arguments: &[u8]) -> Option<Action> {
        let transaction = match idle {
            Idle::Mail(transaction) => transaction,
            Idle::BeforeHello => return self.reject_and_stay(idle, &CommandError::Bad(reply::HELLO_FIRST)),
            Idle::Ready(_) => return self.reject_and_stay(idle, &CommandError::Refused(reply::MAIL_FIRST)),
            Idle::Chunked(..) => return self.reject_and_stay(idle, &CommandError::Refused(reply::CHUNKS_STARTED)),
        };
        let (recipient, parameters) = match command::parse_rcpt(arguments, transaction.alphabet, &self.settings) {
            Ok(parsed) => parsed,
            Err(error) => return self.reject_and_stay(Idle::Mail(transaction), &error),
        };
        if transaction.envelope.recipients.len() >= self.settings.max_recipients {
            return self.reject_and_stay(Idle::Mail(transaction), &CommandError::Refused(reply::TOO_MANY_RECIPIENTS));
        }
        self.record_parameters(parameters);
        self.state = State::CheckingRecipient(transaction);
        Some(Action::CheckRecipient(recipient))
    }

    fn data(&mut self, idle: Idle, arguments: &[u8]) -> Option<Action> {
        let transaction = match idle {
            _ if !arguments.is_empty() => return self.reject_and_stay(idle, &CommandError::Bad(reply::NO_ARGUMENT)),
            Idle::Mail(transaction) if !transaction.envelope.recipients.is_empty() => transaction,
            Idle::Mail(_) => return self.reject_and_stay(idle, &CommandError::Refused(reply::RCPT_FIRST)),
            Idle::BeforeHello => return self.reject_and_stay(idle, &CommandError::Bad(reply::HELLO_FIRST)),
            Idle::Ready(_) => return self.reject_and_stay(idle, &CommandError::Refused(reply::MAIL_FIRST)),
            Idle::Chunked(..) => return self.reject_and_stay(idle, &CommandError::Refused(reply::CHUNKS_STARTED)),
        };
        let body = BodyBuffer::new(self.settings.max_message_bytes, transaction.announced_size);
        self.state = State::ReceivingData(transaction, DataReader::new(body));
        self.reply(reply::GO_AHEAD_DATA);
        None
    }

    /// The octets of a chunk follow its command, whatever the reply will be (RFC 3030 section 2).
    fn bdat(&mut self, idle: Idle, arguments: &[u8]) -> Option<Action> {
        let chunk = match Chunk::parse(arguments) {
            Ok(chunk) => chunk,
            Err(error) => {
                // The number of octets that follow is unknown, and none of them may be taken for a command.
                self.reject(&error);
                self.state = State::Closed;
                return None;
            }
        };
        let (transaction, mut body) = match idle {
            Idle::Mail(transaction) if !transaction.envelope.recipients.is_empty() => {
                let body = BodyBuffer::new(self.settings.max_message_bytes, transaction.announced_size);
                (transaction, body)
            }
            Idle::Chunked(transaction, body) => (transaction, body),
            Idle::BeforeHello => return self.discard_chunk(idle, chunk, reply::HELLO_FIRST),
            Idle::Ready(_) => return self.discard_chunk(idle, chunk, reply::MAIL_FIRST),
            Idle::Mail(_) => return self.discard_chunk(idle, chunk, reply::RCPT_FIRST),
        };
        body.expect_bytes(chunk.remaining);
        self.state = State::ReceivingChunk(transaction, body, chunk);
        None
    }

    fn auth(&mut self, idle: Idle, arguments: &[u8]) -> Option<Action> {
        match idle {
            Idle::Ready(client) if client.login.is_none() => {
                self.continue_auth(client, auth::start(arguments, self.settings.cram_md5))
            }
            Idle::Ready(_) => self.reject_and_stay(idle, &CommandError::Bad(reply::AUTH_TWICE)),
            Idle::BeforeHello => self.reject_and_stay(idle, &CommandError::Bad(reply::HELLO_FIRST)),
            Idle::Mail(_) | Idle::Chunked(..) => self.reject_and_stay(idle, &CommandError::Bad(reply::AUTH_IN_MAIL)),
        }
    }

    fn starttls(&mut self, idle: Idle, arguments: &[u8]) -> Option<Action> {
        let error = match (self.is_tls, self.settings.starttls) {
            _ if !arguments.is_empty() => reply::NO_ARGUMENT,
            (true, _) => reply::TLS_TWICE,
            (false, false) => reply::TLS_UNAVAILABLE,
            (false, true) => {
                self.state = State::StartingTls;
                self.reply(reply::GO_AHEAD_TLS);
                if let Idle::Mail(_) | Idle::Chunked(..) = idle {
                    self.mark_stage(TransactionStage::Abandoned);
                }
                return None;
            }
        };
        self.reject_and_stay(idle, &CommandError::Bad(error))
    }

    fn rset(&mut self, idle: Idle, arguments: &[u8]) -> Option<Action> {
        if self.settings.strict && !arguments.is_empty() {
            return self.reject_and_stay(idle, &CommandError::Bad(reply::NO_ARGUMENT));
        }
        let transaction = match idle {
            Idle::Mail(transaction) | Idle::Chunked(transaction, _) => transaction,
            Idle::BeforeHello | Idle::Ready(_) => return self.reply_and_stay(idle, reply::RESET),
        };
        self.reply_and_stay(Idle::Ready(transaction.into_client()), reply::RESET);
        self.mark_stage(TransactionStage::Abandoned);
        None
    }

    fn quit(&mut self, idle: Idle, arguments: &[u8]) -> Option<Action> {
        if self.settings.strict && !arguments.is_empty() {
            return self.reject_and_stay(idle, &CommandError::Bad(reply::NO_ARGUMENT));
        }
        self.reply(reply::BYE);
        self.state = State::Closed;
        Some(Action::Quit)
    }

    fn discard_chunk(&mut self, idle: Idle, chunk: Chunk, reply: ErrorReply) -> Option<Action> {
        self.state = State::DiscardingChunk(idle, chunk, reply);
        None
    }

    /// Replies and stays in the state.
    fn reply_and_stay(&mut self, idle: Idle, text: &'static str) -> Option<Action> {
        self.state = State::Idle(idle);
        self.reply(text);
        None
    }

    /// Replies to a command that cannot be executed and stays in the state. Ends the session if there were too many bad
    /// commands.
    fn reject_and_stay(&mut self, idle: Idle, error: &CommandError) -> Option<Action> {
        self.state = State::Idle(idle);
        self.reject(error);
        None
    }
}
