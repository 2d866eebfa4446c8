//! Scripts in the real program: every test has a folder with a script and a server that runs it, and uses the server like senders,
//! readers and operators do.

mod commands;
mod decisions;
mod errors;
mod events;
mod folder;
mod inbucket;
mod limits;
mod messages;
mod modules;
mod objects;
mod release;
mod reload;
mod start;
