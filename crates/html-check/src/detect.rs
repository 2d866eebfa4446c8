//! Which constructs of HTML and CSS are uses of which feature. By default the slug says it: `css-gap` is the property
//! `gap`, `html-hr` the element `hr`. The lists in `rules` have the exceptions, and which uses Mailpit counts too.

use std::collections::HashMap;

use restante_html::CssToken;

use crate::rules;
use crate::selector::{Combinator, SelectorPart};
use crate::table::Feature;

/// The index of a feature in the table.
pub(crate) type FeatureIndex = usize;

/// A use of a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Detected {
    pub(crate) feature: FeatureIndex,
    /// Whether Mailpit counts this use, too.
    pub(crate) is_in_mailpit: bool,
    /// Whether each occurrence counts, and not each element.
    pub(crate) counts_occurrences: bool,
}

/// Finds the features that a construct uses.
#[derive(Debug)]
pub(crate) struct Detector {
    slugs: HashMap<&'static str, FeatureIndex>,
    properties: HashMap<&'static str, Vec<Detected>>,
    elements: HashMap<&'static str, Vec<Detected>>,
    attributes: HashMap<&'static str, Vec<Detected>>,
}

impl Detector {
    /// Prepares the detection of these features.
    pub(crate) fn new(features: &'static [Feature]) -> Self {
        let slugs = features.iter().enumerate().map(|(index, feature)| (feature.slug, index)).collect();
        let mut detector =
            Self { slugs, properties: HashMap::new(), elements: HashMap::new(), attributes: HashMap::new() };
        for (index, feature) in features.iter().enumerate() {
            detector.add_feature(index, feature.slug);
        }
        detector
    }

