//! The extensions that a server offers in its reply to EHLO, and the parameters of MAIL that depend on them.

use restante_mail::named_enum;

use super::client::Reply;
use crate::settings::Mechanism;

named_enum! {
    /// An extension that is used if it is offered.
    pub(super) enum Extension {
        StartTls = "STARTTLS",
        Pipelining = "PIPELINING",
        EightBitMime = "8BITMIME",
        SmtpUtf8 = "SMTPUTF8",
        Size = "SIZE",
    }
}

/// The offered extensions. A server that does not know EHLO offers none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SmtpExtensions {
    offered: Vec<Extension>,
    /// The maximum size of a message, if the server declares one.
    pub(super) max_size: Option<usize>,
    /// The mechanisms of AUTH that are supported here.
    pub(super) mechanisms: Vec<Mechanism>,
}

impl SmtpExtensions {
    pub(super) fn parse(reply: &Reply) -> Self {
        let mut extensions = Self::default();
        for line in reply.further_lines() {
            let mut words = line.split_ascii_whitespace();
            let keyword = words.next().unwrap_or_default();
            if keyword.eq_ignore_ascii_case("AUTH") {
                let offered = words.filter_map(|word| {
                    Mechanism::ALL.into_iter().find(|mechanism| mechanism.name().eq_ignore_ascii_case(word))
                });
                extensions.mechanisms.extend(offered);
                continue;
            }
            let mut all = Extension::ALL.into_iter();
            let Some(extension) = all.find(|extension| extension.name().eq_ignore_ascii_case(keyword)) else {
                continue;
            };
            extensions.offered.push(extension);
            if extension == Extension::Size {
                // Zero means that there is no fixed limit (RFC 1870 section 4).
                extensions.max_size = words.next().and_then(|size| size.parse().ok()).filter(|&size| size > 0);
            }
        }
        extensions
    }

    /// Returns whether the server offers an extension.
    pub(super) fn has(&self, extension: Extension) -> bool {
        self.offered.contains(&extension)
    }

    /// Returns the parameters of MAIL: the size (RFC 1870), and those for characters outside of ASCII (RFC 6152, RFC
    /// 6531).
    pub(super) fn mail_parameters(&self, data: &[u8], has_utf8_address: bool) -> String {
        let mut text = if self.has(Extension::Size) { format!(" SIZE={}", data.len()) } else { String::new() };
        let is_ascii = data.is_ascii();
        if !is_ascii && self.has(Extension::EightBitMime) {
            text.push_str(" BODY=8BITMIME");
        }
        let has_utf8_header = || !is_ascii && !header(data).is_ascii();
        if self.has(Extension::SmtpUtf8) && (has_utf8_address || has_utf8_header()) {
            text.push_str(" SMTPUTF8");
        }
        text
    }
}

/// Returns everything before the first empty line.
fn header(data: &[u8]) -> &[u8] {
    data.windows(4).position(|bytes| bytes == b"\r\n\r\n").map_or(data, |end| &data[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(lines: &[&str]) -> SmtpExtensions {
        let lines: Vec<String> = ["mx.test"].iter().chain(lines).map(|line| format!("250-{line}")).collect();
        SmtpExtensions::parse(&Reply { code: 250, lines: lines.join("\n") })
    }

    #[test]
    fn parses_extensions() {
        let auth = "AUTH LOGIN plain XOAUTH2 PLAIN-CLIENTTOKEN OAUTHBEARER SCRAM-SHA-512 CRAM-MD5";
        let extensions = parse(&["size 1000", "8BITMIME x", "SMTPUTF8", "starttls", "PIPELINING", "X-UNKNOWN y", auth]);
        for extension in Extension::ALL {
            assert!(extensions.has(extension), "{extension:?}");
        }
        let mechanisms = [Mechanism::Login, Mechanism::Plain, Mechanism::Xoauth2, Mechanism::CramMd5];
        assert_eq!((extensions.max_size, &extensions.mechanisms[..]), (Some(1000), &mechanisms[..]));
        for line in ["SIZE", "SIZE 0", "SIZE x", "SIZE 99999999999999999999"] {
            assert_eq!((parse(&[line]).has(Extension::Size), parse(&[line]).max_size), (true, None), "{line}");
        }
        assert_eq!(parse(&["", " ", "AUTHPLAIN", "PLAIN"]), SmtpExtensions::default());
    }

    #[test]
    fn uses_the_extensions_that_a_message_needs() {
        let all = parse(&["SIZE", "8BITMIME", "SMTPUTF8"]);
        let table = [
            ("A: b\r\n\r\nhi\r\n", false, " SIZE=12"),
            ("A: b\r\n\r\nhü\r\n", false, " SIZE=13 BODY=8BITMIME"),
            ("A: ü\r\n\r\nhi\r\n", false, " SIZE=13 BODY=8BITMIME SMTPUTF8"),
            ("A: ü", false, " SIZE=5 BODY=8BITMIME SMTPUTF8"),
            ("A: b\r\n\r\nhi\r\n", true, " SIZE=12 SMTPUTF8"),
        ];
        for (data, has_utf8_address, expected) in table {
            assert_eq!(all.mail_parameters(data.as_bytes(), has_utf8_address), expected, "{data}");
            assert_eq!(SmtpExtensions::default().mail_parameters(data.as_bytes(), has_utf8_address), "", "{data}");
        }
    }
}
