//! Session endings in the log: every session has an ending with the right reason.

use std::net::SocketAddr;

use crate::support::{LineConnection, Server, connect};

/// A protocol with sessions. `name` is the prefix of its settings.
#[derive(Clone, Copy, Debug)]
struct Protocol {
    name: &'static str,
    start_tls: &'static str,
    quit: &'static str,
}

const PROTOCOLS: [Protocol; 3] = [
    Protocol { name: "smtp", start_tls: "STARTTLS", quit: "QUIT\r\n" },
    Protocol { name: "pop3", start_tls: "STLS", quit: "QUIT\r\n" },
    Protocol { name: "imap", start_tls: "a STARTTLS", quit: "a LOGOUT\r\n" },
];

impl Protocol {
    /// Starts a server with these settings of the protocol, and returns the address of its listener.
    fn start(self, settings: &[&str]) -> (Server, SocketAddr) {
        let settings: Vec<String> = settings.iter().map(|setting| format!("--{}-{setting}", self.name)).collect();
        let arguments = ["--loglevel=debug"].into_iter().chain(settings.iter().map(String::as_str));
        let mut server = Server::start(&arguments.collect::<Vec<_>>());
        let address = server.address_of(&format!("{} listening on tcp4 ", self.name.to_uppercase()));
        (server, address)
    }

    /// Waits until the session of this number has ended, and checks the reason.
    fn assert_ended(self, server: &mut Server, number: usize, reason: &str) {
        let session = format!("ended session=\"{} {number} 127.0.0.1\"", self.name.to_uppercase());
        let line = server.wait_for_log(&session);
        assert!(line.ends_with(&format!(" ending={reason}")), "{reason}: {line}");
    }
}

#[test]
fn endings_caused_by_the_client() {
    for protocol in PROTOCOLS {
        let (mut server, address) = protocol.start(&["maxbadcommands=1", "tlsenabled", "tlscert=self-signed"]);
        // The input, and the reason if the connection is closed after it.
        let table = [("", "left"), ("NOO", "left"), (protocol.quit, "quit"), ("a NOPE\r\n", "errors")];
        for (number, (input, reason)) in (1..).zip(table) {
            let mut connection = LineConnection::new(connect(address));
            connection.line().unwrap();
            connection.send(input);
            if input.ends_with("\r\n") {
                while connection.line().is_some() {}
            }
            drop(connection);
            protocol.assert_ended(&mut server, number, reason);
        }
        let mut connection = LineConnection::new(connect(address));
        connection.line().unwrap();
        connection.send(format!("{}\r\n", protocol.start_tls));
        connection.line().unwrap();
        connection.send("this is not a handshake\r\n");
        protocol.assert_ended(&mut server, table.len() + 1, "tls");
    }
}

#[test]
fn endings_caused_by_the_server() {
    for protocol in PROTOCOLS {
        let (mut server, address) = protocol.start(&["timeout=1s"]);
        let mut connection = LineConnection::new(connect(address));
        while connection.line().is_some() {}
        protocol.assert_ended(&mut server, 1, "timeout");

        let (mut server, address) = protocol.start(&["maxconnections=1"]);
        let mut first = LineConnection::new(connect(address));
        first.line().unwrap();
        drop(LineConnection::new(connect(address)).line().unwrap());
        protocol.assert_ended(&mut server, 2, "refused");
        server.signal("TERM");
        protocol.assert_ended(&mut server, 1, "shutdown");
    }
}

#[test]
fn sessions_of_different_listeners_have_different_numbers() {
    for protocol in PROTOCOLS {
        let (mut server, plain) = protocol.start(&["tlsenabled", "tlscert=self-signed", "tlsaddr=127.0.0.1:0"]);
        let tls = server.address_of(&format!("{} with TLS listening on tcp4 ", protocol.name.to_uppercase()));
        // The numbers are unique across listeners.
        for (number, (address, reason)) in (1..).zip([(plain, "left"), (tls, "tls"), (plain, "left"), (tls, "tls")]) {
            drop(connect(address));
            protocol.assert_ended(&mut server, number, reason);
        }
    }
}
