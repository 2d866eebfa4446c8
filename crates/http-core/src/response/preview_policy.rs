//! The content security policies of documents that show the HTML of a message. They make the HTML harmless even if it was
//! not sanitized.

use axum::http::HeaderValue;

/// The common part of both policies. `sandbox` gives the document its own origin and forbids scripts, forms and
/// plugins. Links may open a tab, which is not sandboxed.
macro_rules! policy {
    ($images:literal, $fonts:literal) => {
        concat!(
            "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; img-src ",
            $images,
            "; style-src 'unsafe-inline'; font-src ",
            $fonts,
            "; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
        )
    };
}

/// Nothing is loaded from the network.
pub const POLICY: HeaderValue = HeaderValue::from_static(policy!("data:", "data:"));
/// Images and fonts are loaded from other hosts.
pub const POLICY_WITH_REMOTE: HeaderValue = HeaderValue::from_static(policy!("data: http: https:", "data: https:"));
