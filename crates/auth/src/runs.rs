//! Leased runs. A run is a project with a limited lifetime, for example that of one run of a test suite, and with a token
//! of its own. Nothing about it is stored: its name contains the expiry time and is signed, and the token is a signature of
//! the name. Every server with the same secret accepts both.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use data_encoding::BASE32_NOPAD;
use jiff::Timestamp;
use restante_mail::naming::Project;
use ring::error::Unspecified;
use ring::rand::{SecureRandom as _, SystemRandom};
use subtle::ConstantTimeEq as _;

use crate::grant::{Grant, Scope};
use crate::rights::Rights;
use crate::session::sign;

/// The start of the names of all mailboxes in runs.
pub const NAME_PREFIX: &str = "run-";
/// The start of the tokens of runs.
const TOKEN_PREFIX: &str = "rst_run_";
/// The number of random bytes in a name. They only keep names different: a token is not guessed by them.
const RANDOM_BYTES: usize = 6;
/// The characters of the expiry time, which has 32 bits, and the random bytes in a name.
const CONTENT_CHARS: usize = 16;
/// The characters of the signature in a name, with 5 bits each.
const NAME_MAC_CHARS: usize = 6;
/// The size of the signature in a token in bytes.
const TOKEN_MAC_BYTES: usize = 16;
/// No run ended before this second, the beginning of 2026. A name with an earlier time is not that of a run.
const FIRST_EXPIRY: u32 = 1_767_225_600;

/// Leases runs, and recognizes them by their names and tokens.
pub struct Runs {
    secret: Vec<u8>,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    /// The project that all mail of the run is in.
    pub project: Project,
    /// When it ends.
    pub expires: Timestamp,
}

/// A domain has the form of that of a run, which has expired or was leased by a server with another secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownRun;

impl Run {
    /// Returns the run that has this name, without a check whether a server has leased it. Such names have 22 letters a to z
    /// and digits 2 to 7 after `run-`, which begin with the expiry time. They are not used for anything else.
    pub fn from_name(project: &Project) -> Option<Self> {
        let name = project.as_str().strip_prefix(NAME_PREFIX)?;
        let is_valid = |byte: u8| byte.is_ascii_lowercase() || (b'2'..=b'7').contains(&byte);
        if name.len() != CONTENT_CHARS + NAME_MAC_CHARS || !name.bytes().all(is_valid) {
            return None;
        }
        let content = BASE32_NOPAD.decode(name[..CONTENT_CHARS].to_ascii_uppercase().as_bytes()).ok()?;
        let seconds = Some(u32::from_be_bytes(*content.first_chunk()?)).filter(|seconds| *seconds >= FIRST_EXPIRY)?;
        Some(Self { project: project.clone(), expires: Timestamp::from_second(seconds.into()).ok()? })
    }

    /// Returns true if the run has ended.
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires <= now
    }

    /// Returns what the token of the run allows: reading and writing all mailboxes of the project, which is the home.
    pub(crate) fn grant(&self) -> Grant {
        let scopes = [Scope::Read, Scope::Write].into_iter().collect();
        Rights { scopes, mailboxes: vec![format!("{}*", self.project.prefix())] }.grant(self.project.as_str())
    }
}

/// Returns true if a text has the form of the token of a run.
pub fn is_run_token(text: &str) -> bool {
    text.starts_with(TOKEN_PREFIX)
}

impl Runs {
    pub(crate) fn new(secret: Vec<u8>) -> Self {
        Self { secret }
    }

    /// Leases a run until a time, in whole seconds. The second value is its token. Fails if the random source fails.
    pub fn lease(&self, expires: Timestamp) -> Result<(Run, String), Unspecified> {
        let mut random = [0; RANDOM_BYTES];
        SystemRandom::new().fill(&mut random)?;
        let seconds = u32::try_from(expires.as_second()).map_err(|_| Unspecified)?;
        let content = BASE32_NOPAD.encode(&[&seconds.to_be_bytes()[..], &random].concat()).to_ascii_lowercase();
        let name = format!("{NAME_PREFIX}{content}{}", self.name_mac(&content));
        let run = name.parse().ok().and_then(|project| Run::from_name(&project)).ok_or(Unspecified)?;
        let token = self.token(&run.project);
        Ok((run, token))
    }

    /// Returns the run of this name, if it was leased with this secret. It may have expired.
    pub fn find(&self, project: &Project) -> Option<Run> {
        let run = Run::from_name(project)?;
        let (content, mac) = project.as_str()[NAME_PREFIX.len()..].split_at_checked(CONTENT_CHARS)?;
        bool::from(self.name_mac(content).as_bytes().ct_eq(mac.as_bytes())).then_some(run)
    }

    /// Returns the run of a token. It may have expired.
    pub(crate) fn find_by_token(&self, token: &str) -> Option<Run> {
        let (name, _) = token.strip_prefix(TOKEN_PREFIX)?.split_at_checked(CONTENT_CHARS + NAME_MAC_CHARS)?;
        let run = self.find(&format!("{NAME_PREFIX}{name}").parse().ok()?)?;
        bool::from(self.token(&run.project).as_bytes().ct_eq(token.as_bytes())).then_some(run)
    }

