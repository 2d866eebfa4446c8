//! The web interface in a real browser: a headless Chromium that is driven by its WebDriver. A machine may lack it, and then
//! nothing is tested, unless `REQUIRE_BROWSER` is set, as it is in CI. Every test has a server and a browser of its own.

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
