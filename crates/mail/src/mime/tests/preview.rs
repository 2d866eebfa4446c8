//! Previews of messages: tables of messages, the corpus, and hostile messages.

use std::fs;

use bytes::Bytes;

use super::corpus::corpus_files;
use crate::mime::{Defect, MAX_DEPTH, MAX_PARTS, MAX_SNIPPET_CHARS, Mime, Preview, preview, summarize};

fn assert_preview(source: &[u8], snippet: &str, attachments: u32) {
    let found = preview(source);
    assert_eq!(
        (found.snippet.as_str(), found.attachments),
        (snippet, attachments),
        "{}",
        source[..source.len().min(300)].escape_ascii()
    );
    assert_eq!(summarize(source).1, found);
}

/// Puts a text on one line, like a snippet of unlimited length.
fn on_one_line(text: &str) -> String {
    let is_filler = |c: char| matches!(c, '\u{ad}' | '\u{34f}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}');
    let visible: String = text.chars().filter(|&c| !is_filler(c)).collect();
    let words = visible.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn previews_single_texts() {
    let table: &[(&[u8], &str)] = &[
        (b"Subject: x\r\n\r\nHello,\r\n\r\n  this is\ta text.\r\n", "Hello, this is a text."),
        (b"Content-Type: text/plain; charset=utf-8\r\n\r\nGr\xc3\xbc\xc3\x9fe", "Gr\u{fc}\u{df}e"),
        (b"Content-Type: TEXT/PLAIN;\r\n Charset=\"UTF-8\"\r\n\r\n\xef\xbb\xbfcaf\xc3\xa9", "caf\u{e9}"),
        (b"Content-Type: text/plain; charset=iso-8859-1\r\n\r\ncaf\xe9 cr\xe8me", "caf\u{e9} cr\u{e8}me"),
        // UTF-8 that is declared as Latin-1, and the reverse.
        (b"Content-Type: text/plain; charset=iso-8859-1\r\n\r\ncaf\xc3\xa9", "caf\u{e9}"),
        (b"Content-Type: text/plain; charset=utf-8\r\n\r\ncaf\xe9", "caf\u{e9}"),
        (b"Content-Type: text/plain; charset=iso-2022-jp\r\n\r\n\x1b$B%F%9%H\x1b(B ok", "\u{30c6}\u{30b9}\u{30c8} ok"),
        (b"Subject: x\r\n\r\n\x1b$B%F%9%H\x1b(B ok", "\u{30c6}\u{30b9}\u{30c8} ok"),
        (
            b"Content-Transfer-Encoding: quoted-printable\r\n\r\nsoft =\r\nbreak caf=C3=A9=20\r\n",
            "soft break caf\u{e9}",
        ),
        (b"Content-Transfer-Encoding: base64\r\n\r\nSGVsbG8s\r\nIHdvcmxkIQ==\r\n", "Hello, world!"),
        (b"Content-Transfer-Encoding: base64\r\n\r\nnot encoded at all", "not encoded at all"),
        (b"Content-Type: text/plain; format=flowed; delsp=yes\r\n\r\na flow \r\ned text\r\n", "a flowed text"),
        (b"Content-Type: text/markdown\r\n\r\n# Title\r\n\r\ntext", "# Title text"),
        (b"Content-Type: multipart/mixed; boundary=b\r\n\r\nno part", "no part"),
        (b"no header at all", "no header at all"),
        (b"Subject: x\r\n\r\n", ""),
        (b"Subject: x\r\n", ""),
        (b"", ""),
    ];
    for (source, snippet) in table {
        assert_preview(source, snippet, 0);
    }
}

#[test]
fn previews_html() {
    let table = [
        ("<p>Hello <b>Sam</b>,</p><p>welcome", "Hello Sam, welcome"),
        (
            "<html><head><title>T</title><style>p { color: red }</style></head><body><p>Hel<i>lo</i>&nbsp;&amp; bye",
            "Hello & bye",
        ),
        ("<a href='https://example.org/'>Confirm</a> your address", "Confirm your address"),
        ("<a href='https://example.org/'>unclosed", "unclosed"),
        ("Sale!<div>&#847;&zwnj;&nbsp;&#8199;&shy;&#8203;&#65279;</div><p>Now", "Sale! Now"),
        ("<img src=x alt='Our logo'>", "Our logo"),
        ("<style>only", ""),
    ];
    for (html, snippet) in table {
        assert_preview(format!("Content-Type: text/html; charset=utf-8\r\n\r\n{html}").as_bytes(), snippet, 0);
    }
    let undeclared = b"Content-Type: text/html\r\n\r\n<meta charset=iso-8859-5><p>\xbf\xe0\xd8\xd2\xd5\xe2";
    assert_preview(undeclared, "Привет", 0);
}

#[test]
fn previews_multiparts() {
    let alternative = |text: &str, html: &str| {
        format!(
            "Content-Type: multipart/alternative; boundary=b\r\n\r\npreamble\r\n--b\r\n\r\n{text}\r\n--b\r\n\
             Content-Type: text/html\r\n\r\n{html}\r\n--b--\r\n"
        )
    };
    assert_preview(alternative("the text", "<p>the HTML").as_bytes(), "the text", 0);
    assert_preview(alternative(" \r\n ", "<p>the HTML").as_bytes(), "the HTML", 0);
    assert_preview(alternative("\u{200b}\u{feff}", "<p>the HTML").as_bytes(), "the HTML", 0);
    assert_preview(alternative("", "").as_bytes(), "", 0);

    let mixed = "Content-Type: multipart/mixed; boundary=o\r\n\r\n--o\r\n".to_owned()
        + &alternative("the text", "<img src='cid:logo'>")
        + "--o\r\nContent-Type: image/png\r\nContent-ID: <logo>\r\nContent-Disposition: inline\r\n\r\npng\r\n\
           --o\r\nContent-Type: text/plain; name=a.log\r\nContent-Disposition: attachment\r\n\r\nlog\r\n\
           --o\r\nContent-Type: message/rfc822\r\n\r\nSubject: inner\r\n\r\ninner text\r\n--o--\r\n";
    assert_preview(mixed.as_bytes(), "the text", 2);
    assert_preview(mixed.replace("text/html", "text/x-other").as_bytes(), "the text", 4);

    let texts =
        "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\none\r\n--b\r\n\r\n \r\n--b\r\n\r\ntwo\r\n--b--";
    assert_preview(texts.as_bytes(), "one -- two", 0);
    assert_preview(b"Content-Type: application/pdf\r\n\r\n%PDF-1.7 text", "", 1);
    assert_preview(b"Content-Disposition: attachment\r\n\r\ntext", "", 1);
    assert_preview(b"Subject: x\r\n\r\nHi\r\nbegin 644 a.txt\r\n#2&5L\r\n`\r\nend\r\nbye\r\n", "Hi bye", 1);
    assert_preview(b"Subject: x\r\n\r\nbegin 644 a.txt is text\r\n", "begin 644 a.txt is text", 0);
}

#[test]
fn snippets_of_long_texts_end_at_words() {
    let text = "Der Fluß fließt übers Länd. ".repeat(1000);
    let snippet = format!("{}Der", "Der Fluß fließt übers Länd. ".repeat(7));
    let quoted = text.bytes().map(|b| format!("={b:02X}")).collect::<Vec<_>>().concat();
    let quoted_lines: Vec<_> = quoted.as_bytes().chunks(72).map(<[u8]>::to_vec).collect();
    let (latin1, _, _) = encoding_rs::WINDOWS_1252.encode(&text);
    let base64 = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, &text);
    let table: &[(&str, Vec<u8>)] = &[
        ("Content-Type: text/plain; charset=utf-8", text.clone().into()),
        ("Content-Type: text/plain; charset=iso-8859-1", text.clone().into()),
        ("Content-Type: text/plain; charset=iso-8859-1", latin1.to_vec()),
        ("Content-Type: text/plain; charset=utf-8", latin1.to_vec()),
        ("Subject: x", text.clone().into()),
        ("Subject: x", latin1.to_vec()),
        ("Content-Transfer-Encoding: quoted-printable", quoted_lines.join(&b"=\r\n"[..])),
        ("Content-Transfer-Encoding: quoted-printable", quoted.into()),
        ("Content-Transfer-Encoding: base64", base64.into()),
        ("Content-Type: text/html", text.into()),
    ];
    for (field, body) in table {
        assert_preview(&[field.as_bytes(), b"\r\n\r\n", body].concat(), &snippet, 0);
    }
}

