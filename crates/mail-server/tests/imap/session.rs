//! A session of a client that believes what the server announces, and reports what its commands should have changed.

use std::collections::{BTreeMap, BTreeSet};

use crate::client::{Client, Reply};
use crate::command::{Command, FlagChange, FlagOperation, INBOX, MessageSet, SearchKey};
use crate::contents::Contents;
use crate::random::Random;
use crate::view::{Fetched, FlagSet, View};

/// A session with a selected mailbox.
pub(crate) struct TestSession {
    pub(crate) client: Client,
    pub(crate) view: View,
    pub(crate) name: &'static str,
    /// Whether the client sends commands of CONDSTORE.
    pub(crate) uses_condstore: bool,
    /// Whether it has sent one.
    has_condstore: bool,
    /// The tag of IDLE, until its end.
    idle_tag: Option<String>,
    random: Random,
}

/// What an operation should have changed, and what the server has said about the mailbox.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effects {
    /// Changes of flags, by UID.
    pub(crate) flag_changes: BTreeMap<u32, ConditionalChange>,
    /// The UIDs of messages that are removed.
    pub(crate) removed: BTreeSet<u32>,
    /// Whether only messages with `\Deleted` are removed.
    pub(crate) removes_only_deleted: bool,
    /// New messages, by UID.
    pub(crate) added: BTreeMap<u32, AddedMessage>,
    /// The number of messages that were copied to the other mailbox.
    pub(crate) archived: usize,
    /// The messages that a command names, and those of them that were found, copied or reported.
    pub(crate) selection: Option<Selection>,
    /// The messages of the response code MODIFIED.
    pub(crate) modified: BTreeSet<u32>,
    /// The numbers of messages that the server has stated.
    pub(crate) counts: Vec<usize>,
    pub(crate) uid_validities: Vec<u32>,
    pub(crate) next_uids: Vec<u32>,
    pub(crate) highest_modseqs: Vec<u64>,
    /// The flags of messages with these UIDs and MODSEQs.
    pub(crate) flags_at: Vec<((u32, u64), FlagSet)>,
    /// The subjects of messages.
    pub(crate) subjects: Vec<(u32, String)>,
}

/// A change of flags, possibly only of a message whose MODSEQ is not higher than a limit.
#[derive(Clone, Debug)]
pub(crate) struct ConditionalChange {
    pub(crate) change: FlagChange,
    pub(crate) unchanged_since: Option<u64>,
}

/// A message that was added.
#[derive(Clone, Debug)]
pub(crate) enum AddedMessage {
    Delivered { subject: String },
    Appended { subject: String, flags: FlagSet },
    CopyOf(u32),
}

/// The messages that a command names, and those that match.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    pub(crate) named: BTreeSet<u32>,
    pub(crate) matched: BTreeSet<u32>,
    pub(crate) key: SearchKey,
}

/// What the server has sent during a command.
#[derive(Default)]
struct Received {
    /// The UIDs of messages whose flags were reported.
    with_flags: BTreeSet<u32>,
    /// The UIDs of all messages of FETCH replies.
    fetched: BTreeSet<u32>,
    search: Option<Vec<u32>>,
    /// The text of response codes.
    codes: Vec<String>,
}

impl TestSession {
    /// Logs in and selects INBOX.
    pub(crate) async fn open(
        name: &'static str,
        mut client: Client,
        uses_condstore: bool,
        random: Random,
        commands: &[&str],
    ) -> Self {
        client.reply().await;
        for command in commands {
            let tag = client.send_command(command).await;
            while !client.reply().await.text.starts_with(&format!("{tag} ")) {}
        }
        let has_condstore = commands.contains(&"ENABLE CONDSTORE");
        let view = View::default();
        let mut session = Self { name, client, view, uses_condstore, has_condstore, idle_tag: None, random };
        session.perform(&Command::Select).await;
        session
    }

    pub(crate) fn is_idling(&self) -> bool {
        self.idle_tag.is_some()
    }

