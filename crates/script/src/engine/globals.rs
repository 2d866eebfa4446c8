//! The global variables of a script. What it defines while it is loaded stays; what a call assigns is forgotten after it,
//! so that no call sees what another one has left.

use mlua::{Table, Value};

/// The two tables behind `_G`.
pub(super) struct Globals {
    /// Takes every assignment, and is empty between calls. This is what scripts know as `_G`.
    pub(super) own: Table,
    /// Shines through it: the library and what the script has defined.
    pub(super) kept: Table,
}

impl Globals {
    /// Keeps what was assigned since the last time; says which functions are among it.
    pub(super) fn keep(&self) -> mlua::Result<Vec<String>> {
        let mut functions = Vec::new();
        for pair in self.own.pairs::<Value, Value>() {
            let (name, value) = pair?;
            if let (Value::String(name), Value::Function(_)) = (&name, &value) {
                functions.push(name.to_string_lossy());
            }
            self.kept.raw_set(name, value)?;
        }
        self.own.clear()?;
        functions.sort();
        Ok(functions)
    }

    /// Forgets what was assigned since the last time.
    pub(super) fn forget(&self) -> mlua::Result<()> {
        if self.own.is_empty() {
            return Ok(());
        }
        self.own.clear()
    }
}
