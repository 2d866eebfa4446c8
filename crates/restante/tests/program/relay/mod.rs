//! Tests of the relay with the real program and real receiving servers: Postfix, `smtp-sink`, and a receiver that records what
//! arrives. Sessions with scripted servers are tested in `restante-relay`.

mod cluster;
mod command_line;
mod failures;
mod forward;
mod kills;
mod postfix;
mod process;
mod queue;
mod recorder;
mod release;
mod settings;
mod sink;
mod tls;