    /// Executes random commands, one after the other. In IDLE it may do nothing.
    pub(crate) async fn perform_random(&mut self, count: usize) -> Vec<Effects> {
        let mut effects = Vec::new();
        for _ in 0..count {
            let command = if self.is_idling() {
                if self.random.one_in(2) {
                    break;
                }
                Command::Done
            } else {
                let subject = format!("{} of the {} session", self.client.next_tag(), self.name);
                Command::random(&mut self.random, &self.view, self.uses_condstore, subject)
            };
            effects.push(self.perform(&command).await);
        }
        effects
    }

    /// Executes a command.
    pub(crate) async fn perform(&mut self, command: &Command) -> Effects {
        let mut effects = Effects::default();
        let named = self.named_uids(command);
        self.has_condstore |= command.enables_condstore();
        if matches!(command, Command::Select) {
            self.view = View::default();
        }
        let tag = match self.idle_tag.take() {
            Some(tag) => {
                assert!(matches!(command, Command::Done), "only DONE ends IDLE");
                self.client.send_line("DONE").await;
                tag
            }
            None => self.client.send_command(&command.text()).await,
        };
        let mut received = Received::default();
        let completion = loop {
            let reply = self.client.reply().await;
            if reply.text.starts_with("+ ") {
                assert!(matches!(command, Command::Idle));
                self.idle_tag = Some(tag);
                return effects;
            }
            match reply.text.strip_prefix("* ") {
                Some(text) => self.apply(command, text, &reply, &mut received, &mut effects),
                None => break reply.text,
            }
        };
        let completion =
            completion.strip_prefix(&format!("{tag} ")).expect("the last reply has the tag of the command");
        received.codes.extend(response_code(completion));
        let is_ok = completion.starts_with("OK ");
        self.complete(command, named, is_ok, &received, &mut effects);
        effects
    }

    /// Reads the replies during IDLE until the view is equal to the contents of the mailbox.
    pub(crate) async fn wait_for(&mut self, contents: &Contents) -> Effects {
        let mut effects = Effects::default();
        while contents.difference(&self.view).is_some() {
            let reply = self.client.reply().await;
            let text = reply.text.strip_prefix("* ").expect("only untagged replies during IDLE");
            self.apply(&Command::Idle, text, &reply, &mut Received::default(), &mut effects);
        }
        effects
    }

    /// Fetches the flags of all messages.
    pub(crate) async fn fetch_all(&mut self, has_modseq: bool) {
        let set = MessageSet::of_indices(0..self.view.messages.len());
        let items = if has_modseq { "UID FLAGS MODSEQ" } else { "UID FLAGS" };
        self.perform(&Command::Fetch { set, items, changed_since: None }).await;
    }

    /// Returns the UIDs of the messages that a command names.
    fn named_uids(&self, command: &Command) -> BTreeSet<u32> {
        let indices = match command {
            Command::Fetch { set, .. }
            | Command::Store { set, .. }
            | Command::Expunge(Some(set))
            | Command::Copy { set, .. } => set.indices.clone(),
            _ => 0..self.view.messages.len(),
        };
        self.view.messages[indices].iter().filter_map(|message| message.uid).collect()
    }

    /// Returns the UID of a message that a reply names by its UID or its sequence number.
    fn uid_of(&self, number: u32, is_uid: bool) -> Option<u32> {
        if is_uid { Some(number) } else { self.view.messages[number as usize - 1].uid }
    }

