//! Slows down password guessing: after a failed login the next attempt is delayed, longer every time. Failures are
//! counted by client and by user name, so that neither one client that tries many names nor many clients that try one
//! name are fast. Failures are forgotten with time, and the table is bounded.
//!
//! Attempts of one client for one name run one after another. Each sees the failures of all before it, so guesses on
//! many connections are no faster than on one. Attempts of other clients, or for other names, do not wait for them: a
//! program with an old password must not lock out the other programs on its machine.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};

use crate::client::Client;

/// The delay after one failure; every further one doubles it.
const FIRST_DELAY: Duration = Duration::from_millis(200);
/// The maximum delay.
const MAX_DELAY: Duration = Duration::from_secs(10);
/// The time after which one failure is forgotten.
const FORGET_AFTER: Duration = Duration::from_secs(30);
/// The maximum number of failures that is counted.
const MAX_FAILURES: u32 = 12;
/// The maximum number of clients and names in the table.
const MAX_SUBJECTS: usize = 10_000;
/// The maximum number of concurrent attempts of clients with failures, in total and per client.
const MAX_WAITING: usize = 128;
const MAX_WAITING_PER_CLIENT: usize = 8;
/// The same limits for clients without failures, so that attackers cannot use up their slots.
const MAX_WAITING_WITHOUT_FAILURES: usize = 1024;
const MAX_WAITING_PER_CLIENT_WITHOUT_FAILURES: usize = 64;
/// The maximum time that an attempt waits in its queue. Clients would not wait much longer.
const MAX_WAIT: Duration = Duration::from_secs(25);

/// What failures are counted by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Subject {
    /// A client that tries passwords.
    PasswordClient(Client),
    /// A client that tries tokens. A token cannot be guessed, so this is most likely a program with an old one. It does
    /// not delay logins with passwords from the same address.
    TokenClient(Client),
    /// A client that returns from the identity provider with an authorization code.
    CodeClient(Client),
    /// A user name, whether the user exists or not.
    Name(Box<str>),
}

/// Counts failed logins and delays the next attempts.
#[derive(Default)]
pub(crate) struct LoginThrottle(Mutex<State>);

#[derive(Default)]
struct State {
    failures: HashMap<Subject, Failures>,
    queues: HashMap<QueueKey, Queue>,
    waiting_per_client: HashMap<Subject, usize>,
    total_waiting: usize,
}

/// The client and the name.
type QueueKey = (Subject, Option<Subject>);

/// The running attempts of one client for one name.
struct Queue {
    waiting: usize,
    semaphore: Arc<Semaphore>,
}

#[derive(Clone, Copy)]
struct Failures {
    count: u32,
    since: Instant,
}

/// Too many attempts are waiting.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooManyAttempts;

/// One login attempt. Once the password may have been compared, the attempt counts as failed when it is dropped, unless
/// it was reported as successful. An attempt that is dropped while it waits does not count: nothing was learned by it.
pub(crate) struct Attempt {
    throttle: Arc<LoginThrottle>,
    key: QueueKey,
    /// True once the password may have been compared.
    is_compared: bool,
    has_succeeded: bool,
    /// Released after the result is recorded, so that the next attempt of the client sees it.
    permit: Option<OwnedSemaphorePermit>,
}

impl LoginThrottle {
    /// Waits until a password may be tried. Returns `None` if `is_correct` was already called and returned true.
    ///
    /// If there is nothing to wait for, `is_correct` is called at once, under the lock of the throttle, so it must be
    /// quick. Correct logins of a client without failures therefore never queue. `is_correct` returns `None` if there
    /// is nothing that can be compared quickly.
    pub(crate) async fn begin_password_attempt(
        self: &Arc<Self>,
        client: Client,
        name: &str,
        is_correct: impl FnOnce() -> Option<bool>,
    ) -> Result<Option<Attempt>, TooManyAttempts> {
        self.begin_attempt(Subject::PasswordClient(client), Some(Subject::Name(name.into())), is_correct).await
    }

