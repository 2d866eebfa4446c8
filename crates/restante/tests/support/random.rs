//! Random numbers that can be repeated, and numbers from the environment.

/// A xorshift generator, which is random enough for tests. The seed must not be zero.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// Returns a generator seeded by this variable, or else by the clock. Prints the seed, so that a failed run can be repeated.
    pub(crate) fn seeded_by(variable: &str) -> Self {
        let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().subsec_nanos();
        let seed = setting(variable).unwrap_or(u64::from(clock)) | 1;
        println!("{variable}={seed}");
        Self(seed)
    }

    /// Returns a number from 0 to `bound` - 1.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    /// Returns another generator, for another thread.
    pub(crate) fn fork(&mut self) -> Self {
        self.below(2);
        Self(self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }
}

/// Returns the number in this environment variable.
pub(crate) fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{name} is not a number: {value}")))
}
