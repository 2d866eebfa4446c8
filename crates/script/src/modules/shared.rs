//! `restante.shared`: a small dictionary that all states and all calls of a script share, while globals belong to one
//! call. It is held in memory and bounded; when it is full, an error is raised rather than something forgotten that a
//! script counts on.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use mlua::{FromLua, Lua, LuaString, Table, Value};

use super::convert::number_of;

/// The longest key, in bytes.
const KEY: usize = 256;

/// The longest text that is a value, in bytes.
const TEXT: usize = 64 * 1024;

/// The highest number of entries.
const ENTRIES: usize = 10_000;

/// The most that keys and values take together, in bytes.
const BYTES: usize = 16 * 1024 * 1024;

/// What an entry takes beside its key and text.
const OVERHEAD: usize = 64;

/// The dictionary.
pub(crate) struct Shared {
    clock: Box<dyn Fn() -> Instant + Send + Sync>,
    held: Mutex<Held>,
}

impl Shared {
    /// An empty one.
    pub(crate) fn new() -> Self {
        Self::timed_by(Instant::now)
    }

    /// An empty one that reads this clock.
    pub(crate) fn timed_by(clock: impl Fn() -> Instant + Send + Sync + 'static) -> Self {
        Self { clock: Box::new(clock), held: Mutex::default() }
    }

    fn with<T>(&self, act: impl FnOnce(&mut Held, Instant) -> T) -> T {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut held, (self.clock)())
    }
}

/// The table with the functions.
pub(super) fn table(lua: &Lua, shared: &Arc<Shared>) -> mlua::Result<Table> {
    let table = lua.create_table()?;

    let here = Arc::clone(shared);
    let get = move |lua: &Lua, key: Key| match here.with(|held, now| held.get(&key, now).cloned()) {
        None => Ok(Value::Nil),
        Some(Item::Boolean(value)) => Ok(Value::Boolean(value)),
        Some(Item::Number(value)) => Ok(Value::Number(value)),
        Some(Item::Text(value)) => lua.create_string(&*value).map(Value::String),
    };
    table.raw_set("get", lua.create_function(get)?)?;

    let here = Arc::clone(shared);
    let set = move |_: &Lua, (key, value, life): (Key, Option<Item>, Life)| {
        here.with(|held, now| {
            let Some(value) = value else {
                held.remove(&key);
                return Ok(());
            };
            held.put(key, value, life.end(now), now)
        })
    };
    table.raw_set("set", lua.create_function(set)?)?;

    let here = Arc::clone(shared);
    let add = move |_: &Lua, (key, value, life): (Key, Item, Life)| {
        here.with(|held, now| match held.get(&key, now) {
            Some(_) => Ok(false),
            None => held.put(key, value, life.end(now), now).map(|()| true),
        })
    };
    table.raw_set("add", lua.create_function(add)?)?;

    let here = Arc::clone(shared);
    let incr = move |_: &Lua, (key, by, life): (Key, Option<f64>, Life)| {
        here.with(|held, now| held.increase(key, by.unwrap_or(1.0), life, now))
    };
    table.raw_set("incr", lua.create_function(incr)?)?;

    let here = Arc::clone(shared);
    let delete = move |_: &Lua, key: Key| {
        here.with(|held, _| held.remove(&key));
        Ok(())
    };
    table.raw_set("delete", lua.create_function(delete)?)?;

    let here = Arc::clone(shared);
    let keys = move |lua: &Lua, prefix: Option<LuaString>| {
        let prefix = prefix.map(|prefix| prefix.as_bytes().to_vec()).unwrap_or_default();
        let keys = here.with(|held, now| held.keys(&prefix, now));
        lua.create_sequence_from(keys.into_iter().map(LuaString::wrap))
    };
    table.raw_set("keys", lua.create_function(keys)?)?;

    Ok(table)
}

/// What is held. An entry that is over is not there, whether it was removed yet or not.
#[derive(Default)]
struct Held {
    entries: BTreeMap<Key, Entry>,
    bytes: usize,
    /// Before this, nothing is over.
    soonest: Option<Instant>,
}

struct Entry {
    item: Item,
    end: Option<Instant>,
}

impl Entry {
    fn is_over(&self, now: Instant) -> bool {
        self.end.is_some_and(|end| end <= now)
    }
}

