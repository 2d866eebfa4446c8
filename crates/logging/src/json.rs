//! The log format for programs: one JSON object per line.

use std::fmt;

use jiff::Timestamp;
use serde::ser::{Serialize, Serializer};
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

use super::{SCRIPT_FIELDS, SCRIPT_PREFIX, is_unsafe_char, parse_object};

/// The keys of every line. A field of a script with such a name, or with the name of another field, gets
/// [`SCRIPT_PREFIX`].
const RESERVED_KEYS: [&str; 4] = ["timestamp", "level", "message", "target"];

/// Formats events as JSON. Spans must be formatted as JSON too.
pub(super) struct Json;

impl<S, N> FormatEvent<S, N> for Json
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut line = JsonLine::default();
        // In UTC, with milliseconds.
        line.push("timestamp", format!("{:.3}", Timestamp::now()));
        line.push("level", event.metadata().level().as_str());
        event.record(&mut line);
        line.push("target", event.metadata().target());
        for span in context.event_scope().into_iter().flatten() {
            if let Some(fields) = span.extensions().get::<FormattedFields<N>>() {
                line.push_object(fields);
            }
        }
        let fields = std::mem::take(&mut line.script_fields);
        line.push_object(&fields);
        let line = serde_json::to_string(&line).map_err(|_| fmt::Error)?;
        // These characters can only be in strings, and JSON can escape every character.
        for part in line.split_inclusive(is_unsafe_char) {
            let safe = part.strip_suffix(is_unsafe_char).unwrap_or(part);
            writer.write_str(safe)?;
            for c in part[safe.len()..].chars() {
                write!(writer, "\\u{:04x}", u32::from(c))?;
            }
        }
        writer.write_char('\n')
    }
}

/// The entries of a line, in order.
#[derive(Default)]
struct JsonLine {
    entries: Vec<(String, Value)>,
    /// The fields that a script has added, as JSON.
    script_fields: String,
}

impl JsonLine {
    fn push(&mut self, name: &str, value: impl Into<Value>) {
        self.entries.push((name.to_owned(), value.into()));
    }

    /// Adds the fields of a JSON object.
    fn push_object(&mut self, fields: &str) {
        for (mut name, value) in parse_object(fields) {
            while RESERVED_KEYS.contains(&name.as_str()) || self.entries.iter().any(|(other, _)| *other == name) {
                name.insert_str(0, SCRIPT_PREFIX);
            }
            self.entries.push((name, value));
        }
    }
}

impl Visit for JsonLine {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.push(field.name(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.push(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.push(field.name(), value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.push(field.name(), value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.push(field.name(), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        if field.name() == SCRIPT_FIELDS {
            self.script_fields = text;
        } else {
            self.push(field.name(), text);
        }
    }
}

impl Serialize for JsonLine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.entries.iter().map(|(name, value)| (name, value)))
    }
}
