//! Tests of composition: the bytes that are written, and that the MIME view reads them back unchanged.

use bytes::Bytes;
use jiff::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::mime::{Disposition, HeaderField, Mime, NamedAddress, header_summary};

fn context() -> ComposeContext {
    ComposeContext::new(Timestamp::from_second(1_794_711_170).unwrap(), "mail.test", 0xfeed)
}

fn draft() -> Draft {
    Draft { from: "ann@example.org".to_owned(), to: vec!["bob@example.org".to_owned()], ..Draft::default() }
}

fn compose_and_parse(draft: &Draft) -> Mime {
    let message = draft.compose(&context()).unwrap();
    check_invariants(&message);
    Mime::parse(message.into())
}

/// Checks the invariants of every composed message.
fn check_invariants(message: &[u8]) {
    assert!(message.ends_with(b"\r\n"));
    let lines = message[..message.len() - 2].split(|&byte| byte == b'\n');
    let last = lines.clone().count() - 1;
    for (at, line) in lines.enumerate() {
        assert!(at == last || line.ends_with(b"\r"), "a bare LF");
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        assert!(!line.contains(&b'\r') && line.len() <= 998, "{}", String::from_utf8_lossy(line));
        assert!(!line.windows(2).any(|two| two == b"=?") || line.len() <= 76, "{}", String::from_utf8_lossy(line));
    }
}

#[test]
fn composes_plain_text_message() {
    let draft = Draft {
        from: "Ann Example <ann@example.org>".to_owned(),
        subject: "Grüße".to_owned(),
        text: Some("Hello\nBob".to_owned()),
        headers: vec![("X-Kind".to_owned(), "welcome".to_owned())],
        ..draft()
    };
    let expected = "Date: Sun, 15 Nov 2026 02:52:50 +0000\r\n\
        From: Ann Example <ann@example.org>\r\n\
        To: bob@example.org\r\n\
        Subject: =?utf-8?B?R3LDvMOfZQ==?=\r\n\
        Message-ID: <66047c1c32480.000000000000feed@mail.test>\r\n\
        X-Kind: welcome\r\n\
        MIME-Version: 1.0\r\n\
        Content-Type: text/plain; charset=utf-8\r\n\
        Content-Transfer-Encoding: 7bit\r\n\
        \r\n\
        Hello\r\n\
        Bob\r\n";
    assert_eq!(String::from_utf8(draft.compose(&context()).unwrap()).unwrap(), expected);
}

#[test]
fn addresses_for_replies_are_a_list() {
    let reply_to = ["Support, Europe <support@example.org>", "ann@example.org"].map(str::to_owned).to_vec();
    let message = String::from_utf8(Draft { reply_to, ..draft() }.compose(&context()).unwrap()).unwrap();
    let expected = "\r\nReply-To: \"Support, Europe\" <support@example.org>, ann@example.org\r\nTo: ";
    assert!(message.contains(expected), "{message}");
    let error = Draft { reply_to: vec!["nobody".to_owned()], ..draft() }.compose(&context()).unwrap_err();
    assert_eq!(error.field, "reply-to[0]");
}

#[test]
fn writes_multiparts_only_if_necessary() {
    type Row = (bool, bool, Vec<Attachment>, &'static [(&'static str, usize)]);
    let file = || Attachment { filename: Some("a.txt".to_owned()), ..Attachment::default() };
    let inline = || Attachment { content_id: Some("logo@x".to_owned()), ..file() };
    // The text, the HTML and the files, then the expected parts by type and depth.
    let table: [Row; 8] = [
        (true, false, vec![], &[("text/plain", 0)]),
        (false, true, vec![], &[("text/html", 0)]),
        (false, false, vec![], &[("text/plain", 0)]),
        (true, true, vec![], &[("multipart/alternative", 0), ("text/plain", 1), ("text/html", 1)]),
        (true, false, vec![file()], &[("multipart/mixed", 0), ("text/plain", 1), ("application/octet-stream", 1)]),
        (false, true, vec![inline()], &[("multipart/related", 0), ("text/html", 1), ("application/octet-stream", 1)]),
        (true, false, vec![inline()], &[("multipart/mixed", 0), ("text/plain", 1), ("application/octet-stream", 1)]),
        (
            true,
            true,
            vec![file(), inline()],
            &[
                ("multipart/mixed", 0),
                ("multipart/alternative", 1),
                ("text/plain", 2),
                ("multipart/related", 2),
                ("text/html", 3),
                ("application/octet-stream", 3),
                ("application/octet-stream", 1),
            ],
        ),
    ];
    for (text, html, attachments, expected) in table {
        let body = |wanted: bool| wanted.then(|| "<p>Hello</p>".to_owned());
        let mime = compose_and_parse(&Draft { text: body(text), html: body(html), attachments, ..draft() });
        let parts: Vec<_> = mime.parts().iter().map(|part| (part.content_type.as_str(), part.depth)).collect();
        assert_eq!(parts, expected);
        assert_eq!(mime.defects().iter().filter(|defect| defect.severe).count(), 0);
    }
}

