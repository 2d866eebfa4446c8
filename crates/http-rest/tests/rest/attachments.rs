//! Attachments: exact to the byte, and isolated.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::support::isolated_file::request_isolated_file;
use crate::support::*;

const MAIL: &str = "\
Content-Type: multipart/mixed; boundary=b\r\n\
\r\n\
--b\r\n\
\r\n\
text\r\n\
--b\r\n\
Content-Type: text/html; charset=utf-8; name=\"evil.html\"\r\n\
Content-Disposition: attachment; filename=\"evil.html\"\r\n\
\r\n\
<script>alert(1)</script>\r\n\
--b\r\n\
Content-Type: application/pdf\r\n\
Content-Disposition: attachment; filename*=UTF-8''Gr%C3%BC%C3%9Fe%22%0D%0AX-Evil%3A%20%2E%2E%2F1.pdf\r\n\
Content-Transfer-Encoding: base64\r\n\
\r\n\
AAECAw==\r\n\
--b\r\n\
Content-Type: te xt/\"ht;ml\r\n\
Content-Disposition: attachment\r\n\
\r\n\
x\r\n\
--b--\r\n";

async fn server() -> TestServer {
    let server = TestServer::new();
    server.add_message(0, "test", MAIL).await;
    server
}

#[tokio::test]
async fn attachments_are_served_at_all_paths() {
    let server = server().await;
    let id = id(0);
    let table = [
        (format!("/mailbox/dattach/test/{id}/0/evil.html"), "attachment"),
        (format!("/mailbox/vattach/test/{id}/0/evil.html"), "inline"),
        (format!("/serve/mailbox/test/{id}/attach/0/evil.html"), "inline"),
        ("/mailbox/dattach/Test+x@example.org/latest/0/any%2Fother/name".to_owned(), "attachment"),
    ];
    for (path, disposition) in table {
        let response = request_isolated_file(&server, &path).await;
        assert_eq!(response.text(), "<script>alert(1)</script>");
        assert_eq!(response.header("content-type"), "text/html; charset=utf-8");
        assert_eq!(response.header("content-disposition"), format!("{disposition}; filename=\"evil.html\""));
        let policy = response.header("content-security-policy");
        assert!(policy.ends_with("frame-ancestors 'self'"), "{policy}");
        assert_eq!(response.header("x-frame-options"), "SAMEORIGIN");
    }
}

/// A text that is marked as inline has a position in Inbucket's list of attachments. `attachments` of the REST API lists no body.
#[tokio::test]
async fn links_of_inbucket_select_the_same_attachments() {
    const MAIL: &str = "\
        Content-Type: multipart/mixed; boundary=b\r\n\r\n\
        --b\r\nContent-Disposition: inline\r\n\r\nHello\r\n\
        --b\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename=a.pdf\r\n\r\n%PDF\r\n\
        --b\r\nContent-Type: image/png\r\nContent-Disposition: inline; filename=b.png\r\n\r\npng\r\n\
        --b\r\nContent-Type: text/calendar\r\n\r\nBEGIN\r\n\
        --b--\r\n";
    let server = TestServer::new();
    server.add_message(0, "test", MAIL).await;
    let message = server.request("GET /serve/mailbox/test/latest").await.json();
    let listed = message["attachments"].as_array().expect("a list").iter();
    let listed: Vec<_> = listed.map(|file| (file["id"].as_str(), file["filename"].as_str())).collect();
    let table = [
        ("0", "attachment-0.txt", "Hello"),
        ("1", "b.png", "png"),
        ("2", "a.pdf", "%PDF"),
        ("3", "attachment-2.ics", "BEGIN"),
    ];
    assert_eq!(listed, table.map(|(id, name, _)| (Some(id), Some(name))));
    for (id, name, content) in table {
        let response = server.request(&format!("GET /serve/mailbox/test/latest/attach/{id}/{name}")).await;
        assert_eq!((response.status.as_u16(), response.text()), (200, content), "{id}");
        assert_eq!(response.header("content-disposition"), format!("inline; filename=\"{name}\""));
    }
    server.request("GET /serve/mailbox/test/latest/attach/4/x").await.problem(404);
    let message = server.request("GET /api/v1/mailbox/test/latest").await.json();
    for (index, content) in ["png", "%PDF", "BEGIN"].into_iter().enumerate() {
        let link = message["attachments"][index]["view-link"].as_str().expect("a link");
        let path = link.strip_prefix("http://localhost:9000").expect("this server");
        assert!(path.contains(&format!("/{index}/")), "{path}");
        assert_eq!(server.request(&format!("GET {path}")).await.text(), content);
    }
    assert_eq!(message["attachments"].as_array().map(Vec::len), Some(3));
}

