//! Writes log lines of scripts to the log of the server, with the name of the script.

use std::fmt;

use crate::services::{Level, Log, LogField};

/// The log of one script.
pub(crate) struct ScriptLog {
    /// The script file.
    pub(crate) script: String,
}

impl Log for ScriptLog {
    fn is_enabled(&self, level: Level) -> bool {
        match level {
            Level::Debug => tracing::enabled!(target: "script", tracing::Level::DEBUG),
            Level::Info => tracing::enabled!(target: "script", tracing::Level::INFO),
            Level::Warn => tracing::enabled!(target: "script", tracing::Level::WARN),
            Level::Error => tracing::enabled!(target: "script", tracing::Level::ERROR),
        }
    }

    fn write(&self, level: Level, text: &str, fields: &[LogField]) {
        macro_rules! entry {
            ($level:ident) => {
                if fields.is_empty() {
                    tracing::$level!(target: "script", script = self.script, "{text}")
                } else {
                    tracing::$level!(target: "script", script = self.script, lua.fields = %JsonFields(fields), "{text}")
                }
            };
        }
        match level {
            Level::Debug => entry!(debug),
            Level::Info => entry!(info),
            Level::Warn => entry!(warn),
            Level::Error => entry!(error),
        }
    }
}

/// Displays fields as one JSON object.
struct JsonFields<'a>(&'a [LogField]);

impl fmt::Display for JsonFields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields: serde_json::Map<_, _> = self.0.iter().cloned().collect();
        f.write_str(&serde_json::Value::Object(fields).to_string())
    }
}

#[cfg(test)]
mod tests {
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    use super::*;

    /// A subscriber that accepts warnings and errors only.
    struct Warnings;

    impl Subscriber for Warnings {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            *metadata.level() <= tracing::Level::WARN
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn event(&self, _: &Event<'_>) {}
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }

    #[test]
    fn log_level_is_respected() {
        let log = ScriptLog { script: "rules.lua".to_owned() };
        let enabled = tracing::subscriber::with_default(Warnings, || Level::ALL.map(|level| log.is_enabled(level)));
        assert_eq!(enabled, [false, false, true, true]);
    }

    #[test]
    fn fields_are_one_json_object() {
        let fields = [("id", 17.into()), ("subject", "a \"b\"\n".into())].map(|(name, value)| (name.to_owned(), value));
        assert_eq!(JsonFields(&fields).to_string(), r#"{"id":17,"subject":"a \"b\"\n"}"#);
    }
}