#[test]
fn files_have_a_disposition() {
    let file = Attachment { content: Bytes::from_static(b"\0\r\n\xff"), ..Attachment::default() };
    let inline = Attachment { content_id: Some("<logo@x>".to_owned()), ..file.clone() };
    let mime = compose_and_parse(&Draft {
        html: Some("<img src=cid:logo@x>".to_owned()),
        attachments: vec![file, inline],
        ..draft()
    });
    let files = mime.attachments();
    let listed: Vec<_> = files.iter().map(|file| (file.part.disposition, file.part.content_id.as_deref())).collect();
    assert_eq!(listed, [(Some(Disposition::Inline), Some("logo@x")), (Some(Disposition::Attachment), None)]);
    assert!(files.iter().all(|file| &file.content()[..] == b"\0\r\n\xff"));
}

#[test]
fn attached_message_is_not_encoded() {
    let inner = Attachment {
        content_type: Some("message/rfc822".to_owned()),
        content: Bytes::from_static(b"Subject: inner\n\n--=_1.other\n"),
        ..Attachment::default()
    };
    let message = Draft { attachments: vec![inner], ..draft() }.compose(&context()).unwrap();
    let message = String::from_utf8(message).unwrap();
    assert!(message.contains("7bit\r\n\r\nSubject: inner\r\n\r\n--=_1.other\r\n"), "{message}");
}

#[test]
fn chooses_most_readable_encoding() {
    let table = [
        ("plain ASCII, with tabs\t and blanks at the end  \nof lines", "7bit"),
        ("Die Straße zum Hof ist heute den ganzen Tag gesperrt", "quoted-printable"),
        ("ежедневно", "base64"),
        ("a bell \u{7} and more text to weigh it down", "quoted-printable"),
        (&"x".repeat(2000), "quoted-printable"),
        ("the unique token of this message: 66047c1c32480.000000000000feed", "quoted-printable"),
    ];
    for (text, encoding) in table {
        let mime = compose_and_parse(&Draft { text: Some(text.to_owned()), ..draft() });
        assert_eq!(mime.root().encoding_name, encoding, "{text}");
        assert_eq!(mime.text().trim_end(), text);
    }
}

#[test]
fn unchanged_line_ends_are_written_exactly() {
    let long = "x".repeat(74);
    // The text, its encoding, and what is written.
    let table = [
        ("", "7bit", ""),
        ("one", "7bit", "one"),
        ("one\r\ntwo\r\n", "7bit", "one\r\ntwo\r\n"),
        ("one line\ntwo =", "quoted-printable", "one line=0A=\r\ntwo =3D"),
        ("a blank \r\nand a \nlast line\n", "quoted-printable", "a blank=20\r\nand a =0A=\r\nlast line=0A"),
        ("a carriage\rreturn\r", "quoted-printable", "a carriage=0Dreturn=0D"),
        ("\n\n", "base64", "Cgo=\r\n"),
        (&format!("{long}\nx"), "quoted-printable", &format!("{long}=\r\n=0A=\r\nx")),
    ];
    for (text, encoding, written) in table {
        let draft = Draft { text: Some(text.to_owned()), line_ends: LineEnds::Unchanged, ..draft() };
        let message = String::from_utf8(draft.compose(&context()).unwrap()).unwrap();
        let end = format!("Content-Transfer-Encoding: {encoding}\r\n\r\n{written}");
        assert!(message.ends_with(&end), "{text:?}: {message:?}");
    }
}

#[test]
fn headers_replace_generated_date_and_message_id() {
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let headers = vec![header("date", "yesterday"), header("MESSAGE-ID", "<mine@x>")];
    let mime = compose_and_parse(&Draft { headers, ..draft() });
    for (name, value) in [("Date", "yesterday"), ("Message-ID", "<mine@x>")] {
        let found: Vec<_> = mime.header().iter().filter(|field| field.has_name(name)).map(HeaderField::value).collect();
        assert_eq!(found, [value]);
    }
}

