//! Tests of files next to the script.

use std::fs;

use super::{Fixture, global_text};

/// Changes the mode of a file or directory of the fixture.
#[cfg(unix)]
fn set_mode(fixture: &Fixture, file: &str, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(fixture.folder.join(file), fs::Permissions::from_mode(mode)).unwrap();
}

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
fn working_directory_is_not_searched() {
    // The working directory of tests is that of the crate.
    assert!(fs::exists("src/engine/prelude.lua").unwrap());
    for name in ["src.engine.prelude", "src/engine/prelude", "./src/engine/prelude", "src//engine/prelude"] {
        let error = Fixture::script(&format!("require('{name}')")).result();
        assert!(error.starts_with(&format!("rules.lua:1: module '{name}' not found")), "{error}");
    }
    let script = "result = tostring((';' .. package.path .. ';' .. package.cpath):find(';[^/;]'))";
    assert_eq!(Fixture::script(script).result(), "nil");
}

#[cfg(unix)]
#[test]
fn untrusted_files_of_package_path_are_not_loaded() {
    let mut fixture = Fixture::new(&[("rules.lua", ""), ("else/a.lua", "return 'loaded'")]);
    fixture.settings.trusted_files_only = true;
    let text = format!("package.path = {:?} result = require('a')", fixture.folder.join("else/?.lua"));
    fs::write(fixture.folder.join("rules.lua"), text).unwrap();
    for (file, mode) in [("", 0o755), ("rules.lua", 0o644), ("else", 0o755), ("else/a.lua", 0o644)] {
        set_mode(&fixture, file, mode);
    }
    assert_eq!(fixture.result(), "loaded");
    set_mode(&fixture, "else", 0o777);
    let expected = "rules.lua:1: else/a.lua: its directory has the mode 0777, so other users may write it";
    assert_eq!(fixture.result(), expected);
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
