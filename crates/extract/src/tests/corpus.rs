//! The accuracy of codes: how often the correct code is ranked first, and how often there is a false positive.
//! `corpus/codes.txt` and `none.txt` were used to find the weights. `held-out-*.txt` was written afterwards, and the
//! weights were not adapted to it.
//!
//! A message starts with a line `=== code | description`. The code is `-` if there is none. Its subject follows, an
//! empty line, and its body. The body is HTML if it starts with a tag. A line `--- html` starts an HTML alternative.
//! `qp` or `base64` at the end of the first line selects the encoding of the body.

use std::fmt::Write as _;

use bytes::Bytes;
use restante_mail::mime::Mime;

use crate::codes;

const CODES: &str = include_str!("corpus/codes.txt");
const NONE: &str = include_str!("corpus/none.txt");
const HELD_OUT_CODES: &str = include_str!("corpus/held-out-codes.txt");
const HELD_OUT_NONE: &str = include_str!("corpus/held-out-none.txt");

/// The score from which on clients treat a candidate as a code.
const MIN_SCORE: f64 = 0.5;

#[test]
fn ranks_the_code_first() {
    let (messages, misses) = count_misses(CODES);
    assert!(misses * 20 <= messages, "{misses} of {messages}");
}

#[test]
fn ranks_the_code_first_in_held_out_messages() {
    let (messages, misses) = count_misses(HELD_OUT_CODES);
    assert!(misses * 20 <= messages, "{misses} of {messages}");
}

#[test]
fn reports_no_code_if_there_is_none() {
    let (messages, false_positives) = count_false_positives(NONE);
    assert!(false_positives * 20 < messages, "{false_positives} of {messages}");
}

#[test]
fn reports_no_code_if_there_is_none_in_held_out_messages() {
    let (messages, false_positives) = count_false_positives(HELD_OUT_NONE);
    assert!(false_positives * 20 < messages, "{false_positives} of {messages}");
}

#[test]
fn corpus_is_large_enough() {
    let count = |texts: [&str; 2]| texts.map(|text| parse_corpus(text).len()).iter().sum::<usize>();
    assert!(count([CODES, HELD_OUT_CODES]) >= 150);
    assert!(count([NONE, HELD_OUT_NONE]) >= 60);
}

/// Returns the number of messages, and the number of those in which the code is not ranked first or has a low score.
fn count_misses(corpus: &str) -> (usize, usize) {
    let mut misses = 0;
    let messages = parse_corpus(corpus);
    for CorpusMessage { expected, about, source } in &messages {
        let found = codes(&Mime::parse(source.clone()));
        if found.first().is_none_or(|first| first.code != *expected || first.score < MIN_SCORE) {
            misses += 1;
            println!("missed {expected} in {about}: {:?}", format_codes(&found));
        }
    }
    println!("{} of {} first in rank", messages.len() - misses, messages.len());
    (messages.len(), misses)
}

/// Returns the number of messages, and the number of those in which a code is reported.
fn count_false_positives(corpus: &str) -> (usize, usize) {
    let mut false_positives = 0;
    let messages = parse_corpus(corpus);
    for CorpusMessage { about, source, .. } in &messages {
        let found = codes(&Mime::parse(source.clone()));
        if found.first().is_some_and(|first| first.score >= MIN_SCORE) {
            false_positives += 1;
            println!("false positive in {about}: {:?}", format_codes(&found));
        }
    }
    println!("{false_positives} of {} with a false positive", messages.len());
    (messages.len(), false_positives)
}

fn format_codes(found: &[crate::Code]) -> Vec<(&str, f64)> {
    found.iter().take(4).map(|code| (code.code.as_str(), code.score)).collect()
}

struct CorpusMessage<'a> {
    expected: &'a str,
    about: &'a str,
    source: Bytes,
}

fn parse_corpus(corpus: &str) -> Vec<CorpusMessage<'_>> {
    let entries = corpus.strip_prefix("=== ").expect("the corpus starts with an entry").split("\n=== ");
    let parse = |entry| parse_message(entry).unwrap_or_else(|| panic!("invalid corpus entry: {entry}"));
    entries.map(parse).collect()
}

fn parse_message(entry: &str) -> Option<CorpusMessage<'_>> {
    let (title, rest) = entry.split_once('\n')?;
    let (expected, about) = title.split_once(" | ")?;
    let (subject, body) = rest.strip_prefix("Subject: ")?.split_once("\n\n")?;
    let encoding = ["qp", "base64"].into_iter().find(|name| about.ends_with(name)).unwrap_or("8bit");
    let subject = format!("Subject: =?utf-8?b?{}?=\r\n", base64(subject.as_bytes(), usize::MAX));
    let content = match body.split_once("\n--- html\n") {
        Some((text, html)) => format!(
            "Content-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\n{}\r\n--b\r\n{}\r\n--b--\r\n",
            part(text, encoding),
            part(html, encoding)
        ),
        None => part(body, encoding),
    };
    let source = Bytes::from(format!("From: a@example.org\r\n{subject}MIME-Version: 1.0\r\n{content}"));
    Some(CorpusMessage { expected, about, source })
}

fn part(body: &str, encoding: &str) -> String {
    let kind = if body.starts_with('<') { "html" } else { "plain" };
    let (name, content) = match encoding {
        "qp" => ("quoted-printable", quoted_printable(body)),
        "base64" => ("base64", base64(body.as_bytes(), 76)),
        other => (other, body.replace('\n', "\r\n")),
    };
    format!("Content-Type: text/{kind}; charset=utf-8\r\nContent-Transfer-Encoding: {name}\r\n\r\n{content}\r\n")
}

fn quoted_printable(text: &str) -> String {
    let mut out = String::new();
    let mut column = 0;
    for byte in text.bytes() {
        if byte == b'\n' {
            out.push_str("\r\n");
            column = 0;
            continue;
        }
        if column > 70 {
            out.push_str("=\r\n");
            column = 0;
        }
        if byte == b'=' || !(byte == b' ' || byte.is_ascii_graphic()) {
            write!(out, "={byte:02X}").expect("writing to a string cannot fail");
            column += 3;
        } else {
            out.push(char::from(byte));
            column += 1;
        }
    }
    out
}

fn base64(bytes: &[u8], width: usize) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for (n, chunk) in bytes.chunks(3).enumerate() {
        if n > 0 && (n * 4).is_multiple_of(width) {
            out.push_str("\r\n");
        }
        let bits = chunk.iter().fold(0_usize, |bits, &byte| bits << 8 | usize::from(byte)) << (8 * (3 - chunk.len()));
        for sextet in 0..4 {
            let is_padding = sextet > chunk.len();
            out.push(if is_padding { '=' } else { char::from(ALPHABET[bits >> (18 - 6 * sextet) & 63]) });
        }
    }
    out
}
