//! JSON as the decoder of Go reads it: names of members match in any case, unknown members are ignored, a missing member and
//! `null` are the zero value, and only the first value of the text is read. Unlike in Go, a member that occurs twice is an error.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{
    self, DeserializeSeed, Deserializer, IgnoredAny, IntoDeserializer as _, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::error::Category;

/// Parses the first JSON value of a text. Returns the error as text on failure. Give structs the attribute `#[serde(default)]`.
pub fn parse<'de, T: Deserialize<'de>>(text: &'de [u8]) -> Result<T, String> {
    let mut json = serde_json::Deserializer::from_slice(text);
    T::deserialize(GoJson(&mut json)).map_err(|error| match error.classify() {
        Category::Eof if text.trim_ascii().is_empty() => "EOF".to_owned(),
        Category::Eof => "unexpected EOF".to_owned(),
        Category::Data => format!("json: cannot unmarshal: {error}"),
        Category::Syntax | Category::Io => format!("invalid JSON: {error}"),
    })
}

/// A deserializer with the rules of Go, over that of `serde_json`.
struct GoJson<D>(D);

/// The type that a value is read as. It determines the zero value.
#[derive(Clone, Copy)]
enum Kind {
    Bool,
    Number,
    Text,
    List,
    Map,
    /// A struct with these members.
    Struct(&'static [&'static str]),
}

