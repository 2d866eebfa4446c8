//! Runs the tests of the example scripts.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use restante_mail::naming::Naming;

use crate::{ScriptEvent, Settings, check, run_tests};

fn settings() -> Settings {
    Settings {
        paths: Vec::new(),
        trusted_files_only: false,
        sandbox: false,
        // The default timeout, with which the examples must work.
        timeout: Duration::from_secs(10),
        max_memory_bytes: 64 * 1024 * 1024,
        before_states: 1,
        after_states: 1,
        max_calls: 1,
        max_queued_events: 1,
        naming: Naming::Local,
    }
}

fn examples() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/lua");
    let files = fs::read_dir(directory).expect("the folder of the examples");
    let paths = files.map(|file| file.expect("a file of the examples").path());
    let mut scripts: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "lua")).collect();
    scripts.sort();
    scripts
}

#[test]
fn examples_pass_their_tests() {
    let examples = examples();
    assert!(examples.len() >= 12, "the documentation promises a dozen examples, found {}", examples.len());
    for path in examples {
        let mut output = Vec::new();
        let passed = run_tests(&path, &settings(), &[], &mut output).expect("the script can be loaded");
        assert!(passed, "{}\n{}", path.display(), String::from_utf8_lossy(&output));
    }
}

#[test]
fn examples_cover_every_event() {
    let loaded = examples().into_iter().map(|path| check(&path, &settings()).expect("the script can be loaded"));
    let mut events: Vec<ScriptEvent> = loaded.flat_map(|loaded| loaded.handlers).collect();
    events.sort();
    events.dedup();
    assert_eq!(events, ScriptEvent::ALL);
}
