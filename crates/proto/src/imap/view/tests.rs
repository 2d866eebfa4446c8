//! Tests of the structure and the sections of messages. The expected structures are those of Dovecot 2.3, except where a
//! comment says otherwise.

use std::num::NonZeroU32;

use imap_codec::ResponseCodec;
use imap_codec::decode::Decoder;
use imap_codec::imap_types::body::{Body, BodyStructure, SpecificFields};
use imap_codec::imap_types::fetch::MessageDataItem;
use imap_codec::imap_types::response::{Data, Response};
use proptest::prelude::*;

use super::*;
use crate::imap::command::{Section, SectionText};

/// Parses a message whose line ends are written as LF.
fn view(source: &str) -> MessageView {
    MessageView::parse(source.replace('\n', "\r\n").into_bytes().into())
}

fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8_lossy(&out).replace("\r\n", "\n")
}

fn section(part: &[u32], text: SectionText) -> Section {
    Section { part: part.iter().filter_map(|&number| NonZeroU32::new(number)).collect(), text }
}

fn octets(view: &MessageView, part: &[u32], text: SectionText) -> Option<String> {
    view.section(&section(part, text)).map(|octets| String::from_utf8_lossy(&octets).replace("\r\n", "\n"))
}

const NESTED: &str = "Content-Type: multipart/mixed; boundary=b\n\npre\n--b\nContent-Type: text/plain; charset=utf-8; \
    name*0=\"a b\"; name*1=c; Format=Flowed\nContent-Transfer-Encoding: Quoted-Printable\nContent-ID: <a@b>\n\
    Content-Description: a  description\nContent-Disposition: attachment; filename*=utf-8''%C3%A9.txt; size=3\n\
    Content-Language: en, de\nContent-Location: http://x/\nContent-MD5: abc==\n\ntext=20\nlines\n--b\n\
    Content-Type: message/rfc822\n\nSubject: inner\nFrom: i@x\n\ninner body\n--b\n\n\n--b\n--b--\nepilogue\n";
const DIGEST: &str = "Content-Type: multipart/digest; boundary=b\n\n--b\n\nSubject: d\n\nx\n--b\n\
    Content-Type: multipart/alternative; boundary=c\n\npre2\n--c\n\none\n--c--\nepi2\n\n--b--\n";

#[test]
fn writes_envelopes() {
    let table = [
        (
            "From: Jane Doe <jane@example.org>\nTo: a@x, \"B, C\" <b@y> (c1)\nSubject: =?utf-8?q?caf=C3=A9?= x\n\
             Date: Mon, 1 Jan 2024 10:00:00 +0000\nMessage-ID: <1@x>\nIn-Reply-To: <0@x>\n <00@x>\n\n",
            "(\"Mon, 1 Jan 2024 10:00:00 +0000\" \"=?utf-8?q?caf=C3=A9?= x\" ((\"Jane Doe\" NIL \"jane\" \"example.org\")) \
             ((\"Jane Doe\" NIL \"jane\" \"example.org\")) ((\"Jane Doe\" NIL \"jane\" \"example.org\")) \
             ((NIL NIL \"a\" \"x\")(\"B, C\" NIL \"b\" \"y\")) NIL NIL \"<0@x> <00@x>\" \"<1@x>\")",
        ),
        (
            "Sender: s@x\nReply-To: r@x\nTo: undisclosed-recipients:;\nCc: a@x\nBcc: <@r1,@r2:x@y>\n",
            "(NIL NIL NIL ((NIL NIL \"s\" \"x\")) ((NIL NIL \"r\" \"x\")) \
             ((NIL NIL \"undisclosed-recipients\" NIL)(NIL NIL NIL NIL)) ((NIL NIL \"a\" \"x\")) \
             ((NIL \"@r1,@r2\" \"x\" \"y\")) NIL NIL)",
        ),
        (
            "From: Jörg <j@x>\nSubject: café\n\n",
            "(NIL {5}\ncafé (({5}\nJörg NIL \"j\" \"x\")) (({5}\nJörg NIL \"j\" \"x\")) (({5}\nJörg NIL \"j\" \"x\")) NIL NIL NIL NIL NIL)",
        ),
        // Of two subjects, Dovecot has the last.
        (
            "From: a@x\nFrom: b@y\nSubject: one\nSubject: two\nSender:\nMessage-ID:\n\n",
            "(NIL \"one\" ((NIL NIL \"a\" \"x\")(NIL NIL \"b\" \"y\")) ((NIL NIL \"a\" \"x\")(NIL NIL \"b\" \"y\")) \
             ((NIL NIL \"a\" \"x\")(NIL NIL \"b\" \"y\")) NIL NIL NIL NIL \"\")",
        ),
        // Dovecot has a literal for a quotation mark.
        ("Subject: \"a\" \\\n\tfolded   \n\n", "(NIL \"\\\"a\\\" \\\\ folded\" NIL NIL NIL NIL NIL NIL NIL NIL)"),
        ("", "(NIL NIL NIL NIL NIL NIL NIL NIL NIL NIL)"),
    ];
    for (source, expected) in table {
        assert_eq!(text(|out| view(source).write_envelope(out, false)), expected, "{source}");
    }
    assert!(text(|out| view("Subject: café\n\n").write_envelope(out, true)).starts_with("(NIL \"café\" "));
    let many = format!("To: {}\nCc: a@x\n\n", "a,".repeat(100_000));
    let envelope = text(|out| view(&many).write_envelope(out, false));
    assert_eq!(envelope.matches("MISSING_DOMAIN").count(), 10_000);
    assert!(envelope.ends_with("NIL NIL NIL NIL)"));
}