    /// Applies an untagged reply.
    fn apply(&mut self, command: &Command, text: &str, reply: &Reply, received: &mut Received, effects: &mut Effects) {
        let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
        match (first.parse::<usize>(), rest.split(' ').next().unwrap_or_default()) {
            (Ok(count), "EXISTS") => {
                if matches!(command, Command::Select) {
                    effects.counts.push(count);
                }
                self.view.exists(count);
            }
            (Ok(sequence), "EXPUNGE") => {
                assert!(command.may_renumber(), "EXPUNGE during {command:?}");
                self.view.expunge(sequence);
            }
            (Ok(sequence), "FETCH") => self.apply_fetch(command, sequence, reply, received, effects),
            (Ok(_), "RECENT") => {}
            (Err(_), _) if first == "SEARCH" => {
                let numbers = rest.split('(').next().unwrap_or_default().split_whitespace();
                let numbers: Vec<u32> = numbers.map(|number| number.parse().expect("a number")).collect();
                assert!(numbers.is_sorted(), "{text}");
                received.search = Some(numbers);
            }
            (Err(_), _) if first == "STATUS" => {
                effects.counts.extend(number_after::<usize>(text, "MESSAGES "));
                note_numbers(text, effects);
            }
            (Err(_), _) if first == "OK" => {
                note_numbers(text, effects);
                received.codes.extend(response_code(text));
            }
            (Err(_), _) if first == "FLAGS" => {}
            _ => panic!("unexpected reply: {text}"),
        }
    }

    fn apply_fetch(
        &mut self,
        command: &Command,
        sequence: usize,
        reply: &Reply,
        received: &mut Received,
        effects: &mut Effects,
    ) {
        let text = &reply.text;
        let flags = text.split_once("FLAGS (").and_then(|(_, rest)| rest.split_once(')')).map(|(flags, _)| {
            flags.split_whitespace().filter(|flag| *flag != "\\Recent").map(str::to_owned).collect::<FlagSet>()
        });
        let modseq = number_after(text, "MODSEQ (");
        let fetched = Fetched { sequence, uid: number_after(text, "UID "), flags, modseq };
        if fetched.flags.is_some() && !matches!(command, Command::Fetch { .. }) {
            // RFC 7162 section 3.1.
            assert_eq!(modseq.is_some(), self.has_condstore, "{text}");
        }
        self.view.fetched(&fetched);
        let Some(uid) = self.view.messages[sequence - 1].uid else { return };
        received.fetched.insert(uid);
        if let Some(flags) = fetched.flags {
            received.with_flags.insert(uid);
            effects.flags_at.extend(modseq.map(|modseq| ((uid, modseq), flags)));
        }
        if let Some(literal) = reply.literals.first() {
            let subject = literal.lines().find_map(|line| line.strip_prefix("Subject: "));
            effects.subjects.push((uid, subject.expect("every message has a subject").to_owned()));
        }
    }

