//! Tests of files next to the script.

use std::fs;

use super::{Fixture, global_text};

#[test]
fn finds_files_next_to_the_script() {
    let fixture = Fixture::new(&[
        (
            "rules.lua",
            "local a, b, c = require('a'), require('lib.b'), require('c') result = a .. b.name .. c .. require('a')",
        ),
        ("a.lua", "count = (count or 0) + 1 return 'a' .. count"),
        ("lib/b.lua", "local name = ... return {name = name}"),
        ("c/init.lua", "return 'c'"),
    ]);
    assert_eq!(fixture.result(), "a1lib.bca1");
    assert_eq!(fixture.sandboxed().result(), "a1lib.bca1");
}

#[test]
fn required_names_cannot_leave_the_folder() {
    for name in ["../outside", "..outside", "/outside", "lib/../../outside", ".outside"] {
        let fixture = Fixture::new(&[("rules.lua", &format!("require('{name}')"))]).sandboxed();
        let error = fixture.result();
        let expected = format!(
            "rules.lua:1: module '{name}' not found: no field package.preload['{name}'] no file '{name}' beside the script"
        );
        assert_eq!(error, expected);
    }
}

#[test]
fn an_error_in_a_required_file_names_that_file() {
    let fixture = Fixture::new(&[("rules.lua", "require('bad')"), ("bad.lua", "\nlocal x = = 1")]);
    assert_eq!(fixture.result(), "bad.lua:2: unexpected symbol near '='");
    let fixture = Fixture::new(&[("rules.lua", "require('bad')"), ("bad.lua", "\n\nerror('oh')")]);
    assert_eq!(fixture.result(), "bad.lua:3: oh");
}

#[test]
fn all_states_see_the_same_version_of_files() {
    let fixture = Fixture::new(&[("rules.lua", "result = require('a')"), ("a.lua", "return 'old'")]);
    let program = fixture.program().unwrap();
    let first = program.engine().unwrap();
    fs::write(fixture.folder.join("a.lua"), "return 'new'").unwrap();
    fs::write(fixture.folder.join("rules.lua"), "result = 'newer'").unwrap();
    let second = program.engine().unwrap();
    assert_eq!((global_text(&first, "result"), global_text(&second, "result")), ("old".to_owned(), "old".to_owned()));
    assert_eq!(fixture.result(), "newer");
}

#[test]
fn package_path_is_searched_last_and_not_in_the_sandbox() {
    let fixture = Fixture::new(&[
        ("rules.lua", "package.path = FOLDER .. '/else/?.lua' result = require('a') .. require('b')"),
        ("a.lua", "return 'beside'"),
        ("else/a.lua", "return 'elsewhere'"),
        ("else/b.lua", "return 'elsewhere'"),
    ]);
    let script = fixture.folder.join("rules.lua");
    let text = fs::read_to_string(&script).unwrap().replace("FOLDER", &format!("{:?}", fixture.folder));
    fs::write(&script, text).unwrap();
    assert_eq!(fixture.result(), "besideelsewhere");
    let error = fixture.sandboxed().result();
    assert!(error.starts_with("rules.lua:1: module 'b' not found"), "{error}");
}

#[test]
fn server_modules_take_precedence_and_old_style_modules_work() {
    let fixture = Fixture::new(&[
        ("rules.lua", "require('old') result = type(require('logger')) .. old.answer() .. tostring(answer)"),
        ("logger.lua", "return 'not this one'"),
        ("old.lua", "module('old', package.seeall) function answer() return type(print) end"),
    ]);
    assert_eq!(fixture.result(), "tablefunctionnil");
}

#[test]
fn missing_and_oversized_scripts_fail() {
    assert!(Fixture::new(&[("other.lua", "")]).result().starts_with("rules.lua: No such file"));
    let large = " ".repeat((4 << 20) + 1);
    assert!(Fixture::script(&large).result().ends_with("is too large"));
}
