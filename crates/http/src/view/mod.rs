//! What a page that shows mail asks about a message, beside the REST API: `compat` is the JSON that Inbucket's page reads,
//! `details` that of our own page, `preview` the document for its frame, with the images of `inline` in it, and `counts`
//! says which messages of a list have attachments. How HTML becomes harmless is the business of [`crate::html`].

mod compat;
mod counts;
mod details;
mod inline;
mod preview;

use restante_mail::mime::Defect;

use super::json;
use super::render::field;

pub(super) use compat::compat;
pub(super) use counts::{Counted, counts};
pub(super) use details::details;
pub(super) use preview::preview;

/// Appends what is wrong with a mail.
fn defect(out: &mut Vec<u8>, Defect { name, detail, severe }: &Defect) {
    out.push(b'{');
    field(out, "name", name);
    out.push(b',');
    field(out, "detail", detail);
    json::display(out, format_args!(",\"severe\":{severe}}}"));
}
