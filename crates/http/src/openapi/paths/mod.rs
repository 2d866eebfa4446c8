//! The operations in chapters, in the order in which people read them.

mod about;
mod arrivals;
mod entries;
mod examples;
mod extract;
mod files;
mod mailboxes;
mod messages;
mod monitor;
mod pages;
mod relay;
mod search;
mod sessions;
mod webhooks;
mod whole_messages;

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
        about: "Reading, marking and deleting messages: version 1, the API of Inbucket.",
        operations: messages::operations,
    },
    Chapter {
        name: "All mail",
        about: "Messages as a whole, in one list for all mailboxes. A message has a copy in the mailbox of each recipient. Its \
                id is that of its first copy.",
        operations: whole_messages::operations,
    },
    Chapter {
        name: "Mailboxes",
        about: "The list of mailboxes, and changes of many messages in one request.",
        operations: mailboxes::operations,
    },
    Chapter {
        name: "Arrivals",
        about: "Waiting for messages instead of polling, and delivering messages without SMTP.",
        operations: arrivals::operations,
    },
    Chapter {
        name: "Extracts",
        about: "Extracts of a message for tests: links, one-time codes, unsubscribe links, parts.",
        operations: extract::operations,
    },
    Chapter {
        name: "Search",
        about: "Finding messages by their content, in all mailboxes or in one.",
        operations: search::operations,
    },
    Chapter {
        name: "Transcripts",
        about: "The SMTP and LMTP sessions in which messages were delivered or refused.",
        operations: sessions::operations,
    },
    Chapter {
        name: "Relay",
        about: "Sending messages to other mail servers: the targets, and the queue.",
        operations: relay::operations,
    },
    Chapter {
        name: "Webhooks",
        about: "HTTP requests for events of messages: the targets, and the queue.",
        operations: webhooks::operations,
    },
    Chapter {
        name: "Live monitor",
        about: "Events for messages that are stored and deleted. A new connection gets the most recent messages first \
                (`web.monitorhistory`), then new events.",
        operations: monitor::operations,
    },
    Chapter {
        name: "Attachments",
        about: "The attachments of messages. The headers of the responses prevent browsers from running scripts in them.",
        operations: files::operations,
    },
    Chapter { name: "Pages", about: "Messages for web interfaces.", operations: pages::operations },
    Chapter {
        name: "Server",
        about: "The server, its health, and the description of the API.",
        operations: about::operations,
    },
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
