//! Parses messages like a request for a message does, to count instructions: `read_mails REPEATS FILE...`.

use std::hint::black_box;
use std::process::ExitCode;

use bytes::Bytes;
use restante_mail::mime::{Mime, header_summary};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let repeats = arguments.next().and_then(|repeats| repeats.parse::<usize>().ok());
    let messages: Result<Vec<Bytes>, _> = arguments.map(|path| std::fs::read(path).map(Bytes::from)).collect();
    let (Some(repeats), Ok(messages)) = (repeats, messages) else {
        eprintln!("usage: read_mails REPEATS FILE...");
        return ExitCode::FAILURE;
    };
    for message in (0..repeats).flat_map(|_| &messages) {
        black_box(header_summary(message));
        let mime = Mime::parse(message.clone());
        black_box((mime.inbucket_text(), mime.html(), mime.header_map()));
        for attachment in mime.attachments() {
            black_box(attachment.md5_hex());
        }
    }
    ExitCode::SUCCESS
}
