//! A PostgreSQL for tests: private servers that end with their values, and what lies between them and their clients when a
//! network is bad ([`Line`]) or shared ([`Balancer`]). Nothing here speaks PostgreSQL's protocol.

mod balancer;
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
