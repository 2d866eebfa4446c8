//! `restante script`: checks and tests a script without running the server. Also converts the script settings.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::thread::available_parallelism;

use restante_script::{LoadedScript, Settings};
use restante_settings::{Config, LogOutput};

use crate::command_line::ScriptTask;
use crate::exit::Exit;
use crate::process;

/// Runs the command.
pub fn run(config: &Config, task: &ScriptTask) -> ExitCode {
    // The file is an argument, so it is meant to run.
    let settings = Settings { trusted_files_only: false, ..settings(config) };
    let mut out = io::stdout();
    let result = match task {
        ScriptTask::Check { file } => {
            // Shows the log lines of the script while it is loaded, as the server would log them. Nothing else uses this log.
            let _ = restante_logging::start(&restante_logging::Settings {
                output: LogOutput::Stderr,
                ..config.log.clone()
            });
            restante_script::check(file, &settings).map(|loaded| {
                // A failed write does not matter: the reader has closed the pipe.
                let _ = out.write_all(describe(&loaded).as_bytes());
                true
            })
        }
        ScriptTask::Test { file, names } => restante_script::run_tests(file, &settings, names, &mut out),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => Exit::error(&error, 1).print(),
    }
}

/// Returns the script settings of a configuration.
pub fn settings(config: &Config) -> Settings {
    let scripting = &config.scripting;
    Settings {
        paths: scripting.paths.clone(),
        trusted_files_only: scripting.trusted_files_only,
        sandbox: scripting.sandbox,
        timeout: scripting.timeout,
        max_memory_bytes: scripting.memory_bytes,
        // A call is short, and waking threads costs more than the calls; `after` hooks mostly wait for other systems.
        before_states: scripting.states.unwrap_or_else(process::network_threads),
        after_states: scripting.states.unwrap_or_else(|| available_parallelism().map_or(1, usize::from)),
        max_calls: scripting.max_calls,
        max_queued_events: scripting.queue,
        naming: config.mailbox_naming,
    }
}

/// Returns the file and the handlers of a valid script.
fn describe(loaded: &LoadedScript) -> String {
    let mut lines = vec![loaded.path.display().to_string()];
    lines.extend(loaded.handlers.iter().map(|event| format!("  {event}")));
    if loaded.handlers.is_empty() {
        lines.push("  warning: no handlers, the script has no effect".to_owned());
    }
    lines.push(String::new());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use restante_script::ScriptEvent;

    use super::*;

    #[test]
    fn number_of_states_depends_on_cores_by_default() {
        let mut config = Config::default();
        assert!(settings(&config).before_states > 0);
        config.scripting.states = Some(3);
        assert_eq!(settings(&config).before_states, 3);
    }

    #[test]
    fn describes_a_script() {
        let loaded = |handlers| LoadedScript { path: "rules.lua".into(), handlers };
        let both = loaded(vec![ScriptEvent::RcptTo, ScriptEvent::AfterDeleted]);
        assert_eq!(describe(&both), "rules.lua\n  before.rcpt_to_accepted\n  after.message_deleted\n");
        assert!(describe(&loaded(Vec::new())).starts_with("rules.lua\n  warning: no handlers"));
    }
}
