//! Refuses a connection with a problem document, before a request is read.

use restante_net::TooMany;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::connection::http1::refuse;
use crate::response::problem::Problem;

/// Refuses a connection above the limits.
pub async fn refuse_connection<S: AsyncRead + AsyncWrite + Unpin>(stream: S, too_many: TooMany) {
    refuse(stream, &whole_response(&too_many.into())).await;
}

/// Returns a problem as a whole response, with its status line and header.
fn whole_response(problem: &Problem) -> Vec<u8> {
    let (status, body) = (problem.status(), problem.body());
    // `StatusCode` writes itself with its phrase.
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/problem+json\r\ncontent-length: {}\r\nretry-after: {}\r\n\
         connection: close\r\n\r\n",
        body.len(),
        problem.retry_after().unwrap_or("1"),
    );
    [head.into_bytes(), body].concat()
}
