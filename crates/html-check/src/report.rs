//! The result of a check and its scores.

use serde::Serialize;

use crate::table::{Client, Feature, Support, family_name, platform_name};

/// The result of a check.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The number of elements that scores relate to. It is at least 1.
    pub elements: u32,
    /// The features that the message uses, the most harmful first.
    pub usages: Vec<Usage>,
    /// Whether a part of the message was not checked, because it exceeds a limit.
    pub is_truncated: bool,
}

/// The use of a feature in a message.
#[derive(Debug, Clone, PartialEq)]
pub struct Usage {
    /// The feature.
    pub feature: &'static Feature,
    /// The number of uses. A property counts once for each element to which it applies; units, at-rules and parts of
    /// selectors count wherever they occur.
    pub count: u32,
    /// The number of uses that Mailpit 1.30 counts. It does not know all features, and finds some of them in fewer
    /// places.
    pub mailpit_count: u32,
    /// The lines of the HTML that use the feature, ascending. The list has a limit.
    pub lines: Vec<u32>,
}

/// Percentages of support. Their sum is 100.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// Supported.
    pub supported: f32,
    /// Partially supported, limited by a note, or not tested.
    pub partial: f32,
    /// Not supported.
    pub unsupported: f32,
}

/// How a client supports the features of a message, judged by its newest version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ClientSummary {
    /// The key of the family of clients.
    pub family: &'static str,
    /// The name of the family.
    pub family_name: &'static str,
    /// The key of the platform.
    pub platform: &'static str,
    /// The name of the platform.
    pub platform_name: &'static str,
    /// The number of features that it supports.
    pub supported: u32,
    /// The number of features that it supports in part.
    pub partial: u32,
    /// The number of features that it does not support.
    pub unsupported: u32,
}

impl Feature {
    /// Returns the percentages over all tested versions of all clients.
    pub fn score(&self) -> Score {
        let (mut yes, mut partial, mut no) = (0_u16, 0_u16, 0_u16);
        for version in self.clients().flat_map(Client::versions) {
            match version.rated() {
                Support::Yes => yes += 1,
                Support::No => no += 1,
                Support::Partial | Support::Unknown => partial += 1,
            }
        }
        let total = f32::from(yes) + f32::from(partial) + f32::from(no);
        if total == 0.0 {
            return Score { supported: 0.0, partial: 0.0, unsupported: 100.0 };
        }
        let percentage = |count| f32::from(count) / total * 100.0;
        Score { supported: percentage(yes), partial: percentage(partial), unsupported: percentage(no) }
    }
}

impl Report {
    /// Returns the score of the message: what is partially supported and what is unsupported is the highest percentage
    /// of a feature, weighted with the share of elements that use it.
    pub fn score(&self) -> Score {
        self.score_of(|usage| usage.count)
    }

    /// Returns the score with the uses that Mailpit counts.
    pub fn mailpit_score(&self) -> Score {
        self.score_of(|usage| usage.mailpit_count)
    }

    fn score_of(&self, count: impl Fn(&Usage) -> u32) -> Score {
        let (mut partial, mut unsupported) = (0.0_f32, 0.0_f32);
        for usage in &self.usages {
            let (score, count) = (usage.feature.score(), count(usage));
            partial = partial.max(self.weighted(score.partial, count));
            unsupported = unsupported.max(self.weighted(score.unsupported, count));
        }
        // Both can be high if they come from different features.
        unsupported = unsupported.min(100.0);
        partial = partial.min(100.0 - unsupported);
        Score { supported: 100.0 - partial - unsupported, partial, unsupported }
    }

    /// Returns a percentage weighted with the share of elements, which is at most 1.
    #[allow(clippy::cast_precision_loss, reason = "the number of elements is limited")]
    fn weighted(&self, percentage: f32, count: u32) -> f32 {
        percentage * count.min(self.elements) as f32 / self.elements as f32
    }

    /// Sorts the usages by the part of the message that clients do not support.
    pub(crate) fn sort(&mut self) {
        let mut usages = std::mem::take(&mut self.usages);
        let harm = |usage: &Usage| {
            let score = usage.feature.score();
            self.weighted(score.partial + score.unsupported, usage.count)
        };
        usages.sort_by_cached_key(|usage| {
            // Nonnegative numbers have the order of their bits.
            (std::cmp::Reverse(harm(usage).max(0.0).to_bits()), usage.feature.slug)
        });
        self.usages = usages;
    }

    /// Returns how each client supports the features of the message, the worst first. Features that were not tested in
    /// a client do not count for it.
    pub fn clients(&self) -> Vec<ClientSummary> {
        let mut summaries: Vec<ClientSummary> = Vec::new();
        for client in self.usages.iter().flat_map(|usage| usage.feature.clients()) {
            let Some(newest) = client.versions().last() else { continue };
            let (family, platform) = (client.family, client.platform);
            let at = summaries.iter().position(|summary| (summary.family, summary.platform) == (family, platform));
            let at = at.unwrap_or_else(|| {
                summaries.push(ClientSummary {
                    family,
                    family_name: family_name(family),
                    platform,
                    platform_name: platform_name(platform),
                    supported: 0,
                    partial: 0,
                    unsupported: 0,
                });
                summaries.len() - 1
            });
            match newest.support {
                Support::Yes => summaries[at].supported += 1,
                Support::Partial => summaries[at].partial += 1,
                Support::No => summaries[at].unsupported += 1,
                Support::Unknown => {}
            }
        }
        summaries.sort_by_key(|summary| {
            (std::cmp::Reverse((summary.unsupported, summary.partial)), summary.family, summary.platform)
        });
        summaries
    }
}
