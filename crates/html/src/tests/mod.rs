//! The whole way of HTML through the three steps: what is shown, what is never shown, and what hostile mail costs.

mod cost;
mod css_scanner;
mod looks;
mod styles;
mod tricks;

use super::Inline;

/// A mail with the one part `known@x`.
struct Parts;

impl Inline for Parts {
    fn url(&self, content_id: &str) -> Option<String> {
        (content_id == "known@x").then(|| "https://parts.example/1".to_owned())
    }
}
