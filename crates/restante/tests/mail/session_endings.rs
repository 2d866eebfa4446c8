//! How sessions end, by what the log says of them: everybody who comes has an end, and the reason is the right one.

use std::net::SocketAddr;

use crate::support::{Server, Talk, connect};

/// A protocol with sessions, by the word that its settings begin with.
#[derive(Clone, Copy, Debug)]
struct Protocol {
    name: &'static str,
    start_tls: &'static str,
}

const SMTP: Protocol = Protocol { name: "smtp", start_tls: "STARTTLS" };
const POP3: Protocol = Protocol { name: "pop3", start_tls: "STLS" };

impl Protocol {
    /// A server with these settings of the protocol, and where it speaks it.
    fn serve(self, settings: &[&str]) -> (Server, SocketAddr) {
        let settings: Vec<String> = settings.iter().map(|setting| format!("--{}-{setting}", self.name)).collect();
        let arguments = ["--loglevel=debug"].into_iter().chain(settings.iter().map(String::as_str));
        let mut server = Server::start(&arguments.collect::<Vec<_>>());
        let address = server.address_of(&format!("{} listening on tcp4 ", self.name.to_uppercase()));
        (server, address)
    }

    /// Waits for the end of the session of this number, and checks the reason.
    fn ended(self, server: &mut Server, number: usize, reason: &str) {
        let session = format!("ended session=\"{} {number} 127.0.0.1\"", self.name.to_uppercase());
        let line = server.logged(&session);
        assert!(line.ends_with(&format!(" ending={reason}")), "{reason}: {line}");
    }
}

#[test]
fn by_the_peer() {
    for protocol in [SMTP, POP3] {
        let (mut server, address) = protocol.serve(&["maxbadcommands=1", "tlsenabled", "tlscert=self-signed"]);
        // What is said, and what comes of it when the connection is closed behind it.
        let table = [("", "Left"), ("NOO", "Left"), ("QUIT\r\n", "Quit"), ("NOPE\r\n", "Errors")];
        for (number, (words, reason)) in (1..).zip(table) {
            let mut talk = Talk::new(connect(address));
            talk.line().unwrap();
            talk.send(words);
            if words.ends_with("\r\n") {
                while talk.line().is_some() {}
            }
            drop(talk);
            protocol.ended(&mut server, number, reason);
        }
        let mut talk = Talk::new(connect(address));
        talk.line().unwrap();
        talk.send(format!("{}\r\n", protocol.start_tls));
        talk.line().unwrap();
        talk.send("this is no handshake\r\n");
        protocol.ended(&mut server, table.len() + 1, "Tls");
    }
}

#[test]
fn by_the_server() {
    for protocol in [SMTP, POP3] {
        let (mut server, address) = protocol.serve(&["timeout=1s"]);
        let mut talk = Talk::new(connect(address));
        while talk.line().is_some() {}
        protocol.ended(&mut server, 1, "Timeout");

        let (mut server, address) = protocol.serve(&["maxconnections=1"]);
        let mut first = Talk::new(connect(address));
        first.line().unwrap();
        drop(Talk::new(connect(address)).line().unwrap());
        protocol.ended(&mut server, 2, "Refused");
        server.signal("TERM");
        protocol.ended(&mut server, 1, "Shutdown");
    }
}

#[test]
fn of_sessions_at_different_listeners() {
    for protocol in [SMTP, POP3] {
        let (mut server, plain) = protocol.serve(&["tlsenabled", "tlscert=self-signed", "tlsaddr=127.0.0.1:0"]);
        let tls = server.address_of(&format!("{} with TLS listening on tcp4 ", protocol.name.to_uppercase()));
        // No two have the same number.
        for (number, (address, reason)) in (1..).zip([(plain, "Left"), (tls, "Tls"), (plain, "Left"), (tls, "Tls")]) {
            drop(connect(address));
            protocol.ended(&mut server, number, reason);
        }
    }
}
