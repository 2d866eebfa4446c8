//! Where a script is: what other threads can know of a call that does not come to its end. They must not ask the state
//! itself, which is busy with that call.

use std::sync::Arc;

use super::sources::Sources;
use crate::call_error::SourceLocation;
use crate::event::Event;
use crate::limits::Limiter;

/// Places of one state.
pub(crate) struct CallLocation {
    limiter: Limiter,
    sources: Arc<Sources>,
    /// Where the function for each event begins, in the order of [`Event::ALL`].
    definitions: [Option<SourceLocation>; 5],
}

impl CallLocation {
    pub(super) fn new(watch: Limiter, sources: &Arc<Sources>, definitions: [Option<SourceLocation>; 5]) -> Self {
        let definitions = definitions.map(|place| place.map(|place| with_full_name(sources, place)));
        Self { limiter: watch, sources: Arc::clone(sources), definitions }
    }

    /// The best that is known of a call for an event.
    pub(crate) fn best_known(&self, event: Event) -> Option<SourceLocation> {
        self.last_seen().or_else(|| self.definition(event))
    }

    /// The last line that was seen of the call; none while it is young.
    pub(super) fn last_seen(&self) -> Option<SourceLocation> {
        self.limiter.last_location().map(|place| with_full_name(&self.sources, place))
    }

    /// Where the function for an event begins: better than no place at all.
    pub(super) fn definition(&self, event: Event) -> Option<SourceLocation> {
        self.definitions[event as usize].clone()
    }
}

fn with_full_name(sources: &Sources, (file, line): SourceLocation) -> SourceLocation {
    (sources.full_name(file), line)
}
