//! Parses the settings of the relay: targets and rules are entries of lists, with options. Targets contain passwords, so
//! errors give the number of the entry and nothing of its content.

mod rule;
mod target;

pub(super) use rule::parse_rules;
pub(super) use target::parse_targets;

use restante_mail::address::{Address, Alphabet};
use restante_relay::RecipientPatterns;

use crate::options::{Options, decode, split_words};

/// The maximum number of characters in the name of a target.
const MAX_NAME_CHARS: usize = 64;

impl Options {
    /// Parses a list of patterns of recipients.
    fn recipients(&self, name: &str) -> Result<RecipientPatterns, String> {
        let patterns = self.list(name)?;
        for pattern in &patterns {
            let (starts, ends) = (pattern.starts_with('/'), pattern.ends_with('/'));
            if starts != ends || (starts && pattern.len() < 3) {
                return Err(format!(
                    "has an invalid pattern in {name}: a regular expression is between slashes, and | is written %7C \
                     there; an example is {name}=*@example.org|/^(qa%7Cops)@/"
                ));
            }
        }
        RecipientPatterns::parse(patterns).map_err(|error| format!("{error} in {name}"))
    }
}

fn parse_address(text: &str) -> Result<Address, String> {
    Address::parse(text, Alphabet::Utf8).map_err(|error| error.to_string())
}

/// Returns true if a text can be the name of a target.
fn is_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=MAX_NAME_CHARS).contains(&text.len()) && text.bytes().all(allowed)
}
