//! Tokens, which programs use instead of a password. The file contains only their hashes; the token itself is printed
//! once, when it is created. A token has enough random bits that a plain hash is sufficient, unless its text was chosen: the key
//! of a mail provider, which programs have in their configuration.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use jiff::Timestamp;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};

use crate::grant::{Grant, Scope, Scopes};
use crate::replace::LockedFile;
use crate::rights::Rights;

/// The prefix of all random tokens, so that people and secret scanners recognize them. No chosen text has it.
const PREFIX: &str = "rst_";
/// The length of a chosen text in characters.
const CHOSEN_LENGTH: RangeInclusive<usize> = 12..=512;
/// The number of random bytes in a token.
const SECRET_BYTES: usize = 32;
/// The number of random bytes in an id.
const ID_BYTES: usize = 6;
/// The maximum number of tokens in a file.
const MAX_TOKENS: usize = 10_000;
/// The maximum length of a name in bytes.
const MAX_TEXT_BYTES: usize = 255;

const FILE_HEADER: &str =
    "# The tokens of a Restante server: their hashes, and what they allow. Written by `restante token`.\n\n";

/// A token without its secret.
#[derive(Clone, Debug)]
pub struct Token {
    /// The id, by which it can be revoked.
    pub id: String,
    /// The name that the operator chose. It is unique.
    pub name: String,
    /// The scopes that it grants.
    pub scopes: Scopes,
    /// The mailboxes that it grants, as patterns; empty means all.
    pub mailboxes: Vec<String>,
    /// The time of creation.
    pub created: Timestamp,
    /// The expiry time, if any.
    pub expires: Option<Timestamp>,
    pub(crate) digest: Digest,
    pub(crate) grant: Grant,
}

/// The SHA-256 digest of a token.
pub(crate) type Digest = [u8; 32];

/// The properties of a new token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedAccess {
    /// The name.
    pub name: String,
    /// The scopes that it grants.
    pub scopes: Scopes,
    /// The mailboxes that it grants, as patterns; empty means all.
    pub mailboxes: Vec<String>,
    /// The expiry time, if any.
    pub expires: Option<Timestamp>,
}

impl Token {
    /// Returns true if the token has expired.
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expiry| expiry <= now)
    }
}

/// Returns true if a text looks like a random token rather than a password or a token with a chosen text.
pub(crate) fn looks_like_token(text: &str) -> bool {
    text.starts_with(PREFIX)
}

pub(crate) fn token_digest(text: &str) -> Digest {
    let mut digest_bytes = Digest::default();
    digest_bytes.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
    digest_bytes
}

/// The tokens of a file.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    all: Vec<Arc<Token>>,
    by_digest: HashMap<Digest, Arc<Token>>,
}

impl Tokens {
    /// Parses a token file. The error does not contain any hashes.
    pub(crate) fn parse(content: &[u8]) -> Result<Self, String> {
        let text = str::from_utf8(content).map_err(|_| "is not UTF-8".to_owned())?;
        let records: TokenFile = toml::from_str(text).map_err(|error| error_with_line(text, &error))?;
        if records.token.len() > MAX_TOKENS {
            return Err(format!("more than {MAX_TOKENS} tokens"));
        }
        let mut tokens = Self::default();
        for (record, number) in records.token.into_iter().zip(1_usize..) {
            let token = Arc::new(record.into_token().map_err(|message| format!("token {number}: {message}"))?);
            let is_duplicate = tokens.all.iter().any(|other| other.id == token.id || other.name == token.name);
            if is_duplicate || tokens.by_digest.insert(token.digest, token.clone()).is_some() {
                return Err(format!("token {number}: another token has the same id, name or hash"));
            }
            tokens.all.push(token);
        }
        Ok(tokens)
    }

    /// Finds a token by its text. The lookup uses a hash of the text, so its duration does not depend on how similar a
    /// guess is.
    pub(crate) fn find(&self, text: &str) -> Option<&Arc<Token>> {
        self.by_digest.get(&token_digest(text))
    }

    /// Finds a token by its digest.
    pub(crate) fn find_by_digest(&self, digest: &Digest) -> Option<&Arc<Token>> {
        self.by_digest.get(digest)
    }
}

