//! Tests of export and import together, with memory stores and folders on disk: exported messages are imported
//! unchanged.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::{Timestamp, ToSpan as _};
use proptest::prelude::*;
use restante_mail::details::Details;
use restante_mail::message::{Flags, Headline, Summary};
use restante_mail::naming::{MailboxName, Naming};
use restante_mail::tags::Tags;
use restante_store::memory::MemoryStore;
use restante_store::{Limits, MailboxPage, NewCopy, NewMessage, Page, Store};
use restante_testdir::TestDir;
use tokio::sync::watch;

use super::console::Console;
use super::export::{self, ExportCounts};
use super::file_walker::FileWalker;
use super::import::{self, ImportOptions, ImportOutcome};
use super::request::{ExportFormat, ExportRequest, ImportFormat, ImportRequest};
use super::{message_reader, output};

const LIMIT: usize = 100_000;

/// A temporary folder that is removed when it is dropped.
struct TestFolder(TestDir);

impl TestFolder {
    fn new() -> Self {
        Self(TestDir::new())
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file, and creates its folders.
    fn file(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

fn store() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(Limits::default()))
}

fn silent_console() -> Console {
    Console::new(Box::new(std::io::sink()), false)
}

async fn export_to(store: &dyn Store, format: Option<ExportFormat>, mailboxes: &[&str], out: PathBuf) -> ExportCounts {
    let names: Vec<MailboxName> = mailboxes.iter().map(|name| (*name).to_owned().into()).collect();
    let mut output = output::open(&ExportRequest { format, mailboxes: Vec::new(), out }).unwrap();
    export::export(store, &names, &mut *output, &mut silent_console(), &watch::channel(false).1).await.unwrap()
}

/// Imports files. Returns the result and the number of problems.
async fn import_from(store: &Arc<dyn Store>, naming: Naming, request: ImportRequest) -> (ImportOutcome, u64) {
    let mailbox = request.mailbox.map(|name| naming.parse_mailbox(&name).unwrap());
    let options = ImportOptions { naming, mailbox, received_now: request.received_now, retention: None, total: 0 };
    let walker = FileWalker::new(request.format, &request.paths);
    let events = message_reader::spawn_reader(walker, request.tenant, LIMIT);
    let mut console = silent_console();
    let (_sender, stop) = watch::channel(false);
    let imported = import::import(store, &options, events, &mut console, stop).await;
    (imported, console.problem_count())
}

fn import_everything(path: &Path) -> ImportRequest {
    ImportRequest {
        format: ImportFormat::Auto,
        mailbox: None,
        tenant: None,
        received_now: false,
        from: Vec::new(),
        paths: vec![path.to_owned()],
    }
}

/// Returns all messages of a mailbox with their sources.
async fn stored_messages(store: &dyn Store, mailbox: &str) -> Vec<(Summary, String)> {
    let mailbox = MailboxName::from(mailbox.to_owned());
    let mut stored = Vec::new();
    for summary in store.list(&mailbox, Page::ALL).await.unwrap().messages {
        let source = store.source(&mailbox, summary.id).await.unwrap().unwrap().to_bytes();
        stored.push((summary, String::from_utf8(source.to_vec()).unwrap()));
    }
    stored
}

/// Returns the names of all mailboxes.
async fn mailboxes(store: &dyn Store) -> Vec<MailboxName> {
    store.mailboxes(MailboxPage::ALL).await.unwrap().into_iter().map(|mailbox| mailbox.name).collect()
}

/// Returns the sources of a mailbox.
async fn sources(store: &dyn Store, mailbox: &str) -> Vec<String> {
    stored_messages(store, mailbox).await.into_iter().map(|(_, source)| source).collect()
}

/// Returns a time in the past.
fn noon() -> Timestamp {
    "2026-01-15T12:00:00Z".parse().unwrap()
}

fn trace(mailbox: &str) -> String {
    format!(
        "Return-Path: <ann@x.org>\r\nReceived: from a ([::1]) by mx\r\n  for <{mailbox}>; Thu, 15 Jan 2026 12:00:00 +0000\r\n"
    )
}

/// A message to deliver.
#[derive(Debug, Clone)]
struct TestMessage {
    mailbox: String,
    trace: bool,
    body: String,
    seen: bool,
    micros: i32,
}

fn any_message() -> impl Strategy<Value = TestMessage> {
    let mailbox =
        prop::sample::select(vec!["bob", "a/b", "cur", "new", "tmp", "j\u{f6}ran", "bob@x.org", "100%", "x.eml"]);
    let body = "((>|>>)?From |Subject: |)[ -~\u{e9}]{0,20}(\r\n|\n|\r)?([ -~]{0,10}\r\n){0,3}[ -~]{0,3}";
    (mailbox, any::<bool>(), body, any::<bool>(), 0..1_000_000_i32).prop_map(|(mailbox, trace, body, seen, micros)| {
        TestMessage { mailbox: mailbox.to_owned(), trace, body: format!("{body}."), seen, micros }
    })
}

async fn deliver(store: &dyn Store, message: &TestMessage) {
    let mailbox = MailboxName::from(message.mailbox.clone());
    let trace = if message.trace { trace(mailbox.without_project()) } else { String::new() };
    let new_message = NewMessage {
        received: noon() + i64::from(message.micros).microseconds(),
        headline: Headline::new("<ann@x.org>", ["<bob>"], ""),
        body: message.body.clone().into(),
        copies: vec![NewCopy {
            mailbox,
            seen: message.seen,
            flags: Flags::default(),
            tags: Tags::default(),
            details: Details::default(),
            trace: Some(trace.into()),
        }],
    };
    store.append(new_message).await.unwrap();
}

async fn export_and_import(messages: &[TestMessage], format: ExportFormat) -> (Arc<dyn Store>, Arc<dyn Store>) {
    let (first, second, folder) = (store(), store(), TestFolder::new());
    for message in messages {
        deliver(&*first, message).await;
    }
    let exported = export_to(&*first, Some(format), &[], folder.join("out")).await;
    let (imported, problems) = import_from(&second, Naming::Full, import_everything(&folder.join("out"))).await;
    assert_eq!((exported.messages, imported.messages, problems), (messages.len() as u64, messages.len() as u64, 0));
    (first, second)
}

/// Each case writes folders, so the default number of cases is low.
fn proptest_config() -> ProptestConfig {
    let default = ProptestConfig::default();
    if std::env::var_os("PROPTEST_CASES").is_some() { default } else { ProptestConfig { cases: 16, ..default } }
}

proptest! {
    #![proptest_config(proptest_config())]

    #[test]
    fn exported_messages_are_imported_unchanged(messages in prop::collection::vec(any_message(), 0..12)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            for format in [ExportFormat::Maildir, ExportFormat::Eml] {
                let (first, second) = export_and_import(&messages, format).await;
                prop_assert_eq!(mailboxes(&*first).await, mailboxes(&*second).await);
                for mailbox in mailboxes(&*first).await {
                    let (before, after) = (stored_messages(&*first, mailbox.as_str()).await, stored_messages(&*second, mailbox.as_str()).await);
                    prop_assert_eq!(before.len(), after.len());
                    for ((before, source), (after, imported_source)) in before.into_iter().zip(after) {
                        prop_assert_eq!(source, imported_source);
                        prop_assert_eq!(before.received, after.received);
                        prop_assert!(format == ExportFormat::Eml || before.seen == after.seen);
                    }
                }
            }
            Ok(())
        })?;
    }
}