#[test]
fn writes_structures() {
    let plain = |size: usize, lines: usize| {
        format!("(\"text\" \"plain\" (\"charset\" \"us-ascii\") NIL NIL \"7bit\" {size} {lines} NIL NIL NIL NIL)")
    };
    let inner =
        "(NIL \"inner\" ((NIL NIL \"i\" \"x\")) ((NIL NIL \"i\" \"x\")) ((NIL NIL \"i\" \"x\")) NIL NIL NIL NIL NIL)";
    let envelope = |subject: &str| format!("(NIL \"{subject}\" NIL NIL NIL NIL NIL NIL NIL NIL)");
    let table = [
        (
            // Dovecot joins the segments of parameters and does not change the case of names.
            NESTED,
            format!(
                "((\"text\" \"plain\" (\"charset\" \"utf-8\" \"name*0\" \"a b\" \"name*1\" \"c\" \"format\" \"Flowed\") \"<a@b>\" \
                 \"a  description\" \"quoted-printable\" 14 1 \"abc==\" (\"attachment\" (\"filename*\" \"utf-8''%C3%A9.txt\" \
                 \"size\" \"3\")) (\"en\" \"de\") \"http://x/\")(\"message\" \"rfc822\" NIL NIL NIL \"7bit\" 39 {inner} {} 3 \
                 NIL NIL NIL NIL){}{} \"mixed\" (\"boundary\" \"b\") NIL NIL NIL)",
                plain(10, 0),
                plain(0, 0),
                plain(0, 0)
            ),
        ),
        (
            DIGEST,
            format!(
                "((\"message\" \"rfc822\" NIL NIL NIL \"7bit\" 15 {} {} 2 NIL NIL NIL NIL)({} \"alternative\" \
                 (\"boundary\" \"c\") NIL NIL NIL) \"digest\" (\"boundary\" \"b\") NIL NIL NIL)",
                envelope("d"),
                plain(1, 0),
                plain(3, 0)
            ),
        ),
        (
            "Content-Type: multipart/mixed; boundary=b\n\n",
            format!("({} \"mixed\" (\"boundary\" \"b\") NIL NIL NIL)", plain(0, 0)),
        ),
        (
            "Content-Type: multipart/mixed; boundary=b\n\n--b--\n",
            format!("({} \"mixed\" (\"boundary\" \"b\") NIL NIL NIL)", plain(0, 0)),
        ),
        (
            "Content-Type: multipart/mixed; boundary=b\n\nno parts\n",
            // A multipart without its boundary is a text here, and a multipart with an empty text in Dovecot.
            plain(10, 1).replace("\"us-ascii\"", "\"us-ascii\" \"boundary\" \"b\""),
        ),
        ("Subject: header only\n", plain(0, 0)),
        ("Subject: header only", plain(0, 0)),
        ("\nbody only\n", plain(11, 1)),
        ("", plain(0, 0)),
        // Lines that are no fields start the body here. They are a header in Dovecot.
        ("no header at all\nsecond\n", plain(26, 2)),
        ("From me Mon Jan 1\nSubject: x\n\nbody\n", plain(6, 1)),
        ("Content-Type: text\n\nx\n", plain(3, 1)),
        (
            "Content-Type: message/rfc822\n\nSubject: in\n\nx",
            format!(
                "(\"message\" \"rfc822\" NIL NIL NIL \"7bit\" 16 {} {} 2 NIL NIL NIL NIL)",
                envelope("in"),
                plain(1, 0)
            ),
        ),
        (
            "Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\nU3ViamVjdDogaW4KCng=\n",
            format!(
                "(\"message\" \"rfc822\" NIL NIL NIL \"base64\" 22 (NIL NIL NIL NIL NIL NIL NIL NIL NIL NIL) {} 1 NIL NIL NIL NIL)",
                plain(22, 1)
            ),
        ),
        (
            "Content-Type: text/html\nContent-Language: en\nContent-Disposition: inline\n\nno line end",
            "(\"text\" \"html\" (\"charset\" \"us-ascii\") NIL NIL \"7bit\" 11 0 NIL (\"inline\" NIL) (\"en\") NIL)"
                .to_owned(),
        ),
        (
            "Content-Type: application/pdf; a; =c; d=\"x\\\"y\"; e=café\n\nx\n",
            "(\"application\" \"pdf\" (\"d\" \"x\\\"y\" \"e\" {5}\ncafé) NIL NIL \"7bit\" 3 NIL NIL NIL NIL)"
                .to_owned(),
        ),
    ];
    for (source, expected) in table {
        assert_eq!(text(|out| view(source).write_body(out, true, false)), expected, "{source}");
    }
    assert_eq!(
        text(|out| view(DIGEST).write_body(out, false, false)),
        "((\"message\" \"rfc822\" NIL NIL NIL \"7bit\" 15 (NIL \"d\" NIL NIL NIL NIL NIL NIL NIL NIL) \
         (\"text\" \"plain\" (\"charset\" \"us-ascii\") NIL NIL \"7bit\" 1 0) 2)\
         ((\"text\" \"plain\" (\"charset\" \"us-ascii\") NIL NIL \"7bit\" 3 0) \"alternative\") \"digest\")"
    );
}

