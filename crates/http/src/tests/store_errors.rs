//! A store that fails: the client gets a plain sentence, and learns whether to try again.

use async_trait::async_trait;
use restante_http_core::response::problem::Problem;
use restante_mail::message::{Message, MessageId, Source, Summary};
use restante_mail::naming::{MailboxName, Project};
use restante_store::feed::Feed;
use restante_store::overview::Overview;
use restante_store::{
    AgeRange, Appended, CopyKey, CopyUpdate, Listing, MailboxIndex, MailboxPage, MailboxState, MessageListing,
    MessageSelector, Page, ProjectState, Result, StoreError, UpdateOutcome, Usage, Version,
};

use super::*;

/// A store whose operations all fail, or never return.
pub(super) struct FailingStore {
    error: Option<MakeError>,
    is_shared: bool,
}

type MakeError = fn(String) -> StoreError;

impl FailingStore {
    pub(super) fn with(error: MakeError) -> Self {
        Self { error: Some(error), is_shared: false }
    }

    fn unresponsive() -> Self {
        Self { error: None, is_shared: false }
    }

    async fn fail<T>(&self) -> Result<T> {
        match self.error {
            Some(error) => Err(error("open /secret/path: EIO".to_owned())),
            None => std::future::pending().await,
        }
    }
}

#[async_trait]
impl Store for FailingStore {
    async fn append(&self, _: NewMessage) -> Result<Appended> {
        self.fail().await
    }
    async fn version(&self, _: &MailboxName) -> Result<Version> {
        self.fail().await
    }
    async fn list(&self, _: &MailboxName, _: Page) -> Result<Listing> {
        self.fail().await
    }
    async fn find(&self, _: &MailboxName, _: MessageSelector) -> Result<Option<Summary>> {
        self.fail().await
    }
    async fn source(&self, _: &MailboxName, _: MessageId) -> Result<Option<Source>> {
        self.fail().await
    }
    async fn index(&self, _: &MailboxName, _: MessageId, _: usize) -> Result<MailboxIndex> {
        self.fail().await
    }
    async fn uid_validity(&self) -> Result<u32> {
        self.fail().await
    }
    async fn messages(&self, _: Option<&Project>, _: Page) -> Result<MessageListing> {
        self.fail().await
    }
    async fn find_message(&self, _: MessageSelector) -> Result<Option<Message>> {
        self.fail().await
    }
    async fn oldest(&self, _: AgeRange, _: usize) -> Result<Vec<Summary>> {
        self.fail().await
    }
    async fn store_version(&self) -> Result<Version> {
        self.fail().await
    }
    async fn update_copies(&self, _: Vec<CopyUpdate>) -> Result<Vec<UpdateOutcome>> {
        self.fail().await
    }
    async fn remove_copies(&self, _: Vec<CopyKey>) -> Result<Vec<Summary>> {
        self.fail().await
    }
    async fn remove(&self, _: &MailboxName, _: MessageId) -> Result<Option<Summary>> {
        self.fail().await
    }
    async fn purge(&self, _: &MailboxName, _: MessageId, _: usize) -> Result<Vec<Summary>> {
        self.fail().await
    }
    async fn expire(&self, _: Timestamp, _: usize) -> Result<Vec<Summary>> {
        self.fail().await
    }
    async fn mailboxes(&self, _: MailboxPage) -> Result<Vec<MailboxState>> {
        self.fail().await
    }
    async fn last_id(&self) -> Result<MessageId> {
        self.fail().await
    }
    async fn overview(&self, _: Option<&Project>) -> Result<Overview> {
        self.fail().await
    }
    async fn projects(&self, _: Option<&Project>, _: usize) -> Result<Vec<ProjectState>> {
        self.fail().await
    }
    async fn usage(&self) -> Result<Usage> {
        self.fail().await
    }
    fn feed(&self) -> Option<Feed> {
        self.is_shared.then(|| Feed::new(1).1)
    }
}