impl Held {
    fn get(&self, key: &Key, now: Instant) -> Option<&Item> {
        self.entries.get(key).filter(|entry| !entry.is_over(now)).map(|entry| &entry.item)
    }

    fn put(&mut self, key: Key, item: Item, end: Option<Instant>, now: Instant) -> mlua::Result<()> {
        let old = self.entries.get(&key).map(|entry| cost(&key, &entry.item));
        let more = cost(&key, &item);
        if !self.has_room(old, more) {
            self.sweep(now);
            // What is replaced may have been swept.
            let old = old.filter(|_| self.entries.contains_key(&key));
            if !self.has_room(old, more) {
                return Err(mlua::Error::runtime("restante.shared is full"));
            }
        }
        self.remove(&key);
        self.bytes += more;
        self.soonest = self.soonest.into_iter().chain(end).min();
        self.entries.insert(key, Entry { item, end });
        Ok(())
    }

    fn has_room(&self, old: Option<usize>, more: usize) -> bool {
        let entries = self.entries.len() + usize::from(old.is_none());
        entries <= ENTRIES && self.bytes - old.unwrap_or(0) + more <= BYTES
    }

    fn increase(&mut self, key: Key, by: f64, life: Life, now: Instant) -> mlua::Result<f64> {
        let (old, end) = match self.entries.get(&key).filter(|entry| !entry.is_over(now)) {
            None => (0.0, life.end(now)),
            Some(Entry { item: Item::Number(number), end }) => (*number, *end),
            Some(_) => return Err(mlua::Error::runtime("restante.shared.incr: the value is no number")),
        };
        self.put(key, Item::Number(old + by), end, now)?;
        Ok(old + by)
    }

    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= cost(key, &entry.item);
        }
    }

    fn keys(&self, prefix: &[u8], now: Instant) -> Vec<Box<[u8]>> {
        let from: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Included(prefix), Bound::Unbounded);
        self.entries
            .range::<[u8], _>(from)
            .take_while(|(key, _)| key.0.starts_with(prefix))
            .filter(|(_, entry)| !entry.is_over(now))
            .map(|(key, _)| key.0.clone())
            .collect()
    }

    /// Removes what is over.
    fn sweep(&mut self, now: Instant) {
        if self.soonest.is_none_or(|soonest| now < soonest) {
            return;
        }
        self.entries.retain(|_, entry| !entry.is_over(now));
        self.bytes = self.entries.iter().map(|(key, entry)| cost(key, &entry.item)).sum();
        self.soonest = self.entries.values().filter_map(|entry| entry.end).min();
    }
}

fn cost(key: &Key, item: &Item) -> usize {
    let text = if let Item::Text(text) = item { text.len() } else { 0 };
    OVERHEAD + key.0.len() + text
}

/// A key: a text that is not too long.
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
        if text.len() > KEY {
            return Err(mlua::Error::runtime(format!("a key of restante.shared has at most {KEY} bytes")));
        }
        Ok(Self(text.to_vec().into()))
    }
}

/// A value that can be kept.
#[derive(Clone)]
enum Item {
    Boolean(bool),
    Number(f64),
    Text(Arc<[u8]>),
}

impl FromLua for Item {
    fn from_lua(value: Value, _: &Lua) -> mlua::Result<Self> {
        match value {
            Value::Boolean(value) => Ok(Self::Boolean(value)),
            Value::String(text) if text.as_bytes().len() > TEXT => {
                Err(mlua::Error::runtime(format!("a text in restante.shared has at most {TEXT} bytes")))
            }
            Value::String(text) => Ok(Self::Text(Arc::from(&*text.as_bytes()))),
            other => match number_of(&other) {
                Some(number) => Ok(Self::Number(number)),
                None => Err(mlua::Error::runtime(format!("restante.shared cannot keep a {}", other.type_name()))),
            },
        }
    }
}

/// How long an entry is kept; for good when nothing is said.
#[derive(Clone, Copy)]
struct Life(Option<Duration>);

impl Life {
    /// When it is over. What ends beyond all clocks does not end.
    fn end(self, now: Instant) -> Option<Instant> {
        self.0.and_then(|life| now.checked_add(life))
    }
}

impl FromLua for Life {
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
