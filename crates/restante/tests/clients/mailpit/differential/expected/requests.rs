//! Differences between the answers to other requests, and between events.

use super::{ANY, Expected, NOTHING};

/// The body of a problem document.
const PROBLEM: &str = "\"{\\\"type\\\":\\\"about:blank\\\",*}\\n\"";
const PROBLEM_TYPE: &str = "\"application/problem+json\"";

pub(super) const DIFFERENCES: &[Expected] = &[
    // Files.
    Expected {
        reason: "A file name is quoted as RFC 6266 says; Mailpit percent-encodes it as in a URL",
        places: &[[
            "GET /api/v1/message/{*}/part/*",
            "content-disposition",
            "\"inline; filename=\\\"*%*\\\"\"",
            "\"inline; filename=\\\"*\\\"*\"",
        ]],
    },
    Expected {
        reason: "The type of a text has charset=utf-8, because its content was converted; Mailpit omits it",
        places: &[
            ["GET /api/v1/message/{files}/part/3", "content-type", "\"text/csv\"", "\"text/csv; charset=utf-8\""],
            [
                "GET /api/v1/message/{corpus-mixed-attachments}/part/2",
                "content-type",
                "\"text/csv\"",
                "\"text/csv; charset=utf-8\"",
            ],
        ],
    },
    Expected {
        reason: "The line Content-Disposition of Mailpit is invalid: it has no type",
        places: &[["GET /api/v1/message/{*}/part/2/thumb", "content-disposition", "\"filename=\\\"*\\\"\"", NOTHING]],
    },
    // Checks.
    Expected {
        reason: "Restante has the facts of caniemail, not its sentences",
        places: &[
            ["GET /api/v1/message/{*}/html-check", "body Warnings * Description", "\"*\"", "\"\""],
            [
                "GET /api/v1/message/{*}/html-check",
                "body Warnings * NotesByNumber *",
                "\"*\"",
                "\"See note * on https://www.caniemail.com/features/*/\"",
            ],
        ],
    },
    Expected {
        reason: "Restante lists only the notes that a result names",
        places: &[["GET /api/v1/message/{*}/html-check", "body Warnings * NotesByNumber *", "\"*\"", NOTHING]],
    },
    Expected {
        reason: "Restante does not request links",
        places: &[
            ["GET /api/v1/message/{*}/link-check", "body Links * Status", "\"*\"", "\"Not checked\""],
            ["GET /api/v1/message/{*}/link-check", "body Errors", ANY, "0"],
            ["GET /api/v1/message/latest/link-check", "body Links * Status", "\"*\"", "\"Not checked\""],
            ["GET /api/v1/message/latest/link-check", "body Errors", ANY, "0"],
        ],
    },
    Expected {
        reason: "No relay is configured. Mailpit tries to connect to an empty address",
        places: &[[
            "POST /api/v1/message/{picture}/release {\"To\": [\"x@example.test\"]}",
            "body",
            "\"SMTP error: *\"",
            "\"SMTP error: this server does not relay messages\"",
        ]],
    },
    // Pages.
    Expected {
        reason: "With embed=1 Mailpit adds a script for its own web interface",
        places: &[["GET /view/{*}.html?embed=1", "body has script", "true", "false"]],
    },
    Expected {
        reason: "The web interface is Restante's",
        places: &[
            ["GET /view/{picture}", "status", "200", "302"],
            ["GET /view/{picture}", "location", NOTHING, "\"/messages/{picture}\""],
            ["GET /view/{picture}", "content-type", "\"text/html; charset=utf-8\"", NOTHING],
            ["GET /view/{picture}", "body", "\"<!DOCTYPE html>*\"", "\"\""],
        ],
    },
    Expected {
        reason: "A redirect has no body",
        places: &[
            ["GET /view/latest*", "body", "\"<a href=*>Found</a>.\\n\\n\"", "\"\""],
            ["GET /view/latest*", "content-type", "\"text/html; charset=utf-8\"", NOTHING],
            ["GET ", "body", "\"<a href=*>Found</a>.\\n\\n\"", "\"\""],
            ["GET ", "content-type", "\"text/html; charset=utf-8\"", NOTHING],
        ],
    },
    Expected {
        reason: "The redirect from the web root without a slash is permanent",
        places: &[["GET ", "status", "302", "308"]],
    },
    Expected {
        reason: "The answer of a health check has a text",
        places: &[
            ["GET /livez", "body", "\"\"", "\"ok\\n\""],
            ["GET /livez", "content-type", NOTHING, "\"text/plain; charset=utf-8\""],
            ["GET /readyz", "body", "\"\"", "\"ok\\n\""],
            ["GET /readyz", "content-type", NOTHING, "\"text/plain; charset=utf-8\""],
        ],
    },
    Expected {
        reason: "The version names both programs, and there is no database file of Mailpit",
        places: &[
            ["GET /api/v1/info", "body Version", "\"v1.30.5\"", "\"v1.30.5+restante.*\""],
            ["event after connect", "0 Data Version", "\"v1.30.5\"", "\"v1.30.5+restante.*\""],
            ["GET /api/v1/info", "body Database", "\"*.db\"", "\"\""],
        ],
    },
    // Events.
    Expected {
        reason: "Tags are sorted in all answers; in an event Mailpit has the order of the request",
        places: &[
            ["event after PUT /api/v1/tags *", "0 Data Tags 0", "\"beta\"", "\"Alpha\""],
            ["event after PUT /api/v1/tags *", "0 Data Tags 1", "\"Alpha\"", "\"beta\""],
        ],
    },
    Expected {
        reason: "A deletion of all messages has an event for each of them before truncate",
        places: &[
            ["event after DELETE /api/v1/messages {}", "0 Type", "\"truncate\"", "\"delete\""],
            ["event after DELETE /api/v1/messages {}", "0 Data", "null", "{\"ID\":\"{text-links}\"}"],
            ["event after DELETE /api/v1/messages {}", "1", NOTHING, "{\"Data\":null,\"Type\":\"truncate\"}"],
        ],
    },
    // Errors.
    Expected {
        reason: "The description of the API in Mailpit's words is not included",
        places: &[
            ["GET /api/v1/swagger.json", "status", "200", "404"],
            ["GET /api/v1/swagger.json", "content-type", "\"application/json\"", PROBLEM_TYPE],
            ["GET /api/v1/swagger.json", "body", "{*}", PROBLEM],
        ],
    },
    Expected {
        reason: "An unknown path or method has the same answer as in the rest of Restante, a problem document",
        places: &[
            ["GET /api/v1/unknown", "content-type", "\"text/plain; charset=utf-8\"", PROBLEM_TYPE],
            ["GET /api/v1/unknown", "body", "\"File not found\\n\"", PROBLEM],
            ["GET /api/v1/message/{picture}/unknown", "content-type", "\"text/plain; charset=utf-8\"", PROBLEM_TYPE],
            ["GET /api/v1/message/{picture}/unknown", "body", "\"File not found\\n\"", PROBLEM],
            ["POST /api/v1/messages {}", "content-type", "\"text/plain; charset=utf-8\"", PROBLEM_TYPE],
            ["POST /api/v1/messages {}", "body", "\"Method Not Allowed\\n\"", PROBLEM],
            ["DELETE /api/v1/message/{picture}", "content-type", "\"text/plain; charset=utf-8\"", PROBLEM_TYPE],
            ["DELETE /api/v1/message/{picture}", "body", "\"Method Not Allowed\\n\"", PROBLEM],
        ],
    },
    Expected {
        reason: "A thumbnail of an unknown message is not found, as all other requests about it",
        places: &[
            ["GET /api/v1/message/unknown/part/1/thumb", "status", "400", "404"],
            [
                "GET /api/v1/message/unknown/part/1/thumb",
                "body",
                "\"sql: no rows in result set\"",
                "\"404 page not found\"",
            ],
        ],
    },
    Expected {
        reason: "JSON of a wrong type has the error text of another library",
        places: &[
            ["PUT /api/v1/messages *", "body", "\"json: cannot unmarshal *\"", "\"json: cannot unmarshal: *\""],
            ["PUT /api/v1/tags *", "body", "\"json: cannot unmarshal *\"", "\"json: cannot unmarshal: *\""],
        ],
    },
    Expected {
        reason: "Mailpit keeps the tags of an unknown message",
        places: &[
            ["GET /api/v1/tags?of=unknown", "body 7", "\"x\"", NOTHING],
            ["DELETE /api/v1/tags/x", "status", "200", "400"],
            ["DELETE /api/v1/tags/x", "body", "\"ok\"", "\"tag not found: x\""],
        ],
    },
    Expected {
        reason: "Mailpit deletes all messages if the JSON of a deletion is damaged",
        places: &[
            ["DELETE /api/v1/messages not JSON", "status", "200", "400"],
            ["DELETE /api/v1/messages not JSON", "body", "\"ok\"", "\"invalid JSON: *\""],
        ],
    },
];
