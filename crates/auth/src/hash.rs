//! Password hashes: parsing, verifying and generating them. Verifying takes a noticeable part of a second and, with
//! Argon2, much memory. Settings may contain a password itself in place of its hash.

use std::fmt;
use std::str::FromStr as _;

use argon2::password_hash::{self, Output, PasswordHash as Phc, PasswordHasher as _, Salt, SaltString};
use argon2::{ARGON2I_IDENT, ARGON2ID_IDENT, Argon2, Params};
use ring::error::Unspecified;
use ring::rand::{SecureRandom as _, SystemRandom};
use subtle::ConstantTimeEq as _;

use crate::hash_memory::HashMemory;

/// The maximum memory for verifying one password, in KiB.
const MAX_MEMORY_KIB: u32 = 256 * 1024;
/// The maximum number of passes over the memory.
const MAX_PASSES: u32 = 32;
/// The maximum number of lanes of a hash. They are computed one after another.
const MAX_LANES: u32 = 16;
/// The maximum cost of bcrypt, the binary logarithm of the number of rounds. The maximum takes some seconds.
const MAX_BCRYPT_COST: u32 = 16;

/// The beginnings of hashes that other programs write and that are not supported: Apache's MD5, SHA-1 and crypt(3).
const UNSUPPORTED_PREFIXES: &[&str] = &["$apr1$", "{SHA}", "{SSHA}", "$1$", "$5$", "$6$"];

/// A hash that a password can be verified against.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash {
    text: Box<str>,
    algorithm: Algorithm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Argon2,
    Bcrypt,
    /// The text is the password.
    Plain,
}

/// The text may be a password, so it is not shown.
impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PasswordHash").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

impl PasswordHash {
    /// Parses a hash. The error says what is wrong with it and does not contain any part of it.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let algorithm = match text.split('$').nth(1) {
            Some("argon2id" | "argon2i") => check_argon2(text).map(|()| Algorithm::Argon2)?,
            Some("2y" | "2b" | "2a") => check_bcrypt(text).map(|()| Algorithm::Bcrypt)?,
            _ => return Err("the hash must begin with $argon2id$, $argon2i$, $2y$, $2b$ or $2a$"),
        };
        Ok(Self { text: text.into(), algorithm })
    }

    /// Parses a hash, or takes any other text as the password itself. The error says what is wrong and does not contain
    /// any part of the text.
    pub fn parse_or_plain(text: &str) -> Result<Self, &'static str> {
        if UNSUPPORTED_PREFIXES.iter().any(|prefix| text.starts_with(prefix)) {
            return Err("the password has a hash format that is not supported: use bcrypt (htpasswd -B) or Argon2");
        }
        if ["$2y$", "$2b$", "$2a$", "$argon2"].iter().any(|prefix| text.starts_with(prefix)) {
            return Self::parse(text);
        }
        Ok(Self { text: text.into(), algorithm: Algorithm::Plain })
    }

    /// Returns true if this is the password itself.
    pub fn is_plain(&self) -> bool {
        self.algorithm == Algorithm::Plain
    }

    /// Generates an Argon2id hash of a password, with a random salt.
    pub(crate) fn generate(password: &str) -> Result<String, Unspecified> {
        let mut salt = [0; Salt::RECOMMENDED_LENGTH];
        SystemRandom::new().fill(&mut salt)?;
        let salt = SaltString::encode_b64(&salt).map_err(|_| Unspecified)?;
        let hash = Argon2::default().hash_password(password.as_bytes(), &salt).map_err(|_| Unspecified)?;
        Ok(hash.to_string())
    }

    /// Returns true if the password matches. This is slow.
    pub(crate) fn verify(&self, password: &str, memory: &mut HashMemory) -> bool {
        match self.algorithm {
            Algorithm::Argon2 => verify_argon2(&self.text, password, memory).unwrap_or(false),
            // Like other implementations, bcrypt ignores everything after 72 bytes.
            Algorithm::Bcrypt => bcrypt::verify(password, &self.text).unwrap_or(false),
            Algorithm::Plain => bool::from(self.text.as_bytes().ct_eq(password.as_bytes())),
        }
    }

    /// Returns the hash as text.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }
}

/// Does what `PasswordVerifier` does, which would allocate its own memory.
fn verify_argon2(text: &str, password: &str, memory: &mut HashMemory) -> password_hash::Result<bool> {
    let hash = Phc::new(text)?;
    let (Some(salt), Some(expected)) = (hash.salt, hash.hash) else { return Ok(false) };
    let algorithm = hash.algorithm.try_into()?;
    let version = hash.version.map(TryInto::try_into).transpose()?.unwrap_or_default();
    let params = Params::try_from(&hash)?;
    let blocks = memory.blocks(params.block_count());
    let mut salt_bytes = [0; Salt::MAX_LENGTH];
    let salt = salt.decode_b64(&mut salt_bytes)?;
    let argon2 = Argon2::new(algorithm, version, params);
    let computed = Output::init_with(expected.len(), |output| {
        Ok(argon2.hash_password_into_with_memory(password.as_bytes(), salt, output, blocks)?)
    })?;
    // The comparison takes constant time.
    Ok(computed == expected)
}

