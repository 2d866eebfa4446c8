//! Encodes Lua values as JSON. A table with the keys 1 to n is an array, also if it is empty. A table with string keys
//! is an object, whose keys are sorted to make the output deterministic. Other tables cannot be encoded. Invalid UTF-8
//! is replaced.

use std::ffi::c_void;
use std::io::{self, Write};
use std::time::Instant;

use mlua::{Lua, Table, Value};

use super::{MAX_DEPTH, MAX_EXACT_INTEGER};
use crate::event::CallContext;
use crate::modules::convert::to_number;
use crate::objects;

/// The error of a text that exceeds the maximum length.
const TOO_LONG: &str = "the JSON text is too long";

/// Encodes a value in at most `max_bytes` bytes. The inner error is a text for the script.
pub(super) fn encode(lua: &Lua, value: &Value, max_bytes: usize) -> mlua::Result<Result<Vec<u8>, String>> {
    let deadline = CallContext::current(lua).ok().map(|context| context.deadline);
    let mut encoder =
        Encoder { out: Vec::new(), max_bytes, pending_key_bytes: 0, parents: Vec::new(), visited_tables: 0, deadline };
    match encoder.value(value) {
        Ok(()) => Ok(Ok(encoder.out)),
        Err(EncodeError::Unsupported(reason)) => Ok(Err(reason)),
        Err(EncodeError::Lua(error)) => Err(error),
    }
}

/// The reason why encoding stopped.
enum EncodeError {
    /// The value cannot be encoded.
    Unsupported(String),
    /// Lua failed.
    Lua(mlua::Error),
}

impl From<mlua::Error> for EncodeError {
    fn from(error: mlua::Error) -> Self {
        Self::Lua(error)
    }
}

struct Encoder {
    out: Vec<u8>,
    max_bytes: usize,
    /// The length of all keys that were collected and are not written yet.
    pending_key_bytes: usize,
    /// The tables that contain the current one.
    parents: Vec<*const c_void>,
    /// The number of visited tables, counted at each occurrence.
    visited_tables: u32,
    deadline: Option<Instant>,
}

impl Encoder {
    fn value(&mut self, value: &Value) -> Result<(), EncodeError> {
        match value {
            Value::Nil => self.push(b"null"),
            Value::Boolean(true) => self.push(b"true"),
            Value::Boolean(false) => self.push(b"false"),
            Value::Integer(number) => self.push(number.to_string().as_bytes()),
            Value::Number(number) => self.number(*number),
            Value::String(text) => self.text(&text.as_bytes()),
            Value::Table(table) if !objects::is_object(table) => self.table(table),
            // Objects look like userdata to scripts, even those that are tables.
            Value::Table(_) => Err(unsupported("cannot encode userdata to JSON")),
            other => Err(unsupported(&format!("cannot encode {} to JSON", other.type_name()))),
        }
    }

    fn number(&mut self, number: f64) -> Result<(), EncodeError> {
        if !number.is_finite() {
            return Err(unsupported("cannot encode a number that is not finite to JSON"));
        }
        if number.fract() == 0.0 && number.abs() <= MAX_EXACT_INTEGER {
            return self.push(format!("{number:.0}").as_bytes());
        }
        self.push(format!("{number:?}").as_bytes())
    }

    fn text(&mut self, text: &[u8]) -> Result<(), EncodeError> {
        self.check_space(text.len())?;
        let text = String::from_utf8_lossy(text);
        let out = BoundedWriter { out: &mut self.out, max_bytes: self.max_bytes };
        serde_json::to_writer(out, text.as_ref()).map_err(|_| unsupported(TOO_LONG))
    }

    fn table(&mut self, table: &Table) -> Result<(), EncodeError> {
        let pointer = table.to_pointer();
        if self.parents.contains(&pointer) {
            return Err(unsupported("cannot encode recursively nested tables to JSON"));
        }
        // The hook does not run in here, so check the deadline.
        self.visited_tables = self.visited_tables.wrapping_add(1);
        if self.visited_tables.is_multiple_of(256) && self.deadline.is_some_and(|deadline| deadline < Instant::now()) {
            return Err(EncodeError::Lua(mlua::Error::runtime("json.encode takes too long")));
        }
        if self.parents.len() == MAX_DEPTH {
            return Err(unsupported("cannot encode tables this deep to JSON"));
        }
        self.parents.push(pointer);
        match self.shape(table)? {
            Shape::Array(length) => self.array(table, length)?,
            Shape::Object(keys) => self.object(table, &keys)?,
        }
        self.parents.pop();
        Ok(())
    }

    fn array(&mut self, table: &Table, length: u32) -> Result<(), EncodeError> {
        self.push(b"[")?;
        for index in 1..=length {
            if index > 1 {
                self.push(b",")?;
            }
            self.value(&table.raw_get(index)?)?;
        }
        self.push(b"]")
    }

    fn object(&mut self, table: &Table, keys: &[Vec<u8>]) -> Result<(), EncodeError> {
        self.push(b"{")?;
        for (index, key) in keys.iter().enumerate() {
            if index > 0 {
                self.push(b",")?;
            }
            self.pending_key_bytes -= key.len();
            self.text(key)?;
            self.push(b":")?;
            self.value(&table.raw_get(mlua::LuaString::wrap(key))?)?;
        }
        self.push(b"}")
    }

    fn push(&mut self, text: &[u8]) -> Result<(), EncodeError> {
        self.check_space(text.len())?;
        self.out.extend_from_slice(text);
        Ok(())
    }

    fn check_space(&self, additional: usize) -> Result<(), EncodeError> {
        if self.out.len() + self.pending_key_bytes + additional > self.max_bytes {
            Err(unsupported(TOO_LONG))
        } else {
            Ok(())
        }
    }

    fn shape(&mut self, table: &Table) -> Result<Shape, EncodeError> {
        let mut keys = Vec::new();
        let mut length = 0_u32;
        let mut highest = 0.0_f64;
        for pair in table.pairs::<Value, Value>() {
            match pair?.0 {
                Value::String(key) if length == 0 => {
                    let key = key.as_bytes();
                    self.check_space(key.len())?;
                    self.pending_key_bytes += key.len();
                    keys.push(key.to_vec());
                }
                key => match to_number(&key) {
                    Some(key) if keys.is_empty() => {
                        if key < 1.0 || key.fract() != 0.0 {
                            return Err(unsupported("cannot encode sparse array"));
                        }
                        length += 1;
                        // Each element takes at least one byte and a comma.
                        self.check_space(2 * length as usize)?;
                        highest = highest.max(key);
                    }
                    _ => return Err(unsupported("cannot encode mixed or invalid key types")),
                },
            }
        }
        if !keys.is_empty() {
            keys.sort_unstable();
            return Ok(Shape::Object(keys));
        }
        // Distinct positive integers have no gap if and only if the highest is their count.
        if f64::from(length) < highest {
            return Err(unsupported("cannot encode sparse array"));
        }
        Ok(Shape::Array(length))
    }
}

/// Limits the length of the output: escapes can make a text much longer.
struct BoundedWriter<'a> {
    out: &'a mut Vec<u8>,
    max_bytes: usize,
}

impl Write for BoundedWriter<'_> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        if self.out.len() + text.len() > self.max_bytes {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.out.write(text)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The JSON form of a table.
enum Shape {
    /// An array of this length.
    Array(u32),
    /// An object with these keys.
    Object(Vec<Vec<u8>>),
}

fn unsupported(reason: &str) -> EncodeError {
    EncodeError::Unsupported(reason.to_owned())
}
