//! The files of a message: exact, and isolated.

use serde_json::Value;

use crate::support::isolated_file::request_isolated_file;
use crate::support::*;

const HOSTILE: &str = "\
Content-Type: multipart/mixed; boundary=b\r\n\
\r\n\
--b\r\n\
Content-Type: text/plain\r\n\
\r\n\
text\r\n\
--b\r\n\
Content-Type: text/html; charset=utf-8; name=\"evil.html\"\r\n\
Content-Disposition: attachment; filename=\"evil.html\"\r\n\
\r\n\
<script>alert(1)</script>\r\n\
--b\r\n\
Content-Type: image/svg+xml\r\n\
Content-ID: <evil@x>\r\n\
\r\n\
<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>\r\n\
--b\r\n\
Content-Type: text/csv; charset=iso-8859-1\r\n\
Content-Disposition: attachment; filename=\"a\r\n b.csv\"\r\n\
Content-Transfer-Encoding: quoted-printable\r\n\
\r\n\
gr=FC=DFe\r\n\
--b\r\n\
Content-Type: application/x-nameless\r\n\
\r\n\
x\r\n\
--b--\r\n";

async fn server() -> TestServer {
    let server = TestServer::new();
    server.add_message(0, "test", HOSTILE).await;
    server
}

#[tokio::test]
async fn files_are_served_by_their_ids() {
    let server = server().await;
    let message = server.request("GET /api/v1/message/latest").await.json();
    let ids = |list: &str| -> Vec<String> {
        let files = message[list].as_array().unwrap().iter();
        files.map(|file| file["PartID"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!((ids("Inline"), ids("Attachments")), (vec!["3".to_owned()], vec!["2".to_owned(), "4".to_owned()]));
    let files: Vec<&Value> =
        ["Inline", "Attachments"].iter().flat_map(|list| message[list].as_array().unwrap()).collect();
    for file in files {
        let part =
            server.request(&format!("GET /api/v1/message/latest/part/{}", file["PartID"].as_str().unwrap())).await;
        assert_eq!(part.status, 200, "{file}");
        assert_eq!(file["Size"], part.body.len(), "{file}");
        assert!(part.header("content-type").starts_with(file["ContentType"].as_str().unwrap()), "{file}");
    }
    // A file without a name is not listed, but its id is valid.
    assert_eq!(server.request("GET /api/v1/message/latest/part/5").await.text(), "x");
}

#[tokio::test]
async fn files_are_isolated() {
    let server = server().await;
    let table = [
        ("2", "text/html; charset=utf-8", "inline; filename=\"evil.html\"", "<script>alert(1)</script>"),
        (
            "3",
            "image/svg+xml",
            "inline; filename=\"evil@x\"",
            "<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>",
        ),
        ("4", "text/csv; charset=utf-8", "inline; filename=\"a b.csv\"", "grüße"),
        ("5", "application/x-nameless", "inline; filename=\"part\"", "x"),
    ];
    for (id, content_type, disposition, content) in table {
        let path = format!("/api/v1/message/latest/part/{id}");
        let response = request_isolated_file(&server, &path).await;
        let found = ["content-type", "content-disposition"].map(|name| response.header(name));
        assert_eq!((found, response.text()), ([content_type, disposition], content));
        assert!(!response.header("content-security-policy").contains("allow"), "{id}");
        let script = server.request(&format!("GET {path}\nSec-Fetch-Dest: script")).await;
        assert_eq!((script.status.as_u16(), script.header("content-type")), (403, "text/plain"));
    }
}

#[tokio::test]
async fn wrong_ids_are_not_found() {
    let server = server().await;
    let long = "1.".repeat(1000);
    for id in ["0", "1", "1.1", "6", "2.", ".2", "02", "x", "-1", "%20", "2%2F", "99999999999999999999", &long] {
        let response = server.request(&format!("GET /api/v1/message/latest/part/{id}")).await;
        assert_eq!((response.status.as_u16(), response.text()), (404, "404 page not found"), "{id}");
    }
}
