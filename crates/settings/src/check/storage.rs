//! Decides where messages are stored. `storage.type`, `storage.path`, `storage.params` and `storage.url` all contribute
//! to that. Access to the data directory is checked without changing it, and no connection to a database is made.

use std::io;
use std::path::{Path, PathBuf};

use restante_platform::{Access, check_access, current_user, file_owner};
use restante_store::postgres::Url;

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

/// The default limit of the memory store: 1 GiB.
const DEFAULT_MEMORY_BYTES: u64 = 1 << 30;

/// The maximum size of a message in a database. A value there must be well below 1 GiB, and several copies of it are in
/// memory while it is stored.
const MAX_DATABASE_MESSAGE_BYTES: usize = 256 << 20;

/// The files that a store creates in its data directory. They may have been created by another user.
const STORE_FILES: [&str; 3] = ["lock", "restante.db", "segments"];

/// Where messages are stored.
enum StoreLocation {
    Memory,
    /// A data directory, and the setting that names it.
    Dir(PathBuf, &'static Setting),
    Database(Box<Url>),
}

/// A conflict of settings: the setting to report, and the reason.
type Conflict = (&'static Setting, String);

impl Checker<'_> {
    /// Checks that the settings agree on a location, and that it can be written if necessary.
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
                    self.add(
                        MAX_MESSAGE,
                        &format!("must be at most {MAX_DATABASE_MESSAGE_BYTES} for a store in PostgreSQL"),
                    );
                }
            }
            Err((setting, message)) => self.add(setting, &message),
        }
    }
}

/// Stores the decision in the configuration, and as effective values, so that the operator sees it too.
pub(super) fn complete(storage: &mut Storage, sources: &mut Sources) {
    // A conflict is a problem, and a configuration with problems does not get here.
    let Ok((deciding_setting, _)) = store_kind(storage, sources) else { return };
    let Ok(location) = store_location(storage, sources) else { return };
    let kind = match &location {
        StoreLocation::Memory => StoreKind::Memory,
        StoreLocation::Dir(..) => StoreKind::File,
        StoreLocation::Database(_) => StoreKind::Postgres,
    };
    if kind != StoreKind::File && storage.path.is_some() {
        sources.override_with(PATH, "", deciding_setting);
    }
    if kind != StoreKind::Postgres && storage.url.is_some() {
        sources.override_with(URL, "", deciding_setting);
    }
    if kind != storage.kind {
        sources.override_with(TYPE, kind.name(), deciding_setting);
    }
    if let StoreLocation::Dir(_, setting) = &location
        && setting.key == PATH.key
        && let Some(given) = sources.effective(PARAMS).filter(|_| storage.params_path.is_some())
    {
        let other_params = split_params(&given.value).flatten().filter(|(key, _)| key != "path");
        let other_params: Vec<String> = other_params.map(|(key, value)| format!("{key}:{value}")).collect();
        sources.override_with(PARAMS, &other_params.join(","), PATH);
    }
    storage.kind = kind;
    storage.path = match location {
        StoreLocation::Dir(dir, _) => Some(dir),
        StoreLocation::Memory | StoreLocation::Database(_) => None,
    };
    if kind == StoreKind::Memory && storage.max_bytes == 0 {
        storage.max_bytes = DEFAULT_MEMORY_BYTES;
    }
}

/// Returns warnings for the operator.
pub(super) fn warnings(config: &Config, sources: &Sources) -> Vec<String> {
    let mut warnings = Vec::new();
    let storage = &config.storage;
    // A source of higher precedence overrides on purpose.
    let is_overridden = sources.origin(TYPE).overrides(sources.origin(PARAMS));
    if storage.kind != StoreKind::File && storage.params_path.is_some() && !is_overridden {
        let store = if storage.kind == StoreKind::Memory { "memory store" } else { "store in PostgreSQL" };
        warnings.push(format!("the path in storage.params has no effect on the {store}: see storage.type"));
    }
    let is_postgres = storage.kind == StoreKind::Postgres;
    let changed = |setting: &Setting| sources.effective(setting).is_some_and(|given| given.value != setting.default);
    if is_postgres && changed(DURABILITY) {
        warnings.push(
            "storage.durability has no effect on a store in PostgreSQL: configure durability in PostgreSQL".to_owned(),
        );
    }
    if !is_postgres && changed(CONNECTIONS) {
        warnings.push("storage.connections has no effect without storage.url".to_owned());
    }
    if (1..config.smtp.max_message_bytes as u64).contains(&storage.max_bytes) {
        warnings.push(
            "maxkb in storage.params is smaller than smtp.maxmessagebytes: maxkb limits the size of a message"
                .to_owned(),
        );
    }
    warnings
}