#[test]
fn truncated_characters_do_not_change_the_charset() {
    // Every length of the ASCII text moves the limits of the decoder to another byte of a character.
    for shift in 0..8 {
        for (kind, text, blank) in [("plain", "日本語", 4096), ("plain", "😀", 768), ("html", "日本語", 32 * 1024)]
        {
            let body = format!("{}é ü{}{}", "x".repeat(shift), " ".repeat(blank - 40), text.repeat(20_000));
            for label in ["", "; charset=utf-8", "; charset=iso-8859-1", "; charset=us-ascii"] {
                let source = format!("Content-Type: text/{kind}{label}\r\n\r\n{body}");
                let Preview { snippet, .. } = preview(source.as_bytes());
                let start = format!("{}é ü", "x".repeat(shift));
                let rest = snippet.strip_prefix(&start).unwrap_or_else(|| panic!("{label} {snippet}"));
                assert!(rest.trim().chars().all(|c| text.contains(c)), "{kind}{label} {snippet}");
            }
        }
    }
}

#[test]
fn truncated_html_leaves_no_trace() {
    // Only blank text precedes the end of what is decoded, so the snippet is not full there.
    let ends =
        ["<img alt='garbage", "<a href='garbage", "</garbage", "<!-- garbage", "&garbage", "<style>garbage", "gar"];
    for end in ends {
        for cut in 1..=end.len() {
            let head = "Content-Type: text/html; charset=utf-8\r\n\r\n";
            let padding = 32 * 1024 - "<p>Hello".len() - cut;
            let source = format!("{head}<p>Hello{}{end}{}", " ".repeat(padding), "bage ".repeat(100));
            assert_preview(source.as_bytes(), "Hello", 0);
        }
    }
    let late = format!("Content-Type: text/html\r\n\r\n<style>{}</style>late", "x".repeat(20_000));
    assert_preview(late.as_bytes(), "late", 0);
    let too_late = format!("Content-Type: text/html\r\n\r\n<style>{}</style>late", "x".repeat(40_000));
    assert_preview(too_late.as_bytes(), "", 0);
}

