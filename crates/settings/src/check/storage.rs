//! Where mail is kept: `storage.type`, `storage.path`, `storage.params` and `storage.url` can each say something about it, and
//! this decides what they say together. Whether the data directory can be written is asked without touching it, and a database is
//! not asked at all.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use restante_store::postgres::Url;
use rustix::fs::{Access, access};
use rustix::process::geteuid;

use super::{Checker, Purpose};
use crate::ReadFile;
use crate::problem::display_value;
use crate::setting::Setting;
use crate::sources::Sources;
use crate::table::row;
use crate::types::{Config, Storage, StoreKind};
use crate::values::split_params;

const TYPE: &Setting = row("storage.type");
const PATH: &Setting = row("storage.path");
const PARAMS: &Setting = row("storage.params");
const URL: &Setting = row("storage.url");
const DURABILITY: &Setting = row("storage.durability");
const CONNECTIONS: &Setting = row("storage.connections");
const MAX_MESSAGE: &Setting = row("smtp.maxmessagebytes");

/// What the memory store may hold when nothing is said: 1 GiB.
const DEFAULT_MEMORY_BYTES: u64 = 1 << 30;

/// The largest message for a database. A value in it must not come near 1 GiB, and is held there several times while it is stored.
const MAX_DATABASE_MESSAGE_BYTES: usize = 256 << 20;

/// What a store makes in its data directory; whoever made it may have been another user.
const STORE_FILES: [&str; 3] = ["lock", "restante.db", "segments"];

