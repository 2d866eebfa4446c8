//! Lines of the log for programs: one JSON object each.

use std::fmt;

use serde::ser::{Serialize, Serializer};
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::time::FormatTime as _;
use tracing_subscriber::fmt::{FmtContext, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

use super::{Clock, SCRIPT_FIELDS, SCRIPT_PREFIX, is_treacherous, object};

/// The keys that every line has. A field of a script with such a name gets [`SCRIPT_PREFIX`], and so does one that would be
/// there twice.
const OURS: [&str; 4] = ["timestamp", "level", "message", "target"];

/// Lines for programs. Spans have to be formatted as JSON too.
pub(super) struct Json;

impl<S, N> FormatEvent<S, N> for Json
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut line = Line::default();
        let mut time = String::new();
        Clock.format_time(&mut Writer::new(&mut time))?;
        line.put("timestamp", time);
        line.put("level", event.metadata().level().as_str());
        event.record(&mut line);
        line.put("target", event.metadata().target());
        for span in context.event_scope().into_iter().flatten() {
            if let Some(fields) = span.extensions().get::<FormattedFields<N>>() {
                line.add(fields);
            }
        }
        let fields = std::mem::take(&mut line.of_script);
        line.add(&fields);
        let line = serde_json::to_string(&line).map_err(|_| fmt::Error)?;
        // They stand in texts only, and JSON may write any character as its number.
        for part in line.split_inclusive(is_treacherous) {
            let clean = part.strip_suffix(is_treacherous).unwrap_or(part);
            writer.write_str(clean)?;
            for c in part[clean.len()..].chars() {
                write!(writer, "\\u{:04x}", u32::from(c))?;
            }
        }
        writer.write_char('\n')
    }
}

/// The entries of a line, in their order.
#[derive(Default)]
struct Line {
    entries: Vec<(String, Value)>,
    /// What a script has added, as JSON.
    of_script: String,
}

impl Line {
    fn put(&mut self, name: &str, value: impl Into<Value>) {
        self.entries.push((name.to_owned(), value.into()));
    }

    /// Adds the fields of a JSON object.
    fn add(&mut self, fields: &str) {
        for (mut name, value) in object(fields) {
            while OURS.contains(&name.as_str()) || self.entries.iter().any(|(other, _)| *other == name) {
                name.insert_str(0, SCRIPT_PREFIX);
            }
            self.entries.push((name, value));
        }
    }
}

impl Visit for Line {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field.name(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field.name(), value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field.name(), value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field.name(), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        if field.name() == SCRIPT_FIELDS {
            self.of_script = text;
        } else {
            self.put(field.name(), text);
        }
    }
}

impl Serialize for Line {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.entries.iter().map(|(name, value)| (name, value)))
    }
}
