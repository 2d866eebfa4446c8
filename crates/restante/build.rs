//! Tells the program when it was built: at `SOURCE_DATE_EPOCH` where a reproducible build says so
//! (<https://reproducible-builds.org/specs/source-date-epoch/>), otherwise now.

use std::time::{SystemTime, UNIX_EPOCH};

fn main() {
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-env-changed=SOURCE_DATE_EPOCH");
    let told = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|seconds| seconds.parse::<u64>().ok());
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    // Not with the prefix of the settings: `cargo run` hands it to the program, which would refuse it as an unknown one.
    println!("cargo::rustc-env=BUILD_SECOND={}", told.unwrap_or_else(now));
}
