//! Checks of authentication: whether the user and token files are valid, and whether there are credentials if they are
//! required. Also finds the token file in the data directory.

use std::path::PathBuf;

use restante_auth::{tokens, users};

use super::Checker;
use crate::ReadFile;
use crate::setting::Setting;
use crate::sources::Sources;
use crate::table::row;
use crate::types::{Config, Storage, StoreKind, TOKENS_FILE_NAME};

const USERS: &Setting = row("auth.users");
const TOKENS: &Setting = row("auth.tokens");
const SECRET: &Setting = row("auth.secret");
const DATA: &Setting = row("storage.path");
const CREDENTIALS: &Setting = row("smtp.credentials");
const ACCEPT_ANY: &Setting = row("smtp.acceptanylogin");
const REQUIRE_AUTH: &Setting = row("smtp.requireauth");

impl Checker<'_> {
    /// Checks that the files can be read and parsed, and that there are credentials if they are required.
    pub(super) fn check_access(&mut self, config: &Config, read_file: ReadFile<'_>) {
        let Config { auth, smtp, storage, .. } = config;
        if let Some(path) = &auth.users {
            let content = read_file(path).map_err(|error| format!("cannot be read: {error}"));
            if let Err(message) = content.and_then(|content| users::check(&content)) {
                self.add(USERS, &message);
            }
        }
        // A missing token file contains no tokens yet.
        if let Some(Err(message)) =
            auth.tokens.as_deref().and_then(|path| read_file(path).ok()).map(|content| tokens::check(&content))
        {
            self.add(TOKENS, &message);
        }
        if smtp.accept_any_login && !smtp.credentials.is_empty() {
            self.add(ACCEPT_ANY, &format!("cannot be combined with {}", CREDENTIALS.key));
        }
        let has_credentials = !smtp.credentials.is_empty()
            || smtp.accept_any_login
            || auth.is_enabled()
            || token_file_in_data_dir(storage).is_some_and(|path| path.exists());
        if smtp.require_auth
            && !has_credentials
            && [CREDENTIALS, USERS, TOKENS].iter().all(|setting| self.is_valid(setting))
        {
            self.add(REQUIRE_AUTH, &format!("requires {}, {} or {}", CREDENTIALS.key, USERS.key, TOKENS.key));
        }
    }
}

/// Uses the token file in the data directory if it exists and no other is configured.
pub(super) fn complete(config: &mut Config, sources: &mut Sources) {
    if config.auth.tokens.is_some() {
        return;
    }
    if let Some(path) = token_file_in_data_dir(&config.storage).filter(|path| path.exists()) {
        sources.override_with(TOKENS, &path.display().to_string(), DATA);
        config.auth.tokens = Some(path);
    }
}

/// Warns if web logins are not valid on other servers with the same store.
pub(super) fn session_key_warning(config: &Config) -> Option<String> {
    let Config { auth, storage, .. } = config;
    let is_local = storage.kind == StoreKind::Postgres && auth.is_enabled() && auth.secret.is_none();
    is_local.then(|| {
        format!(
            "logins to the web interface are valid on this server only, not on other servers with the same store: set {}",
            SECRET.key
        )
    })
}

fn token_file_in_data_dir(storage: &Storage) -> Option<PathBuf> {
    let dir = storage.path.as_ref().or(storage.params_path.as_ref())?;
    Some(dir.join(TOKENS_FILE_NAME))
}
