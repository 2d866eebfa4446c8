//! The log: its outputs and formats, and [`LogThrottle`], a limit on repeated lines.
//!
//! Below the configured level, a log statement costs one comparison. The text of a message is written as it is, because
//! programs that start the server wait for lines such as `SMTP listening on tcp4`. Only control characters are escaped,
//! because a hostile client could use them to forge lines or to control a terminal.

mod json;
mod text;
mod throttle;

use std::fs::{File, OpenOptions};
use std::io;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::Dispatch;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::JsonFields;
use tracing_subscriber::layer::SubscriberExt as _;

use json::Json;
use text::Text;

pub use throttle::LogThrottle;

/// The log target of the library that pools database connections. It warns about every connection that breaks; the
/// store logs once that the database is unavailable.
const POOL_TARGET: &str = "deadpool";

/// The settings of the log.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The least important level that is written.
    pub level: Level,
    /// Whether lines are JSON objects instead of text.
    pub json: bool,
    /// The destination of the lines.
    pub output: Output,
    /// Whether the conversations of the mail protocols are logged.
    pub netdebug: bool,
}

/// The importance of a log line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Level {
    /// Information for finding a bug.
    Debug,
    /// Information that an operator may want.
    #[default]
    Info,
    /// Something that an operator should check.
    Warn,
    /// Something that failed.
    Error,
}

/// The destination of log lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Output {
    /// Standard error.
    #[default]
    Stderr,
    /// Standard output.
    Stdout,
    /// A file, to which lines are appended.
    File(PathBuf),
}

/// Starts the log of the process. Fails if the file cannot be opened, or if a log was started before.
pub fn start(settings: &Settings) -> io::Result<Handle> {
    let (dispatch, handle) = build(settings)?;
    tracing::dispatcher::set_global_default(dispatch).map_err(io::Error::other)?;
    Ok(handle)
}

/// A started log.
#[derive(Debug, Clone)]
pub struct Handle {
    sink: Arc<Sink>,
}

impl Handle {
    /// Opens the log file again, after the old one was renamed. Does nothing if the log is not a file. If this fails,
    /// the log continues in the old file.
    pub fn reopen(&self) -> io::Result<()> {
        if let Sink::File { path, file } = &*self.sink {
            let new_file = open_for_append(path)?;
            *file.lock() = new_file;
        }
        Ok(())
    }
}

/// Creates a log without starting it.
fn build(settings: &Settings) -> io::Result<(Dispatch, Handle)> {
    let sink = Arc::new(Sink::open(&settings.output)?);
    // The reader of the log may disappear. Reporting that on a closed pipe would panic.
    let subscriber = tracing_subscriber::fmt().log_internal_errors(false);
    let subscriber = subscriber.with_max_level(level_filter(settings)).with_writer(Arc::clone(&sink));
    let dispatch = if settings.json {
        subscriber.fmt_fields(JsonFields::new()).event_format(Json).finish().with(target_filter(settings)).into()
    } else {
        subscriber.event_format(Text { colour: sink.is_terminal() }).finish().with(target_filter(settings)).into()
    };
    Ok((dispatch, Handle { sink }))
}

fn level_filter(settings: &Settings) -> LevelFilter {
    match settings.level {
        Level::Debug => LevelFilter::DEBUG,
        Level::Info => LevelFilter::INFO,
        // If conversations are logged, they must be visible.
        Level::Warn | Level::Error if settings.netdebug => LevelFilter::INFO,
        Level::Warn => LevelFilter::WARN,
        Level::Error => LevelFilter::ERROR,
    }
}

/// Returns the minimum level per target. The level is the same for all targets, except that warnings of [`POOL_TARGET`]
/// are written at debug level only.
fn target_filter(settings: &Settings) -> Targets {
    let all = Targets::new().with_default(level_filter(settings));
    match settings.level {
        Level::Debug => all,
        Level::Info | Level::Warn | Level::Error => all.with_target(POOL_TARGET, LevelFilter::ERROR),
    }
}