/// Returns a text that is made from HTML without the URLs of links.
fn without_urls(text: &str) -> String {
    let mut pieces = text.split(" ( ");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| text + piece.split_once(" )").map_or("", |(_, rest)| rest))
}

#[test]
fn previews_match_the_views_of_the_corpus() {
    let mut mismatches = Vec::new();
    for path in corpus_files() {
        let source = fs::read(&path).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let found = preview(&source);
        assert_eq!(summarize(&source).1, found, "{name}");
        let mime = Mime::parse(source.into());
        assert_eq!(found.attachments as usize, mime.attachment_count(), "{name}");
        let counts = (found.attached_parts as usize, found.inline_parts as usize);
        assert_eq!((counts, found.omits_parts), (mime.disposition_counts(), mime.omits_parts()), "{name}");
        let mut text = on_one_line(&mime.text());
        if mime.defects().iter().any(|defect| defect.name == Defect::TEXT_FROM_HTML) {
            text = without_urls(&text);
        }
        let is_complete = text.chars().count() <= MAX_SNIPPET_CHARS;
        let is_long_enough = found.snippet.chars().count() >= MAX_SNIPPET_CHARS / 2;
        if !(if is_complete { text == found.snippet } else { text.starts_with(&found.snippet) && is_long_enough }) {
            mismatches.push(format!("{name}: {:?} is not the start of {text:?}", found.snippet));
        }
    }
    assert!(mismatches.is_empty(), "{}", mismatches.join("\n"));
}

#[test]
fn previews_of_hostile_messages_are_bounded() {
    let line = |start: &str, filler: u8| {
        let mut source = start.as_bytes().to_vec();
        source.resize(10_000_000, filler);
        source
    };
    let full = |c: &str| c.repeat(MAX_SNIPPET_CHARS);
    assert_preview(&line("Subject: x\r\n\r\n", b'x'), &full("x"), 0);
    assert_preview(&line("Subject: x\r\n\r\n", b' '), "", 0);
    assert_preview(&line("Subject: ", b'x'), "", 0);
    assert_preview(&line("Content-Type: text/html\r\n\r\n", b'<'), &full("<"), 0);
    assert_preview(&line("Content-Type: text/html\r\n\r\n<a href='", b'x'), "", 0);
    assert_preview(&line("Content-Transfer-Encoding: quoted-printable\r\n\r\n", b'_'), &full("_"), 0);
    // `aaaa` decodes to `i\xa6\x9a`.
    assert!(
        preview(&line("Content-Transfer-Encoding: base64\r\n\r\n", b'a')).snippet.chars().count() <= MAX_SNIPPET_CHARS
    );

    let level = |n| format!("Content-Type: multipart/mixed; boundary=b{n}\r\n\r\n--b{n}\r\n");
    let levels: String = (0..1000).map(level).collect();
    let deep = preview((levels + "\r\ndeep\r\n").as_bytes());
    assert!(deep.snippet.starts_with("--b50 Content-Type: multipart/mixed;") && deep.attachments == 0);
    let levels: String = (0..MAX_DEPTH).map(level).collect();
    let bomb = levels.clone() + "\r\ndeep\r\n" + &"--z\n".repeat(2_000_000);
    assert!(preview(bomb.as_bytes()).snippet.starts_with("deep --z --z"));
    let files = "--b0\r\nContent-Type: image/png\r\n\r\n".repeat(10_000);
    assert_preview(
        (levels + "\r\ndeep\r\n" + &files).as_bytes(),
        "deep",
        u32::try_from(MAX_PARTS - MAX_DEPTH - 1).unwrap(),
    );
    let undeclared = "--b\nContent-Type: multipart/mixed\n\n".to_owned() + &"\n".repeat(9000);
    let undeclared = "Content-Type: multipart/mixed; boundary=b\n\n".to_owned() + &undeclared.repeat(1000);
    assert_preview(undeclared.as_bytes(), "", 0);
}

#[test]
fn counts_attachments_until_the_limit_of_comparisons() {
    let file = "--b\nContent-Type: image/png\n\npng\n";
    let message = |lines: usize| {
        format!("Content-Type: multipart/mixed; boundary=b\n\n{file}{}{file}--b--\n", "--x\n".repeat(lines))
    };
    assert_preview(message(10_000).as_bytes(), "", 2);
    let long = message(1_000_000);
    assert_preview(long.as_bytes(), "", 1);
    assert_eq!(Mime::parse(Bytes::from(long)).attachment_count(), 2);
}
