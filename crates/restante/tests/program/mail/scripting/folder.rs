//! A folder with a script, and the server that runs it. Scripts report to tests by notes: lines of a file.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use restante_testdir::TestDir;

use crate::support::exposition::Exposition;
use crate::support::{Server, TEST_TIMEOUT, command};

/// The modules that scripts load by `require("note")` and `require("hold")`.
const MODULES: [(&str, &str); 2] = [("note.lua", include_str!("note.lua")), ("hold.lua", include_str!("hold.lua"))];

/// All events of scripts.
pub(crate) const EVENTS: [&str; 5] = [
    "before.mail_from_accepted",
    "before.rcpt_to_accepted",
    "before.message_stored",
    "after.message_stored",
    "after.message_deleted",
];

/// A folder that is the working directory of the server. It is removed when the test ends, unless the test fails.
pub(crate) struct Folder(TestDir);

impl Folder {
    /// Creates a folder without a script.
    pub(crate) fn empty(name: &str) -> Self {
        let this = Self(TestDir::kept_on_failure(&format!("script-{name}")));
        let lib = this.0.path().join("lib");
        fs::create_dir(&lib).unwrap();
        // Whatever the umask is, no other user can write scripts here.
        for directory in [this.0.path(), &lib] {
            fs::set_permissions(directory, Permissions::from_mode(0o755)).unwrap();
        }
        for (file, text) in MODULES {
            this.write(file, text);
        }
        this
    }

    /// Creates a folder with the script `rules.lua`.
    pub(crate) fn new(name: &str, script: &str) -> Self {
        let this = Self::empty(name);
        this.write("rules.lua", script);
        this
    }

    /// Returns the path of the folder.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Replaces a file atomically.
    pub(crate) fn write(&self, file: &str, text: &str) {
        let new = self.0.path().join("new");
        fs::write(&new, text).unwrap();
        fs::set_permissions(&new, Permissions::from_mode(0o644)).unwrap();
        fs::rename(new, self.0.path().join(file)).unwrap();
    }

    /// Changes the mode of a file, or of the folder itself if the name is empty.
    pub(crate) fn set_mode(&self, file: &str, mode: u32) {
        fs::set_permissions(self.0.path().join(file), Permissions::from_mode(mode)).unwrap();
    }

    pub(crate) fn remove(&self, file: &str) {
        fs::remove_file(self.0.path().join(file)).unwrap();
    }

    /// Releases the calls that wait in `hold(name)`.
    pub(crate) fn release(&self, name: &str) {
        self.write(name, "");
    }

    /// Returns the program with this folder as working directory, where it finds default scripts.
    pub(crate) fn command(&self) -> Command {
        let mut command = command();
        command.current_dir(self.0.path());
        command
    }

    /// Like `command`, without any arguments, for commands that are not servers.
    pub(crate) fn bare_command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_restante"));
        command.current_dir(self.0.path()).env_clear();
        command
    }

    /// Starts a server that runs `rules.lua`.
    pub(crate) fn start(&self, arguments: &[&str]) -> Server {
        Server::spawn(self.command().args(["--lua-path", "rules.lua"]).args(arguments))
    }

    /// Waits for `count` notes and returns them.
    pub(crate) fn notes(&self, count: usize) -> Vec<String> {
        self.lines("notes.txt", count)
    }

    /// Waits until a file has `count` lines and returns them.
    pub(crate) fn lines(&self, file: &str, count: usize) -> Vec<String> {
        let lines = eventually(&format!("{file} has {count} lines"), || {
            let text = fs::read_to_string(self.0.path().join(file)).unwrap_or_default();
            // The last line may be incomplete.
            let complete = text.rsplit_once('\n').map_or("", |(complete, _)| complete);
            let lines: Vec<String> = complete.lines().map(str::to_owned).collect();
            (lines.len() >= count).then_some(lines)
        });
        assert_eq!(lines.len(), count, "{lines:?}");
        lines
    }

    /// Waits for `count` notes and returns them in alphabetical order, for scripts whose calls can overlap.
    pub(crate) fn sorted_notes(&self, count: usize) -> Vec<String> {
        let mut notes = self.notes(count);
        notes.sort();
        notes
    }
}

/// Retries until there is a value.
pub(crate) fn eventually<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + TEST_TIMEOUT;
    loop {
        if let Some(value) = attempt() {
            return value;
        }
        assert!(Instant::now() < deadline, "timed out: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns the value of a script metric, named without the common prefix.
pub(crate) fn metric(server: &Server, series: &str) -> f64 {
    let page = Exposition::parse(&String::from_utf8(server.bytes("/metrics")).unwrap());
    page.value(&format!("restante_script_{series}"))
}

/// Waits until a script metric has this value.
pub(crate) fn wait_for(server: &Server, series: &str, value: f64) {
    eventually(&format!("{series} is {value}"), || ((metric(server, series) - value).abs() < 1e-9).then_some(()));
}

/// Waits until `count` calls of an event have this outcome.
pub(crate) fn wait_for_calls(server: &Server, event: &str, outcome: &str, count: u32) {
    wait_for(server, &format!("calls_total{{event=\"{event}\",outcome=\"{outcome}\"}}"), count.into());
}

/// Returns whether this log line reports the timeout of a call. The call stops itself; on a busy machine the server may stop waiting
/// first.
pub(crate) fn is_timeout(line: &str, limit: &str) -> bool {
    line.contains(&format!("ERROR took longer than {limit}")) || line.contains("ERROR the call took too long")
}

/// Delivers a short message with this subject.
pub(crate) fn send(server: &Server, to: &str, subject: &str) {
    server.deliver(to, format!("Subject: {subject}\r\n\r\nhello\r\n").as_bytes());
}

/// Returns the subjects in a mailbox, as listed.
pub(crate) fn subjects(server: &Server, mailbox: &str) -> Vec<String> {
    let list = server.json(&format!("/api/v1/mailbox/{mailbox}"));
    list.as_array().unwrap().iter().map(|message| message["subject"].as_str().unwrap().to_owned()).collect()
}