/// The open destination. Every line is one write.
#[derive(Debug)]
enum Sink {
    Stderr,
    Stdout,
    File { path: PathBuf, file: Mutex<File> },
}

impl Sink {
    fn open(output: &Output) -> io::Result<Self> {
        Ok(match output {
            Output::Stderr => Self::Stderr,
            Output::Stdout => Self::Stdout,
            Output::File(path) => Self::File { path: path.clone(), file: Mutex::new(open_for_append(path)?) },
        })
    }

    fn is_terminal(&self) -> bool {
        match self {
            Self::Stderr => io::stderr().is_terminal(),
            Self::Stdout => io::stdout().is_terminal(),
            Self::File { .. } => false,
        }
    }
}

impl Write for &Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::Stderr => io::stderr().write(bytes),
            Sink::Stdout => io::stdout().write(bytes),
            Sink::File { file, .. } => file.lock().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Sink::Stdout => io::stdout().flush(),
            Sink::Stderr | Sink::File { .. } => Ok(()),
        }
    }
}

fn open_for_append(path: &PathBuf) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// The field that contains the fields of a script's log entry, as the text of a JSON object, because the fields of a
/// `tracing` event are fixed at compile time. The formats replace it by the fields of the object.
pub const SCRIPT_FIELDS: &str = "lua.fields";

/// The prefix for fields of scripts whose names would be ambiguous.
const SCRIPT_PREFIX: &str = "lua_";

