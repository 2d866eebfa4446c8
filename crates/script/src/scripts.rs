//! The script in use: finds it, loads it and replaces it while calls are running. Each script has a generation number,
//! by which workers notice that their state is outdated.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use parking_lot::{Mutex, RwLock};
use restante_http_client::{BodyMode, ClientPolicy, HttpClient};

use crate::Settings;
use crate::commands::Commands;
use crate::engine::{Engine, Program};
use crate::event::ScriptEvent;
use crate::limits::{THREAD_STACK_BYTES, TIMEOUT_GRACE};
use crate::loaded::{LoadedScript, ScriptError};
use crate::log::ScriptLog;
use crate::modules::SharedDict;
use crate::services::{Services, SystemClock};
use crate::stored_mail::StoredMail;

/// The maximum size of an HTTP response. Until it is copied into the Lua state, its memory limit does not cover it.
const MAX_RESPONSE_BYTES: u64 = 16 * 1024 * 1024;

/// The maximum number of redirects of a request.
const MAX_REDIRECTS: u32 = 10;

/// The maximum number of abandoned loads.
const MAX_ABANDONED_LOADS: usize = 4;

/// The script in use, and everything needed to load the next one.
pub(crate) struct Scripts {
    settings: Settings,
    pub(crate) mail: Arc<StoredMail>,
    /// Created when the first script is loaded.
    http: OnceLock<Arc<HttpClient>>,
    commands: Arc<Commands>,
    /// The data that scripts share between calls and reloads.
    shared: Arc<SharedDict>,
    current: RwLock<Option<Arc<Script>>>,
    /// The generation of the current script; zero if there is none.
    generation: AtomicU64,
    /// One bit for each event that the current script has a function for.
    handlers: AtomicU8,
    /// Threads that did not finish loading in time.
    abandoned_loads: Mutex<Vec<JoinHandle<()>>>,
    /// Held while a script is loaded.
    load_lock: Mutex<()>,
}

/// A script that was loaded successfully.
struct Script {
    loaded: LoadedScript,
    program: Program,
    generation: u64,
    /// The state in which the script was loaded. The first worker takes it.
    first_engine: Mutex<Option<Engine>>,
}

/// A Lua state and the generation of its script.
pub(crate) struct ScriptState {
    pub(crate) engine: Engine,
    generation: u64,
}

/// Loads a script as the server would and returns the events that it has functions for. Blocks.
pub fn check(path: &Path, settings: &Settings) -> Result<LoadedScript, ScriptError> {
    let (_, engine) = Scripts::new(settings.clone()).load_in_thread(path)?;
    Ok(LoadedScript { path: path.to_owned(), handlers: engine.handlers() })
}

