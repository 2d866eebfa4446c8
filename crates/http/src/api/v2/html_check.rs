//! The check of a message's HTML: the features that it uses, where, and which mail clients support them. The check
//! itself is in the crate `restante_html_check`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use restante_html_check::{
    Client, ClientSummary, Report, Support, Usage, check, family_name, platform_name, table_date,
};
use restante_mail::message::Summary;
use restante_mail::mime::Mime;
use serde::Serialize;
use utoipa::ToSchema;

use crate::extractors::messages::PathCopy;
use crate::response::etag::IfNoneMatch;
use crate::response::json;
use crate::response::problem::Problem;
use crate::state::Server;
use crate::state::message::{Extract, Representation};

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
    server.json_response(&copy, &if_none_match, Representation::Extract(Extract::HtmlCheck), write).await
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
    clients: Vec<ClientSupport>,
}

impl From<Report> for HtmlCheck {
    fn from(report: Report) -> Self {
        Self {
            score: report.score().into(),
            elements: report.elements,
            truncated: report.is_truncated,
            data_date: table_date(),
            clients: report.clients().into_iter().map(Into::into).collect(),
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
    support: SupportLevel,
    /// The number of the note about it on the page of the feature.
    #[schema(required)]
    note: Option<u8>,
}

impl FeatureSupport {
    fn new(client: Client) -> Option<Self> {
        let newest = client.versions().last()?;
        let support = match newest.support {
            Support::Yes => SupportLevel::Yes,
            Support::Partial => SupportLevel::Partial,
            Support::No => SupportLevel::No,
            Support::Unknown => SupportLevel::Unknown,
        };
        let (family, platform) = (client.family, client.platform);
        Some(Self { family, platform, version: newest.version, support, note: newest.note })
    }
}

/// Whether a client supports a feature.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = HtmlCheckSupportLevel)]
enum SupportLevel {
    Yes,
    Partial,
    No,
    Unknown,
}

/// How a client supports the features of a message. Features that were not tested in it are not counted.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = HtmlCheckClient)]
struct ClientSupport {
    family: &'static str,
    family_name: &'static str,
    platform: &'static str,
    platform_name: &'static str,
    /// The number of supported features.
    supported: u32,
    /// The number of partially supported features.
    partial: u32,
    /// The number of features that are not supported.
    unsupported: u32,
}

impl From<ClientSummary> for ClientSupport {
    fn from(summary: ClientSummary) -> Self {
        let ClientSummary { family, platform, supported, partial, unsupported } = summary;
        let (family_name, platform_name) = (family_name(family), platform_name(platform));
        Self { family, family_name, platform, platform_name, supported, partial, unsupported }
    }
}
