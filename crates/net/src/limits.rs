//! How many connections there may be, in all and from one client. An [`Admission`] is a place among all connections and a
//! [`Place`] one of a client's; both are free again when they are dropped. Who a client is may be known only later than
//! the connection, so the two are taken in two steps.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::counters::OpenGuard;

/// How many connections that are sent away may be told so at the same time. It takes each up to half a second, and under
/// a flood that would be as good as letting them in.
const MAX_CONCURRENT_REFUSALS: usize = 256;

/// The limits of one protocol, shared by its listeners.
#[derive(Debug)]
pub struct ConnectionLimits {
    connections: Slots,
    refusals: Slots,
    clients: Arc<ClientLimits>,
}

/// How much each client has: connections, and for HTTP behind a proxy requests.
#[derive(Debug, Default)]
pub struct ClientLimits {
    limit: Option<usize>,
    /// Only filled when there is a limit; holds nobody who is not here.
    active: Mutex<HashMap<ClientKey, usize>>,
}

/// Who counts as one client: an IPv4 address, or an IPv6 network of 64 bits. Of the latter a single machine usually has a
/// whole one to choose its addresses from (RFC 7421 section 1), so an address alone would limit nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ClientKey(IpAddr);

/// A connection's place.
#[derive(Debug)]
pub struct Admission {
    limits: Arc<ConnectionLimits>,
    client_slot: Option<ClientSlot>,
    /// Counted as open for as long as it has its place.
    open_guard: Option<OpenGuard>,
}

/// A place of one client's.
#[derive(Debug)]
pub struct ClientSlot {
    clients: Arc<ClientLimits>,
    client: ClientKey,
}

/// The right to tell a connection that there are too many.
#[derive(Debug)]
pub(super) struct RefusalSlot(Arc<ConnectionLimits>);

/// Which limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooMany {
    /// The one on all connections.
    InTotal,
    /// The one on this client's.
    FromPeer,
}

impl ConnectionLimits {
    /// Limits of so many connections in total and, if wanted, from one client.
    pub fn new(total: usize, per_client: Option<usize>) -> Arc<Self> {
        let clients = Arc::new(ClientLimits::new(per_client));
        Arc::new(Self { connections: Slots::new(total), refusals: Slots::new(MAX_CONCURRENT_REFUSALS), clients })
    }

    /// The part of the limits that concerns single clients.
    pub fn clients(&self) -> &Arc<ClientLimits> {
        &self.clients
    }

    /// A place among all connections, if there is one.
    pub fn admit(self: &Arc<Self>) -> Result<Admission, TooMany> {
        if self.connections.try_acquire() {
            Ok(Admission { limits: self.clone(), client_slot: None, open_guard: None })
        } else {
            Err(TooMany::InTotal)
        }
    }

    /// The right to tell one more connection that there are too many, unless that is being told to too many.
    pub(super) fn acquire_refusal_slot(self: &Arc<Self>) -> Option<RefusalSlot> {
        self.refusals.try_acquire().then(|| RefusalSlot(self.clone()))
    }
}

impl Admission {
    /// Counts the connection as this client's.
    pub fn for_client(mut self, client: IpAddr) -> Result<Self, TooMany> {
        self.client_slot = self.limits.clients.admit(client)?;
        Ok(self)
    }

    /// The same place, counted.
    pub(super) fn with_open_guard(mut self, open: OpenGuard) -> Self {
        self.open_guard = Some(open);
        self
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        // First its own, so that nobody finds a place among all and none of its own.
        self.client_slot = None;
        self.limits.connections.release();
    }
}

impl Drop for RefusalSlot {
    fn drop(&mut self) {
        self.0.refusals.release();
    }
}

impl ClientLimits {
    /// A limit of so many for each, or none.
    pub fn new(limit: Option<usize>) -> Self {
        Self { limit, active: Mutex::default() }
    }

