//! Sessions and transcripts for a journal.

use restante_journal::{
    Chunk, Outcome, Protocol, Recipient, SessionInfo, Side, Transaction, TranscriptLine, TranscriptLines,
};

use super::*;

pub(crate) fn session_info(session: u64) -> SessionInfo {
    SessionInfo {
        protocol: Protocol::Smtp,
        client: Some([192, 0, 2, 1].into()),
        helo: None,
        tls: None,
        user: None,
        started: Timestamp::from_microsecond(session.cast_signed()).unwrap(),
        end: None,
        refusals: 0,
    }
}

pub(crate) fn chunk(session: u64, number: u32, info: SessionInfo, entries: &[(u64, Side, &str)]) -> Chunk {
    let mut lines = TranscriptLines::default();
    for &(micros, side, text) in entries {
        lines.push(TranscriptLine { micros, side, text });
    }
    let at = Timestamp::UNIX_EPOCH;
    Chunk { session: session.into(), number, at, info: Arc::new(info), transaction: None, lines }
}

pub(crate) fn transaction(messages: &[(&str, u64)]) -> Transaction {
    Transaction {
        from: "a@example.org".to_owned(),
        parameters: "SIZE=22 RET=HDRS".to_owned(),
        to: vec![Recipient { address: "test@example.org".to_owned(), parameters: "NOTIFY=NEVER".to_owned() }],
        outcome: Outcome::Stored,
        reply: Some("250 2.0.0 Mail accepted".into()),
        messages: messages.iter().map(|(mailbox, id)| ((*mailbox).to_owned().into(), (*id).into())).collect(),
    }
}
