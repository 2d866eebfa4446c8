//! `restante script test`: loads a script without a server and runs its tests. A test is a global function whose name
//! starts with `test_`. It gets the object `t` of `t.lua`, with which it creates sessions and messages, calls the
//! script's functions as the server would, and checks the results.

mod arguments;
mod case;
mod environment;
mod fixtures;
mod library;
mod message_builder;
#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::path::Path;

use mlua::Value;

use crate::Settings;
use crate::engine::Engine;
use crate::loaded::ScriptError;
use case::TestFailure;
use environment::TestEnvironment;

/// The prefix of test names.
const TEST_PREFIX: &str = "test_";

/// The maximum number of log lines that are shown for a failed test.
const MAX_LOG_LINES: usize = 100;

/// Runs the tests with the given names, or all tests, and writes their results. A name may end in `*`. Returns whether
/// there were tests and all passed.
pub fn run_tests(path: &Path, settings: &Settings, names: &[String], out: &mut dyn Write) -> Result<bool, ScriptError> {
    let tests = list_tests(path, settings)?;
    let write_error = |error: io::Error| ScriptError::transient(format!("cannot write the test results: {error}"));
    if tests.is_empty() {
        writeln!(out, "{} has no tests: no global function is named {TEST_PREFIX}...", path.display())
            .map_err(write_error)?;
        return Ok(false);
    }
    let unknown: Vec<_> = names.iter().filter(|name| !tests.iter().any(|test| matches_name(test, name))).collect();
    for name in &unknown {
        writeln!(out, "{} has no test {name}", path.display()).map_err(write_error)?;
    }
    let is_chosen = |test: &&String| names.is_empty() || names.iter().any(|name| matches_name(test, name));
    let (mut count, mut failed) = (0, 0);
    for test in tests.iter().filter(is_chosen) {
        let result = case::run(path, settings, test);
        count += 1;
        failed += usize::from(result.is_err());
        print_result(out, test, &result).map_err(write_error)?;
    }
    let tests = if count == 1 { "test" } else { "tests" };
    writeln!(out, "{count} {tests}, {failed} failed").map_err(write_error)?;
    Ok(unknown.is_empty() && failed == 0)
}

/// Returns the names of the tests in the order of the file. Tests of required files come last.
fn list_tests(path: &Path, settings: &Settings) -> Result<Vec<String>, ScriptError> {
    let main = format!("@{}", path.display());
    let mut tests = case::run_in_thread(path, settings, &TestEnvironment::new(settings.naming), move |engine| {
        let names = engine.functions.iter().filter(|name| name.starts_with(TEST_PREFIX));
        names.map(|name| (definition_order(engine, name, &main), name.clone())).collect::<Vec<_>>()
    })?;
    tests.sort();
    Ok(tests.into_iter().map(|(_, name)| name).collect())
}

/// Returns the sort key of a function: whether it is in another file, the file, the line.
fn definition_order(engine: &Engine, name: &str, main: &str) -> (bool, String, usize) {
    let Some(Value::Function(function)) = engine.global(name) else { return (true, String::new(), 0) };
    let info = function.info();
    let source = info.source.unwrap_or_default();
    (source != main, source, info.line_defined.unwrap_or(0))
}

fn matches_name(test: &str, name: &str) -> bool {
    match name.strip_suffix('*') {
        Some(prefix) => test.starts_with(prefix),
        None => test == name,
    }
}

fn print_result(out: &mut dyn Write, test: &str, result: &Result<(), TestFailure>) -> io::Result<()> {
    let Err(failure) = result else { return writeln!(out, "ok    {test}") };
    writeln!(out, "FAIL  {test}")?;
    writeln!(out, "      {}", failure.text)?;
    for entry in failure.log.iter().take(MAX_LOG_LINES) {
        writeln!(out, "      log: {entry}")?;
    }
    match failure.log.len().checked_sub(MAX_LOG_LINES) {
        None | Some(0) => Ok(()),
        Some(more) => writeln!(out, "      log: and {more} more"),
    }
}
