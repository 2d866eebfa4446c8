//! Slows down guessing: after a failed login the next attempt waits, longer every time. Failures are counted by client and by
//! user name, so that neither one client that tries many names nor many clients that try one name get on quickly. Failures are
//! forgotten with time; the table is bounded.
//!
//! The attempts of one client take turns: each sees the failures of all before it, so many connections guess no faster than one.
//! Those of different clients for the same name do not, because a client could then keep the user out by waiting in front.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep};

use crate::client::Client;

/// The delay after one failure; every further one doubles it.
const FIRST_DELAY: Duration = Duration::from_millis(200);
/// The longest delay.
const MAX_DELAY: Duration = Duration::from_secs(10);
/// How long it takes until one failure is forgotten.
const FORGET_AFTER: Duration = Duration::from_secs(30);
/// The highest number of failures that is counted.
const MAX_FAILURES: u32 = 12;
/// How many clients and names are remembered.
const MAX_SUBJECTS: usize = 10_000;
/// How many attempts may be under way at the same time, in all and of one client.
const MAX_WAITING: usize = 128;
const MAX_WAITING_OF_CLIENT: usize = 8;
/// How long an attempt waits for its turn and its delay, if all before it fail. Clients would not wait much longer.
const MAX_WAIT: Duration = Duration::from_secs(25);

/// What failures are counted by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Subject {
    /// A client that tries passwords.
    Client(Client),
    /// A client that tries tokens. A token cannot be guessed, so this is most likely a program with an old one. Logins with
    /// passwords from the same address are not slowed down by it.
    TokensOf(Client),
    /// A user name, whether there is such a user or not.
    Name(Box<str>),
}

/// Counts failed logins and delays the next attempts.
#[derive(Default)]
pub(crate) struct LoginThrottle(Mutex<State>);

#[derive(Default)]
struct State {
    failures: HashMap<Subject, Failures>,
    queues: HashMap<Subject, Queue>,
    waiting_in_all: usize,
}

/// The attempts of one client that are under way.
struct Queue {
    waiting: usize,
    turn: Arc<Semaphore>,
}

#[derive(Clone, Copy)]
struct Failures {
    count: u32,
    since: Instant,
}

/// Too many attempts wait already.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

/// One attempt to log in. Unless it is reported as succeeded it counts as failed when it is dropped, also halfway: a client that
/// does not wait for the answer must not get on faster.
pub(crate) struct Attempt {
    throttle: Arc<LoginThrottle>,
    client: Subject,
    name: Option<Subject>,
    has_succeeded: bool,
    /// Released after the outcome is recorded, so that the next attempt of the client sees it.
    turn: Option<OwnedSemaphorePermit>,
}

impl LoginThrottle {
    /// Waits until a password may be tried. Returns `None` if `is_right` has been tried already and returned true.
    ///
    /// If there is nothing to wait for, `is_right` is called at once, under the lock of the throttle: it must be quick. So correct
    /// logins of a client without failures never queue.
    pub(crate) async fn password(
        self: &Arc<Self>,
        client: Client,
        name: &str,
        is_right: impl FnOnce() -> bool,
    ) -> Result<Option<Attempt>, TooMany> {
        self.attempt(Subject::Client(client), Some(Subject::Name(name.into())), is_right).await
    }

    /// Waits until a token may be tried. Otherwise like [`LoginThrottle::password`].
    pub(crate) async fn token(
        self: &Arc<Self>,
        client: Client,
        is_right: impl FnOnce() -> bool,
    ) -> Result<Option<Attempt>, TooMany> {
        self.attempt(Subject::TokensOf(client), None, is_right).await
    }

    async fn attempt(
        self: &Arc<Self>,
        client: Subject,
        name: Option<Subject>,
        is_right: impl FnOnce() -> bool,
    ) -> Result<Option<Attempt>, TooMany> {
        let Some((mut attempt, turn)) = self.enter(client, name, is_right)? else { return Ok(None) };
        // The semaphore is never closed.
        attempt.turn = turn.acquire_owned().await.ok();
        let delay = delay(self.state().failures(attempt.subjects(), Instant::now()));
        if !delay.is_zero() {
            sleep(delay).await;
        }
        Ok(Some(attempt))
    }

