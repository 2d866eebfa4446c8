//! Searches through a mailroom: stored messages are found and deleted ones are not, whatever happens to the index.

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
use restante_store::disk::{self, DiskStore};
use restante_store::memory::MemoryStore;
use restante_store::{CopyKey, Limits, Store};
use restante_testdir::TestDir;
use restante_teststore::SharedStore;

use crate::{Query, Search, SearchError, SearchRequest, SearchResults};

const LONG: Duration = Duration::from_mins(1);

/// A mailroom with a search.
struct Fixture {
    mailroom: Arc<Mailroom>,
    search: Arc<Search>,
}

impl Fixture {
    fn with_store(store: Arc<dyn Store>, directory: Option<&Path>) -> Self {
        let search = Arc::new(Search::new(directory.map(Path::to_owned)));
        let extensions = Extensions { store_observers: vec![search.clone()], ..Extensions::default() };
        let mailroom = Arc::new(Mailroom::new(Settings::default(), store, extensions));
        search.start(&mailroom);
        Self { mailroom, search }
    }

    /// Creates a node of a shared store.
    fn shared_node(store: Arc<dyn Store>, directory: Option<&Path>) -> Self {
        let fixture = Self::with_store(store, directory);
        let mailroom = fixture.mailroom.clone();
        tokio::spawn(async move { mailroom.follow_feed().await });
        fixture
    }

    fn in_memory(limits: Limits) -> Self {
        Self::with_store(Arc::new(MemoryStore::new(limits)), None)
    }

    fn in_directory(directory: &Path) -> Self {
        Self::with_store(Arc::new(DiskStore::open(directory, disk::Settings::default()).unwrap()), Some(directory))
    }

    async fn deliver(&self, mailbox: &str, text: &str) -> Summary {
        let address = Address::parse(&format!("{mailbox}@x.org"), Alphabet::Ascii).unwrap();
        let envelope = Envelope {
            peer: Peer { ip: None, helo: "client.test".into() },
            login: None,
            key: None,
            listener: None,
            from: None,
            recipients: vec![Recipient::new(address, Naming::Local).unwrap()],
        };
        let source = Bytes::from(format!("Subject: about {text}\r\n\r\nHello, this says {text}.\r\n"));
        match self.mailroom.deliver(&envelope, source).await.unwrap() {
            DeliveryOutcome::Stored(mut copies) => copies.remove(0),
            outcome => panic!("{outcome:?}"),
        }
    }

    async fn find(&self, text: &str) -> SearchResults {
        self.find_page(text, None, 1000).await
    }

    /// Repeats the search until the result is complete.
    async fn find_page(&self, text: &str, before: Option<MessageId>, limit: usize) -> SearchResults {
        loop {
            let results = self.find_page_once(text, before, limit).await.unwrap();
            if results.is_complete {
                return results;
            }
        }
    }

    async fn find_once(&self, text: &str) -> Result<SearchResults, SearchError> {
        self.find_page_once(text, None, 1000).await
    }

    async fn find_page_once(
        &self,
        text: &str,
        before: Option<MessageId>,
        limit: usize,
    ) -> Result<SearchResults, SearchError> {
        let query = Query::parse(text, Timestamp::now()).unwrap();
        let is_permitted = Box::new(|_: &_| true);
        let request = SearchRequest { query, mailbox: None, is_permitted, before, limit, one_per_message: false };
        self.search.find(&self.mailroom, request).await
    }

    async fn find_ids(&self, text: &str) -> Vec<MessageId> {
        self.find(text).await.hits.iter().map(|hit| hit.summary.id).collect()
    }

