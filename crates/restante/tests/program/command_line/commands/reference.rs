//! The documentation of the command line: reference, completions, man pages and help.

use std::process::Command;

use restante::completions::reference;
use restante_testdir::TestDir;

use super::run;

/// Returns the program with an empty environment.
fn program_without_environment() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_restante"));
    command.env_clear();
    command
}

#[test]
fn reference_page_is_up_to_date() {
    let stored = include_str!("../../../../../../docs/cli.md");
    assert!(stored == reference(), "docs/cli.md is outdated: replace it by the output of `restante docs`");
    assert_eq!(run(program_without_environment().arg("docs")), (0, stored.to_owned(), String::new()));
}

#[test]
fn completions_exist_for_every_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let (code, out, stderr) = run(program_without_environment().args(["completions", shell]));
        assert_eq!((code, stderr.as_str()), (0, ""), "{shell}");
        assert!(out.contains("restante") && out.contains("search") && out.contains("server"), "{shell}");
    }
    assert_eq!(run(program_without_environment().args(["completions", "cmd"])).0, 2);
}

#[test]
fn man_pages() {
    let (_, page, _) = run(program_without_environment().args(["man", "send"]));
    assert!(page.contains(".TH restante-send 1") && page.contains("sendmail"), "{page}");
    assert!(run(program_without_environment().arg("man")).1.contains(".TH restante 1"));
    assert_eq!(run(program_without_environment().args(["man", "nothing"])).0, 2);

    let folder = TestDir::new();
    let written = run(program_without_environment().args(["man", "--out", folder.path().to_str().unwrap()]));
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(written, (0, String::new(), String::new()));
    for name in ["restante.1", "restante-config-check.1", "restante-client-match.1"] {
        assert!(names.iter().any(|written| written == name), "{name} {names:?}");
    }
    let (code, _, stderr) = run(program_without_environment().args(["man", "--out", "/nowhere/at/all"]));
    assert!(code == 2 && stderr.contains("/nowhere/at/all"), "{stderr}");
}

#[test]
fn help_is_also_a_command() {
    let (code, out, _) = run(program_without_environment().arg("help"));
    assert!(code == 0 && out.contains("Usage: restante [OPTIONS] [COMMAND]"), "{out}");
    let (code, out, _) = run(program_without_environment().args(["help", "purge"]));
    assert!(code == 0 && out.contains("restante purge [OPTIONS] <MAILBOX|--all>"), "{out}");
}

#[test]
fn help_of_client_commands_omits_server_settings() {
    for command in ["list", "send", "match", "wait"] {
        let (_, help, _) = run(program_without_environment().args([command, "--help"]));
        assert!(help.contains("--server") && !help.contains("--smtp-addr") && !help.contains("--config"), "{help}");
    }
}
