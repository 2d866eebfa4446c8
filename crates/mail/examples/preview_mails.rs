//! Summarizes messages like a delivery does, to count instructions: `preview_mails REPEATS header|all FILE...`.

use std::hint::black_box;
use std::process::ExitCode;

use restante_mail::mime::{header_summary, summarize};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let repeats = arguments.next().and_then(|repeats| repeats.parse::<usize>().ok());
    let mode = arguments.next();
    let messages: Result<Vec<Vec<u8>>, _> = arguments.map(std::fs::read).collect();
    let (Some(repeats), Some(mode), Ok(messages)) = (repeats, mode, messages) else {
        eprintln!("usage: preview_mails REPEATS header|all FILE...");
        return ExitCode::FAILURE;
    };
    for message in (0..repeats).flat_map(|_| &messages) {
        match mode.as_str() {
            "header" => drop(black_box(header_summary(black_box(message)))),
            _ => drop(black_box(summarize(black_box(message)))),
        }
    }
    ExitCode::SUCCESS
}
