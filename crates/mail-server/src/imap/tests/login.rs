//! Logins, and what each of them may read and change.

use data_encoding::BASE64;
use restante_auth::tokens::{self, RequestedAccess};
use restante_auth::{PasswordHash, Scope};
use restante_proto::Secret;
use restante_testdir::TestDir;

use super::*;

/// The hash of "secret", with which all users log in.
pub(super) const SECRET_HASH: &str = "$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a";

/// The files of users and tokens.
struct Accounts(TestDir);

impl Accounts {
    /// Creates users with these rights.
    fn new(users: &[(&str, &str)]) -> Self {
        let accounts = Self(TestDir::new());
        let line = |(name, rights): &(&str, &str)| format!("{name}:{SECRET_HASH}\n#restante {name}:{rights}\n");
        std::fs::write(accounts.0.path().join("users"), users.iter().map(line).collect::<String>()).unwrap();
        accounts
    }

    /// Creates a token with these scopes, for mailboxes that match these patterns.
    fn token(&self, name: &str, scopes: &[Scope], mailboxes: &[&str]) -> String {
        let access = RequestedAccess {
            name: name.to_owned(),
            scopes: scopes.iter().copied().collect(),
            mailboxes: mailboxes.iter().map(|&pattern| pattern.to_owned()).collect(),
            expires: None,
        };
        tokens::create(&self.0.path().join("tokens.toml"), access).unwrap().1
    }

    fn settings(&self) -> restante_auth::Settings {
        restante_auth::Settings {
            users: Some(self.0.path().join("users")),
            tokens: Some(self.0.path().join("tokens.toml")),
            ..restante_auth::Settings::default()
        }
    }

    fn start(&self) -> TestServer {
        Setup { auth: self.settings(), ..Setup::default() }.start()
    }
}

/// Logs in on a new connection.
async fn log_in(server: &TestServer, user: &str, password: &str) -> Client {
    let mut client = server.connect().await;
    client.ok(&format!("LOGIN \"{user}\" \"{password}\"")).await;
    client
}

#[tokio::test]
async fn without_accounts_the_user_is_the_mailbox() {
    let server = TestServer::start();
    server.deliver("Bob+tag@x.org", MAIL).await;
    for (user, count) in [("bob", 1), ("BOB", 1), ("bob+other", 1), ("bob@y.org", 1), ("ann", 0), ("", 0)] {
        for password in ["", "x", "any text"] {
            let mut client = log_in(&server, user, password).await;
            client.ok("SELECT INBOX").await;
            assert_eq!(client.uids().await.len(), count, "{user}");
        }
    }
    // A login shows its own mailbox only.
    let mut client = log_in(&server, "ann", "x").await;
    client
        .talk(
            r#"
            C: 1 LIST "" *
            S: * LIST (\HasNoChildren) "/" "INBOX"
            S: 1 OK LIST completed
            C: 2 NAMESPACE
            S: * NAMESPACE (("" "/")) NIL NIL
            S: 2 OK NAMESPACE completed
            C: 3 SELECT "Other Users/bob"
            S: 3 NO [NONEXISTENT] There is no such mailbox
            C: 4 SELECT "All mail"
            S: 4 NO [NONEXISTENT] There is no such mailbox
            C: 5 STATUS bob (MESSAGES)
            S: 5 NO [NONEXISTENT] There is no such mailbox
            "#,
        )
        .await;
}

#[tokio::test]
async fn passwords_of_the_setting_open_their_mailbox() {
    let password =
        |name: Option<&str>, text: &str| MailboxPassword { mailbox: name.map(mailbox), password: Secret::new(text) };
    let credentials = vec![password(Some("bob"), "one"), password(None, "all")];
    let server = Setup { credentials, ..Setup::default() }.start();
    let wrong = "NO [AUTHENTICATIONFAILED] Wrong user name or password";
    for (user, password, expected) in [
        ("bob", "one", "OK [CAPABILITY "),
        ("bob", "all", "OK [CAPABILITY "),
        ("ann", "all", "OK [CAPABILITY "),
        ("ann", "one", wrong),
        ("bob", "", wrong),
    ] {
        let (_, completion) = server.connect().await.command(&format!("LOGIN {user} \"{password}\"")).await;
        assert!(completion.starts_with(expected), "{user} {password}: {completion}");
    }
    assert_eq!(server.counter("restante_logins_total{protocol=\"imap\",outcome=\"ok\"}").await, 3);
    assert_eq!(server.counter("restante_logins_total{protocol=\"imap\",outcome=\"failed\"}").await, 2);
}

