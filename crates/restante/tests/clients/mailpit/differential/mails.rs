//! The mails of the comparison: mails of the corpus of `restante-mail`, and variants of addresses, dates, encodings, parts, tags and
//! links.

use std::fmt::Write as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

/// A mail with its envelope.
pub(crate) struct Mail {
    pub(crate) name: String,
    pub(crate) sender: String,
    pub(crate) recipients: Vec<String>,
    source: Vec<u8>,
}

impl Mail {
    /// Returns the mail as it is sent after DATA: lines with dots at their start have another one, and the last line is a dot.
    pub(crate) fn stuffed(&self) -> Vec<u8> {
        let mut stuffed = Vec::new();
        for line in self.source.split_inclusive(|byte| *byte == b'\n') {
            if line.starts_with(b".") {
                stuffed.push(b'.');
            }
            stuffed.extend_from_slice(line);
        }
        if !stuffed.ends_with(b"\r\n") {
            stuffed.extend_from_slice(b"\r\n");
        }
        stuffed.extend_from_slice(b".\r\n");
        stuffed
    }

    /// Returns the mail from Ann to Bob with these lines, which are separated by LF.
    pub(crate) fn new(name: &str, text: &str) -> Self {
        // Mailpit adds an id to a mail without one.
        let has_id = text.contains("Message-ID:") || name == "no-message-id";
        let id = if has_id { String::new() } else { format!("Message-ID: <{name}@example.test>\n") };
        let source = format!("{id}{text}").replace('\n', "\r\n").into_bytes();
        let (sender, recipients) = ("ann@example.test".to_owned(), vec!["bob@example.test".to_owned()]);
        Self { name: name.to_owned(), sender, recipients, source }
    }

    pub(crate) fn from(self, sender: &str) -> Self {
        Self { sender: sender.to_owned(), ..self }
    }

    pub(crate) fn to(self, recipients: &[&str]) -> Self {
        Self { recipients: recipients.iter().map(|&recipient| recipient.to_owned()).collect(), ..self }
    }

    /// Returns a mail with these header lines in addition to those of an ordinary mail.
    fn with_headers(name: &str, headers: &str) -> Self {
        let end = if headers.is_empty() { "" } else { "\n" };
        Self::new(name, &format!("{headers}{end}{ORDINARY}Subject: {name}\n\nText of {name}.\n"))
    }
}

const ORDINARY: &str =
    "From: Ann <ann@example.test>\nTo: Bob <bob@example.test>\nDate: Mon, 16 Nov 2026 19:36:59 +0100\n";

/// The mails of the corpus, whose names are those of the files.
const CORPUS: [&str; 43] = [
    "plain",
    "plain-lf",
    "no-mime",
    "header-only",
    "alternative",
    "alternative-empty-text",
    "html-only",
    "mixed-attachments",
    "mixed-inline-images",
    "mixed-two-texts",
    "named-texts",
    "names-odd",
    "nested",
    "related-files",
    "related-inline",
    "rfc2231-names",
    "signed",
    "subject-words",
    "forwarded-rfc822",
    "digest",
    "calendar-invite",
    "bounce-report",
    "pdf-root",
    "empty-parts",
    "flowed",
    "newsletter-base64-html",
    "newsletter-quoted-printable",
    "newsletter-related-latin1",
    "headers-8bit",
    "addresses-comments",
    "addresses-empty-group",
    "addresses-quoted-and-encoded",
    "addresses-outlook",
    "charset-iso-8859-1",
    "charset-iso-8859-15",
    "charset-iso-2022-jp",
    "charset-shift-jis",
    "charset-koi8-r",
    "charset-windows-1251",
    "charset-big5",
    "charset-euc-kr",
    "broken-base64",
    "boundary-end-missing",
];

/// Returns the mails in the order in which they are sent. No name is a part of another one in braces.
pub(crate) fn all() -> Vec<Mail> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mail/tests/corpus");
    let mut mails: Vec<Mail> = CORPUS
        .iter()
        .map(|name| {
            let source = std::fs::read(corpus.join(format!("{name}.eml"))).unwrap();
            Mail { source, ..Mail::new(&format!("corpus-{name}"), "") }
        })
        .collect();
    mails.extend(addresses());
    mails.extend(headers());
    mails.extend(encodings());
    mails.extend(parts());
    mails.extend(html());
    mails
}

