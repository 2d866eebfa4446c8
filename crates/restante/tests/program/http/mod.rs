//! Tests of the real program over HTTP: the REST API, HTTPS, logins, live events, search, metrics and webhooks.

mod accounts;
mod auth;
mod automation;
mod https;
mod listeners;
mod messages;
mod metrics;
mod monitor;
mod oidc;
mod runs;
mod search;
mod webhook_queue;
mod webhooks;
