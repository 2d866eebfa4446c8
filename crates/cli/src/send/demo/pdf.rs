//! A PDF document of one page with lines of text, as an attachment of sample messages (ISO 32000-1).

use std::fmt::Write as _;

/// The font size and the distance of two lines, in points.
const FONT_SIZE: u32 = 12;
const LINE_HEIGHT: u32 = 18;

/// Returns a document with these lines of ASCII text, in the size A5. The first line is the title.
pub(super) fn document(lines: &[&str]) -> Vec<u8> {
    let mut content = format!("BT /F1 {} Tf {LINE_HEIGHT} TL 48 540 Td\n", FONT_SIZE + 6);
    for (at, line) in lines.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = writeln!(content, "({}) Tj T*", escape(line));
        if at == 0 {
            let _ = writeln!(content, "/F1 {FONT_SIZE} Tf T*");
        }
    }
    content.push_str("ET");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 420 595] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>"
            .to_owned(),
        format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Courier >>".to_owned(),
    ];
    let mut text = String::from("%PDF-1.4\n");
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for (at, object) in objects.iter().enumerate() {
        let _ = writeln!(table, "{:010} 00000 n ", text.len());
        let _ = writeln!(text, "{} 0 obj\n{object}\nendobj", at + 1);
    }
    let table_start = text.len();
    let _ = write!(
        text,
        "{table}trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{table_start}\n%%EOF\n",
        objects.len() + 1
    );
    text.into_bytes()
}

/// Escapes the characters that have a meaning in a string of PDF.
fn escape(line: &str) -> String {
    line.replace('\\', "\\\\").replace('(', "\\(").replace(')', "\\)")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readers find each object by its offset in the table.
    #[test]
    fn offsets_are_those_of_the_objects() {
        let text = String::from_utf8(document(&["Title", "one (1)"])).unwrap();
        assert!(text.contains("(one \\(1\\)) Tj"), "{text}");
        let (_, start) = text.rsplit_once("startxref\n").unwrap();
        let start: usize = start.lines().next().unwrap().parse().unwrap();
        let entries: Vec<&str> = text[start..].lines().skip(3).take_while(|line| line.ends_with(" n ")).collect();
        assert_eq!(entries.len(), 5);
        for (at, entry) in entries.iter().enumerate() {
            let offset: usize = entry[..10].parse().unwrap();
            assert!(text[offset..].starts_with(&format!("{} 0 obj\n", at + 1)), "{entry}");
        }
    }
}
