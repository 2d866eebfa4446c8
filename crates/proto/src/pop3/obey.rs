//! What each command does in each state that takes commands. Every function here consumes the old state and leaves a
//! new one; an action comes back where the driver has to be asked.

use crate::link::Link;
use crate::sasl::Plain;

use super::answer::{Answer, Listing};
use super::command::{self, Auth, Command, Response, Which};
use super::maildrop::{Absent, Maildrop};
use super::request::{Column, Extent, Request};
use super::session::Session;
use super::state::{Idle, Mode, State, Visitor};
use super::{Action, Proof, reply};

impl Session {
    /// Obeys one command line.
    pub(super) fn obey(&mut self, idle: Idle, line: &[u8]) -> Option<Action> {
        let command = match command::parse(line) {
            Ok(command) => command,
            Err(text) => return self.fault(idle, text),
        };
        match idle {
            Idle::Authorization(visitor) => self.authorize(visitor, command),
            Idle::Transaction(maildrop) => self.transact(maildrop, &command),
        }
    }

    /// Takes the response of an AUTH exchange.
    pub(super) fn respond(&mut self, visitor: Visitor, response: Result<Response, &'static str>) -> Option<Action> {
        match response {
            Ok(Some(Plain { identity, user, password })) => {
                let mailbox = if identity.is_empty() { user.clone() } else { identity };
                Some(self.open(visitor.mode, mailbox, user, Proof::Password(password)))
            }
            Ok(None) => {
                self.state = State::Idle(Idle::Authorization(visitor));
                self.reply_error(reply::AUTH_CANCELLED);
                None
            }
            Err(text) => self.fault(Idle::Authorization(visitor), text),
        }
    }

    /// RFC 1939 section 4, and the extensions of this state.
    fn authorize(&mut self, mut visitor: Visitor, command: Command) -> Option<Action> {
        match command {
            Command::Capa => {
                let stls = self.stls_fault(&visitor).is_none();
                self.say(|out, _| reply::capabilities(out, stls));
            }
            Command::User(user) => {
                visitor.user = Some(user);
                self.reply(reply::USER_OK);
            }
            Command::Pass(password) => match visitor.user {
                Some(user) => return Some(self.open(visitor.mode, user.clone(), user, Proof::Password(password))),
                None => return self.fault(Idle::Authorization(visitor), reply::USER_FIRST),
            },
            Command::Apop { user, digest } => {
                let proof = Proof::Digest { timestamp: self.timestamp.clone(), digest };
                return Some(self.open(visitor.mode, user.clone(), user, proof));
            }
            Command::Auth(auth) => return self.auth(visitor, auth),
            Command::Stls => return self.stls(visitor),
            Command::Utf8 => {
                visitor.mode = Mode::Utf8;
                self.reply(reply::UTF8_OK);
            }
            Command::Quit => return Some(self.leave()),
            _ => return self.fault(Idle::Authorization(visitor), reply::LOGIN_FIRST),
        }
        self.state = State::Idle(Idle::Authorization(visitor));
        None
    }

    /// RFC 1939 sections 5 to 7.
    fn transact(&mut self, mut maildrop: Maildrop, command: &Command) -> Option<Action> {
        match *command {
            Command::Capa => self.say(|out, _| reply::capabilities(out, false)),
            Command::Stat => self.say(|out, _| reply::stat(out, maildrop.total())),
            Command::List(which) => return self.list(maildrop, which, Column::Sizes),
            Command::Uidl(which) => return self.list(maildrop, which, Column::Ids),
            Command::Retr(number) => return self.fetch(maildrop, Request { number, extent: Extent::Whole }),
            Command::Top { number, lines } => {
                return self.fetch(maildrop, Request { number, extent: Extent::Top(lines) });
            }
            Command::Dele(_) if maildrop.is_protected() => self.reply_error(reply::PROTECTED),
            Command::Dele(number) => match maildrop.mark(number) {
                Ok(()) => self.say(|out, _| reply::marked(out, number)),
                Err(absent) => return self.absent(maildrop, number, absent),
            },
            Command::Rset => {
                maildrop.unmark_all();
                self.say(|out, _| reply::total(out, maildrop.total()));
            }
            Command::Noop => self.reply(reply::OK),
            Command::Quit => return Some(self.update(maildrop)),
            Command::Utf8 => return self.fault(Idle::Transaction(maildrop), reply::UTF8_TOO_LATE),
            Command::Stls => return self.fault(Idle::Transaction(maildrop), reply::TLS_TOO_LATE),
            Command::User(_) | Command::Pass(_) | Command::Apop { .. } | Command::Auth(_) => {
                return self.fault(Idle::Transaction(maildrop), reply::LOGIN_TWICE);
            }
        }
        self.state = State::Idle(Idle::Transaction(maildrop));
        None
    }

