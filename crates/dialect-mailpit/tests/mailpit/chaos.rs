//! Simulated failures of SMTP.

use serde_json::json;

use super::*;
use crate::support::chaos::chaos_server;

fn triggers(sender: (u16, u8), recipient: (u16, u8), authentication: (u16, u8)) -> Value {
    let trigger = |(code, probability)| json!({"ErrorCode": code, "Probability": probability});
    json!({"Sender": trigger(sender), "Recipient": trigger(recipient), "Authentication": trigger(authentication)})
}

#[tokio::test]
async fn triggers_are_read_and_replaced() {
    let server = chaos_server();
    let initial = triggers((450, 5), (451, 0), (535, 0));
    assert_eq!(server.request("GET /api/v1/chaos").await.json(), initial);
    let table = [
        (r#"{"Recipient":{"ErrorCode":550,"Probability":100}}"#, triggers((451, 0), (550, 100), (535, 0))),
        (r#"{"authentication":{"Probability":7}}"#, triggers((451, 0), (451, 0), (535, 7))),
        ("{}", triggers((451, 0), (451, 0), (535, 0))),
    ];
    for (body, expected) in table {
        let response = server.request_body("PUT /api/v1/chaos", body).await;
        assert_eq!((response.status.as_u16(), response.json()), (200, expected.clone()), "{body}");
        assert_eq!(server.request("GET /api/v1/chaos").await.json(), expected);
    }
}

#[tokio::test]
async fn invalid_triggers_change_nothing() {
    let server = chaos_server();
    let table = [
        (r#"{"Sender":{"ErrorCode":399,"Probability":1}}"#, "error code must be between 400 and 599"),
        (r#"{"Sender":{"ErrorCode":600}}"#, "error code must be between 400 and 599"),
        (r#"{"Sender":{"ErrorCode":450},"Recipient":{"Probability":101}}"#, "probability must be between 0 and 100"),
        (r#"{"Recipient":{"Probability":-1}}"#, "probability must be between 0 and 100"),
        ("", "EOF"),
    ];
    for (body, expected) in table {
        let response = server.request_body("PUT /api/v1/chaos", body).await;
        assert_eq!((response.status.as_u16(), response.text()), (400, expected), "{body}");
    }
    assert_eq!(server.request("GET /api/v1/chaos").await.json(), triggers((450, 5), (451, 0), (535, 0)));
}

#[tokio::test]
async fn chaos_is_disabled_by_default() {
    let server = server();
    for request in ["GET /api/v1/chaos", "PUT /api/v1/chaos"] {
        let response = server.request_body(request, "{}").await;
        assert_eq!((response.status.as_u16(), response.text()), (400, "Chaos is not enabled"), "{request}");
        assert_eq!(response.header("content-type"), "text/plain");
    }
    let enabled = |response: TestResponse| response.json()["ChaosEnabled"].clone();
    assert_eq!(enabled(server.request("GET /api/v1/webui").await), json!(false));
    assert_eq!(enabled(chaos_server().request("GET /api/v1/webui").await), json!(true));
}
