//! A server with users, tokens and a journal.

use std::time::Duration;

use restante_auth::tokens::{self, RequestedAccess};
use restante_auth::{AuthService, Scope, users};
use restante_http::Services;
use restante_journal::Journal;
use restante_mailroom::hooks::Observer;
use restante_search::Search;
use restante_testdir::TestDir;

use super::*;

/// A server with user `ann`, whose password is `secret`, and a journal.
pub(crate) struct Accounts {
    pub(crate) server: TestServer,
    pub(crate) state: Arc<Server>,
    pub(crate) journal: Arc<Journal>,
    dir: TestDir,
    pub(crate) auth: Arc<AuthService>,
}

impl Accounts {
    pub(crate) fn new(session_time: Duration) -> Self {
        Self::build(session_time, Services::default())
    }

    /// Creates a server with a search.
    pub(crate) fn with_search() -> Self {
        let search = Some(Arc::new(Search::new(None)));
        Self::build(Duration::from_hours(1), Services { search, ..Services::default() })
    }

    pub(crate) fn build(session_time: Duration, services: Services) -> Self {
        let dir = TestDir::new();
        let (users, tokens) = (dir.path().join("users"), dir.path().join("tokens.toml"));
        users::add(&users, "ann", "secret", None).unwrap();
        let auth_settings = restante_auth::Settings {
            users: Some(users),
            tokens: Some(tokens),
            session_time,
            ..restante_auth::Settings::default()
        };
        let auth = AuthService::open(auth_settings).unwrap();
        let journal = Arc::new(Journal::in_memory(1 << 20));
        let store = Arc::new(MemoryStore::new(Limits::default()));
        let mailroom_settings = restante_mailroom::Settings { domain: "localhost".to_owned(), ..Default::default() };
        let search = services.search.clone();
        let store_observers = search.iter().map(|search| search.clone() as Arc<dyn Observer>).collect();
        let extensions = Extensions { store_observers, ..Extensions::default() };
        let mailroom = Mailroom::new(mailroom_settings, store.clone(), extensions);
        let mailroom = Arc::new(mailroom.with_journal(journal.clone()));
        if let Some(search) = &search {
            search.start(&mailroom);
        }
        let settings = Settings { auth: Some(auth.clone()), max_message_bytes: 1000, services, ..Settings::default() };
        let state = Arc::new(Server::new(mailroom, settings));
        let server = TestServer { store, router: build_router(state.clone()) };
        Self { server, state, journal, dir, auth }
    }

    /// Creates a token with all scopes for these mailboxes, and returns the header with it.
    pub(crate) async fn token(&self, mailboxes: &[&str]) -> String {
        self.token_with(&Scope::ALL, mailboxes).await
    }

    /// Creates a token with these scopes for these mailboxes, and returns the header with it.
    pub(crate) async fn token_with(&self, scopes: &[Scope], mailboxes: &[&str]) -> String {
        let path = self.dir.path().join("tokens.toml");
        let name = tokens::list(&path).unwrap().len().to_string();
        let mailboxes = mailboxes.iter().map(ToString::to_string).collect();
        let request = RequestedAccess { name, scopes: scopes.iter().copied().collect(), mailboxes, expires: None };
        let token = tokens::create(&path, request).unwrap().1;
        self.auth.authenticator.reload().await;
        format!("Authorization: Bearer {token}")
    }

    /// Logs in with the form, and returns the header with the cookie.
    pub(crate) async fn log_in(&self) -> String {
        let request = "POST /login\nContent-Type: application/x-www-form-urlencoded\nOrigin: http://localhost:9000";
        let response = self.server.request_with(request, "user=ann&password=secret", Peer::default()).await;
        let cookie = response.header("set-cookie").split(';').next().unwrap();
        assert!(cookie.starts_with("restante="), "{cookie}");
        format!("Cookie: {cookie}\nOrigin: http://localhost:9000")
    }

    /// Logs out the session of this cookie.
    pub(crate) async fn log_out(&self, cookie: &str) {
        assert_eq!(self.server.request(&format!("POST /logout\n{cookie}")).await.status, StatusCode::SEE_OTHER);
    }
}