#[tokio::test]
async fn users_and_tokens_need_the_right_to_read() {
    let accounts = Accounts::new(&[("ann", "all")]);
    let reader = accounts.token("reader", &[Scope::Read], &["bob"]);
    let writer = accounts.token("writer", &[Scope::Write], &["bob"]);
    let server = accounts.start();
    server.deliver("bob@x.org", MAIL).await;
    let not_permitted = "NO [NOPERM] The login does not allow this";
    // The user, the password, the reply, and the number of messages in INBOX.
    for (user, password, expected, count) in [
        ("ann", "secret", "OK [CAPABILITY ", 0),
        ("bob*ann", "secret", "OK [CAPABILITY ", 1),
        ("bob@x.org*ann", "secret", "OK [CAPABILITY ", 1),
        ("bob", &reader, "OK [CAPABILITY ", 1),
        // The user of a token need not be a mailbox that it may read.
        ("anything", &reader, "OK [CAPABILITY ", 0),
        ("bob", &writer, not_permitted, 0),
        ("ann", "wrong", "NO [AUTHENTICATIONFAILED] ", 0),
        ("bob", "secret", "NO [AUTHENTICATIONFAILED] ", 0),
    ] {
        let mut client = server.connect().await;
        let (_, completion) = client.command(&format!("LOGIN \"{user}\" {password}")).await;
        assert!(completion.starts_with(expected), "{user}: {completion}");
        if completion.starts_with("OK") {
            client.ok("EXAMINE INBOX").await;
            assert_eq!(client.uids().await.len(), count, "{user}");
        }
    }
    assert_eq!(server.counter("restante_denials_total{protocol=\"imap\",reason=\"scope\"}").await, 1);
}

#[tokio::test]
async fn login_with_the_right_to_read_changes_nothing() {
    let accounts = Accounts::new(&[]);
    let token = accounts.token("reader", &[Scope::Read], &["bob"]);
    let server = accounts.start();
    let stored = server.deliver("bob@x.org", MAIL).await;
    server.import("bob,Old", MAIL).await;
    let mut client = log_in(&server, "bob", &token).await;
    client
        .talk(
            r#"
            C: 1 SELECT INBOX
            S* 1 OK [READ-ONLY] SELECT completed
            C: 2 STORE 1 +FLAGS (\Seen)
            S: 2 NO [READ-ONLY] The mailbox is open to read only
            C: 3 EXPUNGE
            S: 3 NO [READ-ONLY] The mailbox is open to read only
            C: 4 MOVE 1 Old
            S: 4 NO [READ-ONLY] The mailbox is open to read only
            C: 5 COPY 1 Old
            S: 5 NO [NOPERM] The login does not allow this
            C: 6 APPEND INBOX {2+}
            C: Hi
            S: 6 NO [NOPERM] The login does not allow this
            C: 7 CREATE New
            S: 7 NO [NOPERM] The login does not allow this
            C: 8 RENAME Old New
            S: 8 NO [NOPERM] The login does not allow this
            C: 9 RENAME INBOX New
            S: 9 NO [NOPERM] The login does not allow this
            C: 10 DELETE Old
            S: 10 NO [NOPERM] The login does not allow this
            C: 11 FETCH 1 BODY[TEXT]
            S: * 1 FETCH (BODY[TEXT] {4}
            S: Hi
            S: )
            S: 11 OK FETCH completed
            C: 12 CLOSE
            S: 12 OK CLOSE completed
            C: 13 LIST "" *
            S: * LIST (\HasNoChildren) "/" "INBOX"
            S: * LIST (\HasNoChildren) "/" "Old"
            S: 13 OK LIST completed
            "#,
        )
        .await;
    assert_eq!(server.latest("bob").await.map(|found| (found.id, found.seen)), Some((stored.id, false)));
    assert_eq!(server.count("bob,Old").await, 1);
}

