//! The rules of [`Journal`] as tests that every backend runs. [`run`] opens a new journal for each rule.
//! [`keeps_transcripts_across_restarts`] is for backends that survive the process.

use std::borrow::Cow;

use super::*;

/// A limit that no test reaches.
const PLENTY: usize = 1 << 20;

/// Runs every rule against journals that `open` creates with the size limit of the rule.
pub(super) async fn run<J: Journal>(open: impl AsyncFn(usize) -> J) {
    an_empty_journal_knows_nothing(&open(PLENTY).await).await;
    ids_ascend(&open(PLENTY).await);
    a_session_is_told_as_it_was_noted(&open(PLENTY).await).await;
    a_message_has_the_head_and_its_own_piece(&open(PLENTY).await).await;
    sessions_come_in_pages(&open(PLENTY).await).await;
    refused_ones_can_be_asked_for(&open(PLENTY).await).await;
    a_long_session_is_listed_by_its_end(&open(PLENTY).await).await;
    the_first_go_when_there_is_too_much(&open(20_000).await).await;
    what_is_too_old_goes(&open(PLENTY).await).await;
}

/// Returns a chunk of a session.
pub(super) fn chunk(session: u64, number: u32, text: &str) -> Chunk {
    let cover = SessionInfo {
        dialect: Dialect::Lmtp,
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
    Chunk { session: session.into(), number, at: second(session), info: Arc::new(cover), transaction: None, lines }
}

/// Returns a chunk with a stored message.
pub(super) fn mail_chunk(session: u64, number: u32, mailbox: &str, id: u64) -> Chunk {
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

fn changed(mut piece: Chunk, change: impl FnOnce(&mut SessionInfo)) -> Chunk {
    change(Arc::make_mut(&mut piece.info));
    piece
}

fn first(limit: usize) -> SessionPage {
    SessionPage { before: None, refused_only: false, limit }
}

async fn ids(journal: &impl Journal, page: SessionPage) -> Vec<u64> {
    journal.sessions(page).await.unwrap().iter().map(|transcript| transcript.session.number()).collect()
}

async fn an_empty_journal_knows_nothing(journal: &impl Journal) {
    assert_eq!(journal.sessions(first(10)).await.unwrap(), []);
    assert_eq!(journal.sessions(SessionPage { before: Some(u64::MAX.into()), ..first(10) }).await.unwrap(), []);
    assert_eq!(journal.session(7.into()).await.unwrap(), None);
    assert_eq!(journal.session(u64::MAX.into()).await.unwrap(), None);
    assert_eq!(journal.find_by_message(&"bob".to_owned().into(), 7.into()).await.unwrap(), None);
}

fn ids_ascend(journal: &impl Journal) {
    let noon = second(1);
    let given = [noon, noon, second(0)].map(|now| journal.start_session(now).number());
    assert!(given.is_sorted_by(|one, next| one < next), "{given:?}");
    // Within a millisecond: if there are several nodes, each uses only some of the numbers.
    assert!(given.iter().all(|number| number.abs_diff(1_000_000) < 1000), "{given:?}");
}

async fn a_session_is_told_as_it_was_noted(journal: &impl Journal) {
    let end = SessionEnd { at: Some(second(9)), reason: Cow::Borrowed("quit") };
    let pieces = [
        chunk(5, 0, "220 mx.test"),
        mail_chunk(5, 1, "bob", 70),
        changed(chunk(5, 2, "221 Bye"), |cover| cover.end = Some(end)),
    ];
    for piece in pieces.clone() {
        journal.append(piece);
    }
    journal.append(changed(chunk(6, 0, "a stranger"), |cover| {
        *cover = SessionInfo { client: None, helo: None, tls: None, user: None, ..cover.clone() };
    }));
    let told = journal.session(5.into()).await.unwrap().unwrap();
    assert_eq!(told.info, pieces[2].info, "the last word counts");
    let without_cover = |piece: &Chunk| (piece.number, piece.at, piece.transaction.clone(), piece.lines.clone());
    let as_noted: Vec<_> = pieces.iter().map(without_cover).collect();
    assert_eq!(told.chunks.iter().map(|piece| without_cover(piece)).collect::<Vec<_>>(), as_noted);
    let texts: Vec<&str> = told.lines().map(|line| line.text).collect();
    assert_eq!(texts, ["220 mx.test", "mail 1", "221 Bye"]);
    let stranger = journal.session(6.into()).await.unwrap().unwrap();
    assert_eq!((stranger.info.client, &stranger.info.tls, &stranger.info.helo), (None, &None, &None));
}

async fn a_message_has_the_head_and_its_own_piece(journal: &impl Journal) {
    for piece in [chunk(5, 0, "head"), mail_chunk(5, 1, "bob", 70), mail_chunk(5, 2, "bob", 80), chunk(5, 3, "tail")] {
        journal.append(piece);
    }
    for (mailbox, id, expected) in [("bob", 70, 1), ("other", 71, 1), ("bob", 80, 2)] {
        let told = journal.find_by_message(&mailbox.to_owned().into(), id.into()).await.unwrap().unwrap();
        let numbers: Vec<u32> = told.chunks.iter().map(|piece| piece.number).collect();
        assert_eq!((told.session.number(), numbers), (5, vec![0, expected]), "{mailbox} {id}");
        let texts: Vec<&str> = told.lines().map(|line| line.text).collect();
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

async fn sessions_come_in_pages(journal: &impl Journal) {
    for session in [3, 1, 5, 2, 4] {
        journal.append(chunk(session, 0, "head"));
    }
    assert_eq!(ids(journal, first(10)).await, [5, 4, 3, 2, 1]);
    assert_eq!(ids(journal, first(2)).await, [5, 4]);
    assert_eq!(ids(journal, SessionPage { before: Some(4.into()), ..first(2) }).await, [3, 2]);
    assert_eq!(ids(journal, SessionPage { before: Some(1.into()), ..first(2) }).await, []);
    assert_eq!(ids(journal, first(0)).await, []);
}

async fn refused_ones_can_be_asked_for(journal: &impl Journal) {
    journal.append(changed(chunk(1, 0, "554 no"), |cover| cover.refusals = 1));
    journal.append(chunk(2, 0, "220 yes"));
    journal.append(changed(chunk(2, 1, "550 no"), |cover| cover.refusals = 2));
    journal.append(chunk(3, 0, "220 yes"));
    assert_eq!(ids(journal, SessionPage { refused_only: true, ..first(10) }).await, [2, 1]);
    assert_eq!(ids(journal, SessionPage { refused_only: true, ..first(1) }).await, [2]);
    assert_eq!(ids(journal, SessionPage { refused_only: true, before: Some(2.into()), ..first(9) }).await, [1]);
}

async fn a_long_session_is_listed_by_its_end(journal: &impl Journal) {
    for number in 0..=u32::try_from(MAX_LISTED_CHUNKS).unwrap() {
        journal.append(chunk(1, number, "x"));
    }
    let listed = journal.sessions(first(1)).await.unwrap();
    let numbers: Vec<u32> = listed[0].chunks.iter().map(|piece| piece.number).collect();
    assert_eq!((numbers.len(), numbers.first(), numbers.last()), (MAX_LISTED_CHUNKS, Some(&1), Some(&100)));
    assert_eq!(journal.session(1.into()).await.unwrap().unwrap().chunks.len(), MAX_LISTED_CHUNKS + 1);
}

async fn the_first_go_when_there_is_too_much(journal: &impl Journal) {
    for session in 1..=100 {
        journal.append(chunk(session, 0, "head"));
        journal.append(changed(mail_chunk(session, 1, "bob", 10 * session), |cover| cover.refusals = 1));
    }
    let left = ids(journal, first(1000)).await;
    assert!((5..40).contains(&left.len()), "{}", left.len());
    let oldest = *left.last().unwrap();
    assert_eq!(left, (oldest..=100).rev().collect::<Vec<_>>(), "the latest are left");
    let bob = "bob".to_owned().into();
    assert!(journal.find_by_message(&bob, 1000.into()).await.unwrap().is_some());
    assert!(journal.find_by_message(&bob, 10.into()).await.unwrap().is_none());
    // A session may have lost its first chunk. The rest is still returned.
    let told = journal.session(oldest.into()).await.unwrap().unwrap();
    assert_eq!((told.chunks.last().unwrap().number, told.info.helo.as_deref()), (1, Some("client.test")));
}

async fn what_is_too_old_goes(journal: &impl Journal) {
    for session in 1..=9 {
        journal.append(mail_chunk(session, 1, "bob", 10 * session));
    }
    journal.expire_before(second(5));
    // This may take a moment.
    while ids(journal, first(10)).await.len() > 5 {
        tokio::task::yield_now().await;
    }
    assert_eq!(ids(journal, first(10)).await, [9, 8, 7, 6, 5]);
    assert!(journal.find_by_message(&"bob".to_owned().into(), 40.into()).await.unwrap().is_none());
}

/// Chunks are returned after the journal is opened again, even those that were appended just before it was closed.
pub(super) async fn what_was_noted_lasts<J: Journal>(open: impl AsyncFn() -> J) {
    let journal = open().await;
    let end = SessionEnd { at: Some(second(9)), reason: Cow::Borrowed("quit") };
    journal.append(chunk(5, 0, "head"));
    journal.append(changed(mail_chunk(5, 1, "bob", 70), |cover| cover.end = Some(end.clone())));
    journal.append(chunk(6, 0, "cut off"));
    drop(journal);
    let journal = open().await;
    let told = journal.find_by_message(&"bob".to_owned().into(), 70.into()).await.unwrap().unwrap();
    assert_eq!(told.lines().map(|line| line.text).collect::<Vec<_>>(), ["head", "mail 1"]);
    assert_eq!(told.chunks[1].transaction, mail_chunk(5, 1, "bob", 70).transaction);
    assert_eq!(told.info.end, Some(end));
    // A session without an end is over nevertheless.
    let cut_off = journal.session(6.into()).await.unwrap().unwrap();
    assert_eq!(cut_off.info.end, Some(SessionEnd { at: None, reason: Cow::Borrowed("lost") }));
    journal.append(chunk(7, 0, "later"));
    assert_eq!(ids(&journal, first(10)).await, [7, 6, 5]);
}