/// Returns whether a character could forge a line, control a terminal, or change the displayed order: control
/// characters, line and paragraph separators, and bidirectional formatting characters.
fn is_unsafe_char(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Parses a JSON object. Returns an empty one if the text is invalid.
fn parse_object(text: &str) -> serde_json::Map<String, serde_json::Value> {
    serde_json::from_str(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use restante_testdir::TestDir;

    use super::*;

    /// Runs `body` with a separate log. Returns the lines that it wrote.
    fn logged(json: bool, level: Level, body: impl FnOnce(&PathBuf, &Handle)) -> Vec<String> {
        let dir = TestDir::new();
        let path = dir.path().join("log");
        let output = Output::File(path.clone());
        let (dispatch, handle) = build(&Settings { level, json, output, netdebug: false }).expect("the log opens");
        tracing::dispatcher::with_default(&dispatch, || body(&path, &handle));
        let text = fs::read_to_string(&path).expect("the log exists");
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn formats_text_lines() {
        let lines = logged(false, Level::Info, |_, _| {
            tracing::info!(addr = %"127.0.0.1:2500", "SMTP listening on tcp4");
            tracing::debug!("below the level");
            tracing::warn!(helo = "two words", count = 3, "odd {}", "client");
            let _session = tracing::info_span!("session", id = 7).entered();
            tracing::error!("failed");
        });
        let tails: Vec<&str> = lines.iter().map(|line| line.split_once("Z ").expect("a time").1).collect();
        assert_eq!(
            tails,
            [
                "INFO  SMTP listening on tcp4 addr=127.0.0.1:2500",
                "WARN  odd client helo=\"two words\" count=3",
                "ERROR failed id=7",
            ]
        );
    }

    #[test]
    fn pool_warnings_are_logged_at_debug_level_only() {
        for (level, expected) in [(Level::Debug, 2), (Level::Info, 1), (Level::Warn, 1)] {
            for json in [false, true] {
                let lines = logged(json, level, |_, _| {
                    tracing::warn!(target: "deadpool.postgres", "Connection error: db error");
                    tracing::warn!("the database is unavailable");
                });
                assert_eq!(lines.len(), expected, "{lines:?}");
                assert!(lines[expected - 1].contains("the database is unavailable"), "{lines:?}");
            }
        }
    }

    #[test]
    fn formats_json_lines() {
        let lines = logged(true, Level::Warn, |_, _| {
            tracing::info!("below the level");
            let _session = tracing::info_span!("session", id = 7).entered();
            let _connection = tracing::error_span!("connection", id = 8).entered();
            tracing::warn!(addr = "::1", count = 3, ready = true, rate = 0.5, peer = ?Some(1), "SMTP listening on tcp6");
        });
        let [line] = &lines[..] else { panic!("{lines:?}") };
        let value: serde_json::Value = serde_json::from_str(line).expect("it is JSON");
        assert_eq!(value["message"], "SMTP listening on tcp6");
        assert_eq!((&value["level"], &value["addr"]), (&"WARN".into(), &"::1".into()));
        assert_eq!((&value["count"], &value["ready"], &value["rate"]), (&3.into(), &true.into(), &0.5.into()));
        assert_eq!((&value["peer"], &value["id"]), (&"Some(1)".into(), &8.into()));
    }

    #[test]
    fn script_fields_are_added_to_lines() {
        let entry = || {
            let fields =
                r#"{"level":"x","n":3,"text":"two words","deep":{"a":[true]},"script":1,"":2,"a b":3,"a_b":4}"#;
            tracing::info!(script = "a.lua", lua.fields = %fields, "hello");
        };
        let lines = logged(false, Level::Info, |_, _| entry());
        let tail = lines[0].split_once("Z ").expect("a time").1;
        let expected = r#"INFO  hello script=a.lua _=2 a_b=3 a_b=4 deep={"a":[true]} lua_level=x n=3 lua_script=1 text="two words""#;
        assert_eq!(tail, expected);

        let lines = logged(true, Level::Info, |_, _| entry());
        let value: serde_json::Value = serde_json::from_str(&lines[0]).expect("it is JSON");
        let mut expected = serde_json::json!({
            "level": "INFO", "message": "hello", "target": module_path!(), "script": "a.lua",
            "lua_level": "x", "n": 3, "text": "two words", "deep": {"a": [true]},
            "lua_script": 1, "": 2, "a b": 3, "a_b": 4,
        });
        expected["timestamp"] = value["timestamp"].clone();
        assert_eq!(value, expected);
    }

    #[test]
    fn script_field_names_cannot_forge_fields() {
        let lines = logged(false, Level::Info, |_, _| {
            let fields = r#"{"a=b c\n\u202e":1,"ü.x-y_z":2,"time":3,"target":4,"message":5,"line":6,"event":7}"#;
            tracing::info!(lua.fields = %fields, "hello");
        });
        let tail = lines[0].split_once("Z ").expect("a time").1;
        assert_eq!(
            tail,
            "INFO  hello a_b_c__=1 lua_event=7 lua_line=6 lua_message=5 lua_target=4 lua_time=3 ü.x-y_z=2"
        );
    }

    #[test]
    fn escapes_unsafe_characters() {
        for json in [false, true] {
            let lines = logged(json, Level::Info, |_, _| {
                tracing::info!(helo = "x\r\nERROR forged", "hello \n\u{1b}[2J \u{9b}31m \u{2028} \u{202e} \u{2066}");
            });
            assert_eq!(lines.len(), 1, "{lines:?}");
            assert!(!lines[0].contains(is_unsafe_char), "{lines:?}");
            let value: Option<serde_json::Value> = serde_json::from_str(&lines[0]).ok();
            let message = value.and_then(|value| value["message"].as_str().map(str::to_owned));
            assert_eq!(message.is_some_and(|text| text.contains("\u{9b}31m \u{2028}")), json, "{lines:?}");
        }
    }

    #[test]
    fn reopens_renamed_file() {
        let mut old = String::new();
        let lines = logged(false, Level::Info, |path, handle| {
            let moved = path.with_extension("1");
            tracing::info!("before");
            fs::rename(path, &moved).expect("the log can be moved");
            tracing::info!("still in the old file");
            handle.reopen().expect("the log opens again");
            tracing::info!("after");
            old = fs::read_to_string(&moved).expect("the old log exists");
        });
        assert!(lines.len() == 1 && lines[0].ends_with("after"), "{lines:?}");
        assert_eq!(old.lines().count(), 2, "{old}");
    }
}
