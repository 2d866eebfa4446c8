//! A client that only reads the replies knows the mailbox: random commands of the client and changes of other clients
//! leave it with the number of messages and their flags as the store has them.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::driver::{Driver, default_settings};
use super::responses::split_responses;

const FLAGS: [&str; 5] = ["\\Seen", "\\Flagged", "\\Deleted", "\\Answered", "work"];

/// What happens next. Messages are chosen by numbers of any size, modulo the number of messages.
#[derive(Clone, Debug)]
enum Event {
    /// A command without effect on flags.
    Command(&'static str),
    /// STORE.
    Store(Store),
    /// A command on a message.
    OnMessage(&'static str, usize),
    /// Another client stores a message.
    Deliver,
    /// Another client changes flags.
    Mark(usize, Vec<&'static str>),
    /// Another client deletes a message.
    Remove(usize),
    /// The session learns of the next changes only during the next operation.
    Late,
    /// The session does not learn of the changes, but gets a complete list.
    Missed,
}

#[derive(Clone, Debug)]
struct Store {
    message: usize,
    operation: &'static str,
    flag: &'static str,
    is_silent: bool,
    is_uid: bool,
}

fn event() -> impl Strategy<Value = Event> {
    let command = prop::sample::select(vec![
        "NOOP",
        "SEARCH ALL",
        "UID SEARCH ALL",
        "EXPUNGE",
        "IDLE\r\nDONE",
        "FETCH 1:* FLAGS",
        "UID FETCH 1:* FLAGS",
        "FETCH 9999 FLAGS",
        "ENABLE CONDSTORE",
        "STATUS INBOX (MESSAGES)",
    ]);
    let on_message = prop::sample::select(vec![
        "FETCH # FLAGS",
        "FETCH # BODY[TEXT]",
        "FETCH # (UID BODY.PEEK[TEXT] MODSEQ)",
        "COPY # INBOX",
        "MOVE # INBOX",
    ]);
    let operation = prop::sample::select(vec!["FLAGS", "+FLAGS", "-FLAGS"]);
    let flag = prop::sample::select(FLAGS.to_vec());
    let store = (any::<usize>(), operation, flag, any::<bool>(), any::<bool>());
    prop_oneof![
        2 => command.prop_map(Event::Command),
        6 => store.prop_map(|(message, operation, flag, is_silent, is_uid)| {
            Event::Store(Store { message, operation, flag, is_silent, is_uid })
        }),
        3 => (on_message, any::<usize>()).prop_map(|(command, message)| Event::OnMessage(command, message)),
        2 => Just(Event::Deliver),
        4 => (any::<usize>(), prop::sample::subsequence(FLAGS.to_vec(), 0..4))
            .prop_map(|(message, flags)| Event::Mark(message, flags)),
        2 => any::<usize>().prop_map(Event::Remove),
        3 => Just(Event::Late),
        1 => Just(Event::Missed),
    ]
}

type Flags = BTreeSet<String>;

/// The messages as the client knows them. Flags are unknown until a reply has contained them.
#[derive(Debug, Default)]
struct ClientView {
    messages: Vec<Option<Flags>>,
}

impl ClientView {
    /// Reads replies.
    fn read(&mut self, replies: &[u8]) {
        for response in split_responses(replies) {
            let text = String::from_utf8_lossy(response);
            let words: Vec<&str> = text.split_whitespace().collect();
            let ["*", number, name, ..] = words[..] else { continue };
            let Ok(number) = number.parse::<usize>() else { continue };
            match name {
                "EXISTS" => {
                    assert!(number >= self.messages.len(), "EXISTS must not remove messages");
                    self.messages.resize(number, None);
                }
                "EXPUNGE" => drop(self.messages.remove(number - 1)),
                "FETCH" => {
                    let Some((_, rest)) = text.split_once("FLAGS (") else { continue };
                    let flags = rest.split(')').next().unwrap_or_default().split_whitespace();
                    let flags = flags.filter(|flag| *flag != "\\Recent").map(str::to_owned).collect();
                    self.messages[number - 1] = Some(flags);
                }
                _ => {}
            }
        }
    }

    fn run(&mut self, driver: &mut Driver, command: &str) {
        driver.feed(format!("a {command}\r\n").as_bytes());
        self.read(&driver.replies());
    }

    /// Changes flags. The client computes the flags that a silent command does not report.
    fn store(&mut self, driver: &mut Driver, store: &Store) {
        let Some(last) = self.messages.len().checked_sub(1) else { return };
        // `*` is the last message, and the same for both forms of the command.
        let (uid, index, set) = if store.is_uid {
            ("UID ", last, "*".to_owned())
        } else {
            let index = store.message % self.messages.len();
            ("", index, (index + 1).to_string())
        };
        let Store { operation, flag, .. } = store;
        if store.is_silent {
            match (*operation, &mut self.messages[index]) {
                ("FLAGS", known) => *known = Some(Flags::from([(*flag).to_owned()])),
                ("+FLAGS", Some(flags)) => drop(flags.replace((*flag).to_owned())),
                ("-FLAGS", Some(flags)) => drop(flags.take(*flag)),
                _ => {}
            }
        }
        let silent = if store.is_silent { ".SILENT" } else { "" };
        self.run(driver, &format!("{uid}STORE {set} {operation}{silent} ({flag})"));
    }
}

proptest! {
    #[test]
    fn client_knows_the_mailbox(events in prop::collection::vec(event(), 0..40)) {
        let mut driver = Driver::new(default_settings());
        for _ in 0..3 {
            driver.store.deliver("INBOX", b"Subject: x\r\n\r\nHello\r\n");
        }
        let mut view = ClientView::default();
        view.run(&mut driver, "LOGIN james x");
        view.run(&mut driver, "SELECT INBOX");
        view.run(&mut driver, "FETCH 1:* FLAGS");
        for event in &events {
            let uids = driver.store.uids("INBOX");
            let uid = |message: &usize| uids.get(message % uids.len().max(1)).copied();
            match event {
                Event::Command(command) => view.run(&mut driver, command),
                Event::OnMessage(command, message) if !view.messages.is_empty() => {
                    let number = (message % view.messages.len() + 1).to_string();
                    view.run(&mut driver, &command.replace('#', &number));
                }
                Event::OnMessage(..) => {}
                Event::Store(store) => view.store(&mut driver, store),
                Event::Deliver => {
                    driver.store.deliver("INBOX", b"Hello\r\n");
                }
                Event::Mark(message, flags) => {
                    if let Some(uid) = uid(message) {
                        driver.store.mark(uid, flags);
                    }
                }
                Event::Remove(message) => {
                    if let Some(uid) = uid(message) {
                        driver.store.remove(uid);
                    }
                }
                Event::Late => driver.is_late = true,
                Event::Missed => driver.miss_changes(),
            }
        }
        driver.is_late = false;
        view.run(&mut driver, "NOOP");
        let stored = driver.store.flags("INBOX");
        prop_assert_eq!(view.messages.len(), stored.len());
        for (known, stored) in view.messages.iter().zip(&stored) {
            prop_assert!(known.as_ref().is_none_or(|known| known == stored), "{:?} instead of {:?}", known, stored);
        }
    }
}
