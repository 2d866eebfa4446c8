//! The log format for people.

use std::borrow::Cow;
use std::fmt;
use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

use super::{SCRIPT_FIELDS, SCRIPT_PREFIX, is_unsafe_char, parse_object};

/// Names that have a meaning in log lines about scripts, or seem to have one. A field of a script with such a name gets
/// [`SCRIPT_PREFIX`].
const RESERVED_NAMES: [&str; 7] = ["event", "level", "line", "message", "script", "target", "time"];

/// Formats events as text: time, level, message, and `key=value` for each field.
pub(super) struct Text {
    pub(super) colour: bool,
}

impl<S, N> FormatEvent<S, N> for Text
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let level = *event.metadata().level();
        let (on, off) = match (self.colour, level) {
            (false, _) | (true, tracing::Level::INFO) => ("", ""),
            (true, tracing::Level::ERROR) => ("\x1b[31m", "\x1b[0m"),
            (true, tracing::Level::WARN) => ("\x1b[33m", "\x1b[0m"),
            (true, _) => ("\x1b[2m", "\x1b[0m"),
        };
        // The time is in UTC, with milliseconds.
        write!(writer, "{:.3} {on}{level:<5}{off} ", Timestamp::now())?;

        let mut line = TextLine::default();
        event.record(&mut line);
        Escaped(&mut writer).write_str(&line.message)?;
        Escaped(&mut writer).write_str(&line.fields)?;
        for span in context.event_scope().into_iter().flatten() {
            if let Some(fields) = span.extensions().get::<FormattedFields<N>>()
                && !fields.is_empty()
            {
                writer.write_char(' ')?;
                Escaped(&mut writer).write_str(fields)?;
            }
        }
        writer.write_char('\n')
    }
}

/// The message of an event, and its other fields, formatted.
#[derive(Default)]
struct TextLine {
    message: String,
    fields: String,
}

impl TextLine {
    fn push_pair(&mut self, name: &str, value: &str) {
        let _ = if value.is_empty() || value.contains([' ', '"', '=']) {
            write!(self.fields, " {name}={value:?}")
        } else {
            write!(self.fields, " {name}={value}")
        };
    }
}

impl Visit for TextLine {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.message.push_str(value);
        } else {
            self.push_pair(field.name(), value);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            let _ = write!(self.message, "{value:?}");
        } else if field.name() == SCRIPT_FIELDS {
            for (name, value) in parse_object(&format!("{value:?}")) {
                let name = sanitize_name(&name);
                match value {
                    Value::String(text) => self.push_pair(&name, &text),
                    // Writing to a string cannot fail, here and elsewhere.
                    other => drop(write!(self.fields, " {name}={other}")),
                }
            }
        } else {
            let _ = write!(self.fields, " {field}={value:?}");
        }
    }
}

/// Returns a name that cannot be confused with a value, with two fields, or with a reserved name.
fn sanitize_name(name: &str) -> Cow<'_, str> {
    if name.is_empty() {
        return "_".into();
    }
    if RESERVED_NAMES.contains(&name) {
        return format!("{SCRIPT_PREFIX}{name}").into();
    }
    name.replace(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '.' | '-'), "_").into()
}

/// Writes text, and escapes control characters and other unsafe ones.
struct Escaped<'a, 'b>(&'a mut Writer<'b>);

impl fmt::Write for Escaped<'_, '_> {
    fn write_str(&mut self, mut text: &str) -> fmt::Result {
        while let Some(at) = text.find(is_unsafe_char) {
            let (safe, rest) = text.split_at(at);
            let mut chars = rest.chars();
            self.0.write_str(safe)?;
            for control in chars.by_ref().take(1) {
                write!(self.0, "{}", control.escape_default())?;
            }
            text = chars.as_str();
        }
        self.0.write_str(text)
    }
}
