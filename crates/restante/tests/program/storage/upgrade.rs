//! Data directories and databases of other versions: those of earlier versions are upgraded, those of later and of
//! development versions are refused and not changed. `fixtures/` contains what earlier versions wrote: `data/VERSION`
//! are data directories, `postgres/N.sql` are dumps of databases with version N of the schema. All of them contain the
//! messages of [`fill`].
//!
//! `UPDATE_FIXTURES=1 cargo test -p restante --test program storage::upgrade` adds the fixtures of this version.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use restante_testdir::TestDir;
use restante_testpg::Postgres;
use serde_json::{Value, json};

use crate::support::durability::eventually;
use crate::support::exposition::Exposition;
use crate::support::{Server, command};

/// The settings of all servers. Nothing listens at the targets, so the events and the released message stay queued; and nothing
/// expires, however old a fixture is.
const SETTINGS: [&str; 8] = [
    "--storage-retentionperiod=0",
    "--webhook-private",
    "--webhook-urls=http://127.0.0.1:9/hook",
    "--webhook-giveup=720h",
    "--relay-private",
    "--relay-targets=next smtp://127.0.0.1:9 starttls=never allow=*@x.org",
    "--relay-giveup=720h",
    "--search-enabled=true",
];

/// The schema of the tables in PostgreSQL.
const SCHEMA: &str = "restante";

/// A version that does not exist yet.
const NEWER: u32 = 99;

const ORDER: &str = "From: shop@x.org\r\nTo: ann@x.org\r\nSubject: Your order\r\n\r\nThe parcel is on its way.\r\n";
const GREETINGS: &str =
    "From: zoe@x.org\r\nTo: ann@x.org, bob@x.org\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n\r\nHello.\r\n";
const INVOICE: &str = "From: shop@x.org\r\nTo: bob@x.org\r\nSubject: Invoice\r\nMIME-Version: 1.0\r\n\
    Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nSee the file.\r\n\
    --b\r\nContent-Type: text/csv\r\nContent-Disposition: attachment; filename=invoice.csv\r\n\r\na;1\r\n--b--\r\n";

/// Stores messages by SMTP: a message that is read, one with two recipients, one with an attachment, and one that is deleted.
fn fill(server: &Server) {
    let mut connection = server.connect_smtp();
    connection.expect("220");
    connection.command("HELO client.test", "250");
    let mut send = |recipients: &[&str], mail: &str| {
        connection.command("MAIL FROM:<shop@x.org>", "250");
        for recipient in recipients {
            connection.command(&format!("RCPT TO:<{recipient}>"), "250");
        }
        connection.command("DATA", "354");
        connection.command(&format!("{mail}."), "250");
    };
    send(&["ann@x.org"], ORDER);
    send(&["ann@x.org", "bob@x.org"], GREETINGS);
    send(&["bob@x.org"], INVOICE);
    send(&["bob@x.org"], "Subject: deleted\r\n\r\n");
    connection.command("QUIT", "221");
    let (ann, bob) = (server.ids("ann"), server.ids("bob"));
    ureq::patch(server.url(&format!("/api/v1/mailbox/ann/{}", ann[0]))).send_empty().unwrap();
    ureq::delete(server.url(&format!("/api/v1/mailbox/bob/{}", bob[2]))).call().unwrap();
}

/// Adds tags, and a message in the queue of the relay.
fn fill_queue(server: &Server) {
    let order = &server.ids("ann")[0];
    let json = |body: &Value| serde_json::to_vec(body).unwrap();
    let tags = ureq::patch(server.url(&format!("/api/v2/messages/{order}"))).content_type("application/json");
    tags.send(json(&json!({ "tags": ["kept"] }))).unwrap();
    let release = ureq::post(server.url(&format!("/api/v2/messages/{order}/release"))).content_type("application/json");
    release.send(json(&json!({ "target": "next", "to": ["zoe@x.org"] }))).unwrap();
}

