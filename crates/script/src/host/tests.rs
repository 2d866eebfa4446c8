//! Tests of the host with real scripts that work, fail, hang or change.

use std::fs;
use std::path::{Path, PathBuf};
use std::task::{Context, Waker};
use std::thread;
use std::time::Instant;

use bytes::Bytes;
use restante_mail::details::Details;
use restante_mail::envelope::{Peer, Refusal};
use restante_mail::message::{Flags, Headline};
use restante_mail::naming::Naming;
use restante_mail::tags::Tags;
use restante_mailroom::Settings as MailroomSettings;
use restante_mailroom::hooks::Extensions;
use restante_store::memory::MemoryStore;
use restante_testdir::TestDir;

use super::*;
use crate::{Outcome, check};

/// Longer than any test takes.
const LONG: Duration = Duration::from_mins(2);

/// Short enough to wait for in a test, but longer than an empty script takes on a busy machine.
const SHORT: Duration = Duration::from_secs(3);

/// An expression that runs practically forever inside one C function of Lua's library.
const ENDLESS_PATTERN: &str = "(('a'):rep(100)):find(('a-'):rep(30) .. 'b')";

/// A temporary folder for scripts.
struct TestFolder(TestDir);

impl TestFolder {
    fn new() -> Self {
        Self(TestDir::new())
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.path(file), text).unwrap();
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    fn settings(&self) -> Settings {
        Settings {
            paths: vec![self.path("restante.lua"), self.path("inbucket.lua")],
            trusted_files_only: false,
            sandbox: false,
            timeout: LONG,
            max_memory_bytes: 16 << 20,
            before_states: 2,
            after_states: 2,
            max_calls: 64,
            max_queued_events: 100,
            naming: Naming::Local,
        }
    }

    fn host(&self) -> Arc<Host> {
        start_host(self.settings()).unwrap()
    }
}

fn start_host(settings: Settings) -> Result<Arc<Host>, ScriptError> {
    let host = Host::new(settings);
    host.load().map(|_| host)
}

fn envelope() -> Envelope {
    Envelope {
        peer: Peer { ip: None, helo: "client".to_owned() },
        login: None,
        key: None,
        listener: None,
        from: Some(Address::from_parts("ann", "example.org")),
        recipients: Vec::new(),
    }
}

fn summary() -> Summary {
    Summary {
        mailbox: "bob".to_owned().into(),
        id: 7.into(),
        headline: Headline::new("", [], "Hello"),
        received: std::time::SystemTime::UNIX_EPOCH.try_into().unwrap(),
        size: 0,
        seen: false,
        flags: Flags::default(),
        modseq: 1,
        message: 7.into(),
        number: 1,
        tags: Tags::default(),
        details: Details::default(),
    }
}

fn deny(code: u16) -> Verdict {
    Verdict::Deny(Refusal::new(code, "no"))
}

/// Returns a script that rejects every sender with `code`.
fn denying_script(code: u16) -> String {
    format!("function inbucket.before.mail_from_accepted() return smtp.deny({code}, 'no') end")
}

fn wait_until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < LONG, "timed out");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Returns Lua code that waits until the file exists.
fn lua_wait_for(file: &Path) -> String {
    format!("repeat local file = io.open('{}') until file", file.display())
}

/// Returns the same as a command that Lua cannot interrupt. It also ends when the folder is removed.
fn command_wait_for(file: &Path) -> String {
    let (file, folder) = (file.display(), file.parent().unwrap().display());
    format!("io.popen(\"until [ -e '{file}' ] || [ ! -e '{folder}' ]; do sleep 0.02; done\"):close()")
}

fn inbound() -> IncomingMessage {
    IncomingMessage {
        mailboxes: vec!["bob".to_owned().into()],
        headline: Headline::new("", [], ""),
        body: Bytes::from_static(b"\r\n"),
    }
}

