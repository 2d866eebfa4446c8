//! A cache with a limit in bytes.
//!
//! It has two generations. Entries that are read move to the young generation. When that is full, it becomes the old
//! one, and the entries of the previous old one are dropped. This keeps entries that are in use, costs at most two hash
//! lookups, and never exceeds the limit. An entry is stored with a number for the state that its value was made from,
//! such as the version of a mailbox, and is found only for that state.

use std::collections::HashMap;
use std::hash::Hash;
use std::mem;

use bytes::Bytes;
use parking_lot::Mutex;
use restante_mail::message::{Message, Source, Summary};

/// The memory that an entry is assumed to take in addition to its value: the key, its strings, and the slots in the table.
const ENTRY_OVERHEAD_BYTES: usize = 256;

/// A value that can be cached: cheap to clone, and of known size.
pub trait CacheValue: Clone {
    /// Returns the approximate size in memory, in bytes.
    fn bytes(&self) -> usize;
}

impl CacheValue for Bytes {
    fn bytes(&self) -> usize {
        self.len()
    }
}

impl CacheValue for Summary {
    fn bytes(&self) -> usize {
        self.text_len()
    }
}

impl CacheValue for Source {
    fn bytes(&self) -> usize {
        self.len()
    }
}

impl CacheValue for Message {
    /// The copies share the headline.
    fn bytes(&self) -> usize {
        let texts = |copy: &Summary| size_of_val(copy) + copy.tags.encoded().len() + copy.details.encoded().len();
        self.first().headline.text_len() + self.copies().iter().map(texts).sum::<usize>()
    }
}

/// A value with a small addition.
impl<V: CacheValue, A: Clone> CacheValue for (V, A) {
    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

/// See the module documentation.
#[derive(Debug)]
pub struct Cache<K, V> {
    max_bytes: usize,
    generations: Mutex<Generations<K, V>>,
}

#[derive(Debug)]
struct Generations<K, V> {
    young: HashMap<K, Entry<V>>,
    old: HashMap<K, Entry<V>>,
    /// The size of the young generation. The old one takes at most half of the limit.
    young_bytes: usize,
}

#[derive(Debug)]
struct Entry<V> {
    state: u64,
    value: V,
}

impl<K: Eq + Hash, V: CacheValue> Cache<K, V> {
    /// Creates a cache with a limit in bytes. With zero, it is always empty.
    pub fn new(max_bytes: usize) -> Self {
        let generations = Generations { young: HashMap::new(), old: HashMap::new(), young_bytes: 0 };
        Self { max_bytes, generations: Mutex::new(generations) }
    }

    /// Returns the value that was made from this state.
    pub fn get(&self, key: &K, state: u64) -> Option<V> {
        let (found, dropped) = {
            let mut generations = self.generations.lock();
            if let Some(entry) = generations.young.get(key) {
                return (entry.state == state).then(|| entry.value.clone());
            }
            let (key, entry) = generations.old.remove_entry(key)?;
            if entry.state != state {
                return None;
            }
            let found = entry.value.clone();
            (found, generations.add(key, entry, self.max_bytes / 2))
        };
        drop(dropped);
        Some(found)
    }

    /// Inserts a value, unless it is so large that it would evict too many others.
    pub fn insert(&self, key: K, state: u64, value: V) {
        if cost(&value) > self.max_bytes / 8 {
            return;
        }
        let dropped = {
            let mut generations = self.generations.lock();
            generations.add(key, Entry { state, value }, self.max_bytes / 2)
        };
        drop(dropped);
    }
}

impl<K: Eq + Hash, V: CacheValue> Generations<K, V> {
    /// Adds an entry to the young generation. Returns the dropped generation, so that the caller can free it after the
    /// lock is released.
    fn add(&mut self, key: K, entry: Entry<V>, max_young_bytes: usize) -> HashMap<K, Entry<V>> {
        if let Some(replaced) = self.young.remove(&key) {
            self.young_bytes -= cost(&replaced.value);
        }
        let cost = cost(&entry.value);
        let mut dropped = HashMap::new();
        if self.young_bytes + cost > max_young_bytes {
            dropped = mem::replace(&mut self.old, mem::take(&mut self.young));
            self.young_bytes = 0;
        }
        self.young_bytes += cost;
        self.young.insert(key, entry);
        dropped
    }
}

fn cost(value: &impl CacheValue) -> usize {
    value.bytes() + ENTRY_OVERHEAD_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(length: usize) -> Bytes {
        vec![b'x'; length].into()
    }

    fn bytes_held(cache: &Cache<usize, Bytes>) -> usize {
        let generations = cache.generations.lock();
        generations.young.values().chain(generations.old.values()).map(|entry| cost(&entry.value)).sum()
    }

    #[test]
    fn returns_value_for_its_state_only() {
        let cache = Cache::new(100_000);
        cache.insert(1, 7, body(10));
        assert_eq!(cache.get(&1, 7), Some(body(10)));
        assert_eq!(cache.get(&1, 8), None);
        assert_eq!(cache.get(&2, 7), None);
        cache.insert(1, 8, body(20));
        assert_eq!(cache.get(&1, 7), None);
        assert_eq!(cache.get(&1, 8), Some(body(20)));
    }

    #[test]
    fn stays_within_limit_and_keeps_used_entries() {
        let cache = Cache::new(100_000);
        cache.insert(0, 0, body(1000));
        for number in 1..1000 {
            cache.insert(number, 0, body(number * 10 % 5000));
            assert!(bytes_held(&cache) <= 100_000, "after {number}");
            assert!(cache.get(&0, 0).is_some(), "after {number}");
        }
        assert!(cache.get(&1, 0).is_none());
    }

    #[test]
    fn replaced_value_is_not_counted_twice() {
        let cache = Cache::new(100_000);
        cache.insert(0, 0, body(1000));
        for state in 0..1000 {
            cache.insert(1, state, body(1000));
        }
        assert!(cache.get(&0, 0).is_some());
    }

    #[test]
    fn does_not_insert_large_values() {
        let cache = Cache::new(8000);
        cache.insert(1, 0, body(8000));
        assert_eq!(cache.get(&1, 0), None);
        let disabled = Cache::new(0);
        disabled.insert(1, 0, body(0));
        assert_eq!(disabled.get(&1, 0), None);
    }
}