/// Returns the location that the settings result in. The source of higher precedence wins. A conflict within one source
/// is an error: messages could be lost that should be kept, or kept that should be lost.
fn store_location(storage: &Storage, sources: &Sources) -> Result<StoreLocation, Conflict> {
    let (_, kind) = store_kind(storage, sources)?;
    match (kind, &storage.path, &storage.params_path, &storage.url) {
        (StoreKind::Memory, ..) => Ok(StoreLocation::Memory),
        (StoreKind::File, Some(path), Some(other), _)
            if path != other && !sources.origin(PATH).overrides(sources.origin(PARAMS)) =>
        {
            let origin = sources.origin(PARAMS);
            Err((
                PATH,
                format!("storage.params ({origin}) names another directory, {}: remove one of them", other.display()),
            ))
        }
        (StoreKind::File, Some(path), ..) => Ok(StoreLocation::Dir(path.clone(), PATH)),
        (StoreKind::File, None, Some(path), _) => Ok(StoreLocation::Dir(path.clone(), PARAMS)),
        (StoreKind::File, None, None, _) => Err((
            TYPE,
            "requires a data directory: set --data DIR, storage.path or path:DIR in storage.params".to_owned(),
        )),
        (StoreKind::Postgres, _, _, Some(url)) => Ok(StoreLocation::Database(Box::new(url.clone()))),
        (StoreKind::Postgres, _, _, None) => {
            Err((TYPE, "requires storage.url, such as postgres://user:password@host:5432/database".to_owned()))
        }
    }
}

/// Returns the kind of store and the setting that decides it. A directory or a database implies a kind.
fn store_kind(storage: &Storage, sources: &Sources) -> Result<(&'static Setting, StoreKind), Conflict> {
    let path = storage.path.as_ref().map(|_| (PATH, StoreKind::File));
    let url = storage.url.as_ref().map(|_| (URL, StoreKind::Postgres));
    let candidates: Vec<_> = [Some((TYPE, storage.kind)), path, url].into_iter().flatten().collect();
    let is_effective =
        |setting| !candidates.iter().any(|(other, _)| sources.origin(other).overrides(sources.origin(setting)));
    let mut strongest = candidates.iter().filter(|(setting, _)| is_effective(setting));
    let (deciding_setting, kind) = *strongest.next().unwrap_or(&(TYPE, storage.kind));
    match strongest.find(|(_, other)| *other != kind) {
        None => Ok((deciding_setting, kind)),
        Some((setting, _)) => {
            let value = display_value(deciding_setting, sources.value(deciding_setting), usize::MAX);
            let (key, origin) = (deciding_setting.key, sources.origin(deciding_setting));
            Err((setting, format!("conflicts with {key} = {value} ({origin}): remove one of them")))
        }
    }
}

/// Checks whether a directory can be written or created.
fn check_dir_usable(dir: &Path) -> Result<(), String> {
    for ancestor in dir.ancestors() {
        let ancestor = if ancestor.as_os_str().is_empty() { Path::new(".") } else { ancestor };
        let metadata = match std::fs::metadata(ancestor) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(format!("cannot be used: {error}")),
            Ok(metadata) => metadata,
        };
        if !metadata.is_dir() {
            return Err(format!("cannot be used: {} is not a directory", ancestor.display()));
        }
        check_path_access(ancestor, Access::ListAndChangeDirectory)?;
        let mut contents = STORE_FILES.iter().map(|name| dir.join(name)).filter(|path| path.exists());
        return contents.try_for_each(|path| check_path_access(&path, Access::ReadWrite));
    }
    Err("cannot be created: none of its parent directories exists".to_owned())
}

fn check_path_access(path: &Path, requested: Access) -> Result<(), String> {
    check_access(path, requested).map_err(|error| {
        let owner = std::fs::metadata(path).ok().and_then(|metadata| file_owner(&metadata));
        let owner_note = owner.map_or_else(String::new, |owner| format!(" (owner: user {owner})"));
        let user = current_user().map_or_else(|| "this user".to_owned(), |user| format!("user {user}"));
        format!("cannot be written: {user} has no access to {}{owner_note}: {error}", path.display())
    })
}
