//! The pages, their files and the greeting, as a browser gets them. The content of the web interface is not tested
//! here.

use std::fs;
use std::io::Read as _;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use restante_http_core::response::encoding::Coding;
use restante_http_web::embedded_assets::{ASSETS, HASH, PAGES};
use restante_testdir::TestDir;
use sha2::{Digest as _, Sha256};

use super::*;
use crate::tests::support::auth_server::AuthServer;

/// The maximum total size of all compressed files.
const MAX_BYTES: usize = 150_000;

/// The pages, and their relative paths to the root.
const TABLE: [(&str, &str); 15] = [
    ("/", "./"),
    ("/settings", "./"),
    ("/send", "./"),
    ("/api/docs", "../"),
    ("/messages/1794699770123456", "../"),
    ("/messages/latest?x=y", "../"),
    ("/monitor", "./"),
    ("/status", "./"),
    ("/search?q=code&mailbox=james", "./"),
    ("/sessions", "./"),
    ("/m/james", "../"),
    ("/m/james%2Fx@example.org", "../"),
    ("/m/a%20b%FF", "../"),
    ("/m/james/latest", "../../"),
    ("/m/james/1794699770123456?x=y", "../../"),
];

fn server_with_base_path(base: &str) -> TestServer {
    TestServer::with(Settings { base_path: base.to_owned(), ..Settings::default() })
}

/// Returns the path of a file that has compressed forms.
fn some_asset() -> String {
    let (path, _) = ASSETS.iter().find(|(_, file)| file.compressed.len() == 2).expect("a file in three forms");
    format!("/assets/{HASH}/{path}")
}

fn decoded(response: &TestResponse) -> Vec<u8> {
    let mut out = Vec::new();
    match response.header("content-encoding") {
        "" => out.extend_from_slice(&response.body),
        "gzip" => {
            flate2::read::GzDecoder::new(&response.body[..]).read_to_end(&mut out).expect("gzip");
        }
        "br" => brotli::BrotliDecompress(&mut &response.body[..], &mut out).expect("brotli"),
        other => panic!("{other}?"),
    }
    out
}

#[tokio::test]
async fn every_page_finds_its_files() {
    for base in ["", "/mail", "/a/b"] {
        let server = server_with_base_path(base);
        for (path, root) in TABLE {
            for prefix in ["", base] {
                let page = server.request(&format!("GET {prefix}{path}")).await;
                assert_eq!(page.status, 200, "{prefix}{path}");
                let start = format!("\"{root}assets/{HASH}/");
                let referenced: Vec<&str> =
                    page.text().split(&start).skip(1).filter_map(|rest| rest.split('"').next()).collect();
                assert!(!referenced.is_empty(), "{path}");
                for file in referenced {
                    let file = server.request(&format!("GET {prefix}/assets/{HASH}/{file}")).await;
                    assert_eq!(file.status, 200, "{path}");
                }
            }
        }
    }
}

#[tokio::test]
async fn trailing_slash_redirects_to_page() {
    let table = [
        ("/m/", "../"),
        ("/messages", "./"),
        ("/m", "./"),
        ("/messages/", "../"),
        ("/messages/17/?x=y", "../17?x=y"),
        ("/settings/", "../settings"),
        ("/send/", "../send"),
        ("/monitor/", "../monitor"),
        ("/status/", "../status"),
        ("/search/?q=code", "../search?q=code"),
        ("/sessions/", "../sessions"),
        ("/m/james/", "../james"),
        ("/m/james%2Fx@example.org/?x=y", "../james%2Fx@example.org?x=y"),
        ("/m/http:/", "../http:"),
        ("/m/james/latest/", "../latest"),
    ];
    for base in ["", "/mail", "/a/b"] {
        let server = server_with_base_path(base);
        for (path, location) in table {
            for prefix in ["", base] {
                let response = server.request(&format!("GET {prefix}{path}")).await;
                assert_eq!((response.status.as_u16(), response.header("location")), (308, location), "{prefix}{path}");
                assert_eq!(response.header("cache-control"), "no-cache");
            }
        }
    }
}

