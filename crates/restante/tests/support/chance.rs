//! Chance that can be repeated, and settings of tests that are left to it.

/// Enough chance for a test: xorshift. The seed must not be zero.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    /// Seeded by a variable, else by the clock; printed, so that a run that failed can be repeated.
    pub(crate) fn seeded_by(variable: &str) -> Self {
        let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().subsec_nanos();
        let seed = setting(variable).unwrap_or(u64::from(clock)) | 1;
        println!("{variable}={seed}");
        Self(seed)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    /// Another one, for another thread.
    pub(crate) fn fork(&mut self) -> Self {
        self.below(2);
        Self(self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }
}

/// A number in the environment.
pub(crate) fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{name} is no number: {value}")))
}
