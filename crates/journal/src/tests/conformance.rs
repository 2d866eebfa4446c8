//! The rules of [`Journal`] as tests that every backend runs. [`run`] opens a new journal for each rule.
//! [`keeps_transcripts_across_restarts`] is for backends that survive the process.

use std::borrow::Cow;

use crate::*;

/// A size limit that no test reaches.
const LARGE_LIMIT: usize = 1 << 20;

/// Runs every rule against journals that `open` creates with the size limit of the rule.
pub(crate) async fn run(open: impl AsyncFn(usize) -> Journal) {
    empty_journal_returns_nothing(&open(LARGE_LIMIT).await).await;
    ids_ascend(&open(LARGE_LIMIT).await);
    session_is_returned_as_recorded(&open(LARGE_LIMIT).await).await;
    find_by_message_returns_first_chunk_and_its_own(&open(LARGE_LIMIT).await).await;
    sessions_are_paged(&open(LARGE_LIMIT).await).await;
    can_list_sessions_with_refusals_only(&open(LARGE_LIMIT).await).await;
    list_contains_last_chunks_of_long_session(&open(LARGE_LIMIT).await).await;
    all_messages_of_session_are_counted(&open(LARGE_LIMIT).await, &open(20_000).await).await;
    evicts_oldest_chunks(&open(20_000).await).await;
    expires_old_chunks(&open(LARGE_LIMIT).await).await;
}

/// Returns a chunk of a session.
pub(crate) fn chunk(session: u64, number: u32, text: &str) -> Chunk {
    let info = SessionInfo {
        protocol: Protocol::Lmtp,
        client: Some([192, 0, 2, 1].into()),
        helo: Some("client.test".to_owned()),
        tls: Some(Tls { version: Cow::Borrowed("TLSv1.3"), cipher: Cow::Borrowed("TLS_AES_256_GCM_SHA384") }),
        user: Some("james".to_owned()),
        started: second(session),
        end: None,
        refusals: 0,
    };
    let mut lines = TranscriptLines::default();
    lines.push(TranscriptLine { micros: 7, side: Side::Server, text });
    Chunk { session: session.into(), number, at: second(session), info: Arc::new(info), transaction: None, lines }
}

/// Returns a chunk with a stored message.
pub(crate) fn mail_chunk(session: u64, number: u32, mailbox: &str, id: u64) -> Chunk {
    let transaction = Transaction {
        from: "a@x.test".to_owned(),
        parameters: "RET=HDRS ENVID=1".to_owned(),
        to: vec![
            Recipient { address: "bob@y.test".to_owned(), parameters: "NOTIFY=NEVER".to_owned() },
            Recipient { address: "\"a b\"@y.test".to_owned(), parameters: String::new() },
        ],
        outcome: Outcome::Stored,
        reply: Some("250 2.0.0 Mail accepted".into()),
        messages: vec![(mailbox.to_owned().into(), id.into()), ("other".to_owned().into(), (id + 1).into())],
    };
    Chunk { transaction: Some(transaction), ..chunk(session, number, &format!("mail {number}")) }
}

fn second(second: u64) -> Timestamp {
    Timestamp::from_second(i64::try_from(second).unwrap()).unwrap()
}

/// Changes the session properties of a chunk.
fn with_info(mut chunk: Chunk, change: impl FnOnce(&mut SessionInfo)) -> Chunk {
    change(Arc::make_mut(&mut chunk.info));
    chunk
}

fn first_page(limit: usize) -> SessionPage {
    SessionPage { before: None, refused_only: false, limit }
}

async fn ids(journal: &Journal, page: SessionPage) -> Vec<u64> {
    journal.sessions(page).await.unwrap().iter().map(|transcript| transcript.session.number()).collect()
}

async fn empty_journal_returns_nothing(journal: &Journal) {
    assert_eq!(journal.sessions(first_page(10)).await.unwrap(), []);
    assert_eq!(journal.sessions(SessionPage { before: Some(u64::MAX.into()), ..first_page(10) }).await.unwrap(), []);
    assert_eq!(journal.session(7.into()).await.unwrap(), None);
    assert_eq!(journal.session(u64::MAX.into()).await.unwrap(), None);
    assert_eq!(journal.find_by_message(&"bob".to_owned().into(), 7.into()).await.unwrap(), None);
}

fn ids_ascend(journal: &Journal) {
    let start = second(1);
    let assigned = [start, start, second(0)].map(|now| journal.start_session(now).number());
    assert!(assigned.is_sorted_by(|one, next| one < next), "{assigned:?}");
    // Within a millisecond: if there are several nodes, each uses only some of the numbers.
    assert!(assigned.iter().all(|number| number.abs_diff(1_000_000) < 1000), "{assigned:?}");
}

