//! Tests of the REST API in the whole service, in-process over a memory store.

mod api;
mod attachments;
mod batch;
mod chaos;
mod downloads;
mod extract;
mod folders;
mod grants;
mod html_check;
mod inject;
mod mailbox_messages;
mod mailboxes;
mod message_changes;
mod message_views;
mod messages;
mod monitor;
mod preview;
mod relay;
mod runs;
mod sessions;
#[path = "../../../http/tests/support/mod.rs"]
mod support;
mod tags;
mod wait;
mod webhooks;