/// Returns a mail whose HTML shows a picture of the mail.
pub(crate) fn with_html_and_picture() -> Vec<Mail> {
    parts().into_iter().filter(|mail| mail.name == "picture-in-html").collect()
}

fn addresses() -> Vec<Mail> {
    let with = |name: &str, headers: &str| {
        Mail::new(name, &format!("{headers}\nSubject: {name}\nDate: Mon, 16 Nov 2026 19:36:59 +0000\n\nText\n"))
    };
    vec![
        with("only-addresses", "From: ann@example.test\nTo: bob@example.test"),
        with("in-brackets", "From: <ann@example.test>\nTo: <bob@example.test>"),
        with("quoted-names", "From: \"Ann, A.\" <ann@example.test>\nTo: \"O'Neil \\\"Bob\\\"\" <bob@example.test>"),
        with(
            "encoded-names",
            "From: =?utf-8?Q?J=C3=BCrgen?= <ann@example.test>\nTo: =?iso-8859-1?B?SvxyZ2Vu?= <bob@example.test>",
        ),
        with("two-recipients", "From: ann@example.test\nTo: bob@example.test, Cid <cid@example.test>")
            .to(&["bob@example.test", "cid@example.test"]),
        with("copies", "From: ann@example.test\nTo: bob@example.test\nCc: Cid <cid@example.test>, dan@example.test")
            .to(&["bob@example.test", "cid@example.test", "dan@example.test"]),
        with("hidden-recipient", "From: ann@example.test\nTo: bob@example.test")
            .to(&["bob@example.test", "eve@example.test"]),
        with("hidden-recipients", "From: ann@example.test\nTo: bob@example.test").to(&[
            "zoe@example.test",
            "bob@example.test",
            "eve@example.test",
        ]),
        with("bcc-header", "From: ann@example.test\nTo: bob@example.test\nBcc: Eve <eve@example.test>")
            .to(&["bob@example.test", "eve@example.test"]),
        with("upper-case-recipient", "From: ann@example.test\nTo: BOB@Example.Test").to(&["bob@example.test"]),
        with(
            "reply-to",
            "From: ann@example.test\nTo: bob@example.test\nReply-To: Help <help@example.test>, team@example.test",
        ),
        with(
            "several-from",
            "From: Ann <ann@example.test>, Cid <cid@example.test>\nTo: bob@example.test\nSender: cid@example.test",
        ),
        with("no-from", "To: bob@example.test"),
        with("no-to", "From: ann@example.test"),
        with("empty-to", "From: ann@example.test\nTo:"),
        with("undisclosed", "From: ann@example.test\nTo: undisclosed-recipients:;"),
        with("group", "From: ann@example.test\nTo: Team: bob@example.test, Cid <cid@example.test>;"),
        with("two-to-headers", "From: ann@example.test\nTo: bob@example.test\nTo: zed@example.test"),
        with("no-sender", "From: ann@example.test\nTo: bob@example.test").from(""),
        with("other-sender", "From: ann@example.test\nTo: bob@example.test").from("bounce+ann@example.test"),
        with("plus-address", "From: ann@example.test\nTo: bob+urgent@example.test").to(&["bob+urgent@example.test"]),
        with("plus-addresses-in-header", "From: Ann <ann+news@example.test>\nTo: Bob <bob+list+Weekly@example.test>"),
        with("quotes-without-need", "From: \"ann\"@example.test\nTo: \"bob\"@example.test, Cid <\"cid\"@example.test>"),
        with("quotes-with-need", "From: \"ann a\"@example.test\nTo: bob@example.test\nCc: Cid <\"c@d\"@example.test>"),
        with("broken-from", "From: not an address\nTo: bob@example.test"),
    ]
}

