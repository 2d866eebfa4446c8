//! Decoding of UTF-32, which the WHATWG Encoding Standard omits.

/// The byte order of a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Big,
    Little,
}

/// Returns the byte order of a byte order mark at the start.
pub(super) fn bom_byte_order(bytes: &[u8]) -> Option<ByteOrder> {
    match bytes {
        [0, 0, 0xfe, 0xff, ..] => Some(ByteOrder::Big),
        [0xff, 0xfe, 0, 0, ..] if bytes.len().is_multiple_of(4) => Some(ByteOrder::Little),
        _ => None,
    }
}

/// Decodes the text without its byte order mark. Also returns whether some of it is invalid. A mark overrides `order`.
pub(super) fn decode(bytes: &[u8], order: ByteOrder) -> (String, bool) {
    let order = bom_byte_order(bytes).unwrap_or(order);
    let units = bytes.chunks(4).map(|unit| {
        let unit = unit.try_into().unwrap_or([0xff; 4]);
        match order {
            ByteOrder::Big => u32::from_be_bytes(unit),
            ByteOrder::Little => u32::from_le_bytes(unit),
        }
    });
    let text: String = units.map(|unit| char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    let broken = text.contains(char::REPLACEMENT_CHARACTER);
    (text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text), broken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_both_byte_orders_with_and_without_bom() {
        let table: &[(&[u8], ByteOrder, &str, bool)] = &[
            (b"\0\0\xfe\xff\0\0\0H\0\x01\xf6\0", ByteOrder::Little, "H😀", false),
            (b"\xff\xfe\0\0H\0\0\0", ByteOrder::Big, "H", false),
            (b"\0\0\0H\0\0\0i", ByteOrder::Big, "Hi", false),
            (b"H\0\0\0i\0", ByteOrder::Little, "H\u{fffd}", true),
            (b"\0\0\xd8\0", ByteOrder::Big, "\u{fffd}", true),
            (b"", ByteOrder::Big, "", false),
        ];
        for (bytes, order, text, broken) in table {
            assert_eq!(decode(bytes, *order), ((*text).to_owned(), *broken), "{bytes:?}");
        }
    }
}
