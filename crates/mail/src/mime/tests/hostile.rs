//! Hostile messages: known attacks, and random sequences of MIME fragments. The tests check limits, not time: a missing
//! limit makes them run for minutes or abort.

use bytes::Bytes;
use proptest::prelude::*;

use crate::mime::{
    Defect, MAX_DEPTH, MAX_FIELDS, MAX_PARTS, MAX_SNIPPET_CHARS, Mime, Preview, header_summary, summarize,
};

/// Summarizes a message and calls all methods of the view.
fn read_all(source: Vec<u8>) -> Mime {
    let (summary, Preview { snippet, attachments, .. }) = summarize(&source);
    assert_eq!(summary, header_summary(&source));
    assert!(snippet.chars().count() <= MAX_SNIPPET_CHARS);
    assert!(!snippet.contains("  ") && snippet.trim() == snippet, "{snippet:?}");
    let addresses = summary.from.into_iter().chain(summary.to.into_iter().flatten());
    let addresses = addresses.chain(summary.cc).chain(summary.bcc).chain(summary.reply_to);
    for line in addresses.chain(summary.tags).chain([summary.subject, summary.message_id, snippet]) {
        assert!(!line.contains(char::is_control), "{line:?}");
    }
    let mime = Mime::parse(Bytes::from(source));
    assert_eq!(attachments as usize, mime.attachment_count());
    assert!(mime.parts().len() <= MAX_PARTS);
    assert!(mime.header().len() <= MAX_FIELDS);
    assert!(mime.parts().iter().all(|part| part.depth <= MAX_DEPTH));
    mime.header_map();
    mime.text();
    mime.inbucket_text();
    mime.html();
    for attachment in mime.attachments() {
        let name = &attachment.filename;
        assert!(
            !name.is_empty() && name.len() <= 255 && !name.contains(|c: char| c.is_control() || c == '/'),
            "{name:?}"
        );
        assert_eq!(attachment.md5_hex().len(), 32);
    }
    assert!(mime.defects().len() <= 100);
    mime
}

/// Returns nested multiparts.
fn nested_multiparts(depth: usize) -> String {
    let level = |n| format!("Content-Type: multipart/mixed; boundary=b{n}\r\n\r\n--b{n}\r\n");
    (0..depth).map(level).collect::<Vec<_>>().concat()
}

fn has_defect(mime: &Mime, name: &str) -> bool {
    mime.defects().iter().any(|defect| defect.name == name)
}

#[test]
fn limits_ten_thousand_parts() {
    let parts: Vec<_> = (0..10_000).map(|n| format!("--b\r\n\r\npart {n}\r\n")).collect();
    let source = "Content-Type: multipart/mixed; boundary=b\r\n\r\n".to_owned() + &parts.concat() + "--b--\r\n";
    let mime = read_all(source.into());
    assert_eq!(mime.parts().len(), MAX_PARTS);
    assert!(has_defect(&mime, Defect::LIMIT) && mime.omits_parts() && !mime.omits_fields());
    let text = mime.text();
    assert!(text.starts_with("part 0\n--\npart 1\n--\n"));
    assert!(text.contains("part 9999"), "content beyond the limit is readable");
}

#[test]
fn limits_a_thousand_levels() {
    let mime = read_all((nested_multiparts(1000) + "\r\ndeep\r\n").into());
    assert_eq!(mime.parts().len(), MAX_DEPTH + 1);
    assert!(has_defect(&mime, Defect::LIMIT) && mime.omits_parts());
    assert!(mime.text().ends_with("deep\n"), "content beyond the limit is readable");
}

#[test]
fn message_deeper_than_the_limit_shows_its_outer_text() {
    let outer = "Content-Type: multipart/mixed; boundary=outer\r\n\r\n--outer\r\n\r\nouter text\r\n--outer\r\n";
    let mime = read_all((outer.to_owned() + &nested_multiparts(1000) + "\r\ndeep\r\n").into());
    assert!(has_defect(&mime, Defect::LIMIT) && mime.omits_parts());
    let text = mime.text();
    assert!(text.starts_with("outer text") && !text.contains("boundary"), "{text}");
}

#[test]
fn limits_levels_with_one_boundary() {
    let level = "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n";
    let mime = read_all(level.repeat(1000).into());
    assert!(has_defect(&mime, Defect::LIMIT));
}

