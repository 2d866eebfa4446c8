//! The check itself: finds the uses of all features in a document.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::LazyLock;

use restante_mail::mime::html_tokens::find_attribute;

use crate::detect::{Detected, Detector};
use crate::document::{Document, Element, ElementId, attributes, resolved};
use crate::limits::{StyleLimit, WorkLimit};
use crate::lines::Lines;
use crate::report::{Report, Usage};
use crate::rules::STYLE_ATTRIBUTES;
use crate::selector::{Selector, SelectorKey};
use crate::stylesheet::{Declaration, Dimension, Rule, parse_style_attribute, parse_stylesheet};
use crate::table::{Feature, SCRIPT, features};

/// The maximum size of the HTML that is checked.
pub(crate) const MAX_HTML_BYTES: usize = 2 << 20;
/// The maximum number of lines that are reported for a feature.
pub(crate) const MAX_LINES: usize = 50;
/// The maximum work for finding the elements to which rules apply and counting their declarations, in comparisons and
/// features.
const MAX_WORK: usize = 4_000_000;

static DETECTOR: LazyLock<Detector> = LazyLock::new(|| Detector::new(features()));

/// Checks the HTML of a message.
pub fn check(html: &str) -> Report {
    let end = html.floor_char_boundary(MAX_HTML_BYTES);
    let is_cut = end < html.len();
    let html = &html[..end];
    let document = Document::parse(html);
    let mut checker = Checker {
        lines: Lines::new(html),
        uses: vec![Uses::default(); features().len()],
        scripts: Uses::default(),
        work: WorkLimit(MAX_WORK),
        exceeds_style_limit: false,
        style_attributes: Vec::new(),
    };
    let has_body_end = contains_ignoring_case(html, "</body>");
    checker.source(html, has_body_end);
    for element in &document.elements {
        checker.element(element);
    }
    let rules = checker.stylesheets(&document);
    checker.styles(&document, &rules);
    let is_truncated = is_cut || document.is_truncated || checker.exceeds_style_limit || checker.work.is_reached();
    let usages = checker.finish();
    let mut report = Report { elements: count_elements(&document, has_body_end).max(1), usages, is_truncated };
    report.sort();
    report
}

/// Returns the number of elements to which scores relate, as Mailpit counts them: all except `html`, `head` and `meta`
/// in a complete document, otherwise those in the body and scripts.
fn count_elements(document: &Document<'_>, is_complete: bool) -> u32 {
    let is_counted = |id: ElementId, name: &str| match name {
        "html" | "head" => false,
        "script" => true,
        "meta" if is_complete => false,
        "body" => is_complete,
        _ => is_complete || !document.is_in_head(id),
    };
    let counted = document.elements.iter().enumerate().filter(|(id, element)| is_counted(*id, &element.name));
    u32::try_from(counted.count()).unwrap_or(u32::MAX)
}

/// The uses of a feature that were found so far.
#[derive(Debug, Clone, Default)]
struct Uses {
    count: u32,
    mailpit_count: u32,
    lines: Vec<u32>,
    /// The element that was counted last, and the one that was counted last for Mailpit.
    last_element: Option<ElementId>,
    last_mailpit_element: Option<ElementId>,
}

impl Uses {
    fn add_line(&mut self, line: u32) {
        if let Err(at) = self.lines.binary_search(&line)
            && self.lines.len() < MAX_LINES
        {
            self.lines.insert(at, line);
        }
    }
}

struct Checker<'a> {
    lines: Lines<'a>,
    /// The uses of each feature of the table.
    uses: Vec<Uses>,
    scripts: Uses,
    work: WorkLimit,
    /// Whether parts of style sheets or style attributes were left out.
    exceeds_style_limit: bool,
    /// The attributes of [`STYLE_ATTRIBUTES`] that were counted.
    style_attributes: Vec<&'static str>,
}

impl<'a> Checker<'a> {
    /// Counts what is not an element.
    fn source(&mut self, html: &str, has_body_end: bool) {
        if let Some(detected) = DETECTOR.by_slug("html-body", true).filter(|_| has_body_end) {
            self.add(detected, 0);
        }
        let start = html.trim_start();
        if let Some(detected) = DETECTOR.by_slug("html-doctype", false)
            && start.get(..14).is_some_and(|doctype| doctype.eq_ignore_ascii_case("<!doctype html"))
        {
            self.add(detected, html.len() - start.len());
        }
    }

