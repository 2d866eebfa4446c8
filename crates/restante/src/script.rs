//! `restante script`: a script that is tried without serving, and what the configuration says about scripts.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread::available_parallelism;

use restante_script::{Loaded, ScriptError, Settings};

use crate::config::{Config, Script, ScriptTask};

/// The scripts to look for when none is named, in the working directory: ours, and that of an Inbucket before us.
const USUAL_NAMES: [&str; 2] = ["restante.lua", "inbucket.lua"];

/// Does what the command line asks for.
pub fn run(config: &Config, request: &Script) -> ExitCode {
    let settings = settings(config);
    let mut out = io::stdout();
    let outcome = match &request.task {
        ScriptTask::Check => restante_script::check(&request.file, &settings).map(|loaded| {
            // Whoever closed the pipe has seen enough, here as below.
            let _ = out.write_all(report(&loaded).as_bytes());
            true
        }),
        ScriptTask::Test(names) => restante_script::test(&request.file, &settings, names, &mut out),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(ScriptError(problem)) => {
            let _ = writeln!(io::stderr(), "restante: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// How scripts are run with this configuration.
pub fn settings(config: &Config) -> Settings {
    let scripting = &config.scripting;
    Settings {
        paths: match &scripting.path {
            Some(path) => vec![path.clone()],
            None => USUAL_NAMES.map(PathBuf::from).into(),
        },
        sandbox: scripting.sandbox,
        timeout: scripting.timeout,
        memory: scripting.memory_bytes,
        states: scripting.states.unwrap_or_else(|| available_parallelism().map_or(1, usize::from)),
        queue: scripting.queue,
        naming: config.mailbox_naming,
    }
}

/// What is told of a script that can be used.
fn report(loaded: &Loaded) -> String {
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
    fn the_script_is_the_one_that_is_named_or_one_of_the_usual_names() {
        let mut config = Config::default();
        assert_eq!(settings(&config).paths, USUAL_NAMES.map(PathBuf::from));
        assert!(settings(&config).states > 0, "one for each core");
        config.scripting.path = Some("rules.lua".into());
        config.scripting.states = Some(3);
        assert_eq!(settings(&config).paths, [PathBuf::from("rules.lua")]);
        assert_eq!(settings(&config).states, 3);
    }

    #[test]
    fn what_is_told_of_a_script() {
        let loaded = |handlers| Loaded { path: "rules.lua".into(), handlers };
        let both = loaded(vec![Event::RcptTo, Event::AfterDeleted]);
        assert_eq!(report(&both), "rules.lua\n  before.rcpt_to_accepted\n  after.message_deleted\n");
        assert!(report(&loaded(Vec::new())).starts_with("rules.lua\n  warning: no handlers"));
    }
}
