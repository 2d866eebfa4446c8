//! Selectors of style sheets, and matching them with a limit on the work. Parsing is in `parse`.

mod parse;

use restante_mail::mime::html_tokens::find_attribute;

use crate::document::{Document, Element, ElementId, resolved};
use crate::limits::WorkLimit;

pub(crate) use parse::{SelectorPart, parse_selectors};

/// The number of bytes of an attribute that are compared in one step of work.
const BYTES_PER_STEP: usize = 32;

/// A selector without commas.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    /// The compounds from right to left, each with the combinator on its left.
    compounds: Box<[(Compound, Combinator)]>,
    /// Whether the selector matches in every state: it has no pseudo-classes except those that are checked, no
    /// pseudo-elements and no `*`.
    pub(crate) is_unconditional: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Combinator {
    #[default]
    Descendant,
    Child,
    Adjacent,
    Sibling,
}

/// Tests of one element.
#[derive(Debug, Default, PartialEq, Eq)]
struct Compound {
    name: Option<String>,
    id: Option<String>,
    classes: Vec<String>,
    attributes: Vec<AttributeTest>,
    is_first_child: bool,
    is_last_child: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct AttributeTest {
    name: String,
    operator: AttributeOperator,
    value: String,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum AttributeOperator {
    #[default]
    Exists,
    Equals,
    Includes,
    Dash,
    Prefix,
    Suffix,
    Substring,
}

/// A key under which a selector is found by the elements that it may match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum SelectorKey<'a> {
    Id(&'a str),
    Class(&'a str),
    Name(&'a str),
    Any,
}

impl Selector {
    /// Returns the key of the selector.
    pub(crate) fn key(&self) -> SelectorKey<'_> {
        let Some((compound, _)) = self.compounds.first() else { return SelectorKey::Any };
        if let Some(id) = &compound.id {
            SelectorKey::Id(id)
        } else if let Some(class) = compound.classes.first() {
            SelectorKey::Class(class)
        } else if let Some(name) = &compound.name {
            SelectorKey::Name(name)
        } else {
            SelectorKey::Any
        }
    }

    /// Returns whether the selector matches an element. Returns false when the work limit is reached.
    pub(crate) fn matches(&self, document: &Document<'_>, element: ElementId, work: &mut WorkLimit) -> bool {
        // The elements to try, each with the compound that must match it.
        let mut candidates = vec![(element, 0)];
        while let Some((id, at)) = candidates.pop() {
            let element = &document.elements[id];
            let Some((compound, combinator)) = self.compounds.get(at) else { return true };
            if !compound.matches(element, work) {
                continue;
            }
            if at + 1 == self.compounds.len() {
                return true;
            }
            let step = |id: &ElementId| match combinator {
                Combinator::Descendant | Combinator::Child => document.elements[*id].parent,
                Combinator::Adjacent | Combinator::Sibling => document.elements[*id].previous,
            };
            let mut next = step(&id);
            while let Some(id) = next {
                if !work.take(1) {
                    return false;
                }
                candidates.push((id, at + 1));
                let is_repeated = matches!(combinator, Combinator::Descendant | Combinator::Sibling);
                next = if is_repeated { step(&id) } else { None };
            }
        }
        false
    }
}

impl Compound {
    /// Returns the number of tests of classes and attributes.
    fn tests(&self) -> usize {
        self.classes.len() + self.attributes.len()
    }

    fn matches(&self, element: &Element<'_>, work: &mut WorkLimit) -> bool {
        let bytes = (self.classes.len() * element.class.len()) + (self.attributes.len() * element.attributes.len());
        work.take(1 + self.tests() + bytes / BYTES_PER_STEP)
            && self.name.as_deref().is_none_or(|name| name == element.name)
            && self.id.as_deref().is_none_or(|id| id == element.id)
            && (!self.is_first_child || element.previous.is_none())
            && (!self.is_last_child || !element.has_next)
            && self.classes.iter().all(|class| element.class.split_ascii_whitespace().any(|found| found == class))
            && self.attributes.iter().all(|test| test.matches(element))
    }
}

impl AttributeTest {
    fn matches(&self, element: &Element<'_>) -> bool {
        let Some(found) = find_attribute(element.attributes, &self.name).map(resolved) else { return false };
        let value = &*self.value;
        match self.operator {
            AttributeOperator::Exists => true,
            AttributeOperator::Equals => found == value,
            AttributeOperator::Includes => found.split_ascii_whitespace().any(|word| word == value),
            AttributeOperator::Dash => {
                found.strip_prefix(value).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
            }
            AttributeOperator::Prefix => !value.is_empty() && found.starts_with(value),
            AttributeOperator::Suffix => !value.is_empty() && found.ends_with(value),
            AttributeOperator::Substring => !value.is_empty() && found.contains(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::parse::MAX_TESTS;
    use super::*;
    use crate::limits::StyleLimit;

    const HTML: &str = "<div id=a class='x y'><p class=x>1</p><p lang=en-us>2</p><b><i title='a b'>3</i></b></div>";

    /// Returns the names and the positions of the elements that a selector matches.
    fn matches(selector: &str) -> String {
        let document = Document::parse(HTML);
        let selectors = parse_selectors(selector, &mut StyleLimit::default(), &mut |_, _| {});
        let mut work = WorkLimit(usize::MAX);
        let mut matches = |id: &ElementId| selectors.iter().any(|selector| selector.matches(&document, *id, &mut work));
        let ids = (0..document.elements.len()).filter(|id| matches(id));
        ids.map(|id| format!("{}{id}", document.elements[id].name)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn matches_elements() {
        let table = [
            ("p", "p4 p5"),
            ("P.x", "p4"),
            (".x", "div3 p4"),
            (".x.y, #a", "div3"),
            ("#a p", "p4 p5"),
            ("body>p", ""),
            ("body > div>p", "p4 p5"),
            ("p + p", "p5"),
            ("p~b i", "i7"),
            ("div i", "i7"),
            ("html div b i", "i7"),
            ("div i p", ""),
            ("[lang]", "p5"),
            ("[lang|=en]", "p5"),
            ("[lang|=e]", ""),
            ("i[title~=b]", "i7"),
            ("[title='a b']", "i7"),
            ("[title^=a][title$=\"b\"][title*=' ']", "i7"),
            ("[title^='']", ""),
            ("p:first-child", "p4"),
            ("b:last-child", "b6"),
            (":only-child", "html0 div3 i7"),
            ("p:hover", "p4 p5"),
            ("*", "html0 head1 body2 div3 p4 p5 b6 i7"),
            ("", ""),
            (",,", ""),
        ];
        for (selector, elements) in table {
            assert_eq!(matches(selector), elements, "{selector}");
        }
    }

    #[test]
    fn stops_at_the_work_limit() {
        let html = "<b>".repeat(200);
        let document = Document::parse(&html);
        let selectors = parse_selectors("x b b b b b b b b b b", &mut StyleLimit::default(), &mut |_, _| {});
        let mut work = WorkLimit(100_000);
        assert!(!selectors[0].matches(&document, document.elements.len() - 1, &mut work));
        assert_eq!(work.0, 0);
    }

    #[test]
    fn tests_are_work() {
        let document = Document::parse("<b class=a>");
        let selectors = parse_selectors(&".a".repeat(MAX_TESTS), &mut StyleLimit::default(), &mut |_, _| {});
        let mut work = WorkLimit(1000);
        assert!(selectors[0].matches(&document, document.elements.len() - 1, &mut work));
        assert!(1000 - work.0 >= MAX_TESTS, "{work:?}");
    }
}
