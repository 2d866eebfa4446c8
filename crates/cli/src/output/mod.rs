//! Output for terminals and pipes: colors, tables, JSON, and formatting of sizes and times.

mod table;
mod times;
mod width;

use std::io::{self, IsTerminal as _, Write};

use restante_mail::terminal_text;
use serde_json::Value;
use terminal_size::{Width, terminal_size_of};

pub(crate) use table::{Column, Table};
pub(crate) use times::format_ago;
pub(crate) use width::{display_width, truncate};

/// The width if the terminal does not report one.
const DEFAULT_WIDTH: usize = 80;

/// When colors are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Color {
    // On a terminal, unless `NO_COLOR` is set or the terminal does not support colors. A doc comment would be shown in the help.
    #[default]
    Auto,
    Always,
    Never,
}

/// The role of a text, which determines its color.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextStyle {
    Plain,
    /// Names of columns and fields.
    Head,
    Id,
    /// A match of a query.
    Hit,
    /// Less important text.
    Faint,
}

/// The properties of standard output.
#[derive(Clone, Debug)]
pub(crate) struct OutputStyle {
    /// The width of the terminal; `None` for a pipe or a file.
    width: Option<usize>,
    colors: bool,
}

impl OutputStyle {
    /// Detects the properties of standard output.
    pub(crate) fn for_stdout(color: Color) -> Self {
        let stdout = io::stdout();
        let width = stdout.is_terminal().then(|| {
            let size = terminal_size_of(&stdout).map_or(0, |(Width(columns), _)| usize::from(columns));
            if size == 0 { DEFAULT_WIDTH } else { size }
        });
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let colors = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => width.is_some() && !is_set("NO_COLOR") && restante_platform::shows_colors(),
        };
        Self { width, colors }
    }

    /// Returns the width of the terminal; `None` for a pipe or a file.
    pub(crate) fn width(&self) -> Option<usize> {
        self.width
    }

    /// Returns true if standard output is a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        self.width.is_some()
    }

    /// Returns a text with the color of its role.
    pub(crate) fn paint(&self, style: TextStyle, text: &str) -> String {
        let code = match style {
            _ if !self.colors || text.is_empty() => return text.to_owned(),
            TextStyle::Plain => return text.to_owned(),
            TextStyle::Head | TextStyle::Faint => "2",
            TextStyle::Id => "36",
            TextStyle::Hit => "1;33",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// Writes a table.
    pub(crate) fn write_table<const N: usize>(&self, out: &mut dyn Write, table: &Table<N>) -> io::Result<()> {
        for line in table.lines(self) {
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    /// Writes a JSON document: indented on a terminal, otherwise on one line.
    pub(crate) fn write_json(&self, out: &mut dyn Write, document: &Value) -> io::Result<()> {
        let text = if self.is_terminal() { format!("{document:#}") } else { document.to_string() };
        writeln!(out, "{}", terminal_text::escape_json(&text))
    }
}

#[cfg(test)]
impl OutputStyle {
    pub(crate) fn terminal(width: usize, colors: bool) -> Self {
        Self { width: Some(width), colors }
    }

    pub(crate) fn pipe() -> Self {
        Self { width: None, colors: false }
    }
}

/// Returns `1 message`, `2 messages`.
pub(crate) fn count_with_noun(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Formats a size for people: `312`, `4.6k`, `12M`.
pub(crate) fn format_size(bytes: u64) -> String {
    let units = [(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "k")];
    match units.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) if bytes < 10 * unit => format!("{}.{}{name}", bytes / unit, bytes % unit * 10 / unit),
        Some((unit, name)) => format!("{}{name}", bytes / unit),
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_sizes() {
        let table = [
            (0, "0"),
            (1023, "1023"),
            (1024, "1.0k"),
            (4711, "4.6k"),
            (10 * 1024, "10k"),
            (10 << 20, "10M"),
            ((1 << 30) - 1, "1023M"),
            (u64::MAX, "17179869183G"),
        ];
        for (bytes, expected) in table {
            assert_eq!(format_size(bytes), expected);
        }
    }
}
