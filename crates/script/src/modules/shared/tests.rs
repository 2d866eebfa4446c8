//! Tests of the dictionary with a simulated clock.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

/// Returns a state with the table `shared` and the function `advance(seconds)`.
fn state() -> Lua {
    let (start, elapsed) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    let clock = Arc::clone(&elapsed);
    let shared = SharedDict::with_clock(move || start + Duration::from_secs(clock.load(Ordering::Relaxed)));
    let lua = Lua::new();
    lua.globals().set("shared", table(&lua, &Arc::new(shared)).unwrap()).unwrap();
    let advance = lua.create_function(move |_, seconds: u64| {
        elapsed.fetch_add(seconds, Ordering::Relaxed);
        Ok(())
    });
    lua.globals().set("advance", advance.unwrap()).unwrap();
    lua
}

#[test]
fn values_are_kept_until_they_expire() {
    let table = [
        ("return shared.get('x')", "nil"),
        ("shared.set('x', 'text') return shared.get('x')", "text"),
        ("shared.set('x', 1.5) return shared.get('x')", "1.5"),
        ("shared.set('x', false) return shared.get('x')", "false"),
        ("shared.set('x', 1) shared.set('x', nil) return shared.get('x')", "nil"),
        ("shared.set('x', 1) shared.delete('x') return shared.get('x')", "nil"),
        ("shared.set('x', 1, 10) advance(9) return shared.get('x')", "1"),
        ("shared.set('x', 1, 10) advance(10) return shared.get('x')", "nil"),
        ("shared.set('x', 1, 10) shared.set('x', 2) advance(10) return shared.get('x')", "2"),
        ("shared.set('x', 1, 1e300) advance(10) return shared.get('x')", "1"),
        ("return shared.add('x', 1)", "true"),
        ("shared.add('x', 1) return shared.add('x', 2)", "false"),
        ("shared.add('x', 1) shared.add('x', 2) return shared.get('x')", "1"),
        ("shared.add('x', 1, 5) advance(5) return shared.add('x', 2)", "true"),
        ("return shared.incr('x', 3)", "3"),
        ("shared.incr('x') return shared.incr('x')", "2"),
        // The time to live counts from the first increment.
        ("shared.incr('x', 1, 10) advance(6) shared.incr('x', 1, 10) advance(3) return shared.get('x')", "2"),
        ("shared.incr('x', 1, 10) advance(6) shared.incr('x', 1, 10) advance(4) return shared.incr('x', 1)", "1"),
        (
            "for _, k in ipairs{'b/2', 'a', 'b/1', 'c'} do shared.set(k, 1) end return table.concat(shared.keys('b/'), ' ')",
            "b/1 b/2",
        ),
        ("shared.set('b', 1) shared.set('a', 1, 1) advance(1) return table.concat(shared.keys(), ' ')", "b"),
    ];
    for (code, expected) in table {
        let lua = state();
        let value: Value = lua.load(code).eval().unwrap();
        assert_eq!(value.to_string().unwrap(), expected, "{code}");
    }
}

#[test]
fn unsupported_values_raise() {
    let table = [
        ("shared.set('x', {})", "restante.shared cannot store a table"),
        ("shared.set({}, 1)", "bad argument #1"),
        ("shared.set('x', 1, 0)", "seconds have to be more than 0"),
        ("shared.set('x', 1, 'soon')", "bad argument #3"),
        ("shared.set('x', 'text') shared.incr('x', 1)", "the value is no number"),
        ("shared.set(string.rep('x', 257), 1)", "at most 256 bytes"),
        ("shared.set('x', string.rep('x', 65537))", "at most 65536 bytes"),
    ];
    for (code, expected) in table {
        let error = state().load(code).exec().unwrap_err().to_string();
        assert!(error.contains(expected), "{code}: {error}");
    }
}

#[test]
fn full_dictionary_evicts_nothing_but_expired_entries() {
    let codes = [
        "for i = 1, 10000 do shared.set('k' .. i, i, i == 7 and 5 or nil) end",
        "local big = string.rep('x', 65536) for i = 1, 255 do shared.set('k' .. i, big, i == 7 and 5 or nil) end",
    ];
    for code in codes {
        let lua = state();
        lua.load(code).exec().unwrap();
        let more = "shared.set('more', string.rep('y', 60000))";
        let error = lua.load(more).exec().unwrap_err().to_string();
        assert!(error.contains("restante.shared is full"), "{error}");
        lua.load("shared.set('k1', 'other') shared.set('k1', string.rep('x', 65536))").exec().unwrap();
        lua.load("advance(5)").exec().unwrap();
        lua.load(more).exec().unwrap();
        let is_ok: bool = lua.load("return shared.get('k1') ~= nil and shared.get('k7') == nil").eval().unwrap();
        assert!(is_ok, "{code}");
    }
}

#[test]
fn counted_bytes_match_the_entries() {
    let now = Instant::now();
    let mut contents = Contents::default();
    let key = |name: &str| Key(name.as_bytes().to_vec().into());
    for (name, text) in [("a", "one"), ("b", "two"), ("a", "three"), ("c", "")] {
        contents.insert(key(name), SharedValue::Text(Arc::from(text.as_bytes())), None, now).unwrap();
    }
    contents.remove(&key("b"));
    contents.remove(&key("b"));
    assert_eq!(
        contents.bytes,
        contents.entries.iter().map(|(key, entry)| entry_bytes(key, &entry.value)).sum::<usize>()
    );
    assert_eq!(contents.bytes, 2 * ENTRY_OVERHEAD_BYTES + "a".len() + "three".len() + "c".len());
}
