//! The commands in the documentation: all of them are accepted by the command line, and the examples of `docs/shell.md`
//! work in a strict shell.

use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use restante::command_line;
use restante::exit::Exit;
use restante_testdir::TestDir;

use super::shell_words::{ShellCommand, shell_commands};
use super::{program, run};
use crate::support::Server;
use crate::support::installed::is_installed;

const REQUIRED: &str = "REQUIRE_CLIENTS";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns README.md and the pages in docs/, with their names.
fn pages() -> Vec<(String, String)> {
    let docs = fs::read_dir(repository().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = docs.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let mut paths: Vec<PathBuf> = pages.chain([repository().join("README.md")]).collect();
    paths.sort();
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

/// A block of code in a page.
struct Block<'a> {
    /// The heading before the block.
    heading: &'a str,
    language: &'a str,
    lines: Vec<&'a str>,
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    let (mut blocks, mut heading, mut open) = (Vec::new(), "", None);
    for line in page.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(language), None) => open = Some(Block { heading, language, lines: Vec::new() }),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => block.lines.push(line),
            (None, None) if line.starts_with('#') => heading = line.trim_start_matches('#').trim(),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block after {heading} is not closed");
    blocks
}

/// Returns the script of a block, without prompts and output.
fn script(block: &Block<'_>) -> String {
    let mut script = String::new();
    let mut is_continued = false;
    for line in &block.lines {
        let input = match block.language {
            "console" if is_continued => line,
            "console" => match line.strip_prefix("$ ") {
                Some(input) => input,
                None => continue,
            },
            "sh" => line,
            _ => continue,
        };
        script.push_str(input);
        script.push('\n');
        is_continued = input.ends_with(['\\', '|']);
    }
    script
}

/// Returns the default of `${NAME:-DEFAULT}`, as a shell without the variable does, or the word itself.
fn with_default(word: &str) -> &str {
    let variable = word.strip_prefix("${").and_then(|word| word.strip_suffix('}'));
    variable.and_then(|variable| variable.split_once(":-")).map_or(word, |(_, default)| default)
}

#[test]
fn documented_commands_are_accepted() {
    let mut found = Vec::new();
    for (page, text) in pages() {
        for block in blocks(&text) {
            let commands = shell_commands(&script(&block)).into_iter();
            found.extend(commands.filter_map(|command| Some((page.clone(), command.of_program("restante")?))));
        }
    }
    for (page, ShellCommand { variables, words }) in &found {
        let args = words.iter().map(|word| OsString::from(with_default(word)));
        let env = variables.iter().map(|(name, value)| (name.into(), value.into()));
        if let command_line::Command::Exit(Exit { code: 1.., text }) =
            command_line::parse(args, env, &|_| Ok(Vec::new()))
        {
            // The files that a command names do not exist here.
            let problems = ["there is no such file", "contains no certificate", "contains no private key"];
            let is_about_file = |line: &str| problems.iter().any(|problem| line.ends_with(problem));
            let is_accepted = text.lines().skip(1).all(|line| line.is_empty() || is_about_file(line));
            assert!(is_accepted, "{page}: {words:?} is not accepted: {text}");
        }
    }
    let count = |name: &str| found.iter().filter(|(page, _)| page == name).count();
    assert!(count("shell.md") > 40 && count("access.md") > 5, "not all commands are found: {found:?}");
}

