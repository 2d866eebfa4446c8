//! Changes from elsewhere: they arrive in IDLE and before the end of the next command.

use restante_mail::message::MessageId;
use restante_mailroom::{CopyKey, CopyUpdate, DeletionCause};
use restante_teststore::{Node, SharedStore};

use super::*;

fn tags(text: &str) -> Tags {
    Tags::new([text]).unwrap()
}

fn copy(id: MessageId) -> CopyKey {
    CopyKey { mailbox: mailbox("bob"), id }
}

#[tokio::test]
async fn changes_arrive_in_idle() {
    let server = TestServer::start();
    let first = server.deliver("bob@x.org", MAIL).await;
    let mut client = server.open_inbox("bob").await;
    client.talk("C: 1 IDLE\nS: + idling").await;
    let second = server.deliver("bob@x.org", MAIL).await;
    client.talk("S: * 2 EXISTS\nS: * 2 RECENT").await;
    server.mailroom.set_seen(&mailbox("bob"), second.id, true).await.unwrap();
    client.talk(r"S: * 2 FETCH (FLAGS (\Seen \Recent))").await;
    server.mailroom.set_tags(vec![copy(first.id)], tags("run7")).await.unwrap();
    client.talk(r"S: * 1 FETCH (FLAGS (\Recent run7))").await;
    // Messages of other mailboxes are not announced.
    server.deliver("ann@x.org", MAIL).await;
    server.import("bob,Sent", MAIL).await;
    server.mailroom.remove(&mailbox("bob"), first.id).await.unwrap();
    client.talk("S: * 1 EXPUNGE").await;
    server.mailroom.purge(&mailbox("bob")).await.unwrap();
    client.talk("S: * 1 EXPUNGE").await;
    server.deliver("bob@x.org", MAIL).await;
    client.talk("S: * 1 EXISTS\nS: * 1 RECENT\nC: DONE\nS: 1 OK IDLE completed").await;
}

#[tokio::test]
async fn changes_arrive_with_the_next_command() {
    let server = TestServer::start();
    let mut stored = Vec::new();
    for _ in 0..4 {
        stored.push(server.deliver("bob@x.org", MAIL).await.id);
    }
    let mut client = server.open_inbox("bob").await;
    // As QUIT of POP3 does.
    server.mailroom.remove_all(&mailbox("bob"), stored[1..3].to_vec(), DeletionCause::Collected).await.unwrap();
    server.mailroom.set_seen(&mailbox("bob"), stored[3], true).await.unwrap();
    server.deliver("bob@x.org", MAIL).await;
    client
        .talk(
            r"
            C: 1 NOOP
            S: * 2 EXPUNGE
            S: * 2 EXPUNGE
            S: * 3 EXISTS
            S: * 3 RECENT
            S: * 2 FETCH (FLAGS (\Seen \Recent))
            S: 1 OK NOOP completed
            ",
        )
        .await;
}

/// A command with sequence numbers does not change them. FLAGS and new messages may be announced.
#[tokio::test]
async fn deletions_wait_for_a_command_without_sequence_numbers() {
    let server = TestServer::start();
    let mut stored = Vec::new();
    for _ in 0..3 {
        stored.push(server.deliver("bob@x.org", MAIL).await.id);
    }
    let mut client = server.open_inbox("bob").await;
    server.mailroom.remove(&mailbox("bob"), stored[0]).await.unwrap();
    client
        .talk(
            r"
            C: 1 FETCH 3 UID
            S: * 3 FETCH (UID 3)
            S: 1 OK FETCH completed
            C: 2 STORE 2 +FLAGS (\Seen)
            S: * 2 FETCH (FLAGS (\Seen \Recent))
            S: 2 OK STORE completed
            C: 3 SEARCH SEEN
            S: * SEARCH 2
            S: 3 OK SEARCH completed
            C: 4 UID SEARCH SEEN
            S: * SEARCH 2
            S: * 1 EXPUNGE
            S: 4 OK SEARCH completed
            C: 5 SEARCH SEEN
            S: * SEARCH 1
            S: 5 OK SEARCH completed
            ",
        )
        .await;
}

