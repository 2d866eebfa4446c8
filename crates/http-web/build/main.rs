//! The build script: packs the web interface.

mod bundle;
mod files;
mod pack;
mod page;
mod table;

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build");
    if let Err(error) = pack_interface() {
        println!("cargo::error={error}");
    }
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
