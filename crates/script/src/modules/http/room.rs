//! How much a request, or a batch of them, may take. It is counted while they are put together: a small table can name one long
//! text many times, and what is made of it lies outside of the memory that is counted for a script.

use mlua::{Lua, LuaString, Value};

use crate::limits;
use crate::modules::convert::text_of;

/// The most bytes of one request, and of all the requests that are sent together by one call of `request_batch`.
const OUTGOING: usize = 64 * 1024 * 1024;

/// What a text takes beside itself.
const OVERHEAD: usize = 32;

/// After how many texts the limits of the call are looked after.
const INTERVAL: u32 = 1024;

/// Why there is no request.
pub(super) enum Trouble {
    /// The arguments make none.
    Data(String),
    /// They take more than there is room for.
    TooLong,
    /// Lua itself failed.
    Lua(mlua::Error),
}

impl From<mlua::Error> for Trouble {
    fn from(error: mlua::Error) -> Self {
        Self::Lua(error)
    }
}

/// What is left for them.
pub(super) struct Room<'a> {
    pub(super) lua: &'a Lua,
    left: usize,
    texts: u32,
}

impl<'a> Room<'a> {
    pub(super) fn new(lua: &'a Lua) -> Self {
        Self { lua, left: OUTGOING, texts: 0 }
    }

    /// What `tostring` makes of a value.
    pub(super) fn text(&mut self, value: &Value) -> Result<String, Trouble> {
        if let Value::String(text) = value {
            self.take(text.as_bytes().len())?;
            return Ok(text.to_string_lossy());
        }
        let text = text_of(self.lua, value)?;
        self.take(text.len())?;
        Ok(text)
    }

    /// The bytes of a text.
    pub(super) fn bytes(&mut self, text: &LuaString) -> Result<Vec<u8>, Trouble> {
        let bytes = text.as_bytes();
        self.take(bytes.len())?;
        Ok(bytes.to_vec())
    }

    /// So many bytes are needed.
    pub(super) fn take(&mut self, length: usize) -> Result<(), Trouble> {
        self.texts = self.texts.wrapping_add(1);
        if self.texts.is_multiple_of(INTERVAL) {
            limits::look(self.lua)?;
        }
        self.left = self.left.checked_sub(length.saturating_add(OVERHEAD)).ok_or(Trouble::TooLong)?;
        Ok(())
    }
}
