//! A server with users and tokens of every scope.

use restante_auth::tokens::{self, RequestedAccess};
use restante_auth::{AuthService, Scope, users};
use restante_testdir::TestDir;

use super::*;

/// A server with authentication: user `ann` with the password `secret`, tokens, and one message each in `test` and
/// `ci-1`.
pub(crate) struct AuthServer {
    pub(crate) server: TestServer,
    auth: Arc<AuthService>,
    dir: TestDir,
    pub(crate) reader: String,
    pub(crate) writer: String,
    pub(crate) admin: String,
    pub(crate) relayer: String,
    pub(crate) limited: String,
}

impl AuthServer {
    pub(crate) async fn new() -> Self {
        Self::with(Settings::default()).await
    }

    pub(crate) async fn with(settings: Settings) -> Self {
        Self::with_info(settings, ServerInfo::default()).await
    }

    /// Creates a server with these descriptions.
    pub(crate) async fn with_info(settings: Settings, info: ServerInfo) -> Self {
        let dir = TestDir::new();
        let (users_file, tokens_file) = (dir.path().join("users"), dir.path().join("tokens.toml"));
        users::add(&users_file, "ann", "secret", None).unwrap();
        let token = |name: &str, scopes: &[Scope], mailboxes: &[&str]| {
            let (scopes, mailboxes) = (scopes.iter().copied().collect(), mailboxes.iter().map(ToString::to_string));
            let request =
                RequestedAccess { name: name.to_owned(), scopes, mailboxes: mailboxes.collect(), expires: None };
            tokens::create(&tokens_file, request).unwrap().1
        };
        let reader = token("reader", &[Scope::Read], &[]);
        let writer = token("writer", &[Scope::Write], &[]);
        let admin = token("admin", &[Scope::Admin], &[]);
        let relayer = token("relayer", &[Scope::Relay], &[]);
        let limited = token("limited", &[Scope::Read, Scope::Write, Scope::Admin], &["ci-*"]);
        let auth_settings = restante_auth::Settings {
            users: Some(users_file),
            tokens: Some(tokens_file),
            session_time: std::time::Duration::from_hours(1),
            ..restante_auth::Settings::default()
        };
        let auth = AuthService::open(auth_settings).unwrap();
        let server = TestServer::with_info(Settings { auth: Some(auth.clone()), ..settings }, info);
        server.add_message(0, "test", "Subject: one\r\n\r\nHello\r\n").await;
        server.add_message(1, "ci-1", "Subject: two\r\n\r\nHello\r\n").await;
        Self { server, auth, dir, reader, writer, admin, relayer, limited }
    }

    /// Returns a service with the same users and tokens, and without messages.
    pub(crate) fn service(&self) -> Service {
        let store = Arc::new(MemoryStore::new(Limits::default()));
        let mailroom = Mailroom::new(restante_mailroom::Settings::default(), store, Extensions::default());
        let settings = Settings { auth: Some(self.auth.clone()), ..Settings::default() };
        Service::new(Arc::new(mailroom), settings, ServerInfo::default())
    }

    /// Revokes a token.
    pub(crate) async fn revoke(&self, name: &str) {
        tokens::revoke(&self.dir.path().join("tokens.toml"), name).unwrap();
        self.auth.authenticator.reload().await;
    }
}
