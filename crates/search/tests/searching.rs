//! Search over a mailroom: what is stored is found, what is deleted is not, whatever happens to the index in between.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use restante_mail::address::{Address, Alphabet};
use restante_mail::envelope::{Envelope, Peer, Recipient};
use restante_mail::message::{MessageId, Summary};
use restante_mail::naming::Naming;
use restante_mailroom::hooks::Extensions;
use restante_mailroom::{DeliveryOutcome, Mailroom, Settings};
use restante_search::{Query, Search, SearchRequest, SearchResults};
use restante_store::disk::{self, DiskStore};
use restante_store::memory::MemoryStore;
use restante_store::{Limits, Store};
use restante_testdir::TestDir;
use restante_teststore::SharedStore;

const LONG: Duration = Duration::from_mins(1);

/// A mailroom with a search.
struct Room {
    mailroom: Arc<Mailroom>,
    search: Arc<Search>,
}

impl Room {
    fn over(store: Arc<dyn Store>, directory: Option<&Path>) -> Self {
        let search = Arc::new(Search::new(directory.map(Path::to_owned)));
        let extensions = Extensions { store_observers: vec![search.clone()], ..Extensions::default() };
        let mailroom = Arc::new(Mailroom::new(Settings::default(), store, extensions));
        search.start(&mailroom);
        Self { mailroom, search }
    }

    /// A node of a store that others share.
    fn following(store: Arc<dyn Store>, directory: Option<&Path>) -> Self {
        let room = Self::over(store, directory);
        let mailroom = room.mailroom.clone();
        tokio::spawn(async move { mailroom.follow_feed().await });
        room
    }

    fn in_memory(limits: Limits) -> Self {
        Self::over(Arc::new(MemoryStore::new(limits)), None)
    }

    fn in_directory(directory: &Path) -> Self {
        Self::over(Arc::new(DiskStore::open(directory, disk::Settings::default()).unwrap()), Some(directory))
    }

    async fn deliver(&self, mailbox: &str, text: &str) -> Summary {
        let address = Address::parse(&format!("{mailbox}@x.org"), Alphabet::Ascii).unwrap();
        let envelope = Envelope {
            peer: Peer { ip: None, helo: "client.test".into() },
            from: None,
            recipients: vec![Recipient::new(address, Naming::Local).unwrap()],
        };
        let mail = Bytes::from(format!("Subject: about {text}\r\n\r\nHello, this says {text}.\r\n"));
        match self.mailroom.deliver(&envelope, mail).await.unwrap() {
            DeliveryOutcome::Stored(mut copies) => copies.remove(0),
            DeliveryOutcome::Discarded => panic!("discarded"),
        }
    }

    async fn ask(&self, text: &str) -> SearchResults {
        self.ask_for(text, None, 1000).await
    }

    /// Asks until everything was looked at.
    async fn ask_for(&self, text: &str, before: Option<MessageId>, limit: usize) -> SearchResults {
        loop {
            let answer = self.ask_once_for(text, before, limit).await;
            if answer.is_complete {
                return answer;
            }
        }
    }

    async fn ask_once(&self, text: &str) -> SearchResults {
        self.ask_once_for(text, None, 1000).await
    }

    async fn ask_once_for(&self, text: &str, before: Option<MessageId>, limit: usize) -> SearchResults {
        let query = Query::parse(text, Timestamp::now()).unwrap();
        let is_permitted = Box::new(|_: &_| true);
        let question = SearchRequest { query, mailbox: None, is_permitted, before, limit };
        self.search.find(&self.mailroom, question).await.unwrap()
    }

    async fn found(&self, text: &str) -> Vec<MessageId> {
        self.ask(text).await.hits.iter().map(|hit| hit.summary.id).collect()
    }