macro_rules! read_as {
    ($($method:ident => $kind:expr,)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.deserialize_any(GoVisitor { visitor, kind: $kind })
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for GoJson<D> {
    type Error = D::Error;

    read_as! {
        deserialize_bool => Kind::Bool,
        deserialize_i8 => Kind::Number,
        deserialize_i16 => Kind::Number,
        deserialize_i32 => Kind::Number,
        deserialize_i64 => Kind::Number,
        deserialize_u8 => Kind::Number,
        deserialize_u16 => Kind::Number,
        deserialize_u32 => Kind::Number,
        deserialize_u64 => Kind::Number,
        deserialize_f32 => Kind::Number,
        deserialize_f64 => Kind::Number,
        deserialize_str => Kind::Text,
        deserialize_string => Kind::Text,
        deserialize_seq => Kind::List,
        deserialize_map => Kind::Map,
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(GoVisitor { visitor, kind: Kind::Struct(fields) })
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_option(OptionVisitor(visitor))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct enum identifier ignored_any
    }
}

/// Passes a value to `visitor`, with the rules of Go inside of it, and `null` as the zero value.
struct GoVisitor<V> {
    visitor: V,
    kind: Kind,
}

macro_rules! pass_on {
    ($($method:ident($value:ty),)*) => {
        $(fn $method<E: de::Error>(self, value: $value) -> Result<V::Value, E> {
            self.visitor.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for GoVisitor<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    pass_on! {
        visit_bool(bool),
        visit_i64(i64),
        visit_u64(u64),
        visit_f64(f64),
        visit_str(&str),
        visit_borrowed_str(&'de str),
        visit_string(String),
    }

    fn visit_unit<E: de::Error>(self) -> Result<V::Value, E> {
        match self.kind {
            Kind::Bool => self.visitor.visit_bool(false),
            Kind::Number => self.visitor.visit_u64(0),
            Kind::Text => self.visitor.visit_str(""),
            Kind::List => self.visitor.visit_seq(Empty(PhantomData)),
            Kind::Map | Kind::Struct(_) => self.visitor.visit_map(Empty(PhantomData)),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<V::Value, A::Error> {
        match self.kind {
            // Serde also reads a struct from a list of its members.
            Kind::Struct(_) => Err(de::Error::invalid_type(Unexpected::Seq, &self.visitor)),
            _ => self.visitor.visit_seq(GoList(list)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        let fields = match self.kind {
            Kind::Struct(fields) => Some(fields),
            _ => None,
        };
        self.visitor.visit_map(GoMap { map, fields })
    }
}

struct OptionVisitor<V>(V);

impl<'de, V: Visitor<'de>> Visitor<'de> for OptionVisitor<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    fn visit_none<E: de::Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_unit<E: de::Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(GoJson(value))
    }
}

/// The elements of a list.
struct GoList<A>(A);

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for GoList<A> {
    type Error = A::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, A::Error> {
        self.0.next_element_seed(GoSeed(seed))
    }
}

/// The members of an object. Those of a struct get the names of its fields, and unknown ones are skipped.
struct GoMap<A> {
    map: A,
    fields: Option<&'static [&'static str]>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for GoMap<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        let Some(fields) = self.fields else { return self.map.next_key_seed(seed) };
        while let Some(key) = self.map.next_key::<String>()? {
            if let Some(field) = fields.iter().find(|field| field.eq_ignore_ascii_case(&key)) {
                return seed.deserialize((*field).into_deserializer()).map(Some);
            }
            self.map.next_value::<IgnoredAny>()?;
        }
        Ok(None)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, A::Error> {
        self.map.next_value_seed(GoSeed(seed))
    }
}

/// Reads a value inside of another one with the same rules.
struct GoSeed<T>(T);

impl<'de, T: DeserializeSeed<'de>> DeserializeSeed<'de> for GoSeed<T> {
    type Value = T::Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<T::Value, D::Error> {
        self.0.deserialize(GoJson(json))
    }
}

/// A list or object without content.
struct Empty<E>(PhantomData<E>);

impl<'de, E: de::Error> SeqAccess<'de> for Empty<E> {
    type Error = E;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, _: T) -> Result<Option<T::Value>, E> {
        Ok(None)
    }
}

impl<'de, E: de::Error> MapAccess<'de> for Empty<E> {
    type Error = E;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, _: K) -> Result<Option<K::Value>, E> {
        Ok(None)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, _: T) -> Result<T::Value, E> {
        Err(de::Error::custom("an empty object has no values"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default, rename_all = "PascalCase")]
    struct Body {
        read: bool,
        count: u32,
        share: f64,
        #[serde(rename = "IDs")]
        ids: Vec<String>,
        search: String,
        from: Person,
        to: Vec<Person>,
        headers: BTreeMap<String, String>,
        chance: Option<u32>,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default, rename_all = "PascalCase")]
    struct Person {
        name: String,
    }

    fn person(name: &str) -> Person {
        Person { name: name.to_owned() }
    }

    #[test]
    fn reads_json_like_go() {
        let ids = |ids: &[&str]| Body { ids: ids.iter().map(|id| (*id).to_owned()).collect(), ..Body::default() };
        let headers = BTreeMap::from([("X-A".to_owned(), "b".to_owned()), ("x-a".to_owned(), String::new())]);
        let table = [
            ("{}", Body::default()),
            ("null", Body::default()),
            (r#"{"IDs":["1","2"]}"#, ids(&["1", "2"])),
            (r#"{"ids":["1"]}"#, ids(&["1"])),
            (r#"{"iDs":["1",null]}"#, ids(&["1", ""])),
            (r#"{"IDs":null,"Read":null,"Search":null,"From":null,"Headers":null,"Chance":null}"#, Body::default()),
            (r#"{"count":null,"share":null,"to":[null]}"#, Body { to: vec![person("")], ..Body::default() }),
            (r#"{"other":{"a":[1,{}]},"READ":true,"more":[]}"#, Body { read: true, ..Body::default() }),
            (r#"{"count":7,"share":1,"chance":5}"#, Body { count: 7, share: 1.0, chance: Some(5), ..Body::default() }),
            (r#"{"search":"a"} trailing"#, Body { search: "a".to_owned(), ..Body::default() }),
            (r#"{"from":{"NAME":"Ann"}}"#, Body { from: person("Ann"), ..Body::default() }),
            (r#"{"to":[{"name":"Bob"},{"x":1}]}"#, Body { to: vec![person("Bob"), person("")], ..Body::default() }),
            (r#"{"headers":{"X-A":"b","x-a":null}}"#, Body { headers, ..Body::default() }),
        ];
        for (text, expected) in table {
            assert_eq!(parse::<Body>(text.as_bytes()), Ok(expected), "{text}");
        }
    }

    #[test]
    fn reports_invalid_json() {
        let table = [
            (" ", "EOF"),
            ("{", "unexpected EOF"),
            (r#"{"IDs":["#, "unexpected EOF"),
            ("x", "invalid JSON: expected value at line 1 column 1"),
            ("{'a':1}", "invalid JSON: key must be a string at line 1 column 2"),
            ("[]", "json: cannot unmarshal: invalid type: sequence, expected struct Body"),
            (r#""x""#, "json: cannot unmarshal: invalid type: string \"x\", expected struct Body"),
            (r#"{"IDs":"1"}"#, "json: cannot unmarshal: invalid type: string \"1\", expected a sequence"),
            (r#"{"IDs":[1]}"#, "json: cannot unmarshal: invalid type: integer `1`, expected a string"),
            (r#"{"read":1}"#, "json: cannot unmarshal: invalid type: integer `1`, expected a boolean"),
            (r#"{"from":["Ann"]}"#, "json: cannot unmarshal: invalid type: sequence, expected struct Person"),
            (r#"{"IDs":["1"],"ids":[]}"#, "json: cannot unmarshal: duplicate field `IDs`"),
        ];
        for (text, expected) in table {
            let error = parse::<Body>(text.as_bytes()).unwrap_err();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
        let nested = "[".repeat(100_000);
        assert!(parse::<Body>(format!("{{\"x\":{nested}").as_bytes()).is_err());
    }
}