#[test]
fn parses_a_million_boundary_lines_at_full_depth() {
    let source = nested_multiparts(MAX_DEPTH) + "\r\n" + &"--\n".repeat(1_000_000);
    assert!(summarize(source.as_bytes()).1.omits_parts, "a preview takes less time");
    let mime = read_all(source.into());
    assert_eq!(mime.parts().len(), MAX_DEPTH + 1);
    assert!(!mime.omits_parts());
}

#[test]
fn limits_multiparts_without_boundaries() {
    let part = "--b\r\nContent-Type: multipart/mixed\r\n\r\n";
    let source = "Content-Type: multipart/mixed; boundary=b\r\n\r\n".to_owned() + &part.repeat(20_000);
    assert!(has_defect(&read_all(source.into()), Defect::LIMIT));
}

#[test]
fn parses_six_megabytes_of_nested_messages() {
    let level = "Content-Type: message/rfc822\r\n\r\n";
    let mime = read_all(level.repeat(200_000).into());
    assert_eq!(mime.parts().len(), 1);
    assert_eq!(mime.attachments()[0].filename, "attachment-0.eml");
}

#[test]
fn parses_a_line_of_ten_megabytes() {
    for (encoding, filler) in [("8bit", b'x'), ("base64", b'Z'), ("quoted-printable", b'_')] {
        let mut source = format!("Content-Transfer-Encoding: {encoding}\r\n\r\n").into_bytes();
        source.resize(10_000_000, filler);
        assert!(Mime::parse(source.into()).text().len() > 7_000_000);
    }
    let mut header = b"Subject: ".to_vec();
    header.resize(10_000_000, b'x');
    assert!(read_all(header.clone()).text().is_empty());
    assert_eq!(header_summary(&header).subject.len(), 4096);
}

#[test]
fn long_subject_is_truncated_only_in_the_summary() {
    for character in ["x", "\u{e9}", "\u{20ac}", "\u{1f600}"] {
        let subject = character.repeat(130_000);
        let source = format!("Subject: {subject}\r\n\r\n");
        let mime = read_all(source.clone().into());
        let summarized = header_summary(source.as_bytes()).subject;
        assert!((4093..=4096).contains(&summarized.len()));
        assert_eq!(mime.complete_subject(&summarized), subject);
        let of_script = "s".repeat(4096);
        for other in ["", "short", &of_script] {
            assert_eq!(mime.complete_subject(other), other);
        }
    }
}

#[test]
fn converts_a_hundred_thousand_divs() {
    let source = "Content-Type: text/html\r\n\r\n".to_owned() + &"<div>".repeat(100_000) + "deep";
    assert_eq!(read_all(source.into()).text(), "deep\n");
}

#[test]
fn decodes_a_megabyte_of_encoded_words() {
    for word in ["=?utf-8?Q?=C3=A9?= ", "=?utf-8?Q?", "=?a?b?=?", "=?", "=?utf-8?B?w6k=?=\r\n "] {
        let source = "Subject: ".to_owned() + &word.repeat(1_000_000 / word.len()) + "\r\n\r\n";
        let mime = read_all(source.into());
        mime.header()[0].decoded_value();
    }
}

#[test]
fn parses_a_megabyte_of_header() {
    let mime = read_all(("X: y\r\n".repeat(170_000) + "\r\nbody").into());
    assert_eq!(mime.header().len(), MAX_FIELDS);
    assert!(has_defect(&mime, Defect::LIMIT) && mime.omits_fields() && !mime.omits_parts());
    assert_eq!(mime.text(), "body");
    let separators = "X: y\r\n".to_owned() + &"From me\r\n".repeat(110_000);
    assert!(read_all(separators.clone().into()).text().starts_with("From me"));
    assert_eq!(read_all((separators + "Y: z\r\n\r\nbody").into()).text(), "body");
    let late = "X: y\r\n".repeat(2000) + "Content-Type: text/html\r\n\r\n<p>late";
    assert_eq!(read_all(late.into()).html(), "<p>late", "content fields beyond the limit are used");
    let folded = read_all(("X: y\r\n".to_owned() + &" folded\r\n".repeat(110_000) + "\r\nbody").into());
    assert_eq!(folded.text(), "body");
}

#[test]
fn limits_a_megabyte_of_recipients_quotes_and_comments() {
    let pieces = [
        "a@x,", "\"\\", "(", "((a)", "<", ":", "[:", "a b ", ",\"a\\\"", "=?a?Q?x", "a:=", "<a", "<a@x ", "<a@x> ",
        "<<", ">", "a@x ", "a,", "a,,", "a@x,a,", "a@", "@", ". ", "a . ", "<\"", "<\"\\", "<@a:", "<(", "<a@x,",
        "x:;", "'a@x' ", "<a b> ",
    ];
    for piece in pieces {
        let source = "To: ".to_owned() + &piece.repeat(1_000_000 / piece.len()) + "\r\n\r\n";
        let summary = header_summary(source.as_bytes());
        assert!(summary.to.unwrap_or_default().len() <= 1000);
    }
}