/// What the test does with the examples of a section of `docs/shell.md`.
enum Example {
    /// Runs them after these preparations.
    Run(&'static str),
    /// Does not run them, for this reason.
    Skip(&'static str),
}
use Example::{Run, Skip};

/// Sends messages that the examples need, to ann.
const SEND: &str = r#"
sign_up() {
    restante send --from shop@example.org --to "$1" --subject "Your code" \
        --text "Your code is 271828. $RESTANTE_SERVER/livez?next=/confirm"
}
message() { restante send --from shop@example.org --to ann@example.org --text "Hello" "$@"; }
"#;

const SHELL_EXAMPLES: &[(&str, Example)] = &[
    ("Try it", Run("")),
    ("Connect to a server", Skip("uses the default port")),
    ("Wait for a code", Run(SEND)),
    ("Wait for a link", Run("[[ $code == 271828 ]]")),
    (
        "Wait for messages, or check that none arrive",
        Run("message --subject Welcome; message --subject 'Welcome back'; message --subject 'Your order'"),
    ),
    ("Run tests with mail of their own", Skip("needs the tests of a project")),
    ("Watch mail arrive", Skip("runs until Ctrl-C")),
    (
        "List, read and search",
        Run(
            "printf 'a,b\\n' > data.csv; message --subject Report --html '<p>Hello</p>' --attach data.csv --header 'X-Tags: run7'",
        ),
    ),
    ("Tag", Run("")),
    (
        "Delete",
        Run("message --subject Run --header 'X-Tags: run7'; head -c 2000000 /dev/zero > large.bin; \
             message --subject Large --attach large.bin; message --subject 'Draft 1'"),
    ),
    (
        "Send",
        Run("[[ -z $(restante list ann) ]] || exit 1
             echo Hello > text.txt; echo '<p>Hello</p>' > page.html; echo %PDF > invoice.pdf"),
    ),
    ("Replace sendmail", Skip("changes the system")),
    ("Send to other mail servers", Skip("needs a relay target")),
    ("See and control webhooks", Skip("needs a webhook target")),
    ("Use scripts for Inbucket's client", Run("sign_up ann@example.org")),
    ("Run a command in a container", Skip("needs a container")),
    (
        "Install completions and man pages",
        Run("mkdir -p share/bash-completion/completions share/zsh/vendor-completions share/fish/vendor_completions.d \
             share/man/man1"),
    ),
];

/// The whole page is one script, which starts with an empty server.
#[test]
fn examples_of_the_shell_page_work_in_a_strict_shell() {
    let usable = is_installed("bash", &["--version"], "bash", REQUIRED)
        && is_installed("curl", &["--version"], "http", REQUIRED);
    if !usable {
        return;
    }
    let server = Server::start(&[]);
    let folder = TestDir::new();
    symlink(env!("CARGO_BIN_EXE_restante"), folder.path().join("restante")).unwrap();
    let page = fs::read_to_string(repository().join("docs/shell.md")).unwrap();
    let blocks = blocks(&page);
    let mut headings: Vec<&str> = blocks.iter().map(|block| block.heading).collect();
    headings.dedup();
    let expected: Vec<&str> = SHELL_EXAMPLES.iter().map(|(heading, _)| *heading).collect();
    assert_eq!(headings, expected, "every section with examples is run, or skipped for a reason");

    let mut script_text = String::from("set -euo pipefail\ncommand -v jq > /dev/null || jq() { cat > /dev/null; }\n");
    for (heading, example) in SHELL_EXAMPLES {
        let preparations = match example {
            Run(preparations) => preparations,
            Skip(reason) => {
                println!("{heading}: skipped, {reason}");
                continue;
            }
        };
        writeln!(script_text, "echo '== {}' >&2\n{preparations}", heading.replace('\'', "")).unwrap();
        for block in blocks.iter().filter(|block| block.heading == *heading) {
            script_text.push_str(&script(block));
        }
        if *heading == "Try it" {
            // The other examples start with an empty server.
            script_text.push_str("restante purge --all\n");
        }
    }
    let script_text = script_text
        .replace("-host localhost -port 9000", &format!("-host 127.0.0.1 -port {}", server.http.port()))
        .replace("/usr/share/", "share/")
        .replace("| man -l -", "| cat");

    let mut command: Command = program(Path::new("bash"), &server.url(""));
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", folder.path().display())).current_dir(folder.path());
    let (code, out, stderr) = run(command.args(["-c", &script_text]));
    assert_eq!(code, 0, "{out}\n{stderr}");
    assert!(folder.path().join("share/man/man1/restante-demo.1").exists());
}
