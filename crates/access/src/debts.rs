//! What failed logins cost: whoever has failed waits before the next try, longer every time. Debts are kept by client and by
//! user, so that neither one client that tries many names nor many clients that try one name get on quickly. They are
//! forgotten with time; the table is bounded.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::client::Client;

/// What one failure costs; every further one costs twice as much.
const FIRST: Duration = Duration::from_millis(200);
/// The most that is waited.
const LONGEST: Duration = Duration::from_secs(10);
/// How long it takes until one failure is forgotten.
const FORGIVEN_AFTER: Duration = Duration::from_secs(30);
/// The failures beyond which nothing gets worse.
const MOST: u32 = 12;
/// How many clients and names are remembered.
const MAX_DEBTORS: usize = 10_000;
/// How many may wait at the same time, in all and of one client.
const MAX_WAITING: usize = 128;
const MAX_WAITING_OF_CLIENT: usize = 8;

/// Who can have debts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Debtor {
    /// A client that tries passwords.
    Client(Client),
    /// A client that tries tokens. Nobody guesses one, so this is most likely a program with an old one, and those who log in
    /// from the same address do not pay for it.
    TokensOf(Client),
    /// A user's name, whether there is such a user or not.
    Name(Box<str>),
}

/// Who has failed, how often, and who waits.
#[derive(Default)]
pub(crate) struct Debts(Mutex<Books>);

#[derive(Default)]
struct Books {
    debts: HashMap<Debtor, Debt>,
    waiting: HashMap<Debtor, usize>,
    waiting_in_all: usize,
}

#[derive(Clone, Copy)]
struct Debt {
    failures: u32,
    since: Instant,
}

/// Too many wait already.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

/// One try to log in. Unless it is said to have succeeded it counts as failed when it ends, also when it is given up
/// halfway: who does not wait for the answer must not get on faster.
pub(crate) struct Attempt {
    debts: Arc<Debts>,
    client: Debtor,
    name: Option<Debtor>,
    has_succeeded: bool,
}

impl Debts {
    /// Begins a try with a password, when the time has come for it.
    pub(crate) async fn password(self: &Arc<Self>, client: Client, name: &str) -> Result<Attempt, TooMany> {
        self.attempt(Debtor::Client(client), Some(Debtor::Name(name.into()))).await
    }

    /// Begins a try with a token, when the time has come for it.
    pub(crate) async fn token(self: &Arc<Self>, client: Client) -> Result<Attempt, TooMany> {
        self.attempt(Debtor::TokensOf(client), None).await
    }

    async fn attempt(self: &Arc<Self>, client: Debtor, name: Option<Debtor>) -> Result<Attempt, TooMany> {
        let attempt = self.enter(client, name)?;
        let wait = self.books().owed(&attempt, Instant::now());
        if !wait.is_zero() {
            sleep(wait).await;
        }
        Ok(attempt)
    }