#[test]
fn parses_growing_addresses_in_linear_time() {
    // The start, the repeated piece and the end.
    let lists = [
        ("", ". ", "@x"),
        ("", "a . ", "@x"),
        ("a@x", " .", ""),
        ("", "a(x)", ""),
        ("", "a(x)", "@x"),
        ("", "a", "(x)@x"),
        ("a@x ", "(x)", ""),
        ("", "\"a\"(x)", "@x"),
        ("<", "a . ", "@x"),
        ("", "<\\\"@,", "\""),
        ("", "< @\\\":,", "\""),
        ("", "<a> ", "<a@x>"),
        ("", "a,", "@x"),
    ];
    let field = |start: &str, piece: &str, end: &str| {
        format!("To: {start}{}{end}\r\n", piece.repeat((240_000 - start.len()) / piece.len()))
    };
    for (start, piece, end) in lists {
        header_summary((field(start, piece, end) + "\r\n").as_bytes());
        header_summary((field(start, piece, end).repeat(40) + "\r\n").as_bytes());
    }
    // Whitespace before and after a word, each followed by comments.
    let blanks = " ".repeat(120_000);
    for start in [blanks.clone(), format!("a{blanks}"), format!("a@{blanks}"), format!("a@x{blanks}")] {
        header_summary((field(&start, "(x)", "@x") + "\r\n").as_bytes());
    }
}

#[test]
fn parses_to_fields_up_to_a_limit() {
    let words = "To: ".to_owned() + &"a ".repeat(128 * 1024) + "\r\n";
    for (fields, found) in [(0, true), (1, true), (3, false), (40, false)] {
        let source = words.repeat(fields) + "To: b@x\r\nSubject: late\r\n\r\n";
        let summary = header_summary(source.as_bytes());
        assert_eq!(summary.to.is_some(), found, "{fields}");
        assert_eq!(summary.subject, "late");
    }
}

#[test]
fn parses_a_megabyte_of_parameters() {
    for piece in ["; a=b", "; filename*1*=x", ";", "; a=\"\\", "=", "; filename*0*=''%"] {
        let source = "Content-Disposition: attachment".to_owned() + &piece.repeat(1_000_000 / piece.len()) + "\r\n\r\n";
        assert_eq!(read_all(source.into()).parts().len(), 1);
    }
}

#[test]
fn limits_six_megabytes_of_uuencoded_files() {
    for file in [
        "begin 644 a\r\n",
        "begin 644 a\r\n#2&5L\r\n",
        "begin 644 a\r\n#2&5L\r\n`\r\nend\r\n",
        "begin \n",
        "\nbegin 644 a\n`\n",
    ] {
        let text = file.repeat(6_000_000 / file.len());
        let mime = read_all(("Subject: x\r\n\r\n".to_owned() + &text).into());
        assert!(mime.attachment_count() < MAX_PARTS, "{file:?}");
        let part = "Content-Type: image/png\r\nContent-Transfer-Encoding: x-uuencode\r\n\r\n".to_owned() + &text;
        assert!(read_all(part.into()).attachments()[0].content().len() <= text.len());
    }
}

#[test]
fn decodes_thousands_of_base64_runs() {
    let pieces = [
        "SGk=",
        "SGk=\n",
        "SGVs\nno base64\n",
        "a\n",
        "=\n",
        "= ",
        "SGVsbG8gU2Ft!\n",
        "Jane\nRegards\n",
        "AAAA AAAA\n",
        "!",
    ];
    for piece in pieces {
        let body = piece.repeat(300_000 / piece.len());
        // Whitespace at the end of a long line must not be scanned again for every segment of the line.
        let blanks = format!("{body}{}", " ".repeat(300_000));
        for (kind, body) in [
            ("text/plain; charset=utf-8", &body),
            ("text/plain; charset=koi8-r", &body),
            ("image/png", &body),
            ("text/plain; charset=utf-8", &blanks),
        ] {
            let source = format!("Content-Type: {kind}\r\nContent-Transfer-Encoding: base64\r\n\r\n{body}");
            let mime = Mime::parse(source.into());
            assert!(mime.content(mime.root()).len() <= 2 * body.len(), "{piece:?}");
        }
    }
}

