//! Style sheets and style attributes as rules and declarations. Blocks are processed with a counter instead of a stack,
//! because only two kinds of blocks are entered: those of conditional at-rules, and declarations.

use restante_html::{CssToken, CssTokens};

use crate::detect::{Detected, Detector};
use crate::limits::StyleLimit;
use crate::selector::{Selector, parse_selectors};

/// The maximum number of tokens in the value of a declaration. Further tokens are left out.
const MAX_VALUE_TOKENS: usize = 10_000;

/// A declaration.
#[derive(Debug)]
pub(crate) struct Declaration<'a> {
    /// The features that it uses, each with the number of its occurrences.
    pub(crate) features: Box<[(Detected, u32)]>,
    /// The source text of the property.
    pub(crate) source: &'a str,
    /// The line of the property in the document. The checker sets it.
    pub(crate) line: u32,
    /// Whether it sets a width or a height in pixels.
    pub(crate) pixel_size: Option<Dimension>,
}

/// A dimension of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dimension {
    Width,
    Height,
}

/// A rule with a selector.
#[derive(Debug)]
pub(crate) struct Rule<'a> {
    pub(crate) selectors: Box<[Selector]>,
    pub(crate) declarations: Box<[Declaration<'a>]>,
    /// Whether the rule is inside of an at-rule such as `@media`.
    pub(crate) is_conditional: bool,
}

impl Rule<'_> {
    /// Returns the work for counting the declarations once.
    pub(crate) fn steps(&self) -> usize {
        self.declarations.iter().map(|declaration| 1 + declaration.features.len()).sum()
    }
}

/// Parses a style sheet. Rules in at-rules other than conditional ones, such as `@keyframes`, are skipped. Features
/// that do not depend on elements, such as at-rules, are passed to `report` with the source text where they are. Rules
/// that cannot apply, because they have no selectors or no declarations, are left out.
pub(crate) fn parse_stylesheet<'a>(
    css: &'a str,
    detector: &Detector,
    limit: &mut StyleLimit,
    report: &mut dyn FnMut(Detected, &str),
) -> Vec<Rule<'a>> {
    let mut rules = Vec::new();
    let mut tokens = CssTokens::new(css);
    // The number of open blocks of conditional at-rules.
    let mut depth = 0_usize;
    loop {
        let prelude = read_prelude(&mut tokens, detector, report);
        let is_at_rule = prelude.keyword.is_some();
        if let Some((keyword, source)) = &prelude.keyword {
            detector.at_rule(keyword, prelude.text, &mut |detected| report(detected, source));
        }
        match prelude.end {
            PreludeEnd::Document => return rules,
            PreludeEnd::Statement => {}
            PreludeEnd::BlockEnd => depth = depth.saturating_sub(1),
            PreludeEnd::Block if prelude.is_conditional_group() => depth += 1,
            PreludeEnd::Block if is_at_rule => skip_block(&mut tokens),
            PreludeEnd::Block => {
                let selectors = parse_selectors(prelude.text, limit, &mut |part, source| {
                    detector.selector_part(part, &mut |detected| report(detected, source));
                });
                let declarations = parse_declarations(&mut tokens, detector, limit, report);
                if !selectors.is_empty() && !declarations.is_empty() {
                    rules.push(Rule { selectors, declarations, is_conditional: depth > 0 });
                }
            }
        }
    }
}

/// The text before a block.
struct Prelude<'a> {
    /// The name of the at-rule in lower case, and its source text.
    keyword: Option<(String, &'a str)>,
    /// The text, after the name of an at-rule.
    text: &'a str,
    end: PreludeEnd,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PreludeEnd {
    /// `{`
    Block,
    /// `}`
    BlockEnd,
    /// `;`
    Statement,
    Document,
}

impl Prelude<'_> {
    /// Returns whether the block contains rules that apply under a condition.
    fn is_conditional_group(&self) -> bool {
        let keyword = self.keyword.as_ref().map(|(keyword, _)| &**keyword);
        matches!(keyword, Some("media" | "supports" | "container" | "layer" | "document" | "-moz-document" | "scope"))
    }
}

