//! What all protocols share to check logins: the keeper, which has the users, the tokens and the throttle for failed logins,
//! and the log of denials. It exists without users and tokens too: `smtp.credentials` and `pop3.credentials` are throttled by it.
//! How credentials are requested, and what is answered, is each protocol's own.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt::{self, Display};
use std::mem;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::{Authenticator, Client, Denied, Settings};

/// The time in which one client is told of so often.
const LOG_PERIOD: Duration = Duration::from_mins(1);
/// How many lines of one client there are in that time; what is beyond is counted, and told with the next line or by the end
/// of the time.
const MAX_LINES_PER_CLIENT: u32 = 20;
/// How many clients are remembered; all others are as one.
const MAX_CLIENTS: usize = 4096;
/// How many clients are told of by themselves at a time when it comes to what was left out.
const MAX_REPORTED_CLIENTS: usize = 20;
/// The longest description of what was asked, in characters.
const MAX_REQUEST_CHARS: usize = 200;

/// The keeper, and the log of denials.
pub struct AuthService {
    /// Checks logins.
    pub authenticator: Authenticator,
    log_counts: Mutex<HashMap<LogKey, LogCount>>,
}

/// Whom lines are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum LogKey {
    Client(Client),
    /// All who came when there were too many to be remembered.
    Others,
}

/// Its files hold secrets, so only that it is there is shown.
impl fmt::Debug for AuthService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locks").finish_non_exhaustive()
    }
}

/// What was told of a client.
struct LogCount {
    since: Instant,
    lines: u32,
    suppressed: u64,
}

impl AuthService {
    /// Reads the files of users and tokens. The error is a sentence for the operator.
    pub fn open(settings: Settings) -> Result<Arc<Self>, String> {
        Ok(Arc::new(Self { authenticator: Authenticator::open(settings)?, log_counts: Mutex::default() }))
    }

    /// Whether users or tokens are configured, so that anonymous requests are refused.
    pub fn is_enabled(&self) -> bool {
        self.authenticator.has_accounts()
    }

    /// Logs a denial, unless there are too many of the same client.
    pub fn log_denial(&self, protocol: &str, ip: Option<IpAddr>, asked: &dyn Display, denied: &Denied) {
        let Some(untold) = self.count_line(ip.into(), Instant::now()) else { return };
        let client: &dyn Display = ip.as_ref().map_or(&"unix", |ip| ip);
        let asked: String = asked.to_string().chars().take(MAX_REQUEST_CHARS).collect();
        tracing::warn!(
            protocol,
            %client,
            asked,
            why = denied.reason.as_str(),
            user = denied.name.as_deref(),
            untold = (untold > 0).then_some(untold),
            "denied"
        );
    }

    /// Tells in time of what was left out, for as long as the server runs.
    pub async fn log_suppressed_periodically(&self) {
        loop {
            tokio::time::sleep(LOG_PERIOD).await;
            self.log_suppressed();
        }
    }

    /// Tells of the denials that had no line and have not been told of since.
    pub fn log_suppressed(&self) {
        let mut left_out = self.take_suppressed(Instant::now());
        left_out.sort_by_key(|(who, untold)| (matches!(who, LogKey::Others), Reverse(*untold)));
        let ones = left_out.iter().take_while(|(who, _)| *who != LogKey::Others).take(MAX_REPORTED_CLIENTS).count();
        let others: u64 = left_out.split_off(ones).iter().map(|(_, untold)| untold).sum();
        for (who, untold) in left_out {
            if let LogKey::Client(client) = who {
                tracing::warn!(%client, untold, "denials left out");
            }
        }
        if others > 0 {
            tracing::warn!(untold = others, "denials left out of further clients");
        }
    }

    /// Whether there may be one more line about a client and, if so, how many there were not since the last one.
    fn count_line(&self, client: Client, now: Instant) -> Option<u64> {
        let mut all = self.log_counts();
        let one = LogKey::Client(client);
        let who = if all.len() >= MAX_CLIENTS && !all.contains_key(&one) { LogKey::Others } else { one };
        let told = all.entry(who).or_insert(LogCount { since: now, lines: 0, suppressed: 0 });
        if told.is_expired(now) {
            (told.since, told.lines) = (now, 0);
        }
        if told.lines >= MAX_LINES_PER_CLIENT {
            told.suppressed += 1;
            return None;
        }
        told.lines += 1;
        // What was left out of many stands in no line of one of them.
        Some(if who == LogKey::Others { 0 } else { mem::take(&mut told.suppressed) })
    }

    /// How many lines there were not, and of whom. Those of whom there was none for a while are forgotten.
    fn take_suppressed(&self, now: Instant) -> Vec<(LogKey, u64)> {
        let mut all = self.log_counts();
        let untold = all.iter_mut().map(|(who, told)| (*who, mem::take(&mut told.suppressed)));
        let left_out = untold.filter(|(_, untold)| *untold > 0).collect();
        all.retain(|_, told| !told.is_expired(now));
        left_out
    }

    fn log_counts(&self) -> MutexGuard<'_, HashMap<LogKey, LogCount>> {
        self.log_counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogCount {
    fn is_expired(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= LOG_PERIOD
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn locks() -> Arc<AuthService> {
        let tokens = Some(PathBuf::from("/nonexistent/tokens.toml"));
        AuthService::open(Settings { tokens, ..Settings::default() }).unwrap()
    }

    #[test]
    fn what_was_left_out_is_told_once_whoever_it_was() {
        let (locks, now) = (locks(), Instant::now());
        let client =
            |number: usize| Client::from(Some(std::net::Ipv4Addr::from_bits(u32::try_from(number).unwrap()).into()));
        let burst = |number| (0..30).filter(|_| locks.count_line(client(number), now).is_some()).count();
        assert_eq!(burst(0), 20);
        assert_eq!(locks.take_suppressed(now), [(LogKey::Client(client(0)), 10)]);
        assert_eq!(locks.take_suppressed(now), []);
        for number in 0..MAX_CLIENTS {
            locks.count_line(client(number), now);
        }
        assert_eq!((burst(MAX_CLIENTS), burst(MAX_CLIENTS + 1)), (20, 0));
        let mut left_out = locks.take_suppressed(now);
        left_out.sort_by_key(|(_, untold)| *untold);
        assert_eq!(left_out, [(LogKey::Client(client(0)), 1), (LogKey::Others, 40)]);
        // There is room again, and nobody is among the others.
        assert_eq!(locks.take_suppressed(now + LOG_PERIOD), []);
        assert!(locks.log_counts().is_empty());
    }

    #[test]
    fn the_log_is_not_filled_by_one_client() {
        let locks = locks();
        let (one, other) = (Client::from(None), Client::from(Some([192, 0, 2, 1].into())));
        let now = Instant::now();
        let lines: Vec<_> = (0..100).map(|_| locks.count_line(one, now)).collect();
        assert_eq!(lines.iter().filter(|line| line.is_some()).count(), MAX_LINES_PER_CLIENT as usize);
        assert_eq!(locks.count_line(other, now), Some(0));
        assert_eq!(locks.count_line(one, now + LOG_PERIOD), Some(80));
        assert_eq!(locks.count_line(one, now + LOG_PERIOD), Some(0));
        assert!(locks.is_enabled() && !AuthService::open(Settings::default()).unwrap().is_enabled());
    }
}
