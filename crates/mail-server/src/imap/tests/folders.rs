//! Folders: changes of them, and messages that are copied and moved between them.

use super::*;

#[tokio::test]
async fn folders_are_created_renamed_and_deleted() {
    let server = TestServer::start();
    let mut client = server.log_in("bob").await;
    client
        .talk(
            r#"
            C: 1 CREATE Work
            S~ 1 OK
            C: 2 CREATE Work
            S: 2 NO [ALREADYEXISTS] The mailbox exists already
            C: 3 CREATE Work/2026/
            S~ 3 OK
            C: 4 LIST "" *
            S: * LIST (\HasNoChildren) "/" "INBOX"
            S: * LIST (\HasChildren) "/" "Work"
            S: * LIST (\HasNoChildren) "/" "Work/2026"
            S: 4 OK LIST completed
            C: 5 RENAME Work Job
            S: 5 OK RENAME completed
            C: 6 LIST "" *
            S: * LIST (\HasNoChildren) "/" "INBOX"
            S: * LIST (\HasChildren) "/" "Job"
            S: * LIST (\HasNoChildren) "/" "Job/2026"
            S: 6 OK LIST completed
            C: 7 DELETE Job
            S: 7 OK DELETE completed
            C: 8 LIST "" *
            S: * LIST (\HasNoChildren) "/" "INBOX"
            S: * LIST (\Noselect \HasChildren) "/" "Job"
            S: * LIST (\HasNoChildren) "/" "Job/2026"
            S: 8 OK LIST completed
            C: 9 SELECT Job
            S: 9 NO [NONEXISTENT] There is no such mailbox
            C: 10 DELETE Job
            S: 10 NO [HASCHILDREN] The mailbox has mailboxes below it
            C: 11 DELETE Job/2026
            S: 11 OK DELETE completed
            C: 12 DELETE Job
            S: 12 NO [NONEXISTENT] There is no such mailbox
            C: 13 LIST "" *
            S: * LIST (\HasNoChildren) "/" "INBOX"
            S: 13 OK LIST completed
            "#,
        )
        .await;
}

#[tokio::test]
async fn wrong_names_are_refused() {
    let server = TestServer::start();
    let mut client = server.log_in("bob").await;
    client.ok("CREATE Work").await;
    for (command, expected) in [
        ("CREATE INBOX", "NO [ALREADYEXISTS] "),
        ("CREATE inbox", "NO [ALREADYEXISTS] "),
        ("CREATE inbox/a", "NO [CANNOT] "),
        ("CREATE a//b", "NO [CANNOT] "),
        ("CREATE /a", "NO [CANNOT] "),
        ("CREATE \"a \"", "NO [CANNOT] "),
        ("CREATE \"\"", "NO [CANNOT] "),
        ("CREATE \"Other Users/ann\"", "NO [NONEXISTENT] "),
        ("DELETE INBOX", "NO [CANNOT] "),
        ("DELETE inbox", "NO [CANNOT] "),
        ("DELETE None", "NO [NONEXISTENT] "),
        ("RENAME None Other", "NO [NONEXISTENT] "),
        ("RENAME Work Work", "NO [ALREADYEXISTS] "),
        ("RENAME Work INBOX", "NO [ALREADYEXISTS] "),
        ("SUBSCRIBE None", "NO [NONEXISTENT] "),
        ("SELECT None", "NO [NONEXISTENT] "),
        ("STATUS None (MESSAGES)", "NO [NONEXISTENT] "),
    ] {
        let completion = client.refused(command).await;
        assert!(completion.starts_with(expected), "{command}: {completion}");
    }
}

#[tokio::test]
async fn rename_of_inbox_moves_its_messages() {
    let server = TestServer::start();
    server.deliver("bob@x.org", MAIL).await;
    let mut client = server.open_inbox("bob").await;
    client
        .talk(
            r#"
            C: 1 STORE 1 +FLAGS.SILENT (\Flagged run7)
            S: 1 OK STORE completed
            C: 2 RENAME INBOX Old
            S: * 1 EXPUNGE
            S: 2 OK RENAME completed
            C: 3 STATUS INBOX (MESSAGES)
            S: * STATUS "INBOX" (MESSAGES 0)
            S: 3 OK STATUS completed
            C: 4 EXAMINE Old
            S* 4 OK [READ-ONLY] EXAMINE completed
            C: 5 FETCH 1 FLAGS
            S: * 1 FETCH (FLAGS (\Flagged \Recent run7))
            S: 5 OK FETCH completed
            "#,
        )
        .await;
}