    /// Notes what a command should have changed, and applies silent changes to the view.
    fn complete(
        &mut self,
        command: &Command,
        named: BTreeSet<u32>,
        is_ok: bool,
        received: &Received,
        effects: &mut Effects,
    ) {
        let code = |name: &str| {
            let find = |code: &String| code.strip_prefix(name).map(|rest| rest.trim_start().to_owned());
            received.codes.iter().find_map(find)
        };
        if !is_ok {
            match command {
                Command::Copy { .. } => assert!(code("EXPUNGEISSUED").is_some(), "{command:?} failed"),
                _ => panic!("{command:?} failed"),
            }
        }
        match command {
            Command::Append { subject, flags } => {
                let codes = code("APPENDUID").expect("APPEND returns the UID");
                let (uid_validity, uid) = codes.split_once(' ').expect("two numbers");
                effects.uid_validities.push(uid_validity.parse().expect("a number"));
                let added = AddedMessage::Appended { subject: subject.clone(), flags: flags.clone() };
                effects.added.insert(uid.parse().expect("a number"), added);
            }
            Command::Fetch { items, changed_since, .. } => {
                if items.contains("BODY[]") {
                    let flags = FlagSet::from(["\\Seen".to_owned()]);
                    let change = FlagChange { operation: FlagOperation::Add, flags };
                    effects.flag_changes = all_change(&named, &change, None);
                }
                let matched = received.fetched.intersection(&named).copied().collect();
                let key = changed_since.map_or(SearchKey::All, |modseq| SearchKey::ModSeq(modseq + 1));
                effects.selection = Some(Selection { named, matched, key });
            }
            Command::Search { key, is_uid } => {
                let numbers = received.search.as_ref().expect("SEARCH has a result");
                let uids = numbers.iter().filter_map(|&number| self.uid_of(number, *is_uid));
                let matched = uids.filter(|uid| named.contains(uid)).collect();
                effects.selection = Some(Selection { named, matched, key: key.clone() });
            }
            Command::Store { set, change, is_silent, unchanged_since } => {
                let numbers = code("MODIFIED").map(|set| numbers_of_set(&set)).unwrap_or_default();
                let uids = numbers.into_iter().filter_map(|number| self.uid_of(number, set.is_uid));
                effects.modified = uids.collect();
                effects.flag_changes = all_change(&named, change, *unchanged_since);
                if *is_silent {
                    for message in &mut self.view.messages {
                        let is_changed = |uid: &u32| {
                            named.contains(uid) && !effects.modified.contains(uid) && !received.with_flags.contains(uid)
                        };
                        if message.uid.as_ref().is_some_and(is_changed) {
                            message.flags = message.flags.as_ref().map(|flags| change.apply(flags));
                        }
                    }
                } else {
                    let matched = received.with_flags.intersection(&named).copied();
                    let matched = matched.chain(effects.modified.iter().copied()).collect();
                    effects.selection = Some(Selection { named, matched, key: SearchKey::All });
                }
            }
            Command::Expunge(_) => {
                effects.removed = named;
                effects.removes_only_deleted = true;
            }
            Command::Copy { mailbox, is_move, .. } => {
                let mut sources = Vec::new();
                if let Some(codes) = code("COPYUID") {
                    let codes: Vec<&str> = codes.split(' ').collect();
                    effects.uid_validities.push(codes[0].parse().expect("a number"));
                    sources = numbers_of_set(codes[1]);
                    let copies = numbers_of_set(codes[2]);
                    assert_eq!(sources.len(), copies.len(), "{codes:?}");
                    if *mailbox == INBOX {
                        let added = sources.iter().map(|&uid| AddedMessage::CopyOf(uid));
                        effects.added = copies.into_iter().zip(added).collect();
                    } else {
                        effects.archived = copies.len();
                    }
                }
                let matched: BTreeSet<u32> = sources.into_iter().collect();
                if *is_move {
                    effects.removed.clone_from(&matched);
                }
                effects.selection = Some(Selection { named, matched, key: SearchKey::All });
            }
            Command::Noop | Command::Idle | Command::Done | Command::Select | Command::Status => {}
        }
    }
}

fn all_change(
    uids: &BTreeSet<u32>,
    change: &FlagChange,
    unchanged_since: Option<u64>,
) -> BTreeMap<u32, ConditionalChange> {
    uids.iter().map(|&uid| (uid, ConditionalChange { change: change.clone(), unchanged_since })).collect()
}

/// Returns the response code of a reply without its brackets.
fn response_code(text: &str) -> Option<String> {
    let (_, rest) = text.split_once(" [")?;
    rest.split_once(']').map(|(code, _)| code.to_owned())
}

/// Notes the numbers of a mailbox.
fn note_numbers(text: &str, effects: &mut Effects) {
    effects.uid_validities.extend(number_after::<u32>(text, "UIDVALIDITY "));
    effects.next_uids.extend(number_after::<u32>(text, "UIDNEXT "));
    effects.highest_modseqs.extend(number_after::<u64>(text, "HIGHESTMODSEQ "));
}

/// Returns the number after a name.
fn number_after<T: std::str::FromStr>(text: &str, name: &str) -> Option<T> {
    let (_, rest) = text.split_once(name)?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// Returns the numbers of a set such as `1:3,5`.
fn numbers_of_set(set: &str) -> Vec<u32> {
    let number = |text: &str| text.parse::<u32>().expect("a number");
    let range = |text: &str| match text.split_once(':') {
        Some((from, to)) => number(from)..=number(to),
        None => number(text)..=number(text),
    };
    set.split(',').flat_map(range).collect()
}