/// Checks that all messages are there as [`fill`] left them.
#[track_caller]
fn assert_filled(server: &Server, fixture: &str) {
    let list = |mailbox: &str| {
        let list = server.json(&format!("/api/v1/mailbox/{mailbox}"));
        let row =
            |message: &Value| (message["subject"].as_str().unwrap().to_owned(), message["seen"].as_bool().unwrap());
        list.as_array().unwrap().iter().map(row).collect::<Vec<_>>()
    };
    let row = |subject: &str, seen| (subject.to_owned(), seen);
    assert_eq!(list("ann"), [row("Your order", true), row("Grüße", false)], "{fixture}");
    assert_eq!(list("bob"), [row("Grüße", false), row("Invoice", false)], "{fixture}");
    for (mailbox, index, mail) in [("ann", 0, ORDER), ("ann", 1, GREETINGS), ("bob", 0, GREETINGS), ("bob", 1, INVOICE)]
    {
        let id = &server.ids(mailbox)[index];
        let source = String::from_utf8(server.bytes(&format!("/api/v1/mailbox/{mailbox}/{id}/source"))).unwrap();
        assert!(source.ends_with(mail), "{fixture}: {source}");
    }
    let messages = filled_messages(server);
    let column = |name: &str| messages.iter().map(|message| message[name].clone()).collect();
    let [subjects, attachments, mailboxes]: [Vec<Value>; 3] = ["subject", "attachments", "mailboxes"].map(column);
    assert_eq!(subjects, ["Invoice", "Grüße", "Your order"], "{fixture}");
    assert_eq!(attachments, [1, 0, 0], "{fixture}");
    assert_eq!(mailboxes, [json!(["bob"]), json!(["ann", "bob"]), json!(["ann"])], "{fixture}");
    eventually(&format!("{fixture}: the search does not find the message"), || {
        let found = server.json("/api/v2/search?q=parcel");
        found["messages"].as_array().is_some_and(|found| found.len() == 1)
    });
}

/// Returns the messages of all mailboxes, the newest first, without those of [`assert_writable`].
fn filled_messages(server: &Server) -> Vec<Value> {
    let list = server.json("/api/v2/messages");
    let messages = list["messages"].as_array().unwrap().iter();
    messages.filter(|message| message["mailboxes"] != json!(["new"])).cloned().collect()
}

/// Checks the tags and the queue of [`fill_queue`].
#[track_caller]
fn assert_queue_filled(server: &Server, fixture: &str) {
    let order = server.json(&format!("/api/v2/messages/{}", server.ids("ann")[0]));
    assert_eq!(order["tags"], json!(["kept"]), "{fixture}");
    let queue = server.json("/api/v2/relay/entries");
    let entries = queue["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 1, "{fixture}: {queue}");
    assert_eq!((&entries[0]["message"], &entries[0]["target"]), (&order["id"], &json!("next")), "{fixture}");
}

/// Checks that messages can be stored.
fn assert_writable(server: &Server) {
    let before = server.count("new");
    server.deliver("new@x.org", b"Subject: new\r\n\r\n");
    assert_eq!(server.count("new"), before + 1);
}

fn fixtures(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/storage/fixtures").join(kind)
}

/// Returns the names in a directory of fixtures.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn start_on(data: &Path) -> Server {
    Server::start(&[&SETTINGS[..], &["--data", data.to_str().unwrap()]].concat())
}

fn stop(mut server: Server) {
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(0), "{}", server.full_log());
}

/// Runs a server that is expected to exit at once. Returns its exit code and log.
fn run_refused(arguments: &[&str]) -> (Option<i32>, String) {
    let output = command().args(SETTINGS).args(arguments).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// Returns all files below a directory with their contents. The lock file is left out: a server that is refused creates it.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(contents(&path));
        } else if !path.ends_with("lock") {
            files.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    files
}

