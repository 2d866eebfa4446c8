//! The tokens: what programs show instead of a password. The file holds only their hashes; the token itself is told once,
//! when it is made. A token has so much chance in it that a plain hash is enough to keep it secret.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use restante_mail::patterns::Patterns;
use serde::{Deserialize, Serialize};

use crate::grant::{Grant, Scope, Scopes};
use crate::replace::LockedFile;

/// What every token begins with, so that people and programs that look for secrets know it.
const PREFIX: &str = "rst_";
/// The bytes of chance in a token.
const SECRET_BYTES: usize = 32;
/// The bytes of chance in an id.
const ID_BYTES: usize = 6;
/// The most tokens of one file.
const MAX_TOKENS: usize = 10_000;
/// The most patterns of one token.
const MAX_PATTERNS: usize = 100;
/// The longest name or pattern, in bytes.
const MAX_TEXT_BYTES: usize = 255;

const FILE_HEADER: &str =
    "# The tokens of a Restante server: their hashes, and what they allow. Written by `restante token`.\n\n";

/// A token, as far as it is known to anybody but its holder.
#[derive(Clone, Debug)]
pub struct Token {
    /// What it is revoked by.
    pub id: String,
    /// What it is for, in the operator's words; no two have the same.
    pub name: String,
    /// What it allows.
    pub scopes: Scopes,
    /// The mailboxes that it is about, as patterns; none means all of them.
    pub mailboxes: Vec<String>,
    /// When it was made.
    pub created: Timestamp,
    /// When it ends, if it does.
    pub expires: Option<Timestamp>,
    digest: Digest,
    grant: Grant,
}

/// What of a token is kept.
pub(crate) type Digest = [u8; 32];

/// What a new token shall be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedAccess {
    /// What it is for.
    pub name: String,
    /// What it allows.
    pub scopes: Scopes,
    /// The mailboxes that it is about; none means all of them.
    pub mailboxes: Vec<String>,
    /// When it ends, if it does.
    pub expires: Option<Timestamp>,
}

impl Token {
    /// Whether its time is over.
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|end| end <= now)
    }

    pub(crate) fn grant(&self) -> &Grant {
        &self.grant
    }

    pub(crate) fn digest(&self) -> &Digest {
        &self.digest
    }
}

/// Whether a text is a token by its looks, rather than a password.
pub(crate) fn looks_like_token(text: &str) -> bool {
    text.starts_with(PREFIX)
}

pub(crate) fn token_digest(text: &str) -> Digest {
    let mut kept = Digest::default();
    kept.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
    kept
}

/// The tokens of a file.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    all: Vec<Arc<Token>>,
    by_digest: HashMap<Digest, Arc<Token>>,
}

impl Tokens {
    /// Reads a file. The error shows no hashes.
    pub(crate) fn parse(content: &[u8]) -> Result<Self, String> {
        let text = str::from_utf8(content).map_err(|_| "is not UTF-8".to_owned())?;
        let records: TokenFile = toml::from_str(text).map_err(|error| error_with_line(text, &error))?;
        if records.token.len() > MAX_TOKENS {
            return Err(format!("there are more than {MAX_TOKENS} tokens"));
        }
        let mut tokens = Self::default();
        for (record, number) in records.token.into_iter().zip(1_usize..) {
            let token = Arc::new(record.into_token().map_err(|problem| format!("token {number}: {problem}"))?);
            let twin = tokens.all.iter().any(|other| other.id == token.id || other.name == token.name);
            if twin || tokens.by_digest.insert(token.digest, token.clone()).is_some() {
                return Err(format!("token {number}: there is another one like it"));
            }
            tokens.all.push(token);
        }
        Ok(tokens)
    }

    /// The token with this text. What is looked up is a hash of what the client says, so the time that it takes tells
    /// nothing of how near a guess is.
    pub(crate) fn find(&self, text: &str) -> Option<&Arc<Token>> {
        self.by_digest.get(&token_digest(text))
    }

    /// The token of which this is kept.
    pub(crate) fn find_by_digest(&self, digest: &Digest) -> Option<&Arc<Token>> {
        self.by_digest.get(digest)
    }
}

/// Whether the content of a file can be used; the error says what is wrong, and shows no hashes.
pub fn check(content: &[u8]) -> Result<(), String> {
    Tokens::parse(content).map(drop)
}

/// All tokens of a file; none when there is no file. The error is a sentence for the operator, here and below.
pub fn list(path: &Path) -> Result<Vec<Token>, String> {
    let tokens = read_file(path)?;
    Ok(tokens.all.iter().map(|token| Token::clone(token)).collect())
}

