//! Resolution of HTML character references (HTML Standard, section 13.2.5.72 and following), with and without the final
//! semicolon.

use web_atoms::NAMED_ENTITIES;

/// The length of the longest name that is valid without a semicolon.
const MAX_NAME_BYTES: usize = 6;

/// The context of a reference. In an attribute, `&copy=1` is more likely a part of a URL than the copyright sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceContext {
    /// Between tags.
    Text,
    /// In the value of an attribute.
    Attribute,
}

/// Resolves all references. Non-breaking spaces become spaces.
pub fn resolve(raw: &str, context: ReferenceContext) -> String {
    resolve_keeping_nbsp(raw, context).replace('\u{a0}', " ")
}

/// Resolves all references. Non-breaking spaces are kept.
pub(super) fn resolve_keeping_nbsp(raw: &str, context: ReferenceContext) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('&') {
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let (first, second, len) = parse_reference(rest, context).unwrap_or(('&', None, 0));
        text.push(first);
        text.extend(second);
        rest = &rest[len..];
    }
    text.push_str(rest);
    text
}

/// Parses the reference after `&`. Returns its one or two characters and the number of bytes that it takes after the `&`.
fn parse_reference(text: &str, context: ReferenceContext) -> Option<(char, Option<char>, usize)> {
    if let Some(number) = text.strip_prefix('#') {
        let (digits, radix) = match number.strip_prefix(['x', 'X']) {
            Some(digits) => (digits, 16),
            None => (number, 10),
        };
        let prefix = text.len() - digits.len();
        let len = prefix_len(digits, |b| char::from(b).is_digit(radix));
        let c = char_from_code(u32::from_str_radix(&digits[..len], radix).ok()?)?;
        return Some((c, None, prefix + len + usize::from(digits[len..].starts_with(';'))));
    }
    let len = prefix_len(text, |b| b.is_ascii_alphanumeric());
    if text[len..].starts_with(';')
        && let Some(found) = find_name(text, len + 1)
    {
        return Some(found);
    }
    let without_semicolon = |len: &usize| match context {
        ReferenceContext::Text => true,
        ReferenceContext::Attribute => !text[*len..].starts_with(|c: char| c == '=' || c.is_ascii_alphanumeric()),
    };
    (1..=len.min(MAX_NAME_BYTES)).rev().filter(without_semicolon).find_map(|len| find_name(text, len))
}

/// Returns the characters of the name in the first `len` bytes, which include the semicolon, and `len`.
fn find_name(text: &str, len: usize) -> Option<(char, Option<char>, usize)> {
    // The table also has the beginnings of names, with the codes 0. A name for one character has 0 as its second code.
    let &(first, second) = NAMED_ENTITIES.get(&text[..len]).filter(|(first, _)| *first != 0)?;
    Some((char::from_u32(first)?, char::from_u32(second).filter(|&c| c != '\0'), len))
}

/// Returns the number of bytes at the start of the text that satisfy the predicate.
fn prefix_len(text: &str, kind: impl Fn(u8) -> bool) -> usize {
    text.bytes().take_while(|&b| kind(b)).count()
}

/// Returns the character of a numeric reference. As in browsers, C1 control codes are interpreted as Windows-1252.
fn char_from_code(code: u32) -> Option<char> {
    if let Ok(byte @ 0x80..=0x9f) = u8::try_from(code) {
        return encoding_rs::WINDOWS_1252.decode_without_bom_handling(&[byte]).0.chars().next();
    }
    char::from_u32(code).filter(|&c| c != '\0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolves_references_in_text() {
        let table = [
            ("caf&eacute; &#233; &#xe9;&#XE9;&nbsp;&euro; &lt;b&gt; &amp;amp;", "café é éé € <b> &amp;"),
            ("it&#146;s 1&#150;2 &#128; &#x99;", "it’s 1–2 € ™"),
            ("a&nbsp b &lt&gt &amp &quot &copy 2026 &copy2026 &#233 &#xe9.", "a  b <> & \" © 2026 ©2026 é é."),
            ("&notit; &notin; &ampamp;", "¬it; ∉ &amp;"),
            ("&euro &apos &mdash &alpha", "&euro &apos &mdash &alpha"),
            ("&check;&apos;&NotEqualTilde; &Copy &COPY", "✓'≂\u{338} &Copy ©"),
            ("&nosuch; &; & &#0; &#1114112; &#x; &#; &x", "&nosuch; &; & &#0; &#1114112; &#x; &#; &x"),
            ("&veryverylongname; &#00000000000233; &#99999999999;", "&veryverylongname; é &#99999999999;"),
            ("&é; &#é;", "&é; &#é;"),
        ];
        for (raw, text) in table {
            assert_eq!(resolve(raw, ReferenceContext::Text), text, "{raw}");
        }
    }

    #[test]
    fn resolves_references_in_attributes() {
        let table = [
            ("?a=1&amp;b=2", "?a=1&b=2"),
            ("?a=1&copy=2&lt=3&regs=4&amp=5", "?a=1&copy=2&lt=3&regs=4&amp=5"),
            ("?a=1&copy", "?a=1©"),
        ];
        for (raw, text) in table {
            assert_eq!(resolve(raw, ReferenceContext::Attribute), text, "{raw}");
        }
    }
}
