//! Tests of all three steps together: what is displayed, what is never displayed, and the cost of hostile messages.

mod active_html;
mod cost;
mod css_scanner;
mod rendering;
mod styles;

use super::InlineParts;

/// A message with the single part `known@x`.
struct TestParts;

impl InlineParts for TestParts {
    fn url_by_content_id(&self, content_id: &str) -> Option<String> {
        (content_id == "known@x").then(|| "https://parts.example/1".to_owned())
    }
}
