//! The `restante` program as a library: command line, wiring, signals and health checks. Everything else is in the crates that it
//! depends on.

mod api_check;
pub mod ca;
pub mod command_line;
pub mod completions;
pub mod exit;
pub mod health;
pub mod mailpit;
pub mod process;
pub mod project;
pub mod script;
mod script_relay;
pub mod serve;
pub mod services;
pub mod storage;
pub mod token;
pub mod transfer;
pub mod user;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use restante_testdir::{find_import_cycle, module_imports};

    #[test]
    fn modules_have_no_import_cycle() {
        let imports = module_imports(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
        assert!(imports.len() > 20, "only {} imports were found", imports.len());
        assert_eq!(find_import_cycle(&imports), None);
    }
}
