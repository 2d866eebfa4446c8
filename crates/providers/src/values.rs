//! Types of members in JSON whose length is limited, or that have several forms.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::failure::Failure;

/// The maximum length of a list in a request. Providers allow 1000 recipients or messages at most.
pub(crate) const MAX_ITEMS: usize = 1000;
/// The maximum number of members of an object with free names.
const MAX_MEMBERS: usize = 500;
/// The maximum length of a JSON value that is parsed only when it is needed, such as the data of a template.
pub(crate) const MAX_RAW_BYTES: usize = 1024 * 1024;

/// A list with at most [`MAX_ITEMS`] items. `null` is an empty list.
#[derive(Debug)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Items<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Items<T> {
            type Value = Vec<T>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a list")
            }

            fn visit_unit<E>(self) -> Result<Vec<T>, E> {
                Ok(Vec::new())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element()? {
                    if list.len() == MAX_ITEMS {
                        return Err(A::Error::custom(format_args!("a list has more than {MAX_ITEMS} items")));
                    }
                    list.push(item);
                }
                Ok(list)
            }
        }

        deserializer.deserialize_any(Items(PhantomData)).map(Self)
    }
}

/// An object with free names and text values, in its order. Numbers and booleans become texts. `null` is an empty object, and so is
/// an empty list, which PHP writes.
#[derive(Debug, Default)]
pub(crate) struct Texts(pub(crate) Vec<(String, String)>);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Vec<(String, String)>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object with texts")
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Vec::new())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                match items.next_element::<&RawValue>()? {
                    None => Ok(Vec::new()),
                    Some(_) => Err(A::Error::custom("a list instead of an object")),
                }
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
                let mut list = Vec::new();
                while let Some((name, value)) = members.next_entry::<String, &RawValue>()? {
                    if list.len() == MAX_MEMBERS {
                        return Err(A::Error::custom(format_args!("an object has more than {MAX_MEMBERS} members")));
                    }
                    list.push((name, text_of(value)));
                }
                Ok(list)
            }
        }

        deserializer.deserialize_any(Members).map(Self)
    }
}

/// Returns the text of a JSON value: a string without quotes, anything else as it is written.
pub(crate) fn text_of(value: &RawValue) -> String {
    serde_json::from_str::<String>(value.get()).unwrap_or_else(|_| match value.get() {
        "null" => String::new(),
        other => other.to_owned(),
    })
}

/// Returns a JSON object with the members of all of these objects. Those of later ones have precedence.
pub(crate) fn merge_objects<'a>(field: &str, objects: impl IntoIterator<Item = &'a str>) -> Result<String, Failure> {
    let mut members: BTreeMap<Cow<'a, str>, &RawValue> = BTreeMap::new();
    for object in objects {
        if object.len() > MAX_RAW_BYTES {
            return Err(Failure::invalid(field, &format!("has more than {MAX_RAW_BYTES} bytes")));
        }
        let object = if matches!(object.trim(), "[]" | "null") { "{}" } else { object };
        let object: BTreeMap<Cow<'a, str>, &RawValue> =
            serde_json::from_str(object).map_err(|_| Failure::invalid(field, "is not a JSON object"))?;
        members.extend(object);
    }
    serde_json::to_string(&members).map_err(Failure::malformed)
}

/// One item or a list of items.
#[derive(Debug)]
pub(crate) struct OneOrMany<T>(pub(crate) Vec<T>);

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = <&RawValue>::deserialize(deserializer)?;
        let items = match value.get().as_bytes().first() {
            Some(b'[') => serde_json::from_str::<List<T>>(value.get()).map(|list| list.0),
            Some(b'n') => Ok(Vec::new()),
            _ => serde_json::from_str(value.get()).map(|item| vec![item]),
        };
        items.map(Self).map_err(D::Error::custom)
    }
}

/// A text that is borrowed from the request if it has no escapes. Attachments are most of a request and are not copied before
/// they are decoded.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_objects_are_limited() {
        let list = |count: usize| format!("[{}]", vec!["1"; count].join(","));
        assert_eq!(serde_json::from_str::<List<u8>>(&list(MAX_ITEMS)).unwrap().0.len(), MAX_ITEMS);
        assert!(serde_json::from_str::<List<u8>>(&list(MAX_ITEMS + 1)).is_err());
        assert!(serde_json::from_str::<OneOrMany<u8>>(&list(MAX_ITEMS + 1)).is_err());
        let members: Vec<_> = (0..=MAX_MEMBERS).map(|number| format!("\"{number}\":1")).collect();
        assert!(serde_json::from_str::<Texts>(&format!("{{{}}}", members.join(","))).is_err());
    }

    #[test]
    fn objects_are_merged() {
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_RAW_BYTES));
        let table: [(&[&str], Option<&str>); 6] = [
            (&[], Some("{}")),
            (&[r#"{"a":1,"b":{"c":[]}}"#, r#"{"a":"x\n"}"#], Some(r#"{"a":"x\n","b":{"c":[]}}"#)),
            (&["[]", "null", "[ ]"], None),
            (&["{\"a\":1}", "[]", "null"], Some("{\"a\":1}")),
            (&["{"], None),
            (&[&long], None),
        ];
        for (objects, expected) in table {
            let merged = merge_objects("data", objects.iter().copied());
            assert_eq!(merged.ok().as_deref(), expected, "{objects:.80?}");
        }
    }

    #[test]
    fn values_have_several_forms() {
        for (text, expected) in [("\"a\"", vec!["a"]), ("[\"a\",\"b\"]", vec!["a", "b"]), ("null", vec![])] {
            assert_eq!(serde_json::from_str::<OneOrMany<String>>(text).unwrap().0, expected, "{text}");
        }
        let texts: Texts = serde_json::from_str(r#"{"a":"x\n","b":1,"c":true,"d":null,"e":{"f":[]}}"#).unwrap();
        let texts: Vec<_> = texts.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(texts, ["a=x\n", "b=1", "c=true", "d=", "e={\"f\":[]}"]);
    }
}