#[test]
fn finds_sections() {
    use SectionText::{All, Header, HeaderFields, HeaderFieldsNot, Mime, Text};
    let nested = view(NESTED);
    let fields = |names: &[&str]| HeaderFields(names.iter().map(|&name| name.to_owned()).collect());
    let fields_not = |names: &[&str]| HeaderFieldsNot(names.iter().map(|&name| name.to_owned()).collect());
    let table: &[(&[u32], SectionText, Option<&str>)] = &[
        (&[], All, Some(NESTED)),
        (&[], Header, Some("Content-Type: multipart/mixed; boundary=b\n\n")),
        (&[], Text, Some(NESTED.split_once("\n\n").unwrap().1)),
        (&[], Mime, None),
        (&[1], All, Some("text=20\nlines")),
        (&[1], Header, None),
        (&[1, 1], All, None),
        (&[2], All, Some("Subject: inner\nFrom: i@x\n\ninner body")),
        (&[2], Mime, Some("Content-Type: message/rfc822\n\n")),
        (&[2], Header, Some("Subject: inner\nFrom: i@x\n\n")),
        (&[2], Text, Some("inner body")),
        (&[2, 1], All, Some("inner body")),
        (&[2, 1], Mime, Some("Subject: inner\nFrom: i@x\n\n")),
        (&[2, 1], Text, None),
        (&[2, 2], All, None),
        (&[2], fields(&["FROM"]), Some("From: i@x\n\n")),
        (&[2], fields_not(&["from", "x"]), Some("Subject: inner\n\n")),
        (&[3], All, Some("")),
        (&[4], All, Some("")),
        (&[5], All, None),
    ];
    for (part, text, expected) in table {
        assert_eq!(octets(&nested, part, text.clone()).as_deref(), *expected, "{part:?} {text:?}");
    }
    let digest = view(DIGEST);
    assert_eq!(octets(&digest, &[2], All).as_deref(), Some("pre2\n--c\n\none\n--c--\nepi2\n"));
    assert_eq!(octets(&digest, &[2, 1], All).as_deref(), Some("one"));
    assert_eq!(octets(&digest, &[1, 1], All).as_deref(), Some("x"));
    let single = view("Content-Type: message/rfc822\n\nSubject: in\n\nx");
    assert_eq!(octets(&single, &[1], Header).as_deref(), Some("Subject: in\n\n"));
    assert_eq!(octets(&single, &[1, 1], All).as_deref(), Some("x"));
    assert_eq!(octets(&single, &[1, 1, 1], All), None);
    let empty = view("Content-Type: multipart/mixed; boundary=b\n\n");
    assert_eq!(octets(&empty, &[1], All).as_deref(), Some(""));
    assert_eq!(octets(&empty, &[2], All), None);
}

