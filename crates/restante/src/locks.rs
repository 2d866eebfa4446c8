//! The locks on the doors of all protocols: who is let in is known to the keeper, and everybody who is not is told of here.
//! Without users and tokens there are none. How credentials are asked for, and what is answered, is each protocol's own.

use std::collections::HashMap;
use std::fmt::{self, Display};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use restante_access::{Client, Denied, Keeper, Settings};

use crate::config::Auth;
use crate::metrics::{Metrics, Protocol};

/// The time in which one client is told of so often.
const PERIOD: Duration = Duration::from_mins(1);
/// How many lines of one client there are in that time; what is beyond is counted and told with the next line.
const MAX_LINES: u32 = 20;
/// How many clients are remembered.
const MAX_CLIENTS: usize = 4096;
/// The longest description of what was asked, in characters.
const MAX_ASKED: usize = 200;

/// The keeper, and the log of whom it sends away.
pub struct Locks {
    /// Who decides.
    pub keeper: Keeper,
    metrics: Arc<Metrics>,
    told: Mutex<HashMap<Client, Told>>,
}

/// Its files hold secrets, so only that it is there is shown.
impl fmt::Debug for Locks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locks").finish_non_exhaustive()
    }
}

/// What was told of a client.
struct Told {
    since: Instant,
    lines: u32,
    untold: u64,
}

impl Locks {
    /// The locks that the configuration wants, or none. The error is a sentence for the operator.
    pub fn of(auth: &Auth, metrics: Arc<Metrics>) -> Result<Option<Arc<Self>>, String> {
        if !auth.is_on() {
            return Ok(None);
        }
        let keeper = Keeper::open(Settings {
            users: auth.users.clone(),
            tokens: auth.tokens.clone(),
            session_time: auth.session_time,
            secret: auth.secret.as_ref().map(|secret| secret.expose().as_bytes().to_vec()),
        })?;
        Ok(Some(Arc::new(Self { keeper, metrics, told: Mutex::default() })))
    }

    /// Counts a denial and writes it into the log, unless there are too many of the same client.
    pub fn tell(&self, protocol: Protocol, ip: Option<IpAddr>, asked: &dyn Display, denied: &Denied) {
        self.metrics.denied(protocol, denied.reason);
        let Some(untold) = self.line(ip.into(), Instant::now()) else { return };
        let client: &dyn Display = ip.as_ref().map_or(&"unix", |ip| ip);
        let asked: String = asked.to_string().chars().take(MAX_ASKED).collect();
        tracing::warn!(
            protocol = protocol.name(),
            %client,
            asked,
            why = denied.reason.words(),
            user = denied.holder.as_deref(),
            untold = (untold > 0).then_some(untold),
            "denied"
        );
    }

    /// Whether there may be one more line about a client and, if so, how many there were not since the last one.
    fn line(&self, client: Client, now: Instant) -> Option<u64> {
        let mut all = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = |told: &Told| now.saturating_duration_since(told.since) >= PERIOD;
        if all.len() >= MAX_CLIENTS && !all.contains_key(&client) {
            all.retain(|_, told| !is_over(told));
            if all.len() >= MAX_CLIENTS {
                return None;
            }
        }
        let told = all.entry(client).or_insert(Told { since: now, lines: 0, untold: 0 });
        if is_over(told) {
            (told.since, told.lines) = (now, 0);
        }
        if told.lines >= MAX_LINES {
            told.untold += 1;
            return None;
        }
        told.lines += 1;
        Some(std::mem::take(&mut told.untold))
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn the_log_is_not_filled_by_one_client() {
        let auth = Auth { tokens: Some(PathBuf::from("/nonexistent/tokens.toml")), ..Auth::default() };
        let locks = Locks::of(&auth, Arc::default()).unwrap().unwrap();
        let (one, other) = (Client::from(None), Client::from(Some([192, 0, 2, 1].into())));
        let now = Instant::now();
        let lines: Vec<_> = (0..100).map(|_| locks.line(one, now)).collect();
        assert_eq!(lines.iter().filter(|line| line.is_some()).count(), MAX_LINES as usize);
        assert_eq!(locks.line(other, now), Some(0));
        assert_eq!(locks.line(one, now + PERIOD), Some(80));
        assert_eq!(locks.line(one, now + PERIOD), Some(0));
        assert!(Locks::of(&Auth::default(), Arc::default()).unwrap().is_none());
    }
}
