//! A random walk: rounds of operations of three sessions and other clients, some at the same time, and checks after each.

use crate::command::{ARCHIVE, Command};
use crate::contents::{Contents, History, Round};
use crate::node::{OtherChange, TestNode};
use crate::random::Random;
use crate::session::{Effects, TestSession};

/// The number of messages that the mailbox may have. Older ones are evicted.
pub(crate) const CAP: usize = 30;
/// The number of rounds between two comparisons of all sessions.
const ROUNDS_BETWEEN_COMPARISONS: usize = 15;

/// A walk with three sessions of one mailbox. Its seed determines the operations, except for those that depend on which of
/// several operations at the same time was first.
pub(crate) struct RandomWalk {
    seed: u64,
    rounds: usize,
    random: Random,
    nodes: Vec<TestNode>,
    sessions: [TestSession; 3],
    contents: Contents,
    history: History,
    /// The number of messages in the other mailbox.
    archived: usize,
    last_subject: usize,
}

impl RandomWalk {
    /// Starts a walk on one node or on several that share a store. The sessions use no extension, CONDSTORE from the start,
    /// and CONDSTORE from some command on.
    pub(crate) async fn start(seed: u64, nodes: Vec<TestNode>) -> Self {
        let last = nodes.len() - 1;
        let open = async |node: usize, uses_condstore, extension: &[&str]| {
            let create = format!("CREATE {ARCHIVE}");
            let commands = [&["LOGIN bob x", &create], extension].concat();
            TestSession::open(nodes[node].connect(), node, uses_condstore, &commands).await
        };
        let sessions =
            [open(0, false, &[]).await, open(last, true, &["ENABLE CONDSTORE"]).await, open(0, true, &[]).await];
        let contents = nodes[0].contents().await;
        let (random, history) = (Random::new(seed), History::default());
        Self { seed, rounds: 0, random, nodes, sessions, contents, history, archived: 0, last_subject: 0 }
    }

    pub(crate) async fn run(&mut self, rounds: usize) {
        for _ in 0..rounds {
            self.rounds += 1;
            self.round().await;
            if self.rounds.is_multiple_of(ROUNDS_BETWEEN_COMPARISONS) {
                self.compare_sessions().await;
            }
        }
        self.finish().await;
    }

    /// Runs one operation, or several at the same time.
    async fn round(&mut self) {
        let choice = self.random.below(12);
        let is_chosen = |random: &mut Random, actor: usize| choice == actor || (choice >= 6 && !random.one_in(4));
        let mut commands = [const { None }; 3];
        for (index, command) in commands.iter_mut().enumerate() {
            *command = is_chosen(&mut self.random, index).then(|| self.random_command(index)).flatten();
        }
        let change = (is_chosen(&mut self.random, 3) || choice == 4 || choice == 5).then(|| self.random_change());
        let [first, second, third] = &mut self.sessions;
        let [first_command, second_command, third_command] = &commands;
        let other = async {
            let (node, change) = change.as_ref()?;
            Some(self.nodes[*node].change(change, &self.contents).await)
        };
        let (first, second, third, other) = tokio::join!(
            perform(first, first_command.as_ref()),
            perform(second, second_command.as_ref()),
            perform(third, third_command.as_ref()),
            other
        );
        let effects: Vec<Effects> = [first, second, third, other].into_iter().flatten().collect();
        let round = Round { is_single: effects.len() == 1, is_shared: self.is_shared(), cap: CAP };
        self.check(&effects, round).await;
    }

    /// Compares the store with the effects of operations.
    async fn check(&mut self, effects: &[Effects], round: Round) {
        let contents = self.nodes[0].contents().await;
        self.history.check_round(&self.contents, &contents, effects, round);
        self.archived += effects.iter().map(|effects| effects.archived).sum::<usize>();
        self.contents = contents;
    }

    /// Returns whether the changes of a session arrive in the others later.
    fn is_shared(&self) -> bool {
        self.nodes[0].mailroom.is_shared()
    }

    fn random_command(&mut self, session: usize) -> Option<Command> {
        let subject = self.next_subject();
        let TestSession { view, uses_condstore, .. } = &self.sessions[session];
        if self.sessions[session].is_idling() {
            return self.random.one_in(2).then_some(Command::Done);
        }
        Some(Command::random(&mut self.random, view, *uses_condstore, subject))
    }

    fn random_change(&mut self) -> (usize, OtherChange) {
        let subject = self.next_subject();
        let node = self.random.below(self.nodes.len());
        let can_hold = self.nodes[node].can_hold_feed();
        (node, OtherChange::random(&mut self.random, &self.contents, can_hold, subject))
    }

    fn next_subject(&mut self) -> String {
        self.last_subject += 1;
        format!("message {}", self.last_subject)
    }

    /// Brings all sessions up to date. If the store is not shared, a NOOP is enough. Otherwise changes arrive later, so the sessions
    /// wait for them in IDLE.
    async fn compare_sessions(&mut self) {
        for node in &self.nodes {
            node.release_feed().await;
        }
        let mut effects = Vec::new();
        let is_shared = self.is_shared();
        for session in &mut self.sessions {
            if session.is_idling() {
                effects.push(session.wait_for(&self.contents).await);
            } else {
                effects.push(session.perform(&Command::Noop).await);
                if is_shared && self.contents.difference(&session.view).is_some() {
                    effects.push(session.perform(&Command::Idle).await);
                    effects.push(session.wait_for(&self.contents).await);
                    effects.push(session.perform(&Command::Done).await);
                }
            }
            assert_eq!(self.contents.difference(&session.view), None);
        }
        self.check(&effects, Round { is_single: false, is_shared, cap: CAP }).await;
    }

    /// Compares everything that the sessions know with the store.
    async fn finish(&mut self) {
        self.compare_sessions().await;
        for session in &mut self.sessions {
            if session.is_idling() {
                session.perform(&Command::Done).await;
            }
            let has_modseq = session.uses_condstore;
            if !self.contents.messages.is_empty() {
                session.fetch_all(has_modseq).await;
            }
            self.contents.assert_equals(&session.view, has_modseq);
        }
        let node = &self.nodes[0];
        let archive = node.mailbox().in_folder(ARCHIVE).unwrap();
        assert_eq!(Contents::read(&node.mailroom, &archive).await.messages.len(), self.archived.min(CAP));
    }
}

async fn perform(session: &mut TestSession, command: Option<&Command>) -> Option<Effects> {
    match command {
        Some(command) => Some(session.perform(command).await),
        None => None,
    }
}

/// Prints the last replies if a test panics.
impl Drop for RandomWalk {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for (index, session) in self.sessions.iter().enumerate() {
                eprintln!("session {index} on node {}:", session.node);
                session.client.transcript().for_each(|line| eprintln!("  {line}"));
                let difference = self.contents.difference(&session.view);
                eprintln!("{}", difference.unwrap_or_else(|| "The session agrees with the store.".to_owned()));
            }
            eprintln!("in round {} of the walk with seed {}", self.rounds, self.seed);
        }
    }
}
