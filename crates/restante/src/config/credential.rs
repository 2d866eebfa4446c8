//! Values that must never be shown: they print as `***` wherever they end up.

use std::fmt;

/// A text that is not printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one place that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A user and the password that goes with the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// The user's name.
    pub user: String,
    /// The password.
    pub password: Secret,
}

impl Credential {
    /// Parses a list of `user:password`; errors count the entries and show none of them.
    pub(super) fn parse_list(items: &[String]) -> Result<Vec<Self>, String> {
        let mut credentials: Vec<Self> = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let Some((user, password)) =
                item.split_once(':').filter(|(user, password)| !user.is_empty() && !password.is_empty())
            else {
                return Err(format!("must be USER:PASSWORD pairs separated by commas; entry {} is not", index + 1));
            };
            if credentials.iter().any(|known| known.user == user) {
                return Err(format!("must name each user once; entry {} repeats one", index + 1));
            }
            credentials.push(Self { user: user.to_owned(), password: Secret::new(password) });
        }
        Ok(credentials)
    }
}