    /// Tries what can be tried at once, and otherwise joins the queue of the client, without a gap between the two.
    fn enter(
        self: &Arc<Self>,
        client: Subject,
        name: Option<Subject>,
        is_right: impl FnOnce() -> bool,
    ) -> Result<Option<(Attempt, Arc<Semaphore>)>, TooMany> {
        let (mut state, now) = (self.state(), Instant::now());
        let subjects = || [&client].into_iter().chain(&name);
        let is_free = !state.queues.contains_key(&client) && state.failures(subjects(), now) == 0;
        if is_free && is_right() {
            return Ok(None);
        }
        let of_client = state.queues.get(&client).map_or(0, |queue| queue.waiting);
        let failures = state.failures(subjects(), now);
        let wait: Duration = (failures..).map(delay).take(of_client + 1).sum();
        if state.waiting_in_all >= MAX_WAITING || of_client >= MAX_WAITING_OF_CLIENT || wait > MAX_WAIT {
            if is_free {
                // It was wrong, and there is no attempt to report that.
                subjects().for_each(|subject| state.record_failure(subject, now));
            }
            return Err(TooMany);
        }
        state.waiting_in_all += 1;
        let queue = state
            .queues
            .entry(client.clone())
            .or_insert_with(|| Queue { waiting: 0, turn: Arc::new(Semaphore::new(1)) });
        queue.waiting += 1;
        let turn = queue.turn.clone();
        let attempt = Attempt { throttle: self.clone(), client, name, has_succeeded: false, turn: None };
        Ok(Some((attempt, turn)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attempt {
    /// Reports a correct login. Earlier failures still count.
    pub(crate) fn succeeded(mut self) {
        self.has_succeeded = true;
    }

    fn subjects(&self) -> impl Iterator<Item = &Subject> {
        [&self.client].into_iter().chain(&self.name)
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let mut state = self.throttle.state();
        state.leave(&self.client);
        if !self.has_succeeded {
            let now = Instant::now();
            self.subjects().for_each(|subject| state.record_failure(subject, now));
        }
    }
}

impl State {
    /// The failures that delay an attempt: those of the subject that has the most.
    fn failures<'a>(&self, subjects: impl Iterator<Item = &'a Subject>, now: Instant) -> u32 {
        let failures = subjects.filter_map(|subject| self.failures.get(subject));
        failures.map(|failures| failures.left(now)).max().unwrap_or_default()
    }

    fn leave(&mut self, client: &Subject) {
        self.waiting_in_all -= 1;
        if let Some(queue) = self.queues.get_mut(client) {
            queue.waiting -= 1;
            if queue.waiting == 0 {
                self.queues.remove(client);
            }
        }
    }

    fn record_failure(&mut self, subject: &Subject, now: Instant) {
        let all = &mut self.failures;
        if all.len() >= MAX_SUBJECTS && !all.contains_key(subject) {
            all.retain(|_, failures| failures.left(now) > 0);
            // A client with that many addresses or names has all others forgotten, and each of them costs it one failure.
            if all.len() >= MAX_SUBJECTS {
                all.clear();
            }
        }
        let before = all.get(subject).map_or(0, |failures| failures.left(now));
        // The time since the last failure starts again: nothing is forgotten while failures go on.
        all.insert(subject.clone(), Failures { count: (before + 1).min(MAX_FAILURES), since: now });
    }
}

impl Failures {
    /// The failures that are not forgotten yet.
    fn left(self, now: Instant) -> u32 {
        let elapsed = now.saturating_duration_since(self.since).as_secs();
        let forgotten = u32::try_from(elapsed / FORGET_AFTER.as_secs()).unwrap_or(u32::MAX);
        self.count.saturating_sub(forgotten)
    }
}

/// How long an attempt waits after so many failures.
fn delay(failures: u32) -> Duration {
    match failures.min(MAX_FAILURES) {
        0 => Duration::ZERO,
        failures => (FIRST_DELAY * (1 << (failures - 1))).min(MAX_DELAY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(last: u8) -> Client {
        Some([192, 0, 2, last].into()).into()
    }

    async fn fail(throttle: &Arc<LoginThrottle>, client: Client, name: &str) -> u128 {
        let begun = Instant::now();
        drop(throttle.password(client, name, || false).await.unwrap());
        begun.elapsed().as_millis()
    }

    #[tokio::test(start_paused = true)]
    async fn every_failure_doubles_the_delay() {
        let throttle = Arc::new(LoginThrottle::default());
        let mut waits = Vec::new();
        for _ in 0..10 {
            waits.push(fail(&throttle, client(1), "ann").await);
        }
        assert_eq!(waits, [0, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000]);
        // Another name from the same client waits as long, and so does the same name from another client.
        assert_eq!(fail(&throttle, client(1), "bob").await, 10_000);
        assert_eq!(fail(&throttle, client(2), "ann").await, 10_000);
        assert_eq!(fail(&throttle, client(3), "carol").await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn unknown_tokens_do_not_delay_passwords() {
        let throttle = Arc::new(LoginThrottle::default());
        for expected in [0, 200, 400] {
            let begun = Instant::now();
            drop(throttle.token(client(1), || false).await.unwrap());
            assert_eq!(begun.elapsed().as_millis(), expected);
        }
        assert_eq!(fail(&throttle, client(1), "ann").await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_forgotten_by_time_and_not_by_success() {
        let throttle = Arc::new(LoginThrottle::default());
        for _ in 0..3 {
            fail(&throttle, client(1), "ann").await;
        }
        throttle.password(client(1), "ann", || true).await.unwrap().unwrap().succeeded();
        assert_eq!(fail(&throttle, client(1), "ann").await, 800);
        sleep(FORGET_AFTER * 2).await;
        assert_eq!(fail(&throttle, client(1), "ann").await, 400);
        sleep(FORGET_AFTER * 20).await;
        assert_eq!(fail(&throttle, client(1), "ann").await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn an_abandoned_attempt_counts_as_failed() {
        let throttle = Arc::new(LoginThrottle::default());
        for _ in 0..5 {
            let attempt = throttle.password(client(1), "ann", || false);
            drop(tokio::time::timeout(Duration::from_millis(1), attempt).await);
        }
        assert_eq!(fail(&throttle, client(1), "ann").await, 3200);
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_waiting_attempts_is_bounded() {
        let throttle = Arc::new(LoginThrottle::default());
        let mut waiting = Vec::new();
        let enter = |last| throttle.enter(Subject::Client(client(last)), Some(Subject::Name("ann".into())), || false);
        for last in 0..16 {
            for _ in 0..MAX_WAITING_OF_CLIENT {
                waiting.push(enter(last).unwrap());
            }
            assert!(enter(last).is_err());
        }
        assert_eq!(waiting.len(), MAX_WAITING);
        assert!(enter(99).is_err());
        // What needs no place is still possible, and a wrong guess without a place counts.
        assert!(throttle.password(client(98), "bob", || true).await.is_ok_and(|attempt| attempt.is_none()));
        waiting.clear();
        assert_eq!(fail(&throttle, client(99), "carol").await, 200);
        assert_eq!(fail(&throttle, client(98), "bob").await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn parallel_attempts_of_a_client_take_as_long_as_sequential_ones() {
        let throttle = Arc::new(LoginThrottle::default());
        let begun = Instant::now();
        let guesses: Vec<_> = (0..MAX_WAITING_OF_CLIENT)
            .map(|number| {
                let throttle = throttle.clone();
                tokio::spawn(async move { fail(&throttle, client(1), &number.to_string()).await })
            })
            .collect();
        for (guess, expected) in guesses.into_iter().zip([0, 200, 600, 1400, 3000, 6200, 12_600, 22_600]) {
            assert_eq!(guess.await.unwrap(), expected);
        }
        assert_eq!(begun.elapsed().as_millis(), 22_600);
    }

    #[tokio::test(start_paused = true)]
    async fn correct_logins_of_a_client_without_failures_never_queue() {
        let throttle = Arc::new(LoginThrottle::default());
        let log_in = || throttle.password(client(1), "ann", || true);
        for _ in 0..1000 {
            assert!(log_in().await.unwrap().is_none());
        }
        fail(&throttle, client(1), "ann").await;
        let begun = Instant::now();
        let attempt = log_in().await.unwrap();
        assert_eq!(
            (attempt.is_some(), begun.elapsed().as_millis()),
            (true, 200),
            "not compared before the delay is over"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_table_is_bounded() {
        let throttle = Arc::new(LoginThrottle::default());
        for number in 0..MAX_SUBJECTS + 10 {
            drop(throttle.enter(Subject::Client(client(1)), Some(Subject::Name(number.to_string().into())), || false));
        }
        assert!(throttle.state().failures.len() <= MAX_SUBJECTS);
    }
}