#[test]
fn selects_fields() {
    let table = [
        ("A: 1\nB: 2\n folded\na: 3\n\nx", "A: 1\na: 3\n\n", "B: 2\n folded\n\n"),
        ("A: 1\nB: 2", "A: 1\n\n", "B: 2\n\n"),
        ("B: 2\nA: 1", "A: 1\n\n", "B: 2\n\n"),
        ("", "\n", "\n"),
        ("\nx", "\n", "\n"),
        ("From me\nA: 1\nno field\nB: 2\n\nx", "A: 1\n\n", "From me\nno field\nB: 2\n\n"),
        ("B: 2\nno field\n\nx", "\n", "B: 2\n\n"),
    ];
    for (source, expected, others) in table {
        let names = || vec!["a".to_owned()];
        let view = view(source);
        assert_eq!(octets(&view, &[], SectionText::HeaderFields(names())).as_deref(), Some(expected), "{source}");
        assert_eq!(octets(&view, &[], SectionText::HeaderFieldsNot(names())).as_deref(), Some(others), "{source}");
    }
}

#[test]
fn decodes_parts() {
    let nested = view(NESTED);
    let binary = |view: &MessageView, part: &[u32]| {
        let part = section(part, SectionText::All).part;
        view.binary(&part).map(|content| content.map(|content| String::from_utf8_lossy(&content).into_owned()))
    };
    assert_eq!(binary(&nested, &[1]), Some(Ok("text \r\nlines".to_owned())));
    assert_eq!(binary(&nested, &[2]), Some(Ok("Subject: inner\r\nFrom: i@x\r\n\r\ninner body".to_owned())));
    assert_eq!(binary(&nested, &[]), Some(Ok(NESTED.replace('\n', "\r\n"))));
    assert_eq!(binary(&nested, &[5]), None);
    let unknown = view("Content-Type: text/plain\nContent-Transfer-Encoding: x-rot13\n\nuryyb");
    assert_eq!(binary(&unknown, &[1]), Some(Err(super::section::UnknownEncoding)));
    let base64 = view("Content-Type: application/x\nContent-Transfer-Encoding: BASE64\n\naGVs\nbG8=\n");
    assert_eq!(binary(&base64, &[1]), Some(Ok("hello".to_owned())));
}

#[test]
fn hostile_structures_are_limited() {
    let messages = "Content-Type: message/rfc822\n\n".repeat(10_000);
    let nested = view(&messages);
    assert_eq!(nested.nodes.len(), MAX_MESSAGE_DEPTH + 1);
    let mut multiparts = String::new();
    for depth in 0..1000 {
        let boundary = if depth == 0 { String::new() } else { format!("--b{}\n", depth - 1) };
        multiparts.extend([&boundary, "Content-Type: multipart/mixed; boundary=b", &depth.to_string(), "\n\n"]);
    }
    let many = view(&multiparts);
    assert!(many.nodes.len() <= MAX_DEPTH + 2);
    let parts = format!("Content-Type: multipart/digest; boundary=b\n\n{}", "--b\n\nSubject: x\n\n".repeat(10_000));
    let parts = view(&parts);
    assert!(parts.nodes.len() <= 2 * MAX_PARTS, "{}", parts.nodes.len());
    for view in [nested, many, parts] {
        let header = view.section(&section(&[], SectionText::Header)).unwrap();
        let body = view.section(&section(&[], SectionText::Text)).unwrap();
        assert_eq!([header, body].concat(), view.source().to_vec());
        assert!(text(|out| view.write_body(out, true, false)).len() < 1_000_000);
    }
}

/// Checks that the sizes of a structure are those of the sections.
fn check_sizes(view: &MessageView, structure: &BodyStructure<'_>, part: &mut Vec<u32>) {
    let octets = |part: &[u32], text| view.section(&section(part, text)).unwrap();
    match structure {
        BodyStructure::Single { body: Body { basic, specific }, .. } => {
            let is_message_root = part.is_empty();
            if is_message_root {
                part.push(1);
            }
            let content = octets(part, SectionText::All);
            assert_eq!(content.len(), basic.size as usize, "{part:?}");
            match specific {
                SpecificFields::Message { body_structure, .. } => {
                    let (header, body) = (octets(part, SectionText::Header), octets(part, SectionText::Text));
                    assert_eq!([header, body].concat(), content.to_vec(), "{part:?}");
                    check_message(view, body_structure, part);
                }
                SpecificFields::Text { number_of_lines, .. } => {
                    assert_eq!(memchr::memchr_iter(b'\n', &content).count(), *number_of_lines as usize);
                }
                SpecificFields::Basic { .. } => {}
            }
            if is_message_root {
                part.pop();
            }
        }
        BodyStructure::Multi { bodies, .. } => {
            for (number, body) in (1..).zip(bodies.as_ref()) {
                part.push(number);
                check_sizes(view, body, part);
                part.pop();
            }
            part.push(u32::try_from(bodies.as_ref().len()).unwrap() + 1);
            assert_eq!(view.section(&section(part, SectionText::All)), None);
            part.pop();
        }
    }
}

