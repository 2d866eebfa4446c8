//! Where mail is kept: `storage.type`, `storage.path` and `storage.params` can each say something about it, and this
//! decides what they say together. Whether the data directory can be written is asked without touching it.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::process::geteuid;

use super::{Found, Purpose};
use crate::config::setting::Setting;
use crate::config::sources::Sources;
use crate::config::table::row;
use crate::config::types::{Config, Storage, StoreKind};
use crate::config::values::params;

const TYPE: &Setting = row("storage.type");
const PATH: &Setting = row("storage.path");
const PARAMS: &Setting = row("storage.params");
const URL: &Setting = row("storage.url");

const NO_POSTGRES: &str = "this version has no PostgreSQL store";

/// What the memory store may hold when nothing is said: 1 GiB.
const MEMORY_BYTES: u64 = 1 << 30;

/// What a store makes in its data directory; whoever made it may have been another user.
const CONTENTS: [&str; 3] = ["lock", "restante.db", "segments"];

/// Where the settings want mail to be kept.
enum Place {
    Memory,
    /// A data directory, and the setting that names it.
    Dir(PathBuf, &'static Setting),
}

/// Settings that contradict each other: the one to blame, and why.
type Contradiction = (&'static Setting, String);

impl Found<'_> {
    /// The settings agree on a place, and it can be written if it has to be.
    pub(super) fn storage(&mut self, storage: &Storage, purpose: Purpose) {
        if storage.url.is_some() {
            self.add(URL, NO_POSTGRES);
        }
        if [TYPE, PATH, PARAMS].iter().any(|setting| !self.is_sound(setting)) {
            return;
        }
        match place(storage, self.sources) {
            Ok(Place::Dir(dir, setting)) if purpose != Purpose::Read => {
                if let Err(reason) = usable(&dir) {
                    self.add(setting, &reason);
                }
            }
            Ok(Place::Memory | Place::Dir(..)) => {}
            Err((setting, message)) => self.add(setting, &message),
        }
    }
}

/// Puts what was decided where the rest of the program looks for it, and among the values that count, so that the
/// operator sees it too.
pub(super) fn complete(storage: &mut Storage, sources: &mut Sources) {
    // A contradiction was a problem before, and a configuration with problems is not completed.
    let place = place(storage, sources).unwrap_or(Place::Memory);
    match &place {
        Place::Memory if storage.path.is_some() => sources.overrule(PATH, "", TYPE),
        Place::Dir(_, named_by) if named_by.key == PATH.key => {
            if storage.kind != StoreKind::File {
                sources.overrule(TYPE, "file", PATH);
            }
            if let Some(given) = sources.strongest(PARAMS).filter(|_| storage.params_path.is_some()) {
                let others = params(&given.value).flatten().filter(|(key, _)| key != "path");
                let others: Vec<String> = others.map(|(key, value)| format!("{key}:{value}")).collect();
                sources.overrule(PARAMS, &others.join(","), PATH);
            }
        }
        Place::Memory | Place::Dir(..) => {}
    }
    (storage.kind, storage.path) = match place {
        Place::Memory => (StoreKind::Memory, None),
        Place::Dir(dir, _) => (StoreKind::File, Some(dir)),
    };
    if storage.kind == StoreKind::Memory && storage.max_bytes == 0 {
        storage.max_bytes = MEMORY_BYTES;
    }
}

/// What the operator should know.
pub(super) fn warnings(config: &Config, sources: &Sources) -> Vec<String> {
    let mut warnings = Vec::new();
    let storage = &config.storage;
    // A stronger source that says memory means just that.
    let overruled = sources.origin(TYPE).is_stronger_than(sources.origin(PARAMS));
    if storage.kind == StoreKind::Memory && storage.params_path.is_some() && !overruled {
        warnings.push("the path in storage.params has no effect on the memory store: see storage.type".to_owned());
    }
    if (1..config.smtp.max_message_bytes as u64).contains(&storage.max_bytes) {
        warnings.push("maxkb in storage.params is less than one message of smtp.maxmessagebytes needs".to_owned());
    }
    warnings
}

/// What the settings say together. The stronger source wins; a contradiction between equals is an error, because mail
/// would be lost that was to be kept, or kept that was to be forgotten.
fn place(storage: &Storage, sources: &Sources) -> Result<Place, Contradiction> {
    let stronger = |one, other| sources.origin(one).is_stronger_than(sources.origin(other));
    match (storage.kind, &storage.path, &storage.params_path) {
        (StoreKind::Postgres, _, _) => Err((TYPE, NO_POSTGRES.to_owned())),
        (StoreKind::Memory, None, _) => Ok(Place::Memory),
        (StoreKind::Memory, Some(_), _) if stronger(TYPE, PATH) => Ok(Place::Memory),
        (StoreKind::Memory, Some(_), _) if !stronger(PATH, TYPE) => {
            let origin = sources.origin(TYPE);
            Err((PATH, format!("contradicts storage.type = \"memory\" ({origin}): leave out one of them")))
        }
        (_, Some(path), Some(other)) if path != other && !stronger(PATH, PARAMS) => {
            let origin = sources.origin(PARAMS);
            Err((PATH, format!("storage.params ({origin}) names another directory, {}", other.display())))
        }
        (_, Some(path), _) => Ok(Place::Dir(path.clone(), PATH)),
        (StoreKind::File, None, Some(path)) => Ok(Place::Dir(path.clone(), PARAMS)),
        (StoreKind::File, None, None) => {
            Err((TYPE, "needs a data directory: --data DIR, storage.path or path:DIR in storage.params".to_owned()))
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
