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
    deliveries: usize,
}

impl RandomWalk {
    /// Starts a walk on one node or on several that share a store. The sessions use no extension, CONDSTORE from the start,
    /// and CONDSTORE from some command on.
    pub(crate) async fn start(seed: u64, nodes: Vec<TestNode>) -> Self {
        let mut random = Random::new(seed);
        let last = nodes.len() - 1;
        let mut open = async |name, node: usize, uses_condstore, extension: &[&str]| {
            let create = format!("CREATE {ARCHIVE}");
            let commands = [&["LOGIN bob x", &create], extension].concat();
            TestSession::open(name, nodes[node].connect(), uses_condstore, random.fork(), &commands).await
        };
        let sessions = [
            open("first", 0, false, &[]).await,
            open("second", last, true, &["ENABLE CONDSTORE"]).await,
            open("third", 0, true, &[]).await,
        ];
        let (contents, history) = (nodes[0].contents().await, History::default());
        Self { seed, rounds: 0, random, nodes, sessions, contents, history, archived: 0, deliveries: 0 }
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

    /// Runs one operation, or several of all clients at the same time.
    async fn round(&mut self) {
        let choice = self.random.below(12);
        let is_parallel = choice >= 6;
        let mut count = |session: usize| {
            if is_parallel { self.random.below(3) } else { usize::from(choice == session) }
        };
        let counts = [count(0), count(1), count(2)];
        let has_change = if is_parallel { !self.random.one_in(4) } else { choice >= 3 };
        let change = has_change.then(|| self.random_change());
        let [first, second, third] = &mut self.sessions;
        let other = async {
            match &change {
                Some((node, change)) => vec![self.nodes[*node].change(change, &self.contents).await],
                None => Vec::new(),
            }
        };
        let (first, second, third, other) = tokio::join!(
            first.perform_random(counts[0]),
            second.perform_random(counts[1]),
            third.perform_random(counts[2]),
            other
        );
        let effects = [first, second, third, other].concat();
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

    fn random_change(&mut self) -> (usize, OtherChange) {
        self.deliveries += 1;
        let subject = format!("delivery {}", self.deliveries);
        let node = self.random.below(self.nodes.len());
        let can_hold = self.nodes[node].can_hold_feed();
        (node, OtherChange::random(&mut self.random, &self.contents, can_hold, subject))
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

/// Prints the last replies if a test panics.
impl Drop for RandomWalk {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for session in &self.sessions {
                eprintln!("the {} session:", session.name);
                session.client.transcript().for_each(|line| eprintln!("  {line}"));
                let difference = self.contents.difference(&session.view);
                eprintln!("{}", difference.unwrap_or_else(|| "The session agrees with the store.".to_owned()));
            }
            eprintln!("in round {} of the walk with seed {}", self.rounds, self.seed);
        }
    }
}
