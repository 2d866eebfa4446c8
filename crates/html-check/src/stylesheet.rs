//! Style sheets and style attributes as rules and declarations. Blocks are processed with a counter instead of a stack,
//! because only two kinds of blocks are entered: those of conditional at-rules, and declarations.

use restante_html::{CssToken, CssTokens};

use crate::detect::{Detected, Detector};
use crate::selector::{Selector, parse_selectors};

/// A declaration.
#[derive(Debug)]
pub(crate) struct Declaration<'a> {
    /// The features that it uses.
    pub(crate) features: Vec<Detected>,
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
    pub(crate) selectors: Vec<Selector>,
    pub(crate) declarations: Vec<Declaration<'a>>,
    /// Whether the rule is inside of an at-rule such as `@media`.
    pub(crate) is_conditional: bool,
}

/// Parses a style sheet. Rules in at-rules other than conditional ones, such as `@keyframes`, are skipped. Features
/// that do not depend on elements, such as at-rules, are passed to `report` with the source text where they are.
pub(crate) fn parse_stylesheet<'a>(
    css: &'a str,
    detector: &Detector,
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
                let selectors = parse_selectors(prelude.text, &mut |part, source| {
                    detector.selector_part(part, &mut |detected| report(detected, source));
                });
                let declarations = parse_declarations(&mut tokens, detector, report);
                rules.push(Rule { selectors, declarations, is_conditional: depth > 0 });
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
            CssToken::AtKeyword(name) if text_before(start, before).trim().is_empty() => {
                keyword = Some((name.to_ascii_lowercase(), source));
                start = tokens.rest();
                continue;
            }
            CssToken::CDO | CssToken::CDC => {
                start = tokens.rest();
                continue;
            }
            CssToken::Comment(_) => {
                detector.comment(&mut |detected| report(detected, source));
                // A comment before a rule is not part of it.
                if text_before(start, before).trim().is_empty() {
                    start = tokens.rest();
                }
                continue;
            }
            _ => continue,
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
pub(crate) fn parse_style_attribute<'a>(css: &'a str, detector: &Detector) -> Vec<Declaration<'a>> {
    parse_declarations(&mut CssTokens::new(css), detector, &mut |_, _| {})
}

/// Parses declarations up to the end of the block or of the text.
fn parse_declarations<'a>(
    tokens: &mut CssTokens<'a>,
    detector: &Detector,
    report: &mut dyn FnMut(Detected, &str),
) -> Vec<Declaration<'a>> {
    let mut declarations = Vec::new();
    // The property of the current declaration with its source text, and the tokens after the colon.
    let mut property: Option<(String, &'a str)> = None;
    let mut value: Option<Vec<CssToken<'a>>> = None;
    loop {
        let Some((token, source)) = tokens.next() else {
            declarations.extend(finish_declaration(property.take(), value.take(), detector));
            return declarations;
        };
        match (token, &mut value) {
            (CssToken::CloseCurlyBracket, _) => {
                declarations.extend(finish_declaration(property.take(), value.take(), detector));
                return declarations;
            }
            (CssToken::Semicolon, _) => {
                declarations.extend(finish_declaration(property.take(), value.take(), detector));
            }
            (CssToken::CurlyBracketBlock, _) => {
                detector.nested_rule(&mut |detected| report(detected, source));
                skip_block(tokens);
                (property, value) = (None, None);
            }
            (CssToken::Comment(_), _) => detector.comment(&mut |detected| report(detected, source)),
            (CssToken::Ident(name), None) if property.is_none() => property = Some((name.to_ascii_lowercase(), source)),
            (CssToken::Colon, None) if property.is_some() => value = Some(Vec::new()),
            (token, Some(value)) => value.push(token),
            _ => {}
        }
    }
}

fn finish_declaration<'a>(
    property: Option<(String, &'a str)>,
    value: Option<Vec<CssToken<'a>>>,
    detector: &Detector,
) -> Option<Declaration<'a>> {
    let ((property, source), mut value) = (property?, value?);
    value.retain(|token| !matches!(token, CssToken::WhiteSpace(_)));
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
