//! The parts of a message as files to save: the body, the source, attachments, and all attachments in an archive.

use serde_json::Value;

use crate::support::*;

const ZIP_MAIL: &str = "\
Subject: x\r\n\
Content-Type: multipart/mixed; boundary=b\r\n\
\r\n\
--b\r\n\
Content-Type: multipart/related; boundary=r\r\n\
\r\n\
--r\r\n\
Content-Type: text/html; charset=iso-8859-1\r\n\
Content-Transfer-Encoding: quoted-printable\r\n\
\r\n\
<meta charset=3Diso-8859-1><img src=3D\"cid:a@x\">Gr=FC=DFe\r\n\
--r\r\n\
Content-Type: image/png; name=logo.png\r\n\
Content-ID: <a@x>\r\n\
\r\n\
png\r\n\
--r--\r\n\
--b\r\n\
Content-Type: text/csv\r\n\
Content-Disposition: attachment; filename=\"../../a.csv\"\r\n\
\r\n\
one\r\n\
--b\r\n\
Content-Type: text/csv\r\n\
Content-Disposition: attachment; filename=\"../../A.csv\"\r\n\
Content-Transfer-Encoding: base64\r\n\
\r\n\
dHdv\r\n\
--b\r\n\
Content-Type: application/x\r\n\
Content-Disposition: attachment; filename=\"nul\"\r\n\
\r\n\
three\r\n\
--b--\r\n";

async fn server() -> TestServer {
    let server = TestServer::new();
    server.add_message_with_details(0, "test", ZIP_MAIL).await;
    server
}

/// Returns the names and contents in an archive that was written without compression.
fn unzip(archive: &[u8]) -> Vec<(String, Vec<u8>)> {
    let u16_at = |at: usize| usize::from(u16::from_le_bytes([archive[at], archive[at + 1]]));
    let u32_at = |at: usize| u16_at(at) | u16_at(at + 2) << 16;
    let end = archive.len() - 22;
    assert_eq!(&archive[end..end + 4], b"PK\x05\x06");
    let mut entry = u32_at(end + 16);
    let files = (0..u16_at(end + 10)).map(|_| {
        assert_eq!(&archive[entry..entry + 4], b"PK\x01\x02");
        let (size, name_length, local) = (u32_at(entry + 24), u16_at(entry + 28), u32_at(entry + 42));
        let name = str::from_utf8(&archive[entry + 46..][..name_length]).unwrap().to_owned();
        assert_eq!(&archive[local..local + 4], b"PK\x03\x04");
        let content = archive[local + 30 + name_length..][..size].to_vec();
        entry += 46 + name_length;
        (name, content)
    });
    files.collect()
}

#[tokio::test]
async fn archive_has_all_attachments_that_are_not_inline() {
    let server = server().await;
    for path in ["/api/v2/messages/latest/attachments.zip", "/api/v2/mailbox/test/latest/attachments.zip"] {
        let response = server.request(&format!("GET {path}")).await;
        assert_eq!((response.status.as_u16(), response.header("content-type")), (200, "application/zip"), "{path}");
        let disposition = "attachment; filename=\"number _0_.zip\"";
        assert_eq!(response.header("content-disposition"), disposition);
        assert!(response.header("content-security-policy").starts_with("sandbox; "));
        let expected = [("_.._a.csv", "one"), ("_.._A (2).csv", "two"), ("_nul", "three")];
        let files = unzip(&response.body);
        let files: Vec<_> =
            files.iter().map(|(name, content)| (name.as_str(), str::from_utf8(content).unwrap())).collect();
        assert_eq!(files, expected, "{path}");

        let tag = response.header("etag");
        let again = server.request(&format!("GET {path}\nIf-None-Match: {tag}")).await;
        assert_eq!((again.status.as_u16(), again.body.len()), (304, 0));
        assert_eq!(again.header("content-disposition"), disposition);
    }
}

#[tokio::test]
async fn message_without_attachments_has_no_archive() {
    let server = TestServer::new();
    let inline_only = ZIP_MAIL.split("--b\r\nContent-Type: text/csv").next().unwrap().to_owned() + "--b--\r\n";
    server.add_message(0, "test", "Subject: x\r\n\r\ntext").await;
    server.add_message(1, "test", &inline_only).await;
    for number in [0, 1] {
        let response = server.request(&format!("GET /api/v2/messages/{}/attachments.zip", id(number))).await;
        assert_eq!(response.problem(404), "The message has no attachments.");
    }
    server.request("GET /api/v2/messages/17/attachments.zip").await.problem(404);
}

