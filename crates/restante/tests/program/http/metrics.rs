//! Metrics of the real program: they change with events, and the dashboard, the alerts and the manual use existing metrics.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::exposition::Exposition;
use crate::support::imap::Imap;
use crate::support::tls::ClientStream;
use crate::support::{LineConnection, Server, TEST_TIMEOUT, connect};

/// Settings with which every metric has a value. The webhook and the relay target are not used, because no message arrives.
const ALL_METRICS: [&str; 4] =
    ["--webhook-urls", "https://ci.test/hook", "--relay-targets", "main smtp://smtp.ci.test allow=*"];

fn scrape(server: &Server) -> Exposition {
    Exposition::parse(&String::from_utf8(server.bytes("/metrics")).unwrap())
}

fn send(server: &Server, to: &str) {
    let mut connection = server.connect_smtp();
    connection.start_message(to);
    connection.command("DATA", "354");
    connection.command("Subject: hi\r\n\r\nhello\r\n.", "250");
    connection.command("QUIT", "221");
}

/// Scrapes until the series has the value, because counters are updated asynchronously.
fn wait_for(server: &Server, series: &str, value: f64) -> Exposition {
    let deadline = Instant::now() + TEST_TIMEOUT;
    loop {
        let page = scrape(server);
        if (page.value(series) - value).abs() < 1e-9 {
            return page;
        }
        assert!(Instant::now() < deadline, "{series} is {} instead of {value}", page.value(series));
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn file(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn messages_change_the_counters() {
    let policy = ["--smtp-rejectdomains", "deny.test", "--smtp-discarddomains", "drop.test"];
    let server = Server::start(&[&policy[..], &["--storage-mailboxmsgcap", "1"]].concat());
    let before = scrape(&server);
    assert!(before.value(concat!("restante_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"}")) > 0.0);
    assert!(before.value("process_start_time_seconds") > 1.7e9);
    assert!(before.value("process_resident_memory_bytes") > 1e6);

    send(&server, "bob@x.org");
    send(&server, "bob@x.org");
    send(&server, "eve@x.org");
    send(&server, "ann@drop.test");
    let mut connection = server.connect_smtp();
    connection.start_message("bob@x.org");
    connection.command("RCPT TO:<a@deny.test>", "550");
    connection.command("RCPT TO:<a b>", "5");
    connection.command("BREW", "500");
    assert_eq!(ureq::delete(server.url("/api/v1/mailbox/eve")).call().unwrap().status(), 200);

    // Connections are closed shortly after QUIT.
    wait_for(&server, "restante_sessions_ended_total{protocol=\"smtp\",outcome=\"quit\"}", 4.0);
    let after = wait_for(&server, "restante_connections{protocol=\"smtp\"}", 1.0);
    let expected = [
        ("restante_sessions_ended_total{protocol=\"smtp\",outcome=\"left\"}", 0.0),
        ("restante_messages_received_total", 4.0),
        ("restante_received_bytes_total", 4.0 * 22.0),
        ("restante_messages_stored_total", 3.0),
        ("restante_messages_discarded_total", 1.0),
        ("restante_messages_rejected_total{reason=\"policy\"}", 1.0),
        ("restante_messages_rejected_total{reason=\"address\"}", 1.0),
        ("restante_messages_rejected_total{reason=\"syntax\"}", 1.0),
        ("restante_messages_rejected_total{reason=\"size\"}", 0.0),
        ("restante_messages_deleted_total{cause=\"limit\"}", 1.0),
        ("restante_messages_deleted_total{cause=\"request\"}", 1.0),
        ("restante_messages_deleted_total{cause=\"age\"}", 0.0),
        ("restante_delivery_seconds_count", 4.0),
        ("restante_store_up", 1.0),
        ("restante_store_messages", 1.0),
        ("restante_store_mailboxes", 1.0),
        ("restante_connections_accepted_total{protocol=\"smtp\"}", 5.0),
        ("restante_http_requests_total{method=\"DELETE\",route=\"/api/v1/mailbox/{name}\",status=\"200\"}", 1.0),
        ("restante_retention_period_seconds", 86_400.0),
    ];
    for (series, value) in expected {
        assert!((after.value(series) - value).abs() < 1e-9, "{series} is {}", after.value(series));
    }
    let vars = server.json("/debug/vars");
    assert_eq!((&vars["smtp"]["ReceivedTotal"], &vars["smtp"]["WarnsTotal"]), (&4.into(), &3.into()));
    assert_eq!((&vars["smtp"]["ConnectsTotal"], &vars["smtp"]["ConnectsCurrent"]), (&5.into(), &1.into()));
    assert_eq!(vars["retention"]["RetainedCurrent"], 1);
    for name in ["Sys", "HeapSys", "HeapAlloc"] {
        assert!(vars["memstats"][name].as_u64().is_some_and(|bytes| bytes > 1_000_000), "{vars}");
    }
    assert_eq!(vars["memstats"]["HeapObjects"], 0);
    assert!(vars["goroutines"].as_u64().is_some_and(|tasks| tasks > 1), "{vars}");
}

#[test]
fn expired_messages_are_counted() {
    let server = Server::start(&["--storage-retentionperiod", "1s"]);
    send(&server, "bob@x.org");
    wait_for(&server, "restante_messages_deleted_total{cause=\"age\"}", 1.0);
    let page = wait_for(&server, "restante_retention_lag_seconds", 0.0);
    assert!(page.value("restante_retention_completed_timestamp_seconds") > 1.7e9);
    assert_eq!(server.json("/debug/vars")["retention"]["DeletesTotal"], 1);
}

#[test]
fn pop3_deletions_are_counted() {
    let mut server = Server::start(&[]);
    send(&server, "bob@x.org");
    let mut connection = LineConnection::new(connect(server.address_of("POP3 listening on tcp4 ")));
    assert!(connection.line().is_some_and(|greeting| greeting.starts_with("+OK")));
    for line in ["USER bob", "PASS anything", "DELE 1", "QUIT"] {
        connection.send(format!("{line}\r\n"));
        assert!(connection.line().is_some_and(|reply| reply.starts_with("+OK")), "{line}");
    }
    assert_deletion_is_counted(&server, "pop3");
}

#[test]
fn imap_deletions_are_counted() {
    let mut server = Server::start(&[]);
    send(&server, "bob@x.org");
    let mut imap = Imap::login(&mut server, "bob");
    for command in ["SELECT INBOX", "STORE 1 +FLAGS.SILENT (\\Deleted)", "EXPUNGE"] {
        imap.ok(command);
    }
    imap.logout();
    assert_deletion_is_counted(&server, "imap");
}

/// Checks that a session of this protocol with a login has deleted a message.
fn assert_deletion_is_counted(server: &Server, protocol: &str) {
    let page = wait_for(server, &format!("restante_connections{{protocol=\"{protocol}\"}}"), 0.0);
    for series in [
        format!("restante_messages_deleted_total{{cause=\"{protocol}\"}}"),
        format!("restante_connections_accepted_total{{protocol=\"{protocol}\"}}"),
        format!("restante_logins_total{{protocol=\"{protocol}\",outcome=\"ok\"}}"),
        format!("restante_sessions_ended_total{{protocol=\"{protocol}\",outcome=\"quit\"}}"),
    ] {
        assert!((page.value(&series) - 1.0).abs() < 1e-9, "{series} is {}", page.value(&series));
    }
}

#[test]
fn refused_connections_and_logins_are_counted() {
    let server = Server::start(&["--smtp-maxconnections", "1", "--smtp-credentials", "ann:secret"]);
    let mut connection = server.connect_smtp();
    connection.expect("220");
    server.connect_smtp().expect("421");
    connection.command("EHLO client.test", "250");
    connection.command("AUTH PLAIN AGFubgB3cm9uZw==", "535");
    connection.command("AUTH PLAIN AGFubgBzZWNyZXQ=", "235");
    let page = scrape(&server);
    for series in [
        "restante_connections_refused_total{protocol=\"smtp\"}",
        "restante_connections_accepted_total{protocol=\"smtp\"}",
        "restante_messages_rejected_total{reason=\"busy\"}",
        "restante_logins_total{protocol=\"smtp\",outcome=\"ok\"}",
        "restante_logins_total{protocol=\"smtp\",outcome=\"failed\"}",
    ] {
        assert!((page.value(series) - 1.0).abs() < 1e-9, "{series} is {}", page.value(series));
    }
}

#[test]
fn tls_handshakes_are_counted() {
    let server = Server::start(&["--smtp-tlsenabled", "--smtp-tlscert=self-signed"]);
    for good in [true, false] {
        let mut connection = LineConnection::new(ClientStream::Plain(connect(server.smtp)));
        connection.expect("220");
        connection.command("EHLO client.test", "250");
        connection.command("STARTTLS", "220");
        if good {
            connection.stream.start_tls();
            connection.command("EHLO client.test", "250");
        } else {
            connection.send("this is not TLS\r\n");
        }
        let outcome = if good { "ok" } else { "failed" };
        let series = format!("restante_tls_handshakes_total{{protocol=\"smtp\",outcome=\"{outcome}\"}}");
        wait_for(&server, &series, 1.0);
    }
}

#[test]
fn relay_metrics_have_the_targets() {
    let server = Server::start(&ALL_METRICS);
    let page = scrape(&server);
    for series in [
        "restante_relay_entries{target=\"main\",state=\"queued\"}",
        "restante_relay_attempts_total{target=\"main\",result=\"deferred\"}",
        "restante_relay_connection_failures_total{target=\"main\"}",
        "restante_relay_paused{target=\"main\"}",
        "restante_relay_loops_total",
        "restante_relay_recipients_not_allowed_total",
    ] {
        assert!(page.value(series).abs() < 1e-9, "{series}");
    }
}

#[test]
fn webhook_labels_have_no_secrets() {
    let urls = "https://ci.test/secret,https://ci.test/secret2,http://qa.test:8080/?secret";
    let server = Server::start(&["--webhook-urls", urls]);
    let text = String::from_utf8(server.bytes("/metrics")).unwrap();
    assert!(!text.contains("secret"), "{text}");
    let page = Exposition::parse(&text);
    for target in ["https://ci.test", "http://qa.test:8080"] {
        let series = format!("restante_webhook_waiting{{target=\"{target}\"}}");
        assert!(page.value(&series).abs() < 1e-9);
    }
}

#[test]
fn clients_cannot_create_labels() {
    let server = Server::start(&["--web-basepath", "/mail"]);
    let mut raw = LineConnection::new(connect(server.http));
    for (request, status) in [("BREW /livez", "405"), ("GET /x/y?z", "404"), ("GET /mail/livez", "200")] {
        raw.send(format!("{request} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        let response = raw.line().unwrap();
        assert!(response.contains(status), "{request}: {response}");
        let mut length = 0;
        while let Some(line) = raw.line().filter(|line| !line.is_empty()) {
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().unwrap();
            }
        }
        raw.exactly(length);
    }
    let page = scrape(&server);
    for series in [
        "{method=\"other\",route=\"/livez\",status=\"405\"}",
        "{method=\"GET\",route=\"other\",status=\"404\"}",
        "{method=\"GET\",route=\"/livez\",status=\"200\"}",
    ] {
        assert!(page.value(&format!("restante_http_requests_total{series}")) > 0.0);
    }
}

#[test]
fn operational_responses_are_at_root_and_base_path_and_not_cached() {
    let server = Server::start(&["--web-basepath", "/mail"]);
    for path in ["/livez", "/readyz", "/metrics", "/debug/vars", "/serve/status"] {
        for url in [server.url(path), server.url(&format!("/mail{path}"))] {
            for response in [ureq::get(&url).call().unwrap(), ureq::head(&url).call().unwrap()] {
                assert_eq!(response.status(), 200, "{url}");
                assert_eq!(response.headers()["cache-control"], "no-store", "{url}");
            }
        }
    }
    for path in ["/debug/vars", "/serve/status"] {
        let mut response = ureq::get(server.url(path)).call().unwrap();
        assert_eq!(response.headers()["content-type"], "application/json; charset=utf-8");
        assert_eq!(response.headers()["expires"], "-1");
        assert!(response.body_mut().read_to_string().unwrap().ends_with("}\n"));
    }
    assert_eq!(server.json("/serve/status")["storage-config"]["retention-period"], "24h0m0s");
}

#[test]
fn dashboard_and_alerts_use_existing_metrics() {
    let server = Server::start(&ALL_METRICS);
    scrape(&server);
    let page = scrape(&server);
    let dashboard: Value = serde_json::from_str(&file("packaging/grafana/restante.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let mut expressions: Vec<String> = targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect();
    assert!(expressions.len() > 30, "{expressions:?}");
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    expressions.extend(variables.iter().filter_map(|variable| variable["definition"].as_str()).map(str::to_owned));
    let rules = file("packaging/prometheus/restante.rules.yml");
    assert!(rules.contains("expr: "));
    expressions.push(rules);

    let mut unused: Vec<&str> = page.families.iter().map(|family| family.name.as_str()).collect();
    for expression in &expressions {
        let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        for name in words.filter(|word| word.starts_with("restante_") || word.starts_with("process_")) {
            assert!(page.has(name), "{name} in {expression}");
            unused.retain(|family| !name.starts_with(family));
        }
    }
    assert_eq!(unused, [] as [&str; 0], "the dashboard does not show these metrics");
}

#[test]
fn manual_lists_all_metrics() {
    let server = Server::start(&ALL_METRICS);
    scrape(&server);
    let mut rows = Vec::new();
    for family in scrape(&server).families {
        let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        rows.push(format!("| `{}` | {} | {} | {} |", family.name, family.kind, labels.join(", "), family.help));
    }
    let manual = file("docs/operations.md");
    let is_metric = |row: &&str| row.starts_with("| `restante_") || row.starts_with("| `process_");
    let mut listed: Vec<&str> = manual.lines().filter(is_metric).collect();
    listed.sort_unstable();
    rows.sort_unstable();
    assert_eq!(listed, rows, "the rows of the table in docs/operations.md");
}