fn headers() -> Vec<Mail> {
    let dated = |name: &str, date: &str| {
        Mail::new(name, &format!("From: ann@example.test\nTo: bob@example.test\n{date}Subject: {name}\n\nText\n"))
    };
    vec![
        dated("date-with-comment", "Date: Tue, 1 Jul 2003 10:52:37 +0200 (CEST)\n"),
        dated("date-with-name", "Date: Tue, 01 Jul 2003 10:52:37 GMT\n"),
        dated("date-without-day", "Date: 1 Jul 2003 10:52:37 -0730\n"),
        dated("date-without-seconds", "Date: Tue, 1 Jul 2003 10:52 +0200\n"),
        Mail::with_headers("message-id", "Message-ID: <one.two@example.test>"),
        Mail::with_headers("no-message-id", ""),
        Mail::with_headers("message-id-odd", "Message-ID: no brackets@example.test"),
        Mail::with_headers(
            "unsubscribe",
            "List-Unsubscribe: <https://example.test/leave?id=1>, <mailto:leave@example.test>",
        ),
        Mail::with_headers(
            "unsubscribe-one-click",
            "List-Unsubscribe: <https://example.test/leave>\nList-Unsubscribe-Post: List-Unsubscribe=One-Click",
        ),
        Mail::with_headers("unsubscribe-comment", "List-Unsubscribe: (Use this) <mailto:leave@example.test?subject=x>"),
        Mail::with_headers("unsubscribe-broken", "List-Unsubscribe: https://example.test/leave"),
        Mail::with_headers("unsubscribe-ftp", "List-Unsubscribe: <ftp://example.test/leave>"),
        Mail::with_headers("tags-header", "X-Tags: Alpha, beta gamma,delta"),
        Mail::with_headers("repeated-headers", "X-Repeated: 1\nX-Other: 2\nx-repeated: 3\nX-Folded: one\n two"),
        Mail::with_headers("return-path-header", "Return-Path: <other@example.test>"),
        Mail::new("no-subject", &format!("{ORDINARY}\nText without a subject.\n")),
        Mail::new("empty-subject", &format!("{ORDINARY}Subject:\n\nText\n")),
        Mail::new(
            "encoded-subject",
            &format!("{ORDINARY}Subject: =?utf-8?B?R3LDvMOfZQ==?= =?utf-8?Q?_aus_K=C3=B6ln?=\n\nText\n"),
        ),
        Mail::new(
            "long-subject",
            &format!("{ORDINARY}Subject: {}\n folded {}\n\nText\n", "word ".repeat(30), "x".repeat(60)),
        ),
    ]
}

fn encodings() -> Vec<Mail> {
    let encoded = |name: &str, kind: &str, encoding: &str, body: &str| {
        let headers = format!("MIME-Version: 1.0\nContent-Type: {kind}\nContent-Transfer-Encoding: {encoding}\n");
        Mail::new(name, &format!("{ORDINARY}{headers}Subject: {name}\n\n{body}\n"))
    };
    vec![
        encoded("utf-8-as-8bit", "text/plain; charset=utf-8", "8bit", "Grüße, 世界 🎉"),
        encoded("utf-8-as-base64", "text/plain; charset=utf-8", "base64", &BASE64.encode("Grüße, 世界 🎉\n")),
        encoded(
            "utf-8-quoted",
            "text/plain; charset=\"UTF-8\"",
            "quoted-printable",
            "Gr=C3=BC=C3=9Fe, a very =\nlong line =3D",
        ),
        encoded("dots", "text/plain", "7bit", ".one\n..two\n...\nend"),
        encoded(
            "long-text",
            "text/plain; charset=utf-8",
            "7bit",
            &"The quick brown fox jumps over the dog.\n".repeat(500),
        ),
        encoded(
            "html-as-base64",
            "text/html; charset=utf-8",
            "base64",
            &BASE64.encode("<p>Grüße &amp; <b>mehr</b></p>"),
        ),
    ]
}

/// Returns a multipart body. A part is a pair of header lines and content.
pub(crate) fn multipart(kind: &str, boundary: &str, parts: &[(&str, &str)]) -> String {
    let mut text = format!("Content-Type: multipart/{kind}; boundary=\"{boundary}\"\n\n");
    for (headers, body) in parts {
        write!(text, "--{boundary}\n{headers}\n\n{body}\n").unwrap();
    }
    writeln!(text, "--{boundary}--").unwrap();
    text
}