#[tokio::test]
async fn body_is_decoded_and_not_rendered() {
    let server = server().await;
    let html = "<meta charset=iso-8859-1><img src=\"cid:a@x\">Grüße";
    let table = [("html", html), ("text", "Grüße")];
    for (format, expected) in table {
        for below in ["messages/latest", "mailbox/test/latest"] {
            let path = format!("/api/v2/{below}/body?format={format}");
            let response = server.request(&format!("GET {path}")).await;
            assert_eq!((response.status.as_u16(), response.text().trim_end()), (200, expected), "{path}");
            assert_eq!(response.header("content-type"), "text/plain; charset=utf-8");
            assert_eq!(response.header("content-disposition"), "");
            assert_eq!(response.header("x-content-type-options"), "nosniff");
            assert!(response.header("content-security-policy").starts_with("sandbox; default-src 'none'; "));
            let again = server.request(&format!("GET {path}\nIf-None-Match: {}", response.header("etag"))).await;
            assert_eq!((again.status.as_u16(), again.header("content-type")), (304, "text/plain; charset=utf-8"));
        }
    }
}

#[tokio::test]
async fn body_is_downloaded_as_a_file() {
    let server = server().await;
    let html = server.request("GET /api/v2/messages/latest/body?format=html&download=true").await;
    // The mark overrides the charset that the HTML declares.
    assert!(html.text().starts_with("\u{feff}<meta charset=iso-8859-1>"), "{}", html.text());
    assert_eq!(html.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(html.header("content-disposition"), "attachment; filename=\"number _0_.html\"");
    assert_eq!(html.header("content-length"), html.body.len().to_string());
    assert!(html.header("content-security-policy").starts_with("sandbox; default-src 'none'; "));

    let text = server.request("GET /api/v2/messages/latest/body?format=text&download=true").await;
    assert_eq!(text.text().trim_end(), "Grüße");
    assert_eq!(text.header("content-type"), "text/plain; charset=utf-8");
    assert_eq!(text.header("content-disposition"), "attachment; filename=\"number _0_.txt\"");
}

#[tokio::test]
async fn wrong_parameters_are_refused() {
    let server = server().await;
    let table = [
        ("body", "The parameter format must be html or text."),
        ("body?format=pdf", "The parameter format must be html or text."),
        ("body?format=text&download=1", "The parameter download must be true or false."),
        ("source?download=yes", "The parameter download must be true or false."),
        ("attachments/0?download=", "The parameter download must be true or false."),
    ];
    for (path, detail) in table {
        assert_eq!(server.request(&format!("GET /api/v2/messages/latest/{path}")).await.problem(400), detail, "{path}");
    }
    server.add_message(1, "plain", "Subject: x\r\n\r\ntext").await;
    let html = server.request("GET /api/v2/messages/latest/body?format=html").await;
    assert_eq!(html.problem(404), "The message has no HTML.");
}

#[tokio::test]
async fn source_is_downloaded_as_a_file() {
    let server = server().await;
    let shown = server.request("GET /api/v2/messages/latest/source").await;
    assert_eq!((shown.header("content-type"), shown.header("content-disposition")), ("text/plain", ""));
    let saved = server.request("GET /api/v2/messages/latest/source?download=true").await;
    assert_eq!(saved.header("content-type"), "message/rfc822");
    assert_eq!(saved.header("content-disposition"), "attachment; filename=\"number _0_.eml\"");
    assert_eq!(saved.body, shown.body);
}

#[tokio::test]
async fn attachment_is_shown_or_downloaded() {
    let server = server().await;
    for (query, disposition) in [("", "inline"), ("?download=false", "inline"), ("?download=true", "attachment")] {
        let response = server.request(&format!("GET /api/v2/messages/latest/attachments/0{query}")).await;
        assert_eq!((response.status.as_u16(), response.text()), (200, "one"), "{query}");
        let expected = format!("{disposition}; filename=\".._.._a.csv\"");
        assert_eq!(response.header("content-disposition"), expected, "{query}");
    }
}

#[tokio::test]
async fn inline_parts_are_listed_but_not_counted() {
    let server = server().await;
    for path in ["/api/v2/messages/latest/details", "/api/v2/mailbox/test/latest"] {
        let details = server.request(&format!("GET {path}")).await.json();
        let attachments = details["attachments"].as_array().unwrap();
        let inline: Vec<_> = attachments.iter().map(|file| (&file["filename"], &file["inline"])).collect();
        let expected = [(".._.._a.csv", false), (".._.._A.csv", false), ("nul", false), ("logo.png", true)];
        let expected: Vec<_> = expected.map(|(name, inline)| (Value::from(name), Value::from(inline))).into();
        assert_eq!(inline, expected.iter().map(|(name, inline)| (name, inline)).collect::<Vec<_>>(), "{path}");
    }
    let counts = server.request(&format!("GET /api/v2/mailbox/test/attachments?ids={}", id(0))).await.json();
    assert_eq!(counts[id(0).to_string()], 3);
    let message = server.request("GET /api/v1/mailbox/test/latest").await.json();
    assert_eq!(message["attachments"].as_array().unwrap().len(), 4);
}
