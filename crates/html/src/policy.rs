//! Configuration of the sanitizer: the allowed elements and attributes, in the preview and in other pages. `url_target`
//! checks URLs, `css` checks styles.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use ammonia::{Builder, UrlRelative};

use super::elements::element_names;

/// The sanitizer for the preview, which keeps the presentation of the message.
pub(super) static PREVIEW_SANITIZER: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let mut builder = base_sanitizer(element_names().collect());
    builder
        .add_generic_attributes(PRESENTATION_ATTRIBUTES.split(' '))
        .add_generic_attributes(SELECTOR_ATTRIBUTES)
        .tag_attributes(element_attributes());
    builder
});

/// The sanitizer for HTML that is inserted into another page: no names that the styles or scripts of that page could
/// refer to, and no images that the browser chooses. It removes only elements without content, because removing others
/// would change the nesting.
pub(super) static STRICT_SANITIZER: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let is_allowed = |name: &&str| !["area", "source"].contains(name);
    let mut builder = base_sanitizer(element_names().filter(is_allowed).collect());
    let mut attributes_by_element = element_attributes();
    attributes_by_element.retain(|name, _| is_allowed(name));
    for attributes in attributes_by_element.values_mut() {
        attributes.retain(|name| matches!(*name, "href" | "src" | "alt" | "type" | "start" | "value" | "reversed"));
    }
    builder.add_generic_attributes(PRESENTATION_ATTRIBUTES.split(' ')).tag_attributes(attributes_by_element);
    builder
});

/// Returns whether the attribute is allowed on any element. Other attributes need not be processed.
pub(super) fn is_known_attribute(name: &str) -> bool {
    PRESENTATION_ATTRIBUTES.split(' ').any(|known| known == name)
        || SELECTOR_ATTRIBUTES.contains(&name)
        || ELEMENT_ATTRIBUTES.iter().any(|(_, names)| names.contains(&name))
}

/// Returns a sanitizer with these elements. URLs are checked later, so only schemes that run scripts are excluded here.
fn base_sanitizer(tags: HashSet<&'static str>) -> Builder<'static> {
    let mut builder = Builder::empty();
    builder
        .tags(tags)
        .url_schemes(HashSet::from(["http", "https", "mailto", "tel", "cid", "data"]))
        .url_relative(UrlRelative::PassThrough)
        .link_rel(None);
    builder
}

fn element_attributes() -> HashMap<&'static str, HashSet<&'static str>> {
    ELEMENT_ATTRIBUTES.iter().map(|&(element, names)| (element, names.iter().copied().collect())).collect()
}

/// Attributes of all elements that describe presentation or meaning, separated by spaces.
const PRESENTATION_ATTRIBUTES: &str = "\
    align bgcolor border bordercolor cellpadding cellspacing clear color colspan compact dir face frame height \
    hspace lang noshade nowrap rowspan rules scope size span style title valign vspace width background";

/// Attributes of all elements that the styles of the message or assistive tools refer to.
const SELECTOR_ATTRIBUTES: &[&str] = &["aria-hidden", "aria-label", "class", "id", "role"];

/// Attributes of single elements. `div` has those of `body`, because the body of a message is sanitized as a `div`.
const ELEMENT_ATTRIBUTES: &[(&str, &[&str])] = &[
    ("a", &["href", "name"]),
    ("area", &["href", "shape", "coords", "alt"]),
    ("details", &["open"]),
    ("div", &["alink", "link", "text", "vlink"]),
    ("img", &["src", "srcset", "sizes", "alt", "usemap"]),
    ("li", &["type", "value"]),
    ("map", &["name"]),
    ("ol", &["type", "start", "reversed"]),
    ("source", &["srcset", "sizes", "media", "type"]),
    ("ul", &["type"]),
];
