//! A POP3 client that says what it is told to, and takes answers apart.

use std::net::SocketAddr;

use md5::{Digest as _, Md5};

use super::tls::Wire;
use super::{Server, Talk, connect};

/// What APOP sends for a password: RFC 1939 section 7 makes it of the timestamp at the end of the greeting.
pub(crate) fn digest(greeting: &str, password: &str) -> String {
    let timestamp = &greeting[greeting.find('<').expect("a timestamp")..];
    let digest = Md5::new().chain_update(timestamp).chain_update(password).finalize();
    digest.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// The client's end of a POP3 session.
pub(crate) struct Pop3 {
    pub(crate) talk: Talk<Wire>,
    /// What the server greeted with.
    pub(crate) greeting: String,
}

impl Pop3 {
    /// A session that has been greeted.
    pub(crate) fn connect(server: &mut Server) -> Self {
        let address = server.address_of("POP3 listening on tcp4 ");
        Self::greeted(Talk::new(Wire::Plain(connect(address))))
    }

    /// The same with TLS from the first byte.
    pub(crate) fn connect_tls(address: SocketAddr) -> Self {
        let mut talk = Talk::new(Wire::Plain(connect(address)));
        talk.stream.start_tls();
        Self::greeted(talk)
    }

    /// A session that has opened a mailbox.
    pub(crate) fn login(server: &mut Server, user: &str) -> Self {
        let mut pop3 = Self::connect(server);
        pop3.ok(&format!("USER {user}"));
        pop3.ok("PASS anything");
        pop3
    }

    fn greeted(mut talk: Talk<Wire>) -> Self {
        let greeting = talk.line().expect("a greeting");
        assert!(greeting.starts_with("+OK Restante POP3 server ready <"), "{greeting}");
        Self { talk, greeting }
    }

    /// Sends a command and returns the first line of the answer.
    pub(crate) fn say(&mut self, command: &str) -> String {
        self.talk.send(format!("{command}\r\n"));
        self.talk.line().unwrap_or_else(|| panic!("closed instead of an answer to {command}"))
    }

    pub(crate) fn ok(&mut self, command: &str) -> String {
        let answer = self.say(command);
        assert!(answer.starts_with("+OK"), "{command}: {answer}");
        answer
    }

    pub(crate) fn err(&mut self, command: &str) -> String {
        let answer = self.say(command);
        assert!(answer.starts_with("-ERR"), "{command}: {answer}");
        answer
    }

    /// The text of a long answer as it was before it was stuffed with dots, up to the end of its last line. Like most
    /// clients, it takes any LF for the end of a line.
    pub(crate) fn text(&mut self, command: &str) -> Vec<u8> {
        self.talk.send(format!("{command}\r\n"));
        // The text may be empty, and its end then stands right behind the first line.
        let answer = self.talk.until(b"\r\n.\r\n");
        assert!(answer.starts_with(b"+OK"), "{command}: {}", String::from_utf8_lossy(&answer));
        let lines = answer[..answer.len() - 3].split_inclusive(|byte| *byte == b'\n').skip(1);
        lines.flat_map(|line| line.strip_prefix(b".").unwrap_or(line)).copied().collect()
    }

    /// The lines of a long answer.
    pub(crate) fn lines(&mut self, command: &str) -> Vec<String> {
        String::from_utf8(self.text(command)).unwrap().lines().map(str::to_owned).collect()
    }

    /// The ids that the server lists, by number.
    pub(crate) fn uidl(&mut self) -> Vec<String> {
        let lines = self.lines("UIDL").into_iter().zip(1..);
        lines.map(|(line, number)| line.strip_prefix(&format!("{number} ")).unwrap().to_owned()).collect()
    }

    /// Leaves in good order.
    pub(crate) fn quit(mut self) {
        self.ok("QUIT");
        assert_eq!(self.talk.line(), None);
    }
}
