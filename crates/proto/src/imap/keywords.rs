//! Keywords of IMAP are the tags of a message.
//!
//! A keyword is an atom. Characters of a tag that cannot be in an atom, and `&`, are encoded as in modified UTF-7: the tag
//! `run 7` is the keyword `run&ACA-7`. A character of a keyword that cannot be in a tag is written as `$`, its code point in
//! hexadecimal digits and `$`: the keyword `a+b` is the tag `a$2B$b`. `$Forwarded` and all other usual keywords are tags as
//! they are.

use std::fmt::Write as _;

use restante_mail::tags;

use super::utf7;

/// Returns the keyword of a tag.
pub(super) fn keyword_of_tag(tag: &str) -> String {
    let mut text = String::with_capacity(tag.len());
    let mut rest = tag;
    while let Some((before, after)) = rest.split_once('$') {
        text.push_str(before);
        if let Some((c, after)) = split_escape(after) {
            text.push(c);
            rest = after;
        } else {
            text.push('$');
            rest = after;
        }
    }
    text.push_str(rest);
    utf7::encode_except(&text, |c| u8::try_from(c).is_ok_and(is_atom_char))
}

/// Returns the tag of a keyword. It has only characters of tags, but it can be blank or too long.
pub(super) fn tag_of_keyword(keyword: &str) -> String {
    let text = utf7::decode(keyword).unwrap_or_else(|| keyword.to_owned());
    let mut tag = String::with_capacity(text.len());
    for c in text.chars() {
        if tags::is_allowed(c) {
            tag.push(c);
        } else {
            // Writing to a string never fails.
            let _ = write!(tag, "${:02X}$", u32::from(c));
        }
    }
    tag
}

/// Splits off the rest of an escape after its first `$`. Only what [`tag_of_keyword`] writes is an escape.
fn split_escape(text: &str) -> Option<(char, &str)> {
    let end = text.bytes().take(7).position(|byte| byte == b'$')?;
    let (digits, after) = (text.get(..end)?, text.get(end + 1..)?);
    let c = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
    (!tags::is_allowed(c) && format!("{:02X}", u32::from(c)) == digits).then_some((c, after))
}

/// Returns whether a byte can be in an atom (RFC 3501 section 9).
pub(super) fn is_atom_char(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"(){%*\"\\]".contains(&byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tags_are_keywords() {
        let table = [
            ("Billing", "Billing"),
            ("$Forwarded", "$Forwarded"),
            ("$MDNSent", "$MDNSent"),
            ("NonJunk", "NonJunk"),
            ("$label1", "$label1"),
            ("run 7", "run&ACA-7"),
            ("Größe", "Gr&APYA3w-e"),
            ("版本", "&ckhnLA-"),
            ("a@b.c-d_e", "a@b.c-d_e"),
            ("a$2B$b", "a+b"),
            ("$5B$Gmail$2F$x", "[Gmail/x"),
            ("$26$", "&-"),
            ("$1F600$", "&2D3eAA-"),
            ("$0A$", "&AAo-"),
            ("$2B$2B$", "+2B$"),
            // No escapes.
            ("$2b$", "$2b$"),
            ("$41$", "$41$"),
            ("$24$", "$24$"),
            ("$002B$", "$002B$"),
            ("$+2B$", "$+2B$"),
            ("$$", "$$"),
            ("$D800$", "$D800$"),
        ];
        for (tag, keyword) in table {
            assert_eq!(keyword_of_tag(tag), keyword);
            if tag != "$+2B$" {
                assert_eq!(tag_of_keyword(keyword), tag);
            }
        }
        assert_eq!(tag_of_keyword("R&D"), "R$26$D", "invalid UTF-7 is a text");
    }

    proptest! {
        #[test]
        fn every_tag_has_a_keyword(tag in "[$A-F0-9a-z @._é版-]{0,64}") {
            let keyword = keyword_of_tag(&tag);
            prop_assert!(keyword.bytes().all(is_atom_char));
            prop_assert_eq!(tag_of_keyword(&keyword), tag);
        }

        #[test]
        fn every_keyword_has_a_tag(keyword in "[!-~]{1,30}", tag in any::<String>()) {
            let first = tag_of_keyword(&keyword);
            prop_assert!(first.chars().all(tags::is_allowed));
            prop_assert_eq!(tag_of_keyword(&keyword_of_tag(&first)), first);
            prop_assert!(keyword_of_tag(&tag).bytes().all(is_atom_char));
        }
    }
}