#[tokio::test]
async fn token_for_several_mailboxes_sees_the_others() {
    let accounts = Accounts::new(&[]);
    let token = accounts.token("ci", &[Scope::Read, Scope::Write], &["ci-*"]);
    let server = accounts.start();
    for mailbox in ["ann", "ci-1", "ci-2", "ci-2,Sent"] {
        server.import(mailbox, MAIL).await;
    }
    let list = r#"
        C: 1 LIST "" *
        S: * LIST (\HasNoChildren) "/" "INBOX"
        S: * LIST (\Noselect \HasChildren) "/" "Other Users"
        S: * LIST (\HasChildren) "/" "Other Users/ci-2"
        S: * LIST (\HasNoChildren) "/" "Other Users/ci-2/Sent"
        S: 1 OK LIST completed
        C: 2 NAMESPACE
        S: * NAMESPACE (("" "/")) (("Other Users/" "/")) NIL
        S: 2 OK NAMESPACE completed
        C: 3 SELECT "Other Users/ci-2/Sent"
        S* 3 OK [READ-WRITE] SELECT completed
        C: 4 MOVE 1 INBOX
        S~ * OK [COPYUID
        S: * 1 EXPUNGE
        S: 4 OK MOVE completed
        C: 5 SELECT "Other Users/ann"
        S: 5 NO [NONEXISTENT] There is no such mailbox
        C: 6 STATUS "Other Users/CI-2" (MESSAGES)
        S: 6 NO [NONEXISTENT] There is no such mailbox
        C: 7 SELECT "All mail"
        S: 7 NO [NONEXISTENT] There is no such mailbox
        C: 8 APPEND "Other Users/ci-2" {2+}
        C: Hi
        S~ 8 OK [APPENDUID
        C: 9 DELETE "Other Users/ci-2"
        S: 9 NO [CANNOT] This mailbox cannot be deleted
        C: 10 RENAME "Other Users/ci-2/Sent" "Other Users/ci-3/Old"
        S: 10 OK RENAME completed
    "#;
    log_in(&server, "ci-1", &token).await.talk(list).await;
    assert_eq!(server.count("ci-1").await, 2);
    // INBOX of a login to another mailbox is empty.
    let mut client = log_in(&server, "ann", &token).await;
    client
        .talk(
            r#"
            C: 1 SELECT INBOX
            S* 1 OK [READ-ONLY] SELECT completed
            C: 2 SEARCH ALL
            S: * SEARCH
            S: 2 OK SEARCH completed
            C: 3 APPEND INBOX {2+}
            C: Hi
            S: 3 NO [NOPERM] The login does not allow this
            C: 4 STATUS "Other Users/ci-1" (MESSAGES)
            S: * STATUS "Other Users/ci-1" (MESSAGES 2)
            S: 4 OK STATUS completed
            "#,
        )
        .await;
}

/// The numbers of a mailbox that a login may not read are not in its quota.
#[tokio::test]
async fn quota_is_that_of_a_readable_mailbox() {
    let accounts = Accounts::new(&[]);
    let token = accounts.token("ci", &[Scope::Read], &["ci-*"]);
    let limits = Limits { messages_per_mailbox: 500, ..Limits::default() };
    let server = Setup { auth: accounts.settings(), limits, ..Setup::default() }.start();
    server.import("ann", MAIL).await;
    server.import("ci-1", MAIL).await;
    let lines = log_in(&server, "ci-1", &token).await.ok("GETQUOTAROOT INBOX").await;
    assert_eq!(lines, [r#"* QUOTAROOT "INBOX" "INBOX""#, r#"* QUOTA "INBOX" (MESSAGE 1 500)"#]);
    let lines = log_in(&server, "ann", &token).await.ok("GETQUOTAROOT INBOX").await;
    assert_eq!(lines, [r#"* QUOTAROOT "INBOX""#]);
}

/// `bob*ann` is the mailbox `bob` of the user `ann`, also if `ann` may not read it.
#[tokio::test]
async fn name_with_a_user_is_not_the_name_of_a_mailbox() {
    let accounts = Accounts::new(&[("ann", "all *ann")]);
    let server = accounts.start();
    server.import("bob*ann", MAIL).await;
    let mut client = log_in(&server, "bob*ann", "secret").await;
    client.talk("C: 1 SELECT INBOX\nS* * 0 EXISTS\nS* 1 OK [READ-ONLY] SELECT completed").await;
}

/// A mailbox may have a slash in its name, which is the separator of folders.
#[tokio::test]
async fn slash_in_the_name_of_a_mailbox_is_a_backslash() {
    let accounts = Accounts::new(&[("ann", "all")]);
    let server = accounts.start();
    server.deliver("a/b@x.org", MAIL).await;
    server.import("a/b,Sent", MAIL).await;
    let conversation = r#"
        C: 1 LIST "" "Other Users/*"
        S: * LIST (\HasChildren) "/" "Other Users/a\\b"
        S: * LIST (\HasNoChildren) "/" "Other Users/a\\b/Sent"
        S: 1 OK LIST completed
        C: 2 STATUS "Other Users/a\\b" (MESSAGES)
        S: * STATUS "Other Users/a\\b" (MESSAGES 1)
        S: 2 OK STATUS completed
        C: 3 STATUS "Other Users/a\\b/Sent" (MESSAGES)
        S: * STATUS "Other Users/a\\b/Sent" (MESSAGES 1)
        S: 3 OK STATUS completed
    "#;
    log_in(&server, "ann", "secret").await.talk(conversation).await;
    let lines = log_in(&server, "a/b*ann", "secret").await.ok("STATUS INBOX (MESSAGES)").await;
    assert_eq!(lines, [r#"* STATUS "INBOX" (MESSAGES 1)"#]);
}

#[tokio::test]
async fn login_with_all_rights_sees_all_mail() {
    let accounts = Accounts::new(&[("ann", "all")]);
    let server = accounts.start();
    server.deliver("bob@x.org", MAIL).await;
    server.deliver("ann@x.org", MAIL).await;
    let mut client = log_in(&server, "ann", "secret").await;
    client
        .talk(
            r#"
            C: 1 LIST "" *
            S: * LIST (\HasNoChildren \All) "/" "All mail"
            S: * LIST (\HasNoChildren) "/" "INBOX"
            S: * LIST (\Noselect \HasChildren) "/" "Other Users"
            S: * LIST (\HasNoChildren) "/" "Other Users/bob"
            S: 1 OK LIST completed
            C: 2 SELECT "All mail"
            S* * NO [UIDNOTSTICKY] UIDs are valid in this session only
            S: 2 OK [READ-ONLY] SELECT completed
            C: 3 SEARCH ALL
            S: * SEARCH 1 2
            S: 3 OK SEARCH completed
            C: 4 STORE 1 +FLAGS (\Seen)
            S: 4 NO [READ-ONLY] The mailbox is open to read only
            C: 5 APPEND "All mail" {2+}
            C: Hi
            S: 5 NO [NOPERM] The login does not allow this
            C: 6 COPY 1 INBOX
            S: * 3 EXISTS
            S: * 0 RECENT
            S~ 6 OK [COPYUID
            C: 7 CREATE "All mail"
            S: 7 NO [ALREADYEXISTS] The mailbox exists already
            C: 8 DELETE "All mail"
            S: 8 NO [CANNOT] This mailbox cannot be deleted
            "#,
        )
        .await;
    assert_eq!(server.count("ann").await, 2);
}

#[tokio::test]
async fn all_mail_has_another_uidvalidity_in_each_session() {
    let accounts = Accounts::new(&[("ann", "all")]);
    let server = accounts.start();
    let mut values = Vec::new();
    for _ in 0..3 {
        let mut client = log_in(&server, "ann", "secret").await;
        let lines = client.ok("EXAMINE \"All mail\"").await;
        values.extend(lines.into_iter().filter(|line| line.starts_with("* OK [UIDVALIDITY ")));
    }
    assert_eq!(values.len(), 3);
    values.dedup();
    assert_eq!(values.len(), 3, "{values:?}");
}

/// For a user of a project, `All mail` contains the messages of the project.
#[tokio::test]
async fn status_of_all_mail_counts_all_messages() {
    let accounts = Accounts::new(&[("ann", "all"), ("shopper", "all shop:*")]);
    let server = accounts.start();
    let mut sizes = Vec::new();
    for mailbox in ["bob", "shop:bob", "shop:ann,Sent"] {
        sizes.push(server.import(mailbox, MAIL).await.size);
    }
    let seen = server.latest("bob").await.unwrap();
    server.mailroom.set_seen(&mailbox("bob"), seen.id, true).await.unwrap();
    for (user, messages, unseen, size) in [("ann", 3, 2, sizes.iter().sum()), ("shopper", 2, 2, sizes[1] + sizes[2])] {
        let mut client = log_in(&server, user, "secret").await;
        let lines = client.ok(r#"STATUS "All mail" (MESSAGES UNSEEN SIZE)"#).await;
        let expected: u64 = size;
        assert_eq!(lines, [format!(r#"* STATUS "All mail" (MESSAGES {messages} UNSEEN {unseen} SIZE {expected})"#)]);
    }
}

#[tokio::test]
async fn users_of_a_project_see_only_their_project() {
    let accounts = Accounts::new(&[("shopper", "read,write shop:*")]);
    let server = accounts.start();
    for mailbox in ["bob", "shop:bob", "shop:ann", "shop:ann,Sent", "acme:bob"] {
        server.import(mailbox, format!("Subject: {mailbox}\r\n\r\n")).await;
    }
    for user in ["bob*shopper", "shop:bob*shopper"] {
        let mut client = log_in(&server, user, "secret").await;
        client
            .talk(
                r#"
                C: 1 LIST "" *
                S: * LIST (\HasNoChildren \All) "/" "All mail"
                S: * LIST (\HasNoChildren) "/" "INBOX"
                S: * LIST (\Noselect \HasChildren) "/" "Other Users"
                S: * LIST (\HasChildren) "/" "Other Users/ann"
                S: * LIST (\HasNoChildren) "/" "Other Users/ann/Sent"
                S: 1 OK LIST completed
                C: 2 SELECT INBOX
                S* 2 OK [READ-WRITE] SELECT completed
                C: 3 SEARCH SUBJECT "shop:bob"
                S: * SEARCH 1
                S: 3 OK SEARCH completed
                C: 4 EXAMINE "All mail"
                S* 4 OK [READ-ONLY] EXAMINE completed
                C: 5 SEARCH NOT SUBJECT "shop:"
                S: * SEARCH
                S: 5 OK SEARCH completed
                C: 6 STATUS "All mail" (MESSAGES UNSEEN)
                S: * STATUS "All mail" (MESSAGES 3 UNSEEN 3)
                S: 6 OK STATUS completed
                C: 7 SELECT "Other Users/acme:bob"
                S: 7 NO [NONEXISTENT] There is no such mailbox
                "#,
            )
            .await;
    }
    // A mailbox of another project is not that of the login.
    let mut client = log_in(&server, "acme:bob*shopper", "secret").await;
    client
        .talk(
            r#"
            C: 1 STATUS INBOX (MESSAGES)
            S: * STATUS "INBOX" (MESSAGES 0)
            S: 1 OK STATUS completed
            "#,
        )
        .await;
}

#[tokio::test]
async fn folders_of_a_project_can_be_changed() {
    let accounts = Accounts::new(&[("shopper", "read,write shop:*")]);
    let server = accounts.start();
    server.import("shop:bob", MAIL).await;
    let mut client = log_in(&server, "bob*shopper", "secret").await;
    client
        .talk(
            r#"
            C: 1 CREATE a
            S~ 1 OK
            C: 2 CREATE a/b
            S~ 2 OK
            C: 3 SELECT INBOX
            S* 3 OK [READ-WRITE] SELECT completed
            C: 4 MOVE 1 a/b
            S~ * OK [COPYUID
            S: * 1 EXPUNGE
            S: 4 OK MOVE completed
            C: 5 RENAME a c
            S: 5 OK RENAME completed
            C: 6 STATUS c/b (MESSAGES)
            S: * STATUS "c/b" (MESSAGES 1)
            S: 6 OK STATUS completed
            C: 7 DELETE c
            S: 7 OK DELETE completed
            C: 8 LIST "" *
            S~ * LIST (\HasNoChildren \All) "/"
            S: * LIST (\HasNoChildren) "/" "INBOX"
            S: * LIST (\Noselect \HasChildren) "/" "c"
            S: * LIST (\HasNoChildren) "/" "c/b"
            S: 8 OK LIST completed
            "#,
        )
        .await;
    assert_eq!(server.count("shop:bob,c/b").await, 1);
}

/// The token of a leased run opens the mailboxes of the run, also if any login is accepted.
#[tokio::test]
async fn token_of_a_run_opens_the_mailboxes_of_the_run() {
    let auth = restante_auth::Settings { secret: Some(vec![7; 32]), ..restante_auth::Settings::default() };
    let runs = AuthService::open(auth.clone()).unwrap().authenticator.runs().clone();
    let (run, token) = runs.lease(Timestamp::now() + Duration::from_hours(1)).unwrap();
    let server = Setup { auth, ..Setup::default() }.start();
    server.import(&format!("{}:bob", run.project), MAIL).await;
    server.import(&format!("{}:ann", run.project), MAIL).await;
    for login in [format!("LOGIN bob {token}"), authenticate("XOAUTH2", "bob@x.org", &token)] {
        let mut client = server.connect().await;
        client.ok(&login).await;
        client
            .talk(
                r#"
                C: 1 STATUS INBOX (MESSAGES)
                S: * STATUS "INBOX" (MESSAGES 1)
                S: 1 OK STATUS completed
                C: 2 STATUS "Other Users/ann" (MESSAGES)
                S: * STATUS "Other Users/ann" (MESSAGES 1)
                S: 2 OK STATUS completed
                C: 3 STATUS "All mail" (MESSAGES)
                S: * STATUS "All mail" (MESSAGES 2)
                S: 3 OK STATUS completed
                "#,
            )
            .await;
    }
    let mut client = log_in(&server, "bob", "x").await;
    assert_eq!(client.ok("STATUS INBOX (MESSAGES)").await, [r#"* STATUS "INBOX" (MESSAGES 0)"#]);
}

/// Returns the command of XOAUTH2 or OAUTHBEARER with an initial response.
fn authenticate(mechanism: &str, user: &str, token: &str) -> String {
    let message = match mechanism {
        "XOAUTH2" => format!("user={user}\x01auth=Bearer {token}\x01\x01"),
        _ => format!("n,a={user},\x01host=mx.test\x01port=143\x01auth=Bearer {token}\x01\x01"),
    };
    format!("AUTHENTICATE {mechanism} {}", BASE64.encode(message.as_bytes()))
}

#[tokio::test]
async fn without_accounts_every_bearer_token_is_accepted() {
    let server = TestServer::start();
    server.deliver("bob@x.org", MAIL).await;
    for mechanism in ["XOAUTH2", "OAUTHBEARER"] {
        let mut client = server.connect().await;
        client.ok(&authenticate(mechanism, "bob@x.org", "ya29.any")).await;
        client.ok("EXAMINE INBOX").await;
        assert_eq!(client.uids().await.len(), 1, "{mechanism}");
    }
}

/// A client gets a new token after the description of the failure, and tries again on the same connection.
#[tokio::test]
async fn wrong_bearer_token_is_described_by_a_challenge() {
    let accounts = Accounts::new(&[("ann", "all")]);
    let token = accounts.token("ci", &[Scope::Read], &["bob"]);
    let server = accounts.start();
    server.deliver("bob@x.org", MAIL).await;
    for (mechanism, challenge) in [
        ("XOAUTH2", r#"{"status":"400","schemes":"Bearer","scope":"https://mail.google.com/"}"#),
        ("OAUTHBEARER", r#"{"status":"invalid_token","scope":"https://mail.google.com/"}"#),
    ] {
        let mut client = server.connect().await;
        client.send(format!("1 {}\r\n", authenticate(mechanism, "bob", "rst_expired"))).await;
        let line = client.line().await.unwrap();
        let described = BASE64.decode(line.strip_prefix("+ ").unwrap().as_bytes()).unwrap();
        assert_eq!(String::from_utf8(described).unwrap(), challenge);
        client.talk("C: AQ==\nS: 1 NO [AUTHENTICATIONFAILED] Wrong user name or password").await;
        client.ok(&authenticate(mechanism, "bob", &token)).await;
        client.ok("EXAMINE INBOX").await;
        assert_eq!(client.uids().await.len(), 1, "{mechanism}");
    }
}

#[tokio::test]
async fn token_without_the_right_to_read_gets_no_challenge() {
    let accounts = Accounts::new(&[]);
    let token = accounts.token("writer", &[Scope::Write], &["bob"]);
    let server = accounts.start();
    for mechanism in ["XOAUTH2", "OAUTHBEARER"] {
        let mut client = server.connect().await;
        let completion = client.refused(&authenticate(mechanism, "bob", &token)).await;
        assert_eq!(completion, "NO [NOPERM] The login does not allow this");
    }
}

#[tokio::test]
async fn authorization_identity_of_plain_is_the_mailbox() {
    let hash = PasswordHash::parse(SECRET_HASH).unwrap();
    let auth =
        restante_auth::Settings { credentials: vec![("ann".to_owned(), hash)], ..restante_auth::Settings::default() };
    let server = Setup { auth, ..Setup::default() }.start();
    server.deliver("bob@x.org", MAIL).await;
    for (identity, count) in [("", 0), ("ann", 0), ("bob", 1)] {
        let mut client = server.connect().await;
        let message = BASE64.encode(format!("{identity}\0ann\0secret").as_bytes());
        client.ok(&format!("AUTHENTICATE PLAIN {message}")).await;
        client.ok("EXAMINE INBOX").await;
        assert_eq!(client.uids().await.len(), count, "{identity}");
    }
}
