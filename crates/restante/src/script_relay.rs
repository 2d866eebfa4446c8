//! Gives scripts access to the relay.

use std::sync::Arc;

use async_trait::async_trait;
use restante_mail::message::Message;
use restante_relay::{Relay, ReleaseRequest};
use restante_script::{Release, Releaser};

/// The name of the client in entries that a script has added.
const CLIENT_NAME: &str = "script";

/// The relay, as scripts use it.
pub(crate) struct ScriptRelay(pub(crate) Arc<Relay>);

#[async_trait]
impl Releaser for ScriptRelay {
    async fn release(&self, message: Message, release: Release) -> Result<String, String> {
        let Release { target, recipients } = release;
        let by = Some(CLIENT_NAME.to_owned());
        let request = ReleaseRequest { message, target, recipients, by, subject_prefix: String::new() };
        let released = self.0.release(request).await;
        released.map(|entry| entry.id.to_string()).map_err(|error| error.to_string())
    }
}