    /// Waits until a token may be tried. Otherwise like [`LoginThrottle::begin_password_attempt`].
    pub(crate) async fn begin_token_attempt(
        self: &Arc<Self>,
        client: Client,
        is_correct: impl FnOnce() -> Option<bool>,
    ) -> Result<Option<Attempt>, TooManyAttempts> {
        self.begin_attempt(Subject::TokenClient(client), None, is_correct).await
    }

    /// Waits until an authorization code may be sent to the identity provider.
    pub(crate) async fn begin_code_attempt(self: &Arc<Self>, client: Client) -> Result<Attempt, TooManyAttempts> {
        self.begin_attempt(Subject::CodeClient(client), None, || None).await?.ok_or(TooManyAttempts)
    }

    async fn begin_attempt(
        self: &Arc<Self>,
        client: Subject,
        name: Option<Subject>,
        is_correct: impl FnOnce() -> Option<bool>,
    ) -> Result<Option<Attempt>, TooManyAttempts> {
        let Some((mut attempt, semaphore)) = self.enter(client, name, is_correct)? else { return Ok(None) };
        // The semaphore is never closed.
        attempt.permit = timeout(MAX_WAIT, semaphore.acquire_owned()).await.map_err(|_| TooManyAttempts)?.ok();
        let delay = delay(self.0.lock().failures(attempt.subjects(), Instant::now()));
        if !delay.is_zero() {
            sleep(delay).await;
        }
        attempt.is_compared = true;
        Ok(Some(attempt))
    }

    /// Compares at once if possible, and otherwise joins the queue, atomically.
    fn enter(
        self: &Arc<Self>,
        client: Subject,
        name: Option<Subject>,
        is_correct: impl FnOnce() -> Option<bool>,
    ) -> Result<Option<(Attempt, Arc<Semaphore>)>, TooManyAttempts> {
        let (mut state, now) = (self.0.lock(), Instant::now());
        let key = (client, name);
        let failures = state.failures(subjects(&key), now);
        let can_compare_now = failures == 0 && !state.queues.contains_key(&key);
        let comparison = if can_compare_now { is_correct() } else { None };
        if comparison == Some(true) {
            return Ok(None);
        }
        if state.is_full(&key, failures) {
            if comparison.is_some() {
                // The guess was wrong, and there is no attempt that reports it.
                subjects(&key).for_each(|subject| state.record_failure(subject, now));
            }
            return Err(TooManyAttempts);
        }
        let semaphore = state.join(&key);
        let attempt = Attempt {
            throttle: self.clone(),
            key,
            is_compared: comparison.is_some(),
            has_succeeded: false,
            permit: None,
        };
        Ok(Some((attempt, semaphore)))
    }
}

impl Attempt {
    /// Reports a correct login. Earlier failures still count.
    pub(crate) fn succeeded(mut self) {
        self.has_succeeded = true;
    }

    fn subjects(&self) -> impl Iterator<Item = &Subject> {
        subjects(&self.key)
    }
}

fn subjects(key: &QueueKey) -> impl Iterator<Item = &Subject> {
    [&key.0].into_iter().chain(&key.1)
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let mut state = self.throttle.0.lock();
        state.leave(&self.key);
        if self.is_compared && !self.has_succeeded {
            let now = Instant::now();
            self.subjects().for_each(|subject| state.record_failure(subject, now));
        }
    }
}

