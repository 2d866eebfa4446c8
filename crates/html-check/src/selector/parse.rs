//! Parsing of selectors, with limits on their length.

use restante_html::{CssToken, CssTokens};

use crate::limits::StyleLimit;
use crate::selector::{AttributeOperator, AttributeTest, Combinator, Compound, Selector};

/// The maximum number of compounds in a selector. Longer selectors are left out.
const MAX_COMPOUNDS: usize = 16;
/// The maximum number of tests of classes and attributes in a compound. Selectors with more are left out.
pub(super) const MAX_TESTS: usize = 64;

/// A construct in a selector, with the source text at which it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SelectorPart<'a> {
    Name,
    Universal,
    Id,
    Class,
    Attribute,
    /// A second test of the same element.
    Chained,
    Combinator(Combinator),
    /// A comma.
    Grouping,
    /// A pseudo-class or pseudo-element: its colons, its name, and whether it is a function.
    Pseudo {
        has_two_colons: bool,
        name: &'a str,
        is_function: bool,
    },
}

/// Parses the text before the block of a rule. Calls `report` for each construct with the source text where it is, also
/// for those of selectors that exceed a limit.
pub(crate) fn parse_selectors(
    text: &str,
    limit: &mut StyleLimit,
    report: &mut dyn FnMut(SelectorPart<'_>, &str),
) -> Box<[Selector]> {
    let mut parser = SelectorParser {
        limit,
        report,
        selectors: Vec::new(),
        current: Vec::new(),
        compound: None,
        pending: None,
        is_unconditional: true,
        is_too_long: false,
    };
    let mut tokens = CssTokens::new(text);
    while let Some((token, source)) = tokens.next() {
        parser.token(&token, source, &mut tokens);
    }
    parser.finish();
    parser.selectors.into_boxed_slice()
}

struct SelectorParser<'l> {
    limit: &'l mut StyleLimit,
    report: &'l mut dyn FnMut(SelectorPart<'_>, &str),
    selectors: Vec<Selector>,
    /// The compounds from left to right, each with the combinator on its left.
    current: Vec<(Compound, Combinator)>,
    compound: Option<Compound>,
    /// The combinator before the next compound.
    pending: Option<Combinator>,
    is_unconditional: bool,
    /// Whether the current selector exceeds a limit.
    is_too_long: bool,
}

impl SelectorParser<'_> {
    fn token<'a>(&mut self, token: &CssToken<'a>, source: &'a str, tokens: &mut CssTokens<'a>) {
        match token {
            CssToken::WhiteSpace(_) => self.end_compound_at_space(),
            CssToken::Comma => {
                (self.report)(SelectorPart::Grouping, source);
                self.finish();
            }
            CssToken::Delim('>') => self.combinator(Combinator::Child),
            CssToken::Delim('+') => self.combinator(Combinator::Adjacent),
            CssToken::Delim('~') => self.combinator(Combinator::Sibling),
            CssToken::Delim('*') => {
                self.begin(SelectorPart::Universal, source);
                self.is_unconditional = false;
            }
            CssToken::Ident(name) => {
                self.begin(SelectorPart::Name, source).name = Some(name.to_ascii_lowercase());
            }
            CssToken::Hash(id) | CssToken::IDHash(id) => {
                self.begin(SelectorPart::Id, source).id = Some(id.to_string());
            }
            CssToken::Delim('.') => {
                if let Some((CssToken::Ident(class), _)) = tokens.next() {
                    self.begin(SelectorPart::Class, source);
                    self.add_test(|compound| compound.classes.push(class.to_string()));
                }
            }
            CssToken::SquareBracketBlock => {
                let test = parse_attribute(tokens);
                self.begin(SelectorPart::Attribute, source);
                self.add_test(|compound| compound.attributes.push(test));
            }
            CssToken::Colon => self.pseudo(source, tokens),
            _ => {}
        }
    }

    /// Returns the compound to which a test is added.
    fn begin(&mut self, part: SelectorPart<'_>, source: &str) -> &mut Compound {
        (self.report)(part, source);
        if self.compound.is_some() {
            (self.report)(SelectorPart::Chained, source);
        } else if let Some(combinator) = self.pending
            && !self.current.is_empty()
        {
            (self.report)(SelectorPart::Combinator(combinator), source);
        }
        self.compound.get_or_insert_default()
    }

    /// Adds a test of a class or an attribute to the current compound.
    fn add_test(&mut self, add: impl FnOnce(&mut Compound)) {
        let compound = self.compound.get_or_insert_default();
        if compound.tests() < MAX_TESTS {
            add(compound);
        } else {
            self.is_too_long = true;
        }
    }

    fn pseudo(&mut self, source: &str, tokens: &mut CssTokens<'_>) {
        let mut next = tokens.next();
        let has_two_colons = matches!(next, Some((CssToken::Colon, _)));
        if has_two_colons {
            next = tokens.next();
        }
        let (name, is_function) = match &next {
            Some((CssToken::Ident(name), _)) => (name.to_ascii_lowercase(), false),
            Some((CssToken::Function(name), _)) => (name.to_ascii_lowercase(), true),
            _ => return,
        };
        (self.report)(SelectorPart::Pseudo { has_two_colons, name: &name, is_function }, source);
        let compound = self.compound.get_or_insert_default();
        match (&*name, has_two_colons || is_function) {
            ("first-child", false) => compound.is_first_child = true,
            ("last-child", false) => compound.is_last_child = true,
            ("only-child", false) => (compound.is_first_child, compound.is_last_child) = (true, true),
            _ => self.is_unconditional = false,
        }
        if is_function {
            skip_function(tokens, self.report);
        }
    }

    fn combinator(&mut self, combinator: Combinator) {
        self.end_compound();
        self.pending = Some(combinator);
    }

    /// Ends the current compound. Returns whether there was one.
    fn end_compound(&mut self) -> bool {
        let Some(compound) = self.compound.take() else { return false };
        let combinator = self.pending.take().unwrap_or_default();
        if self.current.len() < MAX_COMPOUNDS {
            self.current.push((compound, combinator));
        } else {
            self.is_too_long = true;
        }
        true
    }

    /// Ends the current compound. Another combinator than the space may follow.
    fn end_compound_at_space(&mut self) {
        if self.end_compound() {
            self.pending = Some(Combinator::Descendant);
        }
    }

    fn finish(&mut self) {
        self.end_compound();
        self.pending = None;
        let mut compounds = std::mem::take(&mut self.current);
        compounds.reverse();
        let is_unconditional = std::mem::replace(&mut self.is_unconditional, true);
        if std::mem::take(&mut self.is_too_long) {
            self.limit.is_exceeded = true;
        } else if !compounds.is_empty() && self.limit.take_selector() {
            self.selectors.push(Selector { compounds: compounds.into_boxed_slice(), is_unconditional });
        }
    }
}

