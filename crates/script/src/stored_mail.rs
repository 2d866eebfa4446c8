//! The mailroom, for scripts: their threads wait for what the mailroom does in the runtime.

use std::fmt::Display;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use bytes::Bytes;
use restante_mail::message::{MessageId, Source, Summary};
use restante_mail::naming::MailboxName;
use restante_mailroom::{Mailroom, Page, StoreError, Which};
use tokio::runtime::Handle;

use crate::services::Mail;

/// The stored mail, once the mailroom is there.
#[derive(Default)]
pub(crate) struct StoredMail {
    /// The mailroom holds those who take part in its work, so it is not held here.
    place: OnceLock<(Weak<Mailroom>, Handle)>,
}

impl StoredMail {
    /// Shows the way to the mailroom; the first one stays. Called within the runtime.
    pub(crate) fn connect(&self, mailroom: &Arc<Mailroom>) {
        self.place.get_or_init(|| (Arc::downgrade(mailroom), Handle::current()));
    }

    fn mailroom(&self) -> Result<(Arc<Mailroom>, &Handle), String> {
        let (mailroom, runtime) =
            self.place.get().ok_or("the stored mail cannot be reached while the server starts")?;
        let mailroom = mailroom.upgrade().ok_or("the stored mail cannot be reached any more")?;
        Ok((mailroom, runtime))
    }

    /// Waits for what the mailroom does, for as long as the script has time.
    fn wait_for<T>(
        &self,
        patience: Duration,
        act: impl AsyncFnOnce(&Mailroom) -> Result<T, StoreError>,
    ) -> Result<T, String> {
        let (mailroom, runtime) = self.mailroom()?;
        let answer = runtime.block_on(async { tokio::time::timeout(patience, act(&mailroom)).await });
        answer.map_err(|_| "the stored mail did not answer in time".to_owned())?.map_err(sentence)
    }
}

impl Mail for StoredMail {
    fn mailbox(&self, text: &str) -> Result<MailboxName, String> {
        self.mailroom()?.0.mailbox(text).map_err(sentence)
    }

    fn list(
        &self,
        mailbox: &MailboxName,
        after: Option<MessageId>,
        limit: usize,
        patience: Duration,
    ) -> Result<Vec<Summary>, String> {
        let page = Page { limit: Some(limit), before: None, after };
        let listing = self.wait_for(patience, async |mailroom| mailroom.list(mailbox, page).await)?;
        Ok(listing.messages)
    }

    fn find(&self, mailbox: &MailboxName, id: MessageId, patience: Duration) -> Result<Option<Summary>, String> {
        self.wait_for(patience, async |mailroom| mailroom.find(mailbox, Which::Id(id)).await)
    }

    fn latest(&self, mailbox: &MailboxName, patience: Duration) -> Result<Option<Summary>, String> {
        self.wait_for(patience, async |mailroom| mailroom.find(mailbox, Which::Latest).await)
    }

    fn source(&self, mailbox: &MailboxName, id: MessageId, patience: Duration) -> Result<Option<Bytes>, String> {
        let source = self.wait_for(patience, async |mailroom| mailroom.source(mailbox, id).await)?;
        Ok(source.as_ref().map(Source::to_bytes))
    }

    fn delete(&self, mailbox: &MailboxName, id: MessageId, patience: Duration) -> Result<bool, String> {
        self.wait_for(patience, async |mailroom| mailroom.remove(mailbox, id).await)
    }
}

fn sentence(error: impl Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use restante_mail::message::Headline;
    use restante_mailroom::Settings;
    use restante_mailroom::hooks::Extensions;
    use restante_store::memory::MemoryStore;
    use restante_store::{Limits, NewCopy, NewMessage, Store as _};

    use super::*;

    const PATIENCE: Duration = Duration::from_mins(1);

    #[test]
    fn before_it_is_connected_there_is_no_mail() {
        assert!(StoredMail::default().mailbox("bob").unwrap_err().contains("while the server starts"));
    }

    #[tokio::test]
    async fn scripts_list_read_and_delete() {
        let store = Arc::new(MemoryStore::new(Limits::default()));
        for subject in ["one", "two", "three"] {
            let copies = vec![NewCopy { mailbox: "bob".to_owned().into(), trace: Bytes::from_static(b"trace ") }];
            let headline = Headline::new("", [], subject);
            let received = std::time::SystemTime::now().try_into().unwrap();
            let body = Bytes::from_static(b"body");
            store.append(NewMessage { received, headline, body, copies }).await.unwrap();
        }
        let mailroom = Arc::new(Mailroom::new(Settings::default(), store, Extensions::default()));
        let mail = Arc::new(StoredMail::default());
        mail.connect(&mailroom);
        let elsewhere = tokio::task::spawn_blocking(move || {
            let bob = mail.mailbox("Bob@example.com").unwrap();
            let all = mail.list(&bob, None, 10, PATIENCE).unwrap();
            let subjects: Vec<_> = all.iter().map(|summary| summary.headline.subject()).collect();
            assert_eq!(subjects, ["one", "two", "three"]);
            let (first, second) = (all[0].id, all[1].id);
            assert_eq!(mail.list(&bob, Some(first), 1, PATIENCE).unwrap(), [all[1].clone()]);
            assert_eq!(mail.find(&bob, second, PATIENCE).unwrap().as_ref(), Some(&all[1]));
            assert_eq!(mail.latest(&bob, PATIENCE).unwrap().as_ref(), Some(&all[2]));
            assert_eq!(mail.source(&bob, second, PATIENCE).unwrap().unwrap(), "trace body");
            assert!(mail.delete(&bob, second, PATIENCE).unwrap());
            assert!(!mail.delete(&bob, second, PATIENCE).unwrap());
            assert_eq!(mail.find(&bob, second, PATIENCE).unwrap(), None);
            assert_eq!(mail.source(&bob, second, PATIENCE).unwrap(), None);
            mail
        });
        let mail = elsewhere.await.unwrap();
        drop(mailroom);
        assert!(mail.mailbox("bob").unwrap_err().contains("any more"));
    }
}
