//! What each command does in each state that takes commands. Every function here consumes the old state and leaves a
//! new one; an action comes back where the driver has to be asked.

use restante_mail::envelope::{Envelope, Peer};

use crate::link::Link;
use crate::record::Stage;

use super::auth::{self, Progress};
use super::body::Body;
use super::chunk::Chunk;
use super::command::{self, Mail, Verb};
use super::data::DataReader;
use super::fault::Fault;
use super::reply::ErrorReply;
use super::session::Session;
use super::state::{Client, Idle, State, Transaction, Trust};
use super::{Action, Dialect, reply};

impl Session {
    /// Obeys one command.
    pub(super) fn obey(&mut self, idle: Idle, command: Result<(Verb, &[u8]), Fault>) -> Option<Action> {
        let (verb, arguments) = match command {
            Ok(command) => command,
            Err(fault) => return self.fault(idle, &fault),
        };
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
            Verb::Vrfy if arguments.is_empty() => self.fault(idle, &Fault::Bad(reply::SYNTAX_VRFY)),
            Verb::Vrfy => self.stay(idle, reply::VERIFY),
            Verb::Noop => self.stay(idle, reply::OK),
            Verb::Help => self.stay(idle, reply::HELP),
            Verb::Unimplemented => self.fault(idle, &Fault::Bad(reply::NOT_IMPLEMENTED)),
        }
    }

    /// Takes the next step of an AUTH exchange.
    pub(super) fn progress(&mut self, client: Client, progress: Result<Progress, Fault>) -> Option<Action> {
        match progress {
            Ok(Progress::Ask(exchange, challenge)) => {
                self.state = State::Challenge(client, exchange);
                self.reply(challenge);
                None
            }
            Ok(Progress::Challenge) => {
                self.state = State::Challenging(client);
                Some(Action::Challenge)
            }
            Ok(Progress::Done { user, proof }) => {
                self.state = State::Login(client);
                Some(Action::Authenticate { user, proof })
            }
            Err(fault) => self.fault(Idle::Ready(client), &fault),
        }
    }

    /// RFC 5321 section 4.1.4: a greeting may come at any time, and a mail under way is forgotten. Who the peer proved
    /// to be is not (RFC 4954 section 4: there is no second AUTH in a session).
    fn hello(&mut self, idle: Idle, verb: Verb, arguments: &[u8]) -> Option<Action> {
        match (self.settings.dialect, verb) {
            (Dialect::Smtp, Verb::Lhlo) => return self.fault(idle, &Fault::Bad(reply::SMTP_ONLY)),
            (Dialect::Lmtp, Verb::Helo | Verb::Ehlo) => return self.fault(idle, &Fault::Bad(reply::LMTP_ONLY)),
            _ => {}
        }
        let helo = match command::peer_name(arguments, self.settings.strict) {
            Ok(name) => name,
            Err(fault) => return self.fault(idle, &fault),
        };
        let starttls = self.settings.starttls && self.link == Link::Plain;
        if verb == Verb::Helo {
            self.say(|out, settings| reply::hello(out, &settings.domain, &helo));
        } else {
            self.say(|out, settings| reply::extensions(out, settings, &helo, starttls));
        }
        let trust = match idle {
            Idle::Fresh => Trust::Anonymous,
            Idle::Ready(client) => client.trust,
            Idle::Mail(mail) | Idle::Chunked(mail, _) => {
                self.mark(Stage::Abandoned);
                mail.trust
            }
        };
        if self.recording.is_some() {
            self.helo = Some(helo.clone());
        }
        self.state = State::Idle(Idle::Ready(Client { peer: Peer { ip: self.ip, helo }, trust }));
        None
    }

    fn mail(&mut self, idle: Idle, arguments: &[u8]) -> Option<Action> {
        let client = match idle {
            Idle::Ready(client) => client,
            Idle::Fresh => return self.fault(idle, &Fault::Bad(reply::HELLO_FIRST)),
            Idle::Mail(_) | Idle::Chunked(..) => return self.fault(idle, &Fault::Bad(reply::MAIL_TWICE)),
        };
        if self.settings.require_auth && client.trust == Trust::Anonymous {
            return self.fault(Idle::Ready(client), &Fault::Refused(reply::AUTH_REQUIRED));
        }
        let mail = match Mail::parse(arguments, self.settings.strict) {
            Ok(mail) => mail,
            Err(fault) => return self.fault(Idle::Ready(client), &fault),
        };
        // RFC 1870 section 6.1: what is announced as too long need not be sent.
        let announced = match usize::try_from(mail.parameters.size) {
            Ok(size) if size <= self.settings.max_message_bytes => size,
            _ => return self.fault(Idle::Ready(client), &Fault::Refused(reply::TOO_LONG)),
        };
        self.mark(Stage::Begun);
        self.note_parameters(mail.parameter_text);
        self.state = State::Sender(Transaction {
            envelope: Envelope { peer: client.peer, from: mail.from, recipients: Vec::new() },
            trust: client.trust,
            announced,
            alphabet: mail.parameters.alphabet,
        });
        Some(Action::Sender)
    }

    fn rcpt(&mut self, idle: Idle, arguments: &[u8]) -> Option<Action> {
        let mail = match idle {
            Idle::Mail(mail) => mail,
            Idle::Fresh => return self.fault(idle, &Fault::Bad(reply::HELLO_FIRST)),
            Idle::Ready(_) => return self.fault(idle, &Fault::Refused(reply::MAIL_FIRST)),
            Idle::Chunked(..) => return self.fault(idle, &Fault::Refused(reply::CHUNKS_BEGUN)),
        };
        let (recipient, parameters) = match command::parse_rcpt(arguments, mail.alphabet, &self.settings) {
            Ok(parsed) => parsed,
            Err(fault) => return self.fault(Idle::Mail(mail), &fault),
        };
        if mail.envelope.recipients.len() >= self.settings.max_recipients {
            return self.fault(Idle::Mail(mail), &Fault::Refused(reply::TOO_MANY_RECIPIENTS));
        }
        self.note_parameters(parameters);
        self.state = State::Recipient(mail);
        Some(Action::Recipient(recipient))
    }

    fn data(&mut self, idle: Idle, arguments: &[u8]) -> Option<Action> {
        let mail = match idle {
            _ if !arguments.is_empty() => return self.fault(idle, &Fault::Bad(reply::NO_ARGUMENT)),
            Idle::Mail(mail) if !mail.envelope.recipients.is_empty() => mail,
            Idle::Mail(_) => return self.fault(idle, &Fault::Refused(reply::RCPT_FIRST)),
            Idle::Fresh => return self.fault(idle, &Fault::Bad(reply::HELLO_FIRST)),
            Idle::Ready(_) => return self.fault(idle, &Fault::Refused(reply::MAIL_FIRST)),
            Idle::Chunked(..) => return self.fault(idle, &Fault::Refused(reply::CHUNKS_BEGUN)),
        };
        let body = Body::new(self.settings.max_message_bytes, mail.announced);
        self.state = State::Data(mail, DataReader::new(body));
        self.reply(reply::GO_AHEAD_DATA);
        None
    }

    /// RFC 3030 section 2: the octets of a chunk follow its announcement, whatever the answer to it will be.
    fn bdat(&mut self, idle: Idle, arguments: &[u8]) -> Option<Action> {
        let chunk = match Chunk::parse(arguments) {
            Ok(chunk) => chunk,
            Err(fault) => {
                // Nobody knows how many octets follow, and none of them may be taken for a command.
                self.fail(&fault);
                self.state = State::Closed;
                return None;
            }
        };
        let (mail, mut body) = match idle {
            Idle::Mail(mail) if !mail.envelope.recipients.is_empty() => {
                let body = Body::new(self.settings.max_message_bytes, mail.announced);
                (mail, body)
            }
            Idle::Chunked(mail, body) => (mail, body),
            Idle::Fresh => return self.swallow(idle, chunk, reply::HELLO_FIRST),
            Idle::Ready(_) => return self.swallow(idle, chunk, reply::MAIL_FIRST),
            Idle::Mail(_) => return self.swallow(idle, chunk, reply::RCPT_FIRST),
        };
        body.announce(chunk.remaining);
        self.state = State::Chunk(mail, body, chunk);
        None
    }

    fn auth(&mut self, idle: Idle, arguments: &[u8]) -> Option<Action> {
        match idle {
            Idle::Ready(client) if client.trust == Trust::Anonymous => {
                self.progress(client, auth::begin(arguments, self.settings.cram_md5))
            }
            Idle::Ready(_) => self.fault(idle, &Fault::Bad(reply::AUTH_TWICE)),
            Idle::Fresh => self.fault(idle, &Fault::Bad(reply::HELLO_FIRST)),
            Idle::Mail(_) | Idle::Chunked(..) => self.fault(idle, &Fault::Bad(reply::AUTH_IN_MAIL)),
        }
    }

    fn starttls(&mut self, idle: Idle, arguments: &[u8]) -> Option<Action> {
        let fault = match self.link {
            _ if !arguments.is_empty() => reply::NO_ARGUMENT,
            Link::Tls => reply::TLS_TWICE,
            Link::Plain if !self.settings.starttls => reply::NO_TLS,
            Link::Plain => {
                self.state = State::Tls;
                self.reply(reply::GO_AHEAD_TLS);
                if let Idle::Mail(_) | Idle::Chunked(..) = idle {
                    self.mark(Stage::Abandoned);
                }
                return None;
            }
        };
        self.fault(idle, &Fault::Bad(fault))
    }

    fn rset(&mut self, idle: Idle, arguments: &[u8]) -> Option<Action> {
        if self.settings.strict && !arguments.is_empty() {
            return self.fault(idle, &Fault::Bad(reply::NO_ARGUMENT));
        }
        let mail = match idle {
            Idle::Mail(mail) | Idle::Chunked(mail, _) => mail,
            Idle::Fresh | Idle::Ready(_) => return self.stay(idle, reply::RESET),
        };
        self.stay(Idle::Ready(mail.into_client()), reply::RESET);
        self.mark(Stage::Abandoned);
        None
    }

    fn quit(&mut self, idle: Idle, arguments: &[u8]) -> Option<Action> {
        if self.settings.strict && !arguments.is_empty() {
            return self.fault(idle, &Fault::Bad(reply::NO_ARGUMENT));
        }
        self.reply(reply::BYE);
        self.state = State::Closed;
        Some(Action::Quit)
    }

    fn swallow(&mut self, idle: Idle, chunk: Chunk, reply: ErrorReply) -> Option<Action> {
        self.state = State::Swallow(idle, chunk, reply);
        None
    }

    /// Answers and stays in the state.
    fn stay(&mut self, idle: Idle, text: &'static str) -> Option<Action> {
        self.state = State::Idle(idle);
        self.reply(text);
        None
    }

    /// Answers a command that cannot be obeyed and stays in the state, unless that was one too many.
    fn fault(&mut self, idle: Idle, fault: &Fault) -> Option<Action> {
        self.state = State::Idle(idle);
        self.fail(fault);
        None
    }
}
