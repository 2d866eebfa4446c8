//! How many connections there may be, in all and from one address. An [`Admission`] is a place that is free again when
//! it is dropped.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The limits of one protocol, shared by its listeners.
#[derive(Debug)]
pub struct Limits {
    total: usize,
    per_ip: Option<usize>,
    present: Mutex<Present>,
}

#[derive(Debug, Default)]
struct Present {
    total: usize,
    /// Only filled when there is a limit per address; holds nobody who is not here.
    by_ip: HashMap<IpAddr, usize>,
}

/// A connection's place.
#[derive(Debug)]
pub struct Admission {
    limits: Arc<Limits>,
    ip: Option<IpAddr>,
}

/// Which limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooMany {
    /// The one on all connections.
    InTotal,
    /// The one on this peer's connections.
    FromPeer,
}

impl Limits {
    /// Limits of so many connections in total and, if wanted, from one address.
    pub fn new(total: usize, per_ip: Option<usize>) -> Arc<Self> {
        Arc::new(Self { total, per_ip, present: Mutex::default() })
    }

    /// A place for one more connection, if there is one.
    pub fn admit(self: &Arc<Self>, ip: Option<IpAddr>) -> Result<Admission, TooMany> {
        let mut present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        if present.total >= self.total {
            return Err(TooMany::InTotal);
        }
        let counted = ip.filter(|_| self.per_ip.is_some());
        if let (Some(limit), Some(ip)) = (self.per_ip, counted) {
            let count = present.by_ip.get(&ip).copied().unwrap_or(0);
            if count >= limit {
                return Err(TooMany::FromPeer);
            }
            present.by_ip.insert(ip, count + 1);
        }
        present.total += 1;
        Ok(Admission { limits: self.clone(), ip: counted })
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let mut present = self.limits.present.lock().unwrap_or_else(PoisonError::into_inner);
        present.total -= 1;
        let Some(ip) = self.ip else { return };
        if let Entry::Occupied(mut count) = present.by_ip.entry(ip) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_and_come_back() {
        let limits = Limits::new(3, Some(2));
        let (a, b) = (Some(IpAddr::from([192, 0, 2, 1])), Some(IpAddr::from([192, 0, 2, 2])));
        let first = limits.admit(a).unwrap();
        let _second = limits.admit(a).unwrap();
        assert_eq!(limits.admit(a).unwrap_err(), TooMany::FromPeer);
        let _third = limits.admit(b).unwrap();
        assert_eq!(limits.admit(b).unwrap_err(), TooMany::InTotal);
        drop(first);
        let _again = limits.admit(a).unwrap();
    }

    #[test]
    fn nothing_is_remembered_of_peers_that_left() {
        let limits = Limits::new(10, Some(10));
        for last in 0..=255 {
            drop(limits.admit(Some([192, 0, 2, last].into())).unwrap());
        }
        assert!(limits.present.lock().unwrap().by_ip.is_empty());
    }
}