/// Makes a token and writes it down. The text of it is the second value, and nowhere else.
pub fn create(path: &Path, wish: RequestedAccess) -> Result<(Token, String), String> {
    let chance = |bytes: &mut [u8]| rand::fill(bytes).map_err(|_| "the system gives no random numbers".to_owned());
    let (mut secret, mut id) = ([0; SECRET_BYTES], [0; ID_BYTES]);
    chance(&mut secret)?;
    chance(&mut id)?;
    let text = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(secret));
    let RequestedAccess { name, scopes, mailboxes, expires } = wish;
    let record = TokenRecord {
        id: to_hex(&id),
        name,
        sha256: to_hex(&token_digest(&text)),
        scopes: scopes.iter().map(|scope| scope.name().to_owned()).collect(),
        mailboxes,
        created: Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        expires: expires.map(|end| end.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
    };
    let token = record.into_token()?;
    update_file(path, |tokens| {
        if tokens.iter().any(|other| other.name == token.name) {
            return Err(format!("there is a token of the name {} already", token.name));
        }
        tokens.push(Arc::new(token.clone()));
        Ok(())
    })?;
    Ok((token, text))
}

/// Revokes the token that has this id or this name.
pub fn revoke(path: &Path, which: &str) -> Result<Token, String> {
    update_file(path, |tokens| {
        let by_id = tokens.iter().position(|token| token.id == which);
        let found = by_id.or_else(|| tokens.iter().position(|token| token.name == which));
        let place = found.ok_or_else(|| format!("there is no token {which}"))?;
        Ok(Token::clone(&tokens.remove(place)))
    })
}

/// Reads a file as the server does, also through a symbolic link.
fn read_file(path: &Path) -> Result<Tokens, String> {
    let told = |problem: &dyn std::fmt::Display| format!("{}: {problem}", path.display());
    match fs::read(path) {
        Ok(content) => Tokens::parse(&content).map_err(|problem| told(&problem)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Tokens::default()),
        Err(error) => Err(told(&error)),
    }
}

/// Changes the list while nobody else does, and writes it down.
fn update_file<T>(path: &Path, change: impl FnOnce(&mut Vec<Arc<Token>>) -> Result<T, String>) -> Result<T, String> {
    let told = |error: io::Error| format!("{}: {error}", path.display());
    let locked = LockedFile::lock(path).map_err(told)?;
    let current = locked.read().map_err(told)?;
    let tokens = Tokens::parse(&current.content).map_err(|problem| format!("{}: {problem}", path.display()))?;
    let mut tokens = tokens.all;
    let outcome = change(&mut tokens)?;
    let records = TokenFile { token: tokens.iter().map(|token| TokenRecord::from_token(token)).collect() };
    let text = toml::to_string(&records).map_err(|error| format!("{}: {error}", path.display()))?;
    let text = format!("{FILE_HEADER}{text}");
    // What is written must be what can be read.
    Tokens::parse(text.as_bytes()).map_err(|problem| format!("{}: {problem}", path.display()))?;
    locked.write(&current, text.as_bytes()).map_err(told)?;
    Ok(outcome)
}

/// The file.
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
            sha256: to_hex(&token.digest),
            scopes: token.scopes.iter().map(|scope| scope.name().to_owned()).collect(),
            mailboxes: token.mailboxes.clone(),
            created: token.created.to_string(),
            expires: token.expires.map(|end| end.to_string()),
        }
    }

    fn into_token(self) -> Result<Token, String> {
        let is_good =
            |text: &str| !text.is_empty() && text.len() <= MAX_TEXT_BYTES && !text.chars().any(char::is_control);
        if !is_good(&self.id) || !is_good(&self.name) {
            return Err(format!("a name must have 1 to {MAX_TEXT_BYTES} bytes and no control characters"));
        }
        if self.mailboxes.iter().any(String::is_empty) {
            return Err("a pattern of mailboxes is empty".to_owned());
        }
        if self.mailboxes.len() > MAX_PATTERNS || !self.mailboxes.iter().all(|pattern| is_good(pattern)) {
            return Err(format!("there may be {MAX_PATTERNS} patterns of mailboxes, of {MAX_TEXT_BYTES} bytes each"));
        }
        let scopes = self.scopes.iter().map(|scope| scope.parse::<Scope>());
        let scopes: Scopes =
            scopes.collect::<Result<_, _>>().map_err(|allowed| format!("a scope must be {allowed}"))?;
        if scopes == Scopes::default() {
            return Err("a token needs a scope".to_owned());
        }
        let time = |text: &str| text.parse().map_err(|_| format!("{text} is no time"));
        let patterns = (!self.mailboxes.is_empty()).then(|| Patterns::from_iter(&self.mailboxes));
        Ok(Token {
            digest: from_hex(&self.sha256).ok_or("sha256 must be 64 hexadecimal digits")?,
            created: time(&self.created)?,
            expires: self.expires.as_deref().map(time).transpose()?,
            grant: Grant::new(&self.name, scopes, patterns),
            id: self.id,
            name: self.name,
            scopes,
            mailboxes: self.mailboxes,
        })
    }
}