/// The folders below a folder are renamed too, and none of them is merged with another one.
#[tokio::test]
async fn rename_overwrites_no_folder() {
    let server = TestServer::start();
    server.import("bob,Work/2026", MAIL).await;
    server.import("bob,Job/2026", "Hi").await;
    let mut client = server.log_in("bob").await;
    client
        .talk(
            r#"
            C: 1 RENAME Work Job
            S: 1 NO [ALREADYEXISTS] The mailbox exists already
            C: 2 RENAME Work Work/Old
            S: 2 OK RENAME completed
            C: 3 LIST "" *
            S: * LIST (\HasNoChildren) "/" "INBOX"
            S: * LIST (\Noselect \HasChildren) "/" "Job"
            S: * LIST (\HasNoChildren) "/" "Job/2026"
            S: * LIST (\Noselect \HasChildren) "/" "Work"
            S: * LIST (\Noselect \HasChildren) "/" "Work/Old"
            S: * LIST (\HasNoChildren) "/" "Work/Old/2026"
            S: 3 OK LIST completed
            "#,
        )
        .await;
    assert_eq!((server.count("bob,Work/Old/2026").await, server.count("bob,Job/2026").await), (1, 1));
}

#[tokio::test]
async fn subscriptions_are_kept_for_all_sessions() {
    let server = TestServer::start();
    server.import("bob,Sent", MAIL).await;
    let mut client = server.log_in("bob").await;
    client
        .talk(
            r#"
            C: 1 CREATE Work
            S~ 1 OK
            C: 2 LSUB "" *
            S: * LSUB () "/" "INBOX"
            S: * LSUB () "/" "Sent"
            S: 2 OK LSUB completed
            C: 3 SUBSCRIBE Work
            S: 3 OK SUBSCRIBE completed
            C: 4 UNSUBSCRIBE Sent
            S: 4 OK UNSUBSCRIBE completed
            C: 5 UNSUBSCRIBE INBOX
            S: 5 OK UNSUBSCRIBE completed
            "#,
        )
        .await;
    let mut other = server.log_in("bob").await;
    other
        .talk(
            r#"
            C: 1 LSUB "" *
            S: * LSUB () "/" "Work"
            S: 1 OK LSUB completed
            C: 2 LIST "" * RETURN (SUBSCRIBED SPECIAL-USE)
            S: * LIST (\HasNoChildren) "/" "INBOX"
            S: * LIST (\HasNoChildren \Sent) "/" "Sent"
            S: * LIST (\HasNoChildren \Subscribed) "/" "Work"
            S: 2 OK LIST completed
            "#,
        )
        .await;
}

#[tokio::test]
async fn folder_stays_when_its_last_message_is_deleted() {
    let server = TestServer::start();
    server.import("bob,Sent", MAIL).await;
    let mut client = server.log_in("bob").await;
    client
        .talk(
            r#"
            C: 1 SELECT Sent
            S* 1 OK [READ-WRITE] SELECT completed
            C: 2 STORE 1 +FLAGS.SILENT (\Deleted)
            S: 2 OK STORE completed
            C: 3 CLOSE
            S: 3 OK CLOSE completed
            C: 4 SELECT Sent
            S* 4 OK [READ-WRITE] SELECT completed
            C: 5 LIST "" Sent
            S: * LIST (\HasNoChildren \Sent) "/" "Sent"
            S: 5 OK LIST completed
            "#,
        )
        .await;
}

#[tokio::test]
async fn deleted_folder_is_empty_when_it_is_created_again() {
    let server = TestServer::start();
    server.import("bob,Work", MAIL).await;
    let mut client = server.log_in("bob").await;
    client
        .talk(
            r#"
            C: 1 DELETE Work
            S: 1 OK DELETE completed
            C: 2 CREATE Work
            S~ 2 OK
            C: 3 STATUS Work (MESSAGES UIDNEXT)
            S: * STATUS "Work" (MESSAGES 0 UIDNEXT 2)
            S: 3 OK STATUS completed
            "#,
        )
        .await;
}

