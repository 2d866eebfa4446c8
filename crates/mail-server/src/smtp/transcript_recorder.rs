//! The scribe of a session: cuts what was said into the pieces of a journal, and writes on them who came, what was wanted,
//! and what became of it. The words come from the session's record, which holds no passwords and no mail.

use std::borrow::Cow;
use std::mem;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use restante_journal::{
    Chunk, Dialect, Journal, Outcome, Recipient, SessionEnd, SessionId, SessionInfo, Side, Tls, Transaction,
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

/// See the file's documentation.
pub(super) struct TranscriptRecorder {
    journal: Arc<dyn Journal>,
    session: SessionId,
    started: Instant,
    /// What is known of the session. The pieces that were noted share it until it changes.
    session_info: Arc<SessionInfo>,
    /// The number of the piece that is being written.
    chunk_number: u32,
    lines: TranscriptLines,
    open_transaction: Option<OpenTransaction>,
    /// What was said when a mail was taken last, which is most often what is said next time.
    accepted_reply: Option<Arc<str>>,
    /// How far the session is, in microseconds, as of the last line.
    elapsed_micros: u64,
}

/// The mail under way.
#[derive(Default)]
struct OpenTransaction {
    from: String,
    parameters: String,
    to: Vec<Recipient>,
    messages: Vec<(MailboxName, MessageId)>,
    /// The last thing that was refused in it.
    refusal: Option<Arc<str>>,
}

impl TranscriptRecorder {
    /// For a session that begins now.
    pub(super) fn start(journal: &Arc<dyn Journal>, dialect: smtp::Dialect, client: Option<IpAddr>) -> Self {
        let started = Timestamp::now();
        let dialect = match dialect {
            smtp::Dialect::Smtp => Dialect::Smtp,
            smtp::Dialect::Lmtp => Dialect::Lmtp,
        };
        let cover = SessionInfo { dialect, client, helo: None, tls: None, user: None, started, end: None, refusals: 0 };
        Self {
            session: journal.start_session(started),
            journal: journal.clone(),
            started: Instant::now(),
            session_info: Arc::new(cover),
            chunk_number: 0,
            lines: TranscriptLines::default(),
            open_transaction: None,
            accepted_reply: None,
            elapsed_micros: 0,
        }
    }

    /// How the connection is encrypted from now on.
    pub(super) fn set_tls(&mut self, agreed: Option<TlsInfo>) {
        if let Some(TlsInfo { version, cipher }) = agreed {
            self.session_info_mut().tls = Some(Tls { version: Cow::Borrowed(version), cipher });
        }
    }

    /// Who has logged in. To be told behind a right password only: people type passwords into the wrong field.
    pub(super) fn set_user(&mut self, user: String) {
        self.session_info_mut().user = Some(user);
    }

    /// The sender of the mail that has begun.
    pub(super) fn record_sender(&mut self, from: &ReversePath, parameters: &str) {
        if let Some(mail) = &mut self.open_transaction {
            mail.from = reverse_path_text(from);
            parameters.clone_into(&mut mail.parameters);
        }
    }

    /// A recipient that is taken.
    pub(super) fn record_recipient(&mut self, to: &Address, parameters: &str) {
        if let Some(mail) = &mut self.open_transaction {
            mail.to.push(Recipient { address: to.text(), parameters: parameters.to_owned() });
        }
    }

    /// Where the mail is stored.
    pub(super) fn record_stored(&mut self, copies: Vec<Summary>) {
        if let Some(mail) = &mut self.open_transaction {
            mail.messages = copies.into_iter().map(|copy| (copy.mailbox, copy.id)).collect();
        }
    }

    /// Takes down what is on record, as said at this moment, and clears the record. A piece that ends with it is noted, so
    /// that the transcript of a mail is there before its sender hears that the mail is.
    pub(super) fn record_transcript(&mut self, session: &mut Session, now: Instant) {
        if let Some(helo) = session.take_helo() {
            self.session_info_mut().helo = Some(helo);
        }
        let Some(dialogue) = session.transcript() else { return };
        self.elapsed_micros = to_micros(now.duration_since(self.started));
        for line in dialogue.lines() {
            self.push_line(&line);
        }
        dialogue.clear();
    }

    /// There was nobody to talk to, or not any more.
    pub(super) fn record_early_close(&mut self, EarlyClose { ending, error: why }: &EarlyClose) {
        self.elapsed_micros = to_micros(self.started.elapsed());
        let text = match (ending, why) {
            (_, Some(error)) => format!("(the TLS handshake failed: {error})"),
            (SessionEndReason::Refused, None) => "(too many connections: closed before the TLS handshake)".to_owned(),
            (_, None) => return,
        };
        self.session_info_mut().refusals += 1;
        self.lines.push(TranscriptLine { micros: self.elapsed_micros, side: Side::Server, text: &text });
    }

    /// The session is over.
    pub(super) fn finish(mut self, ending: SessionEndReason) {
        self.elapsed_micros = to_micros(self.started.elapsed());
        let end = SessionEnd { at: Some(self.last_line_time()), reason: Cow::Borrowed(ending.label()) };
        self.session_info_mut().end = Some(end);
        self.write_chunk(TransactionStage::Abandoned, None);
    }

    fn push_line(&mut self, line: &RecordedLine<'_>) {
        if line.stage == Some(TransactionStage::Started) {
            // The head of the session is a piece of its own.
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
            if let Some(mail) = &mut self.open_transaction {
                mail.refusal = Some(line.text.into());
            }
        }
        if let Some(stage @ (TransactionStage::Accepted | TransactionStage::Refused | TransactionStage::Abandoned)) =
            line.stage
        {
            self.write_chunk(stage, Some(line.text));
        }
        // Who looks for the reason of a refusal shall find it while the connection is still open. Once is enough: a client
        // that does nothing but wrong would fill the journal with pieces.
        if line.is_refusal && self.chunk_number == 0 && self.open_transaction.is_none() {
            self.write_chunk(TransactionStage::Abandoned, None);
        }
    }

    /// Notes the piece up to here, with the mail that has come to this stage by this reply.
    fn write_chunk(&mut self, stage: TransactionStage, reply: Option<&str>) {
        if stage == TransactionStage::Accepted && self.accepted_reply.as_deref() != reply {
            self.accepted_reply = reply.map(Into::into);
        }
        let transaction =
            self.open_transaction.take().map(|mail| mail.into_transaction(stage, self.accepted_reply.as_ref()));
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

    /// When the last line was said.
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
    /// A mail that the client gave up because nobody was to get it is one that we refused.
    fn into_transaction(self, stage: TransactionStage, accepted: Option<&Arc<str>>) -> Transaction {
        let Self { from, parameters, to, messages, refusal } = self;
        let (outcome, reply) = match stage {
            TransactionStage::Accepted if messages.is_empty() => (Outcome::Discarded, accepted.cloned()),
            TransactionStage::Accepted => (Outcome::Stored, accepted.cloned()),
            TransactionStage::Refused => (Outcome::Refused, refusal),
            TransactionStage::Started | TransactionStage::Abandoned if to.is_empty() && refusal.is_some() => {
                (Outcome::Refused, refusal)
            }
            // No reply has decided this.
            TransactionStage::Started | TransactionStage::Abandoned => (Outcome::Aborted, None),
        };
        Transaction { from, parameters, to, outcome, reply, messages }
    }
}

fn to_micros(time: Duration) -> u64 {
    // Without the wide division that `as_micros` takes.
    time.as_secs().saturating_mul(1_000_000).saturating_add(u64::from(time.subsec_micros()))
}
