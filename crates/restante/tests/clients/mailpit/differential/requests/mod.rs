//! The requests of the comparison, in stages: reading first, then changes.

mod changes;
mod errors;
mod reading;

use super::answer::Request;
use super::mails::Mail;
use super::side::Side;

/// Returns the requests of a stage. Ids of parts are those of Mailpit.
type Stage = fn(&Side, &[Mail]) -> Vec<Request>;

/// The stages in their order.
pub(crate) const STAGES: [Stage; 9] = [
    reading::lists,
    reading::searches,
    reading::other_methods,
    reading::messages,
    errors::errors,
    changes::tags,
    changes::read_marks,
    changes::sent,
    changes::deletions,
];

fn gets(paths: &[&str]) -> Vec<Request> {
    paths.iter().map(|path| Request::get(*path)).collect()
}

/// Returns the requests to a server without messages.
pub(crate) fn in_empty_store() -> Vec<Request> {
    gets(&[
        "/api/v1/messages",
        "/api/v1/search?query=text",
        "/api/v1/tags",
        "/api/v1/message/latest",
        "/api/v1/message/latest/headers",
        "/api/v1/message/latest/raw",
        "/view/latest.html",
        "/view/latest.txt",
        "/view/latest?in=empty-store",
    ])
}

/// Returns the requests to a server below a path.
pub(crate) fn below_web_root() -> Vec<Request> {
    gets(&[
        "",
        "/api/v1/messages?limit=1",
        "/api/v1/webui",
        "/view/latest?below=web-root",
        "/view/{picture-in-html}.html",
        "/api/v1/message/{picture-in-html}/part/2",
    ])
}
