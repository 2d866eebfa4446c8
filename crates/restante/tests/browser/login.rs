//! The login in a browser: the login page, the redirect back, the user name in the bar, and the logout.

use std::fs;

use restante_testdir::TestDir;

use super::mails;
use super::page::Page;
use crate::support::Server;
use crate::support::oidc_provider::{OidcProvider, SECRET};

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
    page.expect_path("/search?q=needle");
    page.until("the user name", || page.text(".account-name") == "ann");
    page.click(".account button");
    page.until("the login page", || page.path() == "/login");
    page.open("/m/james");
    page.until("the login page", || page.path() == "/login?next=m%2Fjames");
    assert_eq!(page.external_requests(), [""; 0]);
}

#[test]
fn account_of_an_identity_provider_logs_in_and_out() {
    let Some(mut provider) = OidcProvider::start() else { return };
    let server = provider.server("restante", SECRET, &["--auth-grants=groups=ann -> all"]);
    let Some(page) = Page::of(&server) else { return };
    server.deliver("james@x.org", &mails::text("Hello", "The needle"));
    page.open("/search?q=needle");
    page.until("the login page", || page.path().starts_with("/login?next="));
    assert_eq!(page.count("input"), 0, "there are no users with passwords");
    page.click("a.button");
    page.until("the page of the provider", || page.title() == "Provider");
    page.fill("input", "ann\n");
    page.until("the results", || page.texts(".row-subject") == ["Hello"]);
    page.expect_path("/search?q=needle");
    page.until("the user name", || page.text(".account-name") == "ann");
    page.click(".account button");
    // The provider asks for a confirmation.
    page.click("button[name=logout][value=yes]");
    page.until("the login page", || page.path() == "/login");
    page.open("/m/james");
    page.until("the login page", || page.path() == "/login?next=m%2Fjames");
    page.click("a.button");
    page.until("the page of the provider", || page.title() == "Provider");
    page.fill("input", "eve\n");
    page.until("the refusal", || page.text("h1") == "No access");
    page.expect_text("main p:not(.brand)", "You are logged in as eve. Your account has no access to this server.");
    page.click("a.button");
    page.click("button[name=logout][value=yes]");
    page.until("the login page", || page.path() == "/login");
}
