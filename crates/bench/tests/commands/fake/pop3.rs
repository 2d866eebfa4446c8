//! The POP3 server of the fake server: any password opens any mailbox, and messages are deleted at QUIT.

use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::sync::Mutex;

use super::{State, next_line};

pub(super) fn session(stream: TcpStream, state: &Mutex<State>) -> Option<()> {
    let mut output = stream.try_clone().ok()?;
    let mut input = BufReader::new(stream);
    let mut say = |text: &str| output.write_all(text.as_bytes()).ok();
    say("+OK ready <1.2@fake.example>\r\n")?;
    let mut user = String::new();
    // The messages of the mailbox at login: id and dot-stuffed source.
    let mut held: Vec<(usize, String)> = Vec::new();
    let mut deleted = Vec::new();
    loop {
        let line = next_line(&mut input)?;
        let (verb, argument) = line.split_once(' ').unwrap_or((&line, ""));
        let number = argument.parse::<usize>().ok().filter(|number| (1..=held.len()).contains(number));
        let numbered = |text: &dyn Fn(&(usize, String)) -> String| {
            let lines = held.iter().enumerate().map(|(n, message)| format!("{} {}\r\n", n + 1, text(message)));
            format!("+OK\r\n{}.\r\n", lines.collect::<Vec<_>>().concat())
        };
        match (verb, number) {
            ("USER", _) => {
                argument.clone_into(&mut user);
                say("+OK\r\n")?;
            }
            ("PASS", _) => {
                let stuffed = |source: &str| source.replace("\r\n.", "\r\n..");
                let state = state.lock().unwrap();
                let messages = state.mailboxes.get(&user).into_iter().flatten();
                held = messages.map(|message| (message.id, stuffed(&message.source))).collect();
                drop(state);
                say("+OK\r\n")?;
            }
            ("STAT", _) => {
                let octets: usize = held.iter().map(|(_, source)| source.len()).sum();
                say(&format!("+OK {} {octets}\r\n", held.len()))?;
            }
            ("LIST", _) => say(&numbered(&|(_, source)| source.len().to_string()))?,
            ("UIDL", _) => say(&numbered(&|(id, _)| format!("id-{id}")))?,
            ("RETR", Some(number)) => say(&format!("+OK\r\n{}.\r\n", held[number - 1].1))?,
            ("DELE", Some(number)) => {
                deleted.push(held[number - 1].0);
                say("+OK\r\n")?;
            }
            ("QUIT", _) => {
                if let Some(messages) = state.lock().unwrap().mailboxes.get_mut(&user) {
                    messages.retain(|message| !deleted.contains(&message.id));
                }
                return say("+OK bye\r\n");
            }
            _ => say("-ERR what\r\n")?,
        }
    }
}
