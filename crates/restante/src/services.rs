//! The optional services: the script, the webhooks, the relay and the search. They are started, connected to the mailroom,
//! reloaded and shut down here.

use std::panic::resume_unwind;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use restante_http::Services;
use restante_mailroom::Mailroom;
use restante_mailroom::hooks::{self, Hooks, Observer};
use restante_relay::Relay;
use restante_script::{Host, LoadedScript, ScriptError};
use restante_search::Search;
use restante_settings::Config;
use restante_webhook::Webhooks;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use crate::process::SLOW_SHUTDOWN_INTERVAL;
use crate::script;
use crate::script_relay::ScriptRelay;
use crate::storage::{self, OpenedStore};

/// The maximum time for the shutdown of the script.
const SCRIPT_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// The part of the shutdown time that is reserved for the webhooks.
const RESERVED_FOR_WEBHOOKS: Duration = Duration::from_secs(1);
/// The maximum time for the shutdown of the relay. Messages that are still being sent then are sent again.
const RELAY_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum time for the shutdown of the search. The next start adds what the index lacks then.
const SEARCH_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);
/// How much longer than its time limit a service is waited for.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);

/// The optional services of a server, and what is needed to start and stop them.
#[derive(Default)]
pub struct ManagedServices {
    /// The services.
    pub services: Services,
    /// The paths where the script may be.
    script_paths: Vec<PathBuf>,
    /// Stores one request to reload, however many there are.
    reload_requested: Notify,
}

impl ManagedServices {
    /// Creates the services with a script that is not loaded yet.
    pub fn with_script(config: &Config) -> Self {
        let (host, script_paths) = (Host::new(script::settings(config)), config.scripting.paths.clone());
        let services = Services { script: Some(host), ..Services::default() };
        Self { services, script_paths, ..Self::default() }
    }

    /// Loads the script, if there is one, and logs it. This may take as long as one call of the script. If the future
    /// is dropped, the loading continues on its thread.
    pub async fn load_script(&self) -> Result<(), ScriptError> {
        let Some(host) = self.services.script.clone() else { return Ok(()) };
        let result = if host.has_file() {
            // The task is not cancelled, so an error is a panic, which is propagated.
            spawn_blocking(move || host.load()).await.unwrap_or_else(|error| resume_unwind(error.into_panic()))
        } else {
            // Waiting for a new thread would delay the start on a busy machine.
            Ok(None)
        };
        if let Err(error) = &result
            && error.is_untrusted()
        {
            warn_about_untrusted(error);
            return Ok(());
        }
        match (result?, are_default_paths(&self.script_paths)) {
            (Some(loaded), _) => {
                tracing::info!("{}", describe_script(&loaded));
                self.warn_about_ignored(&loaded);
            }
            // Configured files are expected to exist. The default ones are optional.
            (None, false) if !self.script_paths.is_empty() => {
                tracing::info!("no script is loaded, none of these files exists: {}", join_paths(&self.script_paths));
            }
            (None, _) => tracing::debug!("no script is loaded"),
        }
        Ok(())
    }

    /// Creates the webhooks, if there are any. Their queue is next to the messages, so the store must be open. The error is a
    /// sentence for the operator.
    pub async fn add_webhooks(&mut self, config: &Config, opened: &OpenedStore) -> Result<(), String> {
        if config.webhooks.targets.is_empty() {
            return Ok(());
        }
        let (queue, is_durable) = storage::open_webhook_queue(config, opened).await?;
        let settings = restante_webhook::Settings { is_durable, ..config.webhooks.clone() };
        let webhooks = Webhooks::new(settings, queue).await?;
        tracing::info!("webhooks started: {}", webhooks.target_count());
        self.services.webhooks = Some(webhooks);
        Ok(())
    }

    /// Creates the relay, if there is a target, or if entries of an earlier configuration wait, so that they can be seen
    /// and cancelled. Otherwise ends the forwarding of an earlier configuration. Its queue is next to the messages, so the
    /// store must be open. The error is a sentence for the operator.
    pub async fn add_relay(&mut self, config: &Config, opened: &OpenedStore) -> Result<(), String> {
        let queue = if config.relay.targets.is_empty() {
            match storage::end_forwarding(config, opened).await {
                Ok(Some(queue)) => queue,
                Ok(None) => return Ok(()),
                Err(error) => {
                    tracing::error!(
                        "messages that arrive now may be forwarded when the relay is configured again: {error}"
                    );
                    return Ok(());
                }
            }
        } else {
            storage::open_relay_queue(config, opened).await?
        };
        let relay = Relay::new(config.relay.clone(), queue);
        let (targets, rules) = (relay.targets().len(), relay.rule_count());
        tracing::info!("relay started: targets={targets} forward_rules={rules}");
        self.services.relay = Some(relay);
        Ok(())
    }

