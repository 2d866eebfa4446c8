//! Databases of a server that tests fill with SQL and dump, with the programs `psql` and `pg_dump`.

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::Postgres;

impl Postgres {
    /// Creates an empty database. Returns its URL for clients.
    pub fn create_database(&self, name: &str) -> String {
        self.run_sql("postgres", &format!("CREATE DATABASE {name}"));
        format!("postgres://restante@127.0.0.1:{}/{name}", self.port())
    }

    /// Runs SQL statements in a database, and returns the rows: one per line, with `|` between the values.
    pub fn run_sql(&self, database: &str, sql: &str) -> String {
        let mut command = self.client("psql", database);
        command.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1"]);
        let mut client = command.stdin(Stdio::piped()).spawn().expect("psql starts");
        // If psql ends before it has read everything, its error message says why.
        let _ = client.stdin.take().expect("its input is a pipe").write_all(sql.as_bytes());
        output(client)
    }

    /// Returns a schema with its contents as SQL statements that every supported version of PostgreSQL can run.
    pub fn dump(&self, database: &str, schema: &str) -> String {
        let mut command = self.client("pg_dump", database);
        command.args(["--no-owner", "--no-privileges", "--inserts", "--schema", schema]);
        let dump = output(command.stdin(Stdio::null()).spawn().expect("pg_dump starts"));
        // Comments name versions; other settings can be unknown to earlier versions; `\restrict` has a random key.
        let is_needed = |line: &&str| !["--", "SET ", "\\"].iter().any(|start| line.starts_with(start));
        let lines = dump.lines().filter(is_needed);
        // Functions may refer to tables that are created later.
        lines.fold("SET check_function_bodies = false;\n\n".to_owned(), |text, line| {
            if line.is_empty() && text.ends_with("\n\n") { text } else { text + line + "\n" }
        })
    }

    fn client(&self, program: &str, database: &str) -> Command {
        let mut command = Command::new(self.installation.program(program));
        command.args(["--host=127.0.0.1", "--username=restante", "--no-password"]);
        command.arg(format!("--port={}", self.port())).args(["--dbname", database]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

fn output(client: std::process::Child) -> String {
    let output = client.wait_with_output().expect("the program ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("the output is UTF-8")
}
