//! PostgreSQL servers for tests, which end when their values are dropped, and proxies for tests of an unreliable network and of
//! several nodes ([`FaultProxy`]). Nothing here implements the protocol of PostgreSQL.

mod databases;
mod fault_proxy;
mod installation;
mod port;
mod process;
mod server;

pub use fault_proxy::FaultProxy;
pub use port::ReservedPort;
pub use server::Postgres;

#[cfg(test)]
mod tests;
