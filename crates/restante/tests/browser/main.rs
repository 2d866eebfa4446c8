//! Tests of the web interface in a real browser: a headless Chromium, and for the main pages a Firefox, controlled by WebDriver. If it
//! is not installed, the tests are skipped, or fail if `REQUIRE_BROWSER` or `REQUIRE_FIREFOX` is set, as in CI. Every test has its own
//! server. Tests use the same few Chromium browsers one after another, each in a browser context of its own.

mod accessibility;
mod active_html;
mod api_docs;
mod appearance;
mod attachments;
mod attacks;
mod chromium;
mod codes;
mod compose;
mod deletions;
mod driver;
mod firefox;
mod harness;
mod hostile;
mod html_check;
mod https;
mod inbox;
mod keyboard;
mod large_mailboxes;
mod layout_shifts;
mod list_head;
mod loading;
mod login;
mod mailbox;
mod mails;
mod message;
mod message_header;
mod navigation;
mod other_hosts;
mod page;
mod pages;
mod pictures;
mod process_group;
mod projects;
mod proxy;
mod reading;
mod reconnect;
mod relay;
mod sample_mail;
mod search;
mod sessions;
mod settings;
mod sidebar;
mod status;
#[path = "../support/mod.rs"]
mod support;
mod webhooks;