fn read_prelude<'a>(
    tokens: &mut CssTokens<'a>,
    detector: &Detector,
    report: &mut dyn FnMut(Detected, &str),
) -> Prelude<'a> {
    let mut keyword = None;
    let mut start = tokens.rest();
    // Whether only white space and comments follow `start`.
    let mut is_at_start = true;
    let text_before = |start: &'a str, rest: &str| &start[..start.len() - rest.len()];
    loop {
        let before = tokens.rest();
        let Some((token, source)) = tokens.next() else {
            return Prelude { keyword, text: start, end: PreludeEnd::Document };
        };
        let end = match token {
            CssToken::CurlyBracketBlock => PreludeEnd::Block,
            CssToken::CloseCurlyBracket => PreludeEnd::BlockEnd,
            CssToken::Semicolon if keyword.is_some() => PreludeEnd::Statement,
            CssToken::AtKeyword(name) if is_at_start => {
                keyword = Some((name.to_ascii_lowercase(), source));
                start = tokens.rest();
                continue;
            }
            CssToken::CDO | CssToken::CDC => {
                start = tokens.rest();
                is_at_start = true;
                continue;
            }
            CssToken::Comment(_) => {
                detector.comment(&mut |detected| report(detected, source));
                // A comment before a rule is not part of it.
                if is_at_start {
                    start = tokens.rest();
                }
                continue;
            }
            CssToken::WhiteSpace(_) => continue,
            _ => {
                is_at_start = false;
                continue;
            }
        };
        return Prelude { keyword, text: text_before(start, before), end };
    }
}

/// Skips to the end of a block after its opening bracket.
fn skip_block(tokens: &mut CssTokens<'_>) {
    let mut depth = 1_usize;
    while depth > 0
        && let Some((token, _)) = tokens.next()
    {
        match token {
            CssToken::CurlyBracketBlock => depth += 1,
            CssToken::CloseCurlyBracket => depth -= 1,
            _ => {}
        }
    }
}

/// Parses the declarations of a style attribute.
pub(crate) fn parse_style_attribute<'a>(
    css: &'a str,
    detector: &Detector,
    limit: &mut StyleLimit,
) -> Box<[Declaration<'a>]> {
    parse_declarations(&mut CssTokens::new(css), detector, limit, &mut |_, _| {})
}

/// Parses declarations up to the end of the block or of the text.
fn parse_declarations<'a>(
    tokens: &mut CssTokens<'a>,
    detector: &Detector,
    limit: &mut StyleLimit,
    report: &mut dyn FnMut(Detected, &str),
) -> Box<[Declaration<'a>]> {
    let mut declarations = Vec::new();
    // The property of the current declaration with its source text, and the tokens after the colon.
    let mut property: Option<(String, &'a str)> = None;
    let mut value: Option<Vec<CssToken<'a>>> = None;
    loop {
        let next = tokens.next().filter(|(token, _)| *token != CssToken::CloseCurlyBracket);
        let Some((token, source)) = next else {
            declarations.extend(finish_declaration(property, value, detector, limit));
            return declarations.into_boxed_slice();
        };
        match (token, &mut value) {
            (CssToken::Semicolon, _) => {
                declarations.extend(finish_declaration(property.take(), value.take(), detector, limit));
            }
            (CssToken::CurlyBracketBlock, _) => {
                detector.nested_rule(&mut |detected| report(detected, source));
                skip_block(tokens);
                (property, value) = (None, None);
            }
            (CssToken::Comment(_), _) => detector.comment(&mut |detected| report(detected, source)),
            (CssToken::Ident(name), None) if property.is_none() => property = Some((name.to_ascii_lowercase(), source)),
            (CssToken::Colon, None) if property.is_some() => value = Some(Vec::new()),
            (CssToken::WhiteSpace(_), _) => {}
            (token, Some(value)) if value.len() < MAX_VALUE_TOKENS => value.push(token),
            (_, Some(_)) => limit.is_exceeded = true,
            _ => {}
        }
    }
}

fn finish_declaration<'a>(
    property: Option<(String, &'a str)>,
    value: Option<Vec<CssToken<'a>>>,
    detector: &Detector,
    limit: &mut StyleLimit,
) -> Option<Declaration<'a>> {
    let ((property, source), value) = (property?, value?);
    if !limit.take_declaration() {
        return None;
    }
    let features = detector.declaration(&property, &value);
    Some(Declaration { features, source, line: 0, pixel_size: pixel_size(&property, &value) })
}

