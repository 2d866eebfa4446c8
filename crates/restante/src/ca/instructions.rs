//! The output of `restante ca`: the settings of the server, and those with which clients trust the CA.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use serde_json::json;

use super::certificates::CertificateName;
use super::{CA_CERTIFICATE, SERVER_CERTIFICATE, SERVER_KEY};

/// The variables of clients that add the certificates in a file to those that are trusted.
const ADDING_VARIABLES: [&str; 1] = ["NODE_EXTRA_CA_CERTS"];
/// The variables of clients that then trust only the certificates in a file.
const REPLACING_VARIABLES: [&str; 4] = ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "AWS_CA_BUNDLE", "CURL_CA_BUNDLE"];
/// The trust store of Java that the printed command creates.
const TRUST_STORE: &str = "restante.p12";

/// What the user has to know about the files.
pub(super) struct Instructions<'a> {
    /// The folder of the files, as an absolute path.
    pub(super) dir: &'a Path,
    pub(super) names: &'a [CertificateName],
    /// When the server certificate expires.
    pub(super) expires: Timestamp,
}

impl Instructions<'_> {
    /// Returns lines to copy.
    pub(super) fn text(&self) -> String {
        let mut text = "# The server: HTTPS for the APIs of mail providers\n".to_owned();
        let mut add = |line: &str| text.extend([line, "\n"]);
        for (name, value) in self.server_variables() {
            add(&assignment(name, &value));
        }
        let ca = self.path(CA_CERTIFICATE);
        add("\n# Node.js: trusts the CA in addition to others");
        for name in ADDING_VARIABLES {
            add(&assignment(name, &ca));
        }
        add("\n# OpenSSL, Go and Ruby; Python; AWS SDKs; curl: trust only the certificates in the file");
        for name in REPLACING_VARIABLES {
            add(&assignment(name, &ca));
        }
        add("\n# Java: trusts only the certificates in the new file, with -Djavax.net.ssl.trustStore=FILE");
        add(&self.keytool());
        let hosts = self.extra_hosts();
        if !hosts.is_empty() {
            add(
                "\n# Docker Compose: the service of a client. It connects to port 443, so use the listener ':443 tls providers'",
            );
            add("extra_hosts:");
            for host in &hosts {
                add(&format!("  - \"{host}\""));
            }
        }
        text
    }

    /// Returns the same as a JSON object.
    pub(super) fn json(&self) -> String {
        let ca = self.path(CA_CERTIFICATE);
        let clients = ADDING_VARIABLES.iter().chain(&REPLACING_VARIABLES);
        let object = json!({
            "ca": ca,
            "certificate": self.path(SERVER_CERTIFICATE),
            "key": self.path(SERVER_KEY),
            "names": self.names.iter().map(CertificateName::as_str).collect::<Vec<_>>(),
            "expires": self.expires.to_string(),
            "server": self.server_variables().into_iter().collect::<BTreeMap<_, _>>(),
            "clients": clients.map(|name| (*name, ca.as_str())).collect::<BTreeMap<_, _>>(),
            "keytool": self.keytool(),
            "extra_hosts": self.extra_hosts(),
        });
        format!("{object:#}\n")
    }

    fn path(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }

    fn hosts(&self) -> Vec<&str> {
        self.names.iter().filter_map(CertificateName::as_host).collect()
    }

    fn server_variables(&self) -> Vec<(&'static str, String)> {
        let mut variables = vec![
            ("RESTANTE_WEB_TLSCERT", self.path(SERVER_CERTIFICATE)),
            ("RESTANTE_WEB_TLSPRIVKEY", self.path(SERVER_KEY)),
            ("RESTANTE_WEB_LISTENERS", "localhost:9443 tls providers".to_owned()),
        ];
        let hosts = self.hosts();
        if !hosts.is_empty() {
            variables.push(("RESTANTE_WEB_HOSTS", hosts.join(",")));
        }
        variables
    }

    /// Returns the command that makes Java trust the CA.
    fn keytool(&self) -> String {
        let (ca, store) = (quoted(&self.path(CA_CERTIFICATE)), quoted(&self.path(TRUST_STORE)));
        format!(
            "keytool -importcert -noprompt -alias restante -file {ca} -keystore {store} -storetype PKCS12 -storepass changeit"
        )
    }

    fn extra_hosts(&self) -> Vec<String> {
        self.hosts().iter().map(|host| format!("{host}:host-gateway")).collect()
    }
}

/// Returns the command of the shell that sets a variable.
fn assignment(name: &str, value: &str) -> String {
    let value = quoted(value);
    if cfg!(windows) { format!("$env:{name} = {value}") } else { format!("export {name}={value}") }
}

/// Returns a text as one word of the shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', if cfg!(windows) { "''" } else { "'\\''" }))
}
