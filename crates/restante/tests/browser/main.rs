//! Tests of the web interface in a real browser: a headless Chromium controlled by WebDriver. If it is not installed, the tests are
//! skipped, or fail if `REQUIRE_BROWSER` is set, as in CI. Every test has its own server and browser.

mod active_html;
mod appearance;
mod attacks;
mod codes;
mod deletions;
mod driver;
mod harness;
mod hostile;
mod https;
mod keyboard;
mod large_mailboxes;
mod layout_shifts;
mod login;
mod mailbox;
mod mails;
mod message;
mod monitor;
mod other_hosts;
mod page;
mod pages;
mod proxy;
mod reconnect;
mod sample_mail;
mod search;
mod sessions;
mod status;
#[path = "../support/mod.rs"]
mod support;
