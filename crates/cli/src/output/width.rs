//! The number of terminal cells that a text takes, and cutting a text to a number of cells.

use std::ops::RangeInclusive;

use unicode_width::UnicodeWidthChar as _;

/// Skin tones, which change the character before them and take no cell of their own. The width table of Unicode counts them as
/// characters.
const SKIN_TONES: RangeInclusive<char> = '\u{1f3fb}'..='\u{1f3ff}';

/// The cells of a text.
pub(crate) fn display_width(text: &str) -> usize {
    text.chars().map(cell_width).sum()
}

/// The beginning of a text that fits into so many cells; where something is cut off, an ellipsis says so.
pub(crate) fn truncate(text: &str, most: usize) -> String {
    if display_width(text) <= most {
        return text.to_owned();
    }
    let mut left = most.saturating_sub(1);
    let kept = text.chars().take_while(|c| {
        let fits = cell_width(*c) <= left;
        left = left.saturating_sub(cell_width(*c));
        fits
    });
    let mut kept: String = kept.collect();
    if most > 0 {
        kept.push('…');
    }
    kept
}

fn cell_width(c: char) -> usize {
    if SKIN_TONES.contains(&c) { 0 } else { c.width().unwrap_or(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths() {
        let table = [
            ("", 0),
            ("abc", 3),
            ("Grüße", 5),
            ("u\u{308}", 1),
            ("日本語", 6),
            ("ｆｕｌｌ", 8),
            ("한글", 4),
            ("👍🏽", 2),
            ("❤\u{fe0f}", 1),
            ("a\u{200d}b", 2),
        ];
        for (text, expected) in table {
            assert_eq!(display_width(text), expected, "{text}");
        }
    }

    #[test]
    fn cuts() {
        let table = [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("日本語", 6, "日本語"),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日…"),
            ("abc", 1, "…"),
            ("abc", 0, ""),
        ];
        for (text, most, expected) in table {
            assert_eq!(truncate(text, most), expected, "{text} {most}");
        }
    }
}
