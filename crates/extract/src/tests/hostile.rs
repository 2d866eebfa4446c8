//! Hostile messages: megabytes of text that is searched for, and random sequences of significant fragments. The tests
//! check limits, not time: a quadratic algorithm makes them run for minutes.

use bytes::Bytes;
use proptest::prelude::*;
use restante_mail::mime::Mime;

use crate::{CodeSource, LinkScheme, MAX_LINKS, codes, links, otp_token_defects, unsubscribe};

const SIZE: usize = 1 << 20;

/// Calls all functions and checks the invariants of their results.
fn read_all(source: String) {
    let size = source.len();
    let mime = Mime::parse(Bytes::from(source));
    let links = links(&mime);
    assert!(links.len() <= MAX_LINKS);
    for link in &links {
        assert!(!link.href.is_empty() && link.href.len() <= 8 * 1024 && link.text.len() <= 1024);
        assert!(link.kind != LinkScheme::Http || link.href[..4].eq_ignore_ascii_case("http"));
    }
    let codes = codes(&mime);
    assert!(codes.len() <= 20, "{size}");
    assert!(codes.is_sorted_by(|first, next| first.score >= next.score));
    for code in &codes {
        assert!((0.0..=1.0).contains(&code.score));
        if code.source == CodeSource::Header {
            assert!(
                (1..=1024).contains(&code.code.len()) && code.code.bytes().all(|b| b == b' ' || b.is_ascii_graphic())
            );
            assert!(code.origin.as_ref().is_none_or(|origin| origin.starts_with("http")), "{:?}", code.origin);
        } else {
            assert!(
                (4..=20).contains(&code.code.len())
                    && code.code.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            );
        }
        assert!(code.before.len() <= 80 && code.after.len() <= 80);
    }
    for defect in otp_token_defects(&mime) {
        assert!(defect.detail.len() <= 2048, "{}", defect.detail.len());
    }
    let result = unsubscribe(&mime);
    assert!(result.links.len() <= 50);
    assert!(!result.one_click || result.links.iter().any(|link| link.href[..5].eq_ignore_ascii_case("https")));
}

fn message(kind: &str, piece: &str, size: usize) -> String {
    format!("Content-Type: text/{kind}\r\n\r\n{}", piece.repeat(size / piece.len()))
}

#[test]
fn extracts_from_ten_megabytes_of_links_digits_and_tags() {
    read_all(message("html", "<a href=http://x/?code=482913><td>1<b>code 482913", 10 << 20));
    read_all(message("plain", "http://x/?code=482913 1 2 3 4 code 573104\n", 10 << 20));
}

#[test]
fn extracts_from_a_megabyte_of_one_token() {
    for piece in ["<a href=http://x>", "<b>", "<table><tr><td>1", "482913 ", "<!--", "<a href='/../a"] {
        read_all(message("html", piece, SIZE));
    }
    for piece in ["http://", "http://x.", "1 ", "-1", "code ", "K7QX-", "1\n"] {
        read_all(message("plain", piece, SIZE));
    }
}

#[test]
fn extracts_from_long_lines_of_words_and_numbers() {
    let words = "code order verify 482913 pin never share ".repeat(3000);
    let numbers = "4829 x 5731 y ".repeat(50);
    read_all(format!("Subject: {words}\r\n\r\n{words}\n{numbers}\n{words}\n{numbers}\n{numbers}"));
}

#[test]
fn limits_urls_of_header_fields() {
    let many = "<https://x/>, ".repeat(SIZE / 14);
    let nested = "(".repeat(SIZE);
    read_all(format!("List-Unsubscribe: {many}\r\nList-Help: {nested}\r\nList-Archive: {}\r\n\r\n", "<".repeat(SIZE)));
}

#[test]
fn limits_the_field_otp_token() {
    let field = "OTP-Token: \"482913\"; origin=\"https://x.test\"\r\n";
    read_all(format!("{}\r\n482913", field.repeat(SIZE / field.len())));
    for piece in ["1", "\\\"", "\"; origin=\"", ";a=\"", "\r\n ", "\u{e9}"] {
        read_all(format!("OTP-Token: \"{}\"\r\n\r\n482913", piece.repeat(SIZE / piece.len())));
    }
}

proptest! {
    #[test]
    fn never_panics(
        kind in prop::sample::select(vec!["plain", "html"]),
        subject in "(code |order |482913|[0-9A-Z -]{1,8}){0,6}",
        otp in "(OTP-Token: (\"482913\"|\"|; |origin=|https?://|localhost|x.test|\\[::1\\]|:[0-9]{1,6}|\\\\|[?:=*é\u{7f}]){0,12}\r\n){0,2}",
        body in "(<[a-z]{1,4}|<a href=|<base href=| style='font-size:[0-9.]{0,4}px'|>|</[a-z]{1,4}>|https?://|[a-z.]{1,8}\\?code=|code|Kod|コード|[0-9]{1,7}|[ \t\n:.,*#$€+()-]|[A-Z]{1,5}|\\PC){0,60}",
    ) {
        read_all(format!("Subject: {subject}\r\n{otp}Content-Type: text/{kind}; charset=utf-8\r\n\r\n{body}"));
    }
}
