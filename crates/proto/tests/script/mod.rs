//! Parses conversation files; `README.md` in the parent folder describes the format. The tests of the bare sessions and
//! those of the program include this file. They decide what settings and events mean.

/// One conversation.
#[derive(Debug)]
pub(crate) struct Script {
    /// Name and value, as in the program's settings.
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) turns: Vec<Turn>,
}

/// One step of a conversation.
#[derive(Debug)]
pub(crate) enum Turn {
    /// Consecutive client lines, sent in one write.
    Client(Vec<u8>),
    Server(String),
    ServerPrefix(String),
    /// Any lines, followed by this one.
    ServerUntil(String),
    Tls,
    Eof,
    /// An event outside of the connection: its name, and the rest of the line without escapes.
    Event(String, Vec<u8>),
}

impl Script {
    pub(crate) fn parse(text: &str) -> Self {
        let mut script = Self { settings: Vec::new(), turns: Vec::new() };
        for line in text.lines() {
            let (tag, text) = line.split_once(' ').unwrap_or((line, ""));
            match tag {
                "" | "#" => {}
                "@" => script.set(text),
                "S:" => script.turns.push(Turn::Server(server(text))),
                "S~" => script.turns.push(Turn::ServerPrefix(server(text))),
                "S*" => script.turns.push(Turn::ServerUntil(server(text))),
                "TLS" => script.turns.push(Turn::Tls),
                "EOF" => script.turns.push(Turn::Eof),
                _ if tag.starts_with('C') => script.client(tag, text),
                _ => script.turns.push(Turn::Event(tag.to_owned(), unescape(text))),
            }
        }
        script
    }

    fn set(&mut self, setting: &str) {
        let (name, value) = setting.split_once('=').expect("a setting is name=value");
        self.settings.push((name.to_owned(), value.to_owned()));
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

/// Returns a server line as text.
fn server(text: &str) -> String {
    String::from_utf8_lossy(&unescape(text)).into_owned()
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
