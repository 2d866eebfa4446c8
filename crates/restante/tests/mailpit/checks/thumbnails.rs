//! Thumbnails of pictures, up to 20 million pixels.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::json;

use super::run;
use crate::differential::answer::{Request, send};
use crate::differential::mails::{Mail, multipart};
use crate::differential::side::Side;

/// Widths of square pictures. The squares of the last two are above the limit.
const WIDTHS: [u32; 6] = [1, 16, 400, 4472, 4473, 4500];

#[test]
fn thumbnails() {
    run("thumbnails", |checks| {
        let mut mails: Vec<Mail> =
            WIDTHS.iter().map(|&width| mail(&format!("png-{width}"), &black_square(width))).collect();
        mails.push(mail("broken", b"not a picture"));
        let side = Side::new(&checks.program, &[], &mails);
        let names = WIDTHS.map(|width| format!("png-{width}")).into_iter().chain(["broken".to_owned()]);
        for name in names {
            let answer = send(&side, &Request::get(format!("/api/v1/message/{{{name}}}/part/2/thumb")));
            checks.equal(format!("{name}: status"), answer["status"].clone(), 200);
            checks.equal(format!("{name}: type"), answer["content-type"].clone(), "image/jpeg");
            // Also of a picture that is too large or broken: it is white.
            checks.equal(format!("{name}: size"), answer["body"].clone(), json!({"width": 180, "height": 120}));
        }
    });
}

fn mail(name: &str, picture: &[u8]) -> Mail {
    let file = "Content-Type: image/png; name=p.png\nContent-Disposition: attachment; filename=p.png\n\
                Content-Transfer-Encoding: base64";
    let content =
        BASE64.encode(picture).as_bytes().chunks(76).map(String::from_utf8_lossy).collect::<Vec<_>>().join("\n");
    let parts = multipart("mixed", "border", &[("Content-Type: text/plain", "Text"), (file, &content)]);
    let text = format!("From: ann@one.test\nTo: bob@two.test\nSubject: {name}\nMIME-Version: 1.0\n{parts}");
    Mail::new(name, &text).to(&["bob@two.test"])
}

/// Returns a black picture with one bit per pixel.
fn black_square(width: u32) -> Vec<u8> {
    let size = width.to_be_bytes();
    let header = [&size[..], &size[..], &[1, 0, 0, 0, 0]].concat();
    let row_bytes = 1 + width.div_ceil(8);
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, data) in [(b"IHDR", header), (b"IDAT", zeros(row_bytes * width)), (b"IEND", Vec::new())] {
        let content = [&kind[..], &data].concat();
        png.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
        png.extend(&content);
        png.extend(crc(&content).to_be_bytes());
    }
    png
}

/// Returns a zlib stream (RFC 1950) of this number of zeros: one block with fixed codes (RFC 1951 section 3.2.6), with zeros as
/// literals and as copies of 258 zeros.
fn zeros(count: u32) -> Vec<u8> {
    let mut bits = BitWriter::default();
    // The last block, with fixed codes.
    bits.push("110");
    let literals = 1 + (count - 1) % 258;
    (0..literals).for_each(|_| bits.push("00110000"));
    // The length 258 has the code 285, the distance 1 has the code 0.
    (0..(count - 1) / 258).for_each(|_| bits.push("1100010100000"));
    bits.push("0000000");
    let adler = (count % 65521) << 16 | 1;
    [&[0x78, 0x01], &bits.bytes[..], &adler.to_be_bytes()].concat()
}

/// Writes bits to bytes, the lowest bit first.
#[derive(Default)]
struct BitWriter {
    bytes: Vec<u8>,
    count: usize,
}

impl BitWriter {
    fn push(&mut self, bits: &str) {
        for bit in bits.bytes() {
            if self.count.is_multiple_of(8) {
                self.bytes.push(0);
            }
            *self.bytes.last_mut().unwrap() |= (bit - b'0') << (self.count % 8);
            self.count += 1;
        }
    }
}

/// Returns the CRC of a PNG chunk.
fn crc(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}
