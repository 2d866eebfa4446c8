//! The differences between Mailpit and Restante that are intended, each with its reason.

use super::compare::Difference;

/// An intended difference.
pub(crate) struct Expected {
    /// The place of the difference; `*` stands for any text.
    pub(crate) place: &'static str,
    /// Why it is intended.
    #[expect(dead_code, reason = "the reason is for readers")]
    reason: &'static str,
}

impl Expected {
    const fn new(place: &'static str, reason: &'static str) -> Self {
        Self { place, reason }
    }

    pub(crate) fn matches(&self, difference: &Difference) -> bool {
        let Some((start, rest)) = self.place.split_once('*') else { return self.place == difference.place };
        let Some(mut text) = difference.place.strip_prefix(start) else { return false };
        let mut pieces = rest.split('*').peekable();
        while let Some(piece) = pieces.next() {
            // The last piece is at the end, the others at the first place where they fit.
            if pieces.peek().is_none() {
                return text.ends_with(piece);
            }
            let Some(at) = text.find(piece) else { return false };
            text = &text[at + piece.len()..];
        }
        true
    }
}

/// The table. The first row that matches a difference is used.
pub(crate) const DIFFERENCES: &[Expected] = &[
    // The source of a message.
    Expected::new("GET /api/v1/messages* Size", SOURCE),
    Expected::new("GET /api/v1/message/* body Size", SOURCE),
    Expected::new("GET /api/v1/message*MessageID", SOURCE),
    Expected::new("GET /api/v1/message/*/headers body Message-Id*", SOURCE),
    Expected::new("GET /api/v1/message/*/headers body Received*", "The line names the server and the time."),
    Expected::new(
        "GET /api/v1/message/{no-sender}/headers body Return-Path",
        "An empty sender is shown as RFC 5321 says: <>.",
    ),
    // Malformed mails, of which Restante reads more.
    Expected::new(
        "*{corpus-addresses-comments}* To*",
        "Mailpit drops a list of addresses with a comment that it cannot read.",
    ),
    Expected::new("*{corpus-addresses-outlook}* To*", "Mailpit drops a list that is separated by semicolons."),
    Expected::new("*{corpus-addresses-outlook}* From *", "Mailpit keeps the quotes of Outlook in an address."),
    Expected::new("*{corpus-headers-8bit}* To*", "Mailpit drops addresses with a name in Latin-1."),
    Expected::new("*{corpus-headers-8bit}* Subject", "Restante guesses the character set of a subject in Latin-1."),
    Expected::new("*{corpus-broken-base64}*", "Restante skips characters that are not Base64."),
    Expected::new("*{corpus-rfc2231-names}*", "Restante joins all pieces of a name, and decodes its character set."),
    Expected::new(
        "*{corpus-names-odd}* Attachments*",
        "A text with an odd name is a file, not the text of the message.",
    ),
    Expected::new("*{corpus-names-odd}* Text", "A text with an odd name is a file, not the text of the message."),
    Expected::new(
        "GET /view/{corpus-names-odd}.txt *",
        "A text with an odd name is a file, not the text of the message.",
    ),
    Expected::new("*{corpus-forwarded-rfc822}* Text", "Mailpit loses the text before a forwarded message."),
    Expected::new("GET /view/{corpus-forwarded-rfc822}.txt *", "Mailpit loses the text before a forwarded message."),
    // Lists.
    Expected::new("GET /api/v1/search?limit=1000&query=100%25 *", "In Mailpit a percent sign stands for any text."),
    Expected::new("GET /api/v1/messages* Snippet", "The first words are those of all lists: of the text, and shorter."),
    // Files.
    Expected::new("GET */part/*content-disposition", "A name that is not ASCII is given as RFC 6266 says."),
    Expected::new("GET */part/* content-type", "The character set of a text is kept."),
    Expected::new("GET */thumb body *", "JPEG encoders differ."),
    // Pages.
    Expected::new("GET /view/*.html?embed=1 *", "Restante adds no script to messages."),
    Expected::new("GET /view/latest *", "A redirect has no body."),
    Expected::new("GET /livez *", "The answer has a text."),
    Expected::new("GET /readyz *", "The answer has a text."),
    // Errors.
    Expected::new(
        "GET /api/v1/message/unknown/part/1/thumb *",
        "An unknown message is not found, as in other requests.",
    ),
    Expected::new("GET /api/v1/*/unknown *", "The answer to an unknown path is that of all of Restante."),
    Expected::new("GET /api/v1/unknown *", "The answer to an unknown path is that of all of Restante."),
    Expected::new("GET /api/v1/message/*/sa-check *", "The answer to an unknown path is that of all of Restante."),
    Expected::new("PUT /api/v1/messages {\"IDs\": \"x\"} body", "The error of another JSON library."),
];

const SOURCE: &str = "Mailpit adds Message-ID, Bcc and Received to the message. Restante keeps it as it was received.";