fn check_argon2(text: &str) -> Result<(), &'static str> {
    const MALFORMED: &str = "the Argon2 hash is malformed";
    let hash = Phc::new(text).map_err(|_| MALFORMED)?;
    let params = Params::try_from(&hash).map_err(|_| MALFORMED)?;
    if ![ARGON2ID_IDENT, ARGON2I_IDENT].contains(&hash.algorithm) || hash.salt.is_none() || hash.hash.is_none() {
        return Err(MALFORMED);
    }
    if params.m_cost() > MAX_MEMORY_KIB || params.t_cost() > MAX_PASSES || params.p_cost() > MAX_LANES {
        return Err("the Argon2 hash needs more than 256 MiB, 32 passes or 16 lanes");
    }
    Ok(())
}

fn check_bcrypt(text: &str) -> Result<(), &'static str> {
    let parts = bcrypt::HashParts::from_str(text).map_err(|_| "the bcrypt hash is malformed")?;
    if parts.get_cost() > MAX_BCRYPT_COST {
        return Err("the bcrypt hash has a cost above 16");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use argon2::Version;

    use super::*;

    /// A hash of "secret", made by crypt(3).
    const FOREIGN: &str = "$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a";

    #[test]
    fn verifies_only_the_right_password() {
        let text = PasswordHash::generate("secret").unwrap();
        assert!(text.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{text}");
        assert_ne!(text, PasswordHash::generate("secret").unwrap());
        let cheap = bcrypt::hash_with_salt("secret", 4, *b"0123456789abcdef").unwrap();
        let versions = [bcrypt::Version::TwoA, bcrypt::Version::TwoB, bcrypt::Version::TwoY];
        let bcrypts = versions.map(|version| cheap.format_for_version(version));
        let mut memory = HashMemory::default();
        for text in bcrypts.iter().chain([&text, &FOREIGN.to_owned()]) {
            let hash = PasswordHash::parse(text).unwrap();
            assert!(hash.verify("secret", &mut memory), "{text}");
            for wrong in ["", "Secret", "secret ", "secre"] {
                assert!(!hash.verify(wrong, &mut memory), "{wrong}");
            }
        }
    }

    #[test]
    fn memory_can_be_reused_for_other_parameters() {
        let mut memory = HashMemory::default();
        let salt = SaltString::encode_b64(b"0123456789abcdef").unwrap();
        let parameters = [(64, 1, 1, 32), (32, 3, 2, 16), (128, 2, 4, 64), (64, 1, 1, 32)];
        for (memory_kib, passes, lanes, length) in parameters {
            let params = Params::new(memory_kib, passes, lanes, Some(length)).unwrap();
            for (algorithm, version) in
                [(argon2::Algorithm::Argon2id, Version::V0x13), (argon2::Algorithm::Argon2i, Version::V0x10)]
            {
                let argon2 = Argon2::new(algorithm, version, params.clone());
                let text = argon2.hash_password(b"secret", &salt).unwrap().to_string();
                let hash = PasswordHash::parse(&text).unwrap();
                assert!(hash.verify("secret", &mut memory) && !hash.verify("Secret", &mut memory), "{text}");
            }
        }
    }

    #[test]
    fn settings_contain_hashes_or_passwords() {
        let mut memory = HashMemory::default();
        for (text, is_plain) in [(FOREIGN, false), ("secret", true)] {
            let hash = PasswordHash::parse_or_plain(text).unwrap();
            assert_eq!(
                (hash.is_plain(), hash.verify("secret", &mut memory), hash.verify("Secret", &mut memory)),
                (is_plain, true, false),
                "{text}"
            );
            assert!(!format!("{hash:?}").contains(text));
        }
        for text in ["$apr1$salt$hash", "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=", "$6$salt$hash"] {
            assert!(PasswordHash::parse_or_plain(text).unwrap_err().contains("not supported"), "{text}");
        }
        assert!(PasswordHash::parse_or_plain("$2y$04$").unwrap_err().contains("malformed"));
    }

    #[test]
    fn rejects_invalid_and_expensive_hashes() {
        let huge = "$argon2id$v=19$m=4194304,t=1,p=1$c29tZXNhbHQ$IMit9qkFULCMA/ViizL57cnTLOa5DiVM9eMwpAvPwr4";
        let costly = "$2y$17$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy";
        let table = [
            ("", "must begin with"),
            ("secret", "must begin with"),
            ("{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=", "must begin with"),
            ("$apr1$salt$hash", "must begin with"),
            ("$argon2d$v=19$m=64,t=1,p=1$c29tZXNhbHQ$IMit9qkFULCMA", "must begin with"),
            ("$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$", "malformed"),
            ("$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ", "malformed"),
            ("$2y$04$", "malformed"),
            (huge, "more than 256 MiB"),
            (costly, "cost above 16"),
        ];
        for (text, expected) in table {
            let problem = PasswordHash::parse(text).unwrap_err();
            assert!(problem.contains(expected), "{text}: {problem}");
        }
    }
}
