//! What scripts write goes to the server's log, under the name of the script.

use std::fmt;

use crate::services::{Level, Log};

/// The log of one script.
pub(crate) struct ScriptLog {
    /// The script's file.
    pub(crate) script: String,
}

impl Log for ScriptLog {
    fn write(&self, level: Level, text: &str, fields: &[(String, String)]) {
        // The fields of an entry are fixed when the server is built, so those of scripts share one.
        macro_rules! entry {
            ($level:ident) => {
                if fields.is_empty() {
                    tracing::$level!(target: "script", script = self.script, "{text}")
                } else {
                    tracing::$level!(target: "script", script = self.script, fields = %Fields(fields), "{text}")
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

/// Fields as they are written: `name=value other="two words"`.
struct Fields<'a>(&'a [(String, String)]);

impl fmt::Display for Fields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.0.iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            if value.is_empty() || value.contains(|c: char| c.is_whitespace() || c.is_control() || c == '"') {
                write!(f, "{space}{name}={value:?}")?;
            } else {
                write!(f, "{space}{name}={value}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_can_be_told_apart() {
        let fields = [("id", "17"), ("subject", "two words"), ("none", ""), ("quoted", "a\"b\n")];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(Fields(&fields).to_string(), r#"id=17 subject="two words" none="" quoted="a\"b\n""#);
        assert_eq!(Fields(&[]).to_string(), "");
    }
}
