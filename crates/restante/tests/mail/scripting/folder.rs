//! A folder with a script, and the server that runs it there. Scripts tell tests what they see by notes: lines of a file.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use restante_testdir::TestDir;

use crate::support::exposition::Exposition;
use crate::support::{LONG, Server, command};

/// What scripts get by `require("note")` and `require("hold")`.
const BESIDE: [(&str, &str); 2] = [("note.lua", include_str!("note.lua")), ("hold.lua", include_str!("hold.lua"))];

/// The events that a script can have functions for.
pub(crate) const EVENTS: [&str; 5] = [
    "before.mail_from_accepted",
    "before.rcpt_to_accepted",
    "before.message_stored",
    "after.message_stored",
    "after.message_deleted",
];

/// The folder is the working directory of the server. It is removed when the test ends, unless the test fails.
pub(crate) struct Folder(TestDir);

impl Folder {
    /// A folder without a script.
    pub(crate) fn empty(name: &str) -> Self {
        let this = Self(TestDir::kept_on_failure(&format!("script-{name}")));
        fs::create_dir(this.0.path().join("lib")).unwrap();
        for (file, text) in BESIDE {
            this.write(file, text);
        }
        this
    }

    /// A folder with the script `rules.lua`.
    pub(crate) fn new(name: &str, script: &str) -> Self {
        let this = Self::empty(name);
        this.write("rules.lua", script);
        this
    }

    /// Writes a file, as a whole.
    pub(crate) fn write(&self, file: &str, text: &str) {
        let new = self.0.path().join("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, self.0.path().join(file)).unwrap();
    }

    pub(crate) fn remove(&self, file: &str) {
        fs::remove_file(self.0.path().join(file)).unwrap();
    }

    /// Lets calls go on that hold under this name.
    pub(crate) fn let_go(&self, name: &str) {
        self.write(name, "");
    }

    /// The program in this folder, where it finds what it looks for without being told.
    pub(crate) fn command(&self) -> Command {
        let mut command = command();
        command.current_dir(self.0.path());
        command
    }

    /// The same without any arguments, for commands that serve nothing.
    pub(crate) fn bare_command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_restante"));
        command.current_dir(self.0.path()).env_clear();
        command
    }

    /// A server that runs `rules.lua`.
    pub(crate) fn start(&self, arguments: &[&str]) -> Server {
        Server::spawn(self.command().args(["--lua-path", "rules.lua"]).args(arguments))
    }

    /// The notes, as soon as there are so many.
    pub(crate) fn notes(&self, count: usize) -> Vec<String> {
        self.lines("notes.txt", count)
    }

    /// The lines of a file, as soon as there are so many.
    pub(crate) fn lines(&self, file: &str, count: usize) -> Vec<String> {
        let lines = eventually(&format!("{file} has {count} lines"), || {
            let text = fs::read_to_string(self.0.path().join(file)).unwrap_or_default();
            // The last line may still be on its way.
            let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
            let lines: Vec<String> = whole.lines().map(str::to_owned).collect();
            (lines.len() >= count).then_some(lines)
        });
        assert_eq!(lines.len(), count, "{lines:?}");
        lines
    }

    /// The notes in alphabetical order, for scripts whose calls may overlap.
    pub(crate) fn sorted_notes(&self, count: usize) -> Vec<String> {
        let mut notes = self.notes(count);
        notes.sort();
        notes
    }
}

/// Asks until there is an answer.
pub(crate) fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + LONG;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "it never happens that {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The value of a metric of the script, without what all of them begin with.
pub(crate) fn metric(server: &Server, series: &str) -> f64 {
    let page = Exposition::parse(&String::from_utf8(server.bytes("/metrics")).unwrap());
    page.value(&format!("restante_script_{series}"))
}

/// Waits until a metric of the script has this value.
pub(crate) fn wait_for(server: &Server, series: &str, value: f64) {
    eventually(&format!("{series} is {value}"), || ((metric(server, series) - value).abs() < 1e-9).then_some(()));
}

/// Waits until so many calls for an event have ended so.
pub(crate) fn wait_for_calls(server: &Server, event: &str, outcome: &str, count: u32) {
    wait_for(server, &format!("calls_total{{event=\"{event}\",outcome=\"{outcome}\"}}"), count.into());
}

/// Whether this log line says that the time of a call was up. A call of Lua code ends itself; on a busy machine the server
/// may stop waiting for it first.
pub(crate) fn says_time_is_up(line: &str, limit: &str) -> bool {
    line.contains(&format!("ERROR took longer than {limit}")) || line.contains("ERROR the call took too long")
}

/// Hands in a short mail with this subject.
pub(crate) fn send(server: &Server, to: &str, subject: &str) {
    server.deliver(to, format!("Subject: {subject}\r\n\r\nhello\r\n").as_bytes());
}

/// The subjects in a mailbox, as lists show them.
pub(crate) fn subjects(server: &Server, mailbox: &str) -> Vec<String> {
    let list = server.json(&format!("/api/v1/mailbox/{mailbox}"));
    list.as_array().unwrap().iter().map(|message| message["subject"].as_str().unwrap().to_owned()).collect()
}