#[tokio::test]
async fn hostile_file_names_and_types_are_sanitized() {
    let server = server().await;
    let pdf = server.request("GET /mailbox/dattach/test/latest/1/x").await;
    assert_eq!(pdf.body.as_ref(), [0, 1, 2, 3]);
    assert_eq!(pdf.header("content-type"), "application/pdf");
    let disposition = pdf.header("content-disposition");
    assert!(disposition.starts_with("attachment; filename=\"Gr__e"), "{disposition}");
    assert!(disposition.contains("\"; filename*=UTF-8''Gr%C3%BC%C3%9Fe"), "{disposition}");
    assert!(!disposition.contains('/') && pdf.headers.get("x-evil").is_none(), "{disposition}");

    let nameless = server.request("GET /mailbox/vattach/test/latest/2/x").await;
    assert_eq!(nameless.status, 200);
    assert!(!nameless.header("content-type").contains("te xt"), "{}", nameless.header("content-type"));
}

/// Returns a message with one attachment of this type and content.
fn mail_with_file(content_type: &str, content: &str) -> String {
    format!("Content-Type: {content_type}\r\nContent-Disposition: attachment; filename=a.pdf\r\n\r\n{content}")
}

#[tokio::test]
async fn pdf_can_be_shown_in_a_frame_of_the_page() {
    let server = TestServer::new();
    server.add_message(0, "test", &mail_with_file("application/pdf", "%PDF-1.7 x")).await;
    for path in ["/api/v2/messages/latest/attachments/0", "/mailbox/vattach/test/latest/0/a.pdf"] {
        let shown = server.request(&format!("GET {path}")).await;
        let expected = [
            ("cache-control", "private, no-cache"),
            ("content-disposition", "inline; filename=\"a.pdf\""),
            ("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'"),
            ("content-type", "application/pdf"),
            ("cross-origin-resource-policy", "same-origin"),
            ("referrer-policy", "no-referrer"),
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "SAMEORIGIN"),
        ];
        for (name, value) in expected {
            assert_eq!(shown.header(name), value, "{path}");
        }
        // The headers of a 304 replace those in the cache of the browser.
        let again = server.request(&format!("GET {path}\nIf-None-Match: {}", shown.header("etag"))).await;
        assert_eq!(again.status, 304, "{path}");
        assert_eq!(again.header("content-security-policy"), shown.header("content-security-policy"), "{path}");
        // A page of another site can neither frame the file nor use it as a plugin.
        let site = "Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: navigate\nSec-Fetch-Dest: iframe";
        server.request(&format!("GET {path}\n{site}")).await.problem(403);
        server.request(&format!("GET {path}\nSec-Fetch-Dest: embed")).await.problem(403);
    }
}