#[tokio::test]
async fn headers_of_page() {
    let server = TestServer::new();
    for (path, _) in TABLE {
        let mut page = server.request(&format!("GET {path}")).await;
        let hash = |tag: &str| {
            let text = page.text().split_once(&format!("<{tag}>")).and_then(|(_, rest)| rest.split_once("</"));
            STANDARD.encode(Sha256::digest(text.expect("an inline element").0))
        };
        let policy = format!(
            "default-src 'none'; script-src 'self' 'sha256-{}'; style-src 'sha256-{}'; img-src 'self' data:; connect-src 'self'; \
             frame-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
             require-trusted-types-for 'script'; trusted-types greeting",
            hash("script"),
            hash("style"),
        );
        let length = page.body.len().to_string();
        let expected = [
            ("cache-control", "no-cache"),
            ("content-length", &length),
            ("content-security-policy", &policy),
            ("content-type", "text/html; charset=utf-8"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("referrer-policy", "no-referrer"),
            ("vary", "Accept-Encoding"),
            ("x-content-type-options", "nosniff"),
            ("x-dns-prefetch-control", "off"),
            ("x-frame-options", "DENY"),
        ];
        for (name, value) in expected {
            assert_eq!(page.header(name), value, "{path}");
            page.headers.remove(name);
        }
        assert!(page.header("permissions-policy").contains("camera=()"));
        assert!(page.header("etag").starts_with('"'));
        assert_eq!(page.headers.len(), 2, "{:?}", page.headers);
    }
}

#[tokio::test]
async fn headers_of_file() {
    let server = TestServer::new();
    for (path, content_type) in [
        ("icon.svg", "image/svg+xml"),
        ("dist/app.js", "text/javascript; charset=utf-8"),
        ("dist/app.js.map", "application/json"),
    ] {
        let mut file = server.request(&format!("GET /assets/{HASH}/{path}")).await;
        let length = file.body.len().to_string();
        let expected = [
            ("cache-control", "public, max-age=31536000, immutable"),
            ("content-length", length.as_str()),
            ("content-type", content_type),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("vary", "Accept-Encoding"),
            ("x-content-type-options", "nosniff"),
            ("x-dns-prefetch-control", "off"),
            ("x-frame-options", "SAMEORIGIN"),
        ];
        for (name, value) in expected {
            assert_eq!(file.header(name), value, "{path}");
            file.headers.remove(name);
        }
        assert!(file.header("etag").starts_with('"'));
        assert_eq!(file.headers.len(), 1, "{:?}", file.headers);
    }
}

#[tokio::test]
async fn file_is_sent_in_accepted_coding() {
    let server = TestServer::new();
    for path in ["/".to_owned(), "/m/james".to_owned(), some_asset()] {
        let plain = server.request(&format!("GET {path}")).await;
        let mut tags = vec![plain.header("etag").to_owned()];
        let table = [
            ("gzip, deflate, br, zstd", "br"),
            ("gzip", "gzip"),
            ("br;q=0, *", "gzip"),
            ("identity", ""),
            ("zstd", ""),
        ];
        for (accepted, coding) in table {
            let response = server.request(&format!("GET {path}\nAccept-Encoding: {accepted}")).await;
            assert_eq!(
                (response.status.as_u16(), response.header("content-encoding")),
                (200, coding),
                "{path} {accepted}"
            );
            assert_eq!(response.header("content-length"), response.body.len().to_string());
            assert_eq!(decoded(&response), plain.body, "{path} {accepted}");
            assert_eq!(response.body.len() < plain.body.len(), !coding.is_empty(), "{path} {accepted}");
            tags.push(response.header("etag").to_owned());
        }
        tags.sort_unstable();
        tags.dedup();
        assert_eq!(tags.len(), 3, "one tag for each form of {path}");
    }
}

#[tokio::test]
async fn matching_etag_gets_304() {
    let server = TestServer::new();
    for path in ["/".to_owned(), "/favicon.ico".to_owned(), some_asset()] {
        for accepted in ["br", "gzip", "identity"] {
            let first = server.request(&format!("GET {path}\nAccept-Encoding: {accepted}")).await;
            let mut expected = first.headers.clone();
            expected.remove("content-length");
            expected.remove("content-encoding");
            for method in ["GET", "HEAD"] {
                let etag = first.header("etag");
                let again = server
                    .request(&format!("{method} {path}\nAccept-Encoding: {accepted}\nIf-None-Match: {etag}"))
                    .await;
                assert_eq!((again.status.as_u16(), again.body.len()), (304, 0), "{path} {accepted}");
                assert_eq!(again.headers, expected);
            }
            let other = server.request(&format!("GET {path}\nAccept-Encoding: {accepted}\nIf-None-Match: \"x\"")).await;
            assert_eq!((other.status.as_u16(), other.body), (200, first.body), "{path} {accepted}");
        }
    }
}

#[tokio::test]
async fn head_has_the_headers_of_get() {
    let server = TestServer::new();
    for path in ["/m/james", "/serve/greeting", "/api/v2/server", "/favicon.ico", &some_asset()] {
        let get = server.request(&format!("GET {path}\nAccept-Encoding: br")).await;
        let head = server.request(&format!("HEAD {path}\nAccept-Encoding: br")).await;
        assert_eq!((head.status, head.headers), (get.status, get.headers), "{path}");
        assert!(head.body.is_empty() && !get.body.is_empty(), "{path}");
    }
}

#[tokio::test]
async fn missing_files_are_404() {
    let server = server_with_base_path("/mail");
    let file = some_asset();
    let other_hash = file.replace(HASH, "000000000000");
    for path in [
        other_hash.as_str(),
        &file.replace(HASH, &HASH.to_uppercase().replace(|c: char| c.is_ascii_digit(), "A")),
        &format!("{file}/"),
        &format!("{file}x"),
        &format!("/assets/{HASH}/"),
        &format!("/assets/{HASH}"),
        &format!("/assets/{HASH}/index.html"),
        &format!("/assets/{HASH}/tsconfig.json"),
        &format!("/assets/{HASH}/js/main.js"),
        &format!("/assets/{HASH}/%2E%2E/%2E%2E/Cargo.toml"),
        &format!("/assets/{HASH}/%FF"),
        &format!("/assets/%FF/{HASH}"),
        "/assets/",
        "/m/james/1/2",
        "/index.html",
        "/mail/favicon.ico",
        "/mail/robots.txt",
    ] {
        server.request(&format!("GET {path}")).await.problem(404);
    }
    for path in ["/", "/m/james", "/monitor", &file, "/serve/greeting", "/api/v2/server", "/favicon.ico"] {
        server.request(&format!("POST {path}")).await.problem(405);
    }
}

/// The value of `Accept` that browsers send when they open a page.
const BROWSER: &str = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

#[tokio::test]
async fn browser_gets_a_page_for_an_unknown_path() {
    let login = plain_page_headers(&AuthServer::new().await.server.request("GET /login").await);
    let table = [
        ("/m/james/1/2", "./../../../"),
        ("/index.html", "./"),
        ("/apis", "./"),
        ("/apis/", "./../"),
        ("/%22%3Cscript%3E", "./"),
    ];
    for base in ["", "/mail", "/a/b"] {
        let server = server_with_base_path(base);
        for (path, root) in table {
            for method in ["GET", "HEAD"] {
                let page = server.request(&format!("{method} {base}{path}\n{BROWSER}")).await;
                assert_eq!(page.status, 404, "{method} {base}{path}");
                assert_eq!(plain_page_headers(&page), login, "{method} {base}{path}");
                let text = page.text();
                assert_eq!(text.contains(&format!("href=\"{root}\"")), method == "GET", "{base}{path} {text}");
                assert_eq!(text.contains(&format!("href=\"{root}assets/{HASH}/icon.svg\"")), method == "GET");
                assert!(!text.contains("<script"), "{text}");
            }
        }
    }
}

/// A proxy may remove a prefix that the server does not know, or only the base path.
#[tokio::test]
async fn page_for_an_unknown_path_has_only_relative_links() {
    let public_url = Some("https://mail.example/inbox".to_owned());
    let server = TestServer::with(Settings { public_url, base_path: "/inbox".to_owned(), ..Settings::default() });
    for path in ["/nothing", "/inbox/nothing"] {
        let page = server.request(&format!("GET {path}\n{BROWSER}")).await;
        assert!(page.text().contains("href=\"./\""), "{path} {}", page.text());
        assert!(!page.text().contains("href=\"/"), "{path} {}", page.text());
    }
}

/// Returns the headers that all pages without scripts share.
fn plain_page_headers(response: &TestResponse) -> HeaderMap {
    let mut headers = response.headers.clone();
    headers.remove("content-length");
    headers
}

#[tokio::test]
async fn program_gets_a_problem_for_an_unknown_path() {
    let server = server_with_base_path("/mail");
    let table = [
        "GET /nothing".to_owned(),
        "GET /nothing\nAccept: */*".to_owned(),
        "GET /nothing\nAccept: application/json".to_owned(),
        "GET /nothing\nAccept: text/htmlx".to_owned(),
        format!("GET /nothing\n{BROWSER}\nSec-Fetch-Mode: cors\nSec-Fetch-Dest: empty"),
        format!("GET /nothing\n{BROWSER}\nSec-Fetch-Mode: navigate\nSec-Fetch-Dest: iframe"),
        format!("POST /nothing\n{BROWSER}"),
        format!("OPTIONS /nothing\n{BROWSER}"),
        format!("GET /api/v2/nothing\n{BROWSER}"),
        format!("GET /mail/api/v2/nothing\n{BROWSER}"),
        format!("GET /serve/nothing\n{BROWSER}"),
        format!("GET /debug/nothing\n{BROWSER}"),
        format!("GET /assets/nothing\n{BROWSER}"),
    ];
    for request in table {
        assert_eq!(server.request(&request).await.problem(404), "There is nothing at this path.", "{request}");
    }
}

#[tokio::test]
async fn other_sites_may_link_to_an_unknown_path() {
    let server = TestServer::new();
    let link = "Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: navigate\nSec-Fetch-Dest: document";
    assert_eq!(server.request(&format!("GET /nothing\n{BROWSER}\n{link}")).await.status, 404);
    server.request(&format!("GET /api/nothing\n{BROWSER}\n{link}")).await.problem(403);
    let script = "Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: no-cors\nSec-Fetch-Dest: image";
    server.request(&format!("GET /nothing\n{BROWSER}\n{script}")).await.problem(403);
}

#[tokio::test]
async fn favicon_is_served() {
    let icon = TestServer::new().request("GET /favicon.ico").await;
    assert_eq!((icon.status.as_u16(), icon.header("content-type")), (200, "image/svg+xml"));
    assert_eq!(icon.header("cache-control"), "public, max-age=86400");
    assert!(icon.text().contains("<svg"));
}

#[test]
fn embedded_files_are_sorted() {
    assert!(ASSETS.is_sorted_by(|(one, _), (other, _)| one < other));
    for file in ASSETS.iter().map(|(_, file)| file).chain(&PAGES) {
        assert!(file.compressed.is_sorted_by_key(|form| form.content.expect("a content").len()));
        assert!(file.compressed.iter().all(|form| form.coding != Coding::Identity));
        assert_eq!(file.plain.coding, Coding::Identity);
        let has_gzip = file.compressed.iter().any(|form| form.coding == Coding::Gzip);
        assert_eq!(file.plain.content.is_none(), has_gzip);
    }
}

#[test]
fn web_interface_is_small() {
    // Browsers load a source map only for their developer tools.
    let files = ASSETS.iter().filter(|(path, _)| *path != "dist/app.js.map").map(|(_, file)| file).chain(&PAGES);
    let smallest = files.map(|file| file.compressed.first().unwrap_or(&file.plain).content.expect("a content"));
    let total: usize = smallest.map(<[u8]>::len).sum();
    assert!(total < MAX_BYTES, "{total} bytes compressed, which is more than {MAX_BYTES}");
}

/// A file with a greeting, removed when dropped.
struct GreetingFile(TestDir);

/// Creates a server whose greeting is in this file.
fn server_with_greeting(path: PathBuf) -> TestServer {
    TestServer::with_info(Settings::default(), ServerInfo { greeting_file: Some(path), ..ServerInfo::default() })
}

impl GreetingFile {
    fn new() -> Self {
        Self(TestDir::new())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("greeting.html")
    }

    fn server(&self) -> TestServer {
        server_with_greeting(self.path())
    }

    fn write(&self, content: impl AsRef<[u8]>) {
        fs::write(self.path(), content).expect("a temporary file");
    }
}

async fn greeting(server: &TestServer) -> String {
    let response = server.request("GET /serve/greeting").await;
    assert_eq!((response.status.as_u16(), response.header("content-type")), (200, "text/html; charset=utf-8"));
    assert_eq!(response.header("cache-control"), "no-cache");
    assert_eq!(response.header("referrer-policy"), "no-referrer");
    assert_eq!(response.header("cross-origin-resource-policy"), "same-origin");
    let policy = response.header("content-security-policy");
    assert!(policy.starts_with("sandbox; default-src 'none'; ") && !policy.contains("script"), "{policy}");
    response.text().to_owned()
}

#[tokio::test]
async fn built_in_greeting() {
    let server = server_with_base_path("/mail");
    let text = greeting(&server).await;
    assert!(text.starts_with("<h2>"), "a fragment: {text}");
    assert_eq!(server.request("GET /mail/serve/greeting").await.text(), text);
}

#[tokio::test]
async fn greeting_file_is_reread() {
    let built_in = greeting(&TestServer::new()).await;
    let file = GreetingFile::new();
    let server = file.server();
    assert_eq!(greeting(&server).await, built_in, "there is no file yet");
    for text in ["<p>Grüße", "<p>Grüße", "<p>Bonjour", ""] {
        file.write(text);
        assert_eq!(greeting(&server).await, text);
    }
    fs::remove_file(file.path()).expect("the file");
    assert_eq!(greeting(&server).await, built_in, "the file is gone");
    file.write("back");
    assert_eq!(greeting(&server).await, "back");
}

#[tokio::test]
async fn unusual_greeting_files() {
    let file = GreetingFile::new();
    let server = file.server();
    file.write(b"caf\xe9 \xf0\x9f");
    assert_eq!(greeting(&server).await, "caf\u{fffd} \u{fffd}");
    file.write(vec![b'x'; (1 << 20) + 1]);
    assert_eq!(greeting(&server).await.len(), 1 << 20);

    let directory = server_with_greeting(std::env::temp_dir());
    assert!(greeting(&directory).await.starts_with("<h2>"));
    // Opening a pipe would wait for a writer.
    let pipe = GreetingFile::new();
    let mode = rustix::fs::Mode::from(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, pipe.path(), rustix::fs::FileType::Fifo, mode, 0).expect("a pipe");
    assert!(greeting(&pipe.server()).await.starts_with("<h2>"));
}

#[tokio::test]
async fn about_server() {
    let server = server_with_base_path("/mail");
    for path in ["/api/v2/server", "/mail/api/v2/server"] {
        let response = server.request(&format!("GET {path}")).await;
        assert_eq!((response.status.as_u16(), response.header("cache-control")), (200, "no-store"));
        assert_eq!(response.header("content-type"), "application/json; charset=utf-8");
        let about = response.json();
        assert!(about["smtp"]["port"].is_null(), "this one has no ports");
        assert_eq!((&about["script"], &about["webhooks"]), (&serde_json::Value::Null, &0.into()));
    }
}