#[tokio::test]
async fn exports_all_mailboxes_to_one_mbox() {
    let (first, second, folder) = (store(), store(), TestFolder::new());
    for (mailbox, text) in [("bob", "one"), ("ann", "two"), ("bob", "From three")] {
        let body = format!("Subject: {text}\r\n\r\n{text}\r\n");
        let message = TestMessage { mailbox: mailbox.to_owned(), trace: true, body, seen: false, micros: 0 };
        deliver(&*first, &message).await;
    }
    let out = folder.join("all.mbox");
    let exported = export_to(&*first, None, &[], out.clone()).await;
    assert_eq!((exported.mailboxes, exported.messages), (2, 3));
    assert!(fs::read_to_string(&out).unwrap().starts_with("From ann@x.org Thu Jan 15 12:00:00 2026\nReturn-Path: "));
    assert!(!folder.join("all.mbox.part").exists());
    import_from(&second, Naming::Local, import_everything(&out)).await;
    for mailbox in ["bob", "ann"] {
        assert_eq!(sources(&*first, mailbox).await, sources(&*second, mailbox).await);
    }
    let first = &stored_messages(&*second, "bob").await[0].0;
    assert_eq!((first.received, first.headline.subject()), (noon(), "one"));
}

#[tokio::test]
async fn exports_an_mbox_per_mailbox() {
    let (first, folder) = (store(), TestFolder::new());
    for mailbox in ["a/b", "bob", "carl"] {
        let message =
            TestMessage { mailbox: mailbox.to_owned(), trace: true, body: "x".to_owned(), seen: false, micros: 0 };
        deliver(&*first, &message).await;
    }
    let exported = export_to(&*first, Some(ExportFormat::Mbox), &["a/b", "carl"], folder.join("out")).await;
    assert_eq!(exported.mailboxes, 2);
    let mut names: Vec<_> = fs::read_dir(folder.join("out")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["a%2Fb.mbox", "carl.mbox"]);
}