/// The policy of a 304 is found without decoding the whole file.
#[tokio::test]
async fn policy_of_an_unmodified_pdf_is_the_same_in_every_encoding() {
    let long = format!("%PDF-1.7 {}", "x".repeat(20_000));
    let encoded = STANDARD.encode(&long);
    let lines: Vec<&str> = encoded.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap()).collect();
    let quoted = long.bytes().map(|byte| format!("={byte:02X}=\r\n")).collect::<Vec<_>>().concat();
    let uuencoded: String = long.as_bytes().chunks(45).map(uuencoded_line).collect();
    let table = [
        ("binary", long.clone(), true),
        ("base64", lines.join("\r\n"), true),
        ("base64", format!("{}{}", "\r\n".repeat(10_000), lines.join("\r\n")), true),
        ("quoted-printable", quoted, true),
        ("x-uuencode", format!("begin 644 a.pdf\r\n{uuencoded}`\r\nend\r\n"), true),
        ("base64", STANDARD.encode(format!(" {long}")), false),
    ];
    for (encoding, content, is_pdf) in table {
        let server = TestServer::new();
        let kind = format!("application/pdf\r\nContent-Transfer-Encoding: {encoding}");
        server.add_message(0, "test", &mail_with_file(&kind, &content)).await;
        let shown = server.request("GET /api/v2/messages/latest/attachments/0").await;
        assert_eq!(shown.body.trim_ascii(), long.as_bytes(), "{encoding}");
        let policy = shown.header("content-security-policy");
        assert_eq!(policy.starts_with("default-src 'none'"), is_pdf, "{encoding}");
        let request = format!("GET /api/v2/messages/latest/attachments/0\nIf-None-Match: {}", shown.header("etag"));
        let again = server.request(&request).await;
        assert_eq!((again.status.as_u16(), again.header("content-security-policy")), (304, policy), "{encoding}");
    }
}

/// Returns a line of a uuencoded file.
fn uuencoded_line(content: &[u8]) -> String {
    let digit = |value: u8| char::from(if value == 0 { b'`' } else { 32 + value });
    let mut line = digit(u8::try_from(content.len()).unwrap()).to_string();
    for group in content.chunks(3) {
        let byte = |at: usize| group.get(at).copied().unwrap_or(0);
        let bits = [byte(0) >> 2, byte(0) << 4 & 63 | byte(1) >> 4, byte(1) << 2 & 63 | byte(2) >> 6, byte(2) & 63];
        line.extend(bits.map(digit));
    }
    line + "\r\n"
}

#[tokio::test]
async fn everything_but_pdf_is_sandboxed() {
    let table = [
        ("application/pdf", "<script>alert(1)</script>"),
        ("application/pdf", " %PDF-1.7"),
        ("application/pdf", ""),
        ("text/html", "%PDF-1.7 <script>alert(1)</script>"),
        ("image/svg+xml", "%PDF-1.7"),
        ("application/x-pdf", "%PDF-1.7"),
        ("application/pdfx", "%PDF-1.7"),
        ("application/octet-stream", "%PDF-1.7"),
    ];
    for (content_type, content) in table {
        let server = TestServer::new();
        server.add_message(0, "test", &mail_with_file(content_type, content)).await;
        let response = server.request("GET /api/v2/messages/latest/attachments/0").await;
        assert_eq!((response.status.as_u16(), response.header("content-type")), (200, content_type), "{content}");
        let policy = response.header("content-security-policy");
        assert!(policy.starts_with("sandbox; default-src 'none'; "), "{content_type} {content}: {policy}");
    }
}

#[tokio::test]
async fn links_of_message_lead_to_attachments() {
    let server = server().await;
    let message = server.request("GET /api/v1/mailbox/test/latest").await.json();
    let attachments = message["attachments"].as_array().expect("attachments");
    assert_eq!(attachments.len(), 3);
    for attachment in attachments {
        for link in ["download-link", "view-link"] {
            let link = attachment[link].as_str().expect("a link");
            let response = server.request(&format!("GET {link}")).await;
            assert_eq!(response.status, 200, "{link}");
        }
    }
}

#[tokio::test]
async fn missing_attachments_are_404() {
    let server = server().await;
    for index in ["3", "-1", "x", "99999999999999999999", "+0", "%20"] {
        let detail = server.request(&format!("GET /mailbox/dattach/test/latest/{index}/x")).await.problem(404);
        assert_eq!(detail, "The message has no such attachment.", "{index}");
    }
    let detail = server.request("GET /api/v2/messages/latest/attachments/x?download=maybe").await.problem(404);
    assert_eq!(detail, "The message has no such attachment.", "before the parameter is checked");
    let detail = server.request("GET /mailbox/vattach/test/1/0/x").await.problem(404);
    assert_eq!(detail, "The mailbox has no such message.");
    server.request("GET /mailbox/vattach/a%20b/1/0/x").await.problem(400);
    server.request("GET /mailbox/vattach/test/1/0").await.problem(404);
}