/// Where the settings want mail to be kept.
enum StoreLocation {
    Memory,
    /// A data directory, and the setting that names it.
    Dir(PathBuf, &'static Setting),
    Database(Box<Url>),
}

/// Settings that contradict each other: the one to blame, and why.
type Contradiction = (&'static Setting, String);

impl Checker<'_> {
    /// The settings agree on a place, and it can be written if it has to be.
    pub(super) fn check_storage(&mut self, config: &mut Config, purpose: Purpose, read_file: ReadFile<'_>) {
        if [TYPE, PATH, PARAMS, URL].iter().any(|setting| !self.is_valid(setting)) {
            return;
        }
        match store_location(&config.storage, self.sources) {
            Ok(StoreLocation::Dir(dir, setting)) if purpose != Purpose::Read => {
                if let Err(reason) = check_dir_usable(&dir) {
                    self.add(setting, &reason);
                }
            }
            Ok(StoreLocation::Memory | StoreLocation::Dir(..)) => {}
            Ok(StoreLocation::Database(url)) => {
                match url.address(read_file) {
                    Ok(address) => config.storage.database = Some(address),
                    Err(reason) => self.add(URL, &reason),
                }
                if config.smtp.max_message_bytes > MAX_DATABASE_MESSAGE_BYTES {
                    self.add(MAX_MESSAGE, &format!("a store in PostgreSQL takes at most {MAX_DATABASE_MESSAGE_BYTES}"));
                }
            }
            Err((setting, message)) => self.add(setting, &message),
        }
    }
}

/// Puts what was decided where the rest of the program looks for it, and among the values that count, so that the
/// operator sees it too.
pub(super) fn complete(storage: &mut Storage, sources: &mut Sources) {
    // A contradiction was a problem before, and a configuration with problems is not completed.
    let Ok((decisive, _)) = store_kind(storage, sources) else { return };
    let Ok(place) = store_location(storage, sources) else { return };
    let (kind, word) = match &place {
        StoreLocation::Memory => (StoreKind::Memory, "memory"),
        StoreLocation::Dir(..) => (StoreKind::File, "file"),
        StoreLocation::Database(_) => (StoreKind::Postgres, "postgres"),
    };
    if kind != StoreKind::File && storage.path.is_some() {
        sources.override_with(PATH, "", decisive);
    }
    if kind != StoreKind::Postgres && storage.url.is_some() {
        sources.override_with(URL, "", decisive);
    }
    if kind != storage.kind {
        sources.override_with(TYPE, word, decisive);
    }
    if let StoreLocation::Dir(_, named_by) = &place
        && named_by.key == PATH.key
        && let Some(given) = sources.effective(PARAMS).filter(|_| storage.params_path.is_some())
    {
        let others = split_params(&given.value).flatten().filter(|(key, _)| key != "path");
        let others: Vec<String> = others.map(|(key, value)| format!("{key}:{value}")).collect();
        sources.override_with(PARAMS, &others.join(","), PATH);
    }
    storage.kind = kind;
    storage.path = match place {
        StoreLocation::Dir(dir, _) => Some(dir),
        StoreLocation::Memory | StoreLocation::Database(_) => None,
    };
    if kind == StoreKind::Memory && storage.max_bytes == 0 {
        storage.max_bytes = DEFAULT_MEMORY_BYTES;
    }
}

/// What the operator should know.
pub(super) fn warnings(config: &Config, sources: &Sources) -> Vec<String> {
    let mut warnings = Vec::new();
    let storage = &config.storage;
    // A stronger source that says otherwise means just that.
    let overruled = sources.origin(TYPE).overrides(sources.origin(PARAMS));
    if storage.kind != StoreKind::File && storage.params_path.is_some() && !overruled {
        let store = if storage.kind == StoreKind::Memory { "memory store" } else { "store in PostgreSQL" };
        warnings.push(format!("the path in storage.params has no effect on the {store}: see storage.type"));
    }
    let is_shared = storage.kind == StoreKind::Postgres;
    let changed = |setting: &Setting| sources.effective(setting).is_some_and(|given| given.value != setting.default);
    if is_shared && changed(DURABILITY) {
        warnings
            .push("storage.durability has no effect on the store in PostgreSQL, which has settings for it".to_owned());
    }
    if !is_shared && changed(CONNECTIONS) {
        warnings.push("storage.connections has no effect without storage.url".to_owned());
    }
    if (1..config.smtp.max_message_bytes as u64).contains(&storage.max_bytes) {
        warnings.push("maxkb in storage.params is less than one message of smtp.maxmessagebytes needs".to_owned());
    }
    warnings
}

/// What the settings say together. The stronger source wins; a contradiction between equals is an error, because mail
/// would be lost that was to be kept, or kept that was to be forgotten.
fn store_location(storage: &Storage, sources: &Sources) -> Result<StoreLocation, Contradiction> {
    let (_, kind) = store_kind(storage, sources)?;
    match (kind, &storage.path, &storage.params_path, &storage.url) {
        (StoreKind::Memory, ..) => Ok(StoreLocation::Memory),
        (StoreKind::File, Some(path), Some(other), _)
            if path != other && !sources.origin(PATH).overrides(sources.origin(PARAMS)) =>
        {
            let origin = sources.origin(PARAMS);
            Err((PATH, format!("storage.params ({origin}) names another directory, {}", other.display())))
        }
        (StoreKind::File, Some(path), ..) => Ok(StoreLocation::Dir(path.clone(), PATH)),
        (StoreKind::File, None, Some(path), _) => Ok(StoreLocation::Dir(path.clone(), PARAMS)),
        (StoreKind::File, None, None, _) => {
            Err((TYPE, "needs a data directory: --data DIR, storage.path or path:DIR in storage.params".to_owned()))
        }
        (StoreKind::Postgres, _, _, Some(url)) => Ok(StoreLocation::Database(Box::new(url.clone()))),
        (StoreKind::Postgres, _, _, None) => Err((TYPE, "needs storage.url, the URL of a database".to_owned())),
    }
}

/// The kind of store, and the setting that decides it: whoever names a directory or a database has chosen a kind as well.
fn store_kind(storage: &Storage, sources: &Sources) -> Result<(&'static Setting, StoreKind), Contradiction> {
    let path = storage.path.as_ref().map(|_| (PATH, StoreKind::File));
    let url = storage.url.as_ref().map(|_| (URL, StoreKind::Postgres));
    let claims: Vec<_> = [Some((TYPE, storage.kind)), path, url].into_iter().flatten().collect();
    let counts = |setting| !claims.iter().any(|(other, _)| sources.origin(other).overrides(sources.origin(setting)));
    let mut strongest = claims.iter().filter(|(setting, _)| counts(setting));
    let (decisive, kind) = *strongest.next().unwrap_or(&(TYPE, storage.kind));
    match strongest.find(|(_, other)| *other != kind) {
        None => Ok((decisive, kind)),
        Some((setting, _)) => {
            let said = sources.effective(decisive).map_or(decisive.default, |given| &given.value);
            let (key, said, origin) =
                (decisive.key, display_value(decisive, said, usize::MAX), sources.origin(decisive));
            Err((setting, format!("contradicts {key} = {said} ({origin}): leave out one of them")))
        }
    }
}

/// Whether a directory can be written or, where there is none, made.
fn check_dir_usable(dir: &Path) -> Result<(), String> {
    for place in dir.ancestors() {
        let place = if place.as_os_str().is_empty() { Path::new(".") } else { place };
        let found = match std::fs::metadata(place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(format!("cannot be used: {error}")),
            Ok(found) => found,
        };
        if !found.is_dir() {
            return Err(format!("cannot be used: {} is not a directory", place.display()));
        }
        check_path_access(place, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK)?;
        let mut contents = STORE_FILES.iter().map(|name| dir.join(name)).filter(|path| path.exists());
        return contents.try_for_each(|path| check_path_access(&path, Access::READ_OK | Access::WRITE_OK));
    }
    Err("cannot be made: there is no directory to make it in".to_owned())
}

fn check_path_access(path: &Path, wanted: Access) -> Result<(), String> {
    access(path, wanted).map_err(|error| {
        let (owner, user) = (std::fs::metadata(path).map(|found| found.uid()), geteuid().as_raw());
        let whose = owner.map_or_else(|_| String::new(), |owner| format!(" of user {owner}"));
        format!("cannot be written: {}{whose}, by user {user}: {error}", path.display())
    })
}
