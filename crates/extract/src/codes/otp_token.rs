//! The header field OTP-Token (draft-goto-otp-token): `OTP-Token: "731946"; origin="https://example.com"`, and its defects. The
//! value is a structured field (RFC 8941): a string with parameters.

use std::net::{IpAddr, Ipv6Addr};

use restante_mail::mime::{Defect, Mime};

use super::{Code, CodeSource, lines};

/// The maximum length of the value. RFC 8941 section 3 leaves such limits to each field.
const MAX_VALUE_BYTES: usize = 1024;

/// Returns the code that the header of a message declares, or why it cannot be used. Returns `None` without the field. The
/// headers of parts do not count.
pub(super) fn header_code(mime: &Mime) -> Option<Result<Code, String>> {
    let mut fields = mime.header().iter().filter(|field| field.has_name("OTP-Token"));
    let field = fields.next()?;
    let others = fields.count();
    Some(if others > 0 {
        Err(format!(
            "The message has {} fields OTP-Token. Only one is permitted, so all of them are ignored.",
            others + 1
        ))
    } else if field.raw_value().len() > MAX_VALUE_BYTES {
        Err(format!("The field is longer than {MAX_VALUE_BYTES} bytes. It is ignored."))
    } else {
        parse(&field.value())
    })
}

/// Returns the defects of the header field OTP-Token: its syntax, and a code that the body does not contain.
pub fn otp_token_defects(mime: &Mime) -> Vec<Defect> {
    let defect = |name, detail: &str| Defect { name, detail: detail.to_owned(), severe: false };
    let code = match header_code(mime) {
        None => return Vec::new(),
        Some(Err(detail)) => return vec![defect(Defect::OTP_TOKEN, &detail)],
        Some(Ok(code)) => code,
    };
    let mut defects = Vec::new();
    if code.origin.is_none() {
        let detail = "The field has no origin. Its code is used here, but other receivers ignore the field.";
        defects.push(defect(Defect::OTP_TOKEN, detail));
    }
    let (wanted, text) = (without_separators(&code.code), mime.text_body());
    let lines = [lines::from_text(text.as_deref().unwrap_or_default()), lines::from_html(&mime.html())];
    if !lines.iter().flatten().any(|line| without_separators(&line.text).contains(&wanted)) {
        let detail = "Neither the text nor the HTML contains the code of the field OTP-Token.";
        defects.push(defect(Defect::OTP_TOKEN_TEXT, detail));
    }
    defects
}

/// Returns a code or a line without spaces and dashes, so that `123 456` is the same code as `123456`.
pub(super) fn without_separators(text: &str) -> String {
    text.chars().filter(|&c| !c.is_whitespace() && c != '-').collect()
}

fn parse(value: &str) -> Result<Code, String> {
    let (code, origin) = parse_item(value).filter(|(code, _)| !code.is_empty()).ok_or(
        "The field is ignored. It must contain a code in double quotes and its origin: \"731946\"; \
         origin=\"https://example.com\".",
    )?;
    match origin {
        Some(origin) if !is_origin(&origin) => Err(format!(
            "The field is ignored, because its origin is \"{origin}\". Accepted are https, and http for a loopback host, in \
             lower case and without a path: \"https://example.com\"."
        )),
        origin => {
            let (before, after) = Default::default();
            Ok(Code { code, score: 1.0, before, after, source: CodeSource::Header, origin })
        }
    }
}

/// Parses an item that is a string (RFC 8941 section 3.3). Returns the string and its parameter `origin`. Other parameters
/// are ignored, but must be valid.
fn parse_item(value: &str) -> Option<(String, Option<String>)> {
    let (text, mut rest) = parse_string(value)?;
    let mut origin = None;
    while let Some(parameter) = rest.strip_prefix(';') {
        let parameter = parameter.trim_start_matches(' ');
        let is_key_char = |c| matches!(c, 'a'..='z' | '0'..='9' | '_' | '-' | '.' | '*');
        let rest_of_key = parameter.trim_start_matches(is_key_char);
        let key = &parameter[..parameter.len() - rest_of_key.len()];
        key.strip_prefix(|c: char| c.is_ascii_lowercase() || c == '*')?;
        rest = match rest_of_key.strip_prefix('=') {
            Some(value) if key == "origin" => {
                let (value, rest) = parse_string(value)?;
                origin = Some(value);
                rest
            }
            Some(value) if value.starts_with('"') => parse_string(value)?.1,
            Some(value) => skip_bare_item(value)?,
            // A parameter without a value is the boolean true.
            None if key == "origin" => return None,
            None => rest_of_key,
        };
    }
    rest.is_empty().then_some((text, origin))
}

