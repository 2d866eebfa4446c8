//! The differences between Mailpit and Restante that are intended. The table in `docs/from-mailpit.md` tells users about them.

use super::compare::Place;

/// An intended difference.
pub(crate) struct Expected {
    /// Why it is intended.
    pub(crate) reason: &'static str,
    /// Where it occurs. Every place has to occur.
    pub(crate) places: &'static [Place],
}

/// The request with the summaries of all messages.
const ALL: &str = "GET /api/v1/messages?limit=1000";
/// The requests of one message, of its header and of its source.
const MESSAGE: &str = "GET /api/v1/message/{*}";
const HEADERS: &str = "GET /api/v1/message/{*}/headers";
const RAW: &str = "GET /api/v1/message/{*}/raw";
/// The same for messages that the API has sent.
const SENT: &str = "GET /api/v1/message/latest";
const SENT_HEADERS: &str = "GET /api/v1/message/latest/headers";
/// The messages that are read after requests with HEAD.
const AFTER_HEAD: &str = "GET /api/v1/search?query=is:read&limit=1000";
/// The value of a field that is missing.
const NOTHING: &str = "nothing";
/// A value that is not compared.
const ANY: &str = "*";
/// The body of a problem document.
const PROBLEM: &str = "\"{\\\"type\\\":\\\"about:blank\\\",*}\\n\"";
const PROBLEM_TYPE: &str = "\"application/problem+json\"";