#[tokio::test]
async fn names_are_unicode() {
    let server = TestServer::start();
    let mut client = server.log_in("bob").await;
    client
        .talk(
            r#"
            C: 1 CREATE Entw&APw-rfe
            S~ 1 OK
            C: 2 LIST "" E*
            S: * LIST (\HasNoChildren) "/" "Entw&APw-rfe"
            S: 2 OK LIST completed
            C: 3 ENABLE UTF8=ACCEPT
            S: * ENABLED UTF8=ACCEPT
            S: 3 OK ENABLE completed
            C: 4 LIST "" E*
            S: * LIST (\HasNoChildren) "/" "Entwürfe"
            S: 4 OK LIST completed
            C: 5 APPEND "Entwürfe" {2+}
            C: Hi
            S~ 5 OK [APPENDUID
            "#,
        )
        .await;
    assert_eq!(server.count("bob,Entwürfe").await, 1);
}

#[tokio::test]
async fn messages_are_copied_and_moved_with_their_flags() {
    let server = TestServer::start();
    let stored = server.deliver("bob@x.org", MAIL).await;
    let source = server.mailroom.source(&mailbox("bob"), stored.id).await.unwrap().unwrap().to_bytes();
    let mut client = server.open_inbox("bob").await;
    client
        .talk(
            r#"
            C: 1 CREATE Copies
            S~ 1 OK
            C: 2 STORE 1 +FLAGS.SILENT (\Seen \Answered run7)
            S: 2 OK STORE completed
            C: 3 COPY 1 None
            S: 3 NO [TRYCREATE] There is no such mailbox
            C: 4 COPY 1 "Other Users/ann"
            S: 4 NO [TRYCREATE] There is no such mailbox
            "#,
        )
        .await;
    let uid_validity = server.mailroom.uid_validity().await.unwrap();
    client
        .talk(&format!(
            r"
            C: 1 COPY 1 Copies
            S: 1 OK [COPYUID {uid_validity} 1 1] COPY completed
            C: 2 UID COPY 1 INBOX
            S: * 2 EXISTS
            S: * 2 RECENT
            S: 2 OK [COPYUID {uid_validity} 1 2] COPY completed
            C: 3 UID MOVE 1:* Copies
            S: * OK [COPYUID {uid_validity} 1:2 2:3] Copied
            S: * 1 EXPUNGE
            S: * 1 EXPUNGE
            S: 3 OK MOVE completed
            C: 4 EXAMINE Copies
            S* 4 OK [READ-ONLY] EXAMINE completed
            C: 5 FETCH 1:* FLAGS
            S: * 1 FETCH (FLAGS (\Seen \Answered \Recent run7))
            S: * 2 FETCH (FLAGS (\Seen \Answered \Recent run7))
            S: * 3 FETCH (FLAGS (\Seen \Answered \Recent run7))
            S: 5 OK FETCH completed
            "
        ))
        .await;
    for uid in 1..=3 {
        assert!(client.source(uid).await == source, "{uid}");
    }
    assert_eq!((server.count("bob").await, server.count("bob,Copies").await), (0, 3));
}

#[tokio::test]
async fn status_of_a_folder_counts_its_messages() {
    let server = TestServer::start();
    let sizes = [server.import("bob,Work", MAIL).await.size, server.import("bob,Work", "Hi").await.size];
    server.mailroom.set_seen(&mailbox("bob,Work"), server.latest("bob,Work").await.unwrap().id, true).await.unwrap();
    let mut client = server.log_in("bob").await;
    client
        .talk(&format!(
            r#"
            C: 1 STATUS Work (MESSAGES UIDNEXT UNSEEN SIZE RECENT DELETED)
            S: * STATUS "Work" (MESSAGES 2 UIDNEXT 3 UNSEEN 1 SIZE {} RECENT 2 DELETED 0)
            S: 1 OK STATUS completed
            C: 2 SELECT Work
            S* 2 OK [READ-WRITE] SELECT completed
            C: 3 STORE 2 +FLAGS.SILENT (\Deleted)
            S: 3 OK STORE completed
            C: 4 STATUS Work (RECENT DELETED)
            S: * STATUS "Work" (RECENT 0 DELETED 1)
            S: 4 OK STATUS completed
            "#,
            sizes.iter().sum::<u64>()
        ))
        .await;
}
