//! The limit of the texts that the messages of a request have together.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::email::{Content, Email, Parts};
use crate::failure::{Failure, FailureKind};
use crate::templates::TemplateSource;
use crate::values::merge_objects;
use crate::variables::MAX_NAME_BYTES;

/// The size of the texts that the messages of a request may have together. A larger request may have twice its size.
pub(crate) const MAX_TEXT_BYTES: usize = 32 * 1024 * 1024;
/// The size of an address, a field or a file in memory without its texts, approximately.
const ITEM_BYTES: usize = 150;

/// The size that the messages of a request may still have, without their attachments. What a request has for several recipients
/// is copied, and variables can be in a text many times.
#[derive(Debug)]
pub(crate) struct TextBudget(AtomicUsize);

impl TextBudget {
    /// Returns the budget of a request with a body of this length.
    pub(crate) fn new(body_bytes: usize) -> Self {
        Self(AtomicUsize::new(MAX_TEXT_BYTES.max(body_bytes.saturating_mul(2))))
    }

    /// Returns the bytes that are left.
    pub(crate) fn rest(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns a JSON object with the members of all of these objects. Those of later ones have precedence. Takes their sizes
    /// from the budget, because they are parsed for each message.
    pub(crate) fn merge_objects<'a>(
        &self,
        field: &str,
        objects: impl IntoIterator<Item = &'a str>,
    ) -> Result<String, Failure> {
        let objects: Vec<_> = objects.into_iter().collect();
        self.take(objects.iter().map(|object| object.len()).sum())?;
        merge_objects(field, objects)
    }

    /// Takes bytes from the budget. Fails if nothing is left then.
    pub(crate) fn take(&self, bytes: usize) -> Result<(), Failure> {
        // One thread at a time uses the budget. After a failure, all others fail at once.
        let rest = self.rest().checked_sub(bytes).filter(|rest| *rest > 0);
        self.0.store(rest.unwrap_or_default(), Ordering::Relaxed);
        let problem = "The messages of the request are too large together.";
        rest.map(drop).ok_or_else(|| Failure::new(FailureKind::TooLarge, problem))
    }

    /// Takes the size of a message from the budget. Returns the message.
    pub(crate) fn add(&self, email: Email) -> Result<Email, Failure> {
        self.take(size(&email))?;
        Ok(email)
    }

    /// Returns a text with the values of the variables between these delimiters. `value` gets the text between them, without the
    /// spaces around it. Variables without a value are not changed.
    pub(crate) fn replace(
        &self,
        text: &str,
        [open, close]: [&str; 2],
        value: impl Fn(&str) -> Option<String>,
    ) -> Result<String, Failure> {
        let mut replaced = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once(open) {
            replaced.push_str(before);
            let searched = &after[..after.floor_char_boundary(MAX_NAME_BYTES + close.len())];
            let found = searched.split_once(close).and_then(|(name, _)| Some((name, value(name.trim())?)));
            if let Some((name, value)) = found {
                self.take(value.len())?;
                replaced.push_str(&value);
                rest = &after[name.len() + close.len()..];
            } else {
                replaced.push_str(open);
                rest = after;
            }
        }
        replaced.push_str(rest);
        Ok(replaced)
    }
}

/// Returns the size of a message in memory without its attachments, approximately.
fn size(email: &Email) -> usize {
    let (parts, data) = match &email.content {
        Content::Parts(parts) => (parts, 0),
        Content::Template(template, parts) => match &template.source {
            TemplateSource::Inline(inline) => (parts, template.data.len() + inline.size()),
            TemplateSource::Stored(_) => (parts, template.data.len()),
        },
        Content::Raw(message) => (&Parts::default(), message.len()),
    };
    let people = [&email.to, &email.cc, &email.bcc, &email.reply_to].into_iter().flatten();
    let pairs = email.headers.iter().chain(&email.metadata);
    let lengths = (people.map(|person| person.name.len()))
        .chain(pairs.map(|(name, value)| name.len() + value.len()))
        .chain(email.tags.iter().map(String::len))
        .chain(parts.attachments.iter().map(|file| file.filename.as_ref().map_or(0, String::len)));
    let texts = [&parts.text, &parts.html].into_iter().flatten().map(String::len).sum::<usize>();
    lengths.map(|length| length + ITEM_BYTES).sum::<usize>() + parts.subject.len() + texts + data
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variables::Variables;

    fn variables() -> Variables {
        Variables::new(serde_json::from_str(r#"{"a":"x","b":{"c":1,"d":{"e":"{{a}}"}},"ü":"y"}"#).unwrap())
    }

    #[test]
    fn replaces_variables() {
        let table = [
            ("", ""),
            ("{{a}}{{ a }}", "xx"),
            ("{{b.c}} {{b.d.e}} {{ü}}", "1 {{a}} y"),
            ("{{n}} {{}} {{ {{a}}", "{{n}} {{}} {{ x"),
            ("{{a", "{{a"),
            ("ü{{ä}}{{a}}ü", "ü{{ä}}xü"),
        ];
        let variables = variables();
        for (text, expected) in table {
            let replaced = TextBudget(AtomicUsize::new(1000))
                .replace(text, ["{{", "}}"], |name| variables.get(name).map(str::to_owned));
            assert_eq!(replaced.unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn sizes_are_limited() {
        let value = |_: &str| Some("0123456789".to_owned());
        let replace =
            |budget: usize| TextBudget(AtomicUsize::new(budget)).replace(&"{{a}}".repeat(10), ["{{", "}}"], value);
        assert!(replace(100).is_err() && replace(101).is_ok());
        let email = || Email { tags: vec![String::new(); 3], ..Email::default() };
        let budget = TextBudget(AtomicUsize::new(5 * ITEM_BYTES));
        assert!(budget.add(email()).is_ok());
        assert_eq!(budget.add(email()).unwrap_err().kind, FailureKind::TooLarge);
        // Names that are not closed are searched for a limited distance only.
        let open = "{{".repeat(1 << 20);
        assert_eq!(TextBudget(AtomicUsize::new(1 << 22)).replace(&open, ["{{", "}}"], value).unwrap(), open);
    }
}