#[test]
fn parses_a_million_similar_delimiters() {
    for line in
        ["--bx\n", "--bx\n\n", "--bx\nA: b\n", "--b x\n\n", "--b--x\n", "boundary=bx\n--bx\n\n", "--b\n", "--b\n\n"]
    {
        let head = "Content-Type: multipart/mixed; boundary=b\n\n--b\n\n";
        read_all((head.to_owned() + &line.repeat(3_000_000 / line.len())).into());
    }
    let declared: Vec<_> = (0..200_000).map(|n| format!("boundary=b{n}\n--b{n}\n\n")).collect();
    read_all(("Content-Type: multipart/mixed; boundary=b\n\n--b\n\n".to_owned() + &declared.concat()).into());
}

#[test]
fn decodes_megabytes_in_every_charset() {
    let labels =
        ["utf-8", "iso-8859-1", "windows-1251", "cp437", "hz-gb-2312", "utf-7", "utf-16", "utf-32", "iso-2022-jp", "x"];
    for label in labels {
        for piece in
            [&b"\xe9"[..], b"\xc3\xa9", b"~{", b"~", b"+", b"+-", b"\0", b"\xff\xfe\0\0", b"\x1b$B", b"\xef\xbb\xbf"]
        {
            let mut source = format!("Content-Type: text/plain; charset={label}\n\n").into_bytes();
            source.extend(piece.repeat(1_000_000 / piece.len()));
            // No charset needs more than four bytes of UTF-8 per byte.
            assert!(Mime::parse(source.into()).text().len() <= 4_000_000, "{label}");
        }
    }
}

/// Fragments that are significant to the parser, so that random sequences reach deep into it.
fn fragment() -> impl Strategy<Value = Vec<u8>> {
    let known: &[&[u8]] = &[
        b"Content-Type: ",
        b"multipart/mixed",
        b"multipart/alternative",
        b"multipart/digest",
        b"text/plain",
        b"text/html",
        b"message/rfc822",
        b"; boundary=b",
        b"; boundary=\"b c\"",
        b"; charset=utf-8",
        b"; charset=utf-7",
        b"; charset=x",
        b"; charset=iso-2022-jp",
        b"; charset=iso-2022-kr",
        b"; format=flowed; delsp=yes",
        b"; name=\"",
        b"; filename*0*=utf-8''",
        b"; filename*1=",
        b"Content-Disposition: ",
        b"attachment",
        b"inline",
        b"Content-Transfer-Encoding: ",
        b"base64",
        b"quoted-printable",
        b"x-uuencode",
        b"\nbegin 644 a\n",
        b"#2&5L\n",
        b"\nend\n",
        b"; charset=utf-16",
        b"; charset=cp437",
        b"; charset=hz-gb-2312",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"~{",
        b"!",
        b"SGk=",
        b"<h1>",
        b"</h1>",
        b"<b>",
        b"From: ",
        b"From ",
        b"To: ",
        b"Subject: ",
        b"=?utf-8?Q?",
        b"=?gb18030?B?",
        b"?=",
        b"--b",
        b"--b c",
        b"--",
        b"\r\n",
        b"\n",
        b"\r",
        b"\r\n\r\n",
        b" ",
        b"\t",
        b"\0",
        b"=",
        b"=\r\n",
        b"%",
        b"<",
        b">",
        b"\"",
        b"\\",
        b"(",
        b")",
        b",",
        b";",
        b":",
        b"@",
        b"\xff",
        b"\xc3",
        b"\xe9",
        b"\x1b$B",
        b"\x1b(B",
        b"\x1b$)C",
        b"\x0e",
        b"+",
        b"<p>",
        b"<!--",
        b"&#",
        b"&lt",
        b"> ",
        b"a",
        b"Zm9v",
    ];
    prop_oneof![8 => prop::sample::select(known.to_vec()).prop_map(<[u8]>::to_vec), 1 => any::<Vec<u8>>()]
}

proptest! {
    #[test]
    fn parses_any_bytes(source: Vec<u8>) {
        read_all(source);
    }

    #[test]
    fn parses_any_fragments(fragments in prop::collection::vec(fragment(), 0..80)) {
        read_all(fragments.concat());
    }

    #[test]
    fn parses_any_fragments_in_a_body(fragments in prop::collection::vec(fragment(), 0..80)) {
        let mut source = b"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n".to_vec();
        source.extend(fragments.concat());
        let mime = read_all(source.clone());
        // The ranges are in order and inside of the source.
        for part in mime.parts() {
            prop_assert!(part.header.end <= part.body.end && part.body.end <= source.len());
        }
    }
}