impl State {
    /// Returns the number of failures that delays an attempt: the highest of its subjects.
    fn failures<'a>(&self, subjects: impl Iterator<Item = &'a Subject>, now: Instant) -> u32 {
        let failures = subjects.filter_map(|subject| self.failures.get(subject));
        failures.map(|failures| failures.remaining(now)).max().unwrap_or_default()
    }

    /// Returns true if there is no slot for one more attempt, or if it would wait too long if all before it failed.
    fn is_full(&self, key: &QueueKey, failures: u32) -> bool {
        let waiting_of_client = self.waiting_per_client.get(&key.0).copied().unwrap_or_default();
        if failures == 0 {
            return self.total_waiting >= MAX_WAITING_WITHOUT_FAILURES
                || waiting_of_client >= MAX_WAITING_PER_CLIENT_WITHOUT_FAILURES;
        }
        let waiting_before = self.queues.get(key).map_or(0, |queue| queue.waiting);
        let wait: Duration = (failures..).map(delay).take(waiting_before + 1).sum();
        self.total_waiting >= MAX_WAITING || waiting_of_client >= MAX_WAITING_PER_CLIENT || wait > MAX_WAIT
    }

    fn join(&mut self, key: &QueueKey) -> Arc<Semaphore> {
        self.total_waiting += 1;
        *self.waiting_per_client.entry(key.0.clone()).or_default() += 1;
        let new = || Queue { waiting: 0, semaphore: Arc::new(Semaphore::new(1)) };
        let queue = self.queues.entry(key.clone()).or_insert_with(new);
        queue.waiting += 1;
        queue.semaphore.clone()
    }

    fn leave(&mut self, key: &QueueKey) {
        self.total_waiting -= 1;
        if let Some(waiting_of_client) = self.waiting_per_client.get_mut(&key.0) {
            *waiting_of_client -= 1;
            if *waiting_of_client == 0 {
                self.waiting_per_client.remove(&key.0);
            }
        }
        if let Some(queue) = self.queues.get_mut(key) {
            queue.waiting -= 1;
            if queue.waiting == 0 {
                self.queues.remove(key);
            }
        }
    }

    fn record_failure(&mut self, subject: &Subject, now: Instant) {
        let table = &mut self.failures;
        if table.len() >= MAX_SUBJECTS && !table.contains_key(subject) {
            table.retain(|_, failures| failures.remaining(now) > 0);
            // A client with that many addresses or names can clear the table, but each of them costs it one failure.
            if table.len() >= MAX_SUBJECTS {
                table.clear();
            }
        }
        let earlier = table.get(subject).map_or(0, |failures| failures.remaining(now));
        // The time since the last failure starts again: nothing is forgotten while failures continue.
        table.insert(subject.clone(), Failures { count: (earlier + 1).min(MAX_FAILURES), since: now });
    }
}

impl Failures {
    /// Returns the failures that are not yet forgotten.
    fn remaining(self, now: Instant) -> u32 {
        let elapsed = now.saturating_duration_since(self.since).as_secs();
        let forgotten = u32::try_from(elapsed / FORGET_AFTER.as_secs()).unwrap_or(u32::MAX);
        self.count.saturating_sub(forgotten)
    }
}