    /// Counts the element and its attributes.
    fn element(&mut self, element: &Element<'a>) {
        if element.tag.is_empty() {
            return;
        }
        let offset = self.lines.offset_of(element.tag);
        DETECTOR.element(&element.name, &mut |detected| self.add(detected, offset));
        if element.name == "script" && !is_data_block(element) {
            self.scripts.count += 1;
            self.scripts.mailpit_count += 1;
            self.scripts.add_line(self.lines.line(offset));
        }
        for (name, value) in attributes(element) {
            DETECTOR.attribute(&element.name, &name, &resolved(value), &mut |detected| self.add(detected, offset));
            self.style_attribute(&name);
        }
    }

    /// Counts an attribute that sets a property, once per document.
    fn style_attribute(&mut self, name: &str) {
        if let Some((name, slug)) = STYLE_ATTRIBUTES.iter().find(|(attribute, _)| *attribute == name)
            && !self.style_attributes.contains(name)
        {
            self.style_attributes.push(name);
            if let Some(detected) = DETECTOR.by_slug(slug, true) {
                self.uses[detected.feature].mailpit_count += 1;
            }
        }
    }

    /// Parses the style sheets, and counts what does not depend on elements.
    fn stylesheets(&mut self, document: &Document<'a>) -> Vec<Rule<'a>> {
        let mut rules = Vec::new();
        let mut limit = StyleLimit::default();
        for element in document.elements.iter().filter(|element| element.name == "style") {
            let media = find_attribute(element.attributes, "media");
            let is_conditional = media.is_some_and(|media| media != "all");
            let mut report = |detected: Detected, source: &str| {
                self.add(detected, self.lines.offset_of(source));
            };
            let mut parsed = parse_stylesheet(element.raw_text, &DETECTOR, &mut limit, &mut report);
            for rule in &mut parsed {
                rule.is_conditional |= is_conditional;
                for declaration in &mut rule.declarations {
                    declaration.line = self.lines.line(self.lines.offset_of(declaration.source));
                }
            }
            rules.append(&mut parsed);
        }
        self.exceeds_style_limit |= limit.is_exceeded;
        rules
    }

    /// Counts the declarations of all elements.
    fn styles(&mut self, document: &Document<'a>, rules: &[Rule<'a>]) {
        let index = RuleIndex::new(rules);
        let important = DETECTOR.by_slug("css-important", true).map(|detected| detected.feature);
        for (id, element) in document.elements.iter().enumerate() {
            let mut has_unconditional_rule = false;
            let mut sizes: Vec<Dimension> = Vec::new();
            for (rule, is_unconditional) in index.matching_rules(document, id, &mut self.work) {
                if !self.work.take(rule.steps()) {
                    break;
                }
                has_unconditional_rule |= is_unconditional;
                for declaration in &rule.declarations {
                    self.declaration(declaration, id, |detected| is_unconditional && detected.is_in_mailpit);
                    sizes.extend(declaration.pixel_size.filter(|_| is_unconditional));
                }
            }
            if let Some(style) = find_attribute(element.attributes, "style") {
                let css = resolved(style);
                // Mailpit merges the declarations of rules into the attribute, where it drops `!important`.
                let is_in_mailpit = |detected: &Detected| {
                    detected.is_in_mailpit && !(has_unconditional_rule && Some(detected.feature) == important)
                };
                let mut limit = StyleLimit::default();
                for mut declaration in parse_style_attribute(&css, &DETECTOR, &mut limit) {
                    // With character references, the positions in the value are not those in the document.
                    let source = if matches!(css, Cow::Borrowed(_)) { declaration.source } else { style };
                    declaration.line = self.lines.line(self.lines.offset_of(source));
                    self.declaration(&declaration, id, is_in_mailpit);
                    sizes.extend(declaration.pixel_size);
                }
                self.exceeds_style_limit |= limit.is_exceeded;
            }
            if has_unconditional_rule {
                // Mailpit converts these properties to attributes, which it counts as well.
                for size in sizes {
                    self.style_attribute(if size == Dimension::Width { "width" } else { "height" });
                }
            }
        }
    }

