//! A store in trouble: the client gets a plain sentence, and is told whether to come again.

use async_trait::async_trait;
use restante_mail::message::{MessageId, Source, Summary};
use restante_mail::naming::MailboxName;
use restante_store::{Appended, Listing, Page, Result, StoreError, Usage, Version, Which};

use super::*;

/// A store that does nothing but fail.
struct Failing(MakeError);

type MakeError = fn(String) -> StoreError;

impl Failing {
    fn fail<T>(&self) -> Result<T> {
        Err((self.0)("open /secret/path: EIO".to_owned()))
    }
}

#[async_trait]
impl Store for Failing {
    async fn append(&self, _: NewMessage) -> Result<Appended> {
        self.fail()
    }
    async fn version(&self, _: &MailboxName) -> Result<Version> {
        self.fail()
    }
    async fn list(&self, _: &MailboxName, _: Page) -> Result<Listing> {
        self.fail()
    }
    async fn find(&self, _: &MailboxName, _: Which) -> Result<Option<Summary>> {
        self.fail()
    }
    async fn source(&self, _: &MailboxName, _: MessageId) -> Result<Option<Source>> {
        self.fail()
    }
    async fn set_seen(&self, _: &MailboxName, _: MessageId, _: bool) -> Result<bool> {
        self.fail()
    }
    async fn remove(&self, _: &MailboxName, _: MessageId) -> Result<Option<Summary>> {
        self.fail()
    }
    async fn purge(&self, _: &MailboxName) -> Result<Vec<Summary>> {
        self.fail()
    }
    async fn expire(&self, _: Timestamp, _: usize) -> Result<Vec<Summary>> {
        self.fail()
    }
    async fn mailboxes(&self, _: Option<&MailboxName>, _: usize) -> Result<Vec<MailboxName>> {
        self.fail()
    }
    async fn usage(&self) -> Result<Usage> {
        self.fail()
    }
}

#[tokio::test]
async fn a_store_in_trouble_is_503() {
    let table: [(MakeError, &str, &str); 3] = [
        (StoreError::Unavailable, "5", "The store cannot be reached at the moment."),
        (StoreError::NoSpace, "5", "The store is full."),
        (StoreError::Broken, "", "The store could not do its work."),
    ];
    for (error, retry_after, detail) in table {
        let mailroom = Mailroom::new(restante_mailroom::Settings::default(), Arc::new(Failing(error)), None);
        let router = router(Arc::new(mailroom), Settings::default());
        for request in [
            "GET /api/v1/mailbox/test",
            "GET /api/v1/mailbox/test/latest",
            "GET /api/v1/mailbox/test/1/source",
            "GET /mailbox/dattach/test/1/0/x",
            "PATCH /api/v1/mailbox/test/1",
            "DELETE /api/v1/mailbox/test/1",
            "DELETE /api/v1/mailbox/test",
        ] {
            let answer = ask(&router, request, Body::empty(), Peer::default()).await;
            assert_eq!(answer.problem(503), detail, "{request}");
            assert_eq!(answer.header("retry-after"), retry_after, "{request}");
        }
    }
}
