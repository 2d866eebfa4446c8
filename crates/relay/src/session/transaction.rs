//! Sends messages over a session.

use std::time::Duration;

use tokio::time::timeout;

use super::client::{Client, Reply};
use super::extensions::{Extension, SmtpExtensions};
use super::recorder::truncate;
use super::{RecipientOutcome, RecipientResult, Transaction};
use crate::release::parse_address;

/// The time limit for the sender and all recipients, as a multiple of the timeout of the target. Each reply is limited by
/// the timeout itself.
const ENVELOPE_TIMEOUTS: u32 = 5;
/// The time limit for the end of a session.
const QUIT_TIMEOUT: Duration = Duration::from_secs(2);
/// The maximum length of an invalid address in an error, in characters.
const MAX_QUOTED_CHARS: usize = 80;
/// The code of a server that closes the connection.
const CLOSING: u16 = 421;

/// An open session.
pub(crate) struct Session {
    client: Client,
    extensions: SmtpExtensions,
    /// Whether the last message was not completed, so that RSET has to precede the next one.
    needs_reset: bool,
    /// Whether the state of the server is known.
    is_usable: bool,
}

/// Why a message was not accepted for the remaining recipients.
struct Failure {
    text: String,
    outcome: RecipientOutcome,
    /// Whether it concerns all messages to the target.
    is_of_target: bool,
}

impl Failure {
    fn new(outcome: RecipientOutcome, text: String) -> Self {
        Self { text, outcome, is_of_target: false }
    }

    /// A failure that concerns all messages to the target.
    fn of_target(text: String) -> Self {
        Self { is_of_target: true, ..Self::new(RecipientOutcome::Temporary, text) }
    }

    /// A reply that is not the expected one.
    fn of_reply(reply: &Reply) -> Self {
        Self { is_of_target: reply.code == CLOSING, ..Self::new(refusal_outcome(reply), reply.text()) }
    }
}

/// What happened to each recipient so far. `None` if the rest of the transaction decides.
type Results = [Option<RecipientResult>];

impl Session {
    pub(super) fn new(mut client: Client, extensions: SmtpExtensions) -> Self {
        client.recorder().end_opening();
        Self { client, extensions, needs_reset: false, is_usable: true }
    }

    /// Sends one message. Never fails as a function: the result says what happened to each recipient. The lines of `data`
    /// end in CRLF.
    pub(crate) async fn send(&mut self, sender: &str, recipients: &[&str], data: &[u8]) -> Transaction {
        self.client.recorder().start_message();
        let mut results = vec![None; recipients.len()];
        let end = self.run(sender, recipients, data, &mut results).await;
        let (outcome, reply, is_target_failure) = match end {
            Ok(reply) => (RecipientOutcome::Accepted, reply, false),
            Err(failure) => (failure.outcome, failure.text, failure.is_of_target),
        };
        let remaining = RecipientResult { outcome, reply: reply.clone() };
        Transaction {
            recipients: results.into_iter().map(|result| result.unwrap_or_else(|| remaining.clone())).collect(),
            reply,
            is_reusable: self.is_usable,
            is_target_failure,
            transcript: self.client.recorder().take_transcript(),
        }
    }

    /// Sends QUIT and closes, with a short time limit.
    pub(crate) async fn quit(mut self) {
        let quit = async {
            if self.is_usable {
                // The messages are sent, so a failure does not matter.
                let _ = self.client.command("QUIT").await;
            }
            self.client.close().await;
        };
        let _ = timeout(QUIT_TIMEOUT, quit).await;
    }

    /// Sends a message. Returns the reply that decided, which applies to all recipients without a result.
    async fn run(
        &mut self,
        sender: &str,
        recipients: &[&str],
        data: &[u8],
        results: &mut Results,
    ) -> Result<String, Failure> {
        let commands = self.envelope_commands(sender, recipients, data, results)?;
        if let Some(reply) = decided_reply(results) {
            return Ok(reply);
        }
        self.prepare().await?;
        let limit = self.client.timeout().saturating_mul(ENVELOPE_TIMEOUTS);
        let envelope = timeout(limit, self.send_envelope(&commands, results)).await;
        envelope.unwrap_or_else(|_| {
            let text = "the server is too slow".to_owned();
            self.is_usable = false;
            self.client.recorder().add_note(&text);
            Err(Failure::new(RecipientOutcome::Temporary, text))
        })?;
        match decided_reply(results) {
            Some(reply) => Ok(reply),
            None => self.send_data(data).await,
        }
    }

    /// Returns MAIL, and one RCPT for each recipient without a result. Sets the results of recipients that the server
    /// cannot accept.
    fn envelope_commands(
        &self,
        sender: &str,
        recipients: &[&str],
        data: &[u8],
        results: &mut Results,
    ) -> Result<Vec<String>, Failure> {
        let sender = match sender {
            "" => String::new(),
            text => parse_address(text).ok_or_else(|| permanent(format!("{} is not a valid sender", quote(text))))?,
        };
        if let Some(max) = self.extensions.max_size.filter(|&max| data.len() > max) {
            let text = format!("the message has {} bytes, and the server accepts at most {max}", data.len());
            return Err(permanent(text));
        }
        if !self.accepts(&sender) {
            return Err(permanent(no_utf8_text(&sender)));
        }
        let mut commands = vec![String::new()];
        let mut has_utf8_address = !sender.is_ascii();
        for (recipient, result) in recipients.iter().zip(results) {
            let text = match parse_address(recipient) {
                None => format!("{} is not a valid mail address", quote(recipient)),
                Some(address) if !self.accepts(&address) => no_utf8_text(&address),
                Some(address) => {
                    has_utf8_address |= !address.is_ascii();
                    commands.push(format!("RCPT TO:<{address}>\r\n"));
                    continue;
                }
            };
            *result = Some(RecipientResult { outcome: RecipientOutcome::Permanent, reply: text });
        }
        let parameters = self.extensions.mail_parameters(data, has_utf8_address);
        commands[0] = format!("MAIL FROM:<{sender}>{parameters}\r\n");
        Ok(commands)
    }