/// Checks the content of a token file. The error says what is wrong and does not contain any hashes.
pub fn check(content: &[u8]) -> Result<(), String> {
    Tokens::parse(content).map(drop)
}

/// Returns all tokens of a file; none if it does not exist. The error is a sentence for the operator, here and below.
pub fn list(path: &Path) -> Result<Vec<Token>, String> {
    let tokens = read_file(path)?;
    Ok(tokens.all.iter().map(|token| Token::clone(token)).collect())
}

/// Creates a token and adds it to the file. The second value is the text of the token, which is not stored.
pub fn create(path: &Path, access: RequestedAccess) -> Result<(Token, String), String> {
    let mut secret = [0; SECRET_BYTES];
    fill_random(&mut secret)?;
    let text = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(secret));
    Ok((add(path, access, &text)?, text))
}

/// Creates a token with a chosen text and adds it to the file. The text is not stored.
pub fn create_with_text(path: &Path, access: RequestedAccess, text: &str) -> Result<Token, String> {
    if !CHOSEN_LENGTH.contains(&text.len()) || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        let (min, max) = CHOSEN_LENGTH.into_inner();
        return Err(format!("the text of a token must have {min} to {max} printable ASCII characters and no spaces"));
    }
    if looks_like_token(text) {
        return Err(format!("the text of a token must not begin with {PREFIX}, as random tokens do"));
    }
    add(path, access, text)
}

/// Adds a token to the file.
fn add(path: &Path, access: RequestedAccess, text: &str) -> Result<Token, String> {
    let mut id = [0; ID_BYTES];
    fill_random(&mut id)?;
    let RequestedAccess { name, scopes, mailboxes, expires } = access;
    let record = TokenRecord {
        id: HEXLOWER.encode(&id),
        name,
        sha256: HEXLOWER.encode(&token_digest(text)),
        scopes: scopes.iter().map(|scope| scope.name().to_owned()).collect(),
        mailboxes,
        created: Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        expires: expires.map(|expiry| expiry.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
    };
    let token = record.into_token()?;
    update_file(path, |tokens| {
        if tokens.iter().any(|other| other.name == token.name) {
            return Err(format!("a token named {} already exists", token.name));
        }
        if let Some(other) = tokens.iter().find(|other| other.digest == token.digest) {
            return Err(format!("the token {} has the same text", other.name));
        }
        tokens.push(Arc::new(token.clone()));
        Ok(())
    })?;
    Ok(token)
}

fn fill_random(bytes: &mut [u8]) -> Result<(), String> {
    SystemRandom::new().fill(bytes).map_err(|_| "cannot get random bytes".to_owned())
}

/// Revokes the token with this id or name.
pub fn revoke(path: &Path, id_or_name: &str) -> Result<Token, String> {
    update_file(path, |tokens| {
        let by_id = tokens.iter().position(|token| token.id == id_or_name);
        let found = by_id.or_else(|| tokens.iter().position(|token| token.name == id_or_name));
        let position = found.ok_or_else(|| format!("no token has the id or name {id_or_name}"))?;
        Ok(Token::clone(&tokens.remove(position)))
    })
}

/// Reads a file as the server does; unlike the other functions it follows symbolic links.
fn read_file(path: &Path) -> Result<Tokens, String> {
    let with_path = |message: &dyn std::fmt::Display| format!("{}: {message}", path.display());
    match fs::read(path) {
        Ok(content) => Tokens::parse(&content).map_err(|message| with_path(&message)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Tokens::default()),
        Err(error) => Err(with_path(&error)),
    }
}

/// Changes the list of tokens under the lock of the file, and writes it.
fn update_file<T>(path: &Path, change: impl FnOnce(&mut Vec<Arc<Token>>) -> Result<T, String>) -> Result<T, String> {
    let with_path = |error: io::Error| format!("{}: {error}", path.display());
    let locked = LockedFile::lock(path).map_err(with_path)?;
    let current = locked.read().map_err(with_path)?;
    let tokens = Tokens::parse(&current.content).map_err(|message| format!("{}: {message}", path.display()))?;
    let mut tokens = tokens.all;
    let result = change(&mut tokens)?;
    let records = TokenFile { token: tokens.iter().map(|token| TokenRecord::from_token(token)).collect() };
    let text = toml::to_string(&records).map_err(|error| format!("{}: {error}", path.display()))?;
    let text = format!("{FILE_HEADER}{text}");
    // Whatever is written must be readable.
    Tokens::parse(text.as_bytes()).map_err(|message| format!("{}: {message}", path.display()))?;
    locked.write(&current, text.as_bytes()).map_err(with_path)?;
    Ok(result)
}

/// The content of a token file.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct TokenFile {
    #[serde(default)]
    token: Vec<TokenRecord>,
}

