//! Errors of calls, and the conversion of Lua errors into one line for the log. Limits are in `limits.rs`.

use std::fmt;

use mlua::{Error, Lua};

/// A file and a line in it.
pub(crate) type SourceLocation = (String, u32);

/// An error of a call. Displayed as one line: `rules.lua:12: text`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallError {
    pub(crate) kind: CallErrorKind,
    /// The location in the script, if it is known.
    pub(crate) location: Option<SourceLocation>,
    pub(crate) text: String,
}

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallErrorKind {
    /// The script raised an error.
    Script,
    /// The function returned an invalid value.
    InvalidResult,
    /// The call took too long.
    Timeout,
    /// The call needed too much memory.
    Memory,
    /// The calls were nested too deeply.
    Depth,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.location {
            Some((file, line)) => write!(f, "{file}:{line}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// How many stack frames are searched for a line of the script.
const MAX_FRAMES: usize = 16;

/// The maximum length of an error text. Scripts build texts from messages.
const MAX_TEXT_BYTES: usize = 2048;

/// The chunk name of the code of the server. Errors are never attributed to it.
pub(crate) const PRELUDE_NAME: &str = "restante";

/// Returns the line of the script that is executing, or that called the code that is executing.
pub(crate) fn current_location(lua: &Lua) -> Option<SourceLocation> {
    with_current_location(lua, |file, line| (file.to_owned(), line))
}

/// Calls `visit` with the file and line that [`current_location`] would return, without copying the file name.
pub(crate) fn with_current_location<T>(lua: &Lua, mut visit: impl FnMut(&str, u32) -> T) -> Option<T> {
    (0..MAX_FRAMES).find_map(|level| {
        lua.inspect_stack(level, |frame| {
            let line = u32::try_from(frame.current_line()?).ok()?;
            let file = frame.source().short_src?;
            (file != PRELUDE_NAME).then(|| visit(&file, line))
        })?
    })
}

/// Returns the kind, the location if the error contains one, and the text without the location.
pub(crate) fn describe(error: &Error) -> (CallErrorKind, Option<SourceLocation>, String) {
    let mut error = error;
    let mut frames = "";
    while let Error::CallbackError { traceback, cause } = error {
        frames = traceback;
        error = cause;
    }
    let kind = if is_out_of_memory(error) { CallErrorKind::Memory } else { CallErrorKind::Script };
    let message = match error {
        Error::SyntaxError { message, .. } => message.clone(),
        Error::RuntimeError(text) | Error::MemoryError(text) | Error::SafetyError(text) => text.clone(),
        other => other.to_string(),
    };
    let (text, frames) = message.split_once("\nstack traceback:").unwrap_or((&message, frames));
    let Some((mut location, mut text)) = split_location(text) else {
        return (kind, first_location(frames), to_one_line(text));
    };
    // Lua adds a location for every `coroutine.wrap` on the way out. The original location is the last one.
    while let Some((inner, rest)) = split_location(text).filter(|((file, _), _)| *file == location.0) {
        (location, text) = (inner, rest);
    }
    if location.0 == PRELUDE_NAME {
        return (kind, first_location(frames), to_one_line(text));
    }
    (kind, Some(location), to_one_line(text))
}

/// Returns whether the state has run out of memory.
pub(crate) fn is_out_of_memory(error: &Error) -> bool {
    match error {
        Error::MemoryError(_) => true,
        Error::CallbackError { cause, .. } | Error::BadArgument { cause, .. } | Error::WithContext { cause, .. } => {
            is_out_of_memory(cause)
        }
        _ => false,
    }
}

/// Splits `rules.lua:12: text`.
fn split_location(text: &str) -> Option<(SourceLocation, &str)> {
    let (location, rest) = text.split_once(": ")?;
    let (file, line) = location.rsplit_once(':')?;
    let line = line.parse().ok()?;
    if file.is_empty() || file.contains('\n') {
        return None;
    }
    Some(((file.to_owned(), line), rest))
}

/// Returns the innermost line of a script in a traceback.
fn first_location(frames: &str) -> Option<SourceLocation> {
    let locations = frames.lines().filter_map(|frame| split_location(frame.trim_start()));
    locations.map(|(location, _)| location).find(|(file, _)| file != PRELUDE_NAME)
}

fn to_one_line(text: &str) -> String {
    let mut line = String::new();
    for word in text.split(|c: char| c.is_control()).map(str::trim).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line.truncate(line.floor_char_boundary(MAX_TEXT_BYTES));
    line
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn splits_errors_into_location_and_text() {
        let runtime = |text: &str| Error::RuntimeError(text.to_owned());
        let callback = |traceback: &str, cause: Error| Error::CallbackError {
            traceback: traceback.to_owned(),
            cause: Arc::new(cause),
        };
        let frames =
            "stack traceback:\n\t[C]: in function 'x'\n\trestante:9: in function 'pcall'\n\ta.lua:7: in main chunk";
        let table = [
            (runtime("a.lua:3: bad thing"), Some(("a.lua", 3)), "bad thing"),
            (runtime("a.lua:9: a.lua:3: b.lua:1: in a coroutine"), Some(("a.lua", 3)), "b.lua:1: in a coroutine"),
            (runtime("/x/y z.lua:3: a: b:4: c"), Some(("/x/y z.lua", 3)), "a: b:4: c"),
            (
                runtime("bare\nstack traceback:\n\t[C]: in function 'error'\n\ta.lua:5: in f"),
                Some(("a.lua", 5)),
                "bare",
            ),
            (
                runtime("restante:5: bare\nstack traceback:\n\trestante:5: in f\n\ta.lua:5: in g"),
                Some(("a.lua", 5)),
                "bare",
            ),
            (runtime("one\n\ttwo\r\nthree"), None, "one two three"),
            (runtime(":3: nothing before"), None, ":3: nothing before"),
            (callback(frames, runtime("of the host")), Some(("a.lua", 7)), "of the host"),
            (callback(frames, runtime("b.lua:2: inner")), Some(("b.lua", 2)), "inner"),
            (callback("", callback(frames, runtime("deep"))), Some(("a.lua", 7)), "deep"),
        ];
        for (error, location, text) in table {
            let location = location.map(|(file, line): (&str, u32)| (file.to_owned(), line));
            assert_eq!(describe(&error), (CallErrorKind::Script, location, text.to_owned()));
        }
    }

    #[test]
    fn finds_memory_errors_in_callbacks_and_truncates_texts() {
        let error = Error::CallbackError {
            traceback: String::new(),
            cause: Arc::new(Error::MemoryError("not enough memory".to_owned())),
        };
        assert_eq!(describe(&error), (CallErrorKind::Memory, None, "not enough memory".to_owned()));
        let (_, _, text) = describe(&Error::RuntimeError("ä".repeat(MAX_TEXT_BYTES)));
        assert_eq!(text.len(), MAX_TEXT_BYTES);
    }
}
