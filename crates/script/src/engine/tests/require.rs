//! Tests of files next to the script.

use std::fs;

use super::{Stage, text};

#[test]
fn files_beside_the_script_are_found() {
    let stage = Stage::new(&[
        (
            "rules.lua",
            "local a, b, c = require('a'), require('lib.b'), require('c') result = a .. b.name .. c .. require('a')",
        ),
        ("a.lua", "count = (count or 0) + 1 return 'a' .. count"),
        ("lib/b.lua", "local name = ... return {name = name}"),
        ("c/init.lua", "return 'c'"),
    ]);
    assert_eq!(stage.result(), "a1lib.bca1");
    assert_eq!(stage.sandboxed().result(), "a1lib.bca1");
}

#[test]
fn names_cannot_leave_the_folder() {
    for name in ["../outside", "..outside", "/outside", "lib/../../outside", ".outside"] {
        let stage = Stage::new(&[("rules.lua", &format!("require('{name}')"))]).sandboxed();
        let error = stage.result();
        let expected = format!(
            "rules.lua:1: module '{name}' not found: no field package.preload['{name}'] no file '{name}' beside the script"
        );
        assert_eq!(error, expected);
    }
}

#[test]
fn an_error_in_a_required_file_names_that_file() {
    let stage = Stage::new(&[("rules.lua", "require('bad')"), ("bad.lua", "\nlocal x = = 1")]);
    assert_eq!(stage.result(), "bad.lua:2: unexpected symbol near '='");
    let stage = Stage::new(&[("rules.lua", "require('bad')"), ("bad.lua", "\n\nerror('oh')")]);
    assert_eq!(stage.result(), "bad.lua:3: oh");
}

#[test]
fn all_states_see_the_version_that_the_first_one_saw() {
    let stage = Stage::new(&[("rules.lua", "result = require('a')"), ("a.lua", "return 'old'")]);
    let program = stage.program().unwrap();
    let first = program.engine().unwrap();
    fs::write(stage.folder.join("a.lua"), "return 'new'").unwrap();
    fs::write(stage.folder.join("rules.lua"), "result = 'newer'").unwrap();
    let second = program.engine().unwrap();
    assert_eq!((text(&first, "result"), text(&second, "result")), ("old".to_owned(), "old".to_owned()));
    assert_eq!(stage.result(), "newer");
}

#[test]
fn the_path_counts_after_the_folder_and_not_in_the_sandbox() {
    let stage = Stage::new(&[
        ("rules.lua", "package.path = FOLDER .. '/else/?.lua' result = require('a') .. require('b')"),
        ("a.lua", "return 'beside'"),
        ("else/a.lua", "return 'elsewhere'"),
        ("else/b.lua", "return 'elsewhere'"),
    ]);
    let script = stage.folder.join("rules.lua");
    let whole = fs::read_to_string(&script).unwrap().replace("FOLDER", &format!("{:?}", stage.folder));
    fs::write(&script, whole).unwrap();
    assert_eq!(stage.result(), "besideelsewhere");
    let error = stage.sandboxed().result();
    assert!(error.starts_with("rules.lua:1: module 'b' not found"), "{error}");
}

#[test]
fn modules_of_the_server_come_first_and_old_style_modules_work() {
    let stage = Stage::new(&[
        ("rules.lua", "require('old') result = type(require('logger')) .. old.answer() .. tostring(answer)"),
        ("logger.lua", "return 'not this one'"),
        ("old.lua", "module('old', package.seeall) function answer() return type(print) end"),
    ]);
    assert_eq!(stage.result(), "tablefunctionnil");
}

#[test]
fn a_script_that_is_not_there_or_too_large_says_so() {
    assert!(Stage::new(&[("other.lua", "")]).result().starts_with("rules.lua: No such file"));
    let large = " ".repeat((4 << 20) + 1);
    assert!(Stage::script(&large).result().ends_with("is too large"));
}