#[tokio::test]
async fn large_message_is_served_completely() {
    let server = TestServer::new();
    let text = "0123456789\r\n".repeat(100_000);
    server.add_message(0, "test", &format!("Subject: large\r\n\r\n{text}")).await;
    let message = server.request("GET /api/v1/mailbox/test/latest").await.json();
    assert_eq!(message["body"]["text"].as_str().map(str::trim_end), Some(text.replace('\r', "").trim_end()));
    server.request("GET /mailbox/dattach/test/latest/0/x").await.problem(404);
}

/// Browsers connect to other hosts before they apply the policy of a document.
#[tokio::test]
async fn browsers_get_documents_that_open_no_connections() {
    const HTML: &str = "text/html; charset=utf-8";
    const TEXT: &str = "text/plain; charset=utf-8";
    let link = "<link rel=preconnect href=//x.test>";
    let xml = "<a xmlns=\"http://www.w3.org/1999/xhtml\"><link rel=\"preconnect\" href=\"//x.test\"/></a>";
    let image = format!("<!doctype html><img alt=\"\" src=\"data:image/svg+xml;base64,{}\">", STANDARD.encode(xml));
    let table = [
        ("text/html", link, HTML, "<basefont rel=preconnect href=//x.test>"),
        ("Text/HTML", "<iframe src=//x.test>", HTML, "<basefont src=//x.test>"),
        ("text/html; charset=utf-16be", "\0<\0b\0a\0s\0e\0>", HTML, "<basefont>"),
        ("image/svg+xml", xml, HTML, &image),
        ("application/xhtml+xml", xml, TEXT, xml),
        ("text/xml", xml, TEXT, xml),
        ("application/atom+xml", xml, TEXT, xml),
        ("text/plain; charset=utf-8", link, TEXT, link),
        ("application/json", link, "application/json", link),
    ];
    for (content_type, content, shown_type, shown) in table {
        let server = TestServer::new();
        let mail = format!(
            "Content-Type: {content_type}\r\nContent-Disposition: attachment; filename=a\r\n\
             Content-Transfer-Encoding: base64\r\n\r\n{}",
            STANDARD.encode(content)
        );
        server.add_message(0, "test", &mail).await;
        for path in [
            "/serve/mailbox/test/latest/attach/0/a",
            "/mailbox/vattach/test/latest/0/a",
            "/api/v1/message/latest/part/0",
        ] {
            let sent = server.request(&format!("GET {path}")).await;
            let browser = format!("GET {path}\nSec-Fetch-Site: none\nSec-Fetch-Dest: document");
            let document = server.request(&browser).await;
            assert_eq!((document.header("content-type"), document.text()), (shown_type, shown), "{path}");
            assert_ne!(sent.header("etag"), document.header("etag"), "{path}");
            let again = server.request(&format!("{browser}\nIf-None-Match: {}", document.header("etag"))).await;
            assert_eq!((again.status.as_u16(), again.header("content-type")), (304, shown_type), "{path}");
            let other = server.request(&format!("{browser}\nIf-None-Match: {}", sent.header("etag"))).await;
            assert_eq!(other.status, 200, "{path}");
            let image =
                server.request(&format!("GET {path}\nSec-Fetch-Site: same-origin\nSec-Fetch-Dest: image")).await;
            assert_eq!(image.body, sent.body, "{path}");
        }
        let saved = server
            .request("GET /mailbox/dattach/test/latest/0/a\nSec-Fetch-Site: none\nSec-Fetch-Dest: document")
            .await;
        let path = "/serve/mailbox/test/latest/attach/0/a";
        assert_eq!(saved.body, server.request(&format!("GET {path}")).await.body, "the file was changed");
    }
}