    /// A place of this client's, if it has one left. Without a limit nothing is counted, and there is no place to hold.
    pub fn admit(self: &Arc<Self>, ip: IpAddr) -> Result<Option<ClientSlot>, TooMany> {
        let Some(limit) = self.limit else { return Ok(None) };
        let client = ClientKey::from(ip);
        let mut present = self.active.lock().unwrap_or_else(PoisonError::into_inner);
        let count = present.get(&client).copied().unwrap_or(0);
        if count >= limit {
            return Err(TooMany::FromPeer);
        }
        present.insert(client, count + 1);
        Ok(Some(ClientSlot { clients: self.clone(), client }))
    }
}

impl Drop for ClientSlot {
    fn drop(&mut self) {
        let mut present = self.clients.active.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut count) = present.entry(self.client) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

impl From<IpAddr> for ClientKey {
    fn from(ip: IpAddr) -> Self {
        Self(match ip.to_canonical() {
            IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into(),
            v4 @ IpAddr::V4(_) => v4,
        })
    }
}

/// So many of something, and how many are taken.
#[derive(Debug)]
struct Slots {
    limit: usize,
    used: AtomicUsize,
}

impl Slots {
    fn new(limit: usize) -> Self {
        Self { limit, used: AtomicUsize::new(0) }
    }

    fn try_acquire(&self) -> bool {
        let one_more = |taken| (taken < self.limit).then_some(taken + 1);
        self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).is_ok()
    }

    fn release(&self) {
        self.used.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// A connection's way in, in one step.
    fn admit(limits: &Arc<ConnectionLimits>, client: &str) -> Result<Admission, TooMany> {
        limits.admit()?.for_client(ip(client))
    }

    #[test]
    fn places_are_counted_and_come_back() {
        let limits = ConnectionLimits::new(3, Some(2));
        let (a, b) = ("192.0.2.1", "192.0.2.2");
        let first = admit(&limits, a).unwrap();
        let _second = admit(&limits, a).unwrap();
        // Who is refused for its own limit leaves its place among all to others.
        for _ in 0..10 {
            assert_eq!(admit(&limits, a).unwrap_err(), TooMany::FromPeer);
        }
        let _third = admit(&limits, b).unwrap();
        assert_eq!(admit(&limits, b).unwrap_err(), TooMany::InTotal);
        assert_eq!(limits.admit().unwrap_err(), TooMany::InTotal);
        drop(first);
        let _again = admit(&limits, a).unwrap();
    }

    #[test]
    fn who_is_not_counted_has_no_limit_of_its_own() {
        let limits = ConnectionLimits::new(3, Some(1));
        let _three = [limits.admit().unwrap(), limits.admit().unwrap(), limits.admit().unwrap()];
        assert_eq!(limits.admit().unwrap_err(), TooMany::InTotal);
    }

    #[test]
    fn who_is_one_client() {
        let table = [
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("::ffff:192.0.2.1", "::ffff:192.0.2.2", false),
            ("2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true),
            ("2001:db8:1:2::1", "2001:db8:1:3::1", false),
            ("::1", "127.0.0.1", false),
        ];
        for (one, other, same) in table {
            let clients = Arc::new(ClientLimits::new(Some(1)));
            let _place = clients.admit(ip(one)).unwrap();
            assert_eq!(clients.admit(ip(other)).is_err(), same, "{one} {other}");
        }
    }

    #[test]
    fn nothing_is_remembered_of_clients_that_left() {
        let limits = ConnectionLimits::new(10, Some(10));
        for last in 0..=255 {
            drop(admit(&limits, &format!("192.0.2.{last}")).unwrap());
        }
        assert!(limits.clients.active.lock().unwrap().is_empty());
        let unlimited = ConnectionLimits::new(10, None);
        let _here = admit(&unlimited, "192.0.2.1").unwrap();
        assert!(unlimited.clients.active.lock().unwrap().is_empty());
    }

    #[test]
    fn refusals_are_bounded_too() {
        let limits = ConnectionLimits::new(0, None);
        let mut refusals: Vec<_> =
            (0..MAX_CONCURRENT_REFUSALS).map(|_| limits.acquire_refusal_slot().unwrap()).collect();
        assert!(limits.acquire_refusal_slot().is_none());
        refusals.pop();
        assert!(limits.acquire_refusal_slot().is_some());
    }
}
