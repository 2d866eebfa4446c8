//! Tests of the `database` command against a real PostgreSQL, if there is one.

use restante_testpg::Postgres;
use tokio_postgres::NoTls;

use crate::{bench, errors, rows};

#[test]
fn counts_rows_and_drops_the_schema() {
    let Some(server) = Postgres::shared() else { return };
    let options = "--seconds 0 --rounds 2 --connections 3 --batch 7 --size 2000 --mailboxes 4";
    let output = bench(&format!("database --url {} {options}", server.url()));
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    let rows = rows(&output);
    assert_eq!(rows.len(), 3, "two rounds and their median");
    for (round, row) in (1..).zip(&rows[..2]) {
        assert_eq!(
            (&row["round"], &row["mails"]),
            (&round.into(), &(3 * 7).into()),
            "a batch of each connection: {row}"
        );
        assert!(row["per_s"].as_u64() > Some(0) && row["p50_us"].as_u64() <= row["max_us"].as_u64(), "{row}");
    }
    assert!(rows[2]["raw"].as_u64() > Some(0), "{}", rows[2]);
    assert_eq!(count(&server.url(), "SELECT count(*) FROM pg_namespace WHERE nspname = 'restante_bench'"), 0);
}

/// Runs a query that returns a number.
fn count(url: &str, query: &str) -> i64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("the server runs");
        tokio::spawn(connection);
        client.query_one(query, &[]).await.expect("a valid query").get(0)
    })
}

#[test]
fn unreachable_database_is_an_error() {
    for (url, message) in [
        ("postgres://u@127.0.0.1:1/mail", "the database: error connecting to server: "),
        ("postgres://u@127.0.0.1:port/mail", "the database: invalid connection string: "),
    ] {
        let output = bench(&format!("database --url {url}"));
        assert_eq!(output.status.code(), Some(2));
        assert!(errors(&output).contains(message), "{}", errors(&output));
    }
}
