//! Resolution of the host of a URL. The policy is applied here, to the addresses that are connected to. So it cannot be
//! bypassed by a name that resolves differently after a check, or by a special spelling of an address.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use std::{io, vec};

use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

use crate::HttpError;
use crate::public_address::is_public;

/// The maximum number of concurrent name lookups. A lookup of the system cannot be canceled: after a timeout it still
/// occupies a thread until it ends.
const MAX_LOOKUPS: usize = 64;

/// The maximum number of addresses of a host that are tried.
const MAX_ADDRESSES: usize = 8;

/// Resolves names, and drops addresses that the policy does not allow.
#[derive(Debug)]
pub struct PolicyResolver {
    allow_private_addresses: bool,
    active_lookups: Arc<AtomicUsize>,
}

impl PolicyResolver {
    /// Creates a resolver. Without `allow_private_addresses` it returns only public addresses.
    pub fn new(allow_private_addresses: bool) -> Self {
        Self { allow_private_addresses, active_lookups: Arc::default() }
    }

    /// Returns the allowed addresses of a host, which is a name or an IP address without brackets: at least one, and not
    /// more than are worth trying. Blocks until the name is resolved.
    pub fn resolve_host(&self, host: &str, port: u16, timeout: Duration) -> Result<Vec<SocketAddr>, HttpError> {
        // An IP address needs no lookup, and so no thread.
        let addresses = match host.parse::<IpAddr>() {
            Ok(address) => vec![SocketAddr::new(address, port)].into_iter(),
            Err(_) => self.look_up(host, port, timeout)?,
        };

        let mut has_address = false;
        let allowed: Vec<SocketAddr> = addresses
            .inspect(|_| has_address = true)
            .filter(|address| self.allow_private_addresses || is_public(address.ip()))
            .take(MAX_ADDRESSES)
            .collect();
        match (has_address, allowed.is_empty()) {
            (_, false) => Ok(allowed),
            (true, true) => Err(HttpError::ForbiddenAddress(format!("{host} is not a public address"))),
            (false, true) => Err(network_error(&format!("{host} has no address"))),
        }
    }

    fn look_up(&self, host: &str, port: u16, timeout: Duration) -> Result<vec::IntoIter<SocketAddr>, HttpError> {
        let permit = LookupPermit::try_acquire(&self.active_lookups)
            .ok_or_else(|| network_error("too many name lookups at the same time"))?;
        let (sender, receiver) = mpsc::sync_channel(1);
        let name = host.to_owned();
        let thread = thread::Builder::new().name("lookup".to_owned()).spawn(move || {
            let addresses = (name.as_str(), port).to_socket_addrs();
            drop(permit);
            // The receiver is closed if the lookup timed out.
            let _ = sender.send(addresses);
        });
        thread.map_err(|error| lookup_error(host, &error))?;
        match receiver.recv_timeout(timeout) {
            Ok(addresses) => addresses.map_err(|error| lookup_error(host, &error)),
            Err(_) => Err(HttpError::Timeout),
        }
    }
}

impl Resolver for PolicyResolver {
    fn resolve(&self, uri: &Uri, _: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let host = uri.host().ok_or_else(|| Error::BadUri(format!("{uri} has no host")))?;
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("https") { 443 } else { 80 });

        // The error is passed through ureq.
        let addresses = self.resolve_host(host, port, *timeout.after).map_err(|error| Error::Other(Box::new(error)))?;
        let mut resolved = self.empty();
        for address in addresses {
            resolved.push(address);
        }
        Ok(resolved)
    }
}

/// The permission to look up one name.
struct LookupPermit(Arc<AtomicUsize>);

impl LookupPermit {
    fn try_acquire(active: &Arc<AtomicUsize>) -> Option<Self> {
        // The permit is created before the count is checked, so that it is always returned.
        let active_before = active.fetch_add(1, Ordering::Relaxed);
        let permit = Self(Arc::clone(active));
        (active_before < MAX_LOOKUPS).then_some(permit)
    }
}

impl Drop for LookupPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn lookup_error(host: &str, error: &io::Error) -> HttpError {
    network_error(&format!("cannot resolve {host}: {error}"))
}

fn network_error(text: &str) -> HttpError {
    HttpError::Network(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookup_permits_are_limited_and_returned() {
        let active = Arc::default();
        let permits: Vec<_> = (0..MAX_LOOKUPS).map_while(|_| LookupPermit::try_acquire(&active)).collect();
        assert_eq!(permits.len(), MAX_LOOKUPS);
        assert!(LookupPermit::try_acquire(&active).is_none());
        drop(permits);
        assert!(LookupPermit::try_acquire(&active).is_some());
        assert_eq!(active.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn private_addresses_must_be_allowed() {
        let resolve = |is_allowed, host| PolicyResolver::new(is_allowed).resolve_host(host, 25, Duration::from_mins(1));
        for host in ["10.0.0.7", "::1", "localhost"] {
            let error = HttpError::ForbiddenAddress(format!("{host} is not a public address"));
            assert_eq!(resolve(false, host), Err(error));
            assert!(!resolve(true, host).unwrap().is_empty(), "{host}");
        }
        assert_eq!(resolve(false, "1.1.1.1"), Ok(vec![([1, 1, 1, 1], 25).into()]));
    }
}
