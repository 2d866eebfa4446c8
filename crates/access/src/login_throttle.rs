//! Slows down guessing: after a failed login the next attempt waits, longer every time. Failures are counted by client and by
//! user name, so that neither one client that tries many names nor many clients that try one name get on quickly. Failures are
//! forgotten with time; the table is bounded.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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
/// How many attempts may wait at the same time, in all and of one client.
const MAX_WAITING: usize = 128;
const MAX_WAITING_OF_CLIENT: usize = 8;

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
    waiting: HashMap<Subject, usize>,
    waiting_in_all: usize,
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
}

impl LoginThrottle {
    /// Waits until a password may be tried.
    pub(crate) async fn password(self: &Arc<Self>, client: Client, name: &str) -> Result<Attempt, TooMany> {
        self.attempt(Subject::Client(client), Some(Subject::Name(name.into()))).await
    }

    /// Waits until a token may be tried.
    pub(crate) async fn token(self: &Arc<Self>, client: Client) -> Result<Attempt, TooMany> {
        self.attempt(Subject::TokensOf(client), None).await
    }

    async fn attempt(self: &Arc<Self>, client: Subject, name: Option<Subject>) -> Result<Attempt, TooMany> {
        let attempt = self.enter(client, name)?;
        let delay = self.state().delay(&attempt, Instant::now());
        if !delay.is_zero() {
            sleep(delay).await;
        }
        Ok(attempt)
    }

    fn enter(self: &Arc<Self>, client: Subject, name: Option<Subject>) -> Result<Attempt, TooMany> {
        let mut state = self.state();
        let of_client = state.waiting.get(&client).copied().unwrap_or(0);
        if state.waiting_in_all >= MAX_WAITING || of_client >= MAX_WAITING_OF_CLIENT {
            return Err(TooMany);
        }
        state.waiting.insert(client.clone(), of_client + 1);
        state.waiting_in_all += 1;
        Ok(Attempt { throttle: self.clone(), client, name, has_succeeded: false })
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
    /// How long an attempt has to wait: the longest delay of its subjects.
    fn delay(&self, attempt: &Attempt, now: Instant) -> Duration {
        attempt
            .subjects()
            .filter_map(|subject| self.failures.get(subject))
            .map(|failures| failures.delay(now))
            .max()
            .unwrap_or_default()
    }

    fn leave(&mut self, client: &Subject) {
        self.waiting_in_all -= 1;
        if let Some(of_client) = self.waiting.get_mut(client) {
            *of_client -= 1;
            if *of_client == 0 {
                self.waiting.remove(client);
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

    fn delay(self, now: Instant) -> Duration {
        match self.left(now) {
            0 => Duration::ZERO,
            failures => (FIRST_DELAY * (1 << (failures - 1))).min(MAX_DELAY),
        }
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
        drop(throttle.password(client, name).await.unwrap());
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
            drop(throttle.token(client(1)).await.unwrap());
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
        throttle.password(client(1), "ann").await.unwrap().succeeded();
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
            let abandoned = tokio::time::timeout(Duration::from_millis(1), throttle.password(client(1), "ann")).await;
            drop(abandoned);
        }
        assert_eq!(fail(&throttle, client(1), "ann").await, 3200);
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_waiting_attempts_is_bounded() {
        let throttle = Arc::new(LoginThrottle::default());
        let mut waiting: Vec<Attempt> = Vec::new();
        for last in 0..16 {
            for _ in 0..MAX_WAITING_OF_CLIENT {
                waiting.push(throttle.password(client(last), "ann").await.unwrap());
            }
            assert!(throttle.password(client(last), "ann").await.is_err());
        }
        assert_eq!(waiting.len(), MAX_WAITING);
        assert!(throttle.password(client(99), "bob").await.is_err());
        waiting.pop();
        assert!(throttle.password(client(99), "bob").await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn the_table_is_bounded() {
        let throttle = Arc::new(LoginThrottle::default());
        for number in 0..MAX_SUBJECTS + 10 {
            drop(throttle.enter(Subject::Client(client(1)), Some(Subject::Name(number.to_string().into()))));
        }
        assert!(throttle.state().failures.len() <= MAX_SUBJECTS);
    }
}
