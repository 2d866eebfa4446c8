//! A strict reader of the text format of Prometheus (version 0.0.4): whatever a scraper could stumble over is an error.

use std::collections::{BTreeMap, BTreeSet};

/// A whole answer of `/metrics`.
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
    /// The names of the labels, without the one that the format itself adds to histograms.
    pub(crate) labels: BTreeSet<String>,
}

impl Exposition {
    pub(crate) fn parse(text: &str) -> Self {
        assert!(text.ends_with('\n'), "the last line ends");
        let mut this = Self { families: Vec::new(), series: BTreeMap::new() };
        for line in text.lines() {
            if let Some(comment) = line.strip_prefix("# HELP ") {
                this.begin(comment);
            } else if let Some(comment) = line.strip_prefix("# TYPE ") {
                this.describe(comment);
            } else {
                this.sample(line);
            }
        }
        this.check_histograms();
        this
    }

    /// The value of a series.
    pub(crate) fn value(&self, series: &str) -> f64 {
        let known = || self.series.keys().map(String::as_str).collect::<Vec<_>>().join("\n");
        *self.series.get(series).unwrap_or_else(|| panic!("there is no {series} among\n{}", known()))
    }

    /// Whether something is called so: a metric, or one of the series that a histogram has.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.series.keys().any(|series| name_of(series) == name)
    }

    fn begin(&mut self, comment: &str) {
        let (name, help) = comment.split_once(' ').unwrap();
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        assert!(name.chars().all(good) && name.starts_with(|c: char| c.is_ascii_lowercase()), "{name}");
        assert!(self.families.iter().all(|family| family.name != name), "{name} comes twice");
        assert!(help.ends_with('.'), "{name}: {help:?} is a sentence");
        let labels = BTreeSet::new();
        self.families.push(Family { name: name.into(), help: help.into(), kind: String::new(), labels });
    }

    fn describe(&mut self, comment: &str) {
        let (name, kind) = comment.split_once(' ').unwrap();
        let family = self.families.last_mut().unwrap();
        assert_eq!(family.name, name, "HELP and TYPE belong together");
        assert_eq!(family.kind, "", "{name} has one type");
        assert!(["counter", "gauge", "histogram"].contains(&kind), "{name} is a {kind}");
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name} is a {kind}");
        family.kind = kind.into();
    }

    fn sample(&mut self, line: &str) {
        let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line:?} is no sample"));
        let family = self.families.last_mut().unwrap();
        let suffix = name_of(series).strip_prefix(&family.name).unwrap_or_else(|| panic!("{line} is out of place"));
        let suffixes: &[&str] = if family.kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
        assert!(suffixes.contains(&suffix), "{line} is out of place");
        family.labels.extend(labels_of(series).filter(|label| suffix.is_empty() || *label != "le").map(str::to_owned));
        let value: f64 = value.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(value >= 0.0, "{line} is negative");
        assert!(self.series.insert(series.into(), value).is_none(), "{series} comes twice");
    }

    /// A histogram's last bucket holds all observations.
    fn check_histograms(&self) {
        for family in self.families.iter().filter(|family| family.kind == "histogram") {
            let counts = self.series.iter().filter(|(series, _)| name_of(series) == format!("{}_count", family.name));
            for (series, count) in counts {
                let labels = series.split_once('{').map_or(String::new(), |(_, labels)| format!(",{labels}"));
                let labels = if labels.is_empty() { "}" } else { labels.as_str() };
                let all = format!("{}_bucket{{le=\"+Inf\"{labels}", family.name);
                assert!((self.value(&all) - count).abs() < 0.5, "{series} is {all}");
            }
        }
    }
}

fn name_of(series: &str) -> &str {
    series.split('{').next().unwrap_or(series)
}

/// The names of the labels. None of our values holds a comma or a quote.
fn labels_of(series: &str) -> impl Iterator<Item = &str> {
    let labels = series.split_once('{').map_or("", |(_, labels)| labels.strip_suffix('}').unwrap());
    labels.split(',').filter(|label| !label.is_empty()).map(move |label| {
        let (name, value) = label.split_once('=').unwrap();
        assert!(value.len() >= 2 && value.starts_with('"') && value.ends_with('"'), "{series}");
        name
    })
}
