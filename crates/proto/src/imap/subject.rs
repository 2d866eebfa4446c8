//! The base subject (RFC 5256 section 2.1): the subject without the prefixes and suffixes of replies and forwards.

/// Returns the base subject of a decoded subject, and whether it is that of a reply or a forwarded message. The time is
/// linear.
pub(super) fn base_subject(subject: &str) -> (String, bool) {
    let normalized = subject.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut text = normalized.as_str();
    let mut is_reply = false;
    loop {
        // Step 2.
        text = text.trim_end();
        while let Some(rest) = strip_suffix_ignoring_case(text, "(fwd)") {
            is_reply = true;
            text = rest.trim_end();
        }
        // Steps 3 to 5.
        text = strip_leaders(text, &mut is_reply);
        // Step 6.
        let inner = strip_prefix_ignoring_case(text, "[fwd:").and_then(|inner| inner.strip_suffix(']'));
        match inner {
            Some(inner) => {
                is_reply = true;
                text = inner;
            }
            None => return (text.to_owned(), is_reply),
        }
    }
}

/// Removes `Re:`, `Fwd:` and blobs (`[list]`) at the start. The last blob stays if nothing follows it.
fn strip_leaders<'a>(mut text: &'a str, is_reply: &mut bool) -> &'a str {
    loop {
        text = text.trim_start();
        // The text after a run of blobs, and from the last of them on.
        let (mut rest, mut last) = (text, text);
        while let Some(after) = strip_blob(rest) {
            (last, rest) = (rest, after);
        }
        if let Some(after) = strip_reply_mark(rest) {
            *is_reply = true;
            text = after;
        } else if rest.is_empty() {
            return last;
        } else {
            return rest;
        }
    }
}

/// Removes `[text]` and the blanks after it.
fn strip_blob(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('[')?;
    let end = inner.find(['[', ']'])?;
    inner[end..].strip_prefix(']').map(str::trim_start)
}

/// Removes `Re:`, `Fw:` or `Fwd:`, which can have a blob before the colon.
fn strip_reply_mark(text: &str) -> Option<&str> {
    let rest = ["re", "fwd", "fw"].iter().find_map(|mark| strip_prefix_ignoring_case(text, mark))?.trim_start();
    strip_blob(rest).unwrap_or(rest).strip_prefix(':')
}

fn strip_prefix_ignoring_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

fn strip_suffix_ignoring_case<'a>(text: &'a str, suffix: &str) -> Option<&'a str> {
    let (rest, end) = text.split_at_checked(text.len().checked_sub(suffix.len())?)?;
    end.eq_ignore_ascii_case(suffix).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extracts_base_subjects() {
        let table = [
            ("", "", false),
            ("Hello", "Hello", false),
            ("  a \t b  ", "a b", false),
            ("Re: Hello", "Hello", true),
            ("RE : hello", "hello", true),
            ("Fwd: Fw: re: x", "x", true),
            ("Re[2]: x", "x", true),
            ("Re [2] : x", "x", true),
            ("Regarding: x", "Regarding: x", false),
            ("[list] Hello", "Hello", false),
            ("[list] Re: [list] Hello", "Hello", true),
            ("[a][b] [c] Re: x", "x", true),
            ("[list]", "[list]", false),
            ("[a] [b]", "[b]", false),
            ("[a [b] x", "[a [b] x", false),
            ("Hello (fwd)", "Hello", true),
            ("Hello (FWD)(fwd) ", "Hello", true),
            ("[Fwd: Hello]", "Hello", true),
            ("[fwd: Re: [Fwd: [x] Hello (fwd)]]", "Hello", true),
            ("[Fwd: Hello", "[Fwd: Hello", false),
            ("Re:", "", true),
            ("(fwd)", "", true),
            ("é: ñ", "é: ñ", false),
        ];
        for (subject, base, is_reply) in table {
            assert_eq!(base_subject(subject), (base.to_owned(), is_reply), "{subject}");
        }
        let many = "[a]".repeat(100_000);
        assert_eq!(base_subject(&many).0, "[a]");
        assert_eq!(base_subject(&("Re:".repeat(100_000) + &many)).0, "[a]");
        assert_eq!(base_subject(&("[fwd:".repeat(100_000) + "x" + &"]".repeat(100_000))).0, "x");
    }
}
