//! The table of features and their support, `data/features.tsv`. The support of a feature is kept as text and parsed
//! when it is read, so the table in memory is small.

use std::sync::LazyLock;

use serde::Serialize;

/// The text of the table.
const TEXT: &str = include_str!("../data/features.tsv");

/// The table of the program.
static TABLE: LazyLock<Table> = LazyLock::new(|| Table::parse(TEXT));

/// A feature of HTML or CSS, or an image format.
#[derive(Debug, PartialEq, Eq)]
pub struct Feature {
    /// The name of the feature in URLs.
    pub slug: &'static str,
    /// The title of the feature.
    pub title: &'static str,
    /// `html`, `css`, `image` or `others`.
    pub category: &'static str,
    /// The tags, separated by spaces.
    tags: &'static str,
    /// The support: for each client, `family/platform` and for each version `=version:support`, separated by spaces.
    support: &'static str,
}

/// Scripts. The source of the table does not list them, because no client runs them.
pub(crate) static SCRIPT: Feature =
    Feature { slug: "html-script", title: "<script> element", category: "html", tags: "", support: "" };

impl Feature {
    /// Returns the address of the page about this feature, or `None` for scripts.
    pub fn url(&self) -> Option<String> {
        (!self.support.is_empty()).then(|| format!("https://www.caniemail.com/features/{}/", self.slug))
    }

    /// Returns the tags, such as `accessibility`.
    pub fn tags(&self) -> impl Iterator<Item = &'static str> {
        self.tags.split_ascii_whitespace()
    }

    /// Returns the clients that were tested. The list is empty for scripts.
    pub fn clients(&self) -> impl Iterator<Item = Client> {
        self.support.split_ascii_whitespace().filter_map(Client::parse)
    }
}

/// A mail client on a platform, with the support of one feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client {
    /// The key of the family, such as `gmail`.
    pub family: &'static str,
    /// The key of the platform, such as `ios`.
    pub platform: &'static str,
    versions: &'static str,
}

impl Client {
    fn parse(text: &'static str) -> Option<Self> {
        let (client, versions) = text.split_once('=')?;
        let (family, platform) = client.split_once('/')?;
        Some(Self { family, platform, versions })
    }

    /// Returns the tested versions in the order of the source, which is from old to new.
    pub fn versions(self) -> impl Iterator<Item = Version> {
        self.versions.split('=').filter_map(Version::parse)
    }
}

/// The support of a feature in one version of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    /// The version or the month of the test.
    pub version: &'static str,
    /// The support.
    pub support: Support,
    /// The number of the note about it on the page of the feature.
    pub note: Option<u8>,
}

impl Version {
    fn parse(text: &'static str) -> Option<Self> {
        let (version, support) = text.split_once(':')?;
        let mut chars = support.chars();
        let support = match chars.next()? {
            'y' => Support::Yes,
            'n' => Support::No,
            'a' => Support::Partial,
            _ => Support::Unknown,
        };
        Some(Self { version, support, note: chars.as_str().parse().ok() })
    }

    /// Returns the support as it counts in scores: if it is unknown or limited by a note, it is partial.
    pub fn rated(self) -> Support {
        match self.support {
            Support::Yes | Support::No if self.note.is_none() => self.support,
            _ => Support::Partial,
        }
    }
}

/// Whether a client supports a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Support {
    /// The client supports it.
    Yes,
    /// The client supports a part of it.
    Partial,
    /// The client does not support it.
    No,
    /// The client was not tested.
    Unknown,
}

/// The date of the facts in the table, as year, month and day.
pub fn table_date() -> &'static str {
    TABLE.date
}

/// Returns the name of a family of clients, such as `Gmail` for `gmail`.
pub fn family_name(family: &str) -> &'static str {
    find_name(&TABLE.families, family)
}

/// Returns the name of a platform, such as `iOS` for `ios`.
pub fn platform_name(platform: &str) -> &'static str {
    find_name(&TABLE.platforms, platform)
}

fn find_name(names: &[(&'static str, &'static str)], key: &str) -> &'static str {
    names.iter().find(|(found, _)| *found == key).map_or("", |(_, name)| name)
}

/// Returns all features.
pub fn features() -> &'static [Feature] {
    &TABLE.features
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Table {
    date: &'static str,
    families: Vec<(&'static str, &'static str)>,
    platforms: Vec<(&'static str, &'static str)>,
    features: Vec<Feature>,
}

impl Table {
    /// Parses the text of a table. Lines of an unknown kind are ignored.
    fn parse(text: &'static str) -> Self {
        let mut table = Self::default();
        for line in text.lines() {
            let fields: Vec<&'static str> = line.split('\t').collect();
            match fields[..] {
                ["date", date] => table.date = date,
                ["family", key, name] => table.families.push((key, name)),
                ["platform", key, name] => table.platforms.push((key, name)),
                ["feature", slug, category, title, tags, support] => {
                    table.features.push(Feature { slug, title, category, tags, support });
                }
                _ => {}
            }
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_valid() {
        let lines = TEXT.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).count();
        let table = &*TABLE;
        assert_eq!(lines, 1 + table.families.len() + table.platforms.len() + table.features.len());
        assert_eq!(table.date.len(), "2026-01-01".len());
        for feature in &table.features {
            assert!(!feature.title.is_empty() && feature.clients().next().is_some(), "{feature:?}");
            assert_eq!(feature.clients().count(), feature.support.split(' ').count(), "{}", feature.slug);
            for client in feature.clients() {
                assert!(!family_name(client.family).is_empty() && !platform_name(client.platform).is_empty());
                assert_eq!(
                    client.versions().count(),
                    client.versions.split('=').count(),
                    "{} {client:?}",
                    feature.slug
                );
            }
        }
    }

    #[test]
    fn parses_the_support_of_a_feature() {
        let table = Table::parse(
            "# comment\ndate\t2026-01-02\nfamily\tgmail\tGmail\nplatform\tios\tiOS\n\
             feature\tcss-gap\tcss\tgap\ti18n\tgmail/ios=2019:n=2020:a1=2021:u=2022:y2 aol/ios=1:y",
        );
        assert_eq!(
            (table.date, table.families[0], table.platforms[0]),
            ("2026-01-02", ("gmail", "Gmail"), ("ios", "iOS"))
        );
        let clients: Vec<_> = table.features[0].clients().collect();
        assert_eq!((clients[0].family, clients[0].platform, clients[1].family), ("gmail", "ios", "aol"));
        let versions: Vec<_> = clients[0].versions().map(|v| (v.version, v.support, v.note, v.rated())).collect();
        let expected = [
            ("2019", Support::No, None, Support::No),
            ("2020", Support::Partial, Some(1), Support::Partial),
            ("2021", Support::Unknown, None, Support::Partial),
            ("2022", Support::Yes, Some(2), Support::Partial),
        ];
        assert_eq!(versions, expected);
        assert_eq!(table.features[0].tags().collect::<Vec<_>>(), ["i18n"]);
        assert_eq!(table.features[0].url().as_deref(), Some("https://www.caniemail.com/features/css-gap/"));
        assert_eq!((SCRIPT.url(), SCRIPT.clients().count()), (None, 0));
    }
}