#[tokio::test]
async fn store_errors_are_503() {
    let table: [(MakeError, &str, &str); 3] = [
        (StoreError::Unavailable, "5", "The store cannot be reached at the moment."),
        (StoreError::NoSpace, "5", "The store is full."),
        (StoreError::Broken, "", "The store failed."),
    ];
    for (error, retry_after, detail) in table {
        let router = router_with_store(FailingStore::with(error));
        for request in [
            "GET /api/v1/mailbox/test",
            "GET /api/v1/mailbox/test/latest",
            "GET /api/v1/mailbox/test/1/source",
            "GET /mailbox/dattach/test/1/0/x",
            "GET /api/v2/mailboxes",
            "GET /api/v2/messages",
            "GET /api/v2/messages?before=9&limit=1",
            "GET /api/v2/messages/latest",
            "GET /api/v2/messages/1",
            "GET /api/v2/messages/1/source",
            "GET /api/v2/messages/1/links",
            "GET /api/v2/wait?timeout=0",
            "DELETE /api/v2/messages/1",
            "DELETE /api/v2/messages?q=x",
            "PATCH /api/v1/mailbox/test/1",
            "DELETE /api/v1/mailbox/test/1",
            "DELETE /api/v1/mailbox/test",
            "GET /readyz",
        ] {
            let response = send_request(&router, request, Body::empty(), Peer::default()).await;
            assert_eq!(response.problem(503), detail, "{request}");
            assert_eq!(response.header("retry-after"), retry_after, "{request}");
        }
    }
}

/// A problem that must be logged is an extension of the response.
#[tokio::test]
async fn readiness_does_not_log_shared_store_errors() {
    for (is_shared, path, is_logged) in [
        (false, "/api/v1/mailbox/test", true),
        (false, "/readyz", true),
        (true, "/api/v1/mailbox/test", true),
        (true, "/readyz", false),
    ] {
        let router = router_with_store(FailingStore { is_shared, ..FailingStore::with(StoreError::Unavailable) });
        let request = Request::get(path).header("Host", "localhost").body(Body::empty()).expect("a request");
        let response = router.oneshot(request).await.expect("a response");
        assert_eq!(response.status(), 503, "{path}");
        assert_eq!(response.extensions().get::<Arc<Problem>>().is_some(), is_logged, "{path}, shared: {is_shared}");
    }
}

#[tokio::test(start_paused = true)]
async fn unresponsive_store_is_not_ready() {
    let router = router_with_store(FailingStore::unresponsive());
    let response = send_request(&router, "GET /readyz", Body::empty(), Peer::default()).await;
    assert_eq!(response.problem(503), "The store cannot be reached at the moment.");
    assert_eq!(send_request(&router, "GET /livez", Body::empty(), Peer::default()).await.status, 200);
}

#[tokio::test]
async fn server_in_shutdown_is_live_but_not_ready() {
    let settings = Settings::default();
    let readiness = settings.readiness.clone();
    let server = TestServer::with(settings);
    assert_eq!(server.request("GET /readyz").await.text(), "ok\n");
    readiness.start_shutdown();
    assert_eq!(server.request("GET /readyz").await.problem(503), "The server is shutting down.");
    assert_eq!(server.request("GET /livez").await.text(), "ok\n");
}

#[tokio::test(start_paused = true)]
async fn metrics_omit_unknown_store_values() {
    for store in [FailingStore::unresponsive(), FailingStore::with(StoreError::Unavailable)] {
        let router = router_with_store(store);
        let response = send_request(&router, "GET /metrics", Body::empty(), Peer::default()).await;
        assert_eq!(response.status, 200);
        assert!(response.text().contains("\nrestante_store_up 0\n"), "{}", response.text());
        assert!(!response.text().contains("restante_store_messages"), "{}", response.text());
        assert_eq!(send_request(&router, "GET /debug/vars", Body::empty(), Peer::default()).await.status, 200);
    }
}

pub(super) fn router_with_store(store: FailingStore) -> Router {
    let mailroom = Mailroom::new(restante_mailroom::Settings::default(), Arc::new(store), Extensions::default());
    router(Arc::new(mailroom), Settings { max_message_bytes: 1 << 20, ..Settings::default() })
}

/// Monitoring is needed most when the server is busy.
#[tokio::test(start_paused = true)]
async fn monitoring_does_not_wait_for_work_permits() {
    let store = Arc::new(MemoryStore::new(Limits::default()));
    let mailroom = Mailroom::new(restante_mailroom::Settings::default(), store, Extensions::default());
    let server = Arc::new(Server::new(Arc::new(mailroom), Settings::default()));
    let permits = u32::try_from(server.renderer.work_permits.available_permits()).unwrap();
    let _all = server.renderer.work_permits.clone().acquire_many_owned(permits).await.unwrap();
    let router = build_router(server);
    for path in ["/livez", "/readyz", "/metrics", "/debug/vars", "/serve/status"] {
        let request = format!("GET {path}");
        let response = send_request(&router, &request, Body::empty(), Peer::default());
        let response = tokio::time::timeout(std::time::Duration::from_mins(1), response).await;
        assert_eq!(response.unwrap_or_else(|_| panic!("{path} waits")).status, 200, "{path}");
    }
}
