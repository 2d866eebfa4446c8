//! Those who take part in the mailroom's work without belonging to it: the script, the webhooks and the search. They are started, put
//! in touch with the mailroom, reloaded and ended here; what they do is their own business.

use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use restante_mailroom::Mailroom;
use restante_mailroom::hooks::{self, Hooks, Observer};
use restante_script::{Host, LoadedScript, ScriptError};
use restante_search::Search;
use restante_settings::Config;
use restante_webhook::Webhooks;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use crate::script;

/// How long the script may take to end, however much time there is.
const SCRIPT_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// How much of the time that there is belongs to the webhooks, however long the script takes.
const RESERVED_FOR_WEBHOOKS: Duration = Duration::from_secs(1);
/// How long the search index may take to end. What it lacks then is added at the next start.
const SEARCH_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);
/// How much longer one is waited for that does not keep to its time.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);

/// The script, the webhooks and the search of a server; by default it has none.
#[derive(Default)]
pub struct Extensions {
    script: Option<Arc<Host>>,
    /// Where the script is looked for.
    script_paths: Vec<PathBuf>,
    webhooks: Option<Arc<Webhooks>>,
    search: Option<Arc<Search>>,
    /// Remembers one wish to reload, however many there are.
    reload_requested: Notify,
}

impl Extensions {
    /// With a script that is still to be loaded.
    pub fn with_script(config: &Config) -> Self {
        let (host, script_paths) = (Host::new(script::settings(config)), config.scripting.paths.clone());
        Self { script: Some(host), script_paths, ..Self::default() }
    }

    /// Loads the script, if there is one, and tells of it. This may take as long as one call of the script; who does not
    /// wait for the end of it leaves a thread behind.
    pub async fn load_script(&self) -> Result<(), ScriptError> {
        let Some(host) = self.script.clone() else { return Ok(()) };
        // Nobody cancels it, so it can only have failed by a fault of the program, which is one here as well.
        let result =
            spawn_blocking(move || host.load()).await.unwrap_or_else(|error| resume_unwind(error.into_panic()));
        match (result?, are_default_paths(&self.script_paths)) {
            (Some(loaded), _) => {
                tracing::info!("{}", describe_script(&loaded));
                self.warn_about_ignored(&loaded);
            }
            // Who names files means one of them. The usual ones are only where one might be.
            (None, false) if !self.script_paths.is_empty() => {
                tracing::info!("there is no script: no such file: {}", join_paths(&self.script_paths));
            }
            (None, _) => tracing::debug!("there is no script"),
        }
        Ok(())
    }

    /// Starts the webhooks, if there are any. They keep what waits in the data directory, so the store must be open. The error is
    /// a sentence for the operator.
    pub fn add_webhooks(&mut self, config: &Config) -> Result<(), String> {
        let webhooks = config.webhooks.clone();
        if webhooks.targets.is_empty() {
            return Ok(());
        }
        let settings = restante_webhook::Settings {
            targets: webhooks.targets,
            secret: webhooks.secret,
            private_addresses: webhooks.private_addresses,
            timeout: webhooks.timeout,
            give_up_after: webhooks.give_up_after,
            max_queued: webhooks.queue,
            directory: config.storage.path.clone(),
        };
        let webhooks = Webhooks::start(settings)?;
        tracing::info!("webhooks that are told of mail: {}", webhooks.target_count());
        self.webhooks = Some(webhooks);
        Ok(())
    }

    /// Adds the search, or removes what is left of one that is no longer wanted. Its index is in the data directory, so the store
    /// must be open.
    pub fn add_search(&mut self, config: &Config) {
        let directory = config.storage.path.clone();
        if config.search.enabled {
            self.search = Some(Arc::new(Search::new(directory)));
        } else if let Some(directory) = directory {
            Search::delete_index(&directory);
        }
    }

    /// What the mailroom has to know of them.
    pub fn for_mailroom(&self) -> hooks::Extensions {
        let hooks = self.script.clone().map(|host| host as Arc<dyn Hooks>);
        let script = self.script.clone().map(|host| host as Arc<dyn Observer>);
        let webhooks = self.webhooks.clone().map(|webhooks| webhooks as Arc<dyn Observer>);
        let search = self.search.clone().map(|search| search as Arc<dyn Observer>);
        let observers = script.into_iter().chain(webhooks).collect();
        hooks::Extensions { hooks, node_observers: observers, store_observers: search.into_iter().collect() }
    }

    /// Puts them in touch with the mailroom, before mail arrives.
    pub async fn connect(&self, mailroom: &Arc<Mailroom>) {
        if let Some(host) = &self.script {
            host.connect(mailroom);
        }
        if let Some(webhooks) = self.webhooks.clone() {
            webhooks.activate(mailroom).await;
            let mailroom = mailroom.clone();
            // That may take its time, in which mail arrives, or somebody wants to end the server.
            tokio::spawn(async move { webhooks.catch_up(&mailroom).await });
        }
        if let Some(search) = &self.search {
            search.start(mailroom);
        }
    }

