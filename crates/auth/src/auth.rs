//! What all protocols share for logins: the authenticator and the log of denials. It exists without users and tokens
//! too, because it also throttles `smtp.credentials` and `pop3.credentials`. How credentials are requested, and what is
//! replied, is not here.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt::{self, Display};
use std::mem;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::{Authenticator, Client, Denied, Settings};

/// The period of the log limit.
const LOG_PERIOD: Duration = Duration::from_mins(1);
/// The maximum number of log lines per client and period. Further denials are counted; the count is logged with the
/// next line or at the end of the period.
const MAX_LINES_PER_CLIENT: u32 = 20;
/// The maximum number of clients that are counted separately. All others are counted together.
const MAX_CLIENTS: usize = 4096;
/// The maximum number of clients that get a separate summary line per period.
const MAX_REPORTED_CLIENTS: usize = 20;
/// The maximum length of the logged request in characters.
const MAX_REQUEST_CHARS: usize = 200;

/// The authenticator and the log of denials.
pub struct AuthService {
    /// Checks logins.
    pub authenticator: Authenticator,
    log_counts: Mutex<HashMap<LogKey, LogCount>>,
}

/// The key that log lines are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum LogKey {
    Client(Client),
    /// All clients above the limit of separately counted ones.
    Others,
}

/// The files contain secrets, so nothing of the content is shown.
impl fmt::Debug for AuthService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthService").finish_non_exhaustive()
    }
}

/// The log lines of a client in the current period.
struct LogCount {
    since: Instant,
    lines: u32,
    suppressed: u64,
}

impl AuthService {
    /// Loads the user and token files. The error is a sentence for the operator.
    pub fn open(settings: Settings) -> Result<Arc<Self>, String> {
        Ok(Arc::new(Self { authenticator: Authenticator::open(settings)?, log_counts: Mutex::default() }))
    }

    /// Returns true if any kind of login is configured, so that anonymous requests are refused.
    pub fn is_enabled(&self) -> bool {
        self.authenticator.is_enabled()
    }

    /// Logs a denial, unless the client has reached the limit of lines.
    pub fn log_denial(&self, protocol: &str, ip: Option<IpAddr>, request: &dyn Display, denied: &Denied) {
        let Some(suppressed) = self.count_line(ip.into(), Instant::now()) else { return };
        let client: &dyn Display = ip.as_ref().map_or(&"unix", |ip| ip);
        let request: String = request.to_string().chars().take(MAX_REQUEST_CHARS).collect();
        tracing::warn!(
            protocol,
            %client,
            request,
            reason = denied.reason.as_str(),
            user = denied.name.as_deref(),
            suppressed = (suppressed > 0).then_some(suppressed),
            "access denied"
        );
    }

    /// Logs the counts of suppressed denials once per period, as long as the server runs.
    pub async fn log_suppressed_periodically(&self) {
        loop {
            tokio::time::sleep(LOG_PERIOD).await;
            self.log_suppressed();
        }
    }

    /// Logs how many denials were suppressed since the last log line of each client.
    pub fn log_suppressed(&self) {
        let mut counts = self.take_suppressed(Instant::now());
        counts.sort_by_key(|(key, suppressed)| (matches!(key, LogKey::Others), Reverse(*suppressed)));
        let separate = counts.iter().take_while(|(key, _)| *key != LogKey::Others).take(MAX_REPORTED_CLIENTS).count();
        let rest: u64 = counts.split_off(separate).iter().map(|(_, suppressed)| suppressed).sum();
        for (key, suppressed) in counts {
            if let LogKey::Client(client) = key {
                tracing::warn!(%client, suppressed, "denials not logged");
            }
        }
        if rest > 0 {
            tracing::warn!(suppressed = rest, "denials of other clients not logged");
        }
    }

    /// Counts a denial. Returns `None` if it must not be logged, otherwise the number of denials suppressed since the
    /// last line.
    fn count_line(&self, client: Client, now: Instant) -> Option<u64> {
        let mut counts = self.log_counts.lock();
        let client_key = LogKey::Client(client);
        let key =
            if counts.len() >= MAX_CLIENTS && !counts.contains_key(&client_key) { LogKey::Others } else { client_key };
        let count = counts.entry(key).or_insert(LogCount { since: now, lines: 0, suppressed: 0 });
        if count.is_expired(now) {
            (count.since, count.lines) = (now, 0);
        }
        if count.lines >= MAX_LINES_PER_CLIENT {
            count.suppressed += 1;
            return None;
        }
        count.lines += 1;
        // The count of all other clients belongs to none of their lines.
        Some(if key == LogKey::Others { 0 } else { mem::take(&mut count.suppressed) })
    }

    /// Returns the counts of suppressed denials and resets them. Forgets clients without denials in the current period.
    fn take_suppressed(&self, now: Instant) -> Vec<(LogKey, u64)> {
        let mut counts = self.log_counts.lock();
        let suppressed = counts.iter_mut().map(|(key, count)| (*key, mem::take(&mut count.suppressed)));
        let reported = suppressed.filter(|(_, suppressed)| *suppressed > 0).collect();
        counts.retain(|_, count| !count.is_expired(now));
        reported
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

    fn auth() -> Arc<AuthService> {
        let tokens = Some(PathBuf::from("/nonexistent/tokens.toml"));
        AuthService::open(Settings { tokens, ..Settings::default() }).unwrap()
    }

    #[test]
    fn suppressed_denials_are_reported_once() {
        let (auth, now) = (auth(), Instant::now());
        let client =
            |number: usize| Client::from(Some(std::net::Ipv4Addr::from_bits(u32::try_from(number).unwrap()).into()));
        let burst = |number| (0..30).filter(|_| auth.count_line(client(number), now).is_some()).count();
        assert_eq!(burst(0), 20);
        assert_eq!(auth.take_suppressed(now), [(LogKey::Client(client(0)), 10)]);
        assert_eq!(auth.take_suppressed(now), []);
        for number in 0..MAX_CLIENTS {
            auth.count_line(client(number), now);
        }
        assert_eq!((burst(MAX_CLIENTS), burst(MAX_CLIENTS + 1)), (20, 0));
        let mut counts = auth.take_suppressed(now);
        counts.sort_by_key(|(_, suppressed)| *suppressed);
        assert_eq!(counts, [(LogKey::Client(client(0)), 1), (LogKey::Others, 40)]);
        // There is room again, so no client is counted with the others.
        assert_eq!(auth.take_suppressed(now + LOG_PERIOD), []);
        assert!(auth.log_counts.lock().is_empty());
    }

    #[test]
    fn log_lines_per_client_are_limited() {
        let auth = auth();
        let (unix, other) = (Client::from(None), Client::from(Some([192, 0, 2, 1].into())));
        let now = Instant::now();
        let lines: Vec<_> = (0..100).map(|_| auth.count_line(unix, now)).collect();
        assert_eq!(lines.iter().filter(|line| line.is_some()).count(), MAX_LINES_PER_CLIENT as usize);
        assert_eq!(auth.count_line(other, now), Some(0));
        assert_eq!(auth.count_line(unix, now + LOG_PERIOD), Some(80));
        assert_eq!(auth.count_line(unix, now + LOG_PERIOD), Some(0));
        assert!(auth.is_enabled() && !AuthService::open(Settings::default()).unwrap().is_enabled());
    }
}
