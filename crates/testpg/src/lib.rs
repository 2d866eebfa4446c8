//! PostgreSQL servers for tests, which end when their values are dropped, and proxies for tests of an unreliable
//! network ([`FaultProxy`]) and of several nodes ([`Balancer`]). Nothing here implements the protocol of PostgreSQL.

mod balancer;
mod databases;
mod fault_proxy;
mod forward;
mod installation;
mod port;
mod process;
mod server;

pub use balancer::Balancer;
pub use fault_proxy::FaultProxy;
pub use port::ReservedPort;
pub use server::Postgres;

#[cfg(test)]
mod tests;
