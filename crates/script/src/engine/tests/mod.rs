//! Tests of what scripts can and cannot do, each with a few lines of Lua. This file contains the fixture: a folder with
//! files, and fake services.

mod calls;
mod globals;
mod library;
mod limits;
mod require;

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mlua::Value;
use restante_http_client::{HttpError, HttpService, Request, Response};
use restante_mail::address::Address;
use restante_mail::envelope::Envelope;
use restante_mail::naming::Naming;
use restante_mailroom::hooks::{IncomingMessage, Verdict};
use restante_testdir::TestDir;

use super::{Engine, Program};
use crate::Settings;
use crate::call_error::CallError;
use crate::event::{Call, Reply};
use crate::modules::SharedDict;
use crate::services::{Level, Log, LogField, Services, SystemClock};
use crate::tests::fake_mail::FakeMail;

/// A folder with a script and the files next to it, and the settings for it.
struct Fixture {
    folder: PathBuf,
    /// Removes the folder when dropped.
    _dir: TestDir,
    settings: Settings,
    log: Arc<RecordingLog>,
}

impl Fixture {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = TestDir::new();
        let folder = dir.path().to_owned();
        for (name, text) in files {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let settings = Settings {
            paths: Vec::new(),
            trusted_files_only: false,
            sandbox: false,
            timeout: Duration::from_secs(20),
            max_memory_bytes: 16 << 20,
            before_states: 1,
            after_states: 1,
            max_calls: 1,
            max_queued_events: 1,
            naming: Naming::Local,
        };
        Self { folder, _dir: dir, settings, log: Arc::default() }
    }

    /// Creates a folder with only a script.
    fn script(text: &str) -> Self {
        Self::new(&[("rules.lua", text)])
    }

    fn sandboxed(mut self) -> Self {
        self.settings.sandbox = true;
        self
    }

    fn program(&self) -> Result<Program, String> {
        let log: Arc<dyn Log> = Arc::clone(&self.log) as _;
        let (http, mail, clock) = (Arc::new(NoNetwork), Arc::new(FakeMail::default()), Arc::new(SystemClock));
        let services = Services { http, mail, log, clock, commands: Arc::default() };
        Program::read(&self.folder.join("rules.lua"), &self.settings, services, Arc::new(SharedDict::new()))
            .map_err(|error| error.to_string())
    }

    fn engine(&self) -> Result<Engine, String> {
        self.program()?.engine().map_err(|error| error.to_string())
    }

    /// Loads the script. Returns its global `result`, or the error without the folder.
    fn result(&self) -> String {
        match self.engine() {
            Ok(engine) => global_text(&engine, "result"),
            Err(error) => error.replace(&format!("{}/", self.folder.display()), ""),
        }
    }
}

/// The calls of `before` functions.
impl Engine {
    fn before_mail_from(&mut self, envelope: &Envelope) -> Result<Verdict, CallError> {
        self.run(&Call::MailFrom(envelope.clone())).map(to_verdict)
    }

    fn before_rcpt_to(&mut self, envelope: &Envelope, candidate: &Address) -> Result<Verdict, CallError> {
        self.run(&Call::RcptTo(envelope.clone(), candidate.clone())).map(to_verdict)
    }

    fn before_message_stored(&mut self, message: &IncomingMessage) -> Result<Option<IncomingMessage>, CallError> {
        match self.run(&Call::BeforeStored(message.clone()))? {
            Reply::Message(message) => Ok(message),
            other => panic!("{other:?}"),
        }
    }
}

fn to_verdict(reply: Reply) -> Verdict {
    match reply {
        Reply::Verdict(verdict) => verdict,
        other => panic!("{other:?}"),
    }
}

/// Returns a global as text.
fn global_text(engine: &Engine, name: &str) -> String {
    engine.global(name).unwrap_or(Value::Nil).to_string().unwrap()
}

/// Runs every script of a table and compares the result or the error.
fn check_results(table: &[(&str, &str)]) {
    for (script, result) in table {
        assert_eq!(Fixture::script(script).result(), *result, "{script}");
    }
}

/// Records log lines, at the default log level.
#[derive(Default)]
struct RecordingLog(Mutex<Vec<(Level, String)>>);

impl Log for RecordingLog {
    fn is_enabled(&self, level: Level) -> bool {
        level != Level::Debug
    }

    fn write(&self, level: Level, text: &str, _: &[LogField]) {
        self.0.lock().unwrap().push((level, text.to_owned()));
    }
}

/// A network on which every request times out.
struct NoNetwork;

impl HttpService for NoNetwork {
    fn send(&self, _: &Request) -> Result<Response, HttpError> {
        Err(HttpError::Timeout)
    }
}
