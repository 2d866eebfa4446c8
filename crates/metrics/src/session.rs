//! The reasons why sessions of SMTP, LMTP, POP3 and IMAP end.

use restante_mail::named_enum;

named_enum! {
    /// Why a session ended.
    pub enum SessionEndReason {
        /// The client sent QUIT or LOGOUT.
        Quit = "quit",
        /// The client disconnected, or the connection broke.
        Disconnected = "left",
        /// The client was silent or too slow.
        Timeout = "timeout",
        /// The session was closed because of errors of the client.
        Errors = "errors",
        /// The TLS handshake failed.
        TlsFailed = "tls",
        /// There were too many connections, or no memory was left.
        Refused = "refused",
        /// The server was shut down.
        Shutdown = "shutdown",
    }
}
