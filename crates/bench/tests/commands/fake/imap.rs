//! The IMAP server of the fake server: any password opens any mailbox, a search finds the first two messages, and IDLE polls.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use super::{Behavior, State, Stored, next_line};

pub(super) fn session(stream: TcpStream, behavior: Behavior, state: &Mutex<State>) -> Option<()> {
    let mut output = stream.try_clone().ok()?;
    let mut input = BufReader::new(stream);
    let mut send = |text: &str| output.write_all(text.as_bytes()).ok();
    send("* OK ready\r\n")?;
    let mut user = String::new();
    let exists = |user: &str| state.lock().unwrap().mailboxes.get(user).map_or(0, Vec::len);
    loop {
        let line = next_line(&mut input)?;
        let (tag, command) = line.split_once(' ')?;
        let mut response = String::new();
        match command.split(' ').collect::<Vec<_>>()[..] {
            ["LOGIN", name, _] => name.trim_matches('"').clone_into(&mut user),
            ["SELECT", "INBOX"] => response = format!("* FLAGS ()\r\n* {} EXISTS\r\n", exists(&user)),
            ["UID" | "FETCH", .., "(FLAGS)" | "BODYSTRUCTURE)"] => {
                let omitted = usize::from(behavior == Behavior::LosesEachTenth);
                let lines = (1..=exists(&user) - omitted).map(|n| format!("* {n} FETCH (FLAGS ())\r\n"));
                response = lines.collect::<Vec<_>>().concat();
            }
            ["FETCH", numbers, "(BODY.PEEK[])"] => {
                let last: usize = numbers.strip_prefix("1:")?.parse().ok()?;
                let state = state.lock().unwrap();
                let messages = state.mailboxes[&user][..last].iter().map(|message| &message.source);
                let literal = |source: &str| format!("* 1 FETCH (BODY[] {{{}}}\r\n{source})\r\n", source.len());
                response = messages.map(|source| literal(source)).collect::<Vec<_>>().concat();
            }
            ["SEARCH", "TEXT", _] if behavior == Behavior::RefusesEachTenth => {
                send(&format!("{tag} NO not today\r\n"))?;
                continue;
            }
            ["SEARCH", ..] => "* SEARCH 1 2\r\n".clone_into(&mut response),
            ["STORE", "1:*", "+FLAGS.SILENT", "(\\Deleted)"] => {}
            ["EXPUNGE"] => drop(state.lock().unwrap().mailboxes.remove(&user)),
            ["APPEND", "INBOX", literal] => {
                let mut source = vec![0; literal.strip_prefix('{')?.strip_suffix("+}")?.parse().ok()?];
                input.read_exact(&mut source).ok()?;
                assert_eq!(next_line(&mut input)?, "");
                let source = String::from_utf8(source).ok()?;
                let message = Stored { id: 0, subject: String::new(), source };
                state.lock().unwrap().mailboxes.entry(user.clone()).or_default().push(message);
            }
            ["IDLE"] => {
                let mut known = exists(&user);
                send("+ idling\r\n* OK still here\r\n")?;
                loop {
                    thread::sleep(Duration::from_millis(5));
                    let count = exists(&user);
                    if count > known {
                        known = count;
                        send(&format!("* {count} EXISTS\r\n"))?;
                    }
                }
            }
            ["LOGOUT"] => return send(&format!("* BYE\r\n{tag} OK bye\r\n")),
            _ => return send(&format!("{tag} BAD {command}\r\n")),
        }
        send(&format!("{response}{tag} OK done\r\n"))?;
    }
}
