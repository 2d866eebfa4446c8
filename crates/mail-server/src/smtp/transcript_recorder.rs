//! Records the transcript of a session in the journal. It splits the lines into chunks and adds the client, the
//! transaction and its outcome. The lines come from the session, which masks passwords and omits message content.

use std::borrow::Cow;
use std::mem;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use restante_journal::{
    Chunk, Journal, Outcome, Protocol, Recipient, SessionEnd, SessionId, SessionInfo, Side, Tls, Transaction,
    TranscriptLine, TranscriptLines,
};
use restante_mail::address::Address;
use restante_mail::envelope::{ReversePath, reverse_path_text};
use restante_mail::message::{MessageId, Summary};
use restante_mail::naming::MailboxName;
use restante_metrics::SessionEndReason;
use restante_net::TlsInfo;
use restante_proto::smtp::{self, Session};
use restante_proto::{RecordedLine, Speaker, TransactionStage};
use tokio::time::Instant;

use crate::EarlyClose;

/// The transcript of one session.
pub(super) struct TranscriptRecorder {
    journal: Arc<Journal>,
    session: SessionId,
    started: Instant,
    /// The details of the session so far. Chunks that were written share it until it changes.
    session_info: Arc<SessionInfo>,
    /// The number of the current chunk.
    chunk_number: u32,
    lines: TranscriptLines,
    open_transaction: Option<OpenTransaction>,
    /// The reply to the last accepted message. The next one is usually the same, so the text is shared.
    accepted_reply: Option<Arc<str>>,
    /// The time of the last line, in microseconds since the session started.
    elapsed_micros: u64,
}

/// The mail transaction in progress.
#[derive(Default)]
struct OpenTransaction {
    from: String,
    parameters: String,
    to: Vec<Recipient>,
    messages: Vec<(MailboxName, MessageId)>,
    /// The last refusal in this transaction.
    refusal: Option<Arc<str>>,
}

impl TranscriptRecorder {
    /// Starts the transcript of a session.
    pub(super) fn start(journal: &Arc<Journal>, protocol: smtp::Protocol, client: Option<IpAddr>) -> Self {
        let started = Timestamp::now();
        let protocol = match protocol {
            smtp::Protocol::Smtp => Protocol::Smtp,
            smtp::Protocol::Lmtp => Protocol::Lmtp,
        };
        let session_info =
            SessionInfo { protocol, client, helo: None, tls: None, user: None, started, end: None, refusals: 0 };
        Self {
            session: journal.start_session(started),
            journal: journal.clone(),
            started: Instant::now(),
            session_info: Arc::new(session_info),
            chunk_number: 0,
            lines: TranscriptLines::default(),
            open_transaction: None,
            accepted_reply: None,
            elapsed_micros: 0,
        }
    }

    /// Records the TLS version and cipher suite.
    pub(super) fn set_tls(&mut self, tls_info: Option<TlsInfo>) {
        if let Some(TlsInfo { version, cipher }) = tls_info {
            self.session_info_mut().tls = Some(Tls { version: Cow::Borrowed(version), cipher });
        }
    }

    /// Records the user. Call it only after a successful login: users type passwords into the wrong field.
    pub(super) fn set_user(&mut self, user: String) {
        self.session_info_mut().user = Some(user);
    }

    /// Records the sender of the current transaction.
    pub(super) fn record_sender(&mut self, from: &ReversePath, parameters: &str) {
        if let Some(transaction) = &mut self.open_transaction {
            transaction.from = reverse_path_text(from);
            parameters.clone_into(&mut transaction.parameters);
        }
    }

    /// Records an accepted recipient.
    pub(super) fn record_recipient(&mut self, to: &Address, parameters: &str) {
        if let Some(transaction) = &mut self.open_transaction {
            transaction.to.push(Recipient { address: to.text(), parameters: parameters.to_owned() });
        }
    }

    /// Records where the message is stored.
    pub(super) fn record_stored(&mut self, copies: Vec<Summary>) {
        if let Some(transaction) = &mut self.open_transaction {
            transaction.messages = copies.into_iter().map(|copy| (copy.mailbox, copy.id)).collect();
        }
    }

    /// Moves the lines of the session to the transcript, with this time. A chunk that ends with them is written at
    /// once, so that the transcript of a message exists before its sender gets the reply.
    pub(super) fn record_transcript(&mut self, session: &mut Session, now: Instant) {
        if let Some(helo) = session.take_helo() {
            self.session_info_mut().helo = Some(helo);
        }
        let Some(transcript) = session.transcript() else { return };
        self.elapsed_micros = to_micros(now.duration_since(self.started));
        for line in transcript.lines() {
            self.push_line(&line);
        }
        transcript.clear();
    }

