//! Sends a message from standard input as `sendmail` does. Under the name `sendmail`, the program also has the flags and
//! variables of Mailpit's sendmail that select the server and the sender, and `-bs`.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches as _};
use restante_mail::mime::NamedAddress;

use super::compose::ComposeFlags;
use super::raw_message::{DefaultHeaders, RawMessage, truncate_at_dot};
use super::smtp_target::SmtpTarget;
use super::{
    COMPOSE_FLAGS, LocalSender, REFUSED_HINT, SmtpArg, mailpit, parse, random_number, read_stdin, send,
    with_sendmail_args,
};
use crate::error::CommandError;
use crate::options::{Options, SMTP_VARIABLE, env_variable};
use crate::{ClientCommand, CommandContext, Task, print_note};

/// The exit codes of `sendmail` (`sysexits.h`).
mod sysexits {
    pub(super) const USAGE: u8 = 64;
    pub(super) const NO_USER: u8 = 67;
    pub(super) const UNAVAILABLE: u8 = 69;
    pub(super) const IO: u8 = 74;
    pub(super) const TEMPORARY: u8 = 75;
    pub(super) const NO_PERMISSION: u8 = 77;
}

/// Runs the program under the name `sendmail`.
pub(crate) fn run(args: &[OsString]) -> ExitCode {
    let command = Command::new("sendmail")
        .about("Sends a message from standard input by SMTP; restante send has more options")
        .disable_version_flag(true)
        // `-h` is the hop count.
        .disable_help_flag(true)
        .arg(Arg::new("help").long("help").action(ArgAction::Help).help("Prints help"))
        .arg(Arg::new("hops").short('h').hide(true));
    // The other names are those of Mailpit's sendmail.
    let command = SmtpArg::augment_args(command)
        .mut_arg("smtp", |arg| arg.short('S').visible_alias("smtp-addr"))
        .arg(Arg::new("verbose").long("verbose").action(ArgAction::Count).hide(true));
    let command = ComposeFlags::augment_args(with_sendmail_args(command));
    let command = COMPOSE_FLAGS.iter().fold(command, |command, name| command.mut_arg(name, |arg| arg.hide(true)));
    let command = Options::add_to(command);
    let matches = match command.args_override_self(true).try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(error) => {
            let is_help = error.exit_code() == 0;
            // The exit code reports the error too.
            let _ = error.print();
            return if is_help { ExitCode::SUCCESS } else { ExitCode::from(sysexits::USAGE) };
        }
    };
    let options = Options::parse(&matches);
    // Alone, `--from` is the envelope sender, as in Mailpit's sendmail.
    if COMPOSE_FLAGS.iter().any(|name| *name != "from" && matches.contains_id(name)) {
        return ClientCommand { task: parse(&matches), options }.run();
    }
    let task = SendmailTask::parse(&matches).with_variables(&matches, &options);
    if task.args.mode.as_deref() != Some("s") {
        return ClientCommand { task: Box::new(task), options }.run();
    }
    let Err(error) = task.speak_smtp(&options) else { return ExitCode::SUCCESS };
    print_note(error.message().unwrap_or_default());
    ExitCode::from(task.exit_code(&error))
}

/// Sends a message from standard input, as `sendmail` does.
pub(super) struct SendmailTask {
    smtp: Option<String>,
    args: SendmailArgs,
}

// The arguments of `sendmail`. A doc comment would replace the description of the command.
#[derive(Args)]
pub(super) struct SendmailArgs {
    /// Also reads recipients from To, Cc and Bcc, and removes Bcc
    #[arg(short = 't')]
    recipients_from_header: bool,
    /// Does not end the message at a line with a single dot (also -oi)
    #[arg(short = 'i')]
    ignores_dots: bool,
    /// The envelope sender (also -r)
    #[arg(short = 'f', short_alias = 'r', value_name = "ADDRESS")]
    sender: Option<String>,
    /// The name of the sender, if the message has no From
    #[arg(short = 'F')]
    name: Option<String>,
    #[arg(short = 'b', hide = true)]
    mode: Option<String>,
    #[arg(short = 'q', value_name = "TIME", num_args = 0..=1, default_missing_value = "", hide = true)]
    queue: Option<String>,
    #[arg(short = 'o', value_name = "OPTION", hide = true)]
    options: Vec<String>,
    /// The recipients
    #[arg(value_name = "RECIPIENT", num_args = 0..)]
    recipients: Vec<String>,
}