    fn auth(&mut self, visitor: Visitor, auth: Auth) -> Option<Action> {
        match auth {
            Auth::Mechanisms => self.go(State::Idle(Idle::Authorization(visitor)), reply::MECHANISMS),
            Auth::Plain => self.go(State::Challenge(visitor), reply::CHALLENGE),
            Auth::Response(response) => self.respond(visitor, Ok(response)),
        }
    }

    /// A login that fails has to begin again, with USER too (RFC 1939 section 7).
    fn open(&mut self, mode: Mode, mailbox: String, user: String, proof: Proof) -> Action {
        self.state = State::Opening(Visitor { user: None, mode });
        Action::Open { mailbox, user, proof }
    }

    fn stls(&mut self, visitor: Visitor) -> Option<Action> {
        match self.stls_fault(&visitor) {
            Some(text) => self.fault(Idle::Authorization(visitor), text),
            None => self.go(State::Tls, reply::GO_AHEAD_TLS),
        }
    }

    /// Why STLS cannot be used before a login. RFC 6856 section 2.1 forbids it behind UTF8.
    fn stls_fault(&self, visitor: &Visitor) -> Option<&'static str> {
        match self.link {
            Link::Tls => Some(reply::TLS_TWICE),
            Link::Plain if !self.settings.stls => Some(reply::TLS_UNAVAILABLE),
            Link::Plain if visitor.mode == Mode::Utf8 => Some(reply::TLS_TOO_LATE),
            Link::Plain => None,
        }
    }

    fn list(&mut self, maildrop: Maildrop, which: Which, column: Column) -> Option<Action> {
        let Which::Number(number) = which else {
            match column {
                Column::Sizes => self.say(|out, _| reply::total(out, maildrop.total())),
                Column::Ids => self.reply(reply::IDS),
            }
            self.state = State::Sending(maildrop, Answer::Listing(Listing::new(column)));
            return None;
        };
        match maildrop.entry(number) {
            Ok(entry) => self.say(|out, _| reply::listed_alone(out, number, entry, column)),
            Err(absent) => return self.absent(maildrop, number, absent),
        }
        self.state = State::Idle(Idle::Transaction(maildrop));
        None
    }

    fn fetch(&mut self, maildrop: Maildrop, request: Request) -> Option<Action> {
        match maildrop.entry(request.number) {
            Ok(entry) => {
                self.state = State::Fetching(maildrop, request);
                Some(Action::Fetch(entry.id))
            }
            Err(absent) => self.absent(maildrop, request.number, absent),
        }
    }

    /// QUIT behind a login: only now the marked messages go (RFC 1939 section 6).
    fn update(&mut self, maildrop: Maildrop) -> Action {
        let marked = maildrop.into_marked();
        if marked.is_empty() {
            return self.leave();
        }
        self.state = State::Updating;
        Action::Delete(marked)
    }

    fn leave(&mut self) -> Action {
        self.reply(reply::BYE);
        self.state = State::Closed;
        Action::Quit
    }

    fn absent(&mut self, maildrop: Maildrop, number: u64, absent: Absent) -> Option<Action> {
        self.state = State::Idle(Idle::Transaction(maildrop));
        self.say_error(|out, _| reply::absent(out, number, absent));
        None
    }

    /// Answers and goes to the state.
    fn go(&mut self, state: State, text: &'static str) -> Option<Action> {
        self.state = state;
        self.reply(text);
        None
    }

    /// Answers a command that cannot be obeyed and stays in the state, unless that was one too many.
    fn fault(&mut self, idle: Idle, text: &'static str) -> Option<Action> {
        self.state = State::Idle(idle);
        self.fail(text);
        None
    }
}
