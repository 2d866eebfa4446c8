//! An IMAP client that sends given commands.

use std::net::TcpStream;

use super::{LineConnection, Server, connect};

/// The client's end of an IMAP session.
pub(crate) struct Imap {
    pub(crate) connection: LineConnection<TcpStream>,
}

impl Imap {
    /// Connects and reads the greeting.
    pub(crate) fn connect(server: &mut Server) -> Self {
        let address = server.address_of("IMAP listening on tcp4 ");
        let mut connection = LineConnection::new(connect(address));
        let greeting = connection.line().expect("a greeting");
        assert!(greeting.starts_with("* OK [CAPABILITY "), "{greeting}");
        Self { connection }
    }

    /// Connects and logs in to a mailbox.
    pub(crate) fn login(server: &mut Server, user: &str) -> Self {
        let mut imap = Self::connect(server);
        imap.ok(&format!("LOGIN {user} anything"));
        imap
    }

    /// Sends a command. Returns the untagged lines, and the last one without its tag.
    pub(crate) fn command(&mut self, command: &str) -> (Vec<String>, String) {
        self.connection.send(format!("a {command}\r\n"));
        let mut untagged = Vec::new();
        loop {
            let line = self.connection.line().unwrap_or_else(|| panic!("{untagged:?} is all for {command}"));
            match line.strip_prefix("a ") {
                Some(completion) => return (untagged, completion.to_owned()),
                None => untagged.push(line),
            }
        }
    }

    /// Sends a command that must succeed. Returns the untagged lines.
    pub(crate) fn ok(&mut self, command: &str) -> Vec<String> {
        let (untagged, completion) = self.command(command);
        assert!(completion.starts_with("OK "), "{command}: {completion}");
        untagged
    }

    /// Sends a command that must be refused. Returns the last line without its tag.
    pub(crate) fn no(&mut self, command: &str) -> String {
        let (_, completion) = self.command(command);
        assert!(completion.starts_with("NO "), "{command}: {completion}");
        completion
    }

    /// Sends LOGOUT, and checks that the server closes the connection.
    pub(crate) fn logout(mut self) {
        self.ok("LOGOUT");
        assert_eq!(self.connection.line(), None);
    }
}