fn copy(from: &Path, to: &Path) {
    for (path, content) in contents(from) {
        let target = to.join(path.strip_prefix(from).unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::write(target, content).unwrap();
    }
}

/// Returns the SQLite files of a data directory.
fn databases(data: &Path) -> Vec<PathBuf> {
    contents(data).into_keys().filter(|path| path.extension().is_some_and(|extension| extension == "db")).collect()
}

/// The positions of the version and of the application id in the header of an SQLite file.
const VERSION_FIELD: Range<usize> = 60..64;
const APPLICATION_ID_FIELD: Range<usize> = 68..72;

fn schema_version(database: &Path) -> u32 {
    let header: [u8; 4] = fs::read(database).unwrap()[VERSION_FIELD].try_into().unwrap();
    u32::from_be_bytes(header)
}

fn set_header_field(database: &Path, field: Range<usize>, value: u32) {
    let mut content = fs::read(database).unwrap();
    content[field].copy_from_slice(&value.to_be_bytes());
    fs::write(database, content).unwrap();
}

/// Returns the name and version of each SQLite file of a data directory.
fn schema_versions(data: &Path) -> BTreeSet<(String, u32)> {
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    databases(data).iter().map(|path| (name(path), schema_version(path))).collect()
}

fn updates_fixtures() -> bool {
    std::env::var_os("UPDATE_FIXTURES").is_some()
}

/// Creates a data directory of this version with messages.
fn create_data_directory(data: &Path) {
    let server = start_on(data);
    fill(&server);
    fill_queue(&server);
    eventually("no webhook event is queued", || waiting_events(&server) >= 5.0);
    stop(server);
}

#[test]
fn fixture_of_the_current_data_directory_exists() {
    let dir = TestDir::new();
    let data = dir.path().join("data");
    create_data_directory(&data);
    let target = fixtures("data").join(env!("CARGO_PKG_VERSION"));
    if updates_fixtures() {
        // The directory may not exist.
        let _ = fs::remove_dir_all(&target);
        copy(&data, &target);
    }
    let known: BTreeSet<_> =
        names(&fixtures("data")).iter().flat_map(|name| schema_versions(&fixtures("data").join(name))).collect();
    let missing: Vec<_> = schema_versions(&data).difference(&known).cloned().collect();
    assert!(missing.is_empty(), "no fixture has {missing:?}; add one with UPDATE_FIXTURES=1");
}

/// Returns the number of events that wait for the webhook or were given up.
fn waiting_events(server: &Server) -> f64 {
    let metrics = Exposition::parse(&String::from_utf8(server.bytes("/metrics")).unwrap());
    let target = r#"target="http://127.0.0.1:9""#;
    metrics.value(&format!("restante_webhook_waiting{{{target}}}"))
        + metrics.value(&format!(r#"restante_webhook_deliveries_total{{{target},outcome="failed"}}"#))
}

#[test]
fn data_directories_of_earlier_versions_are_upgraded() {
    for name in names(&fixtures("data")) {
        let fixture = fixtures("data").join(&name);
        let dir = TestDir::new();
        let data = dir.path().join("data");
        copy(&fixture, &data);
        for _ in ["upgrade", "restart"] {
            let server = start_on(&data);
            assert_filled(&server, &name);
            assert_queue_filled(&server, &name);
            let sessions = server.json("/api/v2/sessions");
            let clients: Vec<&Value> =
                sessions["sessions"].as_array().unwrap().iter().map(|row| &row["helo"]).collect();
            assert!(clients.contains(&&json!("client.test")), "{name}: {sessions}");
            eventually(&format!("{name}: events are missing"), || waiting_events(&server) >= 5.0);
            assert_writable(&server);
            stop(server);
        }
    }
}

#[test]
fn data_directory_of_a_later_version_is_refused_and_not_changed() {
    let dir = TestDir::new();
    let data = dir.path().join("data");
    create_data_directory(&data);
    let current = schema_version(&data.join("restante.db"));
    for database in databases(&data) {
        set_header_field(&database, VERSION_FIELD, NEWER);
    }
    let before = contents(&data);
    let path = data.to_str().unwrap();
    let (code, log) = run_refused(&["--data", path]);
    assert_eq!(code, Some(2), "a retry does not help: {log}");
    for fact in [path, &NEWER.to_string(), &current.to_string(), "later version"] {
        assert!(log.contains(fact), "{fact} is not in: {log}");
    }
    assert!(contents(&data) == before, "files were changed: {:?}", names(&data));
}

/// The databases of messages had another application id and the versions 1 to 3.
#[test]
fn data_directory_of_a_development_version_is_refused_and_not_changed() {
    let dir = TestDir::new();
    let data = dir.path().join("data");
    create_data_directory(&data);
    let (database, path) = (data.join("restante.db"), data.to_str().unwrap());
    set_header_field(&database, APPLICATION_ID_FIELD, u32::from_be_bytes(*b"rmai"));
    let assert_refused = |text: &str| {
        for fact in [path, "development version of Restante before 0.1.0", "`restante export`", "`restante import`"] {
            assert!(text.contains(fact), "{fact} is not in: {text}");
        }
    };
    for version in 1..=3 {
        set_header_field(&database, VERSION_FIELD, version);
        let before = contents(&data);
        let (code, log) = run_refused(&["--data", path]);
        assert_eq!(code, Some(2), "a retry does not help: {log}");
        assert_refused(&log);
        assert!(contents(&data) == before, "files were changed: {:?}", names(&data));
    }
    let before = fs::read(&database).unwrap();
    let exported = command().args(["export", "--data", path, dir.path().join("backup").to_str().unwrap()]).output();
    assert_refused(&String::from_utf8(exported.unwrap().stderr).unwrap());
    assert!(fs::read(&database).unwrap() == before, "the database was changed");
}

#[test]
fn relay_queue_of_a_later_version_is_kept_under_another_name() {
    let dir = TestDir::new();
    let data = dir.path().join("data");
    create_data_directory(&data);
    let queue = data.join("relay.db");
    set_header_field(&queue, VERSION_FIELD, NEWER);
    let before = fs::read(&queue).unwrap();
    let mut server = start_on(&data);
    server.wait_for_log("relay.db.unusable-");
    assert_filled(&server, "with a later queue");
    let renamed = names(&data).into_iter().find(|name| name.starts_with("relay.db.unusable-")).unwrap();
    assert!(fs::read(data.join(renamed)).unwrap() == before, "the file was changed");
}

#[test]
fn databases_of_earlier_versions_are_upgraded() {
    let Some(postgres) = Postgres::shared() else { return };
    let directory = fixtures("postgres");
    for name in names(&directory) {
        let version = name.strip_suffix(".sql").unwrap();
        let database = format!("upgrade_from_{version}");
        let url = postgres.create_database(&database);
        postgres.run_sql(&database, &fs::read_to_string(directory.join(&name)).unwrap());
        for _ in ["upgrade", "restart"] {
            let server = Server::start(&[&SETTINGS[..], &["--storage-url", &url]].concat());
            assert_filled(&server, &name);
            assert_queue_filled(&server, &name);
            assert_writable(&server);
            stop(server);
        }
    }
}

#[test]
fn fixture_of_the_current_database_exists() {
    let Some(postgres) = Postgres::shared() else { return };
    let url = postgres.create_database("current");
    let server = Server::start(&[&SETTINGS[..], &["--storage-url", &url]].concat());
    fill(&server);
    fill_queue(&server);
    stop(server);
    let version = postgres.run_sql("current", &format!("SELECT max(version) FROM {SCHEMA}.schema_versions"));
    let target = fixtures("postgres").join(format!("{}.sql", version.trim()));
    if updates_fixtures() {
        fs::write(&target, postgres.dump("current", SCHEMA)).unwrap();
    }
    assert!(target.exists(), "there is no {}; add it with UPDATE_FIXTURES=1", target.display());
}

#[test]
fn database_of_a_later_version_is_refused_and_not_changed() {
    let Some(postgres) = Postgres::shared() else { return };
    let url = postgres.create_database("later");
    stop(Server::start(&[&SETTINGS[..], &["--storage-url", &url]].concat()));
    let current = postgres.run_sql("later", &format!("SELECT max(version) FROM {SCHEMA}.schema_versions"));
    postgres.run_sql("later", &format!("INSERT INTO {SCHEMA}.schema_versions VALUES ({NEWER}, {NEWER})"));
    let before = postgres.dump("later", SCHEMA);
    let (code, log) = run_refused(&["--storage-url", &url]);
    assert_eq!(code, Some(2), "a retry does not help: {log}");
    let address = format!("127.0.0.1:{}/later", postgres.port());
    for fact in [&*address, &format!("{NEWER}"), current.trim()] {
        assert!(log.contains(fact), "{fact} is not in: {log}");
    }
    assert_eq!(postgres.dump("later", SCHEMA), before);
}

/// The table of versions had another name.
#[test]
fn database_of_a_development_version_is_refused_and_not_changed() {
    let Some(postgres) = Postgres::shared() else { return };
    let url = postgres.create_database("development");
    let tables = format!(
        "CREATE SCHEMA {SCHEMA}; CREATE TABLE {SCHEMA}.version (version int PRIMARY KEY, oldest int NOT NULL);
         INSERT INTO {SCHEMA}.version VALUES (1, 1), (2, 1), (3, 1), (4, 4), (5, 4)"
    );
    postgres.run_sql("development", &tables);
    let before = postgres.dump("development", SCHEMA);
    let (code, log) = run_refused(&["--storage-url", &url]);
    assert_eq!(code, Some(2), "a retry does not help: {log}");
    let address = format!("127.0.0.1:{}/development", postgres.port());
    for fact in [&*address, "development version of Restante before 0.1.0", "`restante export`", "`restante import`"] {
        assert!(log.contains(fact), "{fact} is not in: {log}");
    }
    assert_eq!(postgres.dump("development", SCHEMA), before);
}
