//! The script as the server sees it.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use restante_mail::address::Address;
use restante_mail::envelope::Envelope;
use restante_mail::message::Summary;
use restante_mailroom::Mailroom;
use restante_mailroom::hooks::{Hooks, Inbound, Observer, Point, Verdict};

use crate::{Event, Settings};

/// Runs the script for the mailroom.
pub struct Host {}

/// A script that was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// Its file.
    pub path: PathBuf,
    /// The events it has functions for.
    pub handlers: Vec<Event>,
}

/// Why a script cannot be used: a sentence that names file and line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError(pub String);

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ScriptError {}

/// How a call has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The function returned.
    Ok,
    /// It raised an error, or returned something that makes no sense.
    Error,
    /// It took too long, or needed too much memory.
    Limit,
    /// There was no free thread in time, so it was not called.
    Busy,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 4] = [Self::Ok, Self::Error, Self::Limit, Self::Busy];
}

/// What scripts have done since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Whether there is a script.
    pub loaded: bool,
    calls: [[u64; 4]; 5],
    /// Events that wait for `after` hooks.
    pub waiting: u64,
    /// Events that found that queue full.
    pub dropped: u64,
    /// Threads that are busy with a call that nobody waits for any more.
    pub abandoned: u64,
    /// Reloads that worked.
    pub reloads: u64,
    /// Reloads that failed, so that the old script stayed.
    pub failed_reloads: u64,
}

impl Counts {
    /// How many calls for this event have ended so.
    pub fn calls(&self, event: Event, outcome: Outcome) -> u64 {
        self.calls[event as usize][outcome as usize]
    }
}

impl Host {
    /// Loads the script, if there is one. Blocking.
    pub fn start(settings: Settings) -> Result<Arc<Self>, ScriptError> {
        let _ = settings;
        Ok(Arc::new(Self {}))
    }

    /// The script in use; none when there is none.
    pub fn loaded(&self) -> Option<Loaded> {
        None
    }

    /// Gives scripts their way to the stored mail. Called within the runtime.
    pub fn connect(&self, mailroom: &Arc<Mailroom>) {
        let _ = mailroom;
    }

    /// Loads the script again; when that fails, the old one stays. `None` when there is no script, and none was there
    /// before. Blocking.
    pub fn reload(&self) -> Result<Option<Loaded>, ScriptError> {
        Ok(None)
    }

    /// What has happened since the start.
    pub fn counts(&self) -> Counts {
        Counts::default()
    }

    /// Lets the `after` hooks that wait have their turn, as far as there is time. Blocking.
    pub fn end(&self, patience: Duration) {
        let _ = patience;
    }
}

#[async_trait]
impl Hooks for Host {
    fn take_part(&self, _: Point) -> bool {
        false
    }

    async fn before_mail_from_accepted(&self, _: &Envelope) -> Verdict {
        Verdict::Defer
    }

    async fn before_rcpt_to_accepted(&self, _: &Envelope, _: &Address) -> Verdict {
        Verdict::Defer
    }

    async fn before_message_stored(&self, _: &Inbound) -> Option<Inbound> {
        None
    }
}

impl Observer for Host {
    fn message_stored(&self, _: &Summary) {}
    fn message_deleted(&self, _: &Summary) {}
}
