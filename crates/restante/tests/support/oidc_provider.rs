//! An identity provider: npm's `oidc-provider`. `tests/program/http/oidc/install` downloads it; without it a test is skipped, or fails if
//! `REQUIRE_OIDC_PROVIDER` is set, as in CI.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use super::Server;
use super::installed::skip;

/// The environment variable that makes a missing provider an error.
const REQUIRED: &str = "REQUIRE_OIDC_PROVIDER";
/// The secret of all clients, except for the client `public`, which has none.
pub(crate) const SECRET: &str = "a secret: 100%+";

/// A running provider; ends when dropped.
pub(crate) struct OidcProvider {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    pub(crate) issuer: String,
}

impl OidcProvider {
    /// Starts a provider. Returns `None` if it is not installed.
    pub(crate) fn start() -> Option<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/http/oidc");
        if !folder.join("node_modules/oidc-provider").exists() {
            skip("npm's oidc-provider is missing: run crates/restante/tests/program/http/oidc/install", REQUIRED);
            return None;
        }
        let mut command = Command::new("node");
        command.arg("provider.mjs").current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let issuer = lines.next().unwrap().unwrap();
        Some(Self { child, lines, issuer })
    }

    /// Starts a server that uses the provider as this client, with this secret and more arguments.
    pub(crate) fn server(&mut self, client: &str, secret: &str, arguments: &[&str]) -> Server {
        let (issuer, client) = (format!("--auth-oidcissuer={}", self.issuer), format!("--auth-oidcclientid={client}"));
        let secret = format!("--auth-oidcsecret={secret}");
        let server = Server::start(&[&[issuer.as_str(), &client, &secret], arguments].concat());
        writeln!(self.child.stdin.as_mut().unwrap(), "http://{}", server.http).unwrap();
        assert_eq!(self.lines.next().unwrap().unwrap(), "ready");
        server
    }
}

impl Drop for OidcProvider {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