    fn end(self) {
        self.search.shut_down(LONG, true);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_in_memory_is_indexed_from_the_first_question_on() {
    let room = Room::in_memory(Limits::default());
    let first = room.deliver("ann", "alpha").await;
    assert_eq!(room.search.counts(), restante_search::Counts::default(), "nobody has asked yet");
    assert_eq!(room.found("alpha").await, [first.id]);
    let second = room.deliver("bob", "alpha beta").await;
    assert_eq!(room.found("alpha").await, [second.id, first.id], "the newest comes first");
    assert_eq!(room.found("alpha -beta").await, [first.id]);
    assert_eq!(room.found("mailbox:bob").await, [second.id]);
    assert_eq!(room.found("gamma").await, []);
    assert_eq!(room.search.counts().indexed, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_deleted_evicted_or_marked_is_known() {
    let room = Room::in_memory(Limits { messages_per_mailbox: 2, ..Limits::default() });
    assert_eq!(room.found("alpha").await, []);
    let gone = room.deliver("ann", "alpha").await;
    let evicted = room.deliver("ann", "alpha").await;
    assert!(room.mailroom.remove(&gone.mailbox, gone.id).await.unwrap());
    assert_eq!(room.found("alpha").await, [evicted.id]);
    let (third, last) = (room.deliver("ann", "alpha").await, room.deliver("ann", "alpha").await);
    assert_eq!(room.found("alpha").await, [last.id, third.id]);
    assert!(room.mailroom.set_seen(&last.mailbox, last.id, true).await.unwrap());
    assert_eq!(room.found("is:seen").await, [last.id]);
    room.mailroom.set_seen_all(&last.mailbox, vec![last.id], false).await.unwrap();
    assert_eq!(room.found("is:unseen").await, [last.id, third.id]);
    room.mailroom.purge(&last.mailbox).await.unwrap();
    assert_eq!(room.found("").await, []);
    assert_eq!(room.search.counts().indexed, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_follow_each_other_and_hits_are_shown() {
    let room = Room::in_memory(Limits::default());
    let mut ids = Vec::new();
    for number in 0..5 {
        ids.insert(0, room.deliver("ann", &format!("word{number}")).await.id);
    }
    let (mut found, mut before) = (Vec::new(), None);
    loop {
        let page = room.ask_for("hello", before, 2).await;
        assert!(page.hits.len() <= 2);
        found.extend(page.hits.iter().map(|hit| hit.summary.id));
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    assert_eq!(found, ids);
    let answer = room.ask("subject:about word3").await;
    let [hit] = answer.hits.as_slice() else { panic!("{answer:?}") };
    let pieces: Vec<_> = hit.snippet.iter().map(|piece| (piece.text.as_str(), piece.is_hit)).collect();
    assert_eq!(pieces, [("Hello, this says ", false), ("word3", true), (".", false)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_permitted_mailboxes_are_searched() {
    let room = Room::in_memory(Limits::default());
    for number in 0..10 {
        room.deliver(if number % 5 == 0 { "ann" } else { "bob" }, "alpha").await;
    }
    room.ask("").await;
    let question = |mailbox: Option<&str>| SearchRequest {
        query: Query::parse("alpha", Timestamp::now()).unwrap(),
        mailbox: mailbox.map(|name| room.mailroom.mailbox(name).unwrap()),
        is_permitted: Box::new(|mailbox| mailbox.as_str() == "ann"),
        before: None,
        limit: 1,
    };
    let first = room.search.find(&room.mailroom, question(None)).await.unwrap();
    let rest = SearchRequest { before: first.next, ..question(None) };
    let second = room.search.find(&room.mailroom, rest).await.unwrap();
    assert_eq!((first.hits.len(), first.next.is_some()), (1, true));
    assert_eq!((second.hits.len(), second.next), (1, None));
    assert!(first.hits.iter().chain(&second.hits).all(|hit| hit.summary.mailbox.as_str() == "ann"));
    assert_eq!(room.search.find(&room.mailroom, question(Some("bob"))).await.unwrap().hits, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_on_disk_goes_on_where_it_was() {
    let dir = TestDir::new();
    let room = Room::in_directory(dir.path());
    let first = room.deliver("ann", "alpha").await;
    assert_eq!(room.found("alpha").await, [first.id]);
    room.end();

    // Somebody adds mail while nobody searches.
    let store = DiskStore::open(dir.path(), disk::Settings::default()).unwrap();
    let bare = Room::over(Arc::new(store), None);
    let second = bare.deliver("bob", "alpha").await;
    drop(bare);

    let room = Room::in_directory(dir.path());
    assert_eq!(room.found("alpha").await, [second.id, first.id]);
    room.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_crash_the_index_is_compared_with_the_store() {
    let dir = TestDir::new();
    let room = Room::in_directory(dir.path());
    let (gone, marked) = (room.deliver("ann", "alpha").await, room.deliver("ann", "alpha").await);
    assert_eq!(room.found("alpha").await, [marked.id, gone.id]);
    room.search.shut_down(LONG, false);
    drop(room);

    // What happens now the index hears nothing of.
    let store = DiskStore::open(dir.path(), disk::Settings::default()).unwrap();
    let bare = Room::over(Arc::new(store), None);
    assert!(bare.mailroom.remove(&gone.mailbox, gone.id).await.unwrap());
    assert!(bare.mailroom.set_seen(&marked.mailbox, marked.id, true).await.unwrap());
    let new = bare.deliver("bob", "alpha").await;
    drop(bare);

    let room = Room::in_directory(dir.path());
    assert_eq!(room.found("alpha").await, [new.id, marked.id]);
    assert_eq!(room.found("alpha is:seen").await, [marked.id]);
    assert_eq!(room.search.counts().indexed, 2, "what is gone is not in the index either");
    room.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_wrong_without_knowing_it_is_corrected_by_who_asks() {
    let dir = TestDir::new();
    let room = Room::in_directory(dir.path());
    let (gone, marked) = (room.deliver("ann", "alpha").await, room.deliver("ann", "alpha").await);
    assert_eq!(room.found("alpha").await, [marked.id, gone.id]);
    room.end();

    // What happens now the index hears nothing of, and it was told that it is right.
    let store = DiskStore::open(dir.path(), disk::Settings::default()).unwrap();
    let bare = Room::over(Arc::new(store), None);
    assert!(bare.mailroom.remove(&gone.mailbox, gone.id).await.unwrap());
    assert!(bare.mailroom.set_seen(&marked.mailbox, marked.id, true).await.unwrap());
    drop(bare);

    let room = Room::in_directory(dir.path());
    assert_eq!(room.found("alpha is:unseen").await, []);
    assert_eq!(room.found("alpha is:seen").await, [marked.id]);
    assert_eq!(room.search.counts().indexed, 1);
    room.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_makes_no_sense_is_made_again() {
    let dir = TestDir::new();
    let file = dir.path().join("search.db");
    let room = Room::in_directory(dir.path());
    let mail = room.deliver("ann", "alpha").await;
    assert_eq!(room.found("alpha").await, [mail.id]);
    room.end();
    let whole = fs::read(&file).unwrap();

    let other_version = {
        let mut bytes = whole.clone();
        bytes[60..64].copy_from_slice(&[0, 0, 0, 99]);
        bytes
    };
    let hole = {
        let mut bytes = whole.clone();
        bytes[4096..].fill(7);
        bytes
    };
    let cases = [
        ("rubbish", b"no database at all, whatever it is called".repeat(200)),
        ("empty", Vec::new()),
        ("cut", whole[..whole.len() / 2].to_vec()),
        ("another version", other_version),
        ("a hole", hole),
    ];
    for (case, bytes) in cases {
        fs::write(&file, bytes).unwrap();
        let room = Room::in_directory(dir.path());
        let answer = tokio::time::timeout(LONG, async {
            loop {
                let query = Query::parse("alpha", Timestamp::now()).unwrap();
                let question =
                    SearchRequest { query, mailbox: None, is_permitted: Box::new(|_| true), before: None, limit: 10 };
                // A damage that a question comes across is an error once.
                if let Ok(answer) = room.search.find(&room.mailroom, question).await
                    && answer.is_complete
                    && !answer.hits.is_empty()
                {
                    return answer;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        let answer = answer.await.unwrap_or_else(|_| panic!("{case}: it was not made again"));
        assert_eq!(answer.hits[0].summary.id, mail.id, "{case}");
        room.end();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_nobody_wants_is_thrown_away() {
    let dir = TestDir::new();
    let room = Room::in_directory(dir.path());
    room.deliver("ann", "alpha").await;
    room.ask("alpha").await;
    room.end();
    assert!(dir.path().join("search.db").exists());
    Search::delete_index(dir.path());
    let left = fs::read_dir(dir.path())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("search"));
    assert_eq!(left.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_other_nodes_do_is_known() {
    let store = SharedStore::new(Limits::default());
    let (near, far) = (store.node().await, store.node().await);
    let (here, there) = (Room::following(near.clone(), None), Room::following(far, None));
    let first = there.deliver("ann", "alpha").await;
    assert_eq!(here.found("alpha").await, [first.id]);
    let second = there.deliver("bob", "alpha").await;
    assert_eq!(here.found("alpha").await, [second.id, first.id]);
    there.mailroom.set_seen(&second.mailbox, second.id, true).await.unwrap();
    there.mailroom.remove(&first.mailbox, first.id).await.unwrap();
    let third = here.deliver("bob", "alpha").await;
    assert_eq!(here.found("alpha is:seen").await, [second.id]);
    assert_eq!(here.found("alpha is:unseen").await, [third.id]);
    assert_eq!(here.search.counts().indexed, 2);

    near.hold().await;
    let late = there.deliver("bob", "alpha").await;
    let answer = here.ask_once("alpha").await;
    assert_eq!((answer.hits.len(), answer.is_complete), (2, false), "it is not known yet, and that is said");
    near.release().await;
    assert_eq!(here.found("alpha is:unseen").await, [late.id, third.id]);

    near.hold().await;
    let lost = there.deliver("bob", "alpha").await;
    there.mailroom.remove(&late.mailbox, late.id).await.unwrap();
    near.discard_held().await;
    assert_eq!(here.found("alpha is:unseen").await, [lost.id, third.id], "also what nobody can tell any more");
    assert_eq!(here.search.counts().indexed, 3);
}

/// An index in a file is right after an end in good order, but others have deleted mail meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn what_other_nodes_did_while_this_one_was_away_is_found_out() {
    let (dir, store) = (TestDir::new(), SharedStore::new(Limits::default()));
    let there = Room::following(store.node().await, None);
    let here = Room::following(store.node().await, Some(dir.path()));
    let (gone, kept) = (there.deliver("ann", "alpha").await, there.deliver("ann", "alpha").await);
    assert_eq!(here.found("alpha").await, [kept.id, gone.id]);
    here.end();
    there.mailroom.remove(&gone.mailbox, gone.id).await.unwrap();
    there.mailroom.set_seen(&kept.mailbox, kept.id, true).await.unwrap();
    let here = Room::following(store.node().await, Some(dir.path()));
    assert_eq!(here.found("alpha").await, [kept.id]);
    assert_eq!(here.found("alpha is:seen").await, [kept.id]);
    assert_eq!(here.search.counts().indexed, 1);
    here.end();
}
