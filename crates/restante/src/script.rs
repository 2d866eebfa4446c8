//! `restante script`: a script that is tried without serving, and what the configuration says about scripts.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::thread::available_parallelism;

use restante_script::{LoadedScript, Settings};
use restante_settings::{Config, LogOutput};

use crate::command_line::{ScriptRequest, ScriptTask};
use crate::process;

/// Does what the command line asks for.
pub fn run(config: &Config, request: &ScriptRequest) -> ExitCode {
    let settings = settings(config);
    let mut out = io::stdout();
    let outcome = match &request.task {
        ScriptTask::Check => {
            // What the script writes while it is loaded is shown as the server would write it. Nothing else uses this log.
            let _ = restante_logging::start(&restante_logging::Settings {
                output: LogOutput::Stderr,
                ..config.log.clone()
            });
            restante_script::check(&request.file, &settings).map(|loaded| {
                // Whoever closed the pipe has seen enough, here as below.
                let _ = out.write_all(describe(&loaded).as_bytes());
                true
            })
        }
        ScriptTask::Test(names) => restante_script::run_tests(&request.file, &settings, names, &mut out),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            let _ = writeln!(io::stderr(), "restante: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// How scripts are run with this configuration.
pub fn settings(config: &Config) -> Settings {
    let scripting = &config.scripting;
    Settings {
        paths: scripting.paths.clone(),
        sandbox: scripting.sandbox,
        timeout: scripting.timeout,
        max_memory_bytes: scripting.memory_bytes,
        // A call is short, and threads that wake each other up cost more than they do; `after` hooks mostly wait for others.
        before_states: scripting.states.unwrap_or_else(process::network_threads),
        after_states: scripting.states.unwrap_or_else(|| available_parallelism().map_or(1, usize::from)),
        max_calls: scripting.max_calls,
        max_queued_events: scripting.queue,
        naming: config.mailbox_naming,
    }
}

/// What is told of a script that can be used.
fn describe(loaded: &LoadedScript) -> String {
    let mut lines = vec![loaded.path.display().to_string()];
    lines.extend(loaded.handlers.iter().map(|event| format!("  {event}")));
    if loaded.handlers.is_empty() {
        lines.push("  warning: no handlers, so the script takes part in nothing".to_owned());
    }
    lines.push(String::new());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use restante_script::Event;

    use super::*;

    #[test]
    fn there_is_a_state_for_each_core_unless_something_else_is_said() {
        let mut config = Config::default();
        assert!(settings(&config).before_states > 0);
        config.scripting.states = Some(3);
        assert_eq!(settings(&config).before_states, 3);
    }

    #[test]
    fn what_is_told_of_a_script() {
        let loaded = |handlers| LoadedScript { path: "rules.lua".into(), handlers };
        let both = loaded(vec![Event::RcptTo, Event::AfterDeleted]);
        assert_eq!(describe(&both), "rules.lua\n  before.rcpt_to_accepted\n  after.message_deleted\n");
        assert!(describe(&loaded(Vec::new())).starts_with("rules.lua\n  warning: no handlers"));
    }
}
