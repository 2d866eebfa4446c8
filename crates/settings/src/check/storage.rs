//! Where mail is kept: `storage.type`, `storage.path`, `storage.params` and `storage.url` can each say something about it, and
//! this decides what they say together. Whether the data directory can be written is asked without touching it, and a database is
//! not asked at all.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use restante_store::postgres::Url;
use rustix::fs::{Access, access};
use rustix::process::geteuid;

use super::{Found, Purpose};
use crate::ReadFile;
use crate::problem::shown;
use crate::setting::Setting;
use crate::sources::Sources;
use crate::table::row;
use crate::types::{Config, Storage, StoreKind};
use crate::values::params;

const TYPE: &Setting = row("storage.type");
const PATH: &Setting = row("storage.path");
const PARAMS: &Setting = row("storage.params");
const URL: &Setting = row("storage.url");
const DURABILITY: &Setting = row("storage.durability");
const CONNECTIONS: &Setting = row("storage.connections");
const MAX_MESSAGE: &Setting = row("smtp.maxmessagebytes");

/// What the memory store may hold when nothing is said: 1 GiB.
const MEMORY_BYTES: u64 = 1 << 30;

/// The largest message for a database. A value in it must not come near 1 GiB, and is held there several times while it is stored.
const DATABASE_MESSAGE: usize = 256 << 20;

/// What a store makes in its data directory; whoever made it may have been another user.
const CONTENTS: [&str; 3] = ["lock", "restante.db", "segments"];

