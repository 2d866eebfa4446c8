//! Deletes the mail of leased runs that have expired. Every node does it: deleting twice is harmless.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use restante_auth::runs::{NAME_PREFIX, Run};
use restante_mail::naming::Project;
use restante_store::{MailboxPage, Result};

use crate::retention::{RoundMessages, run_every};
use crate::{DeletionCause, Mailroom};

/// How often runs are checked. The mail of a run is deleted at most about this late.
const ROUND_INTERVAL: Duration = Duration::from_secs(10);
/// The number of mailboxes that are read at once.
const PAGE_SIZE: usize = 500;

impl Mailroom {
    /// Deletes the mail of runs some seconds after they expire, for as long as the future is polled. The name of a run
    /// contains its expiry time, so this includes runs that were leased before the server was restarted.
    pub async fn delete_expired_runs(&self) {
        let messages = RoundMessages {
            resumed: "the mail of expired runs can be deleted again",
            failed: "cannot delete the mail of expired runs, retrying every ten seconds",
        };
        run_every(ROUND_INTERVAL, messages, || self.expire_runs(Timestamp::now())).await;
    }

    /// Deletes the mail of the runs that have expired at this time.
    async fn expire_runs(&self, now: Timestamp) -> Result<()> {
        let mut page = MailboxPage { prefix: NAME_PREFIX.to_owned(), after: String::new(), limit: PAGE_SIZE };
        let mut result = Ok(());
        loop {
            let mailboxes = self.mailboxes(page.clone()).await?;
            let Some(last) = mailboxes.last().map(|mailbox| &mailbox.name) else { return result };
            // The other mailboxes of the last project are skipped: in the order of names, `;` follows `:`.
            page.after = last.project().map_or_else(|| last.to_string(), |project| format!("{project};"));
            let projects: BTreeSet<Project> = mailboxes.iter().filter_map(|mailbox| mailbox.name.project()).collect();
            for run in projects.iter().filter_map(Run::from_name).filter(|run| run.has_expired(now)) {
                match self.purge_project(&run.project, DeletionCause::Age).await {
                    Ok(count) => tracing::debug!(project = %run.project, count, "deleted the mail of an expired run"),
                    // The other runs are deleted all the same.
                    Err(error) => result = Err(error),
                }
            }
        }
    }
}
