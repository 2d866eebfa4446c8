//! Parses the usual command lines of the server, which only set settings by flags, without clap. The definition of all
//! commands and flags for clap takes half of the instructions of a start, and 1 MB of memory.

use std::ffi::OsString;

use restante_settings::{Flags, SETTINGS, Setting, Value};

use super::arguments::CONFIG_FLAG;

/// Returns the flags of the command line, which begins with the program name. Returns `None` if it has anything else
/// than flags of settings with their values: a command, another flag or an error. Then clap has to parse it.
pub(super) fn parse(args: &[OsString]) -> Option<Flags> {
    let mut flags = Flags::default();
    let mut args = args.iter().skip(1).map(|arg| arg.to_str());
    while let Some(arg) = args.next() {
        let flag = arg?.strip_prefix("--")?;
        let (name, value) = flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value)));
        let setting = SETTINGS.iter().find(|setting| has_name(setting, name));
        if setting.is_none() && name != CONFIG_FLAG {
            return None;
        }
        let value = match value {
            Some(value) => value,
            None if setting.is_some_and(|setting| setting.value == Value::Bool) => "true",
            None => args.next()?.filter(|value| !value.starts_with('-'))?,
        };
        if value.is_empty() {
            return None;
        }
        match setting {
            Some(setting) => flags.given.push((setting, value.to_owned())),
            None => flags.config = Some(value.into()),
        }
    }
    Some(flags)
}

/// Returns true if this is the name of the flag of a setting, without the dashes.
fn has_name(setting: &Setting, name: &str) -> bool {
    let derived = setting.key.bytes().map(|byte| if byte == b'.' { b'-' } else { byte });
    setting.alias == Some(name) || derived.eq(name.bytes())
}

#[cfg(test)]
mod tests {
    use super::super::arguments::{self, ParsedArguments};
    use super::super::tasks::Task;
    use super::*;

    /// Splits a command line at its spaces and adds the program name.
    fn split(line: &str) -> Vec<OsString> {
        ["restante"].into_iter().chain(line.split_terminator(' ')).map(OsString::from).collect()
    }

    /// Returns what was given, by setting, because clap does not keep the order of different flags.
    fn given(flags: &Flags) -> (Option<&std::path::Path>, Vec<(&str, &str)>) {
        let mut given: Vec<_> = flags.given.iter().map(|(setting, value)| (setting.key, value.as_str())).collect();
        given.sort_by_key(|(key, _)| *key);
        (flags.config.as_deref(), given)
    }

    #[test]
    fn flags_are_parsed_as_by_clap() {
        let every_flag = SETTINGS.iter().flat_map(|setting| {
            let names = [Some(setting.flag()), setting.alias.map(str::to_owned)];
            names.into_iter().flatten().map(|name| match setting.value {
                Value::Bool => format!("--{name} --{name}=false"),
                _ => format!("--{name} a=b --{name}=list --{name}=--x"),
            })
        });
        let several = [
            "",
            "--config a.toml",
            "--config a.toml --config=b.toml --netdebug --config c.toml",
            "--smtp-addr :25 --data d --smtp-addr=:26 --storage-path=e",
        ];
        for line in every_flag.chain(several.map(str::to_owned)) {
            let args = split(&line);
            let Some(flags) = parse(&args) else { panic!("{line}: needs clap") };
            let Ok(ParsedArguments::Configured(Some(Task::Serve { open_page: false }), expected)) =
                arguments::parse_with_clap(&args)
            else {
                panic!("{line}: invalid")
            };
            assert_eq!(given(&flags), given(&expected), "{line}");
        }
    }

    #[test]
    fn other_command_lines_need_clap() {
        for line in [
            "--help",
            "--version",
            "-h",
            "--open",
            "--as mailpit",
            "list",
            "--netdebug false",
            "--smtp-addr",
            "--smtp-addr --netdebug",
            "--smtp-addr=",
            "--netdebug=",
            "--config=",
            "--web-addr -1",
            "--smtp-adr :25",
            "--smtp.addr :25",
            "-- --netdebug",
            "config check --smtp-addr :25",
        ] {
            assert!(parse(&split(line)).is_none(), "{line}");
        }
    }
}