impl Scripts {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            mail: Arc::new(StoredMail::new(settings.naming)),
            settings,
            http: OnceLock::new(),
            commands: Arc::default(),
            shared: Arc::new(SharedDict::new()),
            current: RwLock::default(),
            generation: AtomicU64::new(0),
            handlers: AtomicU8::new(0),
            abandoned_loads: Mutex::default(),
            load_lock: Mutex::default(),
        }
    }

    /// Takes access to stored messages away from running calls, and kills their commands.
    pub(crate) fn disconnect(&self) {
        self.mail.disconnect();
        self.commands.kill_all();
    }

    /// Returns whether the script has a function for `event`.
    pub(crate) fn handles(&self, event: ScriptEvent) -> bool {
        self.handlers.load(Ordering::Relaxed) & event_bit(event) != 0
    }

    pub(crate) fn is_loaded(&self) -> bool {
        self.generation.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn loaded(&self) -> Option<LoadedScript> {
        self.current().map(|script| script.loaded.clone())
    }

    /// Returns the number of abandoned loads that are still running.
    pub(crate) fn abandoned_loads(&self) -> usize {
        let mut loads = self.abandoned_loads.lock();
        loads.retain(|load| !load.is_finished());
        loads.len()
    }

    /// Returns true if there is a file to load.
    pub(crate) fn has_file(&self) -> bool {
        find_script(&self.settings.paths).is_some()
    }

    /// Loads the script file. If that fails, the previous script stays in use.
    pub(crate) fn load(&self) -> Result<Option<LoadedScript>, ScriptError> {
        let _guard = self.load_lock.lock();
        let previous = self.loaded();
        let Some(path) = find_script(&self.settings.paths) else {
            return match previous {
                Some(previous) => {
                    Err(ScriptError::permanent(format!("{}: the file no longer exists", previous.path.display())))
                }
                None => Ok(None),
            };
        };
        let (program, engine) = self.load_in_thread(path)?;
        let loaded = LoadedScript { path: path.to_owned(), handlers: engine.handlers() };
        let generation = self.generation.load(Ordering::Relaxed) + 1;
        let first_engine = Mutex::new(Some(engine));
        let script = Arc::new(Script { loaded: loaded.clone(), program, generation, first_engine });
        let replaced = self.current.write().replace(script);
        self.handlers.store(loaded.handlers.iter().copied().map(event_bit).sum(), Ordering::Relaxed);
        // A thread that reads the new generation finds the new script.
        self.generation.store(generation, Ordering::Release);
        // Dropping a state can take a while, so it does not happen under the lock.
        drop(replaced);
        Ok(Some(loaded))
    }

    /// Returns a state of the current script, or `None` if there is no script.
    pub(crate) fn new_state(&self) -> Result<Option<ScriptState>, ScriptError> {
        let Some(script) = self.current() else { return Ok(None) };
        let first_engine = script.first_engine.lock().take();
        let engine = first_engine.map_or_else(|| script.program.engine(), Ok)?;
        Ok(Some(ScriptState { engine, generation: script.generation }))
    }

    /// Returns whether a state can be used for another call.
    pub(crate) fn is_reusable(&self, state: &ScriptState) -> bool {
        state.generation == self.generation.load(Ordering::Acquire) && !state.engine.is_spent
    }

    fn current(&self) -> Option<Arc<Script>> {
        self.current.read().clone()
    }

    fn http(&self) -> Arc<HttpClient> {
        let create = || {
            let max_memory_bytes = u64::try_from(self.settings.max_memory_bytes).unwrap_or(u64::MAX);
            Arc::new(HttpClient::new(ClientPolicy {
                // Scripts belong to the operator, so they may access private addresses.
                allow_private_addresses: true,
                use_proxies: true,
                max_redirects: MAX_REDIRECTS,
                // A response must fit into the memory of the Lua state anyway.
                body_mode: BodyMode::Full { max_bytes: max_memory_bytes.min(MAX_RESPONSE_BYTES) },
                retry_all_methods: false,
            }))
        };
        self.http.get_or_init(create).clone()
    }

    /// Reads and runs a script on a separate thread: a script that never ends must not block the caller.
    fn load_in_thread(&self, path: &Path) -> Result<(Program, Engine), ScriptError> {
        let transient = |reason: &str| ScriptError::transient(format!("{}: {reason}", path.display()));
        if self.abandoned_loads() >= MAX_ABANDONED_LOADS {
            return Err(transient("too many earlier loads of the script are still running"));
        }
        let log = Arc::new(ScriptLog { script: path.display().to_string() });
        let (http, mail, clock) = (self.http(), self.mail.clone(), Arc::new(SystemClock));
        let services = Services { http, mail, log, clock, commands: self.commands.clone() };
        let (settings, shared) = (self.settings.clone(), self.shared.clone());
        let file = path.to_owned();
        let (sender, receiver) = sync_channel(1);
        let load = move || {
            let program = Program::read(&file, &settings, services, shared);
            let result = program.and_then(|program| program.engine().map(|engine| (program, engine)));
            // If the load was abandoned, its result is dropped here.
            drop(sender.send(result));
        };
        let thread =
            thread::Builder::new().name("script loading".to_owned()).stack_size(THREAD_STACK_BYTES).spawn(load);
        let thread = thread.map_err(|error| transient(&error.to_string()))?;
        match receiver.recv_timeout(self.settings.timeout.saturating_add(TIMEOUT_GRACE)) {
            Ok(result) => result,
            Err(RecvTimeoutError::Timeout) => {
                self.abandoned_loads.lock().push(thread);
                Err(transient("loading takes too long"))
            }
            Err(RecvTimeoutError::Disconnected) => Err(transient("loading panicked: this is a bug in the server")),
        }
    }
}

/// Returns the first of these paths that exists and is not a directory. A path that cannot be accessed is returned as
/// well, so that the error is reported.
fn find_script(paths: &[PathBuf]) -> Option<&Path> {
    let exists = |path: &&PathBuf| match path.metadata() {
        Ok(metadata) => !metadata.is_dir(),
        Err(error) => error.kind() != ErrorKind::NotFound,
    };
    paths.iter().find(exists).map(PathBuf::as_path)
}

const fn event_bit(event: ScriptEvent) -> u8 {
    1 << event as u8
}
