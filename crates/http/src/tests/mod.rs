//! Tests of the service in-process over a memory store, without connections. Connections are tested in `connection.rs`. The tests of
//! an API are in its crate.

mod authentication;
mod client_limits;
mod connection;
mod cors;
mod hostile_input;
mod http2;
mod listeners;
mod memory;
mod openapi;
mod pages;
mod projects;
mod request_checks;
mod single_sign_on;
mod store_errors;
#[path = "../../tests/support/mod.rs"]
mod support;
mod work_permits;

use support::*;