#[tokio::test]
async fn script_that_appears_later_is_loaded() {
    let folder = TestFolder::new();
    let host = folder.host();
    assert_eq!(host.loaded(), None);
    assert_eq!(host.reload(), Ok(None));
    assert!(!host.has_hook(HookPoint::MailFrom));
    assert_eq!(host.counts(), Counts::default());
    folder.write("inbucket.lua", &denying_script(451));
    let loaded = LoadedScript { path: folder.path("inbucket.lua"), handlers: vec![ScriptEvent::MailFrom] };
    assert_eq!(host.reload(), Ok(Some(loaded.clone())));
    assert_eq!(host.loaded(), Some(loaded));
    assert!(host.has_hook(HookPoint::MailFrom) && !host.has_hook(HookPoint::RcptTo));
    assert_eq!(host.before_mail_from_accepted(&envelope()).await, deny(451));
}

#[tokio::test]
async fn every_hook_is_called() {
    let folder = TestFolder::new();
    let seen = folder.path("seen");
    folder.write(
        "inbucket.lua",
        &format!(
            "function inbucket.before.mail_from_accepted(session) return smtp.deny(551, 'no') end
             function inbucket.before.rcpt_to_accepted(session) return smtp.allow() end
             function inbucket.before.message_stored(msg) msg.mailboxes = {{'other'}} return msg end
             local function note(text) local f = io.open('{}', 'a') f:write(text, '\\n') f:close() end
             function inbucket.after.message_stored(meta) note('stored ' .. meta.subject) end
             function inbucket.after.message_deleted(meta) note('deleted ' .. meta.id) end",
            seen.display()
        ),
    );
    let host = start_host(Settings { before_states: 1, after_states: 1, ..folder.settings() }).unwrap();
    assert_eq!(host.loaded().unwrap().handlers, ScriptEvent::ALL);
    assert_eq!(host.before_mail_from_accepted(&envelope()).await, deny(551));
    let candidate = Address::from_parts("bob", "example.org");
    assert_eq!(host.before_rcpt_to_accepted(&envelope(), &candidate).await, Verdict::Allow);
    let changed = host.before_message_stored(&inbound()).await.unwrap();
    assert_eq!(changed.mailboxes, ["other".to_owned().into()]);
    host.message_stored(&summary());
    host.message_deleted(&summary());
    host.shut_down(LONG);
    assert_eq!(fs::read_to_string(seen).unwrap(), "stored Hello\ndeleted 7\n");
    let counts = host.counts();
    assert!(counts.loaded);
    assert_eq!(ScriptEvent::ALL.map(|event| counts.calls(event, Outcome::Ok)), [1; 5]);
}

#[tokio::test]
async fn errors_in_hooks_change_nothing() {
    let folder = TestFolder::new();
    folder.write(
        "inbucket.lua",
        "local function fail() error('no way') end
         for _, name in ipairs {'mail_from_accepted', 'rcpt_to_accepted', 'message_stored'} do
           inbucket.before[name] = fail
         end
         inbucket.after.message_stored, inbucket.after.message_deleted = fail, fail",
    );
    let host = folder.host();
    let candidate = Address::from_parts("bob", "example.org");
    for count in 1..=2 {
        assert_eq!(host.before_mail_from_accepted(&envelope()).await, Verdict::Defer);
        assert_eq!(host.before_rcpt_to_accepted(&envelope(), &candidate).await, Verdict::Defer);
        assert!(host.before_message_stored(&inbound()).await.is_none());
        host.message_stored(&summary());
        host.message_deleted(&summary());
        wait_until(|| ScriptEvent::ALL.iter().all(|event| host.counts().calls(*event, Outcome::Error) == count));
    }
}

#[test]
fn first_existing_script_is_used() {
    let folder = TestFolder::new();
    folder.write("inbucket.lua", &denying_script(451));
    folder.write("restante.lua", "");
    assert_eq!(folder.host().loaded(), Some(LoadedScript { path: folder.path("restante.lua"), handlers: Vec::new() }));
}

