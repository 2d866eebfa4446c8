//! The steps of the `imap` command with single commands, and APPEND. Each step has its own session.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use clap::ValueEnum as _;
use serde_json::Value;
use tokio::task::JoinSet;

use super::client::{Client, Response};
use super::{LARGE_READ_BYTES, SMALL_READ_BYTES, Step, Target, appended_message};
use crate::Verdict;
use crate::error::Error;
use crate::measure::{median, mib, millis, ratio, to_f64};
use crate::process_tree;
use crate::report::{Report, Row, rounded};
use crate::words::word;

/// Repetitions of SELECT and of opening a session.
const SELECT_REPEATS: usize = 10;
/// The ranks of the words that are searched in subjects and in texts. The first is in one of 120 subjects, the second in one of
/// 50 mails.
const SUBJECT_RANK: u64 = 100;
const TEXT_RANK: u64 = 5000;
/// The rank of the sender that is searched: one of 1,000.
const SENDER_RANK: u64 = 700;
/// The numbers of sessions that append.
const APPENDING_SESSIONS: [usize; 2] = [1, 10];

/// Returns the name of a step.
pub(super) fn name(step: Step) -> String {
    step.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// One execution of a command.
struct Run {
    elapsed: Duration,
    /// CPU time of the server, if its process is known.
    cpu: Option<Duration>,
    response: Response,
}

/// Measures a step that is one command: the first execution and the median of more.
pub(super) async fn run(target: &Target<'_>, step: Step, report: &mut Report) -> Result<Verdict, Error> {
    let account = target.account("");
    let is_select = matches!(step, Step::Select | Step::Session);
    let (mut client, exists) = if is_select {
        let mut client = Client::connect(&target.addresses, LARGE_READ_BYTES).await?;
        client.login(&account).await?;
        (client, None)
    } else {
        let (client, exists) = Client::open(&target.addresses, &account, LARGE_READ_BYTES).await?;
        (client, Some(exists))
    };
    let repeats = if is_select { SELECT_REPEATS } else { target.options.repeats };
    let command = command(step, target.options.bodies.min(exists.unwrap_or(0)));
    let mut runs = Vec::with_capacity(1 + repeats);
    for _ in 0..=repeats {
        let cpu_before = target.options.pid.map(process_tree::cpu_time).transpose()?;
        let start = Instant::now();
        if step == Step::Session {
            client = Client::connect(&target.addresses, LARGE_READ_BYTES).await?;
            client.login(&account).await?;
        }
        let response = client.command(&command).await?;
        let elapsed = start.elapsed();
        let cpu_after = target.options.pid.map(process_tree::cpu_time).transpose()?;
        let cpu = cpu_before.zip(cpu_after).map(|(before, after)| after.saturating_sub(before));
        runs.push(Run { elapsed, cpu, response });
    }
    let Some((first, repeated)) = runs.split_first() else { return Ok(Verdict::Clean) };
    report.row(&row(step, "first", std::slice::from_ref(first)));
    report.row(&row(step, "median", repeated));
    let expected = match step {
        Step::Flags | Step::Envelope => exists,
        Step::Body => exists.map(|exists| exists.min(target.options.bodies)),
        _ => None,
    };
    let expected = expected.unwrap_or(count(step, first.response));
    let Some(other) = runs.iter().map(|run| count(step, run.response)).find(|&count| count != expected) else {
        return Ok(Verdict::Clean);
    };
    eprintln!("restante-bench: {}: {other} messages instead of {expected}", name(step));
    Ok(Verdict::Faulty)
}

/// Returns the command of a step.
fn command(step: Step, bodies: usize) -> String {
    match step {
        Step::Flags => "UID FETCH 1:* (FLAGS)".to_owned(),
        Step::Envelope => "FETCH 1:* (ENVELOPE BODYSTRUCTURE)".to_owned(),
        Step::Body => format!("FETCH 1:{bodies} (BODY.PEEK[])"),
        Step::Subject => format!("SEARCH HEADER SUBJECT {}", word(SUBJECT_RANK)),
        Step::From => format!("SEARCH FROM {}@", word(SENDER_RANK)),
        Step::Text => format!("SEARCH TEXT {}", word(TEXT_RANK)),
        Step::Select | Step::Session | Step::Append | Step::Idle => "SELECT INBOX".to_owned(),
    }
}

/// Returns the number of messages in a response.
fn count(step: Step, response: Response) -> usize {
    match step {
        Step::Subject | Step::From | Step::Text => response.found,
        Step::Flags | Step::Envelope | Step::Body => response.fetched,
        Step::Select | Step::Session | Step::Append | Step::Idle => response.exists.unwrap_or(0),
    }
}

/// Returns the row of one or several executions: medians, and the mean of the CPU time, which is measured in units of 10 ms.
fn row(step: Step, pass: &'static str, runs: &[Run]) -> Row {
    let seconds = median(runs.iter().map(|run| run.elapsed.as_secs_f64()));
    let cpu = runs.iter().map(|run| run.cpu).sum::<Option<Duration>>();
    let response = runs.first().map(|run| run.response).unwrap_or_default();
    let is_fetch = matches!(step, Step::Flags | Step::Envelope | Step::Body);
    let row = timed_row(step, pass, runs.len(), seconds, cpu);
    with_amounts(row, seconds, count(step, response), is_fetch, response.bytes)
}

/// Returns the first columns of a row. All steps have the same columns.
fn timed_row(step: Step, pass: &'static str, runs: usize, seconds: f64, cpu: Option<Duration>) -> Row {
    let cpu = cpu.map_or(Value::Null, |cpu| rounded(ratio(millis(cpu), to_f64(runs)), 0));
    let row = Row::default().with("step", name(step)).with("pass", pass).with("runs", runs);
    row.with_rounded("ms", seconds * 1000.0, 2).with("cpu_ms", cpu)
}

/// Adds the other columns: the number of messages, their rate if there is one, and the bytes of the response.
fn with_amounts(row: Row, seconds: f64, count: usize, has_rate: bool, bytes: usize) -> Row {
    let rate = if has_rate { rounded(ratio(to_f64(count), seconds), 0) } else { Value::Null };
    let amount = mib(bytes as u64);
    row.with("count", count).with("per_s", rate).with_rounded("mib", amount, 2).with_rounded(
        "mib_per_s",
        ratio(amount, seconds),
        1,
    )
}

/// Measures APPEND with one session and with several.
pub(super) async fn append(target: &Target<'_>, report: &mut Report) -> Result<(), Error> {
    let account = target.account("-append");
    let total = target.options.appends;
    let message = Arc::new(appended_message());
    for sessions in APPENDING_SESSIONS {
        target.refill(&account, 0).await?;
        let mut clients = Vec::new();
        for _ in 0..sessions {
            let mut client = Client::connect(&target.addresses, SMALL_READ_BYTES).await?;
            client.login(&account).await?;
            clients.push(client);
        }
        let cpu_before = target.options.pid.map(process_tree::cpu_time).transpose()?;
        let start = Instant::now();
        let next = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        for mut client in clients {
            let (next, message) = (Arc::clone(&next), Arc::clone(&message));
            tasks.spawn(async move {
                while next.fetch_add(1, Ordering::Relaxed) < total {
                    client.append(&message).await?;
                }
                Ok(client)
            });
        }
        let clients: Vec<Result<Client, Error>> = tasks.join_all().await;
        let elapsed = start.elapsed();
        let cpu_after = target.options.pid.map(process_tree::cpu_time).transpose()?;
        clients.into_iter().collect::<Result<Vec<_>, _>>()?;
        let cpu = cpu_before.zip(cpu_after).map(|(before, after)| after.saturating_sub(before));
        let pass = if sessions == 1 { "1 session" } else { "10 sessions" };
        let seconds = elapsed.as_secs_f64();
        let row = timed_row(Step::Append, pass, 1, seconds, cpu);
        report.row(&with_amounts(row, seconds, total, true, total * message.len()));
    }
    Ok(())
}