fn parts() -> Vec<Mail> {
    let picture = BASE64.encode(include_bytes!("../picture.png"));
    let picture = picture.as_str();
    let text = ("Content-Type: text/plain; charset=utf-8", "Text of the mail.");
    let image = |name: &str, disposition: &str, id: &str| {
        let id = if id.is_empty() { String::new() } else { format!("\nContent-ID: <{id}>") };
        format!(
            "Content-Type: image/png; name=\"{name}\"\nContent-Transfer-Encoding: base64\nContent-Disposition: {disposition}{id}"
        )
    };
    let mail =
        |name: &str, body: String| Mail::new(name, &format!("{ORDINARY}MIME-Version: 1.0\nSubject: {name}\n{body}"));
    let attached = image("picture.png", "attachment; filename=\"picture.png\"", "");
    let inline = image("inline.png", "inline; filename=\"inline.png\"", "inline@example.test");
    let html = ("Content-Type: text/html; charset=utf-8", "<p>Picture: <img src=\"cid:inline@example.test\"></p>");
    let related = multipart("related", "rel", &[html, (&inline, picture)]);
    let (related_headers, related_body) = related.split_once("\n\n").unwrap();
    vec![
        mail("picture", multipart("mixed", "mix", &[text, (&attached, picture)])),
        mail("picture-in-html", related.clone()),
        mail("alternative-with-picture", multipart("alternative", "alt", &[text, (related_headers, related_body)])),
        mail(
            "files",
            multipart(
                "mixed",
                "mix",
                &[
                    text,
                    ("Content-Type: application/pdf\nContent-Disposition: attachment; filename=a.pdf", "%PDF-1.4"),
                    (
                        "Content-Type: text/csv; charset=utf-8\nContent-Disposition: attachment; filename=\"t.csv\"",
                        "a,b\n1,ü",
                    ),
                    (
                        "Content-Type: application/octet-stream\nContent-Disposition: attachment; filename*=utf-8''gr%C3%BC%C3%9Fe.bin",
                        "x",
                    ),
                    (
                        "Content-Type: application/octet-stream\nContent-Disposition: attachment; filename=\"=?utf-8?Q?=C3=A4.bin?=\"",
                        "x",
                    ),
                    ("Content-Type: application/json", "{\"a\": 1}"),
                    (
                        "Content-Type: text/html\nContent-Disposition: attachment; filename=page.html",
                        "<script>alert(1)</script>",
                    ),
                ],
            ),
        ),
        mail(
            "encrypted",
            multipart(
                "encrypted",
                "enc",
                &[
                    ("Content-Type: application/pgp-encrypted; name=\"version.asc\"", "Version: 1"),
                    (
                        "Content-Type: application/octet-stream; name=\"sealed.asc\"\nContent-Disposition: inline; filename=\"sealed.asc\"",
                        "-----BEGIN PGP MESSAGE-----",
                    ),
                ],
            ),
        ),
        mail(
            "forwarded",
            multipart(
                "mixed",
                "mix",
                &[
                    text,
                    (
                        "Content-Type: message/rfc822\nContent-Disposition: attachment; filename=\"forwarded.eml\"",
                        "From: cid@example.test\nSubject: inner\n\nInner text",
                    ),
                ],
            ),
        ),
    ]
}

fn html() -> Vec<Mail> {
    let mail = |name: &str, html: &str| {
        let kind = "MIME-Version: 1.0\nContent-Type: text/html; charset=utf-8\n";
        Mail::new(name, &format!("{ORDINARY}{kind}Subject: {name}\n\n{html}\n"))
    };
    vec![
        mail("html-simple", "<html><body><h1>Title</h1><p>Some <b>bold</b> text.</p></body></html>"),
        mail(
            "html-styles",
            "<html><head><style>p { display: grid; color: rgb(0 0 0 / 50%) } @media (max-width: 500px) { p { margin: 0 } }</style></head>\
             <body><p style=\"border-radius: 3px; position: absolute\">Text</p><video src=\"x.mp4\"></video>\
             <form><input type=\"text\"></form></body></html>",
        ),
        mail(
            "html-links",
            "<p><a href=\"http://one.invalid/a?b=1&amp;c=2\">one</a> <a href=\"http://two.invalid/\">two</a>\
             <a href=\"http://one.invalid/a?b=1&amp;c=2\">again</a> <img src=\"http://img.invalid/x.png\">\
             <link rel=\"stylesheet\" href=\"http://css.invalid/x.css\"> <a href=\"mailto:a@b.c\">mail</a> <a href=\"/relative\">r</a></p>",
        ),
        mail("html-script", "<p onclick=\"alert(1)\">Text<script>alert(1)</script></p>"),
        Mail::new(
            "text-links",
            &format!("{ORDINARY}Subject: text-links\n\nSee http://one.invalid/x, (http://two.invalid/y).\n"),
        ),
    ]
}
