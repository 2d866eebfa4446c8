//! The body of a message as a page: as it was sent for programs, and harmless in a browser.

use crate::support::*;

const POLICY: &str = "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; img-src data:; \
    style-src 'unsafe-inline'; font-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";
const BROWSER: &str = "Sec-Fetch-Dest: document\nSec-Fetch-Mode: navigate\nSec-Fetch-Site: none";

const HOSTILE: &str = "\
Content-Type: multipart/related; boundary=b\r\n\
\r\n\
--b\r\n\
Content-Type: text/html\r\n\
\r\n\
<meta http-equiv=\"refresh\" content=\"0;url=http://evil.example/\"><base href=\"http://evil.example/\">\r\n\
<link rel=\"preconnect\" href=\"http://evil.example\"><script>alert(1)</script>\r\n\
<a href=\"https://example.org/confirm?a=1&amp;b=2\" target=_top>Confirm</a><img src=\"cid:logo\">\r\n\
--b\r\n\
Content-Type: image/png\r\n\
Content-ID: <logo>\r\n\
Content-Transfer-Encoding: base64\r\n\
\r\n\
YWJj\r\n\
--b--\r\n";

async fn server_with(mail: &str) -> TestServer {
    let server = TestServer::new();
    server.add_message(0, "test", mail).await;
    server
}

#[tokio::test]
async fn programs_get_the_html_with_links_to_parts() {
    let server = server_with(HOSTILE).await;
    let response = server.request("GET /view/latest.html").await;
    let link = format!("/api/v1/message/{}/part/2", id(0));
    let expected = "\
        <basefont http-equiv=\"refresh\" content=\"0;url=http://evil.example/\"><basefont href=\"http://evil.example/\">\r\n\
        <basefont rel=\"preconnect\" href=\"http://evil.example\"><script>alert(1)</script>\r\n\
        <a href=\"https://example.org/confirm?a=1&amp;b=2\" target=_top>Confirm</a><img src=\""
        .to_owned()
        + &link
        + "\">";
    assert_eq!((response.status.as_u16(), response.text()), (200, expected.as_str()));
    let script = server.request("GET /view/latest.html\nSec-Fetch-Dest: empty\nSec-Fetch-Site: same-origin").await;
    assert_eq!(script.text(), expected);
    assert_eq!(server.request(&format!("GET {link}")).await.text(), "abc");
    let embedded = server.request("GET /view/latest.html?embed=1").await;
    let anchor = "<a href=\"https://example.org/confirm?a=1&amp;b=2\" target=\"_blank\" rel=\"noreferrer noopener\">";
    assert!(embedded.text().contains(anchor), "{}", embedded.text());
}

#[tokio::test]
async fn links_start_with_the_base_path() {
    let settings = Settings { base_path: "/mail".to_owned(), ..Settings::default() };
    let server = TestServer::with(settings);
    server.add_message(0, "test", HOSTILE).await;
    let response = server.request("GET /mail/view/latest.html").await;
    assert!(response.text().contains(&format!("src=\"/mail/api/v1/message/{}/part/2\"", id(0))), "{}", response.text());
    let latest = server.request("GET /mail/view/latest").await;
    assert_eq!(latest.header("location"), format!("/mail/view/{}", id(0)));
}

#[tokio::test]
async fn browsers_get_a_harmless_document() {
    let server = server_with(HOSTILE).await;
    let response = server.request(&format!("GET /view/latest.html\n{BROWSER}")).await;
    assert!(response.text().contains("<img src=\"data:image/png;base64,YWJj\">"), "{}", response.text());
    for active in ["<meta", "<base ", "<link", "<iframe"] {
        assert!(!response.text().contains(active), "{}", response.text());
    }
    let again =
        server.request(&format!("GET /view/latest.html\n{BROWSER}\nIf-None-Match: {}", response.header("etag"))).await;
    let program = server.request("GET /view/latest.html").await;
    assert_eq!((again.status.as_u16(), again.body.len()), (304, 0));
    assert_ne!(program.header("etag"), response.header("etag"));
    for response in [&response, &again, &program] {
        let expected = [
            ("content-security-policy", POLICY),
            ("content-type", "text/html; charset=utf-8"),
            ("x-content-type-options", "nosniff"),
            ("x-dns-prefetch-control", "off"),
            ("referrer-policy", "no-referrer"),
            ("x-frame-options", "SAMEORIGIN"),
            ("cross-origin-resource-policy", "same-origin"),
            ("cache-control", "private, no-cache"),
            ("cross-origin-opener-policy", "same-origin"),
            ("vary", "sec-fetch-dest, user-agent, accept"),
        ];
        for (name, value) in expected {
            assert_eq!(response.header(name), value);
        }
    }
}

#[tokio::test]
async fn text_is_that_of_the_message_or_made_from_its_html() {
    let table = [
        ("\r\nHi\r\n", 404, "This message does not contain a HTML part", "Hi\r\n"),
        ("Content-Type: text/html\r\n\r\n<p>Hi <b>you</b></p>\r\n", 200, "<p>Hi <b>you</b></p>\r\n", "Hi *you*"),
        (
            "Content-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\none\r\n\
             --b\r\nContent-Type: text/html\r\n\r\n<p>two\r\n--b--\r\n",
            200,
            "<p>two",
            "one",
        ),
        ("Content-Type: application/pdf\r\n\r\nx\r\n", 404, "This message does not contain a HTML part", ""),
    ];
    for (mail, status, html, text) in table {
        let server = server_with(mail).await;
        let response = server.request(&format!("GET /view/{}.html", id(0))).await;
        assert_eq!((response.status.as_u16(), response.text()), (status, html), "{mail}");
        let response = server.request(&format!("GET /view/{}.txt", id(0))).await;
        assert_eq!((response.status.as_u16(), response.text()), (200, text), "{mail}");
        assert_eq!(response.header("content-type"), "text/plain; charset=utf-8");
        assert!(response.header("content-security-policy").starts_with("sandbox; default-src 'none'"));
        let head = server.request("HEAD /view/latest.txt").await;
        assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
    }
}

#[tokio::test]
async fn pages_of_messages_are_those_of_the_web_interface() {
    let server = server_with("\r\nHi\r\n").await;
    let table =
        [("latest".to_owned(), format!("/view/{}", id(0))), (id(0).to_string(), format!("/messages/{}", id(0)))];
    for (file, location) in table {
        let response = server.request(&format!("GET /view/{file}")).await;
        assert_eq!((response.status.as_u16(), response.header("location")), (302, location.as_str()), "{file}");
    }
    for file in ["1.html", "1.txt", "x.html", "1", "x", "latest.pdf", ".html"] {
        let response = server.request(&format!("GET /view/{file}")).await;
        assert_eq!((response.status.as_u16(), response.text()), (404, "Message not found"), "{file}");
    }
    let empty = TestServer::new();
    let response = empty.request("GET /view/latest").await;
    assert_eq!((response.status.as_u16(), response.header("location")), (302, "/"));
    assert_eq!(empty.request("GET /view/latest.html").await.text(), "Message not found");
}