#[test]
fn writes_addresses_as_rfc_5322() {
    let table = [
        ("ann@example.org", "ann@example.org"),
        ("<ann@example.org>", "ann@example.org"),
        ("  Ann   <ann@example.org>  ", "Ann <ann@example.org>"),
        ("\"Doe, Jane\" <jane@x>", "\"Doe, Jane\" <jane@x>"),
        ("Doe, Jane <jane@x>", "\"Doe, Jane\" <jane@x>"),
        ("\"a \\\"b\\\" \\\\c\" <jane@x>", "\"a \\\"b\\\" \\\\c\" <jane@x>"),
        ("Jörg <j@bücher.example>", "=?utf-8?B?SsO2cmc=?= <j@bücher.example>"),
        ("=?x <j@x>", "=?utf-8?B?PT94?= <j@x>"),
        ("\"a b\"@example.org", "\"a b\"@example.org"),
        ("\"\" <ann@example.org>", "ann@example.org"),
    ];
    for (given, written) in table {
        let message = Draft { from: given.to_owned(), ..draft() }.compose(&context()).unwrap();
        let message = String::from_utf8(message).unwrap();
        assert_eq!(message.lines().find_map(|line| line.strip_prefix("From: ")), Some(written), "{given}");
    }
}

#[test]
fn errors_name_their_field() {
    let with = |change: &dyn Fn(&mut Draft)| {
        let mut draft = draft();
        change(&mut draft);
        draft.compose(&context()).unwrap_err().to_string()
    };
    let header = |name: &'static str, value: &'static str| {
        with(&|draft| draft.headers = vec![(name.to_owned(), value.to_owned())])
    };
    let file = |file: Attachment| with(&|draft| draft.attachments = vec![Attachment::default(), file.clone()]);
    let control = "has a line break or another control character";
    let some = |text: &str| Some(text.to_owned());
    let generated = "is generated from other values of the message and cannot be set here";
    let table = [
        (
            with(&|draft| draft.from.clear()),
            "from is neither an address nor of the form Name <address>: the address is empty",
        ),
        (with(&|draft| draft.from = "a@x\r\nBcc: b@x".to_owned()), &format!("from {control}")),
        (
            with(&|draft| draft.to.push("Ann <nowhere>".to_owned())),
            "to[1] is neither an address nor of the form Name <address>: the domain is missing",
        ),
        (with(&|draft| draft.cc.push("A\0 <a@x>".to_owned())), &format!("cc[0] {control}")),
        (
            with(&|draft| draft.cc.push(format!("{}@x", "😀".repeat(128)) + &"😀.".repeat(80) + "x")),
            "cc[0] has an address of more than 900 bytes",
        ),
        (with(&|draft| draft.subject = "Hi\nBcc: b@x".to_owned()), &format!("subject {control}")),
        (with(&|draft| draft.to = vec!["a@x".to_owned(); MAX_RECIPIENTS + 1]), "to has more than 1000 entries"),
        (with(&|draft| draft.date = Some(Timestamp::MIN)), "date is before the year 1900"),
        (header("X-Foo", "a\rb"), &format!("headers.X-Foo {control}")),
        (header("X-Foo: a\r\nBcc", "b@x"), "headers.X-Foo: a\\r\\nBcc is not a valid name of a header field"),
        (header("", "x"), "headers. is not a valid name of a header field"),
        (header("Über", "x"), "headers.Über is not a valid name of a header field"),
        (header("content-TYPE", "text/html"), &format!("headers.content-TYPE {generated}")),
        (header("subject", "two"), &format!("headers.subject {generated}")),
        (
            file(Attachment { filename: some("a\r\nb"), ..Attachment::default() }),
            &format!("attachments[1].filename {control}"),
        ),
        (
            file(Attachment { filename: some(&"x".repeat(256)), ..Attachment::default() }),
            "attachments[1].filename has more than 255 bytes",
        ),
        (
            file(Attachment { content_type: some("text"), ..Attachment::default() }),
            "attachments[1].content-type is not of the form type/subtype",
        ),
        (
            file(Attachment { content_type: some("text/plain; x=\"\r\nBcc: b@x\""), ..Attachment::default() }),
            "attachments[1].content-type is not of the form type/subtype",
        ),
        (
            file(Attachment { content_type: some("Multipart/Mixed; boundary=x"), ..Attachment::default() }),
            "attachments[1].content-type is a multipart, which an attachment cannot be",
        ),
        (
            file(Attachment { content_id: some("a b"), ..Attachment::default() }),
            "attachments[1].content-id is not a valid Content-ID",
        ),
        (
            file(Attachment {
                content_type: some("message/rfc822"),
                content: Bytes::from_static(b"\0"),
                ..Attachment::default()
            }),
            "attachments[1].content is a message with lines that are too long or contain NUL",
        ),
    ];
    for (found, expected) in table {
        assert_eq!(found, expected);
    }
}