#[tokio::test]
async fn messages_keep_their_project_and_folder() {
    let mailboxes_before = ["acme:bob@x.org", "bob@x.org", "bob@x.org,Sent/ä b", "shop:a/b", "shop:bob@x.org,Sent"];
    let messages = mailboxes_before.map(|mailbox| TestMessage {
        mailbox: mailbox.to_owned(),
        trace: true,
        body: format!("Subject: {mailbox}\r\n\r\nx\r\n"),
        seen: false,
        micros: 0,
    });
    for format in [ExportFormat::Maildir, ExportFormat::Eml, ExportFormat::Mbox] {
        let (first, second) = export_and_import(&messages, format).await;
        assert_eq!(mailboxes(&*second).await, mailboxes_before.map(|name| name.to_owned().into()), "{format:?}");
        for mailbox in mailboxes_before {
            assert_eq!(sources(&*first, mailbox).await, sources(&*second, mailbox).await, "{format:?}");
        }
    }
}

#[tokio::test]
async fn selects_the_mailbox_of_a_message() {
    let table: &[(&str, &str, &str)] = &[
        // The name of a Maildir takes precedence over the trace of a message, which may have been moved there.
        ("Bob+old/cur/1.a:2,S", "ann", "bob"),
        ("Bob/new/1.a", "", "bob"),
        ("Bob/.Sent/cur/1.a", "", "bob"),
        ("Bob/Sent/cur/1.a", "ann", "bob"),
        ("Bob/Sent/Old/new/1.a", "", "bob"),
        ("Bob/1.eml", "ann", "ann"),
        ("Bob/1.eml", "", "bob"),
        ("a%2Fb/1.eml", "", "a/b"),
        ("shop%3Abob/1.eml", "Bob+x@x.org", "shop:bob"),
        ("shop%3Abob/1.eml", "ann", "ann"),
        ("shop%3Abob/1.eml", "", "shop:bob"),
        ("mail/81f/81fe8b/81fe8bfe87576c3ecb22426f8e57847382917acf/20260115T120000-0000.raw", "Bob+x@X.org", "bob"),
        ("shop%3Abob%2CSent/1.eml", "ann", "shop:bob,Sent"),
        ("no mailbox/1.eml", "", ""),
        ("81fe8bfe87576c3ecb22426f8e57847382917acf/1.raw", "", ""),
    ];
    for (file, delivered_to, expected) in table {
        let (folder, store) = (TestFolder::new(), store());
        let source = if delivered_to.is_empty() { "X: y\r\n\r\n".to_owned() } else { trace(delivered_to) };
        let maildir = file.split_once("/cur/").or(file.split_once("/new/")).map_or("x", |(maildir, _)| maildir);
        for name in [maildir, maildir.split('/').next().unwrap()] {
            fs::create_dir_all(folder.join(name).join("cur")).unwrap();
            fs::create_dir_all(folder.join(name).join("new")).unwrap();
        }
        folder.file(file, &source);
        let (imported, problems) = import_from(&store, Naming::Local, import_everything(folder.0.path())).await;
        let mailboxes = mailboxes(&*store).await;
        let mailbox = mailboxes.first().map_or("", MailboxName::as_str);
        assert_eq!((mailbox, imported.messages + problems), (*expected, 1), "{file} for <{delivered_to}>");
        if !mailbox.is_empty() {
            let (summary, imported_source) = stored_messages(&*store, mailbox).await.remove(0);
            assert_eq!((summary.seen, imported_source), (file.ends_with('S'), source));
        }
    }
}

