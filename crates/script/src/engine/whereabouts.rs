//! Where a script is: what other threads can know of a call that does not come to its end. They must not ask the state
//! itself, which is busy with that call.

use std::sync::Arc;

use super::sources::Sources;
use crate::event::Event;
use crate::failure::Place;
use crate::limits::Watch;

/// Places of one state.
pub(crate) struct Whereabouts {
    watch: Watch,
    sources: Arc<Sources>,
    /// Where the function for each event begins, in the order of [`Event::ALL`].
    definitions: [Option<Place>; 5],
}

impl Whereabouts {
    pub(super) fn new(watch: Watch, sources: &Arc<Sources>, definitions: [Option<Place>; 5]) -> Self {
        let definitions = definitions.map(|place| place.map(|place| whole(sources, place)));
        Self { watch, sources: Arc::clone(sources), definitions }
    }

    /// The best that is known of a call for an event.
    pub(crate) fn place(&self, event: Event) -> Option<Place> {
        self.seen().or_else(|| self.definition(event))
    }

    /// The last line that was seen of the call; none while it is young.
    pub(super) fn seen(&self) -> Option<Place> {
        self.watch.seen().map(|place| whole(&self.sources, place))
    }

    /// Where the function for an event begins: better than no place at all.
    pub(super) fn definition(&self, event: Event) -> Option<Place> {
        self.definitions[event as usize].clone()
    }
}

fn whole(sources: &Sources, (file, line): Place) -> Place {
    (sources.whole_name(file), line)
}
