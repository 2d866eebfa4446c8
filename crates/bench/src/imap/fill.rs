//! The `imap-fill` command: fills a mailbox with generated mails, as files of a Maildir or over SMTP.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::Args;

use super::mail::MailGenerator;
use crate::Verdict;
use crate::connection::resolve;
use crate::error::Error;
use crate::load::{Load, Messages, parse_positive};
use crate::measure::{mib, ratio, to_f64};
use crate::message::{END_OF_DATA, Envelope};
use crate::report::{Report, Row};

/// Options of the `imap-fill` command. The same mails are generated each time.
#[derive(Args)]
pub(crate) struct Options {
    /// Write the mails to this Maildir, which must not have mails.
    #[arg(long, value_name = "DIR", required_unless_present = "smtp")]
    maildir: Option<PathBuf>,
    /// Send the mails to this SMTP server.
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "maildir")]
    smtp: Option<String>,
    /// The user who receives them over SMTP.
    #[arg(long, default_value = "bench")]
    user: String,
    /// Concurrent connections. With more than one, mails that are sent at the same time can change places.
    #[arg(long, default_value_t = 10, value_parser = parse_positive)]
    connections: usize,
    /// The number of mails.
    #[arg(long, default_value_t = 100_000, value_parser = parse_positive)]
    messages: usize,
}

/// Runs the `imap-fill` command.
pub(crate) async fn run(options: &Options, json: bool) -> Result<Verdict, Error> {
    let start = Instant::now();
    let generator = MailGenerator::new();
    let bytes = match (&options.maildir, &options.smtp) {
        (Some(maildir), _) => write_maildir(maildir, &generator, options.messages)
            .map_err(|error| Error::Io("writing the Maildir", error))?,
        (None, Some(smtp)) => {
            let generate = move |number| [&generator.mail(number)[..], END_OF_DATA].concat();
            let load = Load {
                connections: options.connections,
                messages: Messages::Generated(Box::new(generate)),
                ..Load::new(resolve(smtp).await?, vec![Envelope::to([options.user.as_str()])], Vec::new())
            };
            Arc::new(load).send_all(0..options.messages).await?.results.bytes
        }
        (None, None) => return Err(Error::Usage("--maildir or --smtp is required".to_owned())),
    };
    let seconds = start.elapsed().as_secs_f64();
    let row = Row::default()
        .with("messages", options.messages)
        .with_rounded("mib", mib(bytes), 1)
        .with_rounded("seconds", seconds, 1)
        .with_rounded("per_s", ratio(to_f64(options.messages), seconds), 0);
    Report::new(json).row(&row);
    Ok(Verdict::Clean)
}

/// Writes mails to a Maildir. The names of the files have the order of the mails, and the sizes that Dovecot uses. Returns the
/// number of bytes.
fn write_maildir(maildir: &Path, generator: &MailGenerator, messages: usize) -> std::io::Result<u64> {
    for directory in ["tmp", "new", "cur"] {
        fs::create_dir_all(maildir.join(directory))?;
    }
    let current = maildir.join("cur");
    if fs::read_dir(&current)?.next().is_some() {
        return Err(std::io::Error::new(std::io::ErrorKind::AlreadyExists, "cur has mails"));
    }
    let mut bytes = 0;
    for number in 0..messages {
        // The lines end with CRLF, so Dovecot can send the file without a conversion.
        let mail = generator.mail(number);
        let (time, size) = (1_600_000_000 + number, mail.len());
        fs::write(current.join(format!("{time}.M1P1.bench,S={size},W={size}:2,")), &mail)?;
        bytes += size as u64;
    }
    Ok(bytes)
}