    fn shut_down(self) {
        self.search.shut_down(LONG, true);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn index_in_memory_is_built_at_the_first_search() {
    let fixture = Fixture::in_memory(Limits::default());
    let first = fixture.deliver("ann", "alpha").await;
    assert_eq!(fixture.search.counts(), crate::Counts::default(), "there was no search yet");
    assert_eq!(fixture.find_ids("alpha").await, [first.id]);
    let second = fixture.deliver("bob", "alpha beta").await;
    assert_eq!(fixture.find_ids("alpha").await, [second.id, first.id], "the newest comes first");
    assert_eq!(fixture.find_ids("alpha -beta").await, [first.id]);
    assert_eq!(fixture.find_ids("mailbox:bob").await, [second.id]);
    assert_eq!(fixture.find_ids("gamma").await, []);
    assert_eq!(fixture.search.counts().indexed, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn index_follows_deletions_evictions_and_read_marks() {
    let fixture = Fixture::in_memory(Limits { messages_per_mailbox: 2, ..Limits::default() });
    assert_eq!(fixture.find_ids("alpha").await, []);
    let deleted = fixture.deliver("ann", "alpha").await;
    let evicted = fixture.deliver("ann", "alpha").await;
    assert!(fixture.mailroom.remove(&deleted.mailbox, deleted.id).await.unwrap());
    assert_eq!(fixture.find_ids("alpha").await, [evicted.id]);
    let (third, last) = (fixture.deliver("ann", "alpha").await, fixture.deliver("ann", "alpha").await);
    assert_eq!(fixture.find_ids("alpha").await, [last.id, third.id]);
    assert!(fixture.mailroom.set_seen(&last.mailbox, last.id, true).await.unwrap());
    assert_eq!(fixture.find_ids("is:seen").await, [last.id]);
    fixture.mailroom.mark_copies(vec![CopyKey::from(&last)], false).await.unwrap();
    assert_eq!(fixture.find_ids("is:unseen").await, [last.id, third.id]);
    fixture.mailroom.purge(&last.mailbox).await.unwrap();
    assert_eq!(fixture.find_ids("").await, []);
    assert_eq!(fixture.search.counts().indexed, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_pages_with_excerpts() {
    let fixture = Fixture::in_memory(Limits::default());
    let mut ids = Vec::new();
    for number in 0..5 {
        ids.insert(0, fixture.deliver("ann", &format!("word{number}")).await.id);
    }
    let (mut found_ids, mut before) = (Vec::new(), None);
    loop {
        let page = fixture.find_page("hello", before, 2).await;
        assert!(page.hits.len() <= 2);
        found_ids.extend(page.hits.iter().map(|hit| hit.summary.id));
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    assert_eq!(found_ids, ids);
    let results = fixture.find("subject:about word3").await;
    let [hit] = results.hits.as_slice() else { panic!("{results:?}") };
    let parts: Vec<_> = hit.excerpt.iter().map(|part| (part.text.as_str(), part.is_hit)).collect();
    assert_eq!(parts, [("Hello, this says ", false), ("word3", true), (".", false)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn words_are_prefixes_unless_quoted() {
    let fixture = Fixture::in_memory(Limits::default());
    let message = fixture.deliver("ann", "verification by ann@shop.example").await;
    for text in ["verific", "shop.exa", "\"verification\"", "subject:verif", "header:Subject=shop.exa", "v", "say"] {
        assert_eq!(fixture.find_ids(text).await, [message.id], "{text}");
    }
    for text in ["\"verific\"", "\"shop.exa\"", "fication", "sho.example", "-verific", "subject:\"verif\""] {
        assert_eq!(fixture.find_ids(text).await, [], "{text}");
    }
    let results = fixture.find("verific").await;
    let hits: Vec<_> =
        results.hits[0].excerpt.iter().filter(|part| part.is_hit).map(|part| part.text.as_str()).collect();
    assert_eq!(hits, ["verification"], "the whole word is highlighted");
}

#[tokio::test(flavor = "multi_thread")]
async fn header_fields_that_are_not_indexed_are_read_from_the_messages() {
    let dir = TestDir::new();
    for fixture in [Fixture::in_memory(Limits::default()), Fixture::in_directory(dir.path())] {
        let mut ids = Vec::new();
        for mailbox in ["ann", "bob", "carla", "ann"] {
            ids.insert(0, fixture.deliver(mailbox, "alpha").await.id);
        }
        assert_eq!(fixture.find_ids("header:Received=client.te").await, ids);
        assert_eq!(fixture.find_ids("header:Received=ann").await, [ids[0], ids[3]], "the line names the mailbox");
        assert_eq!(fixture.find_ids("alpha -header:Received=ann").await, [ids[1], ids[2]]);
        assert_eq!(fixture.find_ids("header:Received=nothing or mailbox:bob").await, [ids[2]]);
        assert_eq!(fixture.find_ids("header:Received").await, ids);
        let page = fixture.find_page("header:Received=client", None, 3).await;
        assert_eq!((page.hits.len(), page.next), (3, Some(ids[2])));
        assert_eq!(fixture.find_page("header:Received=client", page.next, 3).await.hits.len(), 1);
        fixture.shut_down();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_message_matches_no_phrase_of_its_content_and_has_no_excerpt() {
    let dir = TestDir::new();
    // Without a cache.
    let settings = disk::Settings { cache_bytes: 0, ..disk::Settings::default() };
    let fixture = Fixture::with_store(Arc::new(DiskStore::open(dir.path(), settings).unwrap()), None);
    let damaged = fixture.deliver("ann", "alpha").await;
    assert_eq!(fixture.find_ids("body:\"says alpha\"").await, [damaged.id]);
    for segment in fs::read_dir(dir.path().join("segments")).unwrap() {
        fs::write(segment.unwrap().path(), "garbage").unwrap();
    }
    // A phrase of a summary needs no source.
    assert_eq!(fixture.find_ids("subject:\"about alpha\"").await, [damaged.id]);
    assert_eq!(fixture.find_ids("subject:\"alpha about\"").await, []);
    assert_eq!(fixture.find_ids("body:\"says alpha\"").await, []);
    assert!(fixture.find("alpha").await.hits[0].excerpt.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn only_permitted_mailboxes_are_searched() {
    let fixture = Fixture::in_memory(Limits::default());
    for number in 0..10 {
        fixture.deliver(if number % 5 == 0 { "ann" } else { "bob" }, "alpha").await;
    }
    fixture.find("").await;
    let request = |mailbox: Option<&str>| SearchRequest {
        query: Query::parse("alpha", Timestamp::now()).unwrap(),
        mailbox: mailbox.map(|name| fixture.mailroom.mailbox(name).unwrap()),
        is_permitted: Box::new(|mailbox| mailbox.as_str() == "ann"),
        before: None,
        limit: 1,
        one_per_message: false,
    };
    let first = fixture.search.find(&fixture.mailroom, request(None)).await.unwrap();
    let rest = SearchRequest { before: first.next, ..request(None) };
    let second = fixture.search.find(&fixture.mailroom, rest).await.unwrap();
    assert_eq!((first.hits.len(), first.next.is_some()), (1, true));
    assert_eq!((second.hits.len(), second.next), (1, None));
    assert!(first.hits.iter().chain(&second.hits).all(|hit| hit.summary.mailbox.as_str() == "ann"));
    assert_eq!(fixture.search.find(&fixture.mailroom, request(Some("bob"))).await.unwrap().hits, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn index_on_disk_is_continued_after_restart() {
    let dir = TestDir::new();
    let fixture = Fixture::in_directory(dir.path());
    let first = fixture.deliver("ann", "alpha").await;
    assert_eq!(fixture.find_ids("alpha").await, [first.id]);
    fixture.shut_down();

    // A message is stored while there is no search.
    let store = DiskStore::open(dir.path(), disk::Settings::default()).unwrap();
    let unindexed = Fixture::with_store(Arc::new(store), None);
    let second = unindexed.deliver("bob", "alpha").await;
    drop(unindexed);

    let fixture = Fixture::in_directory(dir.path());
    assert_eq!(fixture.find_ids("alpha").await, [second.id, first.id]);
    fixture.shut_down();
}

#[tokio::test(flavor = "multi_thread")]
async fn index_is_compared_with_the_store_after_a_crash() {
    let dir = TestDir::new();
    let fixture = Fixture::in_directory(dir.path());
    let (deleted, marked) = (fixture.deliver("ann", "alpha").await, fixture.deliver("ann", "alpha").await);
    assert_eq!(fixture.find_ids("alpha").await, [marked.id, deleted.id]);
    fixture.search.shut_down(LONG, false);
    drop(fixture);

    // The index does not see these changes.
    let store = DiskStore::open(dir.path(), disk::Settings::default()).unwrap();
    let unindexed = Fixture::with_store(Arc::new(store), None);
    assert!(unindexed.mailroom.remove(&deleted.mailbox, deleted.id).await.unwrap());
    assert!(unindexed.mailroom.set_seen(&marked.mailbox, marked.id, true).await.unwrap());
    let new = unindexed.deliver("bob", "alpha").await;
    drop(unindexed);

    let fixture = Fixture::in_directory(dir.path());
    assert_eq!(fixture.find_ids("alpha").await, [new.id, marked.id]);
    assert_eq!(fixture.find_ids("alpha is:seen").await, [marked.id]);
    assert_eq!(fixture.search.counts().indexed, 2, "deleted messages are not in the index");
    fixture.shut_down();
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_correct_wrong_index_entries() {
    let dir = TestDir::new();
    let fixture = Fixture::in_directory(dir.path());
    let (deleted, marked) = (fixture.deliver("ann", "alpha").await, fixture.deliver("ann", "alpha").await);
    assert_eq!(fixture.find_ids("alpha").await, [marked.id, deleted.id]);
    fixture.shut_down();

    // The index does not see these changes, and it is marked as complete.
    let store = DiskStore::open(dir.path(), disk::Settings::default()).unwrap();
    let unindexed = Fixture::with_store(Arc::new(store), None);
    assert!(unindexed.mailroom.remove(&deleted.mailbox, deleted.id).await.unwrap());
    assert!(unindexed.mailroom.set_seen(&marked.mailbox, marked.id, true).await.unwrap());
    drop(unindexed);

    let fixture = Fixture::in_directory(dir.path());
    assert_eq!(fixture.find_ids("alpha is:unseen").await, []);
    assert_eq!(fixture.find_ids("alpha is:seen").await, [marked.id]);
    assert_eq!(fixture.search.counts().indexed, 1);
    fixture.shut_down();
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_index_is_rebuilt() {
    let dir = TestDir::new();
    let file = dir.path().join("search.db");
    let fixture = Fixture::in_directory(dir.path());
    let message = fixture.deliver("ann", "alpha").await;
    assert_eq!(fixture.find_ids("alpha").await, [message.id]);
    fixture.shut_down();
    let original = fs::read(&file).unwrap();

    let other_version = {
        let mut bytes = original.clone();
        bytes[60..64].copy_from_slice(&[0, 0, 0, 99]);
        bytes
    };
    let with_hole = {
        let mut bytes = original.clone();
        bytes[4096..].fill(7);
        bytes
    };
    let cases = [
        ("garbage", b"this is not a database, despite its name.".repeat(200)),
        ("empty", Vec::new()),
        ("truncated", original[..original.len() / 2].to_vec()),
        ("another version", other_version),
        ("a hole", with_hole),
    ];
    for (case, bytes) in cases {
        fs::write(&file, bytes).unwrap();
        let fixture = Fixture::in_directory(dir.path());
        let results = tokio::time::timeout(LONG, async {
            loop {
                // A search that finds damage fails once.
                if let Ok(results) = fixture.find_once("alpha").await
                    && results.is_complete
                    && !results.hits.is_empty()
                {
                    return results;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        let results = results.await.unwrap_or_else(|_| panic!("{case}: it was not rebuilt"));
        assert_eq!(results.hits[0].summary.id, message.id, "{case}");
        fixture.shut_down();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn delete_index_removes_all_files() {
    let dir = TestDir::new();
    let fixture = Fixture::in_directory(dir.path());
    fixture.deliver("ann", "alpha").await;
    fixture.find("alpha").await;
    fixture.shut_down();
    assert!(dir.path().join("search.db").exists());
    Search::delete_index(dir.path());
    let remaining = fs::read_dir(dir.path())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("search"));
    assert_eq!(remaining.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn index_follows_changes_of_other_nodes() {
    let store = SharedStore::new(Limits::default());
    let (local_store, remote_store) = (store.node().await, store.node().await);
    let local = Fixture::shared_node(local_store.clone(), None);
    let remote = Fixture::shared_node(remote_store, None);
    let first = remote.deliver("ann", "alpha").await;
    assert_eq!(local.find_ids("alpha").await, [first.id]);
    let second = remote.deliver("bob", "alpha").await;
    assert_eq!(local.find_ids("alpha").await, [second.id, first.id]);
    remote.mailroom.set_seen(&second.mailbox, second.id, true).await.unwrap();
    remote.mailroom.remove(&first.mailbox, first.id).await.unwrap();
    let third = local.deliver("bob", "alpha").await;
    assert_eq!(local.find_ids("alpha is:seen").await, [second.id]);
    assert_eq!(local.find_ids("alpha is:unseen").await, [third.id]);
    assert_eq!(local.search.counts().indexed, 2);

    local_store.hold().await;
    let late = remote.deliver("bob", "alpha").await;
    let results = local.find_once("alpha").await.unwrap();
    assert_eq!((results.hits.len(), results.is_complete), (2, false), "the result is reported as incomplete");
    local_store.release().await;
    assert_eq!(local.find_ids("alpha is:unseen").await, [late.id, third.id]);

    local_store.hold().await;
    let lost = remote.deliver("bob", "alpha").await;
    remote.mailroom.remove(&late.mailbox, late.id).await.unwrap();
    local_store.discard_held().await;
    assert_eq!(local.find_ids("alpha is:unseen").await, [lost.id, third.id], "also after lost events");
    assert_eq!(local.search.counts().indexed, 3);
}

/// An index file is complete after a clean shutdown, but other nodes delete messages meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn index_finds_changes_of_other_nodes_after_restart() {
    let (dir, store) = (TestDir::new(), SharedStore::new(Limits::default()));
    let remote = Fixture::shared_node(store.node().await, None);
    let local = Fixture::shared_node(store.node().await, Some(dir.path()));
    let (deleted, kept) = (remote.deliver("ann", "alpha").await, remote.deliver("ann", "alpha").await);
    assert_eq!(local.find_ids("alpha").await, [kept.id, deleted.id]);
    local.shut_down();
    remote.mailroom.remove(&deleted.mailbox, deleted.id).await.unwrap();
    remote.mailroom.set_seen(&kept.mailbox, kept.id, true).await.unwrap();
    let local = Fixture::shared_node(store.node().await, Some(dir.path()));
    assert_eq!(local.find_ids("alpha").await, [kept.id]);
    assert_eq!(local.find_ids("alpha is:seen").await, [kept.id]);
    assert_eq!(local.search.counts().indexed, 1);
    local.shut_down();
}
