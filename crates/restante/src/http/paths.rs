//! Paths that the door knows beside those who answer there: what is open to all, and what is code. All others are in the
//! table of routes, or with those who answer.

/// Whether the process serves at all. Who gets no answer here should start it again.
pub(super) const LIVE: &str = "/livez";
/// Whether mail can be read and taken in now. Who gets no 200 here should send clients elsewhere, or wait.
pub(super) const READY: &str = "/readyz";
/// Where the form is, and where it is sent.
pub(super) const LOGIN: &str = "/login";
/// Where a login is ended.
pub(super) const LOGOUT: &str = "/logout";
/// Where robots look.
pub(super) const ROBOTS: &str = "/robots.txt";
/// Where browsers look for an icon when they show what is no page of ours.
pub(super) const ICON: &str = "/favicon.ico";
/// Where the files of the pages are.
pub(super) const ASSETS: &str = "/assets/{hash}/{*path}";
