//! Limits on the time and the memory of a check.

/// The maximum number of selectors in the style sheets of a document. It limits the number of rules, too, because a rule
/// without selectors is not stored.
pub(crate) const MAX_SELECTORS: usize = 20_000;
/// The maximum number of declarations in the style sheets of a document, and in a style attribute.
pub(crate) const MAX_DECLARATIONS: usize = 100_000;

/// The work that is left for matching.
#[derive(Debug)]
pub(crate) struct WorkLimit(pub(crate) usize);

impl WorkLimit {
    /// Uses steps. Returns false if none are left.
    pub(crate) fn take(&mut self, steps: usize) -> bool {
        self.0 = self.0.saturating_sub(steps);
        !self.is_reached()
    }

    /// Returns whether no work is left.
    pub(crate) fn is_reached(&self) -> bool {
        self.0 == 0
    }
}

/// The numbers of selectors and declarations that may still be stored.
#[derive(Debug)]
pub(crate) struct StyleLimit {
    selectors: usize,
    declarations: usize,
    /// Whether something was left out.
    pub(crate) is_exceeded: bool,
}

impl Default for StyleLimit {
    fn default() -> Self {
        Self { selectors: MAX_SELECTORS, declarations: MAX_DECLARATIONS, is_exceeded: false }
    }
}

impl StyleLimit {
    /// Counts a selector. Returns false if it must be left out.
    pub(crate) fn take_selector(&mut self) -> bool {
        Self::take(&mut self.selectors, &mut self.is_exceeded)
    }

    /// Counts a declaration. Returns false if it must be left out.
    pub(crate) fn take_declaration(&mut self) -> bool {
        Self::take(&mut self.declarations, &mut self.is_exceeded)
    }

    fn take(left: &mut usize, is_exceeded: &mut bool) -> bool {
        if let Some(rest) = left.checked_sub(1) {
            *left = rest;
            true
        } else {
            *is_exceeded = true;
            false
        }
    }
}