#[tokio::test]
async fn parallel_sessions_see_the_changes_of_each_other() {
    let server = TestServer::start();
    for _ in 0..3 {
        server.deliver("bob@x.org", MAIL).await;
    }
    let mut one = server.open_inbox("bob").await;
    let mut other = server.open_inbox("bob").await;
    one.talk(
        r"
        C: 1 STORE 2 +FLAGS (\Flagged run7)
        S: * 2 FETCH (FLAGS (\Flagged \Recent run7))
        S: 1 OK STORE completed
        C: 2 STORE 3 +FLAGS.SILENT (\Deleted)
        S: 2 OK STORE completed
        ",
    )
    .await;
    other
        .talk(
            r"
            C: 1 NOOP
            S: * 2 FETCH (FLAGS (\Flagged run7))
            S: * 3 FETCH (FLAGS (\Deleted))
            S: 1 OK NOOP completed
            C: 2 STORE 2 -FLAGS (\Flagged)
            S: * 2 FETCH (FLAGS (run7))
            S: 2 OK STORE completed
            C: 3 STORE 1 +FLAGS.SILENT (\Deleted)
            S: 3 OK STORE completed
            C: 4 IDLE
            S: + idling
            ",
        )
        .await;
    one.talk(
        r"
        C: 3 EXPUNGE
        S: * 1 EXPUNGE
        S: * 2 EXPUNGE
        S: * 1 FETCH (FLAGS (\Recent run7))
        S: 3 OK EXPUNGE completed
        C: 4 APPEND INBOX (\Seen) {2+}
        C: Hi
        S: * 2 EXISTS
        S: * 2 RECENT
        S~ 4 OK [APPENDUID
        ",
    )
    .await;
    other.talk("S: * 1 EXPUNGE\nS: * 2 EXPUNGE\nS: * 2 EXISTS").await;
}

/// `\Recent` is shown in the first session that may change the mailbox.
#[tokio::test]
async fn messages_are_recent_in_one_session() {
    let server = TestServer::start();
    server.deliver("bob@x.org", MAIL).await;
    let mut reader = server.log_in("bob").await;
    reader.talk("C: 1 EXAMINE INBOX\nS* * 1 RECENT\nS* 1 OK [READ-ONLY] EXAMINE completed").await;
    let mut first = server.log_in("bob").await;
    first.talk("C: 1 SELECT INBOX\nS* * 1 RECENT\nS* 1 OK [READ-WRITE] SELECT completed").await;
    let mut second = server.log_in("bob").await;
    second.talk("C: 1 SELECT INBOX\nS* * 0 RECENT\nS* 1 OK [READ-WRITE] SELECT completed").await;
}

/// More changes than a session is kept informed of. It lists the mailbox again.
#[tokio::test]
async fn missed_changes_are_found_by_listing_again() {
    const COUNT: usize = 1500;
    let server = TestServer::start();
    let mut ids = Vec::new();
    for _ in 0..COUNT {
        ids.push(server.import("bob", MAIL).await.id);
    }
    let mut client = server.open_inbox("bob").await;
    let seen = |id: &MessageId| CopyUpdate { seen: Some(true), ..CopyUpdate::new(copy(*id)) };
    server.mailroom.update_copies(ids[1..].iter().map(seen).collect()).await.unwrap();
    server.mailroom.remove(&mailbox("bob"), ids[0]).await.unwrap();
    server.import("bob", MAIL).await;
    let lines = client.ok("NOOP").await;
    assert_eq!(lines[0], "* 1 EXPUNGE");
    assert_eq!(lines.iter().filter(|line| line.ends_with(&format!("* {COUNT} EXISTS"))).count(), 1);
    assert_eq!(lines.iter().filter(|line| line.contains(r"FETCH (FLAGS (\Seen")).count(), COUNT - 1);
    client.talk(&format!("C: 1 SEARCH UNSEEN\nS: * SEARCH {COUNT}\nS: 1 OK SEARCH completed")).await;
}

#[tokio::test]
async fn own_silent_changes_are_not_announced() {
    let server = TestServer::start();
    server.deliver("bob@x.org", MAIL).await;
    let mut client = server.open_inbox("bob").await;
    client
        .talk(
            r"
            C: 1 STORE 1 +FLAGS.SILENT (\Flagged)
            S: 1 OK STORE completed
            C: 2 NOOP
            S: 2 OK NOOP completed
            C: 3 FETCH 1 BODY[TEXT]
            S: * 1 FETCH (FLAGS (\Seen \Flagged \Recent) BODY[TEXT] {4}
            S: Hi
            S: )
            S: 3 OK FETCH completed
            C: 4 NOOP
            S: 4 OK NOOP completed
            ",
        )
        .await;
}

#[tokio::test]
async fn changes_of_an_unselected_mailbox_are_not_announced() {
    let server = TestServer::start();
    server.deliver("bob@x.org", MAIL).await;
    let mut client = server.open_inbox("bob").await;
    client.talk("C: 1 UNSELECT\nS: 1 OK UNSELECT completed\nC: 2 IDLE\nS: + idling").await;
    server.deliver("bob@x.org", MAIL).await;
    client
        .talk(
            r"
            C: DONE
            S: 2 OK IDLE completed
            C: 3 SELECT INBOX
            S* * 2 EXISTS
            S* 3 OK [READ-WRITE] SELECT completed
            C: 4 NOOP
            S: 4 OK NOOP completed
            ",
        )
        .await;
}

#[tokio::test]
async fn all_mail_shows_the_changes_of_all_mailboxes() {
    let credentials = vec![("ann".to_owned(), restante_auth::PasswordHash::parse(super::login::SECRET_HASH).unwrap())];
    let auth = restante_auth::Settings { credentials, ..restante_auth::Settings::default() };
    let server = Setup { auth, ..Setup::default() }.start();
    let first = server.deliver("bob@x.org", MAIL).await;
    let mut client = server.connect().await;
    client.ok("LOGIN ann secret").await;
    client.talk("C: 1 EXAMINE \"All mail\"\nS* 1 OK [READ-ONLY] EXAMINE completed\nC: 2 IDLE\nS: + idling").await;
    server.deliver("eve@x.org", MAIL).await;
    client.talk("S: * 2 EXISTS\nS: * 0 RECENT").await;
    server.mailroom.set_seen(&mailbox("bob"), first.id, true).await.unwrap();
    client.talk(r"S: * 1 FETCH (FLAGS (\Seen))").await;
    server.mailroom.remove(&mailbox("bob"), first.id).await.unwrap();
    client.talk("S: * 1 EXPUNGE").await;
}

/// Returns the servers of two nodes that share a store.
async fn two_nodes() -> ([TestServer; 2], Arc<Node>) {
    let store = SharedStore::new(Limits::default());
    let (one, other) = (store.node().await, store.node().await);
    let server = |store: Arc<Node>| Setup { store, ..Setup::default() }.start();
    ([server(one), server(other.clone())], other)
}

#[tokio::test]
async fn changes_of_other_nodes_arrive_in_idle() {
    let ([one, other], _) = two_nodes().await;
    let first = one.deliver("bob@x.org", MAIL).await;
    let mut client = other.open_inbox("bob").await;
    client.talk("C: 1 IDLE\nS: + idling").await;
    let second = one.deliver("bob@x.org", MAIL).await;
    client.talk("S: * 2 EXISTS\nS: * 2 RECENT").await;
    one.mailroom.set_seen(&mailbox("bob"), second.id, true).await.unwrap();
    client.talk(r"S: * 2 FETCH (FLAGS (\Seen \Recent))").await;
    one.mailroom.remove(&mailbox("bob"), first.id).await.unwrap();
    client.talk("S: * 1 EXPUNGE").await;
    let mut writer = one.open_inbox("bob").await;
    writer.ok(r"STORE 1 FLAGS (\Deleted)").await;
    client.talk(r"S: * 1 FETCH (FLAGS (\Deleted \Recent))").await;
    writer.ok("EXPUNGE").await;
    client.talk("S: * 1 EXPUNGE\nC: DONE\nS: 1 OK IDLE completed").await;
}

/// The mailbox is listed again after the connection to the other nodes was interrupted.
#[tokio::test]
async fn changes_during_an_interruption_are_found() {
    let ([one, other], node) = two_nodes().await;
    let mut stored = Vec::new();
    for _ in 0..3 {
        stored.push(one.deliver("bob@x.org", MAIL).await.id);
    }
    let mut client = other.open_inbox("bob").await;
    client.talk("C: 1 IDLE\nS: + idling").await;
    node.hold().await;
    one.mailroom.remove(&mailbox("bob"), stored[0]).await.unwrap();
    one.mailroom.set_seen(&mailbox("bob"), stored[2], true).await.unwrap();
    one.deliver("bob@x.org", MAIL).await;
    node.discard_held().await;
    client
        .talk(
            r"
            S: * 1 EXPUNGE
            S: * 3 EXISTS
            S: * 3 RECENT
            S: * 2 FETCH (FLAGS (\Seen \Recent))
            C: DONE
            S: 1 OK IDLE completed
            C: 2 UID SEARCH SEEN
            S: * SEARCH 3
            S: 2 OK SEARCH completed
            ",
        )
        .await;
}

/// A session whose changes arrive late still replies to its own commands with their results.
#[tokio::test]
async fn own_changes_are_known_before_they_return_from_the_other_nodes() {
    let ([one, _other], _) = two_nodes().await;
    for _ in 0..2 {
        one.deliver("bob@x.org", MAIL).await;
    }
    let mut client = one.open_inbox("bob").await;
    client
        .talk(
            r"
            C: 1 STORE 1:2 +FLAGS (\Deleted)
            S: * 1 FETCH (FLAGS (\Deleted \Recent))
            S: * 2 FETCH (FLAGS (\Deleted \Recent))
            S: 1 OK STORE completed
            C: 2 UID EXPUNGE 1
            S: * 1 EXPUNGE
            S: 2 OK EXPUNGE completed
            C: 3 EXPUNGE
            S: * 1 EXPUNGE
            S: 3 OK EXPUNGE completed
            ",
        )
        .await;
}

/// After an error of the store, the messages are listed again with the next command.
#[tokio::test]
async fn changes_are_found_after_an_error_of_the_store() {
    let credentials = vec![("ann".to_owned(), restante_auth::PasswordHash::parse(super::login::SECRET_HASH).unwrap())];
    let auth = restante_auth::Settings { credentials, ..restante_auth::Settings::default() };
    let node = SharedStore::new(Limits::default()).node().await;
    let server = Setup { auth, store: node.clone(), ..Setup::default() }.start();
    let mut client = server.connect().await;
    client.ok("LOGIN ann secret").await;
    node.fail_lists(true);
    let unavailable = "NO [UNAVAILABLE] The store is not available now, try again later";
    assert_eq!(client.refused("EXAMINE \"All mail\"").await, unavailable);
    node.fail_lists(false);
    client.ok("EXAMINE \"All mail\"").await;
    node.fail_lists(true);
    server.import("bob", MAIL).await;
    client.talk("C: 1 NOOP\nS: 1 OK NOOP completed").await;
    node.fail_lists(false);
    client.talk("C: 2 NOOP\nS: * 1 EXISTS\nS: * 0 RECENT\nS: 2 OK NOOP completed").await;
    // A client that waits gets them without another change.
    client.talk("C: 3 IDLE\nS: + idling").await;
    node.fail_lists(true);
    server.import("bob", MAIL).await;
    node.fail_lists(false);
    client.talk("S: * 2 EXISTS\nS: * 0 RECENT").await;
}

/// A new message can evict the oldest one.
#[tokio::test]
async fn evicted_messages_are_announced() {
    let limits = Limits { messages_per_mailbox: 2, ..Limits::default() };
    let server = Setup { store: Arc::new(MemoryStore::new(limits)), ..Setup::default() }.start();
    for _ in 0..2 {
        server.import("bob", MAIL).await;
    }
    let mut client = server.open_inbox("bob").await;
    client.talk("C: 1 IDLE\nS: + idling").await;
    server.import("bob", MAIL).await;
    client
        .talk(
            r"
            S: * 1 EXPUNGE
            S: * 2 EXISTS
            S: * 2 RECENT
            C: DONE
            S: 1 OK IDLE completed
            C: 2 APPEND INBOX {2+}
            C: Hi
            S: * 1 EXPUNGE
            S: * 2 EXISTS
            S: * 2 RECENT
            S~ 2 OK [APPENDUID
            ",
        )
        .await;
    assert_eq!(client.uids().await, [3, 4]);
}

#[tokio::test]
async fn messages_that_another_client_deletes_are_not_fetched() {
    let server = TestServer::start();
    let mut stored = Vec::new();
    for _ in 0..2 {
        stored.push(server.deliver("bob@x.org", MAIL).await.id);
    }
    let mut client = server.open_inbox("bob").await;
    server.mailroom.remove(&mailbox("bob"), stored[0]).await.unwrap();
    client
        .talk(
            r"
            C: 1 FETCH 1:2 BODY.PEEK[TEXT]
            S: * 2 FETCH (BODY[TEXT] {4}
            S: Hi
            S: )
            S: 1 OK [EXPUNGEISSUED] Some messages no longer exist
            C: 2 NOOP
            S: * 1 EXPUNGE
            S: 2 OK NOOP completed
            ",
        )
        .await;
}
