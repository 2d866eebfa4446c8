//! Servers with the API of Mailpit: Restante as Mailpit, and Mailpit itself. Both are started with the same variables.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use restante_testdir::TestDir;
use restante_testpg::ReservedPort;

use crate::support::TEST_TIMEOUT;

/// The variable with the path of a real Mailpit.
pub(crate) const MAILPIT_BIN: &str = "MAILPIT_BIN";

/// The file with the output of a server, in its directory.
const LOG: &str = "log";

/// A program with the API of Mailpit.
pub(crate) enum Program {
    Restante,
    /// Mailpit, at this path.
    Mailpit(OsString),
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Restante => "Restante",
            Self::Mailpit(_) => "Mailpit",
        })
    }
}

impl Program {
    /// Returns Mailpit if the environment has its path.
    pub(crate) fn mailpit() -> Option<Self> {
        std::env::var_os(MAILPIT_BIN).map(Self::Mailpit)
    }

    /// Returns the program and its arguments.
    pub(crate) fn words(&self) -> Vec<OsString> {
        match self {
            Self::Restante => [env!("CARGO_BIN_EXE_restante"), "--as", "mailpit"].map(OsString::from).to_vec(),
            Self::Mailpit(path) => vec![path.clone()],
        }
    }

    /// Returns a command without variables that configure one of the programs.
    pub(crate) fn command(&self) -> Command {
        let words = self.words();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        for (name, _) in std::env::vars_os() {
            let prefixes = ["MP_", "RESTANTE_", "INBUCKET_"];
            if name.to_str().is_some_and(|name| prefixes.iter().any(|prefix| name.starts_with(prefix))) {
                command.env_remove(name);
            }
        }
        command
    }
}

/// A running server; killed when dropped.
pub(crate) struct Server {
    child: Child,
    /// The start of all paths, without a slash at the end.
    webroot: String,
    smtp: ReservedPort,
    http: ReservedPort,
    pop3: ReservedPort,
    directory: TestDir,
}

impl Server {
    /// Starts a program with these variables and waits until it is ready. Its working directory has a certificate for TLS,
    /// `cert.pem`, with the key `key.pem`.
    pub(crate) fn start(program: &Program, variables: &[(&str, &str)]) -> Self {
        let webroot =
            variables.iter().find(|(name, _)| *name == "MP_WEBROOT").map_or("", |(_, value)| value).to_owned();
        let (smtp, http, pop3) = (ReservedPort::new(), ReservedPort::new(), ReservedPort::new());
        let directory = TestDir::new();
        let generated = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(directory.path().join("cert.pem"), generated.cert.pem()).unwrap();
        std::fs::write(directory.path().join("key.pem"), generated.signing_key.serialize_pem()).unwrap();
        let mut command = program.command();
        let log = File::create(directory.path().join(LOG)).unwrap();
        command.current_dir(directory.path()).stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        command.env("MP_SMTP_BIND_ADDR", smtp.address().to_string()).env("MP_UI_BIND_ADDR", http.address().to_string());
        command.env("MP_POP3_BIND_ADDR", pop3.address().to_string());
        command.env("MP_DISABLE_VERSION_CHECK", "true").env("MP_SMTP_DISABLE_RDNS", "true");
        let child = command.envs(variables.iter().copied()).spawn().unwrap();
        let mut server = Self { child, webroot, smtp, http, pop3, directory };
        server.wait_until_ready();
        server
    }

    fn wait_until_ready(&mut self) {
        let deadline = Instant::now() + TEST_TIMEOUT;
        while ureq::get(self.url("/readyz")).call().is_err() {
            let log = || std::fs::read_to_string(self.directory.path().join(LOG)).unwrap();
            assert!(self.child.try_wait().unwrap().is_none(), "the server exited: {}", log());
            assert!(Instant::now() < deadline, "the server does not start: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn smtp(&self) -> SocketAddr {
        self.smtp.address()
    }

    pub(crate) fn http(&self) -> SocketAddr {
        self.http.address()
    }

    /// Returns the address of POP3, which is enabled by credentials.
    pub(crate) fn pop3(&self) -> SocketAddr {
        self.pop3.address()
    }

    /// Returns the URL of a path below the web root.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{}{path}", self.http(), self.webroot)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
