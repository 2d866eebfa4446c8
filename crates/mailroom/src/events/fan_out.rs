//! The task that tells a hall. It is there while somebody listens, and it rests after every round for a multiple of the
//! work that the round made, so that all listeners together take about a tenth of one processor, however many there are
//! and however fast mail comes. After a quiet time it tells at once.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::hub::{Hub, Kind};

/// How much longer than its work a round's rest is.
const REST: u32 = 9;
/// The shortest rest, so that events that come one by one are told together.
const MIN_REST: Duration = Duration::from_millis(1);

/// Tells the listeners of a hall, wing by wing, until there are none.
pub(super) async fn run(hub: Arc<Hub>, kind: Kind) {
    while let Some(wings) = hub.hall(kind).wings() {
        let mut is_idle = true;
        for wing in wings {
            if let Some(work) = hub.tell(&wing) {
                is_idle = false;
                // Also behind those who were cut off, who come again at once: without this rest, mail that comes too fast
                // for a thousand listeners would have them all come and go a thousand times a second.
                sleep(work * REST).await;
            }
        }
        if is_idle {
            hub.hall(kind).news.notified().await;
        } else {
            sleep(MIN_REST).await;
        }
    }
}