/// Returns the delay of an attempt after this number of failures.
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
        let started = Instant::now();
        drop(throttle.begin_password_attempt(client, name, || Some(false)).await.unwrap());
        started.elapsed().as_millis()
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
            let started = Instant::now();
            drop(throttle.begin_token_attempt(client(1), || Some(false)).await.unwrap());
            assert_eq!(started.elapsed().as_millis(), expected);
        }
        assert_eq!(fail(&throttle, client(1), "ann").await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_forgotten_by_time_and_not_by_success() {
        let throttle = Arc::new(LoginThrottle::default());
        for _ in 0..3 {
            fail(&throttle, client(1), "ann").await;
        }
        throttle.begin_password_attempt(client(1), "ann", || Some(true)).await.unwrap().unwrap().succeeded();
        assert_eq!(fail(&throttle, client(1), "ann").await, 800);
        sleep(FORGET_AFTER * 2).await;
        assert_eq!(fail(&throttle, client(1), "ann").await, 400);
        sleep(FORGET_AFTER * 20).await;
        assert_eq!(fail(&throttle, client(1), "ann").await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_counts_once_it_may_have_been_compared() {
        let throttle = Arc::new(LoginThrottle::default());
        // The first attempt is compared at once, the others are dropped while they wait.
        for _ in 0..5 {
            let attempt = throttle.begin_password_attempt(client(1), "ann", || Some(false));
            drop(timeout(Duration::from_millis(1), attempt).await);
        }
        assert_eq!(fail(&throttle, client(1), "ann").await, 200);
        // An attempt that is dropped after its delay may have been compared.
        drop(throttle.begin_password_attempt(client(1), "ann", || None).await.unwrap());
        assert_eq!(fail(&throttle, client(1), "ann").await, 800);
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_waiting_attempts_is_bounded() {
        let throttle = Arc::new(LoginThrottle::default());
        let enter = |last: u8, name: &str, comparison: Option<bool>| {
            throttle.enter(Subject::PasswordClient(client(last)), Some(Subject::Name(name.into())), || comparison)
        };
        for last in 0..20 {
            fail(&throttle, client(last), &last.to_string()).await;
        }
        let mut waiting = Vec::new();
        for last in 0..16 {
            for number in 0..MAX_WAITING_PER_CLIENT {
                waiting.push(enter(last, &format!("{last} {number}"), None).ok().flatten().unwrap());
            }
            assert!(enter(last, "more", None).is_err());
        }
        assert_eq!(waiting.len(), MAX_WAITING);
        assert!(enter(19, "19", None).is_err());
        // Clients without failures have their own slots.
        for number in 0..MAX_WAITING_PER_CLIENT_WITHOUT_FAILURES {
            waiting.push(enter(99, &format!("free {number}"), None).ok().flatten().unwrap());
        }
        // An attempt that needs no slot is still possible, and a wrong guess without a slot counts.
        assert!(enter(99, "right", Some(true)).is_ok_and(|attempt| attempt.is_none()));
        assert!(enter(99, "wrong", Some(false)).is_err());
        waiting.clear();
        assert_eq!(fail(&throttle, client(99), "carol").await, 200);
    }

    #[tokio::test(start_paused = true)]
    async fn parallel_attempts_for_a_name_take_as_long_as_sequential_ones() {
        let throttle = Arc::new(LoginThrottle::default());
        let started = Instant::now();
        let guesses: Vec<_> = (0..8)
            .map(|_| {
                let throttle = throttle.clone();
                tokio::spawn(async move { fail(&throttle, client(1), "ann").await })
            })
            .collect();
        for (guess, expected) in guesses.into_iter().zip([0, 200, 600, 1400, 3000, 6200, 12_600, 22_600]) {
            assert_eq!(guess.await.unwrap(), expected);
        }
        assert_eq!(started.elapsed().as_millis(), 22_600);
    }

    #[tokio::test(start_paused = true)]
    async fn a_program_with_an_old_password_does_not_lock_out_others_at_its_address() {
        let throttle = Arc::new(LoginThrottle::default());
        let old = throttle.clone();
        let retries = tokio::spawn(async move {
            for _ in 0..20 {
                fail(&old, client(1), "old").await;
            }
        });
        for _ in 0..10 {
            sleep(Duration::from_secs(7)).await;
            let attempt = throttle.begin_password_attempt(client(1), "app", || Some(true)).await.unwrap();
            attempt.expect("it waits, because the client has failures").succeeded();
        }
        retries.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn correct_logins_of_a_client_without_failures_never_queue() {
        let throttle = Arc::new(LoginThrottle::default());
        let log_in = || throttle.begin_password_attempt(client(1), "ann", || Some(true));
        for _ in 0..1000 {
            assert!(log_in().await.unwrap().is_none());
        }
        fail(&throttle, client(1), "ann").await;
        let started = Instant::now();
        let attempt = log_in().await.unwrap();
        assert_eq!(
            (attempt.is_some(), started.elapsed().as_millis()),
            (true, 200),
            "not compared before the delay is over"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_table_is_bounded() {
        let throttle = Arc::new(LoginThrottle::default());
        for number in 0..MAX_SUBJECTS + 10 {
            drop(throttle.enter(
                Subject::PasswordClient(client(1)),
                Some(Subject::Name(number.to_string().into())),
                || Some(false),
            ));
        }
        assert!(throttle.0.lock().failures.len() <= MAX_SUBJECTS);
    }
}
