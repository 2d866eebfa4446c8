//! The check of a message's HTML: the features that it uses, where, and which mail clients support them. The check
//! itself is in the crate `restante_html_check`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use restante_html_check::{Client, ClientSummary, Report, Support, Usage, check, table_date};
use restante_http_core::extractors::messages::PathCopy;
use restante_http_core::render::{Representation, Work};
use restante_http_core::response::etag::IfNoneMatch;
use restante_http_core::response::json;
use restante_http_core::response::problem::Problem;
use restante_http_core::response::schema;
use restante_http_core::server::Server;
use restante_mail::message::Summary;
use restante_mail::mime::Mime;
use serde::Serialize;
use utoipa::ToSchema;

const HTML_CHECK: Representation = Representation::new("v2 html check", Work::Html);

/// Returns the check of the HTML of a message.
pub(crate) async fn html_check(
    State(server): State<Arc<Server>>,
    PathCopy(copy): PathCopy,
    if_none_match: IfNoneMatch,
) -> Result<Response, Problem> {
    let write = |_: &Summary, mime: &Mime| {
        if !mime.has_html() {
            return Err(Problem::NoHtml);
        }
        json::body(&HtmlCheck::from(check(&mime.html())))
    };
    server.renderer.json_response(&copy, &if_none_match, HTML_CHECK, write).await
}

/// The features of HTML and CSS that a message uses, and their support in mail clients.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct HtmlCheck {
    /// The score of the message. Each feature is weighted with the share of the elements that use it; the worst ones
    /// determine the score.
    score: Score,
    /// The number of elements that the score relates to.
    elements: u32,
    /// Whether a part of the message was not checked, because it is too large.
    truncated: bool,
    /// The date of the facts about clients.
    data_date: &'static str,
    /// The features that the message uses, the most harmful first.
    features: Vec<FeatureUsage>,
    /// How each client supports these features, the worst first.
    #[schema(value_type = Vec<schema::HtmlCheckClient>)]
    clients: Vec<ClientSummary>,
}

impl From<Report> for HtmlCheck {
    fn from(report: Report) -> Self {
        Self {
            score: report.score().into(),
            elements: report.elements,
            truncated: report.is_truncated,
            data_date: table_date(),
            clients: report.clients(),
            features: report.usages.into_iter().filter(|usage| usage.count > 0).map(Into::into).collect(),
        }
    }
}

/// Percentages of support. Their sum is 100, apart from rounding.
#[derive(Serialize, ToSchema)]
#[schema(as = HtmlCheckScore)]
struct Score {
    #[schema(minimum = 0, maximum = 100)]
    supported: f64,
    /// Partially supported, limited by a note, or not tested.
    #[schema(minimum = 0, maximum = 100)]
    partial: f64,
    #[schema(minimum = 0, maximum = 100)]
    unsupported: f64,
}

impl From<restante_html_check::Score> for Score {
    fn from(score: restante_html_check::Score) -> Self {
        let rounded = |percentage: f32| (f64::from(percentage) * 100.0).round() / 100.0;
        Self {
            supported: rounded(score.supported),
            partial: rounded(score.partial),
            unsupported: rounded(score.unsupported),
        }
    }
}

/// The use of a feature.
#[derive(Serialize, ToSchema)]
#[schema(as = HtmlCheckFeature)]
struct FeatureUsage {
    /// The name of the feature in URLs.
    slug: &'static str,
    title: &'static str,
    /// `html`, `css`, `image` or `others`.
    category: &'static str,
    /// Topics such as `accessibility`.
    tags: Vec<&'static str>,
    /// The page about the feature, or null for scripts, which no client supports.
    #[schema(required)]
    url: Option<String>,
    /// The number of uses. A property counts once for each element to which it applies.
    count: u32,
    /// The lines of the HTML that use the feature, at most 50.
    lines: Vec<u32>,
    /// The support in all tested versions of all clients.
    score: Score,
    /// The support in the newest tested version of each client.
    clients: Vec<FeatureSupport>,
}

impl From<Usage> for FeatureUsage {
    fn from(Usage { feature, count, lines, .. }: Usage) -> Self {
        Self {
            slug: feature.slug,
            title: feature.title,
            category: feature.category,
            tags: feature.tags().collect(),
            url: feature.url(),
            count,
            lines,
            score: feature.score().into(),
            clients: feature.clients().filter_map(FeatureSupport::new).collect(),
        }
    }
}

/// The support of a feature in a client.
#[derive(Serialize, ToSchema)]
#[schema(as = HtmlCheckSupport)]
struct FeatureSupport {
    family: &'static str,
    platform: &'static str,
    /// The newest tested version, or the month of the test.
    version: &'static str,
    #[schema(value_type = schema::HtmlCheckSupportLevel)]
    support: Support,
    /// The number of the note about it on the page of the feature.
    #[schema(required)]
    note: Option<u8>,
}

impl FeatureSupport {
    fn new(client: Client) -> Option<Self> {
        let newest = client.versions().last()?;
        let (family, platform) = (client.family, client.platform);
        Some(Self { family, platform, version: newest.version, support: newest.support, note: newest.note })
    }
}
