//! Splits the writes of a client into the parts in which they reach a session, and runs all conversations of a folder.

use std::fs;
use std::path::Path;

/// How a write of the client reaches the session.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    Whole,
    EveryOctet,
    /// At pseudo-random places for this seed.
    Random(u64),
}

/// Runs every conversation of a folder with every way to split it. Calls `run` with the name, the text and the way.
/// Returns the number of conversations.
pub(crate) fn run_all(folder: &str, run: impl Fn(&str, &str, Cut)) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            let text = fs::read_to_string(&path).unwrap();
            let name = path.file_stem().unwrap().to_string_lossy();
            run(&name, &text, Cut::Whole);
            run(&name, &text, Cut::EveryOctet);
            (1..=8).for_each(|seed| run(&name, &text, Cut::Random(seed)));
            count += 1;
        }
    }
    count
}

pub(crate) fn cuts(input: &[u8], cut: Cut) -> impl Iterator<Item = &[u8]> {
    let mut rest = input;
    let mut random = match cut {
        Cut::Random(seed) => seed,
        Cut::Whole | Cut::EveryOctet => 0,
    };
    std::iter::from_fn(move || {
        let length = match cut {
            Cut::Whole => rest.len(),
            Cut::EveryOctet => 1,
            Cut::Random(_) => {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                usize::try_from(random >> 59).unwrap_or(1).max(1)
            }
        };
        let (part, after) = rest.split_at_checked(length).unwrap_or((rest, &[]));
        rest = after;
        (!part.is_empty()).then_some(part)
    })
}
