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
const OIDC_ISSUER: &Setting = row("auth.oidcissuer");
const OIDC_CLIENT_ID: &Setting = row("auth.oidcclientid");
const OIDC_SECRET: &Setting = row("auth.oidcsecret");
const USER_HEADER: &Setting = row("auth.userheader");
const GROUPS_HEADER: &Setting = row("auth.groupsheader");
const GRANTS: &Setting = row("auth.grants");
const TRUSTED_PROXIES: &Setting = row("web.trustedproxies");
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
            || auth.has_accounts()
            || auth.oidc.is_enabled()
            || token_file_in_data_dir(storage).is_some_and(|path| path.exists());
        if smtp.require_auth
            && !has_credentials
            && [CREDENTIALS, USERS, TOKENS].iter().all(|setting| self.is_valid(setting))
        {
            self.add(REQUIRE_AUTH, &format!("requires {}, {} or {}", CREDENTIALS.key, USERS.key, TOKENS.key));
        }
        self.check_single_sign_on(config);
    }

    /// Checks that the settings of the identity provider and of an authenticating proxy are complete.
    fn check_single_sign_on(&mut self, config: &Config) {
        let Config { auth, web, .. } = config;
        let (has_provider, has_header) = (auth.oidc.is_enabled(), !auth.headers.user.is_empty());
        let has_client_id = !auth.oidc.client_id.is_empty();
        // Whether a setting is used, what it requires, and whether that is missing.
        let table: [(bool, &Setting, &[&Setting], bool); 6] = [
            (has_provider, OIDC_ISSUER, &[OIDC_CLIENT_ID], !has_client_id),
            (has_client_id, OIDC_CLIENT_ID, &[OIDC_ISSUER], !has_provider),
            (auth.oidc.client_secret.is_some(), OIDC_SECRET, &[OIDC_ISSUER], !has_provider),
            (has_header, USER_HEADER, &[TRUSTED_PROXIES], web.trusted_proxies.is_empty()),
            (!auth.headers.groups.is_empty(), GROUPS_HEADER, &[USER_HEADER], !has_header),
            (!auth.grants.is_empty(), GRANTS, &[OIDC_ISSUER, USER_HEADER], !has_provider && !has_header),
        ];
        for (is_used, setting, required, is_missing) in table {
            if is_used && is_missing && required.iter().all(|setting| self.is_valid(setting)) {
                let keys: Vec<&str> = required.iter().map(|setting| setting.key).collect();
                self.add(setting, &format!("requires {}", keys.join(" or ")));
            }
        }
    }
}

/// Warns if no account of the identity provider or of an authenticating proxy has access.
pub(super) fn no_grants_warning(config: &Config) -> Option<String> {
    let auth = &config.auth;
    let has_accounts = auth.oidc.is_enabled() || !auth.headers.user.is_empty();
    (has_accounts && auth.grants.is_empty()).then(|| {
        let key = GRANTS.key;
        format!("no account of the identity provider or of a proxy has access: set {key}, for example groups=qa -> all")
    })
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

/// Warns if leased runs and web logins are not valid on other servers with the same store.
pub(super) fn session_key_warning(config: &Config) -> Option<String> {
    let Config { auth, storage, .. } = config;
    let is_local = storage.kind == StoreKind::Postgres && auth.secret.is_none();
    is_local.then(|| {
        let what = if auth.is_enabled() { "logins to the web interface and leased runs" } else { "leased runs" };
        format!("{what} are valid on this server only, not on other servers with the same store: set {}", SECRET.key)
    })
}

fn token_file_in_data_dir(storage: &Storage) -> Option<PathBuf> {
    let dir = storage.path.as_ref().or(storage.params_path.as_ref())?;
    Some(dir.join(TOKENS_FILE_NAME))
}
