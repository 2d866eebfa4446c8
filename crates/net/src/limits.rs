//! Limits on the number of connections, in total and per client. An [`Admission`] counts against the total and a
//! [`ClientSlot`] against the limit of a client. Both are released on drop. The client may be known later than the
//! connection, so the two are acquired in two steps.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::counters::OpenGuard;

/// The number of refused connections that may get a reply at the same time. Each reply takes up to half a second.
/// Without this limit, refusing a flood of connections would cost as much as accepting them.
const MAX_CONCURRENT_REFUSALS: usize = 256;

/// The limits of one protocol, shared by its listeners.
#[derive(Debug)]
pub struct ConnectionLimits {
    connections: Arc<Semaphore>,
    refusals: Arc<Semaphore>,
    clients: Arc<ClientLimits>,
}

/// The limit per client: on connections, and on requests for HTTP behind a proxy.
#[derive(Debug, Default)]
pub struct ClientLimits {
    limit: Option<usize>,
    /// The number of slots in use per client. Empty if there is no limit. Clients without slots have no entry.
    active: Mutex<HashMap<IpAddr, usize>>,
}

/// A counted connection. Its client slot is released first, so that a new connection is never within the total limit but
/// above that of its client.
#[derive(Debug)]
pub struct Admission {
    client_slot: Option<ClientSlot>,
    _permit: OwnedSemaphorePermit,
    clients: Arc<ClientLimits>,
    /// Counts the connection as open while it exists.
    pub(super) open_guard: Option<OpenGuard>,
}

/// A slot of one client.
#[derive(Debug)]
pub struct ClientSlot {
    clients: Arc<ClientLimits>,
    client: IpAddr,
}

/// The limit that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooMany {
    /// The limit on all connections.
    InTotal,
    /// The limit on the connections of this client.
    FromClient,
}

impl ConnectionLimits {
    /// Creates limits on the total number of connections and, optionally, on the number per client.
    pub fn new(total: usize, per_client: Option<usize>) -> Arc<Self> {
        let clients = Arc::new(ClientLimits::new(per_client));
        let [connections, refusals] = [total, MAX_CONCURRENT_REFUSALS].map(|permits| Arc::new(Semaphore::new(permits)));
        Arc::new(Self { connections, refusals, clients })
    }

    /// Returns the limit per client.
    pub fn clients(&self) -> &Arc<ClientLimits> {
        &self.clients
    }

    /// Counts a connection against the total.
    pub fn admit(&self) -> Result<Admission, TooMany> {
        let permit = self.connections.clone().try_acquire_owned().map_err(|_| TooMany::InTotal)?;
        Ok(Admission { client_slot: None, _permit: permit, clients: self.clients.clone(), open_guard: None })
    }

    /// Acquires the permission to send a refusal to a connection. Returns `None` if too many refusals are being sent.
    pub(super) fn acquire_refusal_permit(&self) -> Option<OwnedSemaphorePermit> {
        self.refusals.clone().try_acquire_owned().ok()
    }
}

impl Admission {
    /// Counts the connection for this client.
    pub fn for_client(mut self, client: IpAddr) -> Result<Self, TooMany> {
        self.client_slot = self.clients.admit(client)?;
        Ok(self)
    }
}

impl ClientLimits {
    /// Creates a limit per client, or none.
    pub fn new(limit: Option<usize>) -> Self {
        Self { limit, active: Mutex::default() }
    }

    /// Acquires a slot for this client. Without a limit, counts nothing and returns `None`.
    pub fn admit(self: &Arc<Self>, ip: IpAddr) -> Result<Option<ClientSlot>, TooMany> {
        let Some(limit) = self.limit else { return Ok(None) };
        let client = client_key(ip);
        let mut active = self.active.lock();
        let count = active.get(&client).copied().unwrap_or(0);
        if count >= limit {
            return Err(TooMany::FromClient);
        }
        active.insert(client, count + 1);
        Ok(Some(ClientSlot { clients: self.clone(), client }))
    }
}

impl Drop for ClientSlot {
    fn drop(&mut self) {
        let mut active = self.clients.active.lock();
        if let Entry::Occupied(mut count) = active.entry(self.client) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

/// Returns the key of a client: its IPv4 address, or its IPv6 network of 64 bits. A single machine usually has such a
/// network for itself (RFC 7421 section 1), so a limit per IPv6 address would have no effect.
fn client_key(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// Admits a connection and counts it for the client.
    fn admit(limits: &Arc<ConnectionLimits>, client: &str) -> Result<Admission, TooMany> {
        limits.admit()?.for_client(ip(client))
    }

    #[test]
    fn admissions_are_counted_and_released() {
        let limits = ConnectionLimits::new(3, Some(2));
        let (a, b) = ("192.0.2.1", "192.0.2.2");
        let first = admit(&limits, a).unwrap();
        let _second = admit(&limits, a).unwrap();
        // A connection refused because of its client's limit does not use up the total.
        for _ in 0..10 {
            assert_eq!(admit(&limits, a).unwrap_err(), TooMany::FromClient);
        }
        let _third = admit(&limits, b).unwrap();
        assert_eq!(admit(&limits, b).unwrap_err(), TooMany::InTotal);
        assert_eq!(limits.admit().unwrap_err(), TooMany::InTotal);
        drop(first);
        let _again = admit(&limits, a).unwrap();
    }

    #[test]
    fn connections_without_a_client_count_only_against_the_total() {
        let limits = ConnectionLimits::new(3, Some(1));
        let _three = [limits.admit().unwrap(), limits.admit().unwrap(), limits.admit().unwrap()];
        assert_eq!(limits.admit().unwrap_err(), TooMany::InTotal);
    }

    #[test]
    fn ipv6_clients_are_counted_by_network() {
        let table = [
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("::ffff:192.0.2.1", "::ffff:192.0.2.2", false),
            ("2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true),
            ("2001:db8:1:2::1", "2001:db8:1:3::1", false),
            ("::1", "127.0.0.1", false),
        ];
        for (one, other, is_same) in table {
            let clients = Arc::new(ClientLimits::new(Some(1)));
            let _slot = clients.admit(ip(one)).unwrap();
            assert_eq!(clients.admit(ip(other)).is_err(), is_same, "{one} {other}");
        }
    }

    #[test]
    fn clients_without_slots_have_no_entry() {
        let limits = ConnectionLimits::new(10, Some(10));
        for last in 0..=255 {
            drop(admit(&limits, &format!("192.0.2.{last}")).unwrap());
        }
        assert!(limits.clients.active.lock().is_empty());
        let unlimited = ConnectionLimits::new(10, None);
        let _admission = admit(&unlimited, "192.0.2.1").unwrap();
        assert!(unlimited.clients.active.lock().is_empty());
    }

    #[test]
    fn concurrent_refusals_are_limited() {
        let limits = ConnectionLimits::new(0, None);
        let mut refusals: Vec<_> =
            (0..MAX_CONCURRENT_REFUSALS).map(|_| limits.acquire_refusal_permit().unwrap()).collect();
        assert!(limits.acquire_refusal_permit().is_none());
        refusals.pop();
        assert!(limits.acquire_refusal_permit().is_some());
    }
}
