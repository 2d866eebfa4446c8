//! The output of a transfer on standard error: a progress bar on a terminal, a line for each message that could not be
//! transferred, and the final report. Write errors are ignored.

use std::io::{IsTerminal as _, Write};
use std::time::{Duration, Instant};

use restante_mail::terminal_text;

/// The maximum number of problems that are reported individually. Further problems are only counted.
const MAX_REPORTED_PROBLEMS: u64 = 20;
/// The minimum time between two updates of the bar.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);
/// The length of the bar, in characters.
const BAR_CHARS: usize = 20;

/// Standard error, and the state of its output.
pub(super) struct Console {
    out: Box<dyn Write + Send>,
    /// Whether it is a terminal, and so has a progress bar.
    is_terminal: bool,
    started: Instant,
    last_drawn: Option<Instant>,
    problem_count: u64,
}

/// The progress of a transfer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// The number of messages so far.
    pub(super) messages: u64,
    /// The completed work, in any unit.
    pub(super) done: u64,
    /// The total work in the same unit. Zero if unknown.
    pub(super) total: u64,
}

impl Console {
    pub(super) fn stderr() -> Self {
        let stderr = std::io::stderr();
        let terminal = stderr.is_terminal();
        Self::new(Box::new(stderr), terminal)
    }

    pub(super) fn new(out: Box<dyn Write + Send>, terminal: bool) -> Self {
        Self { out, is_terminal: terminal, started: Instant::now(), last_drawn: None, problem_count: 0 }
    }

    /// Returns whether there is a bar, so that the total work is worth computing.
    pub(super) fn has_bar(&self) -> bool {
        self.is_terminal
    }

    /// Returns the number of reported problems.
    pub(super) fn problem_count(&self) -> u64 {
        self.problem_count
    }

    /// Draws the bar, unless it was drawn a moment ago.
    pub(super) fn show_progress(&mut self, progress: Progress) {
        if !self.is_terminal || self.last_drawn.is_some_and(|drawn| drawn.elapsed() < REDRAW_INTERVAL) {
            return;
        }
        self.last_drawn = Some(Instant::now());
        let _ = write!(self.out, "\r{}\x1b[K", format_bar(progress, self.started.elapsed()));
        let _ = self.out.flush();
    }

    /// Reports a message or file that could not be transferred.
    pub(super) fn report_problem(&mut self, problem: &str) {
        self.problem_count += 1;
        if self.problem_count <= MAX_REPORTED_PROBLEMS {
            self.write_line(problem);
        }
    }

    /// Removes the bar and writes the final report.
    pub(super) fn finish(&mut self, lines: &[String]) {
        if self.problem_count > MAX_REPORTED_PROBLEMS {
            self.write_line(&format!("and {} more", format_thousands(self.problem_count - MAX_REPORTED_PROBLEMS)));
        }
        for line in lines {
            self.write_line(line);
        }
    }

    fn write_line(&mut self, text: &str) {
        let clear = if self.last_drawn.is_some() { "\r\x1b[K" } else { "" };
        let _ = writeln!(self.out, "{clear}restante: {}", terminal_text::escape_line(text));
    }
}

/// Formats a number with separators: `1,234,567`.
pub(super) fn format_thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number of messages: `1 message`, `2 messages`.
pub(super) fn format_messages(count: u64) -> String {
    format!("{} message{}", format_thousands(count), if count == 1 { "" } else { "s" })
}

/// Formats a number of bytes in a suitable unit.
pub(super) fn format_size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    let (mut tenths, mut unit) = (bytes.saturating_mul(10) / 1024, 0);
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        (tenths, unit) = (tenths / 1024, unit + 1);
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

/// Formats a duration in the largest unit that divides it: `24h`, `90m`, `45s`.
pub(super) fn format_period(period: Duration) -> String {
    match period.as_secs() {
        seconds if seconds % 3600 == 0 => format!("{}h", seconds / 3600),
        seconds if seconds % 60 == 0 => format!("{}m", seconds / 60),
        seconds => format!("{seconds}s"),
    }
}

