//! Checks whether the bundle of the modules is current. `ui/bundle.mjs` generates it, and writes two hashes into its first
//! line: that of the modules, and that of the rest of the bundle.

use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::files::{self, MODULES};
use super::pack;

/// The bundle, which the page loads.
pub(crate) const BUNDLE: &str = "dist/app.js";
/// The message about a bundle that is not current.
pub(crate) const OUT_OF_DATE: &str = "ui/dist is out of date: run `node ui/bundle.mjs`";

/// Returns whether the bundle in a folder was generated from the modules in it, and was not changed since.
pub(crate) fn is_current(folder: &Path) -> Result<bool, String> {
    let bundle = files::content(folder, BUNDLE)?;
    let Some(end) = bundle.iter().position(|byte| *byte == b'\n') else { return Ok(false) };
    let code = pack::hexadecimal(&Sha256::digest(&bundle[end + 1..]));
    let expected = format!("/* sources: {}, bundle: {code} */", hash_modules(folder)?);
    Ok(&bundle[..end] == expected.as_bytes())
}

/// Returns the hash over the hashes of the path and of the content of each module, in the order of the paths.
fn hash_modules(folder: &Path) -> Result<String, String> {
    let mut all = Sha256::new();
    for path in files::paths(folder, MODULES)? {
        all.update(Sha256::digest(&path));
        all.update(Sha256::digest(files::content(folder, &path)?));
    }
    Ok(pack::hexadecimal(&all.finalize()))
}
