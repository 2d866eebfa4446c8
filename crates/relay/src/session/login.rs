//! Authentication: AUTH (RFC 4954) with PLAIN, LOGIN, CRAM-MD5 and XOAUTH2.
//!
//! Servers can repeat a part of the password in their replies, also encoded. So transcripts and errors contain only the
//! status of these replies.
//!
//! The implementation of `mail-send` is not used: it tries other mechanisms after a refusal, accepts only some prompts of
//! LOGIN, and computes a wrong digest of CRAM-MD5 for passwords of 64 bytes.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use md5::Md5;
use restante_proto::Secret;

use super::client::{Client, Reply};
use super::extensions::SmtpExtensions;
use super::recorder::WriteMode;
use crate::settings::{Login, Mechanism, Password};

/// The maximum size of a password file in bytes.
const MAX_PASSWORD_BYTES: u64 = 64 * 1024;
/// The mechanisms that are chosen without a setting, best first. CRAM-MD5 does not reveal the password to the server.
const PREFERENCE: [Mechanism; 3] = [Mechanism::CramMd5, Mechanism::Plain, Mechanism::Login];
/// The code of a challenge.
const CHALLENGE: u16 = 334;

/// Logs in. The error is a sentence for the operator.
pub(super) async fn log_in(client: &mut Client, login: &Login, extensions: &SmtpExtensions) -> Result<(), String> {
    let mechanism = choose_mechanism(login.mechanism, &extensions.mechanisms)?;
    if !client.stream().is_encrypted() && !login.allow_unencrypted {
        return Err("the connection is not encrypted, so the password is not sent".to_owned());
    }
    let password = read_password(&login.password).await?;
    client.recorder().add_secret(password.expose());
    client.recorder().set_write_mode(WriteMode::Login);
    let reply = exchange(client, mechanism, &login.user, password.expose()).await;
    client.recorder().set_write_mode(WriteMode::Commands);
    let reply = reply.map_err(|error| format!("the login failed: {error}"))?;
    if reply.code == 235 { Ok(()) } else { Err(format!("the server refused the login: {}", reply.status())) }
}

fn choose_mechanism(configured: Option<Mechanism>, offered: &[Mechanism]) -> Result<Mechanism, String> {
    match configured {
        Some(mechanism) if offered.contains(&mechanism) => Ok(mechanism),
        Some(mechanism) => {
            Err(format!("the server does not offer the login mechanism {}", mechanism.name().to_ascii_uppercase()))
        }
        None => PREFERENCE
            .into_iter()
            .find(|mechanism| offered.contains(mechanism))
            .ok_or_else(|| "the server offers no login mechanism that can be used".to_owned()),
    }
}

/// Sends the commands of a mechanism. Returns the last reply.
async fn exchange(client: &mut Client, mechanism: Mechanism, user: &str, password: &str) -> Result<Reply, String> {
    match mechanism {
        Mechanism::Plain => {
            let response = encode(client, &format!("\0{user}\0{password}"));
            client.command(&format!("AUTH PLAIN {response}")).await
        }
        Mechanism::Login => {
            // The texts of the prompts differ between servers, and their order does not.
            let mut reply = client.command("AUTH LOGIN").await?;
            for text in [user, password] {
                if reply.code != CHALLENGE {
                    break;
                }
                let response = encode(client, text);
                reply = client.command(&response).await?;
            }
            Ok(reply)
        }
        Mechanism::CramMd5 => {
            let reply = client.command("AUTH CRAM-MD5").await?;
            if reply.code != CHALLENGE {
                return Ok(reply);
            }
            let challenge = STANDARD.decode(reply.text().get(4..).unwrap_or_default());
            let challenge = challenge.map_err(|_| "the challenge of the server is not valid".to_owned())?;
            let response = encode(client, &format!("{user} {}", cram_md5_digest(password, &challenge)?));
            client.command(&response).await
        }
        Mechanism::Xoauth2 => {
            let response = encode(client, &format!("user={user}\x01auth=Bearer {password}\x01\x01"));
            let reply = client.command(&format!("AUTH XOAUTH2 {response}")).await?;
            // A refusal starts with a challenge that contains details. An empty response ends the exchange.
            if reply.code == CHALLENGE { client.command("").await } else { Ok(reply) }
        }
    }
}