/// Returns the dimension that a declaration sets to a number of pixels.
fn pixel_size(property: &str, value: &[CssToken<'_>]) -> Option<Dimension> {
    let is_pixels = match value.first()? {
        CssToken::Dimension { unit, .. } => unit.eq_ignore_ascii_case("px"),
        CssToken::Number { value, .. } => *value == 0.0,
        _ => false,
    };
    match property {
        "width" if is_pixels => Some(Dimension::Width),
        "height" if is_pixels => Some(Dimension::Height),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{MAX_DECLARATIONS, MAX_SELECTORS};
    use crate::table::features;

    /// Returns the numbers of rules, selectors and declarations of a style sheet, and whether it exceeds a limit.
    fn sizes(css: &str) -> (usize, usize, usize, bool) {
        let mut limit = StyleLimit::default();
        let rules = parse_stylesheet(css, &Detector::new(features()), &mut limit, &mut |_, _| {});
        let selectors = rules.iter().map(|rule| rule.selectors.len()).sum();
        let declarations = rules.iter().map(|rule| rule.declarations.len()).sum();
        (rules.len(), selectors, declarations, limit.is_exceeded)
    }

    #[test]
    fn limits_what_is_stored() {
        let table = [
            ("a{b:c}".to_owned(), (1, 1, 1, false)),
            ("{}".repeat(MAX_SELECTORS + 1), (0, 0, 0, false)),
            ("a{}{b:c}".to_owned(), (0, 0, 0, false)),
            ("a{b:c}".repeat(MAX_SELECTORS), (MAX_SELECTORS, MAX_SELECTORS, MAX_SELECTORS, false)),
            ("a{b:c}".repeat(MAX_SELECTORS + 1), (MAX_SELECTORS, MAX_SELECTORS, MAX_SELECTORS, true)),
            ("a,".repeat(MAX_SELECTORS + 1) + "a{b:c}", (1, MAX_SELECTORS, 1, true)),
            (format!("a{{{}}}", "b:c;".repeat(MAX_DECLARATIONS)), (1, 1, MAX_DECLARATIONS, false)),
            (format!("a{{{}}}", "b:c;".repeat(MAX_DECLARATIONS + 1)), (1, 1, MAX_DECLARATIONS, true)),
        ];
        for (css, expected) in table {
            assert_eq!(sizes(&css), expected, "{css:.40}");
        }
    }

    #[test]
    fn stores_each_feature_of_a_declaration_once() {
        let detector = Detector::new(features());
        let occurrences = |css: &str| {
            let mut limit = StyleLimit::default();
            let declarations = parse_style_attribute(css, &detector, &mut limit);
            let features = declarations.iter().flat_map(|declaration| &declaration.features);
            let features: Vec<_> = features.map(|(detected, n)| (slug(detected), *n)).collect();
            (features, limit.is_exceeded)
        };
        let value = |count: usize| format!("width:{}", "1px ".repeat(count));
        let limit = u32::try_from(MAX_VALUE_TOKENS).expect("it is small");
        let table = [
            ("width:1px 1em 1px".to_owned(), (vec![("css-width", 1), ("css-unit-px", 2), ("css-unit-em", 1)], false)),
            (value(MAX_VALUE_TOKENS), (vec![("css-width", 1), ("css-unit-px", limit)], false)),
            (value(MAX_VALUE_TOKENS + 1), (vec![("css-width", 1), ("css-unit-px", limit)], true)),
        ];
        for (css, expected) in table {
            assert_eq!(occurrences(&css), expected, "{css:.40}");
        }
    }

    fn slug(detected: &Detected) -> &'static str {
        features()[detected.feature].slug
    }
}
