//! Conversion of the data of caniemail to the table of the crate. Only facts are taken: names, versions and support.

use std::fmt::{self, Write as _};
use std::marker::PhantomData;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The comment at the start of the table.
const HEADER: &str = "\
# The support of HTML and CSS in mail clients.
# Source: the data of caniemail (https://www.caniemail.com/, https://github.com/hteumeuleu/caniemail), published under
# the MIT License, Copyright (c) 2019 HTeuMeuLeu: LICENSE-caniemail. This table contains facts only: features, clients,
# versions and support. `cargo run -p restante-html-check --example update -- data.json` writes it; do not edit it.
#
# Fields are separated by tabs:
# family, platform: key, name
# feature: slug, category, title, tags, support. The support lists each client as `family/platform` with its versions,
#   each as `=version:support`. The support is y (yes), n (no), a (partial) or u (unknown), followed by the number of a
#   note if there is one.
";

/// An error of the conversion.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConvertError {
    #[error("not the data of caniemail: {0}")]
    Json(serde_json::Error),
    #[error("unexpected value in the data of caniemail: {0:?}")]
    Value(String),
}

/// The parts of the data that are used.
#[derive(Deserialize)]
struct Data {
    last_update_date: String,
    nicenames: NiceNames,
    #[serde(rename = "data")]
    features: Vec<FeatureData>,
}

#[derive(Deserialize)]
struct NiceNames {
    family: Entries<String>,
    platform: Entries<String>,
}

#[derive(Deserialize)]
struct FeatureData {
    slug: String,
    title: String,
    category: String,
    #[serde(default)]
    tags: Vec<String>,
    /// The support by family, platform and version.
    stats: Entries<Entries<Entries<String>>>,
}

/// The members of a JSON object in the order of the document.
struct Entries<T>(Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Entries<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor(PhantomData))
    }
}

struct EntriesVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for EntriesVisitor<T> {
    type Value = Entries<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Entries(entries))
    }
}

impl<T> Entries<T> {
    fn sorted(&self) -> Vec<&(String, T)> {
        let mut entries: Vec<_> = self.0.iter().collect();
        entries.sort_by_key(|(key, _)| key);
        entries
    }
}

/// Converts the data of caniemail (`https://www.caniemail.com/api/data.json`) to the text of the table. Features,
/// families and platforms are sorted. Versions stay in the order of the data, which is from old to new.
pub(crate) fn convert(json: &str) -> Result<String, ConvertError> {
    let mut source: Data = serde_json::from_str(json).map_err(ConvertError::Json)?;
    source.features.sort_by(|a, b| a.slug.cmp(&b.slug));
    let mut table = HEADER.to_owned();
    let date = source.last_update_date.split(' ').next().unwrap_or_default();
    push_line(&mut table, &["date", date])?;
    for (kind, names) in [("family", &source.nicenames.family), ("platform", &source.nicenames.platform)] {
        for (key, name) in names.sorted() {
            push_line(&mut table, &[kind, key, name])?;
        }
    }
    for feature in &source.features {
        let support = convert_support(&feature.stats)?;
        if support.is_empty() {
            continue;
        }
        let tags = feature.tags.join(" ");
        let title = feature.title.split_whitespace().collect::<Vec<_>>().join(" ");
        push_line(&mut table, &["feature", &feature.slug, &feature.category, &title, &tags, &support])?;
    }
    Ok(table)
}

fn convert_support(families: &Entries<Entries<Entries<String>>>) -> Result<String, ConvertError> {
    let mut support = String::new();
    for (family, platforms) in families.sorted() {
        for (platform, versions) in platforms.sorted() {
            if versions.0.is_empty() {
                continue;
            }
            let separator = if support.is_empty() { "" } else { " " };
            // Writing to a string cannot fail.
            let _ = write!(support, "{separator}{}/{}", as_key(family)?, as_key(platform)?);
            for (version, value) in &versions.0 {
                let _ = write!(support, "={}:{}", as_key(version)?, support_code(value)?);
            }
        }
    }
    Ok(support)
}

/// Converts a value such as `a #1 #2` to `a2`. Of several notes, the last is kept.
fn support_code(value: &str) -> Result<String, ConvertError> {
    let mut words = value.split_whitespace();
    let support = words.next().filter(|code| matches!(*code, "y" | "n" | "a" | "u"));
    let note = words.next_back().map(|note| note.strip_prefix('#').and_then(|digits| digits.parse::<u8>().ok()));
    match (support, note) {
        (Some(support), None) => Ok(support.to_owned()),
        (Some(support), Some(Some(note))) => Ok(format!("{support}{note}")),
        _ => Err(ConvertError::Value(value.to_owned())),
    }
}

/// Returns a key if it contains none of the separators in the list of support.
fn as_key(key: &str) -> Result<&str, ConvertError> {
    let is_valid = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'));
    if is_valid { Ok(key) } else { Err(ConvertError::Value(key.to_owned())) }
}

fn push_line(table: &mut String, fields: &[&str]) -> Result<(), ConvertError> {
    if let Some(field) = fields.iter().find(|field| field.contains(['\t', '\n', '\r'])) {
        return Err(ConvertError::Value((*field).to_owned()));
    }
    table.push_str(&fields.join("\t"));
    table.push('\n');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn converts_data() {
        let json = r#"{
            "api_version": "1.0.4", "last_update_date": "2026-06-29 16:42:09 +0000",
            "nicenames": {"family": {"gmail": "Gmail", "aol": "AOL"}, "platform": {"ios": "iOS"}},
            "data": [
                {"slug": "html-b", "title": "b ", "description": "A sentence.", "category": "html", "tags": ["x", "y"],
                 "stats": {"gmail": {"ios": {"2019-10": "a #1 #2", "16.80": "y"}},
                           "aol": {"ios": {"2020-01": "n"}, "android": {}}},
                 "notes": "A note.", "notes_by_num": {"1": "A note."}},
                {"slug": "css-a", "title": "a", "category": "css", "stats": {"aol": {"ios": {"2020-01": "u"}}}},
                {"slug": "css-untested", "title": "c", "category": "css", "stats": {}}
            ]}"#;
        let table = convert(json).expect("the data is valid");
        let expected = "date\t2026-06-29\nfamily\taol\tAOL\nfamily\tgmail\tGmail\nplatform\tios\tiOS\n\
                        feature\tcss-a\tcss\ta\t\taol/ios=2020-01:u\n\
                        feature\thtml-b\thtml\tb\tx y\taol/ios=2020-01:n gmail/ios=2019-10:a2=16.80:y\n";
        assert_eq!(table, format!("{HEADER}{expected}"));
    }

    #[test]
    fn refuses_other_data() {
        let with = |version: &str, support: &str| {
            format!(
                r#"{{"last_update_date": "", "nicenames": {{"family": {{}}, "platform": {{}}}},
                "data": [{{"slug": "a", "title": "b", "category": "c",
                           "stats": {{"d": {{"e": {{"{version}": "{support}"}}}}}}}}]}}"#
            )
        };
        assert!(convert(&with("1", "y")).is_ok());
        for (json, message) in [
            (String::from("{}"), "not the data of caniemail: missing field"),
            (with("1", "z"), "unexpected value in the data of caniemail: \"z\""),
            (with("1", "y 1"), "unexpected value in the data of caniemail: \"y 1\""),
            (with("1 2", "y"), "unexpected value in the data of caniemail: \"1 2\""),
        ] {
            let error = convert(&json).expect_err(&json).to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
