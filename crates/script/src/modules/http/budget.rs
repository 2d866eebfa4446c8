//! The memory budget of a request or a batch. It is charged while requests are built: a small table can contain one
//! long text many times, and the resulting request is not covered by the memory limit of the Lua state.

use mlua::{Lua, LuaString, Value};

use crate::limits;
use crate::modules::convert::to_text;

/// The maximum size of a request, or of all requests of one `request_batch`.
const MAX_REQUEST_BYTES: usize = 64 * 1024 * 1024;

/// The memory use of a text in addition to its bytes.
const TEXT_OVERHEAD_BYTES: usize = 32;

/// The number of charges after which the limits of the call are checked.
const LIMIT_CHECK_INTERVAL: u32 = 1024;

/// The reason why there is no request.
pub(super) enum RequestError {
    /// The arguments are invalid.
    Invalid(String),
    /// The budget is exceeded.
    TooLarge,
    /// Lua failed.
    Lua(mlua::Error),
}

impl From<mlua::Error> for RequestError {
    fn from(error: mlua::Error) -> Self {
        Self::Lua(error)
    }
}

/// The remaining budget.
pub(super) struct RequestBudget<'a> {
    pub(super) lua: &'a Lua,
    remaining: usize,
    charges: u32,
}

impl<'a> RequestBudget<'a> {
    pub(super) fn new(lua: &'a Lua) -> Self {
        Self { lua, remaining: MAX_REQUEST_BYTES, charges: 0 }
    }

    /// Converts a value as `tostring` does, and charges its length.
    pub(super) fn text(&mut self, value: &Value) -> Result<String, RequestError> {
        if let Value::String(text) = value {
            self.charge(text.as_bytes().len())?;
            return Ok(text.to_string_lossy());
        }
        let text = to_text(self.lua, value)?;
        self.charge(text.len())?;
        Ok(text)
    }

    /// Copies the bytes of a text, and charges them.
    pub(super) fn bytes(&mut self, text: &LuaString) -> Result<Vec<u8>, RequestError> {
        let bytes = text.as_bytes();
        self.charge(bytes.len())?;
        Ok(bytes.to_vec())
    }

    /// Charges `length` bytes.
    pub(super) fn charge(&mut self, length: usize) -> Result<(), RequestError> {
        self.charges = self.charges.wrapping_add(1);
        if self.charges.is_multiple_of(LIMIT_CHECK_INTERVAL) {
            limits::check_limits(self.lua)?;
        }
        self.remaining =
            self.remaining.checked_sub(length.saturating_add(TEXT_OVERHEAD_BYTES)).ok_or(RequestError::TooLarge)?;
        Ok(())
    }
}
