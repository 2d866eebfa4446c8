//! How many cells of a terminal a text takes: none for marks that stand on the character before them, two for East Asian
//! and pictographic characters, otherwise one. Blocks, not single characters: a table that is off by a cell is no harm.

/// Characters that take no cell: combining marks, joiners, selectors of variations.
const NONE: &[(u32, u32)] = &[
    (0x0300, 0x036F),
    (0x0483, 0x0489),
    (0x0591, 0x05BD),
    (0x0610, 0x061A),
    (0x064B, 0x065F),
    (0x06D6, 0x06DC),
    (0x093C, 0x093C),
    (0x0941, 0x0948),
    (0x0E31, 0x0E31),
    (0x0E34, 0x0E3A),
    (0x0E47, 0x0E4E),
    (0x1AB0, 0x1AFF),
    (0x1DC0, 0x1DFF),
    (0x200B, 0x200F),
    (0x2060, 0x2064),
    (0x20D0, 0x20FF),
    (0x302A, 0x302D),
    (0x3099, 0x309A),
    (0xFE00, 0xFE0F),
    (0xFE20, 0xFE2F),
    (0xFEFF, 0xFEFF),
    (0x1F3FB, 0x1F3FF),
    (0xE0001, 0xE01EF),
];

/// Characters that take two cells (Unicode Standard Annex #11, wide and full width).
const TWO: &[(u32, u32)] = &[
    (0x1100, 0x115F),
    (0x231A, 0x231B),
    (0x2329, 0x232A),
    (0x23E9, 0x23EC),
    (0x2614, 0x2615),
    (0x2648, 0x2653),
    (0x26A1, 0x26A1),
    (0x2705, 0x2705),
    (0x270A, 0x270B),
    (0x2728, 0x2728),
    (0x274C, 0x274C),
    (0x2753, 0x2757),
    (0x2795, 0x2797),
    (0x2B1B, 0x2B1C),
    (0x2B50, 0x2B55),
    (0x2E80, 0x303E),
    (0x3041, 0x33FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xA000, 0xA4CF),
    (0xA960, 0xA97F),
    (0xAC00, 0xD7A3),
    (0xF900, 0xFAFF),
    (0xFE30, 0xFE6F),
    (0xFF00, 0xFF60),
    (0xFFE0, 0xFFE6),
    (0x16FE0, 0x18DFF),
    (0x1B000, 0x1B2FF),
    (0x1F004, 0x1F004),
    (0x1F0CF, 0x1F0CF),
    (0x1F18E, 0x1F19A),
    (0x1F1E6, 0x1F265),
    (0x1F300, 0x1F64F),
    (0x1F680, 0x1F6FF),
    (0x1F7E0, 0x1F7EB),
    (0x1F900, 0x1FAFF),
    (0x20000, 0x3FFFD),
];

/// The cells of a text.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(cells).sum()
}

/// The beginning of a text that fits into so many cells; where something is cut off, an ellipsis says so.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let mut left = most.saturating_sub(1);
    let kept = text.chars().take_while(|c| {
        let fits = cells(*c) <= left;
        left = left.saturating_sub(cells(*c));
        fits
    });
    let mut kept: String = kept.collect();
    if most > 0 {
        kept.push('…');
    }
    kept
}

fn cells(c: char) -> usize {
    let within = |blocks: &[(u32, u32)]| {
        let behind = blocks.partition_point(|(first, _)| *first <= u32::from(c));
        behind.checked_sub(1).and_then(|at| blocks.get(at)).is_some_and(|(_, last)| u32::from(c) <= *last)
    };
    if c.is_ascii() {
        1
    } else if within(NONE) {
        0
    } else if within(TWO) {
        2
    } else {
        1
    }
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
            assert_eq!(width(text), expected, "{text}");
        }
        for blocks in [NONE, TWO] {
            assert!(blocks.is_sorted_by(|one, next| one.0 <= one.1 && one.1 < next.0), "they are searched by halves");
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
            assert_eq!(cut(text, most), expected, "{text} {most}");
        }
    }
}