    /// Records that the connection was closed early.
    pub(super) fn record_early_close(&mut self, EarlyClose { end_reason, error }: &EarlyClose) {
        self.elapsed_micros = to_micros(self.started.elapsed());
        let text = match (end_reason, error) {
            (_, Some(error)) => format!("(the TLS handshake failed: {error})"),
            (SessionEndReason::Refused, None) => "(too many connections: closed before the TLS handshake)".to_owned(),
            (_, None) => return,
        };
        self.session_info_mut().refusals += 1;
        self.lines.push(TranscriptLine { micros: self.elapsed_micros, side: Side::Server, text: &text });
    }

    /// Writes the last chunk, with the end of the session.
    pub(super) fn finish(mut self, end_reason: SessionEndReason) {
        self.elapsed_micros = to_micros(self.started.elapsed());
        let end = SessionEnd { at: Some(self.last_line_time()), reason: Cow::Borrowed(end_reason.name()) };
        self.session_info_mut().end = Some(end);
        self.write_chunk(TransactionStage::Abandoned, None);
    }

    fn push_line(&mut self, line: &RecordedLine<'_>) {
        if line.stage == Some(TransactionStage::Started) {
            // The lines before the first transaction form a separate chunk.
            if self.chunk_number == 0 || self.open_transaction.is_some() {
                self.write_chunk(TransactionStage::Abandoned, None);
            }
            self.open_transaction = Some(OpenTransaction::default());
        }
        let side = match line.speaker {
            Speaker::Client => Side::Client,
            Speaker::Server => Side::Server,
        };
        self.lines.push(TranscriptLine { micros: self.elapsed_micros, side, text: line.text });
        if line.is_refusal {
            self.session_info_mut().refusals += 1;
            if let Some(transaction) = &mut self.open_transaction {
                transaction.refusal = Some(line.text.into());
            }
        }
        if let Some(stage @ (TransactionStage::Accepted | TransactionStage::Refused | TransactionStage::Abandoned)) =
            line.stage
        {
            self.write_chunk(stage, Some(line.text));
        }
        // Write the first refusal at once, so that its reason can be read while the connection is open. Later refusals
        // do not end a chunk: a client that sends only errors would fill the journal with chunks.
        if line.is_refusal && self.chunk_number == 0 && self.open_transaction.is_none() {
            self.write_chunk(TransactionStage::Abandoned, None);
        }
    }

    /// Writes the chunk up to here, with the transaction that this reply has completed.
    fn write_chunk(&mut self, stage: TransactionStage, reply: Option<&str>) {
        if stage == TransactionStage::Accepted && self.accepted_reply.as_deref() != reply {
            self.accepted_reply = reply.map(Into::into);
        }
        let transaction = self
            .open_transaction
            .take()
            .map(|transaction| transaction.into_transaction(stage, self.accepted_reply.as_ref()));
        self.journal.append(Chunk {
            session: self.session,
            number: self.chunk_number,
            at: self.last_line_time(),
            info: self.session_info.clone(),
            transaction,
            lines: mem::take(&mut self.lines),
        });
        self.chunk_number += 1;
    }

    /// Returns the time of the last line.
    fn last_line_time(&self) -> Timestamp {
        self.session_info
            .started
            .checked_add(Duration::from_micros(self.elapsed_micros))
            .unwrap_or(self.session_info.started)
    }

    fn session_info_mut(&mut self) -> &mut SessionInfo {
        Arc::make_mut(&mut self.session_info)
    }
}

impl OpenTransaction {
    /// Completes the transaction. A message that the client abandoned because no recipient was accepted counts as
    /// refused.
    fn into_transaction(self, stage: TransactionStage, accepted_reply: Option<&Arc<str>>) -> Transaction {
        let Self { from, parameters, to, messages, refusal } = self;
        let (outcome, reply) = match stage {
            TransactionStage::Accepted if messages.is_empty() => (Outcome::Discarded, accepted_reply.cloned()),
            TransactionStage::Accepted => (Outcome::Stored, accepted_reply.cloned()),
            TransactionStage::Refused => (Outcome::Refused, refusal),
            TransactionStage::Started | TransactionStage::Abandoned if to.is_empty() && refusal.is_some() => {
                (Outcome::Refused, refusal)
            }
            // No reply has caused this outcome.
            TransactionStage::Started | TransactionStage::Abandoned => (Outcome::Aborted, None),
        };
        Transaction { from, parameters, to, outcome, reply, messages }
    }
}

fn to_micros(duration: Duration) -> u64 {
    // Avoids the 128-bit division of `as_micros`.
    duration.as_secs().saturating_mul(1_000_000).saturating_add(u64::from(duration.subsec_micros()))
}
