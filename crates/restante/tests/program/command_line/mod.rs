//! Tests of the command line: the configuration, the commands that use a server, and import and export.

mod ca;
mod commands;
mod config;
mod mailpit;
mod project;
mod token;
mod transfer;
