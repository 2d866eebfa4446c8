//! `restante demo`: sends sample messages, to try a server without other software.

mod mails;

use clap::Parser;
use serde_json::json;

use self::mails::{MAIN_RECIPIENT, SampleMail, sample_mails};
use super::{LocalSender, Outbox, SmtpArg, outgoing_message};
use crate::error::CommandError;
use crate::output::{TextStyle, count_with_noun};
use crate::{CommandContext, Task};

/// Sends a dozen sample messages, to try a server.
#[derive(Parser)]
#[command(
    name = "demo",
    long_about = "Sends a dozen sample messages by SMTP, to try a server without other software: a sign-up with a code, a \
        password reset, an order with an image and a PDF file, a newsletter, an invoice, an invitation, an alert, a message \
        in Japanese, a bounce, a message with several recipients, a build log and broken HTML. The senders, recipients and \
        links are in example.org, example.com and example.net. The messages can be sent repeatedly.",
    after_help = "Exit codes: as for the other commands; 4 if the server refuses a message, 5 if it refuses a message \
        temporarily."
)]
pub(crate) struct SendSamples {
    #[command(flatten)]
    smtp: SmtpArg,
}

impl Task for SendSamples {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let mails = sample_mails(context.now);
        let (outbox, local) = (Outbox::find(context, self.smtp.smtp.as_deref())?, LocalSender::detect());
        let total = mails.len();
        for (number, mail) in (1..).zip(&mails) {
            outbox.send(&outgoing_message(&mail.sender, &mail.to, mail.source.clone())?, &local)?;
            if !context.json {
                print_progress(context, number, total, mail)?;
            }
        }
        let page = page_url(context);
        if context.json {
            let sent: Vec<_> = mails.iter().map(|mail| json!({ "subject": mail.subject, "to": mail.to })).collect();
            context.style.write_json(context.out, &json!({ "messages": sent, "page": page }))?;
            return Ok(());
        }
        print_next_steps(context, outbox.addr(), total, page.as_deref())
    }
}

/// Prints a line for a message that was sent.
fn print_progress(
    context: &mut CommandContext<'_>,
    number: usize,
    total: usize,
    mail: &SampleMail,
) -> Result<(), CommandError> {
    let recipients = match mail.to.as_slice() {
        [first, others @ ..] if !others.is_empty() => format!("{first} and {} more", others.len()),
        all => all.concat(),
    };
    let recipients = context.style.paint(TextStyle::Faint, &format!("to {recipients}"));
    writeln!(context.out, "{number:2}/{total}  {}  {recipients}", mail.subject)?;
    Ok(context.out.flush()?)
}

/// Prints the address of the page, and commands that use the messages.
fn print_next_steps(
    context: &mut CommandContext<'_>,
    addr: &str,
    total: usize,
    page: Option<&str>,
) -> Result<(), CommandError> {
    let count = count_with_noun(u64::try_from(total).unwrap_or(u64::MAX), "message");
    let Some(page) = page else {
        writeln!(context.out, "\nSent {count} to {addr}.")?;
        return Ok(());
    };
    // Without the option, the commands would use another server.
    let option = if context.options.server.is_some() { format!(" --server {page}") } else { String::new() };
    writeln!(context.out, "\nSent {count} to {addr}. Read them at {page}\n\nTry also:")?;
    let commands = [
        ("list".to_owned(), "lists the messages"),
        (format!("codes {MAIN_RECIPIENT}"), "prints the one-time code of the newest message"),
        (format!("get {MAIN_RECIPIENT}"), "prints the newest message of a mailbox"),
        ("watch".to_owned(), "prints messages as they arrive"),
    ];
    let lines = commands.map(|(command, help)| (format!("restante {command}{option}"), help));
    let width = lines.iter().map(|(line, _)| line.len()).max().unwrap_or(0);
    for (line, help) in lines {
        writeln!(context.out, "  {line:<width$}  {}", context.style.paint(TextStyle::Faint, help))?;
    }
    Ok(())
}

/// Returns the address of the web interface. `None` if the HTTP server cannot be reached, for example because only an
/// SMTP server was given.
fn page_url(context: &CommandContext<'_>) -> Option<String> {
    match context.server.get(&["api", "v2", "server"], &[]) {
        Err(CommandError::Unreachable(_)) => None,
        // A server that requires a login has a page too.
        _ => Some(context.server.url().to_owned()),
    }
}