async fn session_is_returned_as_recorded(journal: &Journal) {
    let end = SessionEnd { at: Some(second(9)), reason: Cow::Borrowed("quit") };
    let chunks = [
        chunk(5, 0, "220 mx.test"),
        mail_chunk(5, 1, "bob", 70),
        with_info(chunk(5, 2, "221 Bye"), |info| info.end = Some(end)),
    ];
    for chunk in chunks.clone() {
        journal.append(chunk);
    }
    journal.append(with_info(chunk(6, 0, "anonymous"), |info| {
        *info = SessionInfo { client: None, helo: None, tls: None, user: None, ..info.clone() };
    }));
    let transcript = journal.session(5.into()).await.unwrap().unwrap();
    assert_eq!(transcript.info, chunks[2].info, "the properties of the last chunk count");
    let without_info = |chunk: &Chunk| (chunk.number, chunk.at, chunk.transaction.clone(), chunk.lines.clone());
    let expected: Vec<_> = chunks.iter().map(without_info).collect();
    assert_eq!(transcript.chunks.iter().map(|chunk| without_info(chunk)).collect::<Vec<_>>(), expected);
    let texts: Vec<&str> = transcript.lines().map(|line| line.text).collect();
    assert_eq!(texts, ["220 mx.test", "mail 1", "221 Bye"]);
    let anonymous = journal.session(6.into()).await.unwrap().unwrap();
    assert_eq!((anonymous.info.client, &anonymous.info.tls, &anonymous.info.helo), (None, &None, &None));
}

async fn find_by_message_returns_first_chunk_and_its_own(journal: &Journal) {
    for chunk in [chunk(5, 0, "head"), mail_chunk(5, 1, "bob", 70), mail_chunk(5, 2, "bob", 80), chunk(5, 3, "tail")] {
        journal.append(chunk);
    }
    for (mailbox, id, expected) in [("bob", 70, 1), ("other", 71, 1), ("bob", 80, 2)] {
        let transcript = journal.find_by_message(&mailbox.to_owned().into(), id.into()).await.unwrap().unwrap();
        let numbers: Vec<u32> = transcript.chunks.iter().map(|chunk| chunk.number).collect();
        assert_eq!((transcript.session.number(), numbers), (5, vec![0, expected]), "{mailbox} {id}");
        let texts: Vec<&str> = transcript.lines().map(|line| line.text).collect();
        assert_eq!(texts, ["head", &format!("mail {expected}")]);
    }
    for (mailbox, id) in [("bob", 71), ("bob", 1), ("eve", 70)] {
        assert_eq!(
            journal.find_by_message(&mailbox.to_owned().into(), id.into()).await.unwrap(),
            None,
            "{mailbox} {id}"
        );
    }
}

async fn sessions_are_paged(journal: &Journal) {
    for session in [3, 1, 5, 2, 4] {
        journal.append(chunk(session, 0, "head"));
    }
    assert_eq!(ids(journal, first_page(10)).await, [5, 4, 3, 2, 1]);
    assert_eq!(ids(journal, first_page(2)).await, [5, 4]);
    assert_eq!(ids(journal, SessionPage { before: Some(4.into()), ..first_page(2) }).await, [3, 2]);
    assert_eq!(ids(journal, SessionPage { before: Some(1.into()), ..first_page(2) }).await, [0; 0]);
    assert_eq!(ids(journal, first_page(0)).await, [0; 0]);
}

async fn can_list_sessions_with_refusals_only(journal: &Journal) {
    journal.append(with_info(chunk(1, 0, "554 no"), |info| info.refusals = 1));
    journal.append(chunk(2, 0, "220 yes"));
    journal.append(with_info(chunk(2, 1, "550 no"), |info| info.refusals = 2));
    journal.append(chunk(3, 0, "220 yes"));
    assert_eq!(ids(journal, SessionPage { refused_only: true, ..first_page(10) }).await, [2, 1]);
    assert_eq!(ids(journal, SessionPage { refused_only: true, ..first_page(1) }).await, [2]);
    assert_eq!(ids(journal, SessionPage { refused_only: true, before: Some(2.into()), ..first_page(9) }).await, [1]);
}

async fn list_contains_last_chunks_of_long_session(journal: &Journal) {
    for number in 0..=u32::try_from(MAX_LISTED_CHUNKS).unwrap() {
        journal.append(chunk(1, number, "x"));
    }
    let listed = journal.sessions(first_page(1)).await.unwrap();
    let numbers: Vec<u32> = listed[0].chunks.iter().map(|chunk| chunk.number).collect();
    assert_eq!((numbers.len(), numbers.first(), numbers.last()), (MAX_LISTED_CHUNKS, Some(&1), Some(&100)));
    assert_eq!(journal.session(1.into()).await.unwrap().unwrap().chunks.len(), MAX_LISTED_CHUNKS + 1);
}