/// A token in the file.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct TokenRecord {
    id: String,
    name: String,
    sha256: String,
    scopes: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    mailboxes: Vec<String>,
    created: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
}

impl TokenRecord {
    fn from_token(token: &Token) -> Self {
        Self {
            id: token.id.clone(),
            name: token.name.clone(),
            sha256: HEXLOWER.encode(&token.digest),
            scopes: token.scopes.iter().map(|scope| scope.name().to_owned()).collect(),
            mailboxes: token.mailboxes.clone(),
            created: token.created.to_string(),
            expires: token.expires.map(|expiry| expiry.to_string()),
        }
    }

    fn into_token(self) -> Result<Token, String> {
        let is_valid_text =
            |text: &str| !text.is_empty() && text.len() <= MAX_TEXT_BYTES && !text.chars().any(char::is_control);
        if !is_valid_text(&self.id) || !is_valid_text(&self.name) {
            return Err(format!("a name must have 1 to {MAX_TEXT_BYTES} bytes and no control characters"));
        }
        let scopes = self.scopes.iter().map(|scope| scope.parse::<Scope>());
        let scopes: Scopes =
            scopes.collect::<Result<_, _>>().map_err(|allowed| format!("a scope must be {allowed}"))?;
        let rights = Rights { scopes, mailboxes: self.mailboxes };
        rights.check()?;
        let parse_time =
            |text: &str| text.parse().map_err(|_| format!("{text} is not a timestamp such as 2030-01-31T12:00:00Z"));
        Ok(Token {
            digest: from_hex(&self.sha256).ok_or("sha256 must be 64 hexadecimal digits")?,
            created: parse_time(&self.created)?,
            expires: self.expires.as_deref().map(parse_time).transpose()?,
            grant: rights.grant(&self.name),
            id: self.id,
            name: self.name,
            scopes: rights.scopes,
            mailboxes: rights.mailboxes,
        })
    }
}

/// Returns the message and the line of a syntax error, without the text of the line.
fn error_with_line(text: &str, error: &toml::de::Error) -> String {
    let line = error.span().map_or(1, |span| text.get(..span.start).map_or(1, |before| before.split('\n').count()));
    format!("line {line}: {}", error.message())
}