#[test]
fn broken_script_fails_the_start() {
    let table = [
        ("local x = \n= 1", ":2: "),
        ("\n\nerror('no way')", ":3: no way"),
        ("function inbucket.before.no_such_event() end", ":1: "),
        ("local t = {} while true do t[#t + 1] = {} end", ":1: needs more than"),
    ];
    for (script, text) in table {
        let folder = TestFolder::new();
        folder.write("inbucket.lua", script);
        let error = start_host(folder.settings()).err().unwrap();
        let expected = format!("{}{text}", folder.path("inbucket.lua").display());
        assert!(error.to_string().starts_with(&expected), "{script}: {error}");
        assert!(error.is_permanent(), "{script}: {error}");
    }
}

#[test]
fn slow_load_is_a_transient_error() {
    let folder = TestFolder::new();
    for script in ["while true do end".to_owned(), command_wait_for(&folder.path("go"))] {
        folder.write("inbucket.lua", &script);
        let error = start_host(Settings { timeout: SHORT, ..folder.settings() }).err().unwrap();
        let expected = folder.path("inbucket.lua").display().to_string();
        assert!(error.to_string().starts_with(&expected), "{script}: {error}");
        assert!(!error.is_permanent(), "{script}: {error}");
    }
}

#[test]
fn check_loads_the_script_as_the_server_does() {
    let folder = TestFolder::new();
    let (path, settings) = (folder.path("inbucket.lua"), folder.settings());
    folder.write("inbucket.lua", &denying_script(451));
    assert_eq!(check(&path, &settings), Ok(LoadedScript { path: path.clone(), handlers: vec![ScriptEvent::MailFrom] }));
    let table = [
        ("restante.store.list('bob')", ":1: restante.store can be used in after hooks only"),
        // The fake network of script tests would return an error that mentions it.
        (
            "local _, why = require('http').get('http://127.0.0.1:1')\nassert(not why:find('no network'))\nerror('x')",
            ":3: x",
        ),
    ];
    for (script, text) in table {
        folder.write("inbucket.lua", script);
        let error = check(&path, &settings).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{}{text}", path.display())), "{script}: {error}");
    }
}

#[test]
fn running_load_is_not_counted_as_abandoned() {
    let folder = TestFolder::new();
    let (started, go) = (folder.path("started"), folder.path("go"));
    folder.write("inbucket.lua", &denying_script(451));
    let script = format!("io.open('{}', 'w'):close() {}", started.display(), command_wait_for(&go));
    let start = |timeout| start_host(Settings { timeout, ..folder.settings() }).unwrap();

    let (slow_host, fast_host) = (start(LONG), start(SHORT));
    folder.write("inbucket.lua", &script);
    thread::scope(|scope| {
        let reload = scope.spawn(|| slow_host.reload());
        wait_until(|| started.exists());
        assert_eq!(slow_host.counts().abandoned, 0);
        assert!(fast_host.reload().is_err());
        assert_eq!(fast_host.counts().abandoned, 1);
        fs::write(&go, "").unwrap();
        assert!(reload.join().unwrap().is_ok());
    });
    wait_until(|| fast_host.counts().abandoned == 0);
}

