//! Sessions and transcripts.

use restante_api_types::patterns;
use serde_json::{Value, json};

use crate::api::v2::sessions::{Sessions, Transcript};
use crate::openapi::operation::{Operation, choice, get, limit, number};
use crate::openapi::paths::examples::ID;
use crate::openapi::refusals::NOT_FOUND;

pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/api/v2/mailbox/{name}/{id}/transcript", "readTranscript")
            .describe(
                "Get the transcript of the delivery of a message",
                "The start of its session, up to the first transaction, and the transaction of the message. Passwords are never \
                 stored.",
            )
            .json_response::<Transcript<'_>>("The session and its transcript.", transcript())
            .refusals(&[&NOT_FOUND]),
        get("/api/v2/sessions", "listSessions")
            .describe("List the SMTP and LMTP sessions", "The newest first, as far as they are still stored.")
            .parameter(limit("sessions", 50, 200))
            .parameter(number("before", "Only sessions with ids below this one: the `next` of the previous page."))
            .parameter(choice(
                "refused",
                &["true", "false"],
                "`true` lists only sessions in which a command was refused.",
            ))
            .json_response::<Sessions<'_>>("A page of the list.", json!({ "sessions": [session()], "next": null }))
            .requires_scope("admin"),
        get("/api/v2/sessions/{id}", "readSession")
            .describe("Get a session", "As far as it is still stored.")
            .describe_parameter("id", "The id of a session.")
            .parameter_pattern("id", patterns::ID)
            .json_response::<Transcript<'_>>("The session and its transcript.", transcript())
            .requires_scope("admin")
            .refusals(&[&NOT_FOUND]),
    ]
}

fn session() -> Value {
    json!({
        "id": "1794711170000000",
        "protocol": "smtp",
        "client": "192.0.2.1",
        "helo": "app.example.org",
        "tls": { "version": "TLSv1.3", "cipher": "TLS_AES_256_GCM_SHA384" },
        "user": null,
        "started": "2026-11-15T02:52:50.000000+00:00",
        "started-millis": 1_794_711_170_000_i64,
        "ended-millis": 1_794_711_170_200_i64,
        "ending": "quit",
        "transactions": [{
            "from": "ann@example.org",
            "to": ["bob@example.org"],
            "parameters": { "mail": "SIZE=512", "rcpt": ["NOTIFY=NEVER"] },
            "outcome": "stored",
            "reply": "250 2.0.0 Mail accepted",
            "messages": [{ "mailbox": "bob", "id": ID }],
        }],
        "transaction-count": 1,
        "refused": 0,
    })
}

fn transcript() -> Value {
    json!({
        "session": session(),
        "lines": [{
            "at": "2026-11-15T02:52:50.012000+00:00",
            "posix-millis": 1_794_711_170_012_i64,
            "after-millis": 12,
            "from": "client",
            "text": "EHLO app.example.org",
        }],
    })
}