fn from_hex(digits: &str) -> Option<Digest> {
    HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use restante_testdir::TestDir;

    fn access(name: &str) -> RequestedAccess {
        let expires = Some("2030-01-01T00:00:00Z".parse().unwrap());
        RequestedAccess {
            name: name.to_owned(),
            scopes: [Scope::Read].into_iter().collect(),
            mailboxes: vec!["ci-*".into()],
            expires,
        }
    }

    #[test]
    fn created_token_is_found_until_revoked() {
        let dir = TestDir::new();
        let path = dir.path().join("tokens.toml");
        assert!(list(&path).unwrap().is_empty());
        let (token, text) = create(&path, access("ci")).unwrap();
        assert!(looks_like_token(&text) && text.len() == 47, "{text}");
        let content = fs::read_to_string(&path).unwrap();
        assert!(!content.contains(&text[PREFIX.len()..]) && content.contains("name = \"ci\""), "{content}");
        let tokens = Tokens::parse(content.as_bytes()).unwrap();
        let found = tokens.find(&text).unwrap();
        assert_eq!((&found.id, &found.mailboxes, found.expires), (&token.id, &token.mailboxes, token.expires));
        let grant = &found.grant;
        assert!(grant.allows(Scope::Read, &"ci-1".to_owned().into()));
        assert!(!grant.allows(Scope::Write, &"ci-1".to_owned().into()) && grant.name() == Some("ci"));
        assert!(tokens.find(&text[..46]).is_none() && tokens.find("").is_none());
        assert!(create(&path, access("ci")).unwrap_err().contains("already exists"));
        assert_eq!(revoke(&path, &token.id).unwrap().name, "ci");
        assert!(revoke(&path, "ci").unwrap_err().contains("no token has the id or name ci"));
        assert!(list(&path).unwrap().is_empty());
    }

    #[test]
    fn chosen_texts_are_checked_and_not_stored() {
        let dir = TestDir::new();
        let path = dir.path().join("tokens.toml");
        let long = "x".repeat(513);
        let length = "the text of a token must have 12 to 512 printable ASCII characters and no spaces";
        // In this order. The name of each is its text.
        let table = [
            ("SG.abcdefghi", Ok(())),
            (&long[1..], Ok(())),
            ("!~:=+/aA0@{}", Ok(())),
            ("SG.abcdefgh", Err(length)),
            (&long, Err(length)),
            ("", Err(length)),
            ("SG.abc defghi", Err(length)),
            ("SG.abcdefghi\n", Err(length)),
            ("SG.abcdefghü", Err(length)),
            ("rst_abcdefghi", Err("the text of a token must not begin with rst_, as random tokens do")),
            ("SG.abcdefghi", Err("the token chosen 0 has the same text")),
        ];
        for (number, (text, expected)) in table.into_iter().enumerate() {
            let created = create_with_text(&path, access(&format!("chosen {number}")), text);
            assert_eq!(created.map(drop), expected.map_err(str::to_owned), "{text}");
        }
        let content = fs::read_to_string(&path).unwrap();
        assert!(!content.contains("SG.") && !content.contains("xxxx"), "{content}");
        let tokens = Tokens::parse(content.as_bytes()).unwrap();
        assert_eq!((tokens.all.len(), tokens.find("SG.abcdefghi").unwrap().name.as_str()), (3, "chosen 0"));
    }

    #[test]
    fn concurrent_creations_keep_all_tokens() {
        let dir = TestDir::new();
        let path = dir.path().join("tokens.toml");
        thread::scope(|scope| {
            for number in 0..8 {
                let path = &path;
                scope.spawn(move || create(path, access(&format!("ci {number}"))).unwrap());
            }
        });
        assert_eq!(list(&path).unwrap().len(), 8);
    }

    #[test]
    fn reports_errors_of_a_file() {
        let digest = "0".repeat(64);
        let token = |id: &str, more: &str| {
            format!("[[token]]\nid='{id}'\nname='{id}'\nsha256='{digest}'\ncreated='2026-01-01T00:00:00Z'\n{more}\n")
        };
        let good = token("a", "scopes=['read']");
        assert!(Tokens::parse(good.as_bytes()).is_ok() && Tokens::parse(b"").is_ok());
        let table = [
            ("token = 1".to_owned(), "line 1: "),
            (token("a", "scopes=[]"), "token 1: at least one scope is needed"),
            (token("a", "scopes=['all']"), "token 1: a scope must be read, write, admin or relay"),
            (token("a", "scopes=['read']\nexpires='soon'"), "token 1: soon is not a timestamp"),
            (token("a", "scopes=['read']\nmailboxes=['']"), "token 1: a mailbox pattern is empty"),
            (token("a", "scopes=['read']\nmailboxes=[\"\\t\"]"), "token 1: at most 100 mailbox patterns"),
            (token("a", "scopes=['read']\nmailbox='x'"), "line 7: unknown field"),
            (good.clone() + &token("b", "scopes=['read']"), "token 2: another token has the same id, name or hash"),
            (good.replace("sha256='0", "sha256='x"), "token 1: sha256 must be"),
        ];
        for (text, expected) in table {
            let message = Tokens::parse(text.as_bytes()).unwrap_err();
            assert!(message.starts_with(expected), "{text}\n{message}");
        }
    }
}
