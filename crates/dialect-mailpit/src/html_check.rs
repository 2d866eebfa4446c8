//! The check of a message's HTML in the format of Mailpit. It contains the features and the uses that Mailpit finds. The
//! descriptions are empty, and the notes refer to the page of the feature, because the server has only the facts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::State;
use restante_html_check::{
    Client, Feature, Report, Support, Usage, Version, check, family_name, features, platform_name,
};
use restante_http_core::render::{Representation, Work};
use restante_http_core::response::json;
use restante_http_core::response::problem::Problem;
use restante_http_core::server::Server;
use restante_mail::message::Summary;
use restante_mail::mime::Mime;
use serde::Serialize;

use crate::content;
use crate::error::{Error, HandlerResult};
use crate::success;
use crate::target::TargetMessage;

/// The number of tests that Mailpit runs for every message.
const TESTS: usize = 186;

/// Returns the check of the HTML of a message.
pub(crate) async fn html_check(State(server): State<Arc<Server>>, target: TargetMessage) -> HandlerResult {
    let write = |_: &Summary, mime: &Mime| {
        let html = content::html(mime);
        if html.is_empty() {
            return Err(Problem::NoHtml);
        }
        json::body(&HtmlCheck::from(check(&html)))
    };
    let representation = Representation::new("mailpit html check", Work::Html);
    match server.renderer.render(target.message.first(), representation, write).await {
        Ok(body) => Ok(success::json_body(body)),
        Err(Problem::NoHtml) => Err(Error::text("message does not contain HTML")),
        Err(problem) => Err(problem.into()),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct HtmlCheck {
    warnings: Vec<Warning>,
    /// The names of the families of clients of each platform.
    platforms: BTreeMap<&'static str, BTreeSet<&'static str>>,
    total: Total,
}

impl From<Report> for HtmlCheck {
    fn from(report: Report) -> Self {
        let total = Total::new(&report);
        let mut warnings: Vec<Warning> =
            report.usages.iter().filter(|usage| usage.mailpit_count > 0).map(Warning::new).collect();
        warnings.sort_by(|a, b| b.score.harm().total_cmp(&a.score.harm()));
        Self { warnings, platforms: platforms(), total }
    }
}

fn platforms() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let mut platforms: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for client in features().iter().flat_map(Feature::clients) {
        platforms.entry(client.platform).or_default().insert(family_name(client.family));
    }
    platforms
}

/// The result for the whole message.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Total {
    tests: usize,
    nodes: u32,
    supported: f32,
    partial: f32,
    unsupported: f32,
}

impl Total {
    fn new(report: &Report) -> Self {
        // Mailpit counts a test of an element twice if it finds the element.
        let is_counted_twice = |usage: &&Usage| {
            usage.mailpit_count > 0 && usage.feature.category == "html" && usage.feature.slug != "html-body"
        };
        let score = report.mailpit_score();
        Self {
            tests: TESTS + report.usages.iter().filter(is_counted_twice).count(),
            nodes: report.elements,
            supported: score.supported,
            partial: score.partial,
            unsupported: score.unsupported,
        }
    }
}

/// A feature that the message uses.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Warning {
    slug: &'static str,
    title: &'static str,
    description: &'static str,
    #[serde(rename = "URL")]
    url: String,
    category: &'static str,
    tags: Vec<&'static str>,
    keywords: &'static str,
    results: Vec<TestResult>,
    notes_by_number: BTreeMap<String, String>,
    score: Score,
}

impl Warning {
    fn new(usage: &Usage) -> Self {
        let feature = usage.feature;
        let url = feature.url().unwrap_or_default();
        let versions = || feature.clients().flat_map(|client| client.versions().map(move |version| (client, version)));
        let notes_by_number = versions()
            .filter_map(|(_, version)| version.note)
            .map(|note| (note.to_string(), format!("See note {note} on {url}")))
            .collect();
        let score = feature.score();
        Self {
            slug: feature.slug,
            title: feature.title,
            description: "",
            url,
            category: feature.category,
            tags: feature.tags().collect(),
            keywords: "",
            results: versions().map(TestResult::new).collect(),
            notes_by_number,
            score: Score {
                found: usage.mailpit_count,
                supported: score.supported,
                partial: score.partial,
                unsupported: score.unsupported,
            },
        }
    }
}

/// The support of a feature in a version of a client.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct TestResult {
    name: String,
    platform: &'static str,
    family: &'static str,
    version: &'static str,
    support: &'static str,
    note_number: String,
}

impl TestResult {
    fn new((client, version): (Client, Version)) -> Self {
        let Client { family, platform, .. } = client;
        let support = match version.rated() {
            Support::Yes => "yes",
            Support::No => "no",
            Support::Partial | Support::Unknown => "partial",
        };
        Self {
            name: format!("{} {} ({})", family_name(family), platform_name(platform), version.version),
            platform,
            family,
            version: version.version,
            support,
            // Mailpit returns only the last digit.
            note_number: version.note.map(|note| (note % 10).to_string()).unwrap_or_default(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Score {
    found: u32,
    supported: f32,
    partial: f32,
    unsupported: f32,
}

impl Score {
    /// Returns by how much the feature lowers the score of a message.
    #[allow(clippy::cast_precision_loss, reason = "the number of elements is limited")]
    fn harm(&self) -> f32 {
        (self.partial + self.unsupported) * self.found as f32
    }
}
