//! How much a request, or a batch of them, may take. It is counted while they are put together: a small table can name one long
//! text many times, and what is made of it lies outside of the memory that is counted for a script.

use mlua::{Lua, LuaString, Value};

use crate::limits;
use crate::modules::convert::to_text;

/// The most bytes of one request, and of all the requests that are sent together by one call of `request_batch`.
const MAX_REQUEST_BYTES: usize = 64 * 1024 * 1024;

/// What a text takes beside itself.
const TEXT_OVERHEAD_BYTES: usize = 32;

/// After how many texts the limits of the call are looked after.
const LIMIT_CHECK_INTERVAL: u32 = 1024;

/// Why there is no request.
pub(super) enum RequestError {
    /// The arguments make none.
    Invalid(String),
    /// They take more than there is room for.
    TooLarge,
    /// Lua itself failed.
    Lua(mlua::Error),
}

impl From<mlua::Error> for RequestError {
    fn from(error: mlua::Error) -> Self {
        Self::Lua(error)
    }
}

/// What is left for them.
pub(super) struct RequestBudget<'a> {
    pub(super) lua: &'a Lua,
    remaining: usize,
    reservations: u32,
}

impl<'a> RequestBudget<'a> {
    pub(super) fn new(lua: &'a Lua) -> Self {
        Self { lua, remaining: MAX_REQUEST_BYTES, reservations: 0 }
    }

    /// What `tostring` makes of a value.
    pub(super) fn text(&mut self, value: &Value) -> Result<String, RequestError> {
        if let Value::String(text) = value {
            self.reserve(text.as_bytes().len())?;
            return Ok(text.to_string_lossy());
        }
        let text = to_text(self.lua, value)?;
        self.reserve(text.len())?;
        Ok(text)
    }

    /// The bytes of a text.
    pub(super) fn bytes(&mut self, text: &LuaString) -> Result<Vec<u8>, RequestError> {
        let bytes = text.as_bytes();
        self.reserve(bytes.len())?;
        Ok(bytes.to_vec())
    }

    /// So many bytes are needed.
    pub(super) fn reserve(&mut self, length: usize) -> Result<(), RequestError> {
        self.reservations = self.reservations.wrapping_add(1);
        if self.reservations.is_multiple_of(LIMIT_CHECK_INTERVAL) {
            limits::check_limits(self.lua)?;
        }
        self.remaining =
            self.remaining.checked_sub(length.saturating_add(TEXT_OVERHEAD_BYTES)).ok_or(RequestError::TooLarge)?;
        Ok(())
    }
}