/// The table.
pub(crate) const DIFFERENCES: &[Expected] = &[
    // The source of a message.
    Expected {
        reason: "Each program adds its own line Received, which counts in the size",
        places: &[
            [HEADERS, "body Received 0", "\"from * by * (Mailpit) with SMTP for *\"", "\"from * by * for <*>; *\""],
            [
                SENT_HEADERS,
                "body Received 0",
                "\"from * by * (Mailpit) with SMTP for *\"",
                "\"from * by * for <*>; *\"",
            ],
            [
                "GET /api/v1/message/*/raw*",
                "body added received 0",
                "\"Received: from *\\n*(Mailpit)*",
                "\"Received: from *",
            ],
            [ALL, "body messages by id {*} Size", ANY, ANY],
            ["GET /api/v1/info", "body RuntimeStats SMTPAcceptedSize", ANY, ANY],
            [MESSAGE, "body Size", ANY, ANY],
            ["GET /api/v1/message/latest*", "body Size", ANY, ANY],
            ["event after deliver *", "0 Data Size", ANY, ANY],
        ],
    },
    Expected {
        reason: "Mailpit adds a missing Message-ID to the message; Restante stores it as it was sent",
        places: &[
            [ALL, "body messages by id {*} MessageID", "\"RANDOM@mailpit\"", "\"\""],
            [MESSAGE, "body MessageID", "\"RANDOM@mailpit\"", "\"\""],
            [HEADERS, "body Message-Id", "[\"<RANDOM@mailpit>\"]", NOTHING],
            [RAW, "body added message-id", "[\"Message-ID: <RANDOM@mailpit>\"]", NOTHING],
        ],
    },
    Expected {
        reason: "Each program has its own form of a random Message-ID",
        places: &[
            [SENT, "body MessageID", "\"RANDOM@mailpit\"", "\"*.*@*\""],
            [SENT_HEADERS, "body Message-Id 0", "\"<RANDOM@mailpit>\"", "\"<*.*@*>\""],
        ],
    },
    Expected {
        reason: "Mailpit writes hidden recipients into a line Bcc; Restante stores the message as it was sent",
        places: &[[RAW, "body added bcc", "[\"Bcc: *@example.test\"]", NOTHING]],
    },
    Expected {
        reason: "Mailpit replaces a line Return-Path; Restante keeps it after its own one",
        places: &[
            [HEADERS, "body Return-Path 1", NOTHING, "\"<*>\""],
            [RAW, "body added return-path 1", NOTHING, "\"Return-Path: <*>\""],
        ],
    },
    Expected {
        reason: "For an empty sender Restante adds a line Return-Path, Mailpit none (RFC 5321 section 4.4 requires it)",
        places: &[
            ["GET /api/v1/message/{no-sender}/headers", "body Return-Path", NOTHING, "[\"<>\"]"],
            ["GET /api/v1/message/{no-sender}/raw", "body added return-path", NOTHING, "[\"Return-Path: <>\"]"],
        ],
    },
    Expected {
        reason: "The programs write the same addresses, subject and parts of a sent message differently",
        places: &[
            [SENT_HEADERS, "body From 0", "\"*<ann@example.test>\"", "\"*ann@example.test*\""],
            [SENT_HEADERS, "body To 0", "\"*<bob@example.test>\"", "\"*bob@example.test*\""],
            [SENT_HEADERS, "body Cc 0", "\"<cid@example.test>\"", "\"cid@example.test\""],
            [SENT_HEADERS, "body Reply-To 0", "\"<r@example.test>\"", "\"r@example.test\""],
            [SENT_HEADERS, "body Subject 0", "\"=?utf-8?b?R3LDvMOfZQ==?=\"", "\"=?utf-8?B?R3LDvMOfZQ==?=\""],
            [SENT_HEADERS, "body Content-Type 0", "\"multipart/mixed; boundary=*\"", "\"multipart/mixed; boundary=*\""],
            [
                SENT_HEADERS,
                "body Content-Type 0",
                "\"multipart/alternative; boundary=*\"",
                "\"text/html; charset=utf-8\"",
            ],
            [SENT_HEADERS, "body Content-Transfer-Encoding", NOTHING, "[\"7bit\"]"],
        ],
    },
    // Malformed mails, of which Restante reads more.
    Expected {
        reason: "Mailpit reads only the first of several lines To",
        places: &[
            [ALL, "body messages by id {two-to-headers} To 1", NOTHING, "{\"Address\":\"zed@example.test\",*"],
            ["GET /api/v1/message/{two-to-headers}", "body To 1", NOTHING, "{\"Address\":\"zed@example.test\",*"],
        ],
    },
    Expected {
        reason: "Mailpit drops a list of addresses with a comment inside of an address, with semicolons, or with a name in Latin-1",
        places: &[
            [ALL, "body messages by id {corpus-addresses-comments} To", "null", "[*]"],
            ["GET /api/v1/message/{corpus-addresses-comments}", "body To *", NOTHING, "{*}"],
            [ALL, "body messages by id {corpus-addresses-outlook} To", "null", "[*]"],
            ["GET /api/v1/message/{corpus-addresses-outlook}", "body To *", NOTHING, "{*}"],
            [ALL, "body messages by id {corpus-headers-8bit} To", "null", "[*]"],
            ["GET /api/v1/message/{corpus-headers-8bit}", "body To 0", NOTHING, "{*}"],
        ],
    },
    Expected {
        reason: "Mailpit takes a name with an at sign for the address",
        places: &[
            [ALL, "body messages by id {corpus-addresses-outlook} From Name", "\"\"", "\"'jane@example.org'\""],
            [
                ALL,
                "body messages by id {corpus-addresses-outlook} From Address",
                "\"'jane@example.org'\"",
                "\"jane@example.org\"",
            ],
            ["GET /api/v1/message/{corpus-addresses-outlook}", "body From Name", "\"\"", "\"'jane@example.org'\""],
            [
                "GET /api/v1/message/{corpus-addresses-outlook}",
                "body From Address",
                "\"'jane@example.org'\"",
                "\"jane@example.org\"",
            ],
        ],
    },
    Expected {
        reason: "Restante detects the character set of a subject in Latin-1",
        places: &[
            [
                ALL,
                "body messages by id {corpus-headers-8bit} Subject",
                "\"D\u{fffd}j\u{fffd} vu en \u{fffd}t\u{fffd}\"",
                "\"Déjà vu en été\"",
            ],
            [
                "GET /api/v1/message/{corpus-headers-8bit}",
                "body Subject",
                "\"D\u{fffd}j\u{fffd} vu en \u{fffd}t\u{fffd}\"",
                "\"Déjà vu en été\"",
            ],
        ],
    },
    Expected {
        reason: "Restante decodes base64 that continues after its padding",
        places: &[
            ["GET /api/v1/message/{corpus-broken-base64}", "body Attachments 0 Checksums *", ANY, ANY],
            ["GET /api/v1/message/{corpus-broken-base64}/part/2", "body", "\"Hi\\u0012\\u001a\"", "\"HiHi\""],
        ],
    },
    Expected {
        reason: "Restante joins all pieces of a file name and decodes its character set (RFC 2231)",
        places: &[[
            "GET /api/v1/message/{corpus-rfc2231-names}",
            "body Inline 0 FileName",
            "\"of 100%25 \u{fffd}ber.pdf\"",
            "\"Größe of 100%25 über.pdf\"",
        ]],
    },
    Expected {
        reason: "Mailpit ignores a part without Content-Type; it is a text (RFC 2045 section 5.2)",
        places: &[
            ["GET /api/v1/message/{corpus-forwarded-rfc822}", "body Text", "\"\"", "\"See below.\""],
            ["GET /view/{corpus-forwarded-rfc822}.txt", "body", "\"\"", "\"See below.\""],
            [ALL, "body messages by id {corpus-forwarded-rfc822} Snippet", "\"\"", "\"See below.\""],
        ],
    },
    Expected {
        reason: "An unknown Content-Disposition is an attachment (RFC 2183 section 2.8); Mailpit takes it for the text",
        places: &[
            [ALL, "body messages by id {corpus-names-odd} Attachments", "6", "7"],
            [ALL, "body messages by id {corpus-names-odd} Snippet", "\"x\"", "\"\""],
            ["GET /api/v1/message/{corpus-names-odd}", "body Text", "\"x\"", "\"\""],
            ["GET /view/{corpus-names-odd}.txt", "body", "\"x\"", "\"\""],
        ],
    },
    // Lists.
    Expected {
        reason: "The snippet is that of Restante's lists: up to 200 characters, of the text if there is text and HTML",
        places: &[[ALL, "body messages by id {*} Snippet", "\"*\"", "\"*\""]],
    },
    Expected {
        reason: "In a search of Mailpit a percent sign stands for any text",
        places: &[["GET /api/v1/search?limit=1000&query=100%25", "body *", ANY, ANY]],
    },
    Expected {
        reason: "HEAD does not mark a message as read",
        places: &[
            [AFTER_HEAD, "body count", "3", "1"],
            [AFTER_HEAD, "body messages_count", "3", "1"],
            [AFTER_HEAD, "body unread", "97", "99"],
            [AFTER_HEAD, "body messages by id {html-simple}", "{\"Read\":true,*", NOTHING],
            [AFTER_HEAD, "body messages by id {picture}", "{\"Read\":true,*", NOTHING],
            [AFTER_HEAD, "body messages order *", ANY, ANY],
        ],
    },
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
        reason: "JPEG encoders differ",
        places: &[["GET /api/v1/message/{*}/part/2/thumb", "body *", ANY, ANY]],
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
        reason: "Restante never sends stored messages",
        places: &[[
            "POST /api/v1/message/{picture}/release {\"To\": [\"x@example.test\"]}",
            "body",
            "\"SMTP error: *\"",
            "\"SMTP error: this server does not relay messages\"",
        ]],
    },
    // Pages.
    Expected {
        reason: "With embed=1 Mailpit adds a script for its own web interface, and a parser writes the HTML anew",
        places: &[["GET /view/{*}.html?embed=1", "body", "\"*<script nonce=*", ANY]],
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
        places: &[["event after PUT /api/v1/tags *", "0 Data Tags *", "\"*\"", "\"*\""]],
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
            ["GET /api/v1/tags?of=unknown", "body 4", "\"x\"", NOTHING],
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
