//! The commands, in each state that accepts commands. Every function consumes the old state and sets a new one. It
//! returns an action if the driver has to do something.

use crate::sasl::{Credentials, Mechanism, Step};

use super::command::{self, AuthCommand, Command};
use super::maildrop::{Maildrop, MessageNumberError};
use super::multiline::{Listing, MultilineReply};
use super::request::{Column, Extent, FetchRequest};
use super::session::Session;
use super::state::{AnonymousClient, AuthExchange, Idle, State};
use super::{Action, Proof, reply};

impl Session {
    /// Executes one command line.
    pub(super) fn execute(&mut self, idle: Idle, line: &[u8]) -> Option<Action> {
        let command = match command::parse(line) {
            Ok(command) => command,
            Err(text) => return self.reject_and_stay(idle, text),
        };
        match idle {
            Idle::Authorization(client) => self.execute_in_authorization(client, command),
            Idle::Transaction(maildrop) => self.execute_in_transaction(maildrop, &command),
        }
    }

    /// Continues an AUTH exchange.
    pub(super) fn continue_auth(&mut self, client: AnonymousClient, step: Step) -> Option<Action> {
        match step {
            Step::Challenge(exchange, challenge) => {
                self.state = State::AuthExchange(client, AuthExchange::Sasl(exchange));
                self.reply_with(|out, _| reply::write_challenge(out, challenge));
                None
            }
            Step::Credentials(Credentials { mechanism, authorization_id: identity, user, proof }) => {
                let mailbox = if identity.is_empty() { user.clone() } else { identity };
                let login = Action::Open { mailbox, user, proof: proof.into() };
                Some(self.open(client.is_utf8, Some(mechanism), login))
            }
            Step::Cancelled => {
                self.state = State::Idle(Idle::Authorization(client));
                self.reply_error(reply::AUTH_CANCELLED);
                None
            }
            Step::Malformed => self.reject_and_stay(Idle::Authorization(client), reply::AUTH_MALFORMED),
        }
    }

    /// Executes a command of the AUTHORIZATION state (RFC 1939 section 4) and its extensions.
    fn execute_in_authorization(&mut self, mut client: AnonymousClient, command: Command) -> Option<Action> {
        match command {
            Command::Capa => {
                let stls = self.stls_error(&client).is_none();
                self.reply_with(|out, _| reply::write_capabilities(out, stls));
            }
            Command::User(user) => {
                client.user = Some(user);
                self.reply(reply::USER_OK);
            }
            Command::Pass(password) => match client.user {
                Some(user) => {
                    let proof = Proof::Password(password);
                    return Some(self.open(client.is_utf8, None, Action::Open { mailbox: user.clone(), user, proof }));
                }
                None => return self.reject_and_stay(Idle::Authorization(client), reply::USER_FIRST),
            },
            Command::Apop { user, digest } => {
                let proof = Proof::Apop { timestamp: self.timestamp.clone(), digest };
                return Some(self.open(client.is_utf8, None, Action::Open { mailbox: user.clone(), user, proof }));
            }
            Command::Auth(AuthCommand::Mechanisms) => self.reply(reply::MECHANISMS),
            Command::Auth(AuthCommand::Start(step)) => return self.continue_auth(client, step),
            Command::Stls => return self.stls(client),
            Command::Utf8 => {
                client.is_utf8 = true;
                self.reply(reply::UTF8_OK);
            }
            Command::Quit => return Some(self.quit()),
            _ => return self.reject_and_stay(Idle::Authorization(client), reply::LOGIN_FIRST),
        }
        self.state = State::Idle(Idle::Authorization(client));
        None
    }