async fn all_messages_of_session_are_counted(large: &Journal, small: &Journal) {
    for journal in [large, small] {
        let count = async || {
            let listed = journal.sessions(first_page(1)).await.unwrap();
            let session = journal.session(1.into()).await.unwrap().unwrap();
            assert_eq!(listed[0].transaction_count(), session.transaction_count());
            session.transaction_count()
        };
        journal.append(chunk(1, 0, "head"));
        assert_eq!(count().await, 0);
        for number in 1..=250 {
            journal.append(mail_chunk(1, number, "bob", 10 * u64::from(number)));
        }
        assert_eq!(count().await, 250);
        journal.append(chunk(1, 251, "tail"));
        assert_eq!(count().await, 250);
    }
    let transactions =
        async |journal: &Journal| journal.session(1.into()).await.unwrap().unwrap().transactions().count();
    assert_eq!(transactions(large).await, 250);
    assert!(transactions(small).await < 250, "the first ones are evicted");
}

async fn evicts_oldest_chunks(journal: &Journal) {
    for session in 1..=100 {
        journal.append(chunk(session, 0, "head"));
        journal.append(with_info(mail_chunk(session, 1, "bob", 10 * session), |info| info.refusals = 1));
    }
    let remaining = ids(journal, first_page(1000)).await;
    assert!((5..40).contains(&remaining.len()), "{}", remaining.len());
    let oldest = *remaining.last().unwrap();
    assert_eq!(remaining, (oldest..=100).rev().collect::<Vec<_>>(), "the latest are left");
    let bob = "bob".to_owned().into();
    assert!(journal.find_by_message(&bob, 1000.into()).await.unwrap().is_some());
    assert!(journal.find_by_message(&bob, 10.into()).await.unwrap().is_none());
    // A session may have lost its first chunk. The rest is still returned.
    let transcript = journal.session(oldest.into()).await.unwrap().unwrap();
    assert_eq!((transcript.chunks.last().unwrap().number, transcript.info.helo.as_deref()), (1, Some("client.test")));
}

async fn expires_old_chunks(journal: &Journal) {
    for session in 1..=9 {
        journal.append(mail_chunk(session, 1, "bob", 10 * session));
    }
    journal.expire_before(second(5));
    // This may take a moment.
    while ids(journal, first_page(10)).await.len() > 5 {
        tokio::task::yield_now().await;
    }
    assert_eq!(ids(journal, first_page(10)).await, [9, 8, 7, 6, 5]);
    assert!(journal.find_by_message(&"bob".to_owned().into(), 40.into()).await.unwrap().is_none());
}

/// Chunks are returned after the journal is opened again, even those that were appended just before it was closed.
pub(crate) async fn keeps_transcripts_across_restarts(open: impl AsyncFn() -> Journal) {
    let journal = open().await;
    let end = SessionEnd { at: Some(second(9)), reason: Cow::Borrowed("quit") };
    journal.append(chunk(5, 0, "head"));
    journal.append(with_info(mail_chunk(5, 1, "bob", 70), |info| info.end = Some(end.clone())));
    journal.append(chunk(6, 0, "no end"));
    drop(journal);
    let journal = open().await;
    let transcript = journal.find_by_message(&"bob".to_owned().into(), 70.into()).await.unwrap().unwrap();
    assert_eq!(transcript.lines().map(|line| line.text).collect::<Vec<_>>(), ["head", "mail 1"]);
    assert_eq!(transcript.chunks[1].transaction, mail_chunk(5, 1, "bob", 70).transaction);
    assert_eq!(transcript.info.end, Some(end));
    // A session without an end is over nevertheless.
    let without_end = journal.session(6.into()).await.unwrap().unwrap();
    assert_eq!(without_end.info.end, Some(SessionEnd { at: None, reason: Cow::Borrowed("lost") }));
    journal.append(chunk(7, 0, "later"));
    assert_eq!(ids(&journal, first_page(10)).await, [7, 6, 5]);
}

/// A session whose chunks are stored in several groups is returned like any other.
pub(crate) async fn long_session_is_read_after_restart(open: impl AsyncFn() -> Journal) {
    const MAILS: u32 = 300;
    let journal = open().await;
    journal.append(chunk(5, 0, "head"));
    for number in 1..=MAILS {
        journal.append(mail_chunk(5, number, "bob", 10 * u64::from(number)));
    }
    drop(journal);
    let journal = open().await;
    let session = journal.session(5.into()).await.unwrap().unwrap();
    assert!(session.chunks.iter().map(|chunk| chunk.number).eq(0..=MAILS));
    assert_eq!((session.lines().count(), session.lines().last().unwrap().text), (301, "mail 300"));
    let listed = journal.sessions(first_page(1)).await.unwrap();
    assert!(listed[0].chunks.iter().map(|chunk| chunk.number).eq(MAILS - 99..=MAILS), "the last hundred");
    for number in [1_u32, 2, 99, 100, 101, 150, 299, 300] {
        let id = (10 * u64::from(number)).into();
        let transcript = journal.find_by_message(&"bob".to_owned().into(), id).await.unwrap().unwrap();
        let texts: Vec<&str> = transcript.lines().map(|line| line.text).collect();
        assert_eq!(texts, ["head", &format!("mail {number}")]);
    }
}
