//! Differences between messages as both programs store and list them.

use super::{ANY, Expected, NOTHING};

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
/// A search for the text `100%`.
const PERCENT: &str = "GET /api/v1/search?limit=1000&query=100%25";

pub(super) const DIFFERENCES: &[Expected] = &[
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
            ["GET /api/v1/info", "body RuntimeStats SMTPAcceptedSize", ANY, ANY],
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
        reason: "A local part that needs quotes has them; in Mailpit only since 1.31.2",
        places: &[
            [ALL, "body messages by id {quotes-with-need} *", "\"*@example.test\"", "\"\\\"*\\\"@example.test\""],
            [MESSAGE, "body * Address", "\"*@example.test\"", "\"\\\"*\\\"@example.test\""],
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
        reason: "The snippet is that of the text if there is text and HTML; in Mailpit that of the HTML",
        places: &[
            [ALL, "body messages by id {alternative-with-picture} Snippet", "\"Picture:\"", "\"Text of the mail.\""],
            [
                ALL,
                "body messages by id {corpus-alternative} Snippet",
                "\"Welcome – please confirm.\"",
                "\"Welcome – please confirm: https://example.org/*\"",
            ],
            [
                ALL,
                "body messages by id {corpus-named-texts} Snippet",
                "\"Report\"",
                "\"See the files. -- all green -- -- Jane\"",
            ],
            [ALL, "body messages by id {corpus-nested} Snippet", "\"html text\"", "\"plain text -- A list footer.\""],
            [
                ALL,
                "body messages by id {corpus-newsletter-quoted-printable} Snippet",
                "\"Offer 1: The early free while. *...\"",
                "\"Offer 1 Bread early our sunday *.\"",
            ],
            [
                ALL,
                "body messages by id {corpus-newsletter-related-latin1} Snippet",
                "\"Offer 1: Early while night ships. *...\"",
                "\"Offer 1 Résumé fresh our until *.\"",
            ],
        ],
    },
    Expected {
        reason: "The snippet of HTML contains the marks of lists",
        places: &[[
            ALL,
            "body messages by id {corpus-html-only} Snippet",
            "\"*Track it here. *\"",
            "\"*Track it here. * free shipping *\"",
        ]],
    },
    Expected {
        reason: "The snippet ends after 200 characters; in Mailpit after 200 bytes, and then has dots",
        places: &[
            [
                ALL,
                "body messages by id {corpus-newsletter-base64-html} Snippet",
                "\"Offer 1: Our our free market. * ships...\"",
                "\"Offer 1: Our our free market. * ships ships\"",
            ],
            [
                ALL,
                "body messages by id {long-text} Snippet",
                "\"The quick brown fox * dog. ...\"",
                "\"The quick brown fox * dog.\"",
            ],
        ],
    },
    Expected {
        reason: "The lines of a paragraph are joined (RFC 3676), also in a quote",
        places: &[[
            ALL,
            "body messages by id {corpus-flowed} Snippet",
            "\"This paragraph *> A quote that > flows too. *\"",
            "\"This paragraph *> A quote that flows too. *\"",
        ]],
    },
    Expected {
        reason: "In a search of Mailpit a percent sign stands for any text",
        places: &[
            [PERCENT, "body count", "1", "0"],
            [PERCENT, "body messages_count", "1", "0"],
            [PERCENT, "body messages_unread", "1", "0"],
            [PERCENT, "body messages by id {corpus-newsletter-base64-html}", "{*}", NOTHING],
            [PERCENT, "body messages order 0", "\"{corpus-newsletter-base64-html}\"", NOTHING],
        ],
    },
    Expected {
        reason: "HEAD does not mark a message as read",
        places: &[
            [AFTER_HEAD, "body count", "3", "1"],
            [AFTER_HEAD, "body messages_count", "3", "1"],
            [AFTER_HEAD, "body unread", "101", "103"],
            [AFTER_HEAD, "body messages by id {html-simple}", "{\"Read\":true,*", NOTHING],
            [AFTER_HEAD, "body messages by id {picture}", "{\"Read\":true,*", NOTHING],
            [AFTER_HEAD, "body messages order *", ANY, ANY],
        ],
    },
];