/// All files of a Maildir are imported or at least counted: the numbers depend on the format.
#[tokio::test]
async fn imports_other_files_of_a_maildir_by_format() {
    let files: &[(&str, &str)] = &[
        ("Mail/cur/1.a:2,S", "one"),
        ("Mail/new/2.a", "two"),
        ("Mail/new/inside/3.eml", "three"),
        ("Mail/tmp/4.a", "never delivered"),
        ("Mail/loose.eml", "five"),
        ("Mail/dovecot-uidlist", "3 V1"),
        ("Mail/.hidden", "not a message"),
        ("Mail/Sent/cur/6.a:2,", "six"),
        ("Mail/Sent/new/7.a", "seven"),
        ("Mail/.Trash/cur/8.a:2,", "eight"),
        ("Mail/.Trash/new/9.a", "nine"),
        ("Mail/plain/10.eml", "ten"),
        ("Mail/plain/notes.txt", "not a message"),
    ];
    let table = [
        (ImportFormat::Auto, (9, 3, 0)),
        (ImportFormat::Maildir, (6, 6, 0)),
        (ImportFormat::Eml, (11, 1, 0)),
        (ImportFormat::Inbucket, (0, 12, 0)),
        (ImportFormat::Mbox, (0, 0, 12)),
    ];
    for (format, expected) in table {
        let (folder, store) = (TestFolder::new(), store());
        for (file, content) in files {
            folder.file(file, content);
        }
        let (imported, problems) =
            import_from(&store, Naming::Local, ImportRequest { format, ..import_everything(folder.0.path()) }).await;
        assert_eq!((imported.messages, imported.ignored, problems), expected, "{format:?}");
        assert_eq!(sources(&*store, "mail").await.len() as u64, imported.messages, "{format:?}");
    }
}

/// The name of a pipe, as in `import <(cat Inbox)`, does not name a mailbox.
#[tokio::test]
async fn name_of_a_pipe_is_not_a_mailbox() {
    let (folder, store) = (TestFolder::new(), store());
    let path = folder.join("63");
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    for (mailbox, expected) in [(None, (0, 1)), (Some("bob".to_owned()), (1, 0))] {
        let writer = std::thread::spawn({
            let path = path.clone();
            move || fs::write(path, "From a Thu Jan 15 12:00:00 2026\nX: y\n\n").unwrap()
        });
        let (imported, problems) =
            import_from(&store, Naming::Local, ImportRequest { mailbox, ..import_everything(&path) }).await;
        assert_eq!((imported.messages, problems), expected);
        writer.join().unwrap();
    }
    assert_eq!(mailboxes(&*store).await, ["bob".to_owned().into()]);
}

