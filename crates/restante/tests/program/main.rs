//! Tests of the real program over its protocols and on the command line, one module per topic.

mod command_line;
mod http;
mod mail;
mod relay;
mod storage;
#[path = "../support/mod.rs"]
mod support;
