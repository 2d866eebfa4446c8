//! The whole way of HTML through the three steps: what is shown, what is never shown, and what hostile mail costs.

mod active_html;
mod cost;
mod css_scanner;
mod rendering;
mod styles;

use super::InlineParts;

/// A mail with the one part `known@x`.
struct TestParts;

impl InlineParts for TestParts {
    fn url_by_content_id(&self, content_id: &str) -> Option<String> {
        (content_id == "known@x").then(|| "https://parts.example/1".to_owned())
    }
}