#[tokio::test]
async fn imports_single_files() {
    let mbox = "From a Thu Jan 15 12:00:00 2026\nX: y\n\n";
    let table: &[(&str, &str, &str)] = &[
        ("bob.mbox", mbox, "bob"),
        ("first.last", mbox, "first.last"),
        ("bob", mbox, "bob"),
        ("bob", "X: y\r\n\r\n", ""),
        ("bob.eml", "X: y\r\n\r\n", ""),
        ("bob.eml", &trace("ann"), "ann"),
        ("empty.eml", "", ""),
        ("nothing.mbox", "From a\n\n", ""),
    ];
    for (file, content, expected) in table {
        let (folder, store) = (TestFolder::new(), store());
        folder.file(file, content);
        let (imported, problems) = import_from(&store, Naming::Local, import_everything(&folder.join(file))).await;
        let mailboxes = mailboxes(&*store).await;
        assert_eq!(mailboxes.first().map_or("", MailboxName::as_str), *expected, "{file}");
        assert_eq!(imported.messages + problems, 1, "{file}");
    }
}

#[tokio::test]
async fn ignores_or_reports_other_files() {
    let (folder, store) = (TestFolder::new(), store());
    folder.file("bob/1.eml", "X: 1\r\n\r\n");
    folder.file("bob/2.eml", "");
    folder.file("bob/3.eml", "x".repeat(LIMIT + 1));
    folder.file("bob/notes.txt", "not a message");
    folder.file("bob/index.gob", "expected");
    folder.file("bob/.4.part", "half a message");
    folder.file("broken.mbox", "X: this is not an mbox\n");
    std::os::unix::fs::symlink("/", folder.join("loop")).unwrap();
    let (imported, problems) = import_from(&store, Naming::Local, import_everything(folder.0.path())).await;
    assert_eq!((imported.messages, imported.ignored, problems), (1, 1, 4));
    let missing = import_everything(&folder.join("nowhere"));
    let (imported, problems) = import_from(&store, Naming::Local, missing).await;
    assert_eq!((imported.messages, problems), (0, 1));
}

#[tokio::test]
async fn options_take_precedence() {
    let (folder, store) = (TestFolder::new(), store());
    folder.file("1.eml", trace("ann") + "\r\nhello\r\n");
    let before = Timestamp::now();
    let request = ImportRequest {
        mailbox: Some("Carl@x.org".to_owned()),
        received_now: true,
        ..import_everything(folder.0.path())
    };
    import_from(&store, Naming::Full, request).await;
    let (summary, source) = stored_messages(&*store, "carl@x.org").await.remove(0);
    assert!(summary.received >= before);
    assert_eq!(source, trace("ann") + "\r\nhello\r\n");
    // Values that are missing in the header are taken from the envelope.
    assert_eq!(summary.headline.from(), "<ann@x.org>");
    assert_eq!(summary.headline.to().collect::<Vec<_>>(), ["<carl@x.org>"]);
}

#[tokio::test]
async fn limits_received_time_to_now() {
    let (folder, store) = (TestFolder::new(), store());
    folder.file("1.eml", trace("bob").replace("2026", "9999"));
    import_from(&store, Naming::Local, import_everything(folder.0.path())).await;
    assert!(stored_messages(&*store, "bob").await[0].0.received <= Timestamp::now());
}

#[tokio::test]
async fn keeps_the_order_of_many_messages() {
    let (folder, store) = (TestFolder::new(), store());
    let numbers: Vec<String> = (1..=300).map(|number| format!("X: {number}\r\n\r\n")).collect();
    for (number, message) in numbers.iter().enumerate() {
        folder.file(&format!("bob/{number}.eml"), message);
    }
    import_from(&store, Naming::Local, import_everything(folder.0.path())).await;
    assert_eq!(sources(&*store, "bob").await, numbers);
}

