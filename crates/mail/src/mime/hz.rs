//! Decoding of HZ-GB-2312 (RFC 1843): Chinese text in 7-bit bytes between `~{` and `~}`. It is converted to GBK, which
//! `encoding_rs` decodes.

use encoding_rs::GBK;

/// Decodes the text. Also returns whether some bytes are invalid, such as all 8-bit bytes.
pub(super) fn decode(bytes: &[u8]) -> (String, bool) {
    let mut eight_bit = Vec::with_capacity(bytes.len());
    let mut shifted = false;
    let mut rest = bytes;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        match (byte, tail.first()) {
            (b'~', Some(b'{')) if !shifted => shifted = true,
            (b'~', Some(b'}')) if shifted => shifted = false,
            (b'~', Some(b'~')) if !shifted => eight_bit.push(b'~'),
            // A line that continues on the next one.
            (b'~', Some(b'\n')) if !shifted => {}
            (b'~', Some(b'\r')) if !shifted && tail.get(1) == Some(&b'\n') => rest = &rest[1..],
            (0x21..=0x7e, _) if shifted => {
                eight_bit.push(byte | 0x80);
                continue;
            }
            // A line end also ends the shifted state, even if the sender did not end it.
            _ => {
                shifted &= byte != b'\n';
                eight_bit.push(byte);
                continue;
            }
        }
        rest = rest.get(1..).unwrap_or_default();
    }
    let (text, has_errors) = GBK.decode_without_bom_handling(&eight_bit);
    (text.into_owned(), has_errors || !bytes.is_ascii())
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn decodes_shifted_and_plain_text() {
        let table: &[(&str, &str)] = &[
            ("~{VPND~}", "中文"),
            ("plain ~~ ~{<:Ky2;S{#,NpJ)l6HK!#~}Bye.", "plain ~ 己所不欲，勿施於人。Bye."),
            ("one ~\ntwo ~\r\nthree", "one two three"),
            ("~{VP\nnext", "中\nnext"),
            ("~", "~"),
            ("~x", "~x"),
            ("", ""),
        ];
        for (encoded, text) in table {
            assert_eq!(decode(encoded.as_bytes()), ((*text).to_owned(), false), "{encoded:?}");
        }
    }
}