    /// Counts a declaration that applies to an element. `is_in_mailpit` returns whether Mailpit counts a use, too.
    fn declaration(
        &mut self,
        declaration: &Declaration<'_>,
        element: ElementId,
        is_in_mailpit: impl Fn(&Detected) -> bool,
    ) {
        for (detected, occurrences) in &declaration.features {
            let count = if detected.counts_occurrences { *occurrences } else { 1 };
            let uses = &mut self.uses[detected.feature];
            uses.add_line(declaration.line);
            if detected.counts_occurrences || uses.last_element != Some(element) {
                uses.count = uses.count.saturating_add(count);
                uses.last_element = Some(element);
            }
            if is_in_mailpit(detected) && (detected.counts_occurrences || uses.last_mailpit_element != Some(element)) {
                uses.mailpit_count = uses.mailpit_count.saturating_add(count);
                uses.last_mailpit_element = Some(element);
            }
        }
    }

    /// Counts a use that is not a declaration.
    fn add(&mut self, detected: Detected, offset: usize) {
        let line = self.lines.line(offset);
        let uses = &mut self.uses[detected.feature];
        uses.count += 1;
        uses.mailpit_count += u32::from(detected.is_in_mailpit);
        uses.add_line(line);
    }

    fn finish(self) -> Vec<Usage> {
        let usage = |feature: &'static Feature, uses: Uses| Usage {
            feature,
            count: uses.count,
            mailpit_count: uses.mailpit_count,
            lines: uses.lines,
        };
        let mut usages: Vec<_> = features().iter().zip(self.uses).map(|(feature, uses)| usage(feature, uses)).collect();
        usages.push(usage(&SCRIPT, self.scripts));
        usages.retain(|usage| usage.count > 0 || usage.mailpit_count > 0);
        usages
    }
}

/// Rules by the keys of their selectors.
struct RuleIndex<'r, 'a> {
    rules: &'r [Rule<'a>],
    /// The selectors with each key, and the index of their rule.
    keys: HashMap<SelectorKey<'r>, Vec<(usize, &'r Selector)>>,
}

impl<'r, 'a> RuleIndex<'r, 'a> {
    fn new(rules: &'r [Rule<'a>]) -> Self {
        let mut keys: HashMap<_, Vec<_>> = HashMap::new();
        for (at, rule) in rules.iter().enumerate() {
            for selector in &rule.selectors {
                keys.entry(selector.key()).or_default().push((at, selector));
            }
        }
        Self { rules, keys }
    }

    /// Returns the rules that apply to an element, each once, and whether one of the selectors that match is
    /// unconditional.
    fn matching_rules(
        &self,
        document: &Document<'_>,
        id: ElementId,
        work: &mut WorkLimit,
    ) -> impl Iterator<Item = (&'r Rule<'a>, bool)> + use<'r, 'a> {
        let mut matching = Vec::new();
        for (at, selector) in self.candidates(&document.elements[id]) {
            if work.is_reached() {
                break;
            }
            if selector.matches(document, id, work) {
                let is_unconditional = selector.is_unconditional && !self.rules[at].is_conditional;
                matching.push((at, Reverse(is_unconditional)));
            }
        }
        // Of several selectors of a rule, the unconditional ones are first.
        matching.sort_unstable();
        matching.dedup_by_key(|(at, _)| *at);
        let rules = self.rules;
        matching.into_iter().map(|(at, Reverse(is_unconditional))| (&rules[at], is_unconditional))
    }

    /// Returns the selectors that may match an element.
    fn candidates<'e>(&'e self, element: &'e Element<'_>) -> impl Iterator<Item = (usize, &'r Selector)> + 'e
    where
        'r: 'e,
    {
        let classes = element.class.split_ascii_whitespace().map(SelectorKey::Class);
        let id = (!element.id.is_empty()).then_some(SelectorKey::Id(&element.id));
        let keys = [SelectorKey::Any, SelectorKey::Name(&element.name)].into_iter().chain(id).chain(classes);
        keys.filter_map(|key| self.keys.get(&key)).flatten().copied()
    }
}

/// Returns whether a script element contains data instead of code.
fn is_data_block(element: &Element<'_>) -> bool {
    matches!(find_attribute(element.attributes, "type"), Some("application/ld+json" | "application/json"))
}

fn contains_ignoring_case(text: &str, pattern: &str) -> bool {
    text.as_bytes().windows(pattern.len()).any(|window| window.eq_ignore_ascii_case(pattern.as_bytes()))
}