    /// Executes a command of the TRANSACTION state (RFC 1939 sections 5 to 7).
    fn execute_in_transaction(&mut self, mut maildrop: Maildrop, command: &Command) -> Option<Action> {
        match *command {
            Command::Capa => self.reply_with(|out, _| reply::write_capabilities(out, false)),
            Command::Stat => self.reply_with(|out, _| reply::write_stat(out, maildrop.total())),
            Command::List(target) => return self.list(maildrop, target, Column::Sizes),
            Command::Uidl(target) => return self.list(maildrop, target, Column::Ids),
            Command::Retr(number) => return self.fetch(maildrop, FetchRequest { number, extent: Extent::Whole }),
            Command::Top { number, lines } => {
                return self.fetch(maildrop, FetchRequest { number, extent: Extent::Top(lines) });
            }
            Command::Dele(_) if maildrop.is_read_only => self.reply_error(reply::READ_ONLY),
            Command::Dele(number) => match maildrop.mark(number) {
                Ok(()) => self.reply_with(|out, _| reply::write_marked(out, number)),
                Err(error) => return self.reply_no_such_message(maildrop, number, error),
            },
            Command::Rset => {
                maildrop.unmark_all();
                self.reply_with(|out, _| reply::write_total(out, maildrop.total()));
            }
            Command::Noop => self.reply(reply::OK),
            Command::Quit => return Some(self.update(maildrop)),
            Command::Utf8 => return self.reject_and_stay(Idle::Transaction(maildrop), reply::UTF8_TOO_LATE),
            Command::Stls => return self.reject_and_stay(Idle::Transaction(maildrop), reply::TLS_TOO_LATE),
            Command::User(_) | Command::Pass(_) | Command::Apop { .. } | Command::Auth(_) => {
                return self.reject_and_stay(Idle::Transaction(maildrop), reply::LOGIN_TWICE);
            }
        }
        self.state = State::Idle(Idle::Transaction(maildrop));
        None
    }

    /// Performs the action that opens a mailbox. After a failed login the client has to send USER again (RFC 1939
    /// section 7).
    fn open(&mut self, is_utf8: bool, mechanism: Option<Mechanism>, action: Action) -> Action {
        self.state = State::OpeningMailbox(AnonymousClient { user: None, is_utf8 }, mechanism);
        action
    }

    fn stls(&mut self, client: AnonymousClient) -> Option<Action> {
        if let Some(text) = self.stls_error(&client) {
            return self.reject_and_stay(Idle::Authorization(client), text);
        }
        self.state = State::StartingTls;
        self.reply(reply::GO_AHEAD_TLS);
        None
    }

    /// Returns why STLS is not available before a login, or `None`. RFC 6856 section 2.1 forbids it after UTF8.
    fn stls_error(&self, client: &AnonymousClient) -> Option<&'static str> {
        match (self.is_tls, self.settings.stls) {
            (true, _) => Some(reply::TLS_TWICE),
            (false, false) => Some(reply::TLS_UNAVAILABLE),
            (false, true) => client.is_utf8.then_some(reply::TLS_TOO_LATE),
        }
    }

    fn list(&mut self, maildrop: Maildrop, target: Option<u64>, column: Column) -> Option<Action> {
        let Some(number) = target else {
            match column {
                Column::Sizes => self.reply_with(|out, _| reply::write_total(out, maildrop.total())),
                Column::Ids => self.reply(reply::IDS),
            }
            self.state = State::Sending(maildrop, MultilineReply::Listing(Listing::new(column)));
            return None;
        };
        match maildrop.entry(number) {
            Ok(entry) => self.reply_with(|out, _| reply::write_single_listing(out, number, entry, column)),
            Err(error) => return self.reply_no_such_message(maildrop, number, error),
        }
        self.state = State::Idle(Idle::Transaction(maildrop));
        None
    }

    fn fetch(&mut self, maildrop: Maildrop, request: FetchRequest) -> Option<Action> {
        match maildrop.entry(request.number) {
            Ok(entry) => {
                self.state = State::Fetching(maildrop, request);
                Some(Action::Fetch(entry.id))
            }
            Err(error) => self.reply_no_such_message(maildrop, request.number, error),
        }
    }

    /// Handles QUIT after a login. Only now the marked messages are deleted (RFC 1939 section 6).
    fn update(&mut self, maildrop: Maildrop) -> Action {
        let marked = maildrop.into_marked();
        if marked.is_empty() {
            return self.quit();
        }
        self.state = State::Updating;
        Action::Delete(marked)
    }

    fn quit(&mut self) -> Action {
        self.reply(reply::BYE);
        self.state = State::Closed;
        Action::Quit
    }

    fn reply_no_such_message(&mut self, maildrop: Maildrop, number: u64, error: MessageNumberError) -> Option<Action> {
        self.state = State::Idle(Idle::Transaction(maildrop));
        self.reply_error_with(|out, _| reply::write_no_such_message(out, number, error));
        None
    }

    /// Replies to a command that cannot be executed and stays in the state. Ends the session if there were too many bad
    /// commands.
    fn reject_and_stay(&mut self, idle: Idle, text: &'static str) -> Option<Action> {
        self.state = State::Idle(idle);
        self.reject(text);
        None
    }
}
