//! Attachments: exact to the byte, and isolated.

use super::*;

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
        let response = server.request(&format!("GET {path}")).await;
        assert_eq!(response.status, 200, "{path}");
        assert_eq!(response.text(), "<script>alert(1)</script>");
        assert_eq!(response.header("content-type"), "text/html; charset=utf-8");
        assert_eq!(response.header("content-disposition"), format!("{disposition}; filename=\"evil.html\""));
        let policy = response.header("content-security-policy");
        assert!(policy.starts_with("sandbox; default-src 'none'") && !policy.contains("allow-scripts"), "{policy}");
        assert!(policy.ends_with("frame-ancestors 'self'"), "{policy}");
        assert_eq!(response.header("x-frame-options"), "SAMEORIGIN");
        assert_eq!(response.header("x-dns-prefetch-control"), "off");
        assert_eq!(response.header("x-content-type-options"), "nosniff");
        assert_eq!(response.header("cross-origin-resource-policy"), "same-origin");

        let tag = response.header("etag");
        let again = server.request(&format!("GET {path}\nIf-None-Match: {tag}")).await;
        assert_eq!((again.status.as_u16(), again.body.len()), (304, 0));
        assert_eq!(again.header("content-security-policy"), policy);
        let head = server.request(&format!("HEAD {path}")).await;
        assert_eq!((head.status.as_u16(), head.body.len(), head.header("content-length")), (200, 0, "25"));
    }
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
