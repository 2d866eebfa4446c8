//! Users and passwords as the settings list them. Errors never show any of them.

use std::collections::HashSet;

use restante_proto::Secret;

use super::values::every;

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
        let mut users = HashSet::new();
        every(items.iter().zip(1..).map(|(item, number)| {
            let (user, password) = item
                .split_once(':')
                .filter(|(user, password)| !user.is_empty() && !password.is_empty())
                .ok_or_else(|| format!("entry {number} is no USER:PASSWORD"))?;
            if !users.insert(user) {
                return Err(format!("entry {number} repeats a user"));
            }
            Ok(Self { user: user.to_owned(), password: Secret::new(password) })
        }))
    }
}
