//! The build script: sets the build time.

use std::time::{SystemTime, UNIX_EPOCH};

fn main() {
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-env-changed=SOURCE_DATE_EPOCH");
    println!("cargo::rustc-env=BUILD_SECOND={}", build_second());
}

/// Returns the time of the build: `SOURCE_DATE_EPOCH` for reproducible builds
/// (<https://reproducible-builds.org/specs/source-date-epoch/>), otherwise now. The variable that the program reads it
/// from does not have the prefix of settings: `cargo run` passes it to the program, which would refuse it as an unknown
/// setting.
fn build_second() -> u64 {
    let given = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|seconds| seconds.parse().ok());
    given.unwrap_or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}