    fn add_feature(&mut self, index: FeatureIndex, slug: &'static str) {
        let detected = |is_in_mailpit| Detected { feature: index, is_in_mailpit, counts_occurrences: false };
        if let Some(name) = rules::attribute(slug) {
            let is_in_mailpit = rules::contains_word(rules::MAILPIT_ATTRIBUTES, name);
            return self.attributes.entry(name).or_default().push(detected(is_in_mailpit));
        }
        // Other constructs are detected by the functions below.
        let slug_name = |prefix| slug.strip_prefix(prefix).filter(|_| !rules::is_other_construct(slug));
        let names = |groups: &[(&str, &'static str)], prefix| {
            let group = groups.iter().find(|(group, _)| *group == slug).map(|(_, names)| *names);
            group.or_else(|| slug_name(prefix)).into_iter().flat_map(rules::words)
        };
        for name in names(rules::PROPERTY_GROUPS, "css-") {
            self.properties.entry(name).or_default().push(detected(rules::is_mailpit_property(slug, name)));
        }
        for name in names(rules::ELEMENT_GROUPS, "html-") {
            self.elements.entry(name).or_default().push(detected(rules::contains_word(rules::MAILPIT_ELEMENTS, slug)));
        }
    }

    /// Returns a use of the feature with this slug, if the table has it.
    pub(crate) fn by_slug(&self, slug: &str, is_in_mailpit: bool) -> Option<Detected> {
        self.slugs.get(slug).map(|&feature| Detected { feature, is_in_mailpit, counts_occurrences: false })
    }

    /// Returns a use of `{prefix}{name}`, if the table has it.
    fn by_name(&self, prefix: &str, name: &str, is_in_mailpit: bool) -> Option<Detected> {
        self.by_slug(&format!("{prefix}{name}"), is_in_mailpit)
    }

    /// Reports an element.
    pub(crate) fn element(&self, name: &str, report: &mut dyn FnMut(Detected)) {
        self.elements.get(name).into_iter().flatten().copied().for_each(report);
    }

    /// Reports an attribute of an element. The name of the attribute is in lower case.
    pub(crate) fn attribute(&self, element: &str, name: &str, value: &str, report: &mut dyn FnMut(Detected)) {
        self.attributes.get(name).into_iter().flatten().copied().for_each(&mut *report);
        let kind = value.to_ascii_lowercase();
        let special = match (element, name) {
            ("a", "href") if value.starts_with('#') => self.by_slug("html-anchor-links", true),
            ("a", "href") if kind.starts_with("mailto:") => self.by_slug("html-mailto-links", false),
            ("img", "usemap") => self.by_slug("html-image-maps", true),
            ("img", "src") => return self.image(value, report),
            ("meta", "name") if kind == "color-scheme" => self.by_slug("html-meta-color-scheme", false),
            ("button", "type") if matches!(&*kind, "submit" | "reset") => self.by_name("html-button-", &kind, true),
            ("input", "type") if kind != "hidden" => self.by_name("html-input-", &kind, value == "text"),
            (_, "type") if kind == "hidden" => self.by_slug("html-input-hidden", true),
            _ => None,
        };
        special.into_iter().for_each(report);
    }

    /// Reports the format of an image by its URL.
    fn image(&self, url: &str, report: &mut dyn FnMut(Detected)) {
        let url = url.trim();
        if url.get(..11).is_some_and(|start| start.eq_ignore_ascii_case("data:image/")) {
            return self.by_slug("image-base64", true).into_iter().for_each(report);
        }
        let path = url.split(['?', '#']).next().unwrap_or_default();
        let extension = path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
        let (format, is_in_mailpit) = match &*extension {
            "jpg" | "jpeg" => ("jpg", false),
            "png" => ("png", false),
            "heic" => ("heif", false),
            "tif" | "tiff" => ("tiff", true),
            other => (other, true),
        };
        let detected = self.by_name("image-", format, is_in_mailpit && path.len() == url.len());
        detected.filter(|_| path.len() > extension.len()).into_iter().for_each(report);
    }

    /// Returns the features that a declaration uses, each with the number of its occurrences.
    pub(crate) fn declaration(&self, property: &str, value: &[CssToken<'_>]) -> Box<[(Detected, u32)]> {
        let mut found = Vec::new();
        let is_variable = property.starts_with("--");
        let variable = self.by_slug("css-variables", false).filter(|_| is_variable);
        for detected in self.properties.get(property).into_iter().flatten().copied().chain(variable) {
            add_occurrence(&mut found, detected);
        }
        for (index, token) in value.iter().enumerate() {
            let next = value.get(index + 1);
            let detected = match token {
                CssToken::Dimension { unit, .. } => self.unit(unit),
                CssToken::Percentage { .. } => self.unit("percent"),
                CssToken::Function(name) => self.function(name),
                CssToken::Ident(name) => self.keyword(property, name, index == 0),
                CssToken::Delim('!') if is_important(next) => self.by_slug("css-important", true),
                _ => None,
            };
            if let Some(detected) = detected {
                add_occurrence(&mut found, detected);
            }
        }
        found.into_boxed_slice()
    }

    fn unit(&self, unit: &str) -> Option<Detected> {
        let unit = unit.to_ascii_lowercase();
        let detected = self.by_name("css-unit-", &unit, rules::contains_word(rules::MAILPIT_UNITS, &unit))?;
        Some(Detected { counts_occurrences: true, ..detected })
    }

    fn function(&self, name: &str) -> Option<Detected> {
        let name = name.to_ascii_lowercase();
        match &*name {
            "calc" => self.by_slug("css-unit-calc", true),
            "rgb" | "rgba" => self.by_name("css-", &name, true),
            "var" => self.by_slug("css-variables", false),
            "lab" | "lch" | "oklab" | "oklch" => self.by_slug("css-modern-color", false),
            "clamp" | "light-dark" | "max" | "min" => self.by_name("css-function-", &name, false),
            gradient if gradient.ends_with("-gradient") => {
                self.by_name("css-", gradient.trim_start_matches("-webkit-").trim_start_matches("repeating-"), false)
            }
            _ => None,
        }
    }

    fn keyword(&self, property: &str, name: &str, is_first: bool) -> Option<Detected> {
        let name = name.to_ascii_lowercase();
        match (property, &*name) {
            ("display", "flex" | "grid" | "none") if is_first => self.by_name("css-display-", &name, true),
            ("display", "inline-flex" | "inline-grid") => {
                self.by_name("css-display-", name.trim_start_matches("inline-"), false)
            }
            (_, "initial") => {
                let detected = self.by_slug("css-unit-initial", is_first)?;
                Some(Detected { counts_occurrences: true, ..detected })
            }
            (_, "fit-content" | "max-content" | "min-content") => self.by_slug("css-intrinsic-size", false),
            ("font" | "font-family", "system-ui" | "ui-serif" | "ui-sans-serif" | "ui-rounded" | "ui-monospace") => {
                self.by_slug("css-sytem-ui", false)
            }
            _ => None,
        }
    }

    /// Reports an at-rule. `prelude` is the text after its name.
    pub(crate) fn at_rule(&self, keyword: &str, prelude: &str, report: &mut dyn FnMut(Detected)) {
        let has_space = prelude.starts_with(|c: char| c.is_ascii_whitespace());
        let begins_with_condition = prelude.starts_with('(') || prelude.chars().nth(1) == Some('(') && has_space;
        let is_in_mailpit = match keyword {
            "font-face" | "import" | "keyframes" => has_space,
            _ => begins_with_condition,
        };
        let name = keyword.trim_start_matches("-webkit-").trim_start_matches("-moz-");
        let detected = self.by_name("css-at-", name, is_in_mailpit && name.len() == keyword.len());
        detected.into_iter().for_each(&mut *report);
        if keyword == "media" {
            let prelude = prelude.to_ascii_lowercase();
            for (text, slug) in rules::MEDIA_FEATURES {
                if prelude.contains(text) {
                    self.by_slug(slug, false).into_iter().for_each(&mut *report);
                }
            }
        }
    }

    /// Reports a part of a selector.
    pub(crate) fn selector_part(&self, part: SelectorPart<'_>, report: &mut dyn FnMut(Detected)) {
        let name = match part {
            SelectorPart::Name => "type",
            SelectorPart::Universal => "universal",
            SelectorPart::Id => "id",
            SelectorPart::Class => "class",
            SelectorPart::Attribute => "attribute",
            SelectorPart::Chained => "chaining",
            SelectorPart::Grouping => "grouping",
            SelectorPart::Combinator(Combinator::Descendant) => "descendant",
            SelectorPart::Combinator(Combinator::Child) => "child",
            SelectorPart::Combinator(Combinator::Adjacent) => "adjacent-sibling",
            SelectorPart::Combinator(Combinator::Sibling) => "general-sibling",
            SelectorPart::Pseudo { has_two_colons, name, is_function } => {
                return self.pseudo(name, has_two_colons, is_function).into_iter().for_each(report);
            }
        };
        self.by_name("css-selector-", name, false).into_iter().for_each(report);
    }

    fn pseudo(&self, name: &str, has_two_colons: bool, is_function: bool) -> Option<Detected> {
        let is_in_mailpit = match name {
            "first-letter" | "first-line" | "marker" | "placeholder" => has_two_colons,
            "only-child" | "only-of-type" => is_function,
            "default" | "focus-visible" | "focus-within" => false,
            _ => true,
        };
        // Pseudo-elements may be written with one colon.
        self.by_name("css-pseudo-element-", name, is_in_mailpit)
            .or_else(|| self.by_name("css-pseudo-class-", name, is_in_mailpit && !has_two_colons))
    }

    /// Reports a comment in a style sheet.
    pub(crate) fn comment(&self, report: &mut dyn FnMut(Detected)) {
        self.by_slug("css-comments", false).into_iter().for_each(report);
    }

    /// Reports a rule in the block of another rule.
    pub(crate) fn nested_rule(&self, report: &mut dyn FnMut(Detected)) {
        self.by_slug("css-nesting", false).into_iter().for_each(report);
    }
}

/// Counts an occurrence. The list is short: it has one entry for each feature.
fn add_occurrence(found: &mut Vec<(Detected, u32)>, detected: Detected) {
    match found.iter_mut().find(|(other, _)| *other == detected) {
        Some((_, occurrences)) => *occurrences = occurrences.saturating_add(1),
        None => found.push((detected, 1)),
    }
}

fn is_important(token: Option<&CssToken<'_>>) -> bool {
    matches!(token, Some(CssToken::Ident(name)) if name.eq_ignore_ascii_case("important"))
}