#[tokio::test]
async fn stopped_import_reports_stored_messages() {
    let (folder, store) = (TestFolder::new(), store());
    folder.file("bob/1.eml", "X: 1\r\n\r\n");
    let options =
        ImportOptions { naming: Naming::Local, mailbox: None, received_now: false, retention: None, total: 0 };
    let events =
        message_reader::spawn_reader(FileWalker::new(ImportFormat::Auto, &[folder.0.path().to_owned()]), None, LIMIT);
    let (_sender, stop) = watch::channel(true);
    let imported = import::import(&store, &options, events, &mut silent_console(), stop).await;
    assert!(matches!(imported.error, Some(import::ImportError::Interrupted)));
    assert_eq!(imported.messages, store.usage().await.unwrap().copies);
}

#[test]
fn does_not_overwrite_files() {
    let folder = TestFolder::new();
    folder.file("full/x", "precious");
    folder.file("there.mbox", "precious");
    let table = [
        (None, folder.join("full"), "is not empty"),
        (None, folder.join("there.mbox"), "exists"),
        (Some(ExportFormat::Eml), folder.join("there.mbox"), "cannot create the folder"),
        (Some(ExportFormat::Maildir), PathBuf::from("-"), "only mbox"),
    ];
    for (format, out, expected) in table {
        let error = output::open(&ExportRequest { format, mailboxes: Vec::new(), out }).err().unwrap();
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(fs::read_to_string(folder.join("there.mbox")).unwrap(), "precious");
}

#[tokio::test]
async fn replaces_leftovers_of_a_killed_export() {
    let (first, folder) = (store(), TestFolder::new());
    let message = TestMessage { mailbox: "bob".to_owned(), trace: true, body: "x".to_owned(), seen: false, micros: 0 };
    deliver(&*first, &message).await;
    folder.file("all.mbox.part", "half a message that is longer than the whole of it".repeat(9));
    let out = folder.join("all.mbox");
    export_to(&*first, None, &[], out.clone()).await;
    assert!(fs::read_to_string(&out).unwrap().starts_with("From ann@x.org "));
    assert!(!folder.join("all.mbox.part").exists());
}

#[tokio::test]
async fn rejects_concurrent_export_to_the_same_file() {
    let folder = TestFolder::new();
    let request = ExportRequest { format: None, mailboxes: Vec::new(), out: folder.join("all.mbox") };
    let _first = output::open(&request).unwrap();
    let error = output::open(&request).err().unwrap();
    assert!(error.ends_with("all.mbox.part exists; another export may be writing it"), "{error}");
}

/// Stops before the first message, and before the last file gets its name.
#[tokio::test]
async fn describes_leftovers_of_a_stopped_export() {
    let (first, folder) = (store(), TestFolder::new());
    let message = TestMessage { mailbox: "bob".to_owned(), trace: true, body: "x".to_owned(), seen: false, micros: 0 };
    deliver(&*first, &message).await;
    for (name, expected) in [("all.mbox", "all.mbox was not created"), ("out", "out is incomplete")] {
        let out = folder.join(name);
        let mut output =
            output::open(&ExportRequest { format: None, mailboxes: Vec::new(), out: out.clone() }).unwrap();
        let (_sender, stop) = watch::channel(true);
        let exported = export::export(&*first, &[], &mut *output, &mut silent_console(), &stop).await;
        assert!(matches!(exported, Err(export::ExportError::Interrupted)));
        drop(output);
        assert!(output::describe_leftovers(&out).ends_with(expected), "{}", output::describe_leftovers(&out));
    }
    assert_eq!(output::describe_leftovers(Path::new("-")), "the output is incomplete");
    let names: Vec<_> = fs::read_dir(folder.0.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["out"]);
}

#[tokio::test]
async fn mailpit_databases_are_imported() {
    let folder = TestFolder::new();
    let path = folder.join("mailpit.db");
    let source = "Return-Path: <app@x.test>\r\nReceived: from a by mx (Mailpit); Thu, 15 Jan 2026 12:00:00 +0000\r\nFrom: \
                  Ann <ann@x.test>\r\nTo: bob@y.test\r\nSubject: hi\r\n\r\nhello\r\n";
    let addresses = |list: &[&str]| {
        let items: Vec<String> = list.iter().map(|address| format!("{{\"Address\":\"{address}\"}}")).collect();
        items.join(",")
    };
    let metadata = format!(
        "{{\"To\":[{}],\"Bcc\":[{}],\"Username\":\"app\"}}",
        addresses(&["bob@y.test"]),
        addresses(&["cid@y.test", "cid@z.test", "no address"])
    );
    let database = rusqlite::Connection::open(&path).unwrap();
    database
        .execute_batch(
            "CREATE TABLE mailbox (Created INTEGER, ID TEXT, Metadata TEXT, Read INTEGER);
             CREATE TABLE mailbox_data (ID TEXT, Email BLOB, Compressed INTEGER);
             CREATE TABLE tags (ID INTEGER PRIMARY KEY, Name TEXT);
             CREATE TABLE message_tags (ID TEXT, TagID INTEGER);
             INSERT INTO tags VALUES (1, 'billing'); INSERT INTO message_tags VALUES ('a', 1);
             INSERT INTO mailbox VALUES (0, 'damaged', '', 0), (0, 'nobody', '{}', 0);
             INSERT INTO mailbox_data VALUES ('damaged', x'00', 1), ('nobody', 'Subject: x', 0);",
        )
        .unwrap();
    let millis = noon().as_millisecond() + 5;
    database.execute("INSERT INTO mailbox VALUES (?1, 'a', ?2, 1)", (millis, &metadata)).unwrap();
    database.execute("INSERT INTO mailbox_data VALUES ('a', ?1, 0)", [source]).unwrap();
    database.close().unwrap();
    let before = fs::read(&path).unwrap();

    for format in [ImportFormat::Auto, ImportFormat::Mailpit] {
        let store = store();
        let request = ImportRequest { format, ..import_everything(&path) };
        let (imported, problems) = import_from(&store, Naming::Local, request).await;
        assert_eq!((imported.messages, problems), (1, 2), "{format:?}");
        assert_eq!(mailboxes(&*store).await, ["bob", "cid"].map(|name| MailboxName::from(name.to_owned())));
        let (bob, stored) = stored_messages(&*store, "bob").await.remove(0);
        let (cid, _) = stored_messages(&*store, "cid").await.remove(0);
        assert_eq!(stored, source);
        assert_eq!((bob.received.as_millisecond(), bob.seen, cid.seen), (millis, true, true));
        assert_eq!(cid.tags.iter().collect::<Vec<_>>(), ["billing"]);
        assert_eq!((bob.details.sender(), bob.details.login()), ("app@x.test", Some("app")));
        assert_eq!(cid.details.recipients().collect::<Vec<_>>(), ["cid@y.test", "cid@z.test"]);
    }
    assert_eq!(fs::read(&path).unwrap(), before);

    // A tenant that does not exist is a problem.
    let request = ImportRequest { tenant: Some("acme".to_owned()), ..import_everything(&path) };
    let (imported, problems) = import_from(&store(), Naming::Local, request).await;
    assert_eq!((imported.messages, problems), (0, 1));

    // A single mailbox also gets messages without recipients.
    let store = store();
    let request = ImportRequest { mailbox: Some("all".to_owned()), ..import_everything(&path) };
    let (imported, problems) = import_from(&store, Naming::Local, request).await;
    assert_eq!((imported.messages, problems, mailboxes(&*store).await.len()), (2, 1, 1));
}
