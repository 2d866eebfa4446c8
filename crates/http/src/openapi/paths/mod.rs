//! The operations in chapters, in the order in which people read them.

mod about;
mod arrivals;
mod examples;
mod extract;
mod files;
mod mailboxes;
mod messages;
mod monitor;
mod pages;
mod search;
mod sessions;

use crate::openapi::operation::Operation;

/// A group of operations. It is a tag in the document.
pub(super) struct Chapter {
    /// The name of the tag.
    pub(super) name: &'static str,
    /// The description of the tag.
    pub(super) about: &'static str,
    operations: fn() -> Vec<Operation>,
}

/// All chapters.
pub(super) const CHAPTERS: &[Chapter] = &[
    Chapter {
        name: "Messages",
        about: "Reading, marking and deleting what mailboxes hold: version 1, as clients of Inbucket know it.",
        operations: messages::operations,
    },
    Chapter {
        name: "Mailboxes",
        about: "Which mailboxes hold something, and changes of many messages at once.",
        operations: mailboxes::operations,
    },
    Chapter {
        name: "Arrivals",
        about: "Waiting for mail instead of asking for it again and again, and bringing mail without SMTP.",
        operations: arrivals::operations,
    },
    Chapter {
        name: "Extracts",
        about: "What tests want out of a message: links, one-time codes, ways to unsubscribe, parts.",
        operations: extract::operations,
    },
    Chapter {
        name: "Search",
        about: "Finding messages by what they say, over all mailboxes or in one.",
        operations: search::operations,
    },
    Chapter {
        name: "Transcripts",
        about: "What was said between the server and those who brought mail, and those whose mail was refused.",
        operations: sessions::operations,
    },
    Chapter {
        name: "Live monitor",
        about: "Being told of messages at the moment they come and go. Who connects hears of the last messages first \
                (`web.monitorhistory`), and then of what happens.",
        operations: monitor::operations,
    },
    Chapter {
        name: "Attachments",
        about: "The files that messages bring along. The answers carry headers that keep a browser from running anything \
                in them.",
        operations: files::operations,
    },
    Chapter { name: "Pages", about: "What pages that show mail ask for.", operations: pages::operations },
    Chapter { name: "Server", about: "What the server tells about itself.", operations: about::operations },
];

impl Chapter {
    /// Returns the operations of the chapter, with its tag.
    pub(super) fn operations(&self) -> Vec<Operation> {
        let mut operations = (self.operations)();
        for operation in &mut operations {
            operation.spec.tags = Some(vec![self.name.to_owned()]);
        }
        operations
    }
}