/// What is wrong with a file, and in which line, without the line itself.
fn error_with_line(text: &str, error: &toml::de::Error) -> String {
    let line = error.span().map_or(1, |span| text.get(..span.start).map_or(1, |before| before.split('\n').count()));
    format!("line {line}: {}", error.message())
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

fn from_hex(digits: &str) -> Option<Digest> {
    let mut bytes = Digest::default();
    let pairs = digits.as_bytes().chunks_exact(2);
    if digits.len() != 2 * bytes.len() || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(pairs) {
        *byte = u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use restante_testdir::TestDir;

    fn wish(name: &str) -> RequestedAccess {
        let expires = Some("2030-01-01T00:00:00Z".parse().unwrap());
        RequestedAccess {
            name: name.to_owned(),
            scopes: [Scope::Read].into_iter().collect(),
            mailboxes: vec!["ci-*".into()],
            expires,
        }
    }

    #[test]
    fn a_token_is_told_once_and_then_known() {
        let dir = TestDir::new();
        let path = dir.path().join("tokens.toml");
        assert!(list(&path).unwrap().is_empty());
        let (token, text) = create(&path, wish("ci")).unwrap();
        assert!(looks_like_token(&text) && text.len() == 47, "{text}");
        let content = fs::read_to_string(&path).unwrap();
        assert!(!content.contains(&text[PREFIX.len()..]) && content.contains("name = \"ci\""), "{content}");
        let tokens = Tokens::parse(content.as_bytes()).unwrap();
        let found = tokens.find(&text).unwrap();
        assert_eq!((&found.id, &found.mailboxes, found.expires), (&token.id, &token.mailboxes, token.expires));
        let grant = found.grant();
        assert!(grant.allows(Scope::Read, &"ci-1".to_owned().into()));
        assert!(!grant.allows(Scope::Write, &"ci-1".to_owned().into()) && grant.name() == Some("ci"));
        assert!(tokens.find(&text[..46]).is_none() && tokens.find("").is_none());
        assert!(create(&path, wish("ci")).unwrap_err().contains("already"));
        assert_eq!(revoke(&path, &token.id).unwrap().name, "ci");
        assert!(revoke(&path, "ci").unwrap_err().contains("there is no token ci"));
        assert!(list(&path).unwrap().is_empty());
    }

    #[test]
    fn nobody_loses_a_token_to_another_who_makes_one() {
        let dir = TestDir::new();
        let path = dir.path().join("tokens.toml");
        thread::scope(|scope| {
            for number in 0..8 {
                let path = &path;
                scope.spawn(move || create(path, wish(&format!("ci {number}"))).unwrap());
            }
        });
        assert_eq!(list(&path).unwrap().len(), 8);
    }

    #[test]
    fn what_is_wrong_with_a_file() {
        let digest = "0".repeat(64);
        let token = |id: &str, more: &str| {
            format!("[[token]]\nid='{id}'\nname='{id}'\nsha256='{digest}'\ncreated='2026-01-01T00:00:00Z'\n{more}\n")
        };
        let good = token("a", "scopes=['read']");
        assert!(Tokens::parse(good.as_bytes()).is_ok() && Tokens::parse(b"").is_ok());
        let table = [
            ("token = 1".to_owned(), "line 1: "),
            (token("a", "scopes=[]"), "token 1: a token needs a scope"),
            (token("a", "scopes=['all']"), "token 1: a scope must be read, write or admin"),
            (token("a", "scopes=['read']\nexpires='soon'"), "token 1: soon is no time"),
            (token("a", "scopes=['read']\nmailboxes=['']"), "token 1: a pattern of mailboxes is empty"),
            (token("a", "scopes=['read']\nmailboxes=[\"\\t\"]"), "token 1: there may be"),
            (token("a", "scopes=['read']\nmailbox='x'"), "line 7: unknown field"),
            (good.clone() + &token("b", "scopes=['read']"), "token 2: there is another one like it"),
            (good.replace("sha256='0", "sha256='x"), "token 1: sha256 must be"),
        ];
        for (text, expected) in table {
            let problem = Tokens::parse(text.as_bytes()).unwrap_err();
            assert!(problem.starts_with(expected), "{text}\n{problem}");
        }
    }
}