/// Encodes a response. It is masked if the server repeats it.
fn encode(client: &mut Client, text: &str) -> String {
    let response = STANDARD.encode(text);
    client.recorder().add_secret(&response);
    response
}

/// Returns the HMAC-MD5 of the challenge with the password as key, in hexadecimal (RFC 2195 section 2).
fn cram_md5_digest(password: &str, challenge: &[u8]) -> Result<String, String> {
    let mac = Hmac::<Md5>::new_from_slice(password.as_bytes()).map_err(|error| error.to_string())?;
    let digest: [u8; 16] = mac.chain_update(challenge).finalize().into_bytes().into();
    Ok(format!("{:032x}", u128::from_be_bytes(digest)))
}

async fn read_password(password: &Password) -> Result<Secret, String> {
    match password {
        Password::Text(secret) => Ok(secret.clone()),
        Password::File(path) => {
            let owned = path.clone();
            let result = tokio::task::spawn_blocking(move || read_password_file(&owned)).await;
            let result = result.unwrap_or_else(|error| Err(io::Error::other(error)));
            result.map_err(|error| format!("cannot read the password file {}: {error}", path.display()))
        }
    }
}

/// Reads a password file, without the line break at its end.
fn read_password_file(path: &Path) -> io::Result<Secret> {
    let mut text = String::new();
    File::open(path)?.take(MAX_PASSWORD_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_PASSWORD_BYTES {
        return Err(io::Error::other("it is larger than 64 KiB"));
    }
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(Secret::new(text.strip_suffix('\r').unwrap_or(text)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use restante_testdir::TestDir;

    use super::*;

    #[test]
    fn chooses_mechanisms() {
        use Mechanism::{CramMd5, Login, Plain, Xoauth2};
        let table = [
            (None, &Mechanism::ALL[..], Some(CramMd5)),
            (None, &[Xoauth2, Login, Plain], Some(Plain)),
            (None, &[Xoauth2, Login], Some(Login)),
            (None, &[Xoauth2], None),
            (None, &[], None),
            (Some(Xoauth2), &Mechanism::ALL, Some(Xoauth2)),
            (Some(Login), &[Plain], None),
        ];
        for (configured, offered, expected) in table {
            assert_eq!(choose_mechanism(configured, offered).ok(), expected, "{configured:?} {offered:?}");
        }
    }

    #[test]
    fn computes_digests() {
        let challenge = b"<1896.697170952@postoffice.reston.mci.net>";
        assert_eq!(cram_md5_digest("tanstaaftanstaaf", challenge).unwrap(), "b913a602c7eda7a495b4e6e7334d3890");
        let password = "0123456789abcdef".repeat(4);
        assert_eq!(cram_md5_digest(&password, b"<1.2@mx>").unwrap(), "8046f70a5a4e373f614232feae69e5e2");
    }

    #[test]
    fn reads_password_files() {
        let dir = TestDir::new();
        let path = dir.path().join("password");
        for (content, expected) in [("a b", "a b"), ("a\n", "a"), ("a\r\n", "a"), ("a\n\n", "a\n"), ("", "")] {
            fs::write(&path, content).unwrap();
            assert_eq!(read_password_file(&path).unwrap().expose(), expected);
        }
        fs::write(&path, "x".repeat(65 * 1024)).unwrap();
        assert!(read_password_file(&path).is_err());
        fs::write(&path, b"\xff").unwrap();
        assert!(read_password_file(&path).is_err());
    }
}
