//! What is made before the program is compiled: the second of the build, and the web interface, packed to be served.

mod files;
mod imports;
mod pack;
mod shell;
mod table;

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

fn main() {
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-env-changed=SOURCE_DATE_EPOCH");
    println!("cargo::rustc-env=BUILD_SECOND={}", build_second());
    if let Err(problem) = pack_interface() {
        println!("cargo::error={problem}");
    }
}

/// When the program was built: at `SOURCE_DATE_EPOCH` where a reproducible build says so
/// (<https://reproducible-builds.org/specs/source-date-epoch/>), otherwise now. The variable that the program reads it
/// from has not the prefix of the settings: `cargo run` hands it to the program, which would refuse it as an unknown one.
fn build_second() -> u64 {
    let told = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|seconds| seconds.parse().ok());
    told.unwrap_or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

/// Turns `ui/` into `OUT_DIR/ui.rs` and what that includes. The same files give the same bytes, at any time and place.
fn pack_interface() -> Result<(), String> {
    let variable = |name| std::env::var(name).map_err(|error| format!("{name}: {error}"));
    let source = Path::new(&variable("CARGO_MANIFEST_DIR")?).join("../../ui");
    let out = variable("OUT_DIR")?;
    // A folder stands for all that is in it, now and later.
    println!("cargo::rerun-if-changed={}", source.display());

    let ui = files::read(&source)?;
    imports::check(&ui.assets)?;
    let hash = pack::hash_of(&ui.assets);
    let shells = shell::make(&ui, &hash)?;
    let mut packer = pack::Packer::new(&Path::new(&out).join("ui"))?;
    let table = table::write(&mut packer, &ui.assets, &shells, &hash)?;
    packer.finish()?;
    std::fs::write(Path::new(&out).join("ui.rs"), table).map_err(|error| format!("{out}/ui.rs: {error}"))
}
