//! What of a mail's HTML may be shown: the elements and attributes that survive, in the preview and in somebody else's
//! page. What the addresses among the values may be is said in `address`, what the styles may be in `css`.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use ammonia::{Builder, UrlRelative};

use super::elements::ELEMENTS;

/// The looks of a mail, for a frame of its own.
pub(super) static PREVIEW_SANITIZER: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let mut builder = base_sanitizer(ELEMENTS.iter().map(|&(name, _)| name).collect());
    builder
        .add_generic_attributes(PRESENTATION_ATTRIBUTES)
        .add_generic_attributes(SELECTOR_ATTRIBUTES)
        .tag_attributes(element_attributes());
    builder
});

/// What leaves the page around it alone: no names that its styles or scripts could meet, no images chosen by the
/// browser. Only elements without content are left out: without another, what is around it would nest in another way.
pub(super) static STRICT_SANITIZER: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let is_allowed = |name: &&str| !["area", "source"].contains(name);
    let mut builder = base_sanitizer(ELEMENTS.iter().map(|&(name, _)| name).filter(is_allowed).collect());
    let mut attributes_by_element = element_attributes();
    attributes_by_element.retain(|name, _| is_allowed(name));
    for attributes in attributes_by_element.values_mut() {
        attributes.retain(|name| matches!(*name, "href" | "src" | "alt" | "type" | "start" | "value" | "reversed"));
    }
    builder.add_generic_attributes(PRESENTATION_ATTRIBUTES).tag_attributes(attributes_by_element);
    builder
});

/// Whether any element may have this attribute; the others need not be looked at.
pub(super) fn is_known_attribute(name: &str) -> bool {
    PRESENTATION_ATTRIBUTES.contains(&name)
        || SELECTOR_ATTRIBUTES.contains(&name)
        || ELEMENT_ATTRIBUTES.iter().any(|(_, names)| names.contains(&name))
}

/// Addresses are judged after this, so nothing is said about the schemes of links but that scripts are none.
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

/// Attributes of any element that say how it looks or what it means.
const PRESENTATION_ATTRIBUTES: &[&str] = &[
    "align",
    "bgcolor",
    "border",
    "bordercolor",
    "cellpadding",
    "cellspacing",
    "clear",
    "color",
    "colspan",
    "compact",
    "dir",
    "face",
    "frame",
    "height",
    "hspace",
    "lang",
    "noshade",
    "nowrap",
    "rowspan",
    "rules",
    "scope",
    "size",
    "span",
    "style",
    "title",
    "valign",
    "vspace",
    "width",
    "background",
];

/// Attributes of any element that the mail's own styles, or a reader's tools, hold on to.
const SELECTOR_ATTRIBUTES: &[&str] = &["aria-hidden", "aria-label", "class", "id", "role"];

/// Attributes that only mean something on one element. `div` has those of `body`: the body of a mail is judged as one.
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
