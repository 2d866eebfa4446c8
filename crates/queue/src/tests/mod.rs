//! The rules that every backend has to follow.

pub(crate) mod conformance;
