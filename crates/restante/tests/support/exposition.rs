//! A strict parser of the Prometheus text format (version 0.0.4): everything that could confuse a scraper is an error.

use std::collections::{BTreeMap, BTreeSet};

/// A parsed response of `/metrics`.
pub(crate) struct Exposition {
    /// In the order of the text.
    pub(crate) families: Vec<Family>,
    /// The value of every series, by its name and labels as they are written.
    pub(crate) series: BTreeMap<String, f64>,
}

/// All series of one name.
pub(crate) struct Family {
    pub(crate) name: String,
    pub(crate) help: String,
    pub(crate) kind: String,
    /// The names of the labels, without `le`, which the format adds to histograms.
    pub(crate) labels: BTreeSet<String>,
}

impl Exposition {
    pub(crate) fn parse(text: &str) -> Self {
        assert!(text.ends_with('\n'), "the last line has no line break");
        let mut this = Self { families: Vec::new(), series: BTreeMap::new() };
        for line in text.lines() {
            if let Some(comment) = line.strip_prefix("# HELP ") {
                this.parse_help(comment);
            } else if let Some(comment) = line.strip_prefix("# TYPE ") {
                this.parse_type(comment);
            } else {
                this.parse_sample(line);
            }
        }
        this.check_histograms();
        this
    }

    /// Returns the value of a series.
    pub(crate) fn value(&self, series: &str) -> f64 {
        let all = || self.series.keys().map(String::as_str).collect::<Vec<_>>().join("\n");
        *self.series.get(series).unwrap_or_else(|| panic!("no series {series} in\n{}", all()))
    }

    /// Returns whether there is a metric of this name, or a series of a histogram.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.series.keys().any(|series| name_of(series) == name)
    }

    fn parse_help(&mut self, comment: &str) {
        let (name, help) = comment.split_once(' ').unwrap();
        let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        assert!(name.chars().all(is_allowed) && name.starts_with(|c: char| c.is_ascii_lowercase()), "{name}");
        assert!(self.families.iter().all(|family| family.name != name), "{name} is duplicated");
        assert!(help.ends_with('.'), "{name}: {help:?} is not a sentence");
        let labels = BTreeSet::new();
        self.families.push(Family { name: name.into(), help: help.into(), kind: String::new(), labels });
    }

    fn parse_type(&mut self, comment: &str) {
        let (name, kind) = comment.split_once(' ').unwrap();
        let family = self.families.last_mut().unwrap();
        assert_eq!(family.name, name, "TYPE does not follow its HELP");
        assert_eq!(family.kind, "", "{name} has two types");
        assert!(["counter", "gauge", "histogram"].contains(&kind), "{name} is a {kind}");
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name} is a {kind}");
        family.kind = kind.into();
    }

    fn parse_sample(&mut self, line: &str) {
        let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line:?} is not a sample"));
        let family = self.families.last_mut().unwrap();
        let suffix =
            name_of(series).strip_prefix(&family.name).unwrap_or_else(|| panic!("{line} belongs to another metric"));
        let suffixes: &[&str] = if family.kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
        assert!(suffixes.contains(&suffix), "{line} belongs to another metric");
        family.labels.extend(labels_of(series).filter(|label| suffix.is_empty() || *label != "le").map(str::to_owned));
        let value: f64 = value.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(value >= 0.0, "{line} is negative");
        assert!(self.series.insert(series.into(), value).is_none(), "{series} is duplicated");
    }

    /// Checks that the last bucket of each histogram contains all observations.
    fn check_histograms(&self) {
        for family in self.families.iter().filter(|family| family.kind == "histogram") {
            let counts = self.series.iter().filter(|(series, _)| name_of(series) == format!("{}_count", family.name));
            for (series, count) in counts {
                let labels = series.split_once('{').map_or(String::new(), |(_, labels)| format!(",{labels}"));
                let labels = if labels.is_empty() { "}" } else { labels.as_str() };
                let all = format!("{}_bucket{{le=\"+Inf\"{labels}", family.name);
                assert!((self.value(&all) - count).abs() < 0.5, "{series} differs from {all}");
            }
        }
    }
}

fn name_of(series: &str) -> &str {
    series.split('{').next().unwrap_or(series)
}

/// Returns the names of the labels. No value contains a comma or a quotation mark.
fn labels_of(series: &str) -> impl Iterator<Item = &str> {
    let labels = series.split_once('{').map_or("", |(_, labels)| labels.strip_suffix('}').unwrap());
    labels.split(',').filter(|label| !label.is_empty()).map(move |label| {
        let (name, value) = label.split_once('=').unwrap();
        assert!(value.len() >= 2 && value.starts_with('"') && value.ends_with('"'), "{series}");
        name
    })
}