/// Skips the arguments of a function. Pseudo-classes in them are reported.
fn skip_function(tokens: &mut CssTokens<'_>, report: &mut dyn FnMut(SelectorPart<'_>, &str)) {
    let mut depth = 1;
    let mut is_after_colon = false;
    while depth > 0
        && let Some((token, source)) = tokens.next()
    {
        match &token {
            CssToken::Function(_) | CssToken::ParenthesisBlock => depth += 1,
            CssToken::CloseParenthesis => depth -= 1,
            _ => {}
        }
        if let (true, CssToken::Ident(name) | CssToken::Function(name)) = (is_after_colon, &token) {
            let is_function = matches!(token, CssToken::Function(_));
            report(
                SelectorPart::Pseudo { has_two_colons: false, name: &name.to_ascii_lowercase(), is_function },
                source,
            );
        }
        is_after_colon = matches!(token, CssToken::Colon);
    }
}

/// Parses a test of an attribute after its opening bracket.
fn parse_attribute(tokens: &mut CssTokens<'_>) -> AttributeTest {
    let mut test = AttributeTest::default();
    for (token, _) in tokens {
        match token {
            CssToken::CloseSquareBracket => break,
            CssToken::Ident(name) if test.name.is_empty() => test.name = name.to_ascii_lowercase(),
            CssToken::Delim('=') => test.operator = AttributeOperator::Equals,
            CssToken::IncludeMatch => test.operator = AttributeOperator::Includes,
            CssToken::DashMatch => test.operator = AttributeOperator::Dash,
            CssToken::PrefixMatch => test.operator = AttributeOperator::Prefix,
            CssToken::SuffixMatch => test.operator = AttributeOperator::Suffix,
            CssToken::SubstringMatch => test.operator = AttributeOperator::Substring,
            CssToken::Ident(value) | CssToken::QuotedString(value) if test.value.is_empty() => {
                test.value = value.to_string();
            }
            _ => {}
        }
    }
    test
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::MAX_SELECTORS;

    #[test]
    fn knows_which_selectors_depend_on_a_state() {
        let is_unconditional = |text| {
            parse_selectors(text, &mut StyleLimit::default(), &mut |_, _| {})
                .iter()
                .all(|selector| selector.is_unconditional)
        };
        for selector in ["p", "p:first-child", "a[href]:last-child b"] {
            assert!(is_unconditional(selector), "{selector}");
        }
        for selector in ["p:hover", "p::after", ":not(a)", "*", "div > *", "p:nth-child(2)"] {
            assert!(!is_unconditional(selector), "{selector}");
        }
        let mixed = parse_selectors("a:hover, b", &mut StyleLimit::default(), &mut |_, _| {});
        assert_eq!(mixed.iter().map(|s| s.is_unconditional).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn reports_constructs() {
        let mut parts = Vec::new();
        parse_selectors("a.b > *,c d:not(e:hover)::after", &mut StyleLimit::default(), &mut |part, source| {
            parts.push(format!("{part:?} {source}"));
        });
        let expected = [
            "Name a",
            "Class .",
            "Chained .",
            "Universal *",
            "Combinator(Child) *",
            "Grouping ,",
            "Name c",
            "Name d",
            "Combinator(Descendant) d",
            "Pseudo { has_two_colons: false, name: \"not\", is_function: true } :",
            "Pseudo { has_two_colons: false, name: \"hover\", is_function: false } hover",
            "Pseudo { has_two_colons: true, name: \"after\", is_function: false } :",
        ];
        assert_eq!(parts, expected);
    }

    #[test]
    fn leaves_out_what_exceeds_a_limit() {
        let count = |text: &str| {
            let mut limit = StyleLimit::default();
            (parse_selectors(text, &mut limit, &mut |_, _| {}).len(), limit.is_exceeded)
        };
        let table = [
            ("a,".repeat(MAX_SELECTORS), (MAX_SELECTORS, false)),
            ("a,".repeat(MAX_SELECTORS + 1), (MAX_SELECTORS, true)),
            (",".repeat(MAX_SELECTORS + 1), (0, false)),
            ("a ".repeat(MAX_COMPOUNDS), (1, false)),
            ("a ".repeat(MAX_COMPOUNDS + 1), (0, true)),
            ("a ".repeat(MAX_COMPOUNDS + 1) + ", b", (1, true)),
            (".a".repeat(MAX_TESTS), (1, false)),
            (".a".repeat(MAX_TESTS) + "[b]", (0, true)),
            ("[b]".repeat(MAX_TESTS + 1), (0, true)),
        ];
        for (text, expected) in table {
            assert_eq!(count(&text), expected, "{text:.40}");
        }
    }
}
