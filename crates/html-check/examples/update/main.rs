//! Updates the table of features: reads the data of caniemail from a file and rewrites `data/features.tsv`.
//!
//! ```sh
//! curl -o data.json https://www.caniemail.com/api/data.json
//! cargo run -p restante-html-check --example update -- data.json
//! ```

mod convert;

use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let source = std::env::args_os().nth(1).ok_or("usage: update DATA.JSON")?;
    let table = convert::convert(&std::fs::read_to_string(source)?)?;
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/features.tsv");
    std::fs::write(&target, table)?;
    println!("{} written", target.display());
    Ok(())
}
