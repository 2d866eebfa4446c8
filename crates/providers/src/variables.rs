//! Simple variables in the texts of a request.

use std::collections::HashMap;

use crate::values::Texts;

/// The maximum length of the name of a variable. Longer texts between delimiters are not changed.
pub(crate) const MAX_NAME_BYTES: usize = 200;
/// The depth of objects in which variables are found: `a.b.c`.
const MAX_DEPTH: usize = 4;

/// The values of variables.
#[derive(Debug, Default)]
pub(crate) struct Variables(HashMap<String, String>);

impl Variables {
    /// Returns the variables that are the members of an object. `a.b` is the member `b` of the member `a`.
    pub(crate) fn new(Texts(members): Texts) -> Self {
        let mut variables = Self::default();
        variables.add("", members, MAX_DEPTH);
        variables
    }

    fn add(&mut self, prefix: &str, members: Vec<(String, String)>, depth: usize) {
        for (name, value) in members {
            let name = format!("{prefix}{name}");
            if name.len() > MAX_NAME_BYTES {
                continue;
            }
            if depth > 1
                && value.starts_with('{')
                && let Ok(Texts(inner)) = serde_json::from_str(&value)
            {
                self.add(&format!("{name}."), inner, depth - 1);
            }
            self.0.insert(name, value);
        }
    }

    /// Returns the value of a variable.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

/// Returns a text with the characters escaped that have a meaning in HTML.
pub(crate) fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_depth_are_limited() {
        let deep = format!("{}1{}", "{\"a\":".repeat(100), "}".repeat(100));
        let variables = Variables::new(serde_json::from_str(&deep).unwrap());
        assert!(variables.get("a.a.a.a").is_some() && variables.get("a.a.a.a.a").is_none());
        let long = format!("{{\"{}\":1}}", "a".repeat(MAX_NAME_BYTES + 1));
        assert!(Variables::new(serde_json::from_str(&long).unwrap()).0.is_empty());
    }
}