/// Parses a string (RFC 8941 section 3.3.3). Returns its content and the text after it.
fn parse_string(text: &str) -> Option<(String, &str)> {
    let mut content = String::new();
    let mut chars = text.strip_prefix('"')?.chars();
    loop {
        match chars.next()? {
            '"' => return Some((content, chars.as_str())),
            '\\' => content.push(chars.next().filter(|c| matches!(c, '"' | '\\'))?),
            c @ ' '..='~' => content.push(c),
            _ => return None,
        }
    }
}

/// Returns the text after a value that is not a string: a boolean, a byte sequence, a token or a number.
fn skip_bare_item(text: &str) -> Option<&str> {
    let (item, rest) = text.split_at(text.find(';').unwrap_or(text.len()));
    let is_number = |number: &str, max_len: usize| {
        (1..=max_len).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit())
    };
    let is_valid = match item.as_bytes() {
        [b'?', b'0' | b'1'] => true,
        [b':', base64 @ .., b':'] => base64.iter().all(|&b| b.is_ascii_alphanumeric() || b"+/=".contains(&b)),
        [b'a'..=b'z' | b'A'..=b'Z' | b'*', token @ ..] => {
            token.iter().all(|&b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&b))
        }
        _ => {
            let number = item.strip_prefix('-').unwrap_or(item);
            let decimal = number.split_once('.');
            decimal.map_or(is_number(number, 15), |(whole, part)| is_number(whole, 12) && is_number(part, 3))
        }
    };
    is_valid.then_some(rest)
}

