//! The POP3 server of the fake server: any password opens any mailbox, and messages are deleted at QUIT.

use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::sync::Mutex;

use super::{State, next_line};

pub(super) fn session(stream: TcpStream, state: &Mutex<State>) -> Option<()> {
    let mut output = stream.try_clone().ok()?;
    let mut input = BufReader::new(stream);
    let mut send = |text: &str| output.write_all(text.as_bytes()).ok();
    send("+OK ready <1.2@fake.example>\r\n")?;
    let mut user = String::new();
    // The messages of the mailbox at login: id and dot-stuffed source.
    let mut messages: Vec<(usize, String)> = Vec::new();
    let mut deleted = Vec::new();
    loop {
        let line = next_line(&mut input)?;
        let (verb, argument) = line.split_once(' ').unwrap_or((&line, ""));
        let number = argument.parse::<usize>().ok().filter(|number| (1..=messages.len()).contains(number));
        let listing = |text: &dyn Fn(&(usize, String)) -> String| {
            let lines = messages.iter().enumerate().map(|(n, message)| format!("{} {}\r\n", n + 1, text(message)));
            format!("+OK\r\n{}.\r\n", lines.collect::<Vec<_>>().concat())
        };
        match (verb, number) {
            ("USER", _) => {
                argument.clone_into(&mut user);
                send("+OK\r\n")?;
            }
            ("PASS", _) => {
                let dot_stuffed = |source: &str| source.replace("\r\n.", "\r\n..");
                let state = state.lock().unwrap();
                let stored = state.mailboxes.get(&user).into_iter().flatten();
                messages = stored.map(|message| (message.id, dot_stuffed(&message.source))).collect();
                drop(state);
                send("+OK\r\n")?;
            }
            ("STAT", _) => {
                let octets: usize = messages.iter().map(|(_, source)| source.len()).sum();
                send(&format!("+OK {} {octets}\r\n", messages.len()))?;
            }
            ("LIST", _) => send(&listing(&|(_, source)| source.len().to_string()))?,
            ("UIDL", _) => send(&listing(&|(id, _)| format!("id-{id}")))?,
            ("RETR", Some(number)) => send(&format!("+OK\r\n{}.\r\n", messages[number - 1].1))?,
            ("DELE", Some(number)) => {
                deleted.push(messages[number - 1].0);
                send("+OK\r\n")?;
            }
            ("QUIT", _) => {
                if let Some(messages) = state.lock().unwrap().mailboxes.get_mut(&user) {
                    messages.retain(|message| !deleted.contains(&message.id));
                }
                return send("+OK bye\r\n");
            }
            _ => send("-ERR what\r\n")?,
        }
    }
}