    fn enter(self: &Arc<Self>, client: Debtor, name: Option<Debtor>) -> Result<Attempt, TooMany> {
        let mut books = self.books();
        let of_client = books.waiting.get(&client).copied().unwrap_or(0);
        if books.waiting_in_all >= MAX_WAITING || of_client >= MAX_WAITING_OF_CLIENT {
            return Err(TooMany);
        }
        books.waiting.insert(client.clone(), of_client + 1);
        books.waiting_in_all += 1;
        Ok(Attempt { debts: self.clone(), client, name, has_succeeded: false })
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attempt {
    /// It was right. That pays for nothing that was wrong before.
    pub(crate) fn succeeded(mut self) {
        self.has_succeeded = true;
    }

    fn debtors(&self) -> impl Iterator<Item = &Debtor> {
        [&self.client].into_iter().chain(&self.name)
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let mut books = self.debts.books();
        books.leave(&self.client);
        if !self.has_succeeded {
            let now = Instant::now();
            self.debtors().for_each(|debtor| books.charge(debtor, now));
        }
    }
}

impl Books {
    /// How long a try has to wait: what the one of its debtors owes that owes the most.
    fn owed(&self, attempt: &Attempt, now: Instant) -> Duration {
        attempt
            .debtors()
            .filter_map(|debtor| self.debts.get(debtor))
            .map(|debt| debt.wait(now))
            .max()
            .unwrap_or_default()
    }

    fn leave(&mut self, client: &Debtor) {
        self.waiting_in_all -= 1;
        if let Some(of_client) = self.waiting.get_mut(client) {
            *of_client -= 1;
            if *of_client == 0 {
                self.waiting.remove(client);
            }
        }
    }

    fn charge(&mut self, debtor: &Debtor, now: Instant) {
        let debts = &mut self.debts;
        if debts.len() >= MAX_DEBTORS && !debts.contains_key(debtor) {
            debts.retain(|_, debt| debt.left(now) > 0);
            // Whoever has so many addresses or names has all the others forgotten, and each of them costs one failure.
            if debts.len() >= MAX_DEBTORS {
                debts.clear();
            }
        }
        let before = debts.get(debtor).map_or(0, |debt| debt.left(now));
        // The time that has passed since the last one counts anew: who goes on is not forgiven meanwhile.
        debts.insert(debtor.clone(), Debt { failures: (before + 1).min(MOST), since: now });
    }
}

impl Debt {
    /// The failures that are not forgotten yet.
    fn left(self, now: Instant) -> u32 {
        let elapsed = now.saturating_duration_since(self.since).as_secs();
        let forgiven = u32::try_from(elapsed / FORGIVEN_AFTER.as_secs()).unwrap_or(u32::MAX);
        self.failures.saturating_sub(forgiven)
    }

    fn wait(self, now: Instant) -> Duration {
        match self.left(now) {
            0 => Duration::ZERO,
            failures => (FIRST * (1 << (failures - 1))).min(LONGEST),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(last: u8) -> Client {
        Some([192, 0, 2, last].into()).into()
    }

    async fn fail(debts: &Arc<Debts>, client: Client, name: &str) -> u128 {
        let begun = Instant::now();
        drop(debts.password(client, name).await.unwrap());
        begun.elapsed().as_millis()
    }

    #[tokio::test(start_paused = true)]
    async fn every_failure_costs_twice_as_much_as_the_one_before() {
        let debts = Arc::new(Debts::default());
        let mut waits = Vec::new();
        for _ in 0..10 {
            waits.push(fail(&debts, client(1), "ann").await);
        }
        assert_eq!(waits, [0, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000]);
        // Neither another name from there nor the same name from elsewhere is any quicker, but others are.
        assert_eq!(fail(&debts, client(1), "bob").await, 10_000);
        assert_eq!(fail(&debts, client(2), "ann").await, 10_000);
        assert_eq!(fail(&debts, client(3), "carol").await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn old_tokens_are_no_burden_on_those_who_have_passwords() {
        let debts = Arc::new(Debts::default());
        for expected in [0, 200, 400] {
            let begun = Instant::now();
            drop(debts.token(client(1)).await.unwrap());
            assert_eq!(begun.elapsed().as_millis(), expected);
        }
        assert_eq!(fail(&debts, client(1), "ann").await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn success_pays_for_nothing_and_time_for_everything() {
        let debts = Arc::new(Debts::default());
        for _ in 0..3 {
            fail(&debts, client(1), "ann").await;
        }
        debts.password(client(1), "ann").await.unwrap().succeeded();
        assert_eq!(fail(&debts, client(1), "ann").await, 800);
        sleep(FORGIVEN_AFTER * 2).await;
        assert_eq!(fail(&debts, client(1), "ann").await, 400);
        sleep(FORGIVEN_AFTER * 20).await;
        assert_eq!(fail(&debts, client(1), "ann").await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_wait_for_the_answer_gets_on_no_faster() {
        let debts = Arc::new(Debts::default());
        for _ in 0..5 {
            let given_up = tokio::time::timeout(Duration::from_millis(1), debts.password(client(1), "ann")).await;
            drop(given_up);
        }
        assert_eq!(fail(&debts, client(1), "ann").await, 3200);
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_wait() {
        let debts = Arc::new(Debts::default());
        let mut waiting: Vec<Attempt> = Vec::new();
        for last in 0..16 {
            for _ in 0..MAX_WAITING_OF_CLIENT {
                waiting.push(debts.password(client(last), "ann").await.unwrap());
            }
            assert!(debts.password(client(last), "ann").await.is_err());
        }
        assert_eq!(waiting.len(), MAX_WAITING);
        assert!(debts.password(client(99), "bob").await.is_err());
        waiting.pop();
        assert!(debts.password(client(99), "bob").await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn the_books_have_an_end() {
        let debts = Arc::new(Debts::default());
        for number in 0..MAX_DEBTORS + 10 {
            drop(debts.enter(Debtor::Client(client(1)), Some(Debtor::Name(number.to_string().into()))));
        }
        assert!(debts.books().debts.len() <= MAX_DEBTORS);
    }
}
