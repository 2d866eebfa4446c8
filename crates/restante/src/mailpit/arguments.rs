//! Parses command lines as Mailpit does: `--flag value`, `--flag=value`, `-f value`, `-fvalue`, and short flags without
//! values together.

use super::options::{Kind, MailpitOption};

/// A parsed command line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Arguments {
    /// The flags in their order: the name of the option, the flag as written, and the value.
    pub(super) flags: Vec<GivenFlag>,
    /// True if help was requested.
    pub(super) help: bool,
    /// The words that are not flags.
    pub(super) words: Vec<String>,
}

/// A flag with its value.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GivenFlag {
    /// The name of the option in the table.
    pub(super) name: &'static str,
    /// The flag without its dashes, as given.
    pub(super) written: String,
    /// The value as text.
    pub(super) value: String,
}

/// A flag that a command accepts.
#[derive(Debug, Clone, Copy)]
pub(super) struct FlagSpec {
    /// The name of the option.
    pub(super) name: &'static str,
    /// The long flag without its dashes.
    pub(super) long: &'static str,
    /// The short flag.
    pub(super) short: Option<char>,
    /// True if the flag alone means `true`.
    pub(super) is_bool: bool,
}

impl FlagSpec {
    /// Returns the flags of an option, with the deprecated ones.
    pub(super) fn for_option(option: &'static MailpitOption) -> impl Iterator<Item = Self> {
        let (name, is_bool) = (option.name(), option.kind == Kind::Bool);
        let current = Some(option.flag).filter(|flag| !flag.is_empty());
        let current = current.map(|long| Self { name, long, short: option.short, is_bool });
        let old = option.deprecated.iter().filter(|name| !name.starts_with("MP_"));
        current.into_iter().chain(old.map(move |long| Self { name, long, short: None, is_bool }))
    }
}

/// Parses the arguments after the program name. The error is a sentence in Mailpit's words.
pub(super) fn parse(args: &[String], specs: &[FlagSpec]) -> Result<Arguments, String> {
    let mut parsed = Arguments { flags: Vec::new(), help: false, words: Vec::new() };
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        if arg == "--" {
            parsed.words.extend(rest.by_ref().cloned());
        } else if let Some(long) = arg.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (long, None),
            };
            if name == "help" {
                parsed.help = true;
                continue;
            }
            let spec = specs.iter().find(|spec| spec.long == name);
            let spec = spec.ok_or_else(|| format!("unknown flag: --{name}"))?;
            let value = match value {
                Some(value) => value,
                None if spec.is_bool => "true".to_owned(),
                None => rest.next().cloned().ok_or_else(|| format!("flag needs an argument: --{name}"))?,
            };
            parsed.flags.push(GivenFlag { name: spec.name, written: name.to_owned(), value });
        } else if let Some(letters) = arg.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            parse_short(letters, specs, &mut rest, &mut parsed)?;
        } else {
            parsed.words.push(arg.clone());
        }
    }
    Ok(parsed)
}

/// Parses short flags: `v`, `qv`, `s:1025`, `s=:1025`.
fn parse_short<'a>(
    letters: &str,
    specs: &[FlagSpec],
    rest: &mut impl Iterator<Item = &'a String>,
    parsed: &mut Arguments,
) -> Result<(), String> {
    for (at, letter) in letters.char_indices() {
        let Some(spec) = specs.iter().find(|spec| spec.short == Some(letter)) else {
            if letter == 'h' {
                parsed.help = true;
                continue;
            }
            return Err(format!("unknown shorthand flag: '{letter}' in -{letters}"));
        };
        let after = &letters[at + letter.len_utf8()..];
        let attached = after.strip_prefix('=');
        if spec.is_bool && attached.is_none() {
            parsed.flags.push(GivenFlag { name: spec.name, written: spec.long.to_owned(), value: "true".to_owned() });
            continue;
        }
        let value = match attached.unwrap_or(after) {
            "" if attached.is_none() => {
                rest.next().cloned().ok_or_else(|| format!("flag needs an argument: '{letter}' in -{letters}"))?
            }
            value => value.to_owned(),
        };
        parsed.flags.push(GivenFlag { name: spec.name, written: spec.long.to_owned(), value });
        break;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPECS: &[FlagSpec] = &[
        FlagSpec { name: "smtp", long: "smtp", short: Some('s'), is_bool: false },
        FlagSpec { name: "quiet", long: "quiet", short: Some('q'), is_bool: true },
        FlagSpec { name: "verbose", long: "verbose", short: Some('v'), is_bool: true },
        FlagSpec { name: "database", long: "db-file", short: None, is_bool: false },
    ];

    fn flags(line: &str) -> Result<Vec<(&'static str, String)>, String> {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let parsed = parse(&args, SPECS)?;
        Ok(parsed.flags.into_iter().map(|flag| (flag.name, flag.value)).collect())
    }

    #[test]
    fn parses_all_forms_of_flags() {
        let smtp = |value: &str| Ok(vec![("smtp", value.to_owned())]);
        for line in ["--smtp :1025", "--smtp=:1025", "-s :1025", "-s:1025", "-s=:1025"] {
            assert_eq!(flags(line), smtp(":1025"), "{line}");
        }
        let on = |name| (name, "true".to_owned());
        assert_eq!(flags("-qv --quiet"), Ok(vec![on("quiet"), on("verbose"), on("quiet")]));
        assert_eq!(flags("--quiet=false -v=0"), Ok(vec![("quiet", "false".into()), ("verbose", "0".into())]));
        assert_eq!(flags("-vs :25"), Ok(vec![on("verbose"), ("smtp", ":25".into())]));
        assert_eq!(flags("--db-file x -- --smtp"), Ok(vec![("database", "x".into())]));
    }

    #[test]
    fn reports_unknown_and_incomplete_flags() {
        let table = [
            ("--nope", "unknown flag: --nope"),
            ("--smtpx=1", "unknown flag: --smtpx"),
            ("-x", "unknown shorthand flag: 'x' in -x"),
            ("-qx", "unknown shorthand flag: 'x' in -qx"),
            ("--smtp", "flag needs an argument: --smtp"),
            ("-s", "flag needs an argument: 's' in -s"),
        ];
        for (line, expected) in table {
            assert_eq!(flags(line), Err(expected.to_owned()), "{line}");
        }
    }

    #[test]
    fn finds_help_and_words() {
        let parsed = |line: &str| parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>(), SPECS).unwrap();
        assert!(parsed("--help").help && parsed("-h").help && !parsed("-q").help);
        assert_eq!(parsed("a -q b -- -c").words, ["a", "b", "-c"]);
    }
}
