//! The web interface in a real browser: a headless Chromium that is driven by its WebDriver. A machine may lack it, and then
//! nothing is tested, unless `REQUIRE_BROWSER` is set, as it is in CI. Every test has a server and a browser of its own.

mod attacks;
mod codes;
mod deletions;
mod driver;
mod harness;
mod hostile;
mod https;
mod keyboard;
mod login;
mod looks;
mod lost;
mod mailbox;
mod mails;
mod many;
mod message;
mod monitor;
mod outside;
mod page;
mod pages;
mod proxy;
mod rooms;
mod scenery;
mod search;
mod sessions;
mod shifts;
#[path = "../support/mod.rs"]
mod support;
mod tricks;
