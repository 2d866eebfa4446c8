//! A server with locks, as somebody meets it in a browser: the page that asks, the way back, the name in the bar, the way out.

use std::fs;

use restante_testdir::TestDir;

use super::mails;
use super::page::Page;
use crate::support::Server;

/// The user `ann`, whose password is `secret`.
const USERS: &str =
    "ann:$argon2id$v=19$m=19456,t=2,p=1$PHD+WTFRHvTJ2ySmkmuXWw$6CeFKOFBwuxZmMbEypQUWBTx3U3aI1a3q520QOzHbkI\n";

#[test]
fn somebody_logs_in_and_out() {
    let dir = TestDir::new();
    let file = dir.path().join("users");
    fs::write(&file, USERS).unwrap();
    let server = Server::start(&[&format!("--auth-users={}", file.display())]);
    let Some(page) = Page::of(&server) else { return };
    server.deliver("james@x.org", &mails::text("Hello", "The needle"));
    page.open("/search?q=needle");
    page.until("the question", || page.path().starts_with("/login?next="));
    page.fill("#user", "ann");
    page.fill("#password", "wrong\n");
    page.until("a refusal", || page.text(".note.bad") == "The user name or the password is wrong.");
    page.fill("#password", "secret\n");
    // On to where one wanted to go.
    page.until("what was found", || page.texts(".hit-link") == ["Hello"]);
    assert_eq!(page.path(), "/search?q=needle");
    page.until("the name", || page.text(".account-name") == "ann");
    page.click(".account button");
    page.until("the question", || page.path() == "/login");
    page.open("/m/james");
    page.until("the question", || page.path() == "/login?next=m%2Fjames");
    assert_eq!(page.asked_outside(), [""; 0]);
}
