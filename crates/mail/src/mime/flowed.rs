//! Decoding of format=flowed (RFC 3676): joins lines that the sender broke softly.

use super::part::Flowed;

/// Joins the softly broken lines of a text with LF line ends.
pub(super) fn unflow(text: &str, flowed: Flowed) -> String {
    let mut output = String::with_capacity(text.len());
    let mut paragraph: Option<usize> = None;
    for line in text.split_inclusive('\n') {
        let (line, end) = match line.strip_suffix('\n') {
            Some(line) => (line, "\n"),
            None => (line, ""),
        };
        let content = line.trim_start_matches('>');
        let quotes = line.len() - content.len();
        // Section 4.4: a space at the start of a line was added by the sender (space-stuffing).
        let content = content.strip_prefix(' ').unwrap_or(content);
        // Section 4.3: the signature separator ends in a space, but is a fixed line.
        let signature = content == "-- ";
        // Section 4.5: a paragraph does not continue at another quote depth, so this was a hard line break.
        if paragraph.is_some_and(|open| open != quotes || signature) {
            output.push('\n');
            paragraph = None;
        }
        if paragraph.is_none() && quotes > 0 {
            output.extend(std::iter::repeat_n('>', quotes));
            output.push(' ');
        }
        let soft = content.ends_with(' ') && !signature;
        let text_of_line = if soft && flowed.delete_space { &content[..content.len() - 1] } else { content };
        output.push_str(text_of_line);
        paragraph = soft.then_some(quotes);
        if !soft {
            output.push_str(end);
        }
    }
    if paragraph.is_some() && text.ends_with('\n') {
        output.push('\n');
    }
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_paragraphs_but_not_quotes_and_signatures() {
        let table = [
            ("one \ntwo\nthree\n", false, "one two\nthree\n"),
            ("one \ntwo", false, "one two"),
            ("日本 \n語\n", true, "日本語\n"),
            (" From stuffed\n  two blanks\n", false, "From stuffed\n two blanks\n"),
            ("> quoted \n> on\nreply\n", false, "> quoted on\nreply\n"),
            (">> deep \n> less\n", false, ">> deep \n> less\n"),
            ("> quoted \nreply\n", false, "> quoted \nreply\n"),
            ("text \n-- \nJane\n", false, "text \n-- \nJane\n"),
            ("\n\nempty lines\n\n", false, "\n\nempty lines\n\n"),
            ("ends softly \n", false, "ends softly \n"),
            ("", false, ""),
        ];
        for (text, delete_space, joined) in table {
            assert_eq!(unflow(text, Flowed { delete_space }), joined, "{text:?}");
        }
    }
}
