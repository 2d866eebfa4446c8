//! Property tests: every request gets a response, and no client error becomes a server error.

use proptest::prelude::*;

use super::*;

/// Returns targets similar to existing ones, and others.
fn target() -> impl Strategy<Value = String> {
    let segment = prop_oneof![
        Just("api/v1/mailbox".to_owned()),
        Just("mailbox/dattach".to_owned()),
        Just("serve/mailbox".to_owned()),
        Just("test".to_owned()),
        Just("latest".to_owned()),
        Just("source".to_owned()),
        Just("attach".to_owned()),
        Just("api/v2/mailbox".to_owned()),
        Just("attachments".to_owned()),
        Just("html".to_owned()),
        Just("links".to_owned()),
        Just("codes".to_owned()),
        Just("unsubscribe".to_owned()),
        Just("parts".to_owned()),
        Just("0".to_owned()),
        "[!-~]{0,8}",
        "(%[0-9a-fA-F]{2}){1,4}",
        "\\PC{0,4}",
    ];
    let query =
        prop_oneof![Just(String::new()), "\\?(limit|before|after|ids|remote|scheme|x)=[!-~]{0,12}", "\\?[!-~]{0,12}"];
    (prop::collection::vec(segment, 0..7), query).prop_map(|(path, query)| format!("/{}{query}", path.join("/")))
}

fn header() -> impl Strategy<Value = (&'static str, Vec<u8>)> {
    let name = prop::sample::select(vec![
        "Host",
        "Origin",
        "If-None-Match",
        "Content-Type",
        "X-Forwarded-Host",
        "X-Forwarded-Proto",
        "Sec-Fetch-Site",
    ]);
    let value = prop_oneof![
        Just(b"localhost".to_vec()),
        Just(b"application/json".to_vec()),
        Just(b"*".to_vec()),
        "[ -~]{0,20}".prop_map(String::into_bytes),
        prop::collection::vec(0x80..=0xffu8, 0..8),
    ];
    (name, value)
}

proptest! {
    #[test]
    fn no_request_causes_server_error(
        method in prop::sample::select(vec!["GET", "HEAD", "DELETE", "PATCH", "POST", "OPTIONS", "TRACE", "CONNECT", "X"]),
        target in target(),
        headers in prop::collection::vec(header(), 0..4),
        body in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut request = Request::builder().method(method).uri(&target).header("Host", "localhost");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        // Invalid URLs and headers do not reach the service.
        let Ok(request) = request.body(Body::from(body)) else { return Ok(()) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let settings = Settings { trusted_proxies: vec!["::/0".parse().expect("a network")], ..Settings::default() };
            let server = TestServer::with(settings);
            server.add_message(0, "test", "Content-Type: image/png\r\n\r\nx").await;
            let response = server.router.oneshot(request).await.expect("a response");
            let status = response.status();
            prop_assert!(status.as_u16() < 500, "{status}");
            if status.as_u16() >= 400 {
                prop_assert_eq!(&response.headers()["content-type"], "application/problem+json");
            }
            prop_assert_eq!(&response.headers()["x-content-type-options"], "nosniff");
            Ok(())
        })?;
    }

    #[test]
    fn every_message_can_be_read(message_source in "(Content-Type: [ -~]{0,20}\r\n|[ -~]{0,20}: [ -~\u{80}-\u{fff}]{0,20}\r\n){0,4}\r\n[\\x00-\\x7f]{0,60}") {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let server = TestServer::new();
            server.add_message(0, "test", &message_source).await;
            let message = server.request("GET /api/v1/mailbox/test/latest").await;
            prop_assert_eq!(message.status, 200);
            for attachment in message.json()["attachments"].as_array().expect("a list") {
                let link = attachment["download-link"].as_str().expect("a link");
                prop_assert_eq!(server.request(&format!("GET {link}")).await.status, 200);
            }
            for path in ["api/v2/mailbox/test/latest", "serve/mailbox/test/latest", "serve/mailbox/test/latest/html"] {
                prop_assert_eq!(server.request(&format!("GET /{path}")).await.status, 200);
            }
            for extract in ["links", "codes", "unsubscribe", "parts", "parts/0"] {
                let path = format!("/api/v2/mailbox/test/latest/{extract}");
                prop_assert_eq!(server.request(&format!("GET {path}")).await.status, 200, "{}", path);
            }
            let details = server.request("GET /api/v2/mailbox/test/latest").await.json();
            prop_assert_eq!(&details["text"], &message.json()["body"]["text"]);
            Ok(())
        })?;
    }
}