    /// Returns the run that a domain belongs to: its first label is the name of the run. Calls `now` only if there is one.
    pub fn find_by_domain(&self, domain: &str, now: impl FnOnce() -> Timestamp) -> Result<Option<Run>, UnknownRun> {
        // Most domains are decided without an allocation.
        if !domain.get(..NAME_PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(NAME_PREFIX)) {
            return Ok(None);
        }
        let label = domain.split('.').next().unwrap_or_default().to_ascii_lowercase();
        let Some(project) = label.parse().ok().filter(|project| Run::from_name(project).is_some()) else {
            return Ok(None);
        };
        self.find(&project).filter(|run| !run.has_expired(now())).map(Some).ok_or(UnknownRun)
    }

    fn name_mac(&self, content: &str) -> String {
        let mac = sign(&self.secret, b"restante run 1\0", content.as_bytes());
        BASE32_NOPAD.encode(mac.as_ref()).chars().take(NAME_MAC_CHARS).map(|char| char.to_ascii_lowercase()).collect()
    }

    /// Returns the token of the run with this name.
    pub(crate) fn token(&self, project: &Project) -> String {
        let mac = sign(&self.secret, b"restante run token 1\0", project.as_str().as_bytes());
        let name = project.as_str().trim_start_matches(NAME_PREFIX);
        format!("{TOKEN_PREFIX}{name}{}", URL_SAFE_NO_PAD.encode(&mac.as_ref()[..TOKEN_MAC_BYTES]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs() -> Runs {
        Runs::new(b"secret".to_vec())
    }

    fn time(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Returns the text with the character at this index replaced by another one that may occur there.
    fn with_other_char(text: &str, index: usize) -> String {
        let other = if text[index..].starts_with('b') { "c" } else { "b" };
        format!("{}{other}{}", &text[..index], &text[index + 1..])
    }

    #[test]
    fn leased_runs_are_found_by_servers_with_the_same_secret() {
        let (run, token) = runs().lease(time(1_900_000_000)).unwrap();
        assert_eq!((run.project.as_str().len(), token.len()), (26, 52));
        assert_eq!(run.expires, time(1_900_000_000));
        assert!(run.has_expired(run.expires) && !run.has_expired(time(1_899_999_999)));
        assert_eq!(runs().find(&run.project), Some(run.clone()));
        assert_eq!(runs().find_by_token(&token), Some(run.clone()));
        assert!(is_run_token(&token));
        let other = Runs::new(b"other".to_vec());
        assert_eq!((other.find(&run.project), other.find_by_token(&token)), (None, None));
        // The name still shows when a run of another server ends.
        assert_eq!(Run::from_name(&run.project).unwrap().expires, run.expires);
        assert_ne!(runs().lease(run.expires).unwrap().0, run);
    }

    #[test]
    fn forged_names_and_tokens_are_unknown() {
        let (run, token) = runs().lease(time(1_900_000_000)).unwrap();
        let name = run.project.as_str();
        for index in NAME_PREFIX.len()..name.len() {
            let forged = with_other_char(name, index);
            assert_eq!(runs().find(&forged.parse().unwrap()), None, "{forged}");
        }
        for index in TOKEN_PREFIX.len()..token.len() {
            let forged = with_other_char(&token, index);
            assert_eq!(runs().find_by_token(&forged), None, "{forged}");
        }
        // The signature of a name is not that of a token.
        let (other, _) = runs().lease(time(1_900_000_000)).unwrap();
        let of_other = token.replace(&name[4..], &other.project.as_str()[4..]);
        for text in ["", "rst_run_", &token[..token.len() - 1], &format!("{token}A"), &of_other, &token[4..]] {
            assert_eq!(runs().find_by_token(text), None, "{text}");
        }
        let early = "run-checkoutintegrationtes";
        for name in
            [early, "run-1", "run-", "run-my-tests", "running", "shop", &name[4..], &name[..25], &format!("{name}a")]
        {
            assert_eq!(name.parse().ok().and_then(|project| Run::from_name(&project)), None, "{name}");
        }
    }

    #[test]
    fn domains_belong_to_runs() {
        let (run, _) = runs().lease(time(1_900_000_000)).unwrap();
        let name = run.project.as_str();
        let forged = with_other_char(name, 10);
        let (before, after) = (time(1_899_999_999), run.expires);
        let table = [
            (format!("{name}.test"), before, Ok(Some(run.clone()))),
            (format!("{}.X.org", name.to_uppercase()), before, Ok(Some(run.clone()))),
            (name.to_owned(), before, Ok(Some(run.clone()))),
            (format!("{name}.test"), after, Err(UnknownRun)),
            (format!("{forged}.test"), before, Err(UnknownRun)),
            (format!("mail.{name}.test"), before, Ok(None)),
            ("run-7.test".to_owned(), before, Ok(None)),
            ("[IPv6:::1]".to_owned(), before, Ok(None)),
            (String::new(), before, Ok(None)),
        ];
        for (domain, now, expected) in table {
            assert_eq!(runs().find_by_domain(&domain, || now), expected, "{domain}");
        }
    }

    #[test]
    fn token_grants_its_project() {
        let grant = runs().lease(time(1_900_000_000)).unwrap().0.grant();
        let home = grant.home().unwrap().clone();
        assert_eq!(grant.name(), Some(home.as_str()));
        for (scope, mailbox, is_allowed) in [
            (Scope::Read, format!("{home}:bob"), true),
            (Scope::Write, format!("{home}:bob"), true),
            (Scope::Admin, format!("{home}:bob"), false),
            (Scope::Relay, format!("{home}:bob"), false),
            (Scope::Read, "bob".to_owned(), false),
            (Scope::Read, format!("{home}x:bob"), false),
        ] {
            assert_eq!(grant.allows(scope, &mailbox.clone().into()), is_allowed, "{scope} {mailbox}");
        }
    }
}
