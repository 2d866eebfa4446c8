//! Operations that describe the server and the API.

use serde_json::json;
use utoipa::ToSchema;
use utoipa::openapi::OpenApi;

use crate::openapi::operation::{Operation, get};
use crate::operations::about::AboutResponse;

pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/api/v2/server", "aboutServer")
            .describe(
                "Describe the server",
                "The version, the settings, and how to send and fetch mail. The ports are those that are really bound: the \
                 first TCP port without implicit TLS, otherwise the first one with it; null if there is none.",
            )
            .json_response::<AboutResponse<'_>>("The description of the server.", about())
            .requires_login(),
        get("/livez", "isLive")
            .describe("Check whether the server is alive", "Accepts any `Host`.")
            .content("text/plain", "The server is alive.")
            .public(),
        get("/readyz", "isReady")
            .describe("Check whether messages can be read and accepted now", "Accepts any `Host`.")
            .content("text/plain", "The server is ready.")
            .public(),
        get("/api/openapi.json", "describeApi")
            .describe("Get this description for programs", "OpenAPI 3.1.")
            .json_response::<Document>("The description.", json!({ "openapi": "3.1.0" }))
            .cacheable()
            .requires_login(),
        get("/api/docs", "describeApiToPeople")
            .describe("Get this description for people", "A page without scripts.")
            .content("text/html", "The page.")
            .cacheable()
            .requires_login(),
    ]
}

fn about() -> serde_json::Value {
    json!({
        "version": "0.1.0",
        "build-date": "2026-11-15T12:00:00Z",
        "started-millis": 1_794_744_000_000_i64,
        "mailbox-naming": "local",
        "monitor-visible": true,
        "smtp": {
            "port": 2500,
            "domain": "mx.example.org",
            "tls": "off",
            "auth-required": false,
            "max-message-bytes": 10_240_000,
            "max-recipients": 200,
        },
        "pop3": { "port": 1100, "tls": "starttls" },
        "script": "rules.lua",
        "webhooks": 1,
        "relay": ["main"],
        "user": null,
        "locked": false,
    })
}

/// An OpenAPI 3.1 document.
#[derive(ToSchema)]
#[schema(value_type = Object)]
struct Document(#[expect(dead_code, reason = "only its schema is used")] OpenApi);
