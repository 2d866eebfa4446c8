//! The login in a browser: the login page, the redirect back, the user name in the bar, and the logout.

use std::fs;

use restante_testdir::TestDir;

use super::mails;
use super::page::Page;
use crate::support::Server;

/// The user `ann`, whose password is `secret`.
pub(crate) const USERS: &str =
    "ann:$argon2id$v=19$m=19456,t=2,p=1$PHD+WTFRHvTJ2ySmkmuXWw$6CeFKOFBwuxZmMbEypQUWBTx3U3aI1a3q520QOzHbkI\n";

#[test]
fn user_logs_in_and_out() {
    let dir = TestDir::new();
    let file = dir.path().join("users");
    fs::write(&file, USERS).unwrap();
    let server = Server::start(&[&format!("--auth-users={}", file.display())]);
    let Some(page) = Page::of(&server) else { return };
    server.deliver("james@x.org", &mails::text("Hello", "The needle"));
    page.open("/search?q=needle");
    page.until("the login page", || page.path().starts_with("/login?next="));
    page.fill("#user", "ann");
    page.fill("#password", "wrong\n");
    page.until("the error", || page.text(".note.bad") == "The user name or the password is wrong.");
    page.fill("#password", "secret\n");
    // Redirects to the requested page.
    page.until("the results", || page.texts(".row-subject") == ["Hello"]);
    assert_eq!(page.path(), "/search?q=needle");
    page.until("the user name", || page.text(".account-name") == "ann");
    page.click(".account button");
    page.until("the login page", || page.path() == "/login");
    page.open("/m/james");
    page.until("the login page", || page.path() == "/login?next=m%2Fjames");
    assert_eq!(page.external_requests(), [""; 0]);
}
