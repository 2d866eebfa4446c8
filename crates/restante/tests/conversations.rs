//! The conversations of `restante-proto`, held with the real program: over TCP, and over TLS from the first byte. The
//! same text files run on the bare state machine there.

#[path = "../../proto/tests/script/mod.rs"]
mod script;
mod support;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use script::{Script, Turn};
use support::tls::Wire;
use support::{Server, Talk, connect};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    Tcp,
    Tls,
}

#[test]
fn every_conversation_goes_as_written_over_tcp() {
    run_all(Over::Tcp);
}

#[test]
fn every_conversation_goes_as_written_over_tls() {
    run_all(Over::Tls);
}

fn run_all(over: Over) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../proto/tests/smtp");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let scripts: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|end| end == "txt")).collect();
    assert!(scripts.len() > 50, "the conversations are not where they were");
    std::thread::scope(|scope| {
        for share in scripts.chunks(scripts.len().div_ceil(4)) {
            scope.spawn(move || share.iter().for_each(|path| run(path, over)));
        }
    });
}

fn run(path: &Path, over: Over) {
    let script = Script::parse(&std::fs::read_to_string(path).unwrap());
    let about = format!("{} over {over:?}", path.file_stem().unwrap().to_string_lossy());
    let has = |name: &str| script.settings.iter().any(|(key, _)| key == name);
    let lmtp = has("lmtp");
    if over == Over::Tls && (lmtp || has("smtp.tlsenabled") || script.asks_for_tls()) {
        // LMTP has no listener with TLS from the first byte, and on such a one STARTTLS means something else.
        return;
    }
    let mut arguments: Vec<String> = Vec::new();
    for (name, value) in script.settings.iter().filter(|(name, _)| name != "lmtp") {
        arguments.push(format!("--{}={value}", name.replace('.', "-")));
    }
    if lmtp {
        arguments.push("--lmtp-addr=127.0.0.1:0".to_owned());
    }
    if over == Over::Tls {
        let forced = ["--smtp-tlsenabled", "--smtp-tlscert=self-signed", "--smtp-forcetls"];
        arguments.extend(forced.map(str::to_owned));
    }
    let mut server = Server::start(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let address = if lmtp { server.address_of("LMTP listening on tcp4 ") } else { server.smtp };
    let mut talk = Talk::new(Wire::Plain(connect(address)));
    if over == Over::Tls {
        talk.stream.start_tls();
    }
    hold(&script, &mut talk, &server, &about);
}

impl Script {
    fn asks_for_tls(&self) -> bool {
        let asks = |input: &Vec<u8>| String::from_utf8_lossy(input).to_uppercase().contains("STARTTLS");
        self.turns.iter().any(|turn| matches!(turn, Turn::Client(input) if asks(input)))
    }
}

fn hold(script: &Script, talk: &mut Talk<Wire>, server: &Server, about: &str) {
    for turn in &script.turns {
        match turn {
            // A server that has had enough closes while we are still writing; what it said is read below.
            Turn::Client(input) => drop(talk.stream.write_all(input).and_then(|()| talk.stream.flush())),
            Turn::Server(line) => assert_eq!(talk.line().as_ref(), Some(line), "{about}"),
            Turn::ServerPrefix(prefix) => {
                let line = talk.line();
                assert!(line.as_ref().is_some_and(|line| line.starts_with(prefix)), "{about}: {line:?}, not {prefix}");
            }
            Turn::ServerUntil(line) => while talk.line().expect(about) != *line {},
            Turn::Tls => talk.stream.start_tls(),
            Turn::Eof => assert_eq!(talk.line(), None, "{about}"),
            Turn::Event(event, text) => {
                assert_eq!(event, "DELIVERED", "{about}");
                assert_delivered(server, text, about);
            }
        }
    }
}

/// Whether the mailbox of the first recipient holds the mail with just this body.
fn assert_delivered(server: &Server, text: &[u8], about: &str) {
    let find = |part: &[u8]| text.windows(part.len()).position(|window| window == part).unwrap() + part.len();
    let body = &text[find(b" body=\"")..text.len() - 1];
    let to = &text[find(b" to=<")..];
    let to = &to[..to.windows(1).position(|byte| byte == b">").unwrap()];
    let name = to.iter().fold(String::new(), |name, byte| format!("{name}%{byte:02X}"));
    let list = server.json(&format!("/api/v1/mailbox/{name}"));
    let delivered = list.as_array().unwrap().iter().any(|message| {
        let id = message["id"].as_str().unwrap();
        let source = server.bytes(&format!("/api/v1/mailbox/{name}/{id}/source"));
        let trace = source.windows(4).position(|window| window == b"  fo").unwrap();
        let trace = trace + source[trace..].windows(2).position(|window| window == b"\r\n").unwrap() + 2;
        source[trace..] == *body
    });
    assert!(delivered, "{about}: {} is not in {list}", String::from_utf8_lossy(text));
}
