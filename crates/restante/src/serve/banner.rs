//! The text that a terminal shows when the server is ready: where it is reached, where messages are stored, and how it is
//! stopped. It is not a part of the log.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};

use restante_settings::Config;

use super::BoundListener;
use crate::storage;

/// Returns the banner. `page` is the URL of the web interface.
pub(super) fn render(config: &Config, mail: &[BoundListener], page: Option<&str>) -> String {
    let listeners: Vec<(&str, String)> =
        mail.iter().map(|listener| (listener.name(), listener.client_address())).collect();
    render_rows(page, &listeners, &storage::describe(&config.storage))
}

/// Shows the banner on standard error, if that is a terminal and the log is not JSON.
pub(super) fn show(config: &Config, banner: &str) {
    let mut stderr = std::io::stderr();
    if !config.log.json && stderr.is_terminal() {
        // The banner repeats what is in the log, so an error does not matter.
        let _ = stderr.write_all(banner.as_bytes());
    }
}

/// Returns the banner for listeners that are given as name and address.
fn render_rows(page: Option<&str>, listeners: &[(&str, String)], storage: &str) -> String {
    let mut rows: Vec<(&str, &str)> = page.map(|page| ("Web", page)).into_iter().collect();
    for (name, address) in listeners {
        // IPv4 and IPv6 have a listener each.
        if !rows.contains(&(name, address)) {
            rows.push((name, address));
        }
    }
    rows.push(("Storage", storage));
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let mut text = format!("\n  Restante {} is ready.\n\n", env!("CARGO_PKG_VERSION"));
    for (name, value) in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {name:width$}  {value}");
    }
    text.push_str("\n  Press Ctrl-C to stop.\n\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_each_address_once() {
        let listeners = [
            ("SMTP", "localhost:2500".to_owned()),
            ("SMTP", "localhost:2500".to_owned()),
            ("SMTP with TLS", "127.0.0.1:4650".to_owned()),
            ("POP3", "unix:/run/pop3.sock".to_owned()),
        ];
        let expected = format!(
            "
  Restante {} is ready.

  Web            http://localhost:9000/
  SMTP           localhost:2500
  SMTP with TLS  127.0.0.1:4650
  POP3           unix:/run/pop3.sock
  Storage        /var/mail

  Press Ctrl-C to stop.

",
            env!("CARGO_PKG_VERSION")
        );
        assert_eq!(render_rows(Some("http://localhost:9000/"), &listeners, "/var/mail"), expected);
        assert!(render_rows(None, &[], "memory").contains("is ready.\n\n  Storage  memory\n"));
    }
}
