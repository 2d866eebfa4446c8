//! What scripts write goes to the server's log, under the name of the script.

use std::fmt;

use crate::services::{Field, Level, Log};

/// The field of an entry in the log that holds those of the script, as a JSON object: the fields of an entry are fixed
/// when the server is built. Whoever writes lines takes it apart.
pub const LOG_FIELDS: &str = "lua.fields";

/// The log of one script.
pub(crate) struct ScriptLog {
    /// The script's file.
    pub(crate) script: String,
}

impl Log for ScriptLog {
    fn write(&self, level: Level, text: &str, fields: &[Field]) {
        macro_rules! entry {
            ($level:ident) => {
                if fields.is_empty() {
                    tracing::$level!(target: "script", script = self.script, "{text}")
                } else {
                    tracing::$level!(target: "script", script = self.script, lua.fields = %Object(fields), "{text}")
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

/// Fields as one JSON object.
struct Object<'a>(&'a [Field]);

impl fmt::Display for Object<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields: serde_json::Map<_, _> = self.0.iter().cloned().collect();
        f.write_str(&serde_json::Value::Object(fields).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_become_one_object() {
        let fields = [("id", 17.into()), ("subject", "a \"b\"\n".into())].map(|(name, value)| (name.to_owned(), value));
        assert_eq!(Object(&fields).to_string(), r#"{"id":17,"subject":"a \"b\"\n"}"#);
    }
}
