//! The host with real scripts: what becomes of events when scripts work, fail, hang or change.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::thread;
use std::time::Instant;

use bytes::Bytes;
use restante_mail::envelope::{Peer, Refusal};
use restante_mail::message::Headline;
use restante_mail::naming::Naming;

use super::*;
use crate::Outcome;

/// Longer than any test takes.
const LONG: Duration = Duration::from_mins(2);

/// So short that scripts can pass it.
const SHORT: Duration = Duration::from_millis(100);

/// A folder for scripts, which goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("restante-host-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.path(file), text).unwrap();
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }

    fn settings(&self) -> Settings {
        Settings {
            paths: vec![self.path("restante.lua"), self.path("inbucket.lua")],
            sandbox: false,
            timeout: LONG,
            memory: 16 << 20,
            states: 2,
            queue: 100,
            naming: Naming::Local,
        }
    }

    fn host(&self) -> Arc<Host> {
        Host::start(self.settings()).unwrap()
    }

    /// A host whose scripts have little time.
    fn hasty_host(&self) -> Arc<Host> {
        Host::start(Settings { timeout: SHORT, ..self.settings() }).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn envelope() -> Envelope {
    Envelope {
        peer: Peer { ip: None, helo: "client".to_owned() },
        from: Some(Address::at("ann", "example.org")),
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
    }
}

fn deny(code: u16) -> Verdict {
    Verdict::Deny(Refusal::new(code, "no"))
}

/// A script that says this about every sender.
fn denying(code: u16) -> String {
    format!("function inbucket.before.mail_from_accepted() return smtp.deny({code}, 'no') end")
}

fn wait_until(what: impl Fn() -> bool) {
    let start = Instant::now();
    while !what() {
        assert!(start.elapsed() < LONG, "it never happens");
        thread::sleep(Duration::from_millis(1));
    }
}

fn wait_for(file: &Path) -> String {
    format!("repeat local file = io.open('{}') until file", file.display())
}

#[tokio::test]
async fn without_a_script_nothing_is_asked_until_one_appears() {
    let folder = Folder::new();
    let host = folder.host();
    assert_eq!(host.loaded(), None);
    assert_eq!(host.reload(), Ok(None));
    assert!(!host.take_part(Point::MailFrom));
    assert_eq!(host.counts(), Counts::default());
    folder.write("inbucket.lua", &denying(451));
    let loaded = Loaded { path: folder.path("inbucket.lua"), handlers: vec![Event::MailFrom] };
    assert_eq!(host.reload(), Ok(Some(loaded.clone())));
    assert_eq!(host.loaded(), Some(loaded));
    assert!(host.take_part(Point::MailFrom) && !host.take_part(Point::RcptTo));
    assert_eq!(host.before_mail_from_accepted(&envelope()).await, deny(451));
}

#[tokio::test]
async fn every_hook_is_asked_and_told() {
    let folder = Folder::new();
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
    let host = Host::start(Settings { states: 1, ..folder.settings() }).unwrap();
    assert_eq!(host.loaded().unwrap().handlers, Event::ALL);
    assert_eq!(host.before_mail_from_accepted(&envelope()).await, deny(551));
    let candidate = Address::at("bob", "example.org");
    assert_eq!(host.before_rcpt_to_accepted(&envelope(), &candidate).await, Verdict::Allow);
    let message = Inbound {
        mailboxes: vec!["bob".to_owned().into()],
        headline: Headline::new("", [], ""),
        body: Bytes::from_static(b"\r\n"),
    };
    let changed = host.before_message_stored(&message).await.unwrap();
    assert_eq!(changed.mailboxes, ["other".to_owned().into()]);
    host.message_stored(&summary());
    host.message_deleted(&summary());
    host.end(LONG);
    assert_eq!(fs::read_to_string(seen).unwrap(), "stored Hello\ndeleted 7\n");
    let counts = host.counts();
    assert!(counts.loaded);
    assert_eq!(Event::ALL.map(|event| counts.calls(event, Outcome::Ok)), [1; 5]);
}

#[test]
fn the_first_of_two_scripts_is_used() {
    let folder = Folder::new();
    folder.write("inbucket.lua", &denying(451));
    folder.write("restante.lua", "");
    assert_eq!(folder.host().loaded(), Some(Loaded { path: folder.path("restante.lua"), handlers: Vec::new() }));
}

#[test]
fn a_broken_script_stops_the_start() {
    let table = [
        ("local x = \n= 1", ":2: "),
        ("\n\nerror('no way')", ":3: no way"),
        ("function inbucket.before.no_such_event() end", ":1: "),
        ("while true do end", ":1: "),
        ("os.execute('sleep 1')", ": it takes too long to load"),
    ];
    for (script, error) in table {
        let folder = Folder::new();
        folder.write("inbucket.lua", script);
        let ScriptError(text) = Host::start(Settings { timeout: SHORT, ..folder.settings() }).err().unwrap();
        let expected = format!("{}{error}", folder.path("inbucket.lua").display());
        assert!(text.starts_with(&expected), "{script}: {text}");
    }
}

#[tokio::test]
async fn when_a_reload_fails_the_old_script_stays() {
    let folder = Folder::new();
    folder.write("inbucket.lua", &denying(451));
    let host = folder.host();
    folder.write("inbucket.lua", "function inbucket.before.mail_from_accepted(");
    assert!(host.reload().unwrap_err().0.contains("inbucket.lua:1:"));
    fs::remove_file(folder.path("inbucket.lua")).unwrap();
    assert!(host.reload().unwrap_err().0.contains("no such file any more"));
    assert_eq!(host.before_mail_from_accepted(&envelope()).await, deny(451));
    folder.write("inbucket.lua", &denying(452));
    assert!(host.reload().is_ok());
    assert_eq!(host.before_mail_from_accepted(&envelope()).await, deny(452));
    let Counts { reloads, failed_reloads, .. } = host.counts();
    assert_eq!((reloads, failed_reloads), (1, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reload_under_load_loses_no_answer() {
    let folder = Folder::new();
    folder.write("inbucket.lua", &denying(500));
    let host = folder.host();
    let sessions: Vec<_> = (0..10)
        .map(|_| {
            let host = host.clone();
            tokio::spawn(async move {
                let (mut asked, mut last) = (0, 500);
                while last < 520 {
                    let Verdict::Deny(Refusal { code, .. }) = host.before_mail_from_accepted(&envelope()).await else {
                        panic!("every version of the script refuses");
                    };
                    assert!((last..=520).contains(&code), "{code} after {last}");
                    (asked, last) = (asked + 1, code);
                }
                asked
            })
        })
        .collect();
    for code in 501..=520 {
        folder.write("inbucket.lua", &denying(code));
        let reloading = host.clone();
        tokio::task::spawn_blocking(move || reloading.reload()).await.unwrap().unwrap();
        assert_eq!(host.before_mail_from_accepted(&envelope()).await, deny(code));
    }
    // Those asked above after each reload.
    let mut asked = 20;
    for session in sessions {
        asked += session.await.unwrap();
    }
    assert_eq!(host.counts().calls(Event::MailFrom, Outcome::Ok), asked);
}

#[tokio::test]
async fn calls_that_fail_leave_the_decision_to_the_server() {
    let table = [
        ("error('no way')", Outcome::Error),
        ("return 17", Outcome::Error),
        ("while true do end", Outcome::Limit),
        ("while true do pcall(function() while true do end end) end", Outcome::Limit),
        ("local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t end", Outcome::Limit),
    ];
    for (body, outcome) in table {
        let folder = Folder::new();
        let script = "local function bad() BODY end
             function inbucket.before.mail_from_accepted(session)
               if session.from.address == 'ann@example.org' then return bad() end
               return smtp.allow()
             end";
        folder.write("inbucket.lua", &script.replace("BODY", body));
        let host = Host::start(Settings { timeout: Duration::from_secs(1), ..folder.settings() }).unwrap();
        assert_eq!(host.before_mail_from_accepted(&envelope()).await, Verdict::Defer, "{body}");
        assert_eq!(host.counts().calls(Event::MailFrom, outcome), 1, "{body}");
        let other = Envelope { from: None, ..envelope() };
        assert_eq!(host.before_mail_from_accepted(&other).await, Verdict::Allow, "{body}");
        assert_eq!(host.counts().abandoned, 0, "{body}");
    }
}

#[tokio::test]
async fn what_lua_cannot_stop_is_given_up() {
    for body in ["os.execute('sleep 2')", "('a'):rep(900):find('a*a*b')"] {
        let folder = Folder::new();
        folder.write("inbucket.lua", &format!("function inbucket.before.mail_from_accepted() {body} end"));
        let host = folder.hasty_host();
        assert_eq!(host.before_mail_from_accepted(&envelope()).await, Verdict::Defer, "{body}");
        let counts = host.counts();
        assert_eq!((counts.calls(Event::MailFrom, Outcome::Limit), counts.abandoned), (1, 1), "{body}");
        wait_until(|| host.counts().abandoned == 0);
    }
}

#[test]
fn a_full_queue_drops_events_and_the_others_are_told_in_the_end() {
    let folder = Folder::new();
    let (begun, go) = (folder.path("begun"), folder.path("go"));
    let script = "function inbucket.after.message_stored()
           io.open('BEGUN', 'w'):close()
           WAIT
         end";
    let script = script.replace("BEGUN", &begun.display().to_string()).replace("WAIT", &wait_for(&go));
    folder.write("inbucket.lua", &script);
    let host = Host::start(Settings { states: 1, queue: 3, ..folder.settings() }).unwrap();
    host.message_stored(&summary());
    wait_until(|| begun.exists());
    for _ in 0..5 {
        host.message_stored(&summary());
        host.message_deleted(&summary());
    }
    let Counts { waiting, dropped, .. } = host.counts();
    assert_eq!((waiting, dropped), (3, 2), "the script has no function for what was deleted");
    host.end(Duration::from_millis(10));
    assert_eq!(host.counts().calls(Event::AfterStored, Outcome::Ok), 0);
    fs::write(go, "").unwrap();
    host.end(LONG);
    let counts = host.counts();
    assert_eq!((counts.waiting, counts.calls(Event::AfterStored, Outcome::Ok)), (0, 4));
}

#[tokio::test]
async fn a_session_that_leaves_does_not_matter() {
    let folder = Folder::new();
    let go = folder.path("go");
    let script = "function inbucket.before.mail_from_accepted(session)
           WAIT
           return smtp.allow()
         end";
    folder.write("inbucket.lua", &script.replace("WAIT", &wait_for(&go)));
    let host = Host::start(Settings { states: 1, ..folder.settings() }).unwrap();
    let envelope = envelope();
    for _ in 0..100 {
        let mut asking = host.before_mail_from_accepted(&envelope);
        assert!(asking.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    fs::write(go, "").unwrap();
    assert_eq!(host.before_mail_from_accepted(&envelope).await, Verdict::Allow);
}
