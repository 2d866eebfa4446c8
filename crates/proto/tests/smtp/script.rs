//! Reads the text files of conversations; `README.md` beside this file describes their form.

use restante_proto::smtp::{Dialect, Settings};

use crate::driver::{Policy, default_settings};

/// One conversation.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) settings: Settings,
    pub(crate) policy: Policy,
    pub(crate) turns: Vec<Turn>,
}

/// One thing that happens in it.
#[derive(Debug)]
pub(crate) enum Turn {
    /// Consecutive client lines, sent in one write.
    Client(Vec<u8>),
    Server(String),
    ServerPrefix(String),
    Tls,
    Eof,
    /// The rest of a DELIVERED line, its escapes undone.
    Delivered(Vec<u8>),
}

impl Script {
    pub(crate) fn parse(text: &str) -> Self {
        let mut script = Self { settings: default_settings(), policy: Policy::default(), turns: Vec::new() };
        for line in text.lines() {
            let (tag, text) = line.split_once(' ').unwrap_or((line, ""));
            match tag {
                "" | "#" => {}
                "@" => script.set(text),
                "S:" => script.turns.push(Turn::Server(text.to_owned())),
                "S~" => script.turns.push(Turn::ServerPrefix(text.to_owned())),
                "TLS" => script.turns.push(Turn::Tls),
                "EOF" => script.turns.push(Turn::Eof),
                "DELIVERED" => script.turns.push(Turn::Delivered(unescape(text))),
                _ => script.client(tag, text),
            }
        }
        script
    }

    fn set(&mut self, setting: &str) {
        let (name, value) = setting.split_once('=').expect("a setting is name=value");
        let number = || value.parse().expect("the setting is a number");
        let list = || value.split(',').map(str::to_owned).collect();
        match name {
            "smtp.maxmessagebytes" => self.settings.max_message_bytes = number(),
            "smtp.maxrecipients" => self.settings.max_recipients = number(),
            "smtp.maxbadcommands" => self.settings.max_bad_commands = number(),
            "smtp.requireauth" => self.settings.require_auth = value == "true",
            "smtp.tlsenabled" => self.settings.starttls = value == "true",
            // Which certificate is shown means nothing without a socket.
            "smtp.tlscert" => {}
            "lmtp" => self.settings.dialect = if value == "true" { Dialect::Lmtp } else { Dialect::Smtp },
            "smtp.rejectdomains" => self.policy.reject_domains = list(),
            "smtp.rejectorigindomains" => self.policy.reject_origin_domains = list(),
            "smtp.credentials" => {
                let pair = |pair: &str| pair.split_once(':').map(|(user, password)| (user.into(), password.into()));
                self.policy.credentials = value.split(',').map(|text| pair(text).expect("user:password")).collect();
            }
            _ => panic!("unknown setting {name}"),
        }
    }

    fn client(&mut self, tag: &str, text: &str) {
        let (end, times) = match tag.split_at_checked(2) {
            Some(("C:", "")) => ("\r\n", "1"),
            Some(("C-", "")) => ("", "1"),
            Some(("C*", times)) => ("\r\n", times),
            Some(("C-", times)) => ("", times.strip_prefix('*').unwrap_or_default()),
            _ => panic!("unknown tag {tag}"),
        };
        let mut input = unescape(text);
        input.extend_from_slice(end.as_bytes());
        let input = input.repeat(times.parse().expect("a number of times"));
        match self.turns.last_mut() {
            Some(Turn::Client(before)) => before.extend(input),
            _ => self.turns.push(Turn::Client(input)),
        }
    }
}

fn unescape(text: &str) -> Vec<u8> {
    let mut octets = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            octets.push(byte);
            continue;
        }
        octets.push(match bytes.next() {
            Some(b'r') => b'\r',
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'0') => 0,
            Some(b'\\') => b'\\',
            Some(b'"') => b'"',
            Some(b'x') => {
                let digits = [bytes.next(), bytes.next()].map(|digit| char::from(digit.expect("two digits")));
                u8::from_str_radix(&String::from_iter(digits), 16).expect("hexadecimal digits")
            }
            other => panic!("unknown escape {other:?} in {text}"),
        });
    }
    octets
}