    /// Creates the search, or deletes the index if the search is disabled. The index is in the data directory, so the
    /// store must be open.
    pub fn add_search(&mut self, config: &Config) {
        let directory = config.storage.path.clone();
        if config.search.enabled {
            self.services.search = Some(Arc::new(Search::new(directory)));
        } else if let Some(directory) = directory {
            Search::delete_index(&directory);
        }
    }

    /// Returns the hooks and observers of the mailroom.
    pub fn for_mailroom(&self) -> hooks::Extensions {
        let hooks = self.services.script.clone().map(|host| host as Arc<dyn Hooks>);
        let script = self.services.script.clone().map(|host| host as Arc<dyn Observer>);
        let webhooks = self.services.webhooks.clone().map(|webhooks| webhooks as Arc<dyn Observer>);
        let search = self.services.search.clone().map(|search| search as Arc<dyn Observer>);
        let relay = self.services.relay.clone().map(|relay| relay as Arc<dyn Observer>);
        hooks::Extensions {
            hooks,
            node_observers: script.into_iter().chain(webhooks).collect(),
            store_observers: search.into_iter().chain(relay).collect(),
        }
    }

    /// Connects the services to the mailroom, and ends the webhooks of an earlier configuration if there are none now. Call
    /// it before messages arrive, when nothing else can prevent the start. The error is a sentence for the operator.
    pub async fn connect(&self, config: &Config, opened: &OpenedStore, mailroom: &Arc<Mailroom>) -> Result<(), String> {
        if let Some(host) = &self.services.script {
            host.connect(mailroom);
        }
        if let Some(webhooks) = &self.services.webhooks {
            webhooks.activate(mailroom).await?;
        } else {
            match storage::end_webhooks(config, opened).await {
                Ok(0) => {}
                Ok(events) => tracing::warn!(events, "dropped events for webhooks that are no longer configured"),
                Err(error) => {
                    tracing::error!("earlier events may be sent when webhooks are configured again: {error}");
                }
            }
        }
        if let Some(relay) = &self.services.relay {
            relay.start(mailroom).await?;
            if let Some(host) = &self.services.script {
                host.connect_relay(Arc::new(ScriptRelay(relay.clone())));
            }
        }
        if let Some(search) = &self.services.search {
            search.start(mailroom);
        }
        Ok(())
    }

    /// Requests a reload of the script. Several requests during a reload cause one more.
    pub fn request_reload(&self) {
        self.reload_requested.notify_one();
    }

    /// Reloads the script at every request and logs the result. Runs until the server stops, in its own task, because
    /// loading may take a while.
    pub async fn reload_on_request(self: Arc<Self>) {
        let Some(host) = &self.services.script else { return };
        loop {
            self.reload_requested.notified().await;
            let host = host.clone();
            match spawn_blocking(move || host.reload()).await {
                Ok(Ok(Some(loaded))) => {
                    tracing::info!("reloaded {}", describe_script(&loaded));
                    self.warn_about_ignored(&loaded);
                }
                Ok(Ok(None)) => tracing::debug!("no script is loaded"),
                Ok(Err(error)) if error.is_untrusted() && !self.has_script() => warn_about_untrusted(&error),
                Ok(Err(error)) => tracing::error!(%error, "cannot reload the script, still using the old one"),
                Err(error) => tracing::error!(%error, "cannot reload the script, still using the old one"),
            }
        }
    }