/// Returns whether a text is an origin (RFC 6454 section 6.2) with https, or with http and a loopback host.
fn is_origin(text: &str) -> bool {
    let Some((scheme, authority)) = text.split_once("://") else { return false };
    let host_end = authority.find(']').map(|at| at + 1).or_else(|| authority.find(':')).unwrap_or(authority.len());
    let (host, port) = authority.split_at(host_end);
    let ipv6 = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')?.parse::<Ipv6Addr>().ok());
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(&b))
    };
    let is_host = ipv6.is_some() && !host.contains(char::is_uppercase) || host.split('.').all(is_label);
    let is_loopback = host == "localhost"
        || host.ends_with(".localhost")
        || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let default_port = match scheme {
        "https" => 443,
        "http" if is_loopback => 80,
        _ => return false,
    };
    let is_port = |port: &str| {
        port.parse::<u16>().is_ok_and(|number| number != 0 && number != default_port && number.to_string() == port)
    };
    is_host && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn header(lines: &str) -> Option<Result<Code, String>> {
        header_code(&Mime::parse(Bytes::from(format!("Subject: x\r\n{lines}\r\n\r\nbody"))))
    }

    #[test]
    fn reads_code_and_origin() {
        const EXAMPLE: Option<&str> = Some("https://example.com");
        let table: &[(&str, &str, Option<&str>)] = &[
            (r#"OTP-Token: "731946"; origin="https://example.com""#, "731946", EXAMPLE),
            (r#"otp-token:"731946";origin="https://example.com""#, "731946", EXAMPLE),
            ("OTP-Token:\r\n \"731946\";\r\n\torigin=\"https://example.com\" ", "731946", EXAMPLE),
            (r#"OTP-Token: "a\"b\\c d"; origin="https://example.com""#, r#"a"b\c d"#, EXAMPLE),
            (r#"OTP-Token: "1"; origin="https://a.test"; origin="https://example.com""#, "1", EXAMPLE),
            (
                r#"OTP-Token: "1"; a; b=?1; c=:aGk=:; d=to:k/en; e=-12.5; f="x;y"; origin="https://example.com""#,
                "1",
                EXAMPLE,
            ),
            (
                r#"OTP-Token: "1"; origin="https://example.com:8443"; x=123456789012345"#,
                "1",
                Some("https://example.com:8443"),
            ),
            (r#"OTP-Token: "1"; origin="https://xn--bcher-kva.test""#, "1", Some("https://xn--bcher-kva.test")),
            (r#"OTP-Token: "1"; origin="https://[2001:db8::1]:444""#, "1", Some("https://[2001:db8::1]:444")),
            (r#"OTP-Token: "1"; origin="http://localhost:3000""#, "1", Some("http://localhost:3000")),
            (r#"OTP-Token: "1"; origin="http://shop.localhost""#, "1", Some("http://shop.localhost")),
            (r#"OTP-Token: "1"; origin="http://127.0.0.2""#, "1", Some("http://127.0.0.2")),
            (r#"OTP-Token: "1"; origin="http://[::1]:8080""#, "1", Some("http://[::1]:8080")),
            (r#"OTP-Token: "731946""#, "731946", None),
        ];
        for (lines, code, origin) in table {
            let found = header(lines).expect("a field").unwrap_or_else(|detail| panic!("{lines}: {detail}"));
            assert_eq!((found.code.as_str(), found.origin.as_deref()), (*code, *origin), "{lines}");
            assert_eq!((found.score, found.source), (1.0, CodeSource::Header));
        }
        assert_eq!(header("X-OTP-Token: \"1\""), None);
    }

    #[test]
    fn ignores_malformed_fields() {
        const SYNTAX: &str = "code in double quotes";
        let values = [
            ("", SYNTAX),
            ("731946", SYNTAX),
            ("'731946'", SYNTAX),
            ("\"\"", SYNTAX),
            ("\"731946", SYNTAX),
            ("\"731946\\", SYNTAX),
            ("\"7\\3\"", SYNTAX),
            ("\"7\t3\"", SYNTAX),
            ("\"7\u{7f}3\"", SYNTAX),
            ("\"7\r3\"", SYNTAX),
            ("\"7\x003\"", SYNTAX),
            ("\"731946\u{e9}\"", SYNTAX),
            ("=?utf-8?q?=22731946=22?=", SYNTAX),
            ("\"731946\", \"731947\"", SYNTAX),
            ("\"731946\" ; origin=\"https://x\"", SYNTAX),
            ("\"731946\"; Origin=\"https://x\"", SYNTAX),
            ("\"731946\"; origin", SYNTAX),
            ("\"731946\"; origin=https://x", SYNTAX),
            ("\"731946\"; origin=\"https://x\";", SYNTAX),
            ("\"731946\"; origin=\"https://x\"; b=", SYNTAX),
            ("\"731946\"; b=1234567890123456; origin=\"https://x\"", SYNTAX),
            ("\"731946\"; b=1.2345; origin=\"https://x\"", SYNTAX),
            ("\"731946\"; b=?2; origin=\"https://x\"", SYNTAX),
            ("\"731946\"; b=:a b:; origin=\"https://x\"", SYNTAX),
            ("\"731946\"; origin=\"javascript:alert(1)\"", "is \"javascript:alert(1)\""),
            ("\"731946\"; origin=\"javascript://example.com\"", "is \"javascript:"),
            ("\"731946\"; origin=\"\"", "is \"\""),
            ("\"731946\"; origin=\"https://\"", "is \"https://\""),
            ("\"731946\"; origin=\"example.com\"", "is \"example.com\""),
            ("\"731946\"; origin=\"http://example.com\"", "is \"http:"),
            ("\"731946\"; origin=\"http://localhost.example.com\"", "is \"http:"),
            ("\"731946\"; origin=\"http://127.0.0.1.example.com\"", "is \"http:"),
            ("\"731946\"; origin=\"http://[::1].example.com\"", "is \"http:"),
            ("\"731946\"; origin=\"http://[127.0.0.1]\"", "is \"http:"),
            ("\"731946\"; origin=\"http://::1\"", "is \"http:"),
            ("\"731946\"; origin=\"http://127.0.0.1]\"", "is \"http:"),
            ("\"731946\"; origin=\"https://example.com/\"", "is \"https:"),
            ("\"731946\"; origin=\"https://example.com?a\"", "is \"https:"),
            ("\"731946\"; origin=\"https://user@example.com\"", "is \"https:"),
            ("\"731946\"; origin=\"https://a\\\"><b\"", "is \"https:"),
            ("\"731946\"; origin=\"https://Example.com\"", "is \"https:"),
            ("\"731946\"; origin=\"https://example..com\"", "is \"https:"),
            ("\"731946\"; origin=\"https://example.com:443\"", "is \"https:"),
            ("\"731946\"; origin=\"https://example.com:\"", "is \"https:"),
            ("\"731946\"; origin=\"https://example.com:070\"", "is \"https:"),
            ("\"731946\"; origin=\"https://example.com:65536\"", "is \"https:"),
            ("\"731946\"; origin=\"https://[::1]x\"", "is \"https:"),
            ("\"731946\"; origin=\"https://[x]\"", "is \"https:"),
        ];
        for (value, expected) in values {
            let detail = header(&format!("OTP-Token: {value}")).expect("a field").expect_err(value);
            assert!(detail.contains(expected), "{value:?}: {detail}");
        }
        let several = header("OTP-Token: \"1\"\r\nX: y\r\notp-token: \"1\"").expect("fields").expect_err("two fields");
        assert!(several.contains("2 fields"), "{several}");
        let long =
            header(&format!("OTP-Token: \"{}\"", "1".repeat(100_000))).expect("a field").expect_err("a long value");
        assert!(long.contains("longer than 1024 bytes"), "{long}");
    }

    const FIELD: &str = "OTP-Token: \"731946\"; origin=\"https://example.com\"";

    #[test]
    fn code_of_the_header_is_first_and_not_repeated() {
        const TEXT: &str = "Your code is";
        let table: &[(String, &[(&str, CodeSource)])] = &[
            (format!("{FIELD}\r\n\r\n{TEXT} 731946."), &[("731946", CodeSource::Header)]),
            (format!("{FIELD}\r\n\r\n{TEXT} 731 946."), &[("731946", CodeSource::Header)]),
            (
                format!("OTP-Token: \"WDJB-MJHT\"; origin=\"https://x\"\r\n\r\n{TEXT} WDJB-MJHT."),
                &[("WDJB-MJHT", CodeSource::Header)],
            ),
            (format!("{FIELD}\r\n\r\n{TEXT} 482913."), &[("731946", CodeSource::Header), ("482913", CodeSource::Text)]),
            (format!("{FIELD}x\r\n\r\n{TEXT} 731946."), &[("731946", CodeSource::Text)]),
            (format!("{FIELD}\r\n{FIELD}\r\n\r\n{TEXT} 731946."), &[("731946", CodeSource::Text)]),
            (format!("Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n{FIELD}\r\n\r\nHello"), &[]),
            (format!("Content-Type: message/rfc822\r\n\r\n{FIELD}\r\n\r\nHello"), &[]),
        ];
        for (source, expected) in table {
            let found = super::super::codes(&Mime::parse(Bytes::from(source.clone())));
            let found: Vec<_> = found.iter().map(|code| (code.code.as_str(), code.source)).collect();
            assert_eq!(found, *expected, "{source}");
        }
    }

    #[test]
    fn reports_defects() {
        let table: &[(&str, &str, &[&str])] = &[
            ("Subject: 731946", "Your code is 731946.", &[]),
            (FIELD, "Your code is 731946.", &[]),
            (FIELD, "Your code is 731 946.", &[]),
            (FIELD, "Your code is 731-946.", &[]),
            (FIELD, "\u{667}\u{663}\u{661}\u{669}\u{664}\u{666}", &[]),
            (FIELD, "Your code is 731947.", &[Defect::OTP_TOKEN_TEXT]),
            (FIELD, "", &[Defect::OTP_TOKEN_TEXT]),
            ("OTP-Token: \"731946\"", "731946", &[Defect::OTP_TOKEN]),
            ("OTP-Token: \"731946\"", "none", &[Defect::OTP_TOKEN, Defect::OTP_TOKEN_TEXT]),
            ("OTP-Token: 731946", "none", &[Defect::OTP_TOKEN]),
        ];
        for (header, body, expected) in table {
            for (kind, body) in [("plain", (*body).to_owned()), ("html", format!("<td>{}", body.replace(' ', "<td>")))]
            {
                let content_type = format!("Content-Type: text/{kind}; charset=utf-8");
                let mime = Mime::parse(Bytes::from(format!("{header}\r\n{content_type}\r\n\r\n{body}")));
                let names: Vec<_> = otp_token_defects(&mime).iter().map(|defect| defect.name).collect();
                assert_eq!(names, *expected, "{header} {kind} {body}");
            }
        }
    }
}