/// A text on one line, without byte order marks: decoders remove them.
fn line() -> impl Strategy<Value = String> {
    let text = prop_oneof!["[ -~]{0,120}", "[a-zäöü€😀=?_ ]{0,200}", "\\PC{0,60}", "[a-z]{900,1500}"];
    text.prop_map(|text| text.replace('\u{feff}', "").trim().to_owned())
}

fn body() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~\n\t]{0,200}", "(\\PC|[\n\0 =.-]){0,200}", "[a-z ]{500,1500}\n?"]
        .prop_map(|text| text.replace('\u{feff}', ""))
}

fn file() -> impl Strategy<Value = Attachment> {
    let name = prop_oneof!["[a-z.\"\\\\% ]{1,30}", "\\PC{1,60}", "[a-zé]{60,200}"];
    let name = name.prop_map(|name| name.replace('\u{feff}', "").trim().to_owned());
    let name = name.prop_filter("a name", |name| !name.is_empty() && name.len() <= 255);
    let content = proptest::collection::vec(any::<u8>(), 0..300);
    (name, content).prop_map(|(name, content)| Attachment {
        filename: Some(name),
        content_type: Some("image/png".to_owned()),
        content: content.into(),
        content_id: None,
    })
}

proptest! {
    #[test]
    fn composed_message_is_parsed_back(
        name in line(),
        subject in line(),
        value in line(),
        (text, html) in (proptest::option::of(body()), proptest::option::of(body())),
        attachments in proptest::collection::vec(file(), 0..3),
    ) {
        let quoted = format!("\"{}\" <ann@example.org>", name.replace('\\', "\\\\").replace('"', "\\\""));
        let draft = Draft {
            from: quoted.clone(),
            to: vec![quoted; 3],
            subject: subject.clone(),
            headers: vec![("X-Value".to_owned(), value.clone())],
            text: text.clone(),
            html: html.clone(),
            attachments: attachments.clone(),
            ..Draft::default()
        };
        let message = draft.compose(&context()).unwrap();
        check_invariants(&message);
        let summary = header_summary(&message);
        let displayed = NamedAddress { name, address: "ann@example.org".to_owned() }.display();
        prop_assert_eq!(summary.to, Some(vec![displayed.clone(); 3]));
        prop_assert_eq!(summary.from, Some(displayed));
        prop_assert_eq!(summary.subject, subject);
        let mime = Mime::parse(message.into());
        let found = mime.header().iter().find(|field| field.has_name("X-Value")).map(HeaderField::decoded_value);
        prop_assert_eq!(found, Some(value));
        // If nothing follows the text, a line end is appended to its last line.
        let ended = |given: String, read: &str| read == given || read == given + "\n";
        if let Some(html) = &html {
            prop_assert!(ended(html.clone(), &mime.html()), "{:?}", mime.html());
        }
        if html.is_none() || text.as_ref().is_some_and(|text| !text.trim().is_empty()) {
            prop_assert!(ended(text.unwrap_or_default(), &mime.text()), "{:?}", mime.text());
        }
        let files: Vec<_> = mime.attachments().iter().map(|file| (file.part.filename.clone(), file.content())).collect();
        let given: Vec<_> = attachments.into_iter().map(|file| (file.filename, file.content)).collect();
        prop_assert_eq!(files, given);
    }
    #[test]
    fn texts_with_unchanged_line_ends_are_parsed_back(
        text in "([ -~]{0,100}|[a-zäß=. \t\0-]|\r|\n|\r\n){0,12}",
        html in proptest::option::of("([ -~]{0,100}|\r|\n|\r\n){0,12}"),
        attachments in proptest::collection::vec(file(), 0..2),
    ) {
        let line_ends = LineEnds::Unchanged;
        let draft = Draft { text: Some(text.clone()), html: html.clone(), line_ends, attachments, ..draft() };
        let message = draft.compose(&context()).unwrap();
        let has_bare_line_end = String::from_utf8_lossy(&message).replace("\r\n", "").contains(['\r', '\n']);
        prop_assert!(!has_bare_line_end);
        let mime = Mime::parse(message.into());
        let read = |content_type: &str| {
            mime.parts().iter().find(|part| part.content_type == content_type).map(|part| mime.text_as_sent(part))
        };
        prop_assert_eq!(read("text/plain"), Some(text));
        prop_assert_eq!(read("text/html"), html);
    }
}