    /// Shuts down the services one after another, within the time limit: webhooks still receive the events of the
    /// script. `is_clean` is false if messages may still be on their way.
    pub async fn shut_down(&self, time_limit: Duration, is_clean: bool) {
        let started = Instant::now();
        if let Some(host) = self.services.script.clone() {
            let time_limit = time_limit.saturating_sub(RESERVED_FOR_WEBHOOKS).min(SCRIPT_SHUTDOWN_TIMEOUT);
            wait_for_shutdown("script", time_limit, spawn_blocking(move || host.shut_down(time_limit))).await;
        }
        if let Some(relay) = self.services.relay.clone() {
            let time_left = time_limit.saturating_sub(started.elapsed() + RESERVED_FOR_WEBHOOKS);
            let time_limit = time_left.min(RELAY_SHUTDOWN_TIMEOUT);
            wait_for_shutdown("relay", time_limit, spawn_blocking(move || relay.shut_down(time_limit))).await;
        }
        if let Some(webhooks) = self.services.webhooks.clone() {
            let time_limit = time_limit.saturating_sub(started.elapsed());
            wait_for_shutdown("webhooks", time_limit, spawn_blocking(move || webhooks.shut_down(time_limit, is_clean)))
                .await;
        }
        if let Some(search) = self.services.search.clone() {
            let time_limit = time_limit.saturating_sub(started.elapsed()).min(SEARCH_SHUTDOWN_TIMEOUT);
            wait_for_shutdown("search", time_limit, spawn_blocking(move || search.shut_down(time_limit, is_clean)))
                .await;
        }
    }

    /// Aborts the script: it receives no more events, running calls cannot access messages any more, and its commands
    /// are terminated.
    pub fn abort_script(&self) {
        if let Some(host) = &self.services.script {
            host.shut_down(Duration::ZERO);
        }
    }

    fn has_script(&self) -> bool {
        self.services.script.as_ref().is_some_and(|host| host.loaded().is_some())
    }

    /// Of the default files only one should exist. A configured list defines the order.
    fn warn_about_ignored(&self, loaded: &LoadedScript) {
        if !are_default_paths(&self.script_paths) {
            return;
        }
        for ignored in self.script_paths.iter().filter(|path| **path != loaded.path && path.is_file()) {
            let (script, ignored) = (loaded.path.display(), ignored.display());
            tracing::warn!(%script, %ignored, "there are two scripts, one is ignored");
        }
    }
}

/// Waits for the end of a shutdown, a little longer than its time limit. Logs if it is slow.
async fn wait_for_shutdown(name: &str, time_limit: Duration, shutdown: JoinHandle<()>) {
    let mut shutdown = pin!(timeout(time_limit + SHUTDOWN_GRACE, shutdown));
    let ended = if let Ok(ended) = timeout(SLOW_SHUTDOWN_INTERVAL, &mut shutdown).await {
        ended
    } else {
        let left = (time_limit + SHUTDOWN_GRACE).saturating_sub(SLOW_SHUTDOWN_INTERVAL).as_secs();
        if left > 0 {
            tracing::info!(
                "still shutting down: waiting for the {name}, at most {left} s; another signal ends it at once"
            );
        }
        shutdown.await
    };
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, "{name} failed to shut down"),
        Err(_) => tracing::warn!("{name} did not shut down in time, unfinished work is aborted"),
    }
}

/// Returns a description of a script: its file and its handlers.
fn describe_script(LoadedScript { path, handlers }: &LoadedScript) -> String {
    let names: Vec<&str> = handlers.iter().map(|event| event.name()).collect();
    let names = if names.is_empty() { "no handlers".to_owned() } else { names.join(", ") };
    format!("script {}: {names}", path.display())
}

/// Warns that a file that no setting names is not loaded.
fn warn_about_untrusted(error: &ScriptError) {
    tracing::warn!("no script is loaded: {error}. If you trust it, set lua.path to its name.");
}

/// Returns true if the paths are the default ones.
fn are_default_paths(paths: &[PathBuf]) -> bool {
    paths == Config::default().scripting.paths
}

fn join_paths(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    paths.join(", ")
}

#[cfg(test)]
mod tests {
    use restante_script::ScriptEvent;

    use super::*;

    #[test]
    fn describes_scripts() {
        let mut loaded = LoadedScript {
            path: "conf/rules.lua".into(),
            handlers: vec![ScriptEvent::MailFrom, ScriptEvent::AfterStored],
        };
        assert_eq!(describe_script(&loaded), "script conf/rules.lua: before.mail_from_accepted, after.message_stored");
        loaded.handlers.clear();
        assert_eq!(describe_script(&loaded), "script conf/rules.lua: no handlers");
    }
}
