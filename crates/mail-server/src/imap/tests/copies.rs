//! COPY, MOVE and APPEND over connections, and the values of copies.

use super::*;

/// The size of a message for which memory is reserved.
const LARGE_BYTES: usize = 128 * 1024;

impl TestServer {
    /// Connects by a pair of sockets, and opens INBOX. The folder `Old` exists.
    async fn open_with_folder(&self) -> (Client, JoinHandle<()>) {
        let (mut client, session) = self.connect_by_socket_pair().await;
        for command in ["LOGIN bob x", "CREATE Old", "SELECT INBOX"] {
            client.ok(command).await;
        }
        (client, session)
    }

    /// Returns the UIDs of the messages of a mailbox.
    async fn uids(&self, name: &str) -> Vec<u32> {
        let index = self.mailroom.index(&mailbox(name), MessageId::ZERO, usize::MAX).await.unwrap();
        index.entries.iter().map(|entry| entry.number).collect()
    }
}

#[tokio::test]
async fn copies_have_the_email_id_of_the_original() {
    let server = TestServer::start();
    server.import("bob", MAIL).await;
    let (mut client, _) = server.open_with_folder().await;
    let original = client.ok("FETCH 1 EMAILID").await;
    client.ok("COPY 1 Old").await;
    client.ok("MOVE 1 Old").await;
    client.ok("SELECT Old").await;
    assert!(original[0].starts_with("* 1 FETCH (EMAILID (M"), "{original:?}");
    let copy = original[0].replace("* 1 ", "* 2 ");
    assert_eq!(client.ok("FETCH 1:2 EMAILID").await, [original[0].clone(), copy]);
}

#[tokio::test]
async fn values_of_many_messages_are_those_of_each() {
    let server = TestServer::start();
    for number in 1..=5 {
        server.import("bob", format!("Subject: {number}\r\n\r\ntext {number}\r\n")).await;
    }
    let mut client = server.open_inbox("bob").await;
    client.ok("STORE 2 +FLAGS.SILENT (\\Deleted)").await;
    client.ok("EXPUNGE").await;
    let mut expected = Vec::new();
    for number in 1..=4 {
        expected.extend(client.ok(&format!("FETCH {number} (EMAILID PREVIEW)")).await);
    }
    assert!(expected[1].contains("\"text 3\""), "{expected:?}");
    assert_eq!(client.ok("FETCH 1:* (EMAILID PREVIEW)").await, expected);
}

/// The clock is paused: the command waits until the timeout without a delay.
#[tokio::test(start_paused = true)]
async fn copied_messages_are_limited_by_the_budget() {
    let budget = Budget::new(LARGE_BYTES);
    let server = Setup { budget: budget.clone(), ..Setup::default() }.start();
    server.import("bob", vec![b'x'; LARGE_BYTES]).await;
    let (mut client, _) = server.open_with_folder().await;
    // The second one may exceed the budget, a third one must wait.
    let mut others = [budget.reservation(), budget.reservation()];
    for other in &mut others {
        other.adjust_to(LARGE_BYTES).await;
    }
    for command in ["COPY 1 Old", "MOVE 1 Old"] {
        let completion = client.refused(command).await;
        assert!(completion.starts_with("NO [UNAVAILABLE] "), "{completion}");
    }
    assert!(server.uids("bob,Old").await.is_empty());
    drop(others);
    let replies = client.ok("MOVE 1 Old").await;
    assert!(replies[0].ends_with(" 1 1] Copied") && replies[1] == "* 1 EXPUNGE", "{replies:?}");
}

/// The clock is paused: it advances while all tasks wait.
#[tokio::test(start_paused = true)]
async fn each_message_of_append_has_its_own_time() {
    let server = Setup { idle_timeout: Duration::from_mins(1), ..Setup::default() }.start();
    let (mut client, _) = server.open_with_folder().await;
    let (start, end) = "Subject: Hi\r\n\r\n".split_at(5);
    for input in [
        format!("1 APPEND INBOX {{15+}}\r\n{start}"),
        format!("{end}\r\n2 APPEND INBOX {{15+}}\r\n{start}"),
        format!("{end}\r\n"),
    ] {
        client.send(input).await;
        tokio::time::sleep(Duration::from_secs(50)).await;
    }
    client.talk("S~ * 1 EXISTS\nS~ * 1 RECENT\nS~ 1 OK \nS~ * 2 EXISTS\nS~ * 2 RECENT\nS~ 2 OK ").await;
    assert_eq!(server.uids("bob").await, [1, 2]);
}

/// One operation is enough for the first command, which is complete although the client sends nothing more.
#[tokio::test]
async fn long_copy_ends_when_the_client_disconnects() {
    for (set, expected) in [("1", &[1][..]), ("1:2", &[])] {
        let server = Setup { budget: Budget::new(LARGE_BYTES), ..Setup::default() }.start();
        for _ in 0..2 {
            server.import("bob", vec![b'x'; 1024 * 1024]).await;
        }
        let (mut client, session) = server.open_with_folder().await;
        client.send(format!("a COPY {set} Old\r\n")).await;
        // The session runs in this thread, so it has not read the command yet.
        client.stream.shutdown().await.unwrap();
        session.await.unwrap();
        assert_eq!(server.uids("bob,Old").await, expected, "{set}");
    }
}