    /// Returns whether the server accepts the characters of an address.
    fn accepts(&self, address: &str) -> bool {
        address.is_ascii() || self.extensions.has(Extension::SmtpUtf8)
    }

    /// Makes sure that the server expects MAIL.
    async fn prepare(&mut self) -> Result<(), Failure> {
        if !self.is_usable {
            return Err(Failure::of_target("the session is closed".to_owned()));
        }
        // A server that closes an idle connection may announce it. The announcement must not be read as the reply to
        // another command.
        if self.client.stream().has_input().await {
            self.is_usable = false;
            let reply = self.client.read_reply().await;
            return Err(Failure::of_target(reply.map_or_else(|error| error, |reply| reply.text())));
        }
        if self.needs_reset {
            let reply = self.exchange("RSET\r\n").await.map_err(Failure::of_target)?;
            if !reply.is_success() {
                self.is_usable = false;
                return Err(Failure { outcome: RecipientOutcome::Temporary, ..Failure::of_reply(&reply) });
            }
        }
        Ok(())
    }

    /// Sends MAIL and RCPT. Sets the results of recipients that are refused.
    async fn send_envelope(&mut self, commands: &[String], results: &mut Results) -> Result<(), Failure> {
        self.needs_reset = true;
        let (mail, rcpts) = (&commands[0], &commands[1..]);
        let is_pipelined = self.extensions.has(Extension::Pipelining);
        let reply = if is_pipelined { self.exchange(&commands.concat()).await } else { self.exchange(mail).await };
        let mail_reply = reply.map_err(Failure::of_target)?;
        let is_refused = !mail_reply.is_success();
        if is_refused && (!is_pipelined || mail_reply.code == CLOSING) {
            return Err(self.refuse(&mail_reply));
        }
        for (rcpt, result) in rcpts.iter().zip(results.iter_mut().filter(|result| result.is_none())) {
            let reply = if is_pipelined { self.read_reply().await } else { self.exchange(rcpt).await };
            match reply {
                // After a refused MAIL, these replies are read only to get to the next command.
                Err(_) if is_refused => break,
                Ok(_) if is_refused => {}
                Err(text) => return Err(Failure::new(RecipientOutcome::Temporary, text)),
                Ok(reply) if reply.is_success() => {}
                Ok(reply) if reply.code == CLOSING => return Err(self.refuse(&reply)),
                Ok(reply) => {
                    *result = Some(RecipientResult { outcome: refusal_outcome(&reply), reply: reply.text() });
                }
            }
        }
        if is_refused { Err(self.refuse(&mail_reply)) } else { Ok(()) }
    }

    /// Sends DATA and the content. Returns the final reply.
    async fn send_data(&mut self, data: &[u8]) -> Result<String, Failure> {
        let broken = |text| Failure::new(RecipientOutcome::Temporary, text);
        let reply = self.exchange("DATA\r\n").await.map_err(broken)?;
        if reply.code != 354 {
            return Err(self.refuse(&reply));
        }
        let reply = self.client.send_content(data).await;
        let reply = self.note_result(reply).map_err(broken)?;
        if !reply.is_success() {
            return Err(self.refuse(&reply));
        }
        self.needs_reset = false;
        Ok(reply.text())
    }

    /// Sends commands and reads one reply.
    async fn exchange(&mut self, commands: &str) -> Result<Reply, String> {
        let reply = match self.client.write(commands).await {
            Ok(()) => self.client.read_reply().await,
            Err(text) => Err(text),
        };
        self.note_result(reply)
    }

    async fn read_reply(&mut self) -> Result<Reply, String> {
        let reply = self.client.read_reply().await;
        self.note_result(reply)
    }

    /// After an error, the session cannot be used.
    fn note_result(&mut self, reply: Result<Reply, String>) -> Result<Reply, String> {
        if let Err(text) = &reply {
            self.is_usable = false;
            self.client.recorder().add_note(text);
        }
        reply
    }

    /// Returns the failure of a refused command. After a reply that no server may send here, the session cannot be used.
    fn refuse(&mut self, reply: &Reply) -> Failure {
        self.is_usable &= reply.code != CLOSING && (400..600).contains(&reply.code);
        Failure::of_reply(reply)
    }
}

/// Returns the reply of the first recipient if all recipients have a result.
fn decided_reply(results: &Results) -> Option<String> {
    let is_decided = results.iter().all(Option::is_some);
    is_decided.then(|| results.iter().flatten().next().map(|result| result.reply.clone()).unwrap_or_default())
}

/// Returns the outcome of a command that did not succeed. Unexpected replies may be caused by a temporary problem.
fn refusal_outcome(reply: &Reply) -> RecipientOutcome {
    if (500..600).contains(&reply.code) { RecipientOutcome::Permanent } else { RecipientOutcome::Temporary }
}

fn permanent(text: String) -> Failure {
    Failure::new(RecipientOutcome::Permanent, text)
}

/// Returns the start of an invalid address, with control characters escaped.
fn quote(address: &str) -> String {
    format!("{:?}", truncate(address, MAX_QUOTED_CHARS))
}

fn no_utf8_text(address: &str) -> String {
    format!("{address} is not ASCII, and the server does not support such addresses (SMTPUTF8)")
}