/// Where the settings want mail to be kept.
enum Place {
    Memory,
    /// A data directory, and the setting that names it.
    Dir(PathBuf, &'static Setting),
    Database(Box<Url>),
}

/// Settings that contradict each other: the one to blame, and why.
type Contradiction = (&'static Setting, String);

impl Found<'_> {
    /// The settings agree on a place, and it can be written if it has to be.
    pub(super) fn storage(&mut self, config: &mut Config, purpose: Purpose, read_file: ReadFile<'_>) {
        if [TYPE, PATH, PARAMS, URL].iter().any(|setting| !self.is_sound(setting)) {
            return;
        }
        match place(&config.storage, self.sources) {
            Ok(Place::Dir(dir, setting)) if purpose != Purpose::Read => {
                if let Err(reason) = usable(&dir) {
                    self.add(setting, &reason);
                }
            }
            Ok(Place::Memory | Place::Dir(..)) => {}
            Ok(Place::Database(url)) => {
                match url.address(read_file) {
                    Ok(address) => config.storage.database = Some(address),
                    Err(reason) => self.add(URL, &reason),
                }
                if config.smtp.max_message_bytes > DATABASE_MESSAGE {
                    self.add(MAX_MESSAGE, &format!("a store in PostgreSQL takes at most {DATABASE_MESSAGE}"));
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
    let Ok((decisive, _)) = kind(storage, sources) else { return };
    let Ok(place) = place(storage, sources) else { return };
    let (kind, word) = match &place {
        Place::Memory => (StoreKind::Memory, "memory"),
        Place::Dir(..) => (StoreKind::File, "file"),
        Place::Database(_) => (StoreKind::Postgres, "postgres"),
    };
    if kind != StoreKind::File && storage.path.is_some() {
        sources.overrule(PATH, "", decisive);
    }
    if kind != StoreKind::Postgres && storage.url.is_some() {
        sources.overrule(URL, "", decisive);
    }
    if kind != storage.kind {
        sources.overrule(TYPE, word, decisive);
    }
    if let Place::Dir(_, named_by) = &place
        && named_by.key == PATH.key
        && let Some(given) = sources.strongest(PARAMS).filter(|_| storage.params_path.is_some())
    {
        let others = params(&given.value).flatten().filter(|(key, _)| key != "path");
        let others: Vec<String> = others.map(|(key, value)| format!("{key}:{value}")).collect();
        sources.overrule(PARAMS, &others.join(","), PATH);
    }
    storage.kind = kind;
    storage.path = match place {
        Place::Dir(dir, _) => Some(dir),
        Place::Memory | Place::Database(_) => None,
    };
    if kind == StoreKind::Memory && storage.max_bytes == 0 {
        storage.max_bytes = MEMORY_BYTES;
    }
}

/// What the operator should know.
pub(super) fn warnings(config: &Config, sources: &Sources) -> Vec<String> {
    let mut warnings = Vec::new();
    let storage = &config.storage;
    // A stronger source that says otherwise means just that.
    let overruled = sources.origin(TYPE).is_stronger_than(sources.origin(PARAMS));
    if storage.kind != StoreKind::File && storage.params_path.is_some() && !overruled {
        let store = if storage.kind == StoreKind::Memory { "memory store" } else { "store in PostgreSQL" };
        warnings.push(format!("the path in storage.params has no effect on the {store}: see storage.type"));
    }
    let is_shared = storage.kind == StoreKind::Postgres;
    let changed = |setting: &Setting| sources.strongest(setting).is_some_and(|given| given.value != setting.default);
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
fn place(storage: &Storage, sources: &Sources) -> Result<Place, Contradiction> {
    let (_, kind) = kind(storage, sources)?;
    match (kind, &storage.path, &storage.params_path, &storage.url) {
        (StoreKind::Memory, ..) => Ok(Place::Memory),
        (StoreKind::File, Some(path), Some(other), _)
            if path != other && !sources.origin(PATH).is_stronger_than(sources.origin(PARAMS)) =>
        {
            let origin = sources.origin(PARAMS);
            Err((PATH, format!("storage.params ({origin}) names another directory, {}", other.display())))
        }
        (StoreKind::File, Some(path), ..) => Ok(Place::Dir(path.clone(), PATH)),
        (StoreKind::File, None, Some(path), _) => Ok(Place::Dir(path.clone(), PARAMS)),
        (StoreKind::File, None, None, _) => {
            Err((TYPE, "needs a data directory: --data DIR, storage.path or path:DIR in storage.params".to_owned()))
        }
        (StoreKind::Postgres, _, _, Some(url)) => Ok(Place::Database(Box::new(url.clone()))),
        (StoreKind::Postgres, _, _, None) => Err((TYPE, "needs storage.url, the URL of a database".to_owned())),
    }
}

/// The kind of store, and the setting that decides it: whoever names a directory or a database has chosen a kind as well.
fn kind(storage: &Storage, sources: &Sources) -> Result<(&'static Setting, StoreKind), Contradiction> {
    let path = storage.path.as_ref().map(|_| (PATH, StoreKind::File));
    let url = storage.url.as_ref().map(|_| (URL, StoreKind::Postgres));
    let claims: Vec<_> = [Some((TYPE, storage.kind)), path, url].into_iter().flatten().collect();
    let counts =
        |setting| !claims.iter().any(|(other, _)| sources.origin(other).is_stronger_than(sources.origin(setting)));
    let mut strongest = claims.iter().filter(|(setting, _)| counts(setting));
    let (decisive, kind) = *strongest.next().unwrap_or(&(TYPE, storage.kind));
    match strongest.find(|(_, other)| *other != kind) {
        None => Ok((decisive, kind)),
        Some((setting, _)) => {
            let said = sources.strongest(decisive).map_or(decisive.default, |given| &given.value);
            let (key, said, origin) = (decisive.key, shown(decisive, said, usize::MAX), sources.origin(decisive));
            Err((setting, format!("contradicts {key} = {said} ({origin}): leave out one of them")))
        }
    }
}

/// Whether a directory can be written or, where there is none, made.
fn usable(dir: &Path) -> Result<(), String> {
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
        writable(place, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK)?;
        let mut contents = CONTENTS.iter().map(|name| dir.join(name)).filter(|path| path.exists());
        return contents.try_for_each(|path| writable(&path, Access::READ_OK | Access::WRITE_OK));
    }
    Err("cannot be made: there is no directory to make it in".to_owned())
}

fn writable(path: &Path, wanted: Access) -> Result<(), String> {
    access(path, wanted).map_err(|error| {
        let (owner, user) = (std::fs::metadata(path).map(|found| found.uid()), geteuid().as_raw());
        let whose = owner.map_or_else(|_| String::new(), |owner| format!(" of user {owner}"));
        format!("cannot be written: {}{whose}, by user {user}: {error}", path.display())
    })
}
