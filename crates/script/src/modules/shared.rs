//! `restante.shared`: a small dictionary that all states and all calls of a script share. Globals, in contrast, belong
//! to one call. It is kept in memory and its size is limited. If it is full, an error is raised: entries that a script
//! relies on are never evicted.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mlua::{FromLua, Lua, LuaString, Table, Value};
use parking_lot::Mutex;

use super::convert::to_number;
use super::set_function;

/// The maximum length of a key.
const MAX_KEY_BYTES: usize = 256;

/// The maximum length of a string value.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// The maximum number of entries.
const MAX_ENTRIES: usize = 10_000;

/// The maximum size of all keys and values.
const MAX_TOTAL_BYTES: usize = 16 * 1024 * 1024;

/// The memory use of an entry in addition to its key and text.
const ENTRY_OVERHEAD_BYTES: usize = 64;

/// The dictionary.
pub(crate) struct SharedDict {
    clock: Box<dyn Fn() -> Instant + Send + Sync>,
    contents: Mutex<Contents>,
}

impl SharedDict {
    /// Creates an empty dictionary.
    pub(crate) fn new() -> Self {
        Self::with_clock(Instant::now)
    }

    /// Creates an empty dictionary with the given clock.
    pub(crate) fn with_clock(clock: impl Fn() -> Instant + Send + Sync + 'static) -> Self {
        Self { clock: Box::new(clock), contents: Mutex::default() }
    }

    fn with_contents<T>(&self, operation: impl FnOnce(&mut Contents, Instant) -> T) -> T {
        let mut contents = self.contents.lock();
        operation(&mut contents, (self.clock)())
    }
}

/// Creates the table with the functions.
pub(super) fn table(lua: &Lua, shared: &Arc<SharedDict>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    set_function(lua, &table, "get", shared, |lua, dict, key: Key| {
        match dict.with_contents(|contents, now| contents.get(&key, now).cloned()) {
            None => Ok(Value::Nil),
            Some(SharedValue::Boolean(value)) => Ok(Value::Boolean(value)),
            Some(SharedValue::Number(value)) => Ok(Value::Number(value)),
            Some(SharedValue::Text(value)) => lua.create_string(&*value).map(Value::String),
        }
    })?;
    set_function(lua, &table, "set", shared, |_, dict, (key, value, ttl): (Key, Option<SharedValue>, Ttl)| {
        dict.with_contents(|contents, now| {
            let Some(value) = value else {
                contents.remove(&key);
                return Ok(());
            };
            contents.insert(key, value, ttl.expires_at(now), now)
        })
    })?;
    set_function(lua, &table, "add", shared, |_, dict, (key, value, ttl): (Key, SharedValue, Ttl)| {
        dict.with_contents(|contents, now| match contents.get(&key, now) {
            Some(_) => Ok(false),
            None => contents.insert(key, value, ttl.expires_at(now), now).map(|()| true),
        })
    })?;
    set_function(lua, &table, "incr", shared, |_, dict, (key, amount, ttl): (Key, Option<f64>, Ttl)| {
        dict.with_contents(|contents, now| contents.increment(key, amount.unwrap_or(1.0), ttl, now))
    })?;
    set_function(lua, &table, "delete", shared, |_, dict, key: Key| {
        dict.with_contents(|contents, _| contents.remove(&key));
        Ok(())
    })?;
    set_function(lua, &table, "keys", shared, |lua, dict, prefix: Option<LuaString>| {
        let prefix = prefix.map(|prefix| prefix.as_bytes().to_vec()).unwrap_or_default();
        let keys = dict.with_contents(|contents, now| contents.keys(&prefix, now));
        lua.create_sequence_from(keys.into_iter().map(LuaString::wrap))
    })?;
    Ok(table)
}

/// The entries. An expired entry counts as absent, even if it was not removed yet.
#[derive(Default)]
struct Contents {
    entries: BTreeMap<Key, Entry>,
    bytes: usize,
    /// No entry expires before this time.
    next_expiry: Option<Instant>,
}

struct Entry {
    value: SharedValue,
    expires_at: Option<Instant>,
}

impl Entry {
    fn is_expired(&self, now: Instant) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at <= now)
    }
}

impl Contents {
    fn get(&self, key: &Key, now: Instant) -> Option<&SharedValue> {
        self.entries.get(key).filter(|entry| !entry.is_expired(now)).map(|entry| &entry.value)
    }

    fn insert(&mut self, key: Key, value: SharedValue, expires_at: Option<Instant>, now: Instant) -> mlua::Result<()> {
        let old_bytes = self.entries.get(&key).map(|entry| entry_bytes(&key, &entry.value));
        let new_bytes = entry_bytes(&key, &value);
        if !self.has_space(old_bytes, new_bytes) {
            self.remove_expired(now);
            // The replaced entry may have expired and been removed.
            let old_bytes = old_bytes.filter(|_| self.entries.contains_key(&key));
            if !self.has_space(old_bytes, new_bytes) {
                return Err(mlua::Error::runtime("restante.shared is full"));
            }
        }
        self.remove(&key);
        self.bytes += new_bytes;
        self.next_expiry = self.next_expiry.into_iter().chain(expires_at).min();
        self.entries.insert(key, Entry { value, expires_at });
        Ok(())
    }

