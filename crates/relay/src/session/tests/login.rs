//! Logins with each mechanism, and transcripts without secrets.

use std::fs;

use restante_proto::Secret;
use restante_testdir::TestDir;

use super::{Server, connect, conversation, test_target};
use crate::settings::{Login, Mechanism, Password, Target};

const ALL: &str = "AUTH LOGIN PLAIN CRAM-MD5 XOAUTH2";
const PLAIN: &str = "C: AUTH PLAIN AGFubgBodW50ZXItMg==\n";
const MESSAGE: &str = "C: MAIL FROM:<>\nS: 550 no\n";

fn target(mechanism: Option<Mechanism>) -> Target {
    let password = Password::Text(Secret::new("hunter-2"));
    Target {
        login: Some(Login { user: "ann".to_owned(), password, mechanism, allow_unencrypted: true }),
        ..test_target()
    }
}

/// Returns the transcript after the greeting, or the error and the transcript.
async fn log_in(target: Target, extensions: &str, script: &str) -> Result<String, (String, String)> {
    let opening = format!("S: 220 mx\nC: EHLO relay.test\nS: 250-mx\nS: 250 {extensions}\n");
    let server = Server::start(&format!("{opening}{script}"), None).await;
    let result = match connect(&server, target).await {
        Ok(mut session) => Ok(session.send("", &["a@x.org"], b"x\r\n").await.transcript),
        Err(error) => Err((error.text, error.transcript)),
    };
    server.finish().await;
    let text = |transcript| {
        let text = conversation(&transcript);
        for secret in ["hunter", "aHVudGVyL", "AGFubg", "YW5u", "dXNlcj"] {
            assert!(!text.contains(secret), "{text}");
        }
        text.strip_prefix(&opening).expect("the opening").to_owned()
    };
    result.map(text).map_err(|(error, transcript)| (error, text(transcript)))
}

#[tokio::test]
async fn logs_in_with_each_mechanism() {
    let (ok, shown) = ("S: 235 2.7.0 ok\n", "S: 235 2.7.0\n");
    let table = [
        (Mechanism::Plain, format!("{PLAIN}{ok}"), format!("C: AUTH PLAIN ***\n{shown}")),
        (
            Mechanism::Login,
            format!("C: AUTH LOGIN\nS: 334 VXNlcm5hbWU6\nC: YW5u\nS: 334 UGFzcw==\nC: aHVudGVyLTI=\n{ok}"),
            format!("C: AUTH LOGIN\nS: 334\nC: ***\nS: 334\nC: ***\n{shown}"),
        ),
        (
            Mechanism::CramMd5,
            format!("C: AUTH CRAM-MD5\nS: 334 PDEuMkBteD4=\nC: YW5uIDY2ODFjNzM1NGQ2ZGZkYTMyZWIzMDJmOTA5YzIzN2Uw\n{ok}"),
            format!("C: AUTH CRAM-MD5\nS: 334\nC: ***\n{shown}"),
        ),
        (
            Mechanism::Xoauth2,
            format!("C: AUTH XOAUTH2 dXNlcj1hbm4BYXV0aD1CZWFyZXIgaHVudGVyLTIBAQ==\n{ok}"),
            format!("C: AUTH XOAUTH2 ***\n{shown}"),
        ),
    ];
    for (mechanism, script, transcript) in table {
        let result = log_in(target(Some(mechanism)), ALL, &format!("{script}{MESSAGE}")).await;
        assert_eq!(result, Ok(format!("{transcript}{MESSAGE}")));
    }
}

#[tokio::test]
async fn refused_logins_are_explained() {
    let refused = |text: &str| format!("the server refused the login: {text}");
    let table = [
        // No other mechanism is tried.
        (Mechanism::Plain, format!("{PLAIN}S: 535 5.7.8 wrong\n"), refused("535 5.7.8")),
        (Mechanism::Plain, format!("{PLAIN}S: 334 more\n"), refused("334")),
        (Mechanism::Login, "C: AUTH LOGIN\nS: 504 no\n".to_owned(), refused("504")),
        (Mechanism::Login, "C: AUTH LOGIN\nS: 334 \nC: YW5u\nS: 535 no\n".to_owned(), refused("535")),
        (
            Mechanism::CramMd5,
            "C: AUTH CRAM-MD5\nS: 334 !\n".to_owned(),
            "the login failed: the challenge of the server is not valid".to_owned(),
        ),
        (
            Mechanism::Xoauth2,
            "C: AUTH XOAUTH2 dXNlcj1hbm4BYXV0aD1CZWFyZXIgaHVudGVyLTIBAQ==\nS: 334 eyJzdGF0dXMiOiI0MDEifQ==\nC: \n\
             S: 535 expired\n"
                .to_owned(),
            refused("535"),
        ),
        (Mechanism::Plain, PLAIN.to_owned(), "the login failed: the server closed the connection".to_owned()),
    ];
    for (mechanism, script, text) in table {
        let (error, _) = log_in(target(Some(mechanism)), ALL, &script).await.unwrap_err();
        assert_eq!(error, text);
    }
}

