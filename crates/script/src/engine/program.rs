//! A script that was read, from which Lua states are created.

use std::path::Path;
use std::sync::Arc;

use restante_platform::UntrustedFile;

use super::Engine;
use super::sources::Sources;
use crate::Settings;
use crate::call_error::CallErrorKind;
use crate::loaded::ScriptError;
use crate::modules::SharedDict;
use crate::services::Services;

/// A script that was read, with everything that its states need.
pub(crate) struct Program {
    pub(super) sources: Arc<Sources>,
    pub(super) settings: Settings,
    pub(super) services: Services,
    pub(super) shared: Arc<SharedDict>,
}

impl Program {
    /// Reads the script without running it.
    pub(crate) fn read(
        path: &Path,
        settings: &Settings,
        services: Services,
        shared: Arc<SharedDict>,
    ) -> Result<Self, ScriptError> {
        let sources = Sources::read(path, settings.trusted_files_only).map_err(|error| {
            let message = format!("{}: {error}", path.display());
            match error.get_ref() {
                Some(reason) if reason.is::<UntrustedFile>() => ScriptError::untrusted(message),
                _ => ScriptError::permanent(message),
            }
        })?;
        Ok(Self { sources: Arc::new(sources), settings: settings.clone(), services, shared })
    }

    /// Creates a state and runs the script in it.
    pub(crate) fn engine(&self) -> Result<Engine, ScriptError> {
        Engine::new(self).map_err(|error| {
            let message = match error.location {
                Some(_) => error.to_string(),
                None => format!("{}: {error}", self.sources.main.name),
            };
            // Something that the script waits for, such as a web server, may be faster next time.
            if error.kind == CallErrorKind::Timeout {
                ScriptError::transient(message)
            } else {
                ScriptError::permanent(message)
            }
        })
    }
}
