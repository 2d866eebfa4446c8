//! The mailboxes that a grant allows.

use restante_auth::Grant;
use restante_http_connection::work::WorkPermit;
use restante_mail::naming::Project;
use restante_store::{MailboxPage, MailboxState};
use tokio::task::yield_now;

use crate::messages::Messages;
use crate::response::problem::Problem;

/// The number of mailboxes that are read at once if the client may not see all of them.
const SCAN_BATCH: usize = 1000;

impl Messages {
    /// Calls `visit` with every mailbox that the grant allows, ascending by name. Only one request at a time reads more
    /// than one batch.
    pub async fn visit_mailboxes(&self, grant: &Grant, mut visit: impl FnMut(MailboxState)) -> Result<(), Problem> {
        let (mut page, mut permit) = (MailboxPage { limit: SCAN_BATCH, ..MailboxPage::ALL }, None);
        loop {
            let mailboxes = self.scan_mailboxes(grant, &page, page.limit, &mut permit).await?;
            let last =
                mailboxes.last().filter(|_| mailboxes.len() >= page.limit).map(|last| last.name.shown().to_owned());
            mailboxes.into_iter().for_each(&mut visit);
            let Some(last) = last else { return Ok(()) };
            page.after = last;
            self.continue_scan(&mut permit).await?;
        }
    }

    /// Returns the first mailboxes of a page that the grant allows, at most `limit`. Ignores the limit of the page. Its names,
    /// and those that are returned, are relative to the home of the grant.
    ///
    /// Reads only names that begin with the literal prefix of a pattern of the grant. If most of these do not match, as
    /// with `*-ci`, all of them are read, in steps. Only one request at a time does that. `permit` is acquired for the
    /// second batch, unless the caller has it.
    pub async fn scan_mailboxes(
        &self,
        grant: &Grant,
        page: &MailboxPage,
        limit: usize,
        permit: &mut Option<WorkPermit>,
    ) -> Result<Vec<MailboxState>, Problem> {
        let step = if grant.covers_all_mailboxes() { limit } else { limit.max(SCAN_BATCH) };
        let mut found = Vec::new();
        let home = grant.home().map(Project::prefix).unwrap_or_default();
        let (page_prefix, after) = (format!("{home}{}", page.prefix), format!("{home}{}", page.after));
        for prefix in grant.prefixes() {
            let prefix = match (prefix.starts_with(&page_prefix), page_prefix.starts_with(&prefix)) {
                (true, _) => prefix,
                (false, true) => page_prefix.clone(),
                (false, false) => continue,
            };
            let mut part = MailboxPage { prefix, after: after.clone(), limit: step };
            loop {
                let mailboxes = self.mailroom.mailboxes(part.clone()).await?;
                let last = mailboxes.last().filter(|_| mailboxes.len() >= step).map(|last| last.name.to_string());
                let permitted = mailboxes.into_iter().filter(|mailbox| grant.covers(&mailbox.name));
                found.extend(
                    permitted.map(|state| MailboxState { name: state.name.relative_to(grant.home()), ..state }),
                );
                if found.len() >= limit {
                    found.truncate(limit);
                    return Ok(found);
                }
                let Some(last) = last else { break };
                part.after = last;
                self.continue_scan(permit).await?;
            }
        }
        Ok(found)
    }

    /// Acquires the permit to read further batches, unless the caller has it, and yields to other tasks: a memory store
    /// returns without doing so.
    pub async fn continue_scan(&self, permit: &mut Option<WorkPermit>) -> Result<(), Problem> {
        if permit.is_none() {
            *permit = Some(WorkPermit::acquire(&self.scan_permits).await?);
        }
        yield_now().await;
        Ok(())
    }
}