impl SendmailTask {
    pub(super) fn parse(matches: &ArgMatches) -> Self {
        let args = SendmailArgs::from_arg_matches(matches).unwrap_or_else(|error| error.exit());
        Self { smtp: matches.get_one("smtp").cloned(), args }
    }

    /// Adds the server and the sender from Mailpit's variables, and the sender from `--from`. Flags and variables of
    /// Restante override the variables.
    fn with_variables(mut self, matches: &ArgMatches, options: &Options) -> Self {
        let other_addr = || env_variable(mailpit::ADDR_VARIABLE).filter(|_| !options.is_server_named());
        let other_sender = || matches.get_one("from").cloned().or_else(|| env_variable(mailpit::FROM_VARIABLE));
        self.smtp = self.smtp.or_else(|| env_variable(SMTP_VARIABLE)).or_else(other_addr);
        self.args.sender = self.args.sender.or_else(|| Some(NamedAddress::from_display(&other_sender()?).address));
        self
    }

    /// Connects standard input and output to the SMTP server (`-bs`).
    fn speak_smtp(&self, options: &Options) -> Result<(), CommandError> {
        let target = SmtpTarget::find(self.smtp.as_deref(), &options.server()?, options)?;
        mailpit::speak_smtp(&target.addr, REFUSED_HINT)
    }
}

impl Task for SendmailTask {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let args = &self.args;
        if let Some(mode) = args.mode.as_deref().filter(|mode| *mode != "m") {
            return Err(CommandError::Usage(format!(
                "The flag -b{mode} is not supported: messages can only be sent (-bm)."
            )));
        }
        if args.queue.is_some() {
            return Err(CommandError::Usage("The flag -q is not supported: there is no queue.".to_owned()));
        }
        if args.recipients.is_empty() && !args.recipients_from_header {
            return Err(CommandError::Usage("There are no recipients: give addresses, -t or --to.".to_owned()));
        }
        let local = LocalSender::detect();
        let input = read_stdin()?;
        let ignores_dots = args.ignores_dots || args.options.iter().any(|option| option == "i");
        let raw = RawMessage::parse(if ignores_dots { &input } else { truncate_at_dot(&input) });

        let header_recipients = if args.recipients_from_header { raw.recipients() } else { Vec::new() };
        let to = local.collect_recipients(&args.recipients, header_recipients)?;
        let sender = match &args.sender {
            Some(sender) => sender.trim_matches(['<', '>']).to_owned(),
            None => raw.from().map_or_else(|| local.address(), |from| local.qualify(&from)),
        };
        let author = if sender.is_empty() { local.address() } else { local.qualify(&sender) };
        let unique_id = format!("{:x}.{:016x}", context.now.as_microsecond(), random_number());
        let from = (author.as_str(), args.name.as_deref().unwrap_or_default());
        let defaults = DefaultHeaders { now: context.now, unique_id: &unique_id, host: &local.host, from };
        let source = raw.with_defaults(&defaults, args.recipients_from_header);
        send(context, self.smtp.as_deref(), &local, &sender, &to, source)
    }

    fn exit_code(&self, error: &CommandError) -> u8 {
        match error {
            CommandError::OutputClosed => 0,
            CommandError::CommandFailed(code) => *code,
            CommandError::Usage(_) => sysexits::USAGE,
            CommandError::Unauthorized(_) => sysexits::NO_PERMISSION,
            CommandError::Local(_) => sysexits::IO,
            CommandError::Unreachable(_) | CommandError::Undelivered { is_temporary: true, .. } => sysexits::TEMPORARY,
            CommandError::Undelivered { is_recipient: true, .. } => sysexits::NO_USER,
            CommandError::Undelivered { .. } | CommandError::Server(_) | CommandError::NotFound(_) => {
                sysexits::UNAVAILABLE
            }
        }
    }
}
