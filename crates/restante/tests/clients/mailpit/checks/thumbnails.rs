//! Thumbnails of pictures, up to 20 million pixels.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::json;

use super::run;
use crate::mailpit::differential::answer::{Request, send};
use crate::mailpit::differential::mails::{Mail, multipart};
use crate::mailpit::differential::side::Side;

/// Widths of square pictures. The squares of the last two are above the limit.
const WIDTHS: [u32; 6] = [1, 16, 400, 4472, 4473, 4500];

#[test]
fn thumbnails_are_those_of_mailpit() {
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

/// Returns a black picture as a PNG file.
fn black_square(width: u32) -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = png::Encoder::new(&mut file, width, width).write_header().unwrap();
    let pixels = usize::try_from(width * width).unwrap();
    // One byte for each pixel.
    writer.write_image_data(&vec![0; pixels]).unwrap();
    drop(writer);
    file
}