    fn has_space(&self, old_bytes: Option<usize>, new_bytes: usize) -> bool {
        let entries = self.entries.len() + usize::from(old_bytes.is_none());
        entries <= MAX_ENTRIES && self.bytes - old_bytes.unwrap_or(0) + new_bytes <= MAX_TOTAL_BYTES
    }

    fn increment(&mut self, key: Key, amount: f64, ttl: Ttl, now: Instant) -> mlua::Result<f64> {
        let (old, expires_at) = match self.entries.get(&key).filter(|entry| !entry.is_expired(now)) {
            None => (0.0, ttl.expires_at(now)),
            Some(Entry { value: SharedValue::Number(number), expires_at }) => (*number, *expires_at),
            Some(_) => return Err(mlua::Error::runtime("restante.shared.incr: the value is no number")),
        };
        self.insert(key, SharedValue::Number(old + amount), expires_at, now)?;
        Ok(old + amount)
    }

    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry_bytes(key, &entry.value);
        }
    }

    fn keys(&self, prefix: &[u8], now: Instant) -> Vec<Box<[u8]>> {
        let from: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Included(prefix), Bound::Unbounded);
        self.entries
            .range::<[u8], _>(from)
            .take_while(|(key, _)| key.0.starts_with(prefix))
            .filter(|(_, entry)| !entry.is_expired(now))
            .map(|(key, _)| key.0.clone())
            .collect()
    }

    /// Removes expired entries.
    fn remove_expired(&mut self, now: Instant) {
        if self.next_expiry.is_none_or(|expiry| now < expiry) {
            return;
        }
        self.entries.retain(|_, entry| !entry.is_expired(now));
        self.bytes = self.entries.iter().map(|(key, entry)| entry_bytes(key, &entry.value)).sum();
        self.next_expiry = self.entries.values().filter_map(|entry| entry.expires_at).min();
    }
}

fn entry_bytes(key: &Key, value: &SharedValue) -> usize {
    let text = if let SharedValue::Text(text) = value { text.len() } else { 0 };
    ENTRY_OVERHEAD_BYTES + key.0.len() + text
}

/// A key of limited length.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key(Box<[u8]>);

impl std::borrow::Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl FromLua for Key {
    fn from_lua(value: Value, lua: &Lua) -> mlua::Result<Self> {
        let text = LuaString::from_lua(value, lua)?;
        let text = text.as_bytes();
        if text.len() > MAX_KEY_BYTES {
            return Err(mlua::Error::runtime(format!("a key of restante.shared has at most {MAX_KEY_BYTES} bytes")));
        }
        Ok(Self(text.to_vec().into()))
    }
}

/// A value that can be stored.
#[derive(Clone)]
enum SharedValue {
    Boolean(bool),
    Number(f64),
    Text(Arc<[u8]>),
}

impl FromLua for SharedValue {
    fn from_lua(value: Value, _: &Lua) -> mlua::Result<Self> {
        match value {
            Value::Boolean(value) => Ok(Self::Boolean(value)),
            Value::String(text) if text.as_bytes().len() > MAX_TEXT_BYTES => {
                Err(mlua::Error::runtime(format!("a text in restante.shared has at most {MAX_TEXT_BYTES} bytes")))
            }
            Value::String(text) => Ok(Self::Text(Arc::from(&*text.as_bytes()))),
            other => match to_number(&other) {
                Some(number) => Ok(Self::Number(number)),
                None => Err(mlua::Error::runtime(format!("restante.shared cannot store a {}", other.type_name()))),
            },
        }
    }
}

/// The time to live of an entry; `None` for no expiry.
#[derive(Clone, Copy)]
struct Ttl(Option<Duration>);

impl Ttl {
    /// Returns the time of expiry. A time beyond the range of the clock means no expiry.
    fn expires_at(self, now: Instant) -> Option<Instant> {
        self.0.and_then(|ttl| now.checked_add(ttl))
    }
}

impl FromLua for Ttl {
    fn from_lua(value: Value, lua: &Lua) -> mlua::Result<Self> {
        let Some(seconds) = Option::<f64>::from_lua(value, lua)? else { return Ok(Self(None)) };
        if seconds.is_nan() || seconds <= 0.0 {
            return Err(mlua::Error::runtime("seconds have to be more than 0"));
        }
        Ok(Self(Duration::try_from_secs_f64(seconds).ok()))
    }
}

#[cfg(test)]
mod tests;
