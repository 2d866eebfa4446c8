//! Entries of the relay queue that a grant allows: those of messages in its mailboxes.

use restante_auth::Grant;
use restante_relay::{Entry, EntryFilter, EntryId, Relay};

use crate::response::problem::Problem;
use crate::state::Server;

/// The number of entries that are read at once. Each of them can have many recipients.
const BATCH: usize = 200;
/// The maximum number of entries that one request reads to find those that the client may see.
const MAX_SCANNED_ENTRIES: usize = 20_000;
/// The maximum number of recipients on a page of entries, exceeded by those of the last entry at most. A page that
/// reaches it has fewer entries than requested.
const MAX_PAGE_RECIPIENTS: usize = 10_000;

/// A page of the list of entries.
#[derive(Debug, Default)]
pub(crate) struct RelayPage {
    /// The entries that the grant allows, the newest first.
    pub(crate) entries: Vec<Entry>,
    /// If there may be more entries, they have ids below this one.
    pub(crate) next: Option<EntryId>,
}

impl Server {
    /// Returns the relay, if it is configured.
    pub(crate) fn relay(&self) -> Option<&Relay> {
        self.settings.services.relay.as_deref()
    }

    /// Returns a page of the entries that match the filter and that the grant allows. It can have fewer entries than
    /// requested even if it is not the last one.
    pub(crate) async fn relay_entries(&self, grant: &Grant, mut filter: EntryFilter) -> Result<RelayPage, Problem> {
        let Some(relay) = self.relay() else { return Ok(RelayPage::default()) };
        let (limit, mut page) = (filter.limit, RelayPage::default());
        let (mut scanned, mut recipients, mut permit) = (0, 0, None);
        loop {
            // One more than requested, to know whether this is the last page.
            filter.limit = BATCH.min(limit - page.entries.len() + 1);
            let entries = relay.entries(filter.clone()).await?;
            let is_last = entries.len() < filter.limit;
            scanned += entries.len();
            for entry in entries {
                filter.before = Some(entry.id);
                if !grant.covers(&entry.mailbox) {
                    continue;
                }
                if page.entries.len() >= limit || recipients >= MAX_PAGE_RECIPIENTS {
                    page.next = page.entries.last().map(|last| last.id);
                    return Ok(page);
                }
                recipients += entry.content.recipients.len();
                page.entries.push(entry);
            }
            if is_last {
                return Ok(page);
            }
            if scanned >= MAX_SCANNED_ENTRIES {
                page.next = filter.before;
                return Ok(page);
            }
            self.continue_scan(&mut permit).await?;
        }
    }

    /// Returns an entry that the grant allows.
    pub(crate) async fn relay_entry(&self, grant: &Grant, id: EntryId) -> Result<Entry, Problem> {
        let Some(relay) = self.relay() else { return Err(Problem::NoSuchRelayEntry) };
        let entry = relay.entry(id).await?.filter(|entry| grant.covers(&entry.mailbox));
        entry.ok_or(Problem::NoSuchRelayEntry)
    }

    /// Returns the ids of the entries that the grant allows. The mailbox of an entry does not change, and ids are not
    /// reused, so the entries are still allowed when they are changed.
    pub(crate) async fn permitted_relay_ids(&self, grant: &Grant, ids: Vec<EntryId>) -> Result<Vec<EntryId>, Problem> {
        if grant.covers_all_mailboxes() {
            return Ok(ids);
        }
        let mut permitted = Vec::new();
        for id in ids {
            match self.relay_entry(grant, id).await {
                Ok(entry) => permitted.push(entry.id),
                Err(Problem::NoSuchRelayEntry) => {}
                Err(problem) => return Err(problem),
            }
        }
        Ok(permitted)
    }
}
