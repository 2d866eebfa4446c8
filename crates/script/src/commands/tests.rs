//! Tests of running commands.

use super::*;

fn shell(script: &str) -> Command {
    restante_platform::shell(script.as_bytes()).unwrap()
}

#[test]
fn kill_all_kills_commands_and_prevents_new_ones() {
    let commands = Commands::default();
    let mut running: Vec<_> =
        ["exec sleep 3600", "sleep 3600 & wait"].map(|script| commands.start(&mut shell(script)).unwrap()).into();
    commands.kill_all();
    for running in &mut running {
        assert_eq!(running.child.wait().unwrap().code(), None, "ended by a signal");
    }
    assert!(commands.start(&mut shell("exit 0")).is_err());
}

#[test]
fn ended_commands_are_removed() {
    let commands = Commands::default();
    let mut short = commands.start(&mut shell("exit 3")).unwrap();
    let status = loop {
        if let Some(status) = short.status().unwrap() {
            break status;
        }
        std::thread::yield_now();
    };
    assert_eq!(status.code(), Some(3));
    commands.start(&mut shell("exec sleep 3600")).unwrap().kill();
    assert!(commands.state.lock().process_groups.is_empty());
}