/// Checks the message in a part: the only part of a message that is no multipart has the number 1.
fn check_message(view: &MessageView, structure: &BodyStructure<'_>, part: &mut Vec<u32>) {
    let is_single = matches!(structure, BodyStructure::Single { .. });
    if is_single {
        part.push(1);
    }
    check_sizes(view, structure, part);
    if is_single {
        part.pop();
    }
}

fn check(source: &[u8]) {
    let view = MessageView::parse(source.to_vec().into());
    let octets = |text| view.section(&section(&[], text)).unwrap();
    assert_eq!(octets(SectionText::All), source);
    assert_eq!([octets(SectionText::Header), octets(SectionText::Text)].concat(), source);
    let names = || vec!["Subject".to_owned(), "to".to_owned()];
    let fields = octets(SectionText::HeaderFields(names()));
    let others = octets(SectionText::HeaderFieldsNot(names()));
    assert!(fields.ends_with(b"\r\n") && others.ends_with(b"\r\n"));
    // The depth that imap-codec parses.
    if view.nodes.iter().any(|node| node.part.depth > 5) {
        return;
    }
    for is_extended in [false, true] {
        let mut reply = b"* 1 FETCH (ENVELOPE ".to_vec();
        view.write_envelope(&mut reply, false);
        reply.extend_from_slice(if is_extended { b" BODYSTRUCTURE " } else { b" BODY " });
        view.write_body(&mut reply, is_extended, false);
        reply.extend_from_slice(b")\r\n");
        let decoded = ResponseCodec::default().decode(&reply);
        let shown = String::from_utf8_lossy(&reply);
        let (rest, Response::Data(Data::Fetch { items, .. })) = decoded.expect(&shown) else { panic!("{shown}") };
        assert_eq!(rest, b"", "{shown}");
        let [MessageDataItem::Envelope(_), structure] = items.as_ref() else { panic!("{shown}") };
        let (MessageDataItem::Body(structure) | MessageDataItem::BodyStructure(structure)) = structure else {
            panic!("{shown}")
        };
        check_sizes(&view, structure, &mut Vec::new());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn replies_are_valid_and_agree_with_the_sections(
        lines in proptest::collection::vec(
            prop_oneof![
                6 => proptest::sample::select(vec![
                    "", "", "", "--b", "--c", "--b", "--b--", "--c--", "--b x", "text", " ", "From me Mon", "no field",
                    "Content-Type: multipart/mixed; boundary=b", "Content-Type: multipart/digest; boundary=\"c\"",
                    "Content-Type: multipart/mixed", "Content-Type: message/rfc822", "Content-Type: text/html; charset=x",
                    "Content-Type: application/octet-stream; name*0=a; name*1*=%20; x=\"\"; =y",
                    "Content-Disposition: attachment; filename=\"a\\\"b\"", "Content-Language: en, ,de",
                    "Content-Transfer-Encoding: base64", "Content-ID: <a@b>", "Content-MD5: x", "begin 644 a", "#86)C", "end",
                    "Subject: a \"b\" \\ c", "Subject: é", "To: Group: a@x, b;, \"q\" <c@y>", "From: <>", "Cc: <", "Bcc: (", "To: ,;:",
                    "Reply-To: a b c", "Sender: \"", "In-Reply-To: <a@x>", "Date: x", "Message-ID: <y@z>", "\tfolded",
                ]).prop_map(|line| line.as_bytes().to_vec()),
                1 => proptest::collection::vec(any::<u8>(), 0..20),
                1 => "(To|From|Subject|Content-Type|Content-Disposition|Content-Language): [a-z<>@:;,.\"()\\\\ =?/*\u{e9}\u{1}\r]{0,30}"
                    .prop_map(String::into_bytes),
            ],
            0..40,
        ),
        has_cr in any::<bool>(),
        ends_line in any::<bool>(),
    ) {
        let end: &[u8] = if has_cr { b"\r\n" } else { b"\n" };
        let mut source = lines.join(end);
        if ends_line {
            source.extend_from_slice(end);
        }
        check(&source);
    }
}
