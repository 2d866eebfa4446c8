//! The location of a call in the script, for other threads. They cannot query the Lua state, which is busy with the
//! call.

use std::sync::Arc;

use super::sources::Sources;
use crate::call_error::SourceLocation;
use crate::event::ScriptEvent;
use crate::limits::Limiter;

/// The location of the current call of one state.
pub(crate) struct CallLocation {
    limiter: Limiter,
    sources: Arc<Sources>,
    /// Where the function of each event is defined, in the order of [`ScriptEvent::ALL`].
    definitions: [Option<SourceLocation>; 5],
}

impl CallLocation {
    pub(super) fn new(limiter: Limiter, sources: &Arc<Sources>, definitions: [Option<SourceLocation>; 5]) -> Self {
        let definitions = definitions.map(|location| location.map(|location| with_full_name(sources, location)));
        Self { limiter, sources: Arc::clone(sources), definitions }
    }

    /// Returns the last known line, or the definition of the function for `event`.
    pub(crate) fn best_known(&self, event: ScriptEvent) -> Option<SourceLocation> {
        self.last_seen().or_else(|| self.definition(event))
    }

    /// Returns the last line that was recorded for the call, or `None` if there is none yet.
    pub(super) fn last_seen(&self) -> Option<SourceLocation> {
        self.limiter.last_location().map(|location| with_full_name(&self.sources, location))
    }

    /// Returns where the function for `event` is defined.
    pub(super) fn definition(&self, event: ScriptEvent) -> Option<SourceLocation> {
        self.definitions[event as usize].clone()
    }
}

fn with_full_name(sources: &Sources, (file, line): SourceLocation) -> SourceLocation {
    (sources.full_name(file), line)
}
