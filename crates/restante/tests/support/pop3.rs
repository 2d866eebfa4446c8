//! A POP3 client that sends given commands and parses the replies.

use std::net::SocketAddr;

use md5::{Digest as _, Md5};

use super::tls::ClientStream;
use super::{LineConnection, Server, connect};

/// Returns the APOP digest of a password, from the timestamp at the end of the greeting (RFC 1939 section 7).
pub(crate) fn digest(greeting: &str, password: &str) -> String {
    let timestamp = &greeting[greeting.find('<').expect("a timestamp")..];
    let digest = Md5::new().chain_update(timestamp).chain_update(password).finalize();
    digest.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// The client's end of a POP3 session.
pub(crate) struct Pop3 {
    pub(crate) connection: LineConnection<ClientStream>,
    /// The greeting of the server.
    pub(crate) greeting: String,
}

impl Pop3 {
    /// Connects and reads the greeting.
    pub(crate) fn connect(server: &mut Server) -> Self {
        let address = server.address_of("POP3 listening on tcp4 ");
        Self::read_greeting(LineConnection::new(ClientStream::Plain(connect(address))))
    }

    /// Connects with implicit TLS and reads the greeting.
    pub(crate) fn connect_tls(address: SocketAddr) -> Self {
        let mut connection = LineConnection::new(ClientStream::Plain(connect(address)));
        connection.stream.start_tls();
        Self::read_greeting(connection)
    }

    /// Connects and logs in to a mailbox.
    pub(crate) fn login(server: &mut Server, user: &str) -> Self {
        let mut pop3 = Self::connect(server);
        pop3.ok(&format!("USER {user}"));
        pop3.ok("PASS anything");
        pop3
    }

    fn read_greeting(mut connection: LineConnection<ClientStream>) -> Self {
        let greeting = connection.line().expect("a greeting");
        assert!(greeting.starts_with("+OK Restante POP3 server ready <"), "{greeting}");
        Self { connection, greeting }
    }

    /// Sends a command and returns the first line of the reply.
    pub(crate) fn command(&mut self, command: &str) -> String {
        self.connection.send(format!("{command}\r\n"));
        self.connection.line().unwrap_or_else(|| panic!("closed instead of a reply to {command}"))
    }

    pub(crate) fn ok(&mut self, command: &str) -> String {
        let reply = self.command(command);
        assert!(reply.starts_with("+OK"), "{command}: {reply}");
        reply
    }

    pub(crate) fn err(&mut self, command: &str) -> String {
        let reply = self.command(command);
        assert!(reply.starts_with("-ERR"), "{command}: {reply}");
        reply
    }

    /// Returns the text of a multi-line reply without dot-stuffing, up to the end of its last line. Like most clients, it accepts
    /// any LF as the end of a line.
    pub(crate) fn text(&mut self, command: &str) -> Vec<u8> {
        self.connection.send(format!("{command}\r\n"));
        // If the text is empty, its end directly follows the first line.
        let reply = self.connection.until(b"\r\n.\r\n");
        assert!(reply.starts_with(b"+OK"), "{command}: {}", String::from_utf8_lossy(&reply));
        let lines = reply[..reply.len() - 3].split_inclusive(|byte| *byte == b'\n').skip(1);
        lines.flat_map(|line| line.strip_prefix(b".").unwrap_or(line)).copied().collect()
    }

    /// Returns the lines of a multi-line reply.
    pub(crate) fn lines(&mut self, command: &str) -> Vec<String> {
        String::from_utf8(self.text(command)).unwrap().lines().map(str::to_owned).collect()
    }

    /// Returns the ids that the server lists, in order.
    pub(crate) fn uidl(&mut self) -> Vec<String> {
        let lines = self.lines("UIDL").into_iter().zip(1..);
        lines.map(|(line, number)| line.strip_prefix(&format!("{number} ")).unwrap().to_owned()).collect()
    }

    /// Sends QUIT, and checks that the server closes the connection.
    pub(crate) fn quit(mut self) {
        self.ok("QUIT");
        assert_eq!(self.connection.line(), None);
    }
}
