//! The build script: sets the build time, and packs the web interface.

mod bundle;
mod files;
mod pack;
mod page;
mod table;

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

fn main() {
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-env-changed=SOURCE_DATE_EPOCH");
    println!("cargo::rustc-env=BUILD_SECOND={}", build_second());
    if let Err(error) = pack_interface() {
        println!("cargo::error={error}");
    }
}

/// Returns the time of the build: `SOURCE_DATE_EPOCH` for reproducible builds
/// (<https://reproducible-builds.org/specs/source-date-epoch/>), otherwise now. The variable that the program reads it
/// from does not have the prefix of settings: `cargo run` passes it to the program, which would refuse it as an unknown
/// setting.
fn build_second() -> u64 {
    let given = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|seconds| seconds.parse().ok());
    given.unwrap_or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

/// Packs `ui/` into `OUT_DIR/ui.rs` and the files that it includes. The same input always produces the same bytes.
fn pack_interface() -> Result<(), String> {
    let variable = |name| std::env::var(name).map_err(|error| format!("{name}: {error}"));
    let source = Path::new(&variable("CARGO_MANIFEST_DIR")?).join("ui");
    let out = variable("OUT_DIR")?;
    // Cargo would also watch `node_modules` in the folder itself. So a new entry at the top level is noticed only when
    // another file changes.
    for entry in files::top_level(&source)? {
        println!("cargo::rerun-if-changed={}", entry.display());
    }

    let ui = files::read(&source)?;
    if !bundle::is_current(&source)? {
        println!("cargo::warning={}", bundle::OUT_OF_DATE);
    }
    let hash = pack::hash_files(&ui.assets);
    let pages = page::render(&ui, &hash)?;
    let mut packer = pack::Packer::new(&Path::new(&out).join("ui"))?;
    let table = table::write(&mut packer, &ui.assets, &pages, &hash)?;
    packer.finish()?;
    std::fs::write(Path::new(&out).join("ui.rs"), table).map_err(|error| format!("{out}/ui.rs: {error}"))
}
