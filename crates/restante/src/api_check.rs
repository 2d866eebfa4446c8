//! The check that no two APIs of one listener have the same path.

use restante_http::{Collision, ListenerApis};
use restante_settings::Web;

/// Fails if two APIs of one listener have the same path.
pub(crate) fn check_apis(web: &Web) -> Result<(), Collision> {
    // Without configuration there are none.
    if web.listeners.is_empty() {
        return Ok(());
    }
    ListenerApis::main(&web.listeners).check()?;
    web.separate_listeners().into_iter().try_for_each(|(_, mounts)| ListenerApis::separate(mounts).check())
}
