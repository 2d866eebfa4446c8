//! `restante html-check`: prints which mail clients support the HTML of a message.

use clap::Parser;
use serde::Deserialize;

use super::scope::MessageArgs;
use crate::error::CommandError;
use crate::output::{Column, Table, TextStyle};
use crate::server::decode;
use crate::{CommandContext, Task};

/// The number of lines that are named in a row.
const MAX_LINES: usize = 5;

/// Prints which mail clients support the HTML of a message.
#[derive(Parser)]
#[command(
    name = "html-check",
    long_about = "Prints the score of a message's HTML, and the features of HTML and CSS that some mail clients do not \
        support, with the lines that use them. In a pipe, the first line is the score and each other line is a feature, \
        with tabs: slug, supported percentage, number of uses, lines. With --min-score, the exit code is 1 if the score is \
        lower. Without a mailbox, it uses all mail."
)]
pub(super) struct HtmlCheck {
    #[command(flatten)]
    message: MessageArgs,
    /// Fails if less than this percentage is supported
    #[arg(long, value_name = "PERCENT", value_parser = parse_percentage)]
    min_score: Option<f64>,
}

fn parse_percentage(text: &str) -> Result<f64, String> {
    let percentage = text.trim_end_matches('%').parse().ok().filter(|value| (0.0..=100.0).contains(value));
    percentage.ok_or_else(|| "must be a number from 0 to 100".to_owned())
}

impl Task for HtmlCheck {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let scope = self.message.scope();
        let response = context.server.get(&scope.extract_path(self.message.id(), "html-check"), &[])?;
        let report: Report = decode(&response)?;
        if context.json {
            context.style.write_json(context.out, &response)?;
        } else {
            print(context, &report)?;
        }
        let supported = report.score.supported;
        match self.min_score {
            Some(min) if supported < min => Err(CommandError::not_found(format!(
                "The score of the HTML is {supported:.1} %, and {min} % is required."
            ))),
            _ => Ok(()),
        }
    }
}

#[derive(Deserialize)]
struct Report {
    score: Score,
    features: Vec<Feature>,
}

#[derive(Deserialize)]
struct Score {
    supported: f64,
    partial: f64,
    unsupported: f64,
}

#[derive(Deserialize)]
struct Feature {
    slug: String,
    title: String,
    count: u64,
    lines: Vec<u64>,
    score: Score,
}

fn print(context: &mut CommandContext<'_>, report: &Report) -> std::io::Result<()> {
    let Score { supported, partial, unsupported } = report.score;
    let limited = report.features.iter().filter(|feature| feature.score.supported < 100.0);
    if !context.style.is_terminal() {
        writeln!(context.out, "{supported:.1}")?;
        for Feature { slug, count, lines, score, .. } in limited {
            writeln!(context.out, "{slug}\t{:.1}\t{count}\t{}", score.supported, join(lines))?;
        }
        return Ok(());
    }
    writeln!(context.out, "{supported:.1} % supported, {partial:.1} % partially, {unsupported:.1} % not supported")?;
    let mut table = Table::new([
        Column::new("FEATURE").styled(TextStyle::Hit).shrinkable(),
        Column::new("SUPPORT").right_aligned(),
        Column::new("USES").right_aligned().styled(TextStyle::Faint),
        Column::new("LINES").styled(TextStyle::Faint),
    ]);
    let mut is_empty = true;
    for Feature { title, count, lines, score, .. } in limited {
        let more = if lines.len() > MAX_LINES { ",…" } else { "" };
        let lines = join(&lines[..lines.len().min(MAX_LINES)]) + more;
        table.add_row([title.clone(), format!("{:.0} %", score.supported), count.to_string(), lines]);
        is_empty = false;
    }
    if is_empty { Ok(()) } else { context.style.write_table(context.out, &table) }
}

fn join(lines: &[u64]) -> String {
    lines.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
}
