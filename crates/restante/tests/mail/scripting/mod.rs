//! Scripts in the real program: every test has a folder with a script, a server that runs it there, and looks at it as
//! senders, readers and operators do.

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
mod reload;
mod start;