/// Formats the bar within 80 columns.
fn format_bar(progress: Progress, elapsed: Duration) -> String {
    let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).max(1);
    let rate = progress.messages.saturating_mul(1000) / millis;
    let status = format!("{}  {}/s", format_messages(progress.messages), format_thousands(rate));
    let Progress { done, total, .. } = progress;
    if total == 0 {
        return status;
    }
    // The total is an estimate: messages may arrive meanwhile.
    let done = done.min(total);
    let percent = scale(done, total, 100);
    let filled = usize::try_from(scale(done, total, BAR_CHARS as u64)).unwrap_or(BAR_CHARS);
    let left = if done == 0 {
        String::new()
    } else {
        format!("  {} left", format_clock(scale(total - done, done, millis) / 1000))
    };
    format!("[{}{}] {percent:3}%  {status}{left}", "#".repeat(filled), " ".repeat(BAR_CHARS - filled))
}

/// Returns `factor * part / whole` without overflow.
fn scale(part: u64, whole: u64, factor: u64) -> u64 {
    u64::try_from(u128::from(part) * u128::from(factor) / u128::from(whole)).unwrap_or(u64::MAX)
}

fn format_clock(seconds: u64) -> String {
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

    impl Write for SharedBuffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn console_output(terminal: bool, use_console: impl FnOnce(&mut Console)) -> String {
        let buffer = SharedBuffer::default();
        use_console(&mut Console::new(Box::new(buffer.clone()), terminal));
        let bytes = buffer.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn shows_no_bar_without_a_terminal() {
        let text = console_output(false, |console| {
            console.show_progress(Progress { messages: 1, done: 1, total: 2 });
            console.report_problem("a.eml: is empty");
            console.finish(&["imported 1 message".to_owned()]);
        });
        assert_eq!(text, "restante: a.eml: is empty\nrestante: imported 1 message\n");
    }

    #[test]
    fn clears_the_bar_before_a_line() {
        let text = console_output(true, |console| {
            console.show_progress(Progress::default());
            console.finish(&["done".to_owned()]);
        });
        assert_eq!(text, "\r0 messages  0/s\x1b[K\r\x1b[Krestante: done\n");
    }

    #[test]
    fn escapes_file_names_for_the_terminal() {
        let table = [
            ("j\u{f6}ran/1.eml: is empty", "j\u{f6}ran/1.eml: is empty"),
            ("\x1b]0;owned\x07.eml", "\\u{1b}]0;owned\\u{7}.eml"),
            ("a\nrestante: imported 9 messages", "a\\nrestante: imported 9 messages"),
            ("a\r\tb\u{9b}2J\x7f", "a\\r\\tb\\u{9b}2J\\u{7f}"),
            ("\u{202e}lme.1", "\\u{202e}lme.1"),
        ];
        for (text, expected) in table {
            let output = console_output(false, |console| {
                console.report_problem(text);
                console.finish(&[text.to_owned()]);
            });
            assert_eq!(output, format!("restante: {expected}\n").repeat(2));
        }
    }

    #[test]
    fn limits_reported_problems() {
        let text = console_output(false, |console| {
            (0..25).for_each(|number| console.report_problem(&number.to_string()));
            console.finish(&[]);
        });
        assert_eq!(text.lines().count(), 21);
        assert!(text.ends_with("restante: 19\nrestante: and 5 more\n"));
    }

    #[test]
    fn formats_bars() {
        let table = [
            ((0, 0, 0), 0, "0 messages  0/s"),
            ((1, 1, 4), 1, "[#####               ]  25%  1 message  1/s  0:03 left"),
            ((9000, 0, 4), 2, "[                    ]   0%  9,000 messages  4,500/s"),
            ((9000, 9, 4), 2, "[####################] 100%  9,000 messages  4,500/s  0:00 left"),
            ((1, 1, 10_000), 1, "[                    ]   0%  1 message  1/s  2:46:39 left"),
        ];
        for ((messages, done, total), seconds, expected) in table {
            let line = format_bar(Progress { messages, done, total }, Duration::from_secs(seconds));
            assert_eq!(line, expected);
        }
        let longest = format_bar(Progress { messages: 999_999_999, done: 1, total: 300_000 }, Duration::from_secs(1));
        assert!(longest.len() < 80, "{longest}");
    }

    #[test]
    fn formats_sizes() {
        let table =
            [(0, "0 bytes"), (1023, "1023 bytes"), (1024, "1.0 KiB"), (1_572_864, "1.5 MiB"), (5 << 30, "5.0 GiB")];
        for (bytes, expected) in table {
            assert_eq!(format_size(bytes), expected);
        }
        assert!(format_size(u64::MAX).ends_with("TiB"));
    }

    #[test]
    fn formats_periods() {
        for (seconds, expected) in [(86_400, "24h"), (5400, "90m"), (45, "45s")] {
            assert_eq!(format_period(Duration::from_secs(seconds)), expected);
        }
    }
}
