//! Sizes in a query.

/// Parses a number of bytes: `500`, `10k`, `2M`, `1GB`. Units are powers of 1024.
pub(super) fn parse(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1 << 10,
        "m" | "mb" => 1 << 20,
        "g" | "gb" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_sizes() {
        let table = [
            ("0", Some(0)),
            ("500", Some(500)),
            ("10k", Some(10 << 10)),
            ("2M", Some(2 << 20)),
            ("1GB", Some(1 << 30)),
            ("7b", Some(7)),
            ("", None),
            ("k", None),
            ("-1", None),
            ("1.5M", None),
            ("1x", None),
            ("99999999999G", None),
        ];
        for (text, expected) in table {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
