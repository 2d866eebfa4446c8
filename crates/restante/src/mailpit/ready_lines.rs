//! The log lines that Mailpit writes when it is ready. Container tools wait for `[http] accessible via`.

use restante_net::ListenAddr;
use restante_settings::Config;

/// Logs where the server can be reached. `web_port` is the port of the web interface, which the system may have chosen.
pub(crate) fn log_ready_lines(config: &Config, web_port: Option<u16>) {
    for line in lines(config, web_port) {
        tracing::info!("{line}");
    }
}

fn lines(config: &Config, web_port: Option<u16>) -> Vec<String> {
    let Config { smtp, pop3, web, .. } = config;
    let encryption = match (smtp.tls.enabled, smtp.tls.force, smtp.require_starttls) {
        (false, ..) => "no encryption",
        (true, true, _) => "SSL/TLS required",
        (true, false, true) => "STARTTLS required",
        (true, false, false) => "STARTTLS optional",
    };
    let mut lines: Vec<String> =
        smtp.addr.iter().map(|addr| format!("[smtpd] starting on {} ({encryption})", text(addr))).collect();
    lines.extend(pop3.addr.iter().map(|addr| format!("[pop3] starting on {}", text(addr))));
    lines.extend(web.addr.iter().map(|addr| format!("[http] starting on {}", text(addr))));
    if let (Some(host), Some(port)) = (web.addr.iter().find_map(host), web_port) {
        let scheme = if web.tls.force { "https" } else { "http" };
        lines.push(format!("[http] accessible via {scheme}://{host}:{port}{}/", web.base_path));
    }
    lines
}

/// Returns the address as Mailpit writes it.
fn text(addr: &ListenAddr) -> String {
    match addr {
        ListenAddr::Any(port) => format!("[::]:{port}"),
        other => other.to_string(),
    }
}

/// Returns the host in the URL of a listener.
fn host(addr: &ListenAddr) -> Option<String> {
    match addr {
        ListenAddr::Any(_) | ListenAddr::Localhost(_) => Some("localhost".to_owned()),
        ListenAddr::Tcp(addr) if addr.is_ipv6() => Some(format!("[{}]", addr.ip())),
        ListenAddr::Tcp(addr) => Some(addr.ip().to_string()),
        ListenAddr::Unix { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_the_lines_of_mailpit() {
        let mut config = Config::default();
        config.smtp.addr = vec![ListenAddr::Any(1025)];
        config.pop3.addr = Vec::new();
        config.web.addr = vec![ListenAddr::Any(8025)];
        let expected = [
            "[smtpd] starting on [::]:1025 (no encryption)",
            "[http] starting on [::]:8025",
            "[http] accessible via http://localhost:8025/",
        ];
        assert_eq!(lines(&config, Some(8025)), expected);

        config.smtp.tls.enabled = true;
        config.smtp.require_starttls = true;
        config.pop3.addr = vec![ListenAddr::Any(1110)];
        config.web.addr = vec!["0.0.0.0:0".parse().expect("an address")];
        config.web.tls.force = true;
        config.web.base_path = "/mail".to_owned();
        let expected = [
            "[smtpd] starting on [::]:1025 (STARTTLS required)",
            "[pop3] starting on [::]:1110",
            "[http] starting on 0.0.0.0:0",
            "[http] accessible via https://0.0.0.0:4321/mail/",
        ];
        assert_eq!(lines(&config, Some(4321)), expected);

        config.web.addr = vec!["unix:/run/web.sock".parse().expect("an address")];
        assert!(lines(&config, None).iter().all(|line| !line.contains("accessible")));
    }
}