#[tokio::test]
async fn parts_of_passwords_in_replies_are_not_shown() {
    let plain = |reply: &str| (Mechanism::Plain, format!("{PLAIN}{reply}"));
    let login = "C: AUTH LOGIN\nS: 334 \nC: YW5u\n";
    let table = [
        // The whole line, and parts of it, encoded and decoded.
        plain("S: 535 5.7.8 AGFubgBodW50ZXItMg== (hunter-2)\n"),
        plain("S: 535 5.7.8 wrong: AGFubgBodW50ZXIt...\n"),
        plain("S: 535 hunter-\n"),
        plain("S: 535-hunter\nS: 535-dW50ZXIt\nS: 535 unter-2\n"),
        plain("S: 334 aHVudGVyL\n"),
        // Replies that are not valid, too long, or incomplete.
        plain("S: hunter-\n"),
        plain("S: 5hunter-\n"),
        plain("ENDLESS 535-hunter\\r\\n"),
        plain("INCOMPLETE 535 5.7.8 hunter\n"),
        plain("INCOMPLETE hunter\n"),
        (Mechanism::Login, format!("{login}S: 334 aHVudGVyL\nC: aHVudGVyLTI=\nS: 535 5.7.8 aHVudGVyL\n")),
        (Mechanism::Login, format!("{login}S: 334 \nC: aHVudGVyLTI=\nS: 535 hunter\n")),
        (
            Mechanism::Xoauth2,
            "C: AUTH XOAUTH2 dXNlcj1hbm4BYXV0aD1CZWFyZXIgaHVudGVyLTIBAQ==\nS: 334 aHVudGVyL\nC: \nS: 535 hunter\n"
                .to_owned(),
        ),
    ];
    for (mechanism, script) in table {
        let (error, transcript) = log_in(target(Some(mechanism)), ALL, &script).await.unwrap_err();
        for text in [&error, &transcript] {
            let has_part = |part: &str| text.contains(part);
            assert!(!["hunter", "unter-", "dW50ZXIt", "aHVudGVy"].into_iter().any(has_part), "{script}: {text}");
        }
    }
}

#[tokio::test]
async fn passwords_are_sent_only_where_they_may_be() {
    let mut unencrypted = target(None);
    unencrypted.login.as_mut().unwrap().allow_unencrypted = false;
    let table = [
        (unencrypted, ALL, "the connection is not encrypted, so the password is not sent"),
        (target(None), "SIZE", "the server offers no login mechanism that can be used"),
        (target(None), "AUTH XOAUTH2", "the server offers no login mechanism that can be used"),
        (target(Some(Mechanism::CramMd5)), "AUTH PLAIN", "the server does not offer the login mechanism CRAM-MD5"),
    ];
    for (target, extensions, text) in table {
        assert_eq!(log_in(target, extensions, "").await, Err((text.to_owned(), String::new())));
    }
}

#[tokio::test]
async fn password_files_are_read_for_each_connection() {
    let dir = TestDir::new();
    let path = dir.path().join("password");
    let mut target = target(None);
    target.login.as_mut().unwrap().password = Password::File(path.clone());
    let (error, _) = log_in(target.clone(), "AUTH PLAIN", "").await.unwrap_err();
    assert!(error.starts_with("cannot read the password file ") && error.contains("password: "), "{error}");
    fs::write(&path, "hunter-2\n").unwrap();
    let transcript = log_in(target, "AUTH PLAIN", &format!("{PLAIN}S: 235 ok\n{MESSAGE}")).await.unwrap();
    assert!(transcript.starts_with("C: AUTH PLAIN ***\n"), "{transcript}");
}