    /// Wants the script to be loaded again. While it is being loaded, that happens once more, however often it is wanted.
    pub fn request_reload(&self) {
        self.reload_requested.notify_one();
    }

    /// Loads the script again whenever that is wanted, and tells what has become of it. Never ends: a script may take its
    /// time, and the server does other things meanwhile.
    pub async fn reload_on_request(self: Arc<Self>) {
        let Some(host) = &self.script else { return };
        loop {
            self.reload_requested.notified().await;
            let host = host.clone();
            match spawn_blocking(move || host.reload()).await {
                Ok(Ok(Some(loaded))) => {
                    tracing::info!("reloaded {}", describe_script(&loaded));
                    self.warn_about_ignored(&loaded);
                }
                Ok(Ok(None)) => tracing::debug!("there is no script"),
                Ok(Err(problem)) => tracing::error!(%problem, "the script stays as it was"),
                Err(error) => tracing::error!(%error, "the script stays as it was"),
            }
        }
    }

    /// Ends them, one after the other: what waits has its turn as far as there is time, and what the script does last is
    /// something that webhooks are told of. It is not `in_good_order` when mail may still be under way.
    pub async fn shut_down(&self, patience: Duration, in_good_order: bool) {
        let begun = Instant::now();
        if let Some(host) = self.script.clone() {
            let patience = patience.saturating_sub(RESERVED_FOR_WEBHOOKS).min(SCRIPT_SHUTDOWN_TIMEOUT);
            wait_for_shutdown("script", patience, spawn_blocking(move || host.shut_down(patience))).await;
        }
        if let Some(webhooks) = self.webhooks.clone() {
            let patience = patience.saturating_sub(begun.elapsed());
            wait_for_shutdown(
                "webhooks",
                patience,
                spawn_blocking(move || webhooks.shut_down(patience, in_good_order)),
            )
            .await;
        }
        if let Some(search) = self.search.clone() {
            let patience = patience.saturating_sub(begun.elapsed()).min(SEARCH_SHUTDOWN_TIMEOUT);
            wait_for_shutdown("search", patience, spawn_blocking(move || search.shut_down(patience, in_good_order)))
                .await;
        }
    }

    /// Nobody waits for the script any longer: it is told of nothing more, its calls that go on do not reach the mail, and
    /// its commands are ended.
    pub fn abort_script(&self) {
        if let Some(host) = &self.script {
            host.shut_down(Duration::ZERO);
        }
    }

    /// Of the usual files there should be only one. Who lists files says which one goes first.
    fn warn_about_ignored(&self, loaded: &LoadedScript) {
        if !are_default_paths(&self.script_paths) {
            return;
        }
        for ignored in self.script_paths.iter().filter(|path| **path != loaded.path && path.is_file()) {
            let (script, ignored) = (loaded.path.display(), ignored.display());
            tracing::warn!(%script, %ignored, "there are two scripts; one is ignored");
        }
    }

    /// Returns what the HTTP service shows and uses of them.
    pub fn for_http(&self) -> restante_http::Extensions {
        restante_http::Extensions {
            script: self.script.clone(),
            webhooks: self.webhooks.clone(),
            search: self.search.clone(),
        }
    }
}

/// Waits for an end, a little longer than it should take.
async fn wait_for_shutdown(who: &str, patience: Duration, ending: JoinHandle<()>) {
    match timeout(patience + SHUTDOWN_GRACE, ending).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, "{who} did not end well"),
        Err(_) => tracing::warn!("{who} did not end in time, and what was under way is cut off"),
    }
}

/// A script in one line: its file, and what it takes part in.
fn describe_script(LoadedScript { path, handlers }: &LoadedScript) -> String {
    let names: Vec<&str> = handlers.iter().map(|event| event.name()).collect();
    let names = if names.is_empty() { "no handlers".to_owned() } else { names.join(", ") };
    format!("script {}: {names}", path.display())
}

/// Whether a script is looked for where it is when nobody says where.
fn are_default_paths(paths: &[PathBuf]) -> bool {
    paths == Config::default().scripting.paths
}

fn join_paths(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    paths.join(", ")
}

#[cfg(test)]
mod tests {
    use restante_script::Event;

    use super::*;

    #[test]
    fn scripts_in_one_line() {
        let mut loaded =
            LoadedScript { path: "conf/rules.lua".into(), handlers: vec![Event::MailFrom, Event::AfterStored] };
        assert_eq!(describe_script(&loaded), "script conf/rules.lua: before.mail_from_accepted, after.message_stored");
        loaded.handlers.clear();
        assert_eq!(describe_script(&loaded), "script conf/rules.lua: no handlers");
    }
}
