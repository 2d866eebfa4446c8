//! The width of texts in terminal cells.

use std::ops::RangeInclusive;

use unicode_width::UnicodeWidthChar as _;

/// Skin tones. They modify the preceding character and occupy no cell, but the width table of Unicode counts them.
const SKIN_TONES: RangeInclusive<char> = '\u{1f3fb}'..='\u{1f3ff}';

/// Returns the width of a text in cells.
pub(crate) fn display_width(text: &str) -> usize {
    text.chars().map(cell_width).sum()
}

/// Truncates a text to a number of cells. A truncated text ends with an ellipsis.
pub(crate) fn truncate(text: &str, max_cells: usize) -> String {
    if display_width(text) <= max_cells {
        return text.to_owned();
    }
    let mut cells_left = max_cells.saturating_sub(1);
    let kept = text.chars().take_while(|c| {
        let fits = cell_width(*c) <= cells_left;
        cells_left = cells_left.saturating_sub(cell_width(*c));
        fits
    });
    let mut kept: String = kept.collect();
    if max_cells > 0 {
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
    fn measures_width() {
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
    fn truncates_to_cells() {
        let table = [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("日本語", 6, "日本語"),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日…"),
            ("abc", 1, "…"),
            ("abc", 0, ""),
        ];
        for (text, max_cells, expected) in table {
            assert_eq!(truncate(text, max_cells), expected, "{text} {max_cells}");
        }
    }
}