#[tokio::test]
async fn failed_reload_keeps_the_old_script() {
    let folder = TestFolder::new();
    folder.write("inbucket.lua", &denying_script(451));
    let host = folder.host();
    folder.write("inbucket.lua", "function inbucket.before.mail_from_accepted(");
    assert!(host.reload().unwrap_err().to_string().contains("inbucket.lua:1:"));
    fs::remove_file(folder.path("inbucket.lua")).unwrap();
    assert!(host.reload().unwrap_err().to_string().contains("the file no longer exists"));
    assert_eq!(host.before_mail_from_accepted(&envelope()).await, deny(451));
    folder.write("inbucket.lua", &denying_script(452));
    assert!(host.reload().is_ok());
    assert_eq!(host.before_mail_from_accepted(&envelope()).await, deny(452));
    let Counts { reloads, failed_reloads, .. } = host.counts();
    assert_eq!((reloads, failed_reloads), (1, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reload_under_load_loses_no_reply() {
    let folder = TestFolder::new();
    folder.write("inbucket.lua", &denying_script(500));
    let host = folder.host();
    let sessions: Vec<_> = (0..10)
        .map(|_| {
            let host = host.clone();
            tokio::spawn(async move {
                let (mut calls, mut last) = (0, 500);
                while last < 520 {
                    let Verdict::Deny(Refusal { code, .. }) = host.before_mail_from_accepted(&envelope()).await else {
                        panic!("every version of the script refuses");
                    };
                    assert!((last..=520).contains(&code), "{code} after {last}");
                    (calls, last) = (calls + 1, code);
                }
                calls
            })
        })
        .collect();
    for code in 501..=520 {
        folder.write("inbucket.lua", &denying_script(code));
        let reloading = host.clone();
        tokio::task::spawn_blocking(move || reloading.reload()).await.unwrap().unwrap();
        assert_eq!(host.before_mail_from_accepted(&envelope()).await, deny(code));
    }
    // One call after each reload above.
    let mut calls = 20;
    for session in sessions {
        calls += session.await.unwrap();
    }
    assert_eq!(host.counts().calls(ScriptEvent::MailFrom, Outcome::Ok), calls);
}

#[tokio::test]
async fn failed_calls_defer_to_the_server() {
    let table = [
        ("error('no way')", LONG, Outcome::Error),
        ("return 17", LONG, Outcome::Error),
        ("while true do end", SHORT, Outcome::Limit),
        ("while true do pcall(function() while true do end end) end", SHORT, Outcome::Limit),
        ("local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t end", LONG, Outcome::Limit),
    ];
    for (body, timeout, outcome) in table {
        let folder = TestFolder::new();
        let script = "local function bad() BODY end
             function inbucket.before.mail_from_accepted(session)
               if session.from.address == 'ann@example.org' then return bad() end
               return smtp.allow()
             end";
        folder.write("inbucket.lua", &script.replace("BODY", body));
        let host = start_host(Settings { timeout, ..folder.settings() }).unwrap();
        assert_eq!(host.before_mail_from_accepted(&envelope()).await, Verdict::Defer, "{body}");
        assert_eq!(host.counts().calls(ScriptEvent::MailFrom, outcome), 1, "{body}");
        let other = Envelope { login: None, from: None, ..envelope() };
        assert_eq!(host.before_mail_from_accepted(&other).await, Verdict::Allow, "{body}");
        // On a very busy machine, the watchdog may have abandoned the call before its own limit ended it.
        wait_until(|| host.counts().abandoned == 0);
    }
}

#[tokio::test]
async fn calls_blocked_in_c_are_abandoned() {
    let folder = TestFolder::new();
    let go = folder.path("go");
    for body in [command_wait_for(&go), ENDLESS_PATTERN.to_owned()] {
        folder.write("inbucket.lua", &format!("function inbucket.before.mail_from_accepted() local x = {body} end"));
        let host = start_host(Settings { timeout: SHORT, ..folder.settings() }).unwrap();
        assert_eq!(host.before_mail_from_accepted(&envelope()).await, Verdict::Defer, "{body}");
        let counts = host.counts();
        assert_eq!((counts.calls(ScriptEvent::MailFrom, Outcome::Limit), counts.abandoned), (1, 1), "{body}");
        if body != ENDLESS_PATTERN {
            fs::write(&go, "").unwrap();
            wait_until(|| host.counts().abandoned == 0);
        }
    }
}

/// Returns a script whose `after` hook creates the file `started` and then waits for the file `go`.
fn blocking_script(started: &Path, go: &Path) -> String {
    let wait = lua_wait_for(go);
    format!("function inbucket.after.message_stored() io.open('{}', 'w'):close() {wait} end", started.display())
}

#[test]
fn full_queue_and_shutdown_drop_events() {
    let folder = TestFolder::new();
    let (started, go) = (folder.path("started"), folder.path("go"));
    folder.write("inbucket.lua", &blocking_script(&started, &go));
    let host =
        start_host(Settings { before_states: 1, after_states: 1, max_queued_events: 3, ..folder.settings() }).unwrap();
    host.message_stored(&summary());
    wait_until(|| started.exists());
    for _ in 0..5 {
        host.message_stored(&summary());
        host.message_deleted(&summary());
    }
    let Counts { waiting, dropped, .. } = host.counts();
    assert_eq!((waiting, dropped), (3, 2), "the script has no function for deleted messages");
    host.shut_down(Duration::ZERO);
    host.message_stored(&summary());
    host.shut_down(LONG);
    let Counts { waiting, dropped, .. } = host.counts();
    assert_eq!((waiting, dropped), (0, 6));
    fs::write(go, "").unwrap();
    wait_until(|| host.counts().calls(ScriptEvent::AfterStored, Outcome::Ok) == 1);
}

#[test]
fn shutdown_waits_for_queued_events() {
    let folder = TestFolder::new();
    let (started, go) = (folder.path("started"), folder.path("go"));
    folder.write("inbucket.lua", &blocking_script(&started, &go));
    let host = start_host(Settings { before_states: 1, after_states: 1, ..folder.settings() }).unwrap();
    for _ in 0..4 {
        host.message_stored(&summary());
    }
    thread::scope(|scope| {
        scope.spawn(|| host.shut_down(LONG));
        fs::write(go, "").unwrap();
    });
    let counts = host.counts();
    assert_eq!((counts.dropped, counts.calls(ScriptEvent::AfterStored, Outcome::Ok)), (0, 4));
}

#[tokio::test]
async fn sessions_continue_without_the_script_after_shutdown() {
    let folder = TestFolder::new();
    folder.write("inbucket.lua", &denying_script(451));
    let host = folder.host();
    host.shut_down(LONG);
    assert_eq!(host.before_mail_from_accepted(&envelope()).await, Verdict::Defer);
    assert_eq!(host.counts().calls(ScriptEvent::MailFrom, Outcome::Busy), 1);
}

#[test]
fn call_that_outlives_the_runtime_has_no_mail_access() {
    let folder = TestFolder::new();
    let (started, go, output) = (folder.path("started"), folder.path("go"), folder.path("output"));
    let script = "function inbucket.after.message_stored()
           assert(#restante.store.list('bob') == 0)
           io.open('STARTED', 'w'):close()
           WAIT
           local _, problem = pcall(restante.store.list, 'bob')
           local file = io.open('OUTPUT', 'w') file:write(problem) file:close()
         end";
    let script =
        script.replace("STARTED", &started.display().to_string()).replace("OUTPUT", &output.display().to_string());
    folder.write("inbucket.lua", &script.replace("WAIT", &lua_wait_for(&go)));
    let host = folder.host();
    let store = Arc::new(MemoryStore::new(restante_store::Limits::default()));
    let mailroom = Arc::new(Mailroom::new(MailroomSettings::default(), store, Extensions::default()));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async { host.connect(&mailroom) });
    host.message_stored(&summary());
    wait_until(|| started.exists());
    host.shut_down(Duration::ZERO);
    drop(runtime);
    assert_eq!(Arc::strong_count(&mailroom), 1);
    fs::write(go, "").unwrap();
    wait_until(|| host.counts().calls(ScriptEvent::AfterStored, Outcome::Ok) == 1);
    let output = fs::read_to_string(output).unwrap();
    assert!(output.contains("the stored messages are no longer accessible"), "{output}");
}

#[test]
fn commands_are_killed_at_shutdown() {
    let folder = TestFolder::new();
    let started = folder.path("started");
    let command = format!("touch {}; sleep 3600 & wait", started.display());
    folder.write("inbucket.lua", &format!("function inbucket.after.message_stored() os.execute('{command}') end"));
    let host = folder.host();
    host.message_stored(&summary());
    wait_until(|| started.exists());
    host.shut_down(Duration::ZERO);
    wait_until(|| host.counts().calls(ScriptEvent::AfterStored, Outcome::Ok) == 1);
}

#[test]
fn directory_is_not_a_script() {
    let folder = TestFolder::new();
    fs::create_dir(folder.path("restante.lua")).unwrap();
    assert_eq!(folder.host().loaded(), None);
    folder.write("inbucket.lua", "");
    assert_eq!(folder.host().loaded().unwrap().path, folder.path("inbucket.lua"));
}

#[tokio::test]
async fn calls_of_ended_sessions_are_skipped() {
    let folder = TestFolder::new();
    let (started, go) = (folder.path("started"), folder.path("go"));
    let script = blocking_script(&started, &go).replace("after.message_stored", "before.mail_from_accepted");
    folder.write("inbucket.lua", &script);
    let host = start_host(Settings { before_states: 1, after_states: 1, max_calls: 1, ..folder.settings() }).unwrap();
    let first = host.clone();
    let first = tokio::spawn(async move { first.before_mail_from_accepted(&envelope()).await });
    while !started.exists() {
        tokio::task::yield_now().await;
    }
    let envelope = envelope();
    for _ in 0..100 {
        let mut call = host.before_mail_from_accepted(&envelope);
        assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    fs::write(go, "").unwrap();
    assert_eq!(first.await.unwrap(), Verdict::Defer);
    assert_eq!(host.before_mail_from_accepted(&envelope).await, Verdict::Defer);
    assert_eq!(host.counts().calls(ScriptEvent::MailFrom, Outcome::Ok), 2);
}

#[tokio::test]
async fn slow_calls_up_to_the_maximum_do_not_block_others() {
    const BLOCKED_CALLS: usize = 70;
    let folder = TestFolder::new();
    let (started, go) = (folder.path("started"), folder.path("go"));
    let script = "function inbucket.before.mail_from_accepted(session)
           if session.from.address == '' then return smtp.allow() end
           local file = io.open('STARTED', 'a') file:write('x') file:close()
           while not io.open('GO') do restante.sleep(0.02) end
         end";
    let script = script.replace("STARTED", &started.display().to_string()).replace("GO", &go.display().to_string());
    folder.write("inbucket.lua", &script);
    let host =
        start_host(Settings { before_states: 1, after_states: 1, max_calls: BLOCKED_CALLS + 1, ..folder.settings() })
            .unwrap();
    let session = |_| {
        let host = host.clone();
        tokio::spawn(async move { host.before_mail_from_accepted(&envelope()).await })
    };
    let blocked: Vec<_> = (0..BLOCKED_CALLS).map(session).collect();
    while fs::metadata(&started).map_or(0, |file| file.len()) < BLOCKED_CALLS as u64 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let other = Envelope { login: None, from: None, ..envelope() };
    assert_eq!(host.before_mail_from_accepted(&other).await, Verdict::Allow);
    fs::write(go, "").unwrap();
    for session in blocked {
        assert_eq!(session.await.unwrap(), Verdict::Defer);
    }
    assert_eq!(host.counts().calls(ScriptEvent::MailFrom, Outcome::Ok), BLOCKED_CALLS as u64 + 1);
}

#[test]
fn limits_follow_the_settings() {
    let folder = TestFolder::new();
    for (states, max_calls, core_workers, max_workers) in [(2, 256, 2, 256), (8, 4, 4, 4), (0, 0, 1, 1)] {
        let settings = Settings { before_states: states, after_states: states, max_calls, ..folder.settings() };
        let limits = before_limits(&settings);
        assert_eq!((limits.core_workers, limits.max_workers), (core_workers, max_workers), "{states} {max_calls}");
        assert_eq!(after_limits(&settings).max_workers, states.max(1), "`after` hooks wait in the queue");
    }
}
