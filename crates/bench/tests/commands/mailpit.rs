//! The `mailpit` command.

use super::*;

#[test]
fn mailpit_compares_servers() {
    let servers = [FakeServer::start(Behavior::Honest), FakeServer::start(Behavior::Honest)];
    let addresses = servers.each_ref().map(|server| format!("--smtp {} --http http://{}", server.smtp, server.http));
    let load = "--messages 30 --size 2000 --connections 2 --seconds 0";
    let output = bench(&format!("mailpit {} {load}", addresses.join(" ")));
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    let rows = rows(&output);
    let kinds: Vec<_> = rows.iter().map(|row| row["what"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["list", "list", "get", "get", "search", "search"]);
    for (number, row) in rows.iter().enumerate() {
        assert_eq!((&row["stored"], &row["errors"]), (&30.into(), &0.into()));
        assert_eq!(row["server"], format!("http://{}", servers[number % 2].http));
        let ratio = row["ratio"].as_f64().unwrap();
        assert!(if number % 2 == 0 { (ratio - 1.0).abs() < 0.001 } else { ratio > 0.0 }, "{row}");
    }
    assert_eq!(rows[2]["bytes_per_body"], 2000);
    assert_eq!(servers.map(|server| server.stored("bench")), [30, 30]);
}

#[test]
fn mailpit_reads_existing_messages_of_one_server() {
    let server = FakeServer::start(Behavior::Honest);
    let empty = bench(&format!("mailpit --http http://{}", server.http));
    assert_eq!(empty.status.code(), Some(2));
    assert!(errors(&empty).contains("has no messages: use --smtp to send some"), "{}", errors(&empty));
    bench(&format!("smtp --smtp {} --messages 3", server.smtp));
    let output = bench(&format!("mailpit --http http://{} --what get --connections 1 --seconds 0", server.http));
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    let rows = rows(&output);
    assert_eq!((rows.len(), &rows[0]["stored"], rows[0].get("ratio")), (1, &3.into(), None));
}

#[test]
fn mailpit_needs_an_smtp_server_for_each_web_server() {
    let output = bench("mailpit --http http://127.0.0.1:1 --http http://127.0.0.1:2 --smtp 127.0.0.1:3");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        errors(&output).contains("--smtp and --pid are required for every --http or for none"),
        "{}",
        errors(&output)
    );
}
