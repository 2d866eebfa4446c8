//! Comparing what a peer says with what it must not guess.

/// Whether the two are the same. Takes the same time whichever byte is wrong, so that guessing byte by byte is no help;
/// only the length can be told.
pub(crate) fn equal(known: &[u8], given: &[u8]) -> bool {
    let differing = known.iter().zip(given).fold(0, |differing, (a, b)| differing | (a ^ b));
    known.len() == given.len() && differing == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_is_equal() {
        assert!(equal(b"", b"") && equal(b"secret", b"secret"));
        for other in ["", "s", "secre", "secrets", "Secret", "secreT"] {
            assert!(!equal(b"secret", other.as_bytes()) && !equal(other.as_bytes(), b"secret"), "{other}");
        }
    }
}
