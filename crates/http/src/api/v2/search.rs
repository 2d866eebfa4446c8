//! Searching: a question goes to the index, and what it finds is told a page at a time, with a few words around each hit. What can
//! be asked is the business of the search itself.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use jiff::Timestamp;
use restante_search::{Answer, Hit, Piece, Query, Question};

use crate::connection::memory::{Allowance, SMALL};
use crate::extractors::cancellation::Attendance;
use crate::extractors::parameters::{Permitted, Sought};
use crate::response::problem::Problem;
use crate::response::{json, message_json, success};
use crate::state::Server;

/// What a snippet takes, at most, as a rule.
const SNIPPET: usize = 512;

/// Search Messages.
pub(crate) async fn search(
    State(server): State<Arc<Server>>,
    Permitted(grant): Permitted,
    Sought { text, mailbox, before, limit }: Sought,
    attendance: Attendance,
) -> Result<Response, Problem> {
    let search = server.settings.extensions.search.as_ref().ok_or(Problem::NoSearch)?;
    let query = Query::parse(&text, Timestamp::now()).map_err(Problem::NoQuestion)?;
    let is_permitted = Box::new(move |mailbox: &_| grant.reaches(mailbox));
    let begun = Instant::now();
    let question = Question { query, mailbox, is_permitted, before, limit };
    // Who has left does not stand in the way of others.
    let asked = async {
        let answer = search.ask(&server.mailroom, question).await;
        server.settings.metrics.search(begun.elapsed());
        Ok(Arc::new(answer?))
    };
    let answer = attendance.during(asked).await?;
    let (this, answer) = (&server, &answer);
    let make = |allowance: Allowance| async move {
        let turn = this.turn(size(answer), SMALL).await?;
        let answer = answer.clone();
        Ok(turn.work(move || allowance.cover(rendered(&answer))).await??)
    };
    Ok(success::fresh(server.within_budget(make).await?))
}

fn rendered(Answer { hits, next, is_complete }: &Answer) -> Bytes {
    let mut out = Vec::with_capacity(hits.len() * SNIPPET);
    out.extend_from_slice(b"{\"messages\":");
    json::array(&mut out, hits, record);
    match next {
        Some(id) => json::display(&mut out, format_args!(",\"next\":\"{id}\"")),
        None => out.extend_from_slice(b",\"next\":null"),
    }
    json::display(&mut out, format_args!(",\"complete\":{is_complete}}}\n"));
    out.into()
}

fn record(out: &mut Vec<u8>, Hit { summary, snippet }: &Hit) {
    out.push(b'{');
    message_json::summary(out, summary);
    out.extend_from_slice(b",\"snippet\":");
    json::array(out, snippet, |out, Piece { text, is_hit }: &Piece| {
        out.push(b'{');
        message_json::field(out, "text", text);
        json::display(out, format_args!(",\"hit\":{is_hit}}}"));
    });
    out.push(b'}');
}

/// How long the answer becomes, roughly.
fn size(answer: &Answer) -> usize {
    answer.hits.iter().map(|hit| message_json::record_size(&hit.summary) + SNIPPET).sum()
}
